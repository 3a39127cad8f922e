//! The dependency graph of files.
//!
//! [`resolve`] finds the files of the project, or the third-party package, that an import means. A
//! [`Graph`] has the imports of all files, and the names that one file uses and another one
//! defines; it answers questions about neighbours, the impact of a change, cycles, paths between
//! files, and the importance of files (`docs/graph.md`).
//!
//! The graph is built when it is first asked for, and then follows the index: only changed files,
//! files that looked at a changed path, and files that use a name with new definers are resolved
//! again. It is stored beside the index, from which it is derived: a damaged or missing file, or
//! one of another version, is rebuilt.

mod build_units;
mod deleted;
mod edge;
mod folder_scopes;
mod graph_file;
mod impact;
mod name_dependencies;
mod page_rank;
mod path_suggestions;
mod path_tree;
mod queries;
pub mod resolve;
mod resolved_graph;
mod update;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hashbrown::HashSet;
use journeyman_protocol::RelPath;

use crate::Snapshot;
use build_units::BuildUnits;
pub use deleted::DeletedFile;
pub use edge::{Edge, MIN_NAMES_WEIGHT, Node, UNIQUE_NAME_WEIGHT};
use graph_file::SavedGraph;
pub use impact::{ChangedPart, ChangedSourceFile};
pub use queries::{Cycle, Direction, MAX_REACHED_FILES, ReachedFile, TraversalResult};
use resolved_graph::ResolvedGraph;
pub use resolved_graph::UpdateStats;

/// The graph is saved if more than this fraction of all files changed: fewer are resolved again in
/// a few milliseconds.
const SAVE_THRESHOLD_DIVISOR: usize = 64;
/// Minimum number of changed files for which the graph is always saved.
const MIN_CHANGED_FILES_TO_SAVE: usize = 2_000;
/// Maximum changed files, and bytes of the graph, for callers that can't wait: some milliseconds.
const MAX_CHANGED_WITHOUT_WAITING: usize = 20;
const MAX_BYTES_WITHOUT_WAITING: u64 = 8 << 20;
/// Maximum names of an edge in an answer.
const MAX_EDGE_NAMES: usize = 5;
/// Maximum names in a sentence.
const MAX_NAMES_IN_SENTENCE: usize = 3;
/// Maximum names from which the names of an edge are chosen.
const MAX_COMPARED_NAMES: usize = 200;

/// The dependencies between the files of one snapshot. Files have their own numbers here, in path
/// order.
#[derive(Debug, Default)]
pub struct Graph {
    nodes: Vec<Node>,
    edges: Vec<Box<[Edge]>>,
    packages: Vec<Box<str>>,
    packages_of: Vec<Box<[u32]>>,
    units: BuildUnits,
    /// By target, with the sources in `to`; built on demand.
    back: OnceLock<Vec<Box<[Edge]>>>,
    done: UpdateStats,
}

impl Graph {
    /// Builds the graph of a snapshot. `read` returns the text of settings files by path.
    #[must_use]
    pub fn new(snapshot: &Snapshot, read: &dyn Fn(&str) -> Option<String>) -> Self {
        update::update_graph(snapshot, None, read, usize::MAX).map(Self::from).unwrap_or_default()
    }

    /// Returns the work of building the graph.
    #[must_use]
    pub fn last_update_stats(&self) -> UpdateStats {
        self.done
    }

    /// Returns the number of files.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns true if there are no files.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns a file.
    #[must_use]
    pub fn node(&self, number: u32) -> Option<&Node> {
        self.nodes.get(number as usize)
    }

    /// Returns a file's path; empty for an unknown number.
    #[must_use]
    pub fn path(&self, number: u32) -> &str {
        self.node(number).map_or("", |node| &node.path)
    }

    /// Returns the file at a path.
    #[must_use]
    pub fn find_file(&self, path: &str) -> Option<u32> {
        self.nodes.binary_search_by(|node| (*node.path).cmp(path)).ok().map(|at| at as u32)
    }

