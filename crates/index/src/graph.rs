//! What depends on what.
//!
//! [`resolve`] tells which files of the project an import means, or which package of somebody else. A [`Graph`] has that
//! of all files, with what the names say that a file uses and another one defines; it is asked for neighbours, for what a
//! change affects and how, for cycles, for the way from one file to another, and for how much hangs on each
//! (`docs/graph.md`).
//!
//! It is made when it is asked for the first time, and follows the index from then on: only what changed, what looked at a
//! place that changed, and what uses a name that other files define now is looked at again. What was found is kept beside
//! the index. That is derived from it alone: where it is damaged, of another version or gone, it is made anew.

mod ask;
mod follow;
mod gone;
mod impact;
mod kept;
mod names;
mod paths;
mod rank;
pub mod resolve;
mod similar;
mod units;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hashbrown::HashSet;
use journeyman_syntax::language::Language;

use crate::Snapshot;
use crate::facts::Flags;
use crate::segment::Id;
pub use ask::{Cycle, Direction, MAX_REACHED, Reach, Reached};
pub use follow::Done;
use follow::{Found, Read};
pub use gone::Gone;
pub use impact::{Changed, Part};
use kept::{Kept, Mark};
pub use names::WHOLE;
use units::Units;

/// What names have to weigh, in 256ths of a name that one file alone can be meant by, for a file to depend on one that
/// it doesn't import: half a name, which is one that nobody else defines.
pub const LEAST_NAMES: u32 = 128;
/// What changed is kept once it is this part of all files: less is found again in a few milliseconds.
const KEEP_PART: usize = 64;
/// Changed files from which on it is kept in any case.
const KEEP_COUNT: usize = 2_000;
/// Files that may have changed since the graph was kept, and bytes of it, where somebody can't wait: some milliseconds.
const AT_HAND_CHANGED: usize = 20;
const AT_HAND_BYTES: u64 = 8 << 20;
/// Names that are told of an edge.
const MAX_NAMES: usize = 5;
/// Names that are told in words.
const NAMES_TOLD: usize = 3;
/// Names that those are chosen from.
const MAX_COMPARED: usize = 200;

/// A file of the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its path.
    pub path: Box<str>,
    /// Its number in the snapshot.
    pub file: Id,
    /// What tells whether it is the same.
    mark: Mark,
    /// Its language, if its text was read.
    pub language: Option<Language>,
    /// What it is for.
    pub flags: Flags,
}

/// That a file depends on another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Edge {
    /// The other one's number.
    pub to: u32,
    /// The line that imports it first, counted from 1; 0 where none does.
    pub line: u32,
    /// It is only named as a part: a module that Rust's `mod` declares.
    pub part: bool,
    /// What the names weigh that it defines and this one uses, in 256ths ([`WHOLE`]).
    pub names: u32,
}

impl Edge {
    /// Whether a change of the other file may matter for this one.
    #[must_use]
    pub fn depends(&self) -> bool {
        self.line > 0 && !self.part || self.names >= LEAST_NAMES
    }

    /// Whether the files are neighbours at all.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.line > 0 || self.names >= LEAST_NAMES
    }

    /// How strong it is: for orders, and for what hangs on a file.
    #[must_use]
    pub fn weight(&self) -> u32 {
        self.names.saturating_add(if self.line > 0 { WHOLE } else { 0 })
    }
}

/// What depends on what in one snapshot. Files are named by their numbers here, which go by path.
#[derive(Debug, Default)]
pub struct Graph {
    nodes: Vec<Node>,
    edges: Vec<Box<[Edge]>>,
    packages: Vec<Box<str>>,
    packages_of: Vec<Box<[u32]>>,
    units: Units,
    /// By target, with the sources in `to`; made when it is needed.
    back: OnceLock<Vec<Box<[Edge]>>>,
    done: Done,
}

impl Graph {
    /// The graph of a snapshot, by nothing else than it and the text of settings, which `read` gives by path.
    #[must_use]
    pub fn new(snapshot: &Snapshot, read: &dyn Fn(&str) -> Option<String>) -> Self {
        follow::follow(snapshot, None, read, usize::MAX).map(Self::found).unwrap_or_default()
    }

    fn found(found: Found) -> Self {
        let (edges, packages_of) =
            found.files.into_iter().map(|file| (file.edges.into(), file.packages.into())).unzip();
        let Found { nodes, packages, done, .. } = found;
        let mut edges: Vec<Box<[Edge]>> = edges;
        let units = Units::of(&nodes);
        units.part_strangers(&mut edges);
        Self { nodes, edges, packages, packages_of, units, back: OnceLock::new(), done }
    }

    /// What making it took.
    #[must_use]
    pub fn done(&self) -> Done {
        self.done
    }

    /// How many files it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// A file.
    #[must_use]
    pub fn node(&self, number: u32) -> Option<&Node> {
        self.nodes.get(number as usize)
    }

    /// A file's path; empty for a number that no file has.
    #[must_use]
    pub fn path(&self, number: u32) -> &str {
        self.node(number).map_or("", |node| &node.path)
    }