    /// Returns the dependencies of a file, by path, including those with too little weight to
    /// count.
    #[must_use]
    pub fn edges(&self, number: u32) -> &[Edge] {
        self.edges.get(number as usize).map(|edges| &**edges).unwrap_or_default()
    }

    /// Returns the dependents of a file, by path, in [`Edge::to`].
    #[must_use]
    pub fn reverse_edges(&self, number: u32) -> &[Edge] {
        let back = self.back.get_or_init(|| {
            let mut back: Vec<Vec<Edge>> = vec![Vec::new(); self.nodes.len()];
            for (from, edges) in (0..).zip(&self.edges) {
                for edge in edges {
                    if let Some(back) = back.get_mut(edge.to as usize) {
                        back.push(Edge { to: from, ..*edge });
                    }
                }
            }
            back.into_iter().map(Into::into).collect()
        });
        back.get(number as usize).map(|edges| &**edges).unwrap_or_default()
    }

    /// Returns the edge from one file to another one.
    #[must_use]
    pub fn edge(&self, from: u32, to: u32) -> Option<Edge> {
        let edges = self.edges(from);
        edges.binary_search_by_key(&to, |edge| edge.to).ok().and_then(|at| edges.get(at)).copied()
    }

    /// Returns the files that import a file, except those that declare it as a part.
    fn importers(&self, number: u32) -> impl Iterator<Item = &Edge> {
        self.reverse_edges(number).iter().filter(|edge| edge.line > 0 && !edge.part)
    }

    /// Returns the third-party packages that a file imports, by name.
    pub fn packages(&self, number: u32) -> impl Iterator<Item = &str> {
        let own = self.packages_of.get(number as usize).map(|own| &**own).unwrap_or_default();
        own.iter().filter_map(|name| self.packages.get(*name as usize)).map(|name| &**name)
    }

    /// Returns some of the names that one file uses and another one defines, the rarest first.
    #[must_use]
    pub fn shared_names(&self, snapshot: &Snapshot, from: u32, to: u32) -> Vec<String> {
        let view = |number: u32| snapshot.file(self.node(number)?.file);
        let (Some(one), Some(other)) = (view(from), view(to)) else { return Vec::new() };
        let used: HashSet<String> = one.segment().used_names(&one.record).into_iter().collect();
        let (first, language) = (other.record.first_symbol, other.record.language);
        let symbols = first..first.saturating_add(other.record.symbols);
        let mut names: Vec<(u32, String)> = Vec::new();
        for symbol in symbols.filter_map(|symbol| other.segment().symbol(symbol)) {
            let known = names.iter().any(|(_, name)| *name == symbol.name);
            if !known
                && name_dependencies::is_usable_by_name(&symbol, language)
                && used.contains(&symbol.name)
            {
                let mut others = 0;
                snapshot.visit_definitions(&symbol.name, |_| others += 1);
                names.push((others, symbol.name));
            }
            if names.len() == MAX_COMPARED_NAMES {
                break;
            }
        }
        names.sort_by_key(|(others, _)| *others);
        names.into_iter().take(MAX_EDGE_NAMES).map(|(_, name)| name).collect()
    }
}

impl Graph {
    /// Describes the dependency of one file on another: the line that imports it, and a few names.
    #[must_use]
    pub fn describe_edge(&self, snapshot: &Snapshot, from: u32, to: u32) -> String {
        let edge = self.edge(from, to).unwrap_or_default();
        let mut parts = Vec::new();
        match edge {
            Edge { line: 0, .. } => {}
            Edge { line, part: true, .. } => parts.push(format!("a part of it, line {line}")),
            Edge { line, .. } => parts.push(format!("line {line}")),
        }
        let names = if edge.names > 0 { self.shared_names(snapshot, from, to) } else { Vec::new() };
        if !names.is_empty() {
            let few: Vec<&str> = names.iter().take(MAX_NAMES_IN_SENTENCE).map(String::as_str).collect();
            parts.push(format!("uses {}", few.join(", ")));
        }
        parts.join("; ")
    }
}