    /// The file at a path.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<u32> {
        self.nodes.binary_search_by(|node| (*node.path).cmp(path)).ok().map(|at| at as u32)
    }

    /// The files that one depends on, by path, also those that weigh too little to count.
    #[must_use]
    pub fn edges(&self, number: u32) -> &[Edge] {
        self.edges.get(number as usize).map(|edges| &**edges).unwrap_or_default()
    }

    /// The files that depend on one, by path, in [`Edge::to`].
    #[must_use]
    pub fn back(&self, number: u32) -> &[Edge] {
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

    /// The edge from one file to another one.
    #[must_use]
    pub fn edge(&self, from: u32, to: u32) -> Option<Edge> {
        let edges = self.edges(from);
        edges.binary_search_by_key(&to, |edge| edge.to).ok().and_then(|at| edges.get(at)).copied()
    }

    /// The files that import one for more than that it is a part of them.
    fn importers(&self, number: u32) -> impl Iterator<Item = &Edge> {
        self.back(number).iter().filter(|edge| edge.line > 0 && !edge.part)
    }

    /// Packages of somebody else that a file imports, by name.
    pub fn packages(&self, number: u32) -> impl Iterator<Item = &str> {
        let own = self.packages_of.get(number as usize).map(|own| &**own).unwrap_or_default();
        own.iter().filter_map(|name| self.packages.get(*name as usize)).map(|name| &**name)
    }

    /// Some of the names that one file uses and another one defines, those first that fewest things have.
    #[must_use]
    pub fn names(&self, snapshot: &Snapshot, from: u32, to: u32) -> Vec<String> {
        let view = |number: u32| snapshot.file(self.node(number)?.file);
        let (Some(one), Some(other)) = (view(from), view(to)) else { return Vec::new() };
        let used: HashSet<String> = one.segment().names(&one.record).into_iter().collect();
        let first = other.record.first_symbol;
        let symbols = first..first.saturating_add(other.record.symbols);
        let mut names: Vec<(u32, String)> = Vec::new();
        for symbol in symbols.filter_map(|symbol| other.segment().symbol(symbol)) {
            let known = names.iter().any(|(_, name)| *name == symbol.name);
            if !known && names::counts(&symbol) && used.contains(&symbol.name) {
                let mut others = 0;
                snapshot.defined(&symbol.name, |_| others += 1);
                names.push((others, symbol.name));
            }
            if names.len() == MAX_COMPARED {
                break;
            }
        }
        names.sort_by_key(|(others, _)| *others);
        names.into_iter().take(MAX_NAMES).map(|(_, name)| name).collect()
    }
}

impl Graph {
    /// In words, why one file depends on another one: the line that imports it, and a few names.
    #[must_use]
    pub fn because(&self, snapshot: &Snapshot, from: u32, to: u32) -> String {
        let edge = self.edge(from, to).unwrap_or_default();
        let mut parts = Vec::new();
        match edge {
            Edge { line: 0, .. } => {}
            Edge { line, part: true, .. } => parts.push(format!("a part of it, line {line}")),
            Edge { line, .. } => parts.push(format!("line {line}")),
        }
        let names = if edge.names > 0 { self.names(snapshot, from, to) } else { Vec::new() };
        if !names.is_empty() {
            let few: Vec<&str> = names.iter().take(NAMES_TOLD).map(String::as_str).collect();
            parts.push(format!("uses {}", few.join(", ")));
        }
        parts.join("; ")
    }
}

/// A project's graph, as far as it is known: on the disk, and in memory for the snapshot that it was asked for last.
#[derive(Debug)]
pub(crate) struct Cache {
    directory: PathBuf,
    last: Mutex<Option<(Arc<Snapshot>, Arc<Graph>)>>,
}

impl Cache {
    /// What is kept in an index's directory.
    pub(crate) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), last: Mutex::default() }
    }

    /// The graph of a snapshot.
    pub(crate) fn graph(&self, snapshot: &Arc<Snapshot>, read: &Read<'_>) -> Arc<Graph> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, graph)) = &*last
            && Arc::ptr_eq(known, snapshot)
        {
            return Arc::clone(graph);
        }
        let kept = Kept::load(&self.directory);
        let Some(found) = follow::follow(snapshot, kept.as_ref(), read, usize::MAX) else {
            return Arc::default();
        };
        let changed = found.done.changed;
        let worth = changed > KEEP_COUNT || changed.saturating_mul(KEEP_PART) > found.nodes.len();
        if worth && !snapshot.is_partial() {
            // What can't be kept is found again the next time.
            Kept::save(&found, &self.directory).ok();
        }
        let graph = Arc::new(Graph::found(found));
        *last = Some((Arc::clone(snapshot), Arc::clone(&graph)));
        graph
    }

    /// The graph of a snapshot, if it is known but for a few files: for who can't wait until it is made.
    pub(crate) fn at_hand(&self, snapshot: &Arc<Snapshot>, read: &Read<'_>) -> Option<Arc<Graph>> {
        // Who has it is making one.
        let mut last = self.last.try_lock().ok()?;
        if let Some((_, graph)) = last.as_ref().filter(|(known, _)| Arc::ptr_eq(known, snapshot)) {
            return Some(Arc::clone(graph));
        }
        let length = std::fs::metadata(self.directory.join(kept::NAME)).ok()?.len();
        let kept = (length <= AT_HAND_BYTES).then(|| Kept::load(&self.directory))??;
        let found = follow::follow(snapshot, Some(&kept), read, AT_HAND_CHANGED)?;
        let graph = Arc::new(Graph::found(found));
        *last = Some((Arc::clone(snapshot), Arc::clone(&graph)));
        Some(graph)
    }
}