impl From<ResolvedGraph> for Graph {
    fn from(found: ResolvedGraph) -> Self {
        let (edges, packages_of) =
            found.files.into_iter().map(|file| (file.edges.into(), file.packages.into())).unzip();
        let ResolvedGraph { nodes, packages, done, .. } = found;
        let mut edges: Vec<Box<[Edge]>> = edges;
        let units = BuildUnits::find_units(&nodes);
        units.drop_edges_between_unrelated_units(&mut edges);
        Self { nodes, edges, packages, packages_of, units, back: OnceLock::new(), done }
    }
}

/// A function that returns the content of a file of the project by its path; `None` where it can't
/// be read.
type ReadContent<'a> = dyn Fn(&str) -> Option<Vec<u8>> + 'a;

/// Returns true if a file has the content that it was indexed with, as far as its hash tells: one
/// that isn't text has none.
fn is_indexed_content(snapshot: &Snapshot, path: &str, bytes: &[u8]) -> bool {
    let indexed = RelPath::parse(path).ok().and_then(|path| snapshot.find_file(&path));
    let hash = indexed.and_then(|file| snapshot.file(file)).map(|file| file.record.hash);
    hash.is_some_and(|hash| hash == [0; 32] || hash == *blake3::hash(bytes).as_bytes())
}

/// The cached graph of a project: on disk, and in memory for the latest snapshot.
#[derive(Debug)]
pub(crate) struct GraphCache {
    directory: PathBuf,
    last: Mutex<Option<(Arc<Snapshot>, Arc<Graph>)>>,
}

impl GraphCache {
    /// Creates the cache of an index's directory.
    pub(crate) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), last: Mutex::default() }
    }

    /// Returns the graph of a snapshot. `read` returns the content of settings files by path.
    pub(crate) fn graph(&self, snapshot: &Arc<Snapshot>, read: &ReadContent<'_>) -> Arc<Graph> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, graph)) = &*last
            && Arc::ptr_eq(known, snapshot)
        {
            return Arc::clone(graph);
        }
        let kept = SavedGraph::load(&self.directory);
        // What was resolved by other settings than the snapshot has must not be kept for those.
        let as_indexed = Cell::new(true);
        let read_text = |path: &str| {
            let bytes = read(path)?;
            as_indexed.set(as_indexed.get() && is_indexed_content(snapshot, path, &bytes));
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        let Some(found) = update::update_graph(snapshot, kept.as_ref(), &read_text, usize::MAX) else {
            return Arc::default();
        };
        let changed = found.done.changed;
        let worth = changed > MIN_CHANGED_FILES_TO_SAVE
            || changed.saturating_mul(SAVE_THRESHOLD_DIVISOR) > found.nodes.len();
        if worth && !snapshot.is_partial() && as_indexed.get() {
            // A graph that can't be saved is computed again the next time.
            SavedGraph::save(&found, &self.directory).ok();
        }
        let graph = Arc::new(Graph::from(found));
        *last = Some((Arc::clone(snapshot), Arc::clone(&graph)));
        graph
    }

    /// Returns the graph of a snapshot if only a few files changed since it was built, for callers
    /// that can't wait.
    pub(crate) fn graph_without_waiting(
        &self,
        snapshot: &Arc<Snapshot>,
        read: &ReadContent<'_>,
    ) -> Option<Arc<Graph>> {
        // The lock's holder is building one.
        let mut last = self.last.try_lock().ok()?;
        if let Some((_, graph)) = last.as_ref().filter(|(known, _)| Arc::ptr_eq(known, snapshot)) {
            return Some(Arc::clone(graph));
        }
        let length = std::fs::metadata(self.directory.join(graph_file::FILE_NAME)).ok()?.len();
        let kept = (length <= MAX_BYTES_WITHOUT_WAITING).then(|| SavedGraph::load(&self.directory))??;
        let read_text = |path: &str| Some(String::from_utf8_lossy(&read(path)?).into_owned());
        let found = update::update_graph(snapshot, Some(&kept), &read_text, MAX_CHANGED_WITHOUT_WAITING)?;
        let graph = Arc::new(Graph::from(found));
        *last = Some((Arc::clone(snapshot), Arc::clone(&graph)));
        Some(graph)
    }
}
