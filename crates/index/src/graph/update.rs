//! Updating the graph to a snapshot: results of unchanged files are kept, the rest is resolved
//! again.
//!
//! A file's imports are resolved again if it changed, if a file appeared or disappeared at a path
//! that was looked up, or if settings of its language changed. Its names are looked up again if it
//! changed, if its imports lead elsewhere, or if another set of files defines one of them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::{HashMap, HashSet};
use journeyman_syntax::language::Language;

use super::edge::ContentIdentity;
use super::graph_file::SavedGraph;
use super::name_dependencies::{self, DefinitionRow, UsedName};
use super::path_tree::PathTree;
use super::resolve::{ImportSettings, ImportTarget, LookupKey, keys_changed_by, resolve_imports};
use super::resolved_graph::{ResolvedFile, ResolvedGraph, UpdateStats};
use super::{Edge, Node};
use crate::analysis::ContentType;
use crate::bit_set::BitSet;
use crate::segment::{DictionaryKind, DocumentId, Segment, decode_uses};
use crate::snapshot::{FileView, Snapshot};

/// Maximum settings files: a repository with more packages contains third-party ones.
const MAX_SETTINGS_FILES: usize = 20_000;
/// Number of files of one segment from which on reading all its names at once costs less than one
/// after the other.
const MANY_FILES_OF_SEGMENT: usize = 24;
/// Number of items from which on several threads are faster, and the size of their batches.
const MIN_PARALLEL_ITEMS: usize = 512;
const BATCH_ITEMS: usize = 128;
/// Maximum threads: other work may be going on.
const MAX_THREADS: usize = 4;
/// Marker for no file.
const NO_FILE: u32 = u32::MAX;

/// A function that returns a text of the project by its path; `None` where it can't be read.
pub(super) type ReadText<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Shortens a place's key for storage; collisions only cause needless resolutions.
fn shorten_key(key: LookupKey) -> u32 {
    ((key.0 ^ key.0 >> 32) & 0x00ff_ffff) as u32
}

/// Returns the files of a snapshot, by path. Files with a path that isn't text can't be imported by
/// name and are left out.
fn nodes_of(snapshot: &Snapshot) -> Vec<Node> {
    let node = |(file, view): (DocumentId, FileView<'_>)| {
        let record = view.record;
        let mut mark = ContentIdentity::default();
        mark.iter_mut().zip(record.hash).for_each(|(to, byte)| *to = byte);
        // A file that wasn't read has no hash.
        mark[0] ^= record.content as u8;
        // A partial index doesn't have its names yet.
        mark[1] ^= u8::from(record.shallow);
        Some(Node {
            path: std::str::from_utf8(view.path_bytes()).ok()?.into(),
            file,
            mark,
            language: record.language.filter(|_| record.content == ContentType::Text),
            flags: record.flags,
        })
    };
    let mut nodes: Vec<Node> = snapshot.files().filter_map(node).collect();
    nodes.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    nodes
}

/// Returns the graph of a snapshot, based on an earlier one; `None` if more files than `most`
/// changed since.
pub(super) fn update_graph(
    snapshot: &Snapshot,
    kept: Option<&SavedGraph>,
    read: &ReadText<'_>,
    most: usize,
) -> Option<ResolvedGraph> {
    let nodes = nodes_of(snapshot);
    let change = GraphChange::between(kept, &nodes);
    if change.count > most {
        return None;
    }
    let mut work = GraphUpdate {
        snapshot,
        kept,
        nodes: &nodes,
        change: &change,
        packages: HashMap::new(),
        names: Vec::new(),
    };
    let mut files: Vec<ResolvedFile> = (0..nodes.len()).map(|node| work.saved_resolution(node)).collect();
    let mut done = UpdateStats { changed: change.count, ..UpdateStats::default() };
    let mut rows = Vec::new();
    if change.count > 0 {
        let moved = work.resolve_changed_files(&mut files, read, &mut done);
        rows = work.all_definition_rows();
        work.link_changed_files(&mut files, &rows, moved, &mut done);
    }
    let packages = sorted_packages(work.names, &mut files);
    Some(ResolvedGraph { nodes, files, packages, rows, done })
}

/// The differences between the saved graph and the snapshot.
struct GraphChange {
    /// By a file's number now: its earlier number, if it is the same.
    same: Vec<u32>,
    /// By a file's earlier number: its number now, if it is the same.
    now: Vec<u32>,
    /// Files that appeared or disappeared.
    moved: Vec<String>,
    /// Settings files that differ.
    concerned: HashSet<Language>,
    count: usize,
}

impl GraphChange {
    fn between(kept: Option<&SavedGraph>, nodes: &[Node]) -> Self {
        let old = kept.map(|kept| kept.files.as_slice()).unwrap_or_default();
        let mut change = Self {
            same: vec![NO_FILE; nodes.len()],
            now: vec![NO_FILE; old.len()],
            moved: Vec::new(),
            concerned: HashSet::new(),
            count: 0,
        };
        let (mut one, mut other) = (old.iter().enumerate().peekable(), nodes.iter().enumerate().peekable());
        loop {
            let order = match (one.peek(), other.peek()) {
                (None, None) => break,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some((_, old)), Some((_, node))) => old.path.cmp(&node.path),
            };
            let before = if order.is_le() { one.next() } else { None };
            let after = if order.is_ge() { other.next() } else { None };
            match (before, after) {
                (Some((was, old)), Some((is, node))) if old.mark == node.mark => {
                    let (same, now) = (change.same.get_mut(is), change.now.get_mut(was));
                    if let (Some(same), Some(now)) = (same, now) {
                        (*same, *now) = (was as u32, is as u32);
                    }
                }
                (Some((_, old)), Some(_)) => change.record_changed_path(&old.path, false),
                (Some((_, old)), None) => change.record_changed_path(&old.path, true),
                (None, Some((_, node))) => change.record_changed_path(&node.path, true),
                (None, None) => break,
            }
        }
        change
    }

    fn record_changed_path(&mut self, path: &str, moved: bool) {
        self.count += 1;
        self.concerned.extend(ImportSettings::languages_of(path));
        if moved {
            self.moved.push(path.to_owned());
        }
    }

    fn is_unchanged(&self, node: usize) -> bool {
        self.same.get(node).is_some_and(|was| *was != NO_FILE)
    }
}

/// The meaning of a file's imports, before packages are numbered.
struct ResolvedTargets {
    /// By target.
    imports: Vec<Edge>,
    packages: BTreeSet<String>,
    /// See [`ResolvedFile`].
    brought: Vec<u64>,
    looked: Vec<u32>,
}

struct GraphUpdate<'a> {
    snapshot: &'a Snapshot,
    kept: Option<&'a SavedGraph>,
    nodes: &'a [Node],
    change: &'a GraphChange,
    /// Numbers of packages, and their names by number.
    packages: HashMap<String, u32>,
    names: Vec<Box<str>>,
}

impl GraphUpdate<'_> {
    fn package_number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.packages.get(name) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.packages.insert(name.to_owned(), number);
        self.names.push(name.into());
        number
    }

    /// Returns the resolution of a file with current numbers. Deleted targets are left out.
    fn saved_resolution(&mut self, node: usize) -> ResolvedFile {
        let (Some(kept), Some(was)) = (self.kept, self.change.same.get(node)) else {
            return ResolvedFile::default();
        };
        let Some(old) = kept.files.get(*was as usize) else { return ResolvedFile::default() };
        let now = |edge: &Edge| {
            // A changed file keeps its position among the others.
            let path = &kept.files.get(edge.to as usize)?.path;
            let to = match self.change.now.get(edge.to as usize) {
                Some(now) if *now != NO_FILE => *now,
                _ => self.nodes.binary_search_by(|node| node.path.cmp(path)).ok()? as u32,
            };
            Some(Edge { to, ..*edge })
        };
        let edges = old.edges.iter().filter_map(now).collect();
        let packages: Vec<&str> = old
            .packages
            .iter()
            .filter_map(|name| kept.packages.get(*name as usize))
            .map(|name| &**name)
            .collect();
        let packages = packages.into_iter().map(|name| self.package_number(name)).collect();
        // Only a new save needs them.
        let looked = if self.change.count == 0 { Vec::new() } else { kept.looked_up_keys(old) };
        ResolvedFile { edges, packages, brought: old.brought.to_vec(), looked }
    }

    /// Returns files in the order of the snapshot: neighbours are read together.
    fn sort_by_snapshot(&self, mut files: Vec<u32>) -> Vec<u32> {
        files.sort_unstable_by_key(|node| self.nodes.get(*node as usize).map(|node| node.file));
        files
    }

    /// Resolves files where needed, and returns those whose imports lead elsewhere now.
    fn resolve_changed_files(
        &mut self,
        files: &mut [ResolvedFile],
        read: &ReadText<'_>,
        done: &mut UpdateStats,
    ) -> BitSet {
        let places: HashSet<u32> =
            self.change.moved.iter().flat_map(|path| keys_changed_by(path)).map(shorten_key).collect();
        let needs = |node: &usize| {
            let (Some(at), Some(file)) = (self.nodes.get(*node), files.get(*node)) else { return false };
            let Some(language) = at.language else { return false };
            !self.change.is_unchanged(*node)
                || self.change.concerned.contains(&language)
                || file.looked.iter().any(|place| places.contains(place))
        };
        let again: Vec<u32> = (0..self.nodes.len()).filter(needs).map(|node| node as u32).collect();
        done.resolved = again.len();
        let mut moved = BitSet::default();
        if again.is_empty() {
            return moved;
        }
        let settings = self.read_settings(&again, read);
        let tree = PathTree::new(self.nodes.iter().map(|node| &*node.path));
        let again = self.sort_by_snapshot(again);
        let each = |some: &[u32]| -> Vec<(u32, ResolvedTargets)> {
            some.iter()
                .filter_map(|node| Some((*node, self.resolve_file(*node, &tree, &settings)?)))
                .collect()
        };
        for (number, resolved) in process_in_batches(&again, each).into_iter().flatten() {
            let ResolvedTargets { imports, packages, brought, looked } = resolved;
            let packages = packages.iter().map(|name| self.package_number(name)).collect();
            let Some(file) = files.get_mut(number as usize) else { continue };
            if file.brought != brought || !imported_files(&file.edges).eq(imported_files(&imports)) {
                moved.insert(number);
            }
            let links: Vec<Edge> = file.edges.iter().filter(|edge| edge.names > 0).copied().collect();
            *file = ResolvedFile { edges: merge_edges(&imports, &links), packages, brought, looked };
        }
        moved
    }

    /// Resolves a file's imports.
    fn resolve_file(
        &self,
        number: u32,
        tree: &PathTree<'_>,
        settings: &ImportSettings,
    ) -> Option<ResolvedTargets> {
        let node = self.nodes.get(number as usize)?;
        let (view, language) = (self.snapshot.file(node.file)?, node.language?);
        let details = view.segment().details(&view.record);
        let (mut imports, path_uses) = (details.imports(), details.path_uses());
        let written = imports.len();
        imports.extend(path_uses);
        let edges = resolve_imports(&node.path, language, &imports, tree, settings);
        let mut targets: HashMap<u32, (u32, bool)> = HashMap::new();
        let mut packages = BTreeSet::new();
        let mut brought = Vec::new();
        for ((nth, import), meant) in imports.iter().enumerate().zip(edges.meant) {
            // `mod x;` declares a file as a part of this one, not yet as a dependency.
            let part = language == Language::Rust
                && import.relative
                && import.up == 0
                && import.names.is_empty()
                && !import.target.contains(['/', '.']);
            match meant {
                ImportTarget::Files(found) => {
                    brought.extend(
                        import.names.iter().map(|name| name_dependencies::hash_name(name.as_bytes())),
                    );
                    for to in found.iter().filter_map(|path| tree.number_of_path(path)) {
                        let known = targets.entry(to).or_insert((u32::MAX, true));
                        *known = (known.0.min(import.line.max(1)), known.1 && part);
                    }
                }
                // A path's unknown beginning may be anything.
                ImportTarget::Package(name) if nth < written => drop(packages.insert(name)),
                ImportTarget::Package(_) | ImportTarget::Nothing => {}
            }
        }
        let mut imports: Vec<Edge> =
            targets.into_iter().map(|(to, (line, part))| Edge { to, line, part, names: 0 }).collect();
        imports.sort_unstable_by_key(|edge| edge.to);
        let mut looked: Vec<u32> = edges.looked.into_iter().map(shorten_key).collect();
        looked.sort_unstable();
        looked.dedup();
        brought.sort_unstable();
        brought.dedup();
        Some(ResolvedTargets { imports, packages, brought, looked })
    }

    /// Reads the settings for the languages that are to be resolved.
    fn read_settings(&self, again: &[u32], read: &ReadText<'_>) -> ImportSettings {
        let languages: HashSet<Language> =
            again.iter().filter_map(|node| self.nodes.get(*node as usize)?.language).collect();
        let mut settings = ImportSettings::default();
        let speaks =
            |node: &&Node| ImportSettings::languages_of(&node.path).iter().any(|one| languages.contains(one));
        for node in self.nodes.iter().filter(speaks).take(MAX_SETTINGS_FILES) {
            if let Some(text) = read(&node.path) {
                settings.read_settings(&node.path, &text);
            }
        }
        settings
    }

    /// Returns the definers of all names.
    fn all_definition_rows(&self) -> Vec<DefinitionRow> {
        let mut rows: Vec<DefinitionRow> = Vec::new();
        if let Some(kept) = self.kept {
            let now = |(name, file): DefinitionRow| Some((name, *self.change.now.get(file as usize)?));
            rows.extend(kept.definition_rows().filter_map(now).filter(|(_, file)| *file != NO_FILE));
        }
        let fresh = (0..self.nodes.len() as u32).filter(|node| !self.change.is_unchanged(*node as usize));
        let each = |some: &[u32]| -> Vec<DefinitionRow> {
            let defined = |node: &u32| {
                let node = *node;
                self.definition_keys_of(node).into_iter().map(move |name| (name, node))
            };
            some.iter().flat_map(defined).collect()
        };
        rows.extend(process_in_batches(&self.sort_by_snapshot(fresh.collect()), each).into_iter().flatten());
        rows.sort_unstable();
        rows
    }

    fn definition_keys_of(&self, node: u32) -> Vec<u64> {
        let Some(node) = self.nodes.get(node as usize) else { return Vec::new() };
        let Some(view) = self
            .snapshot
            .file(node.file)
            .filter(|_| name_dependencies::language_family(node.language).is_some())
        else {
            return Vec::new();
        };
        let record = view.record;
        let symbols = record.first_symbol..record.first_symbol.saturating_add(record.symbols);
        name_dependencies::definition_keys(
            symbols.filter_map(|symbol| view.segment().symbol(symbol)),
            node.language,
        )
    }

    /// Looks up the meaning of names again.
    fn link_changed_files(
        &self,
        files: &mut [ResolvedFile],
        rows: &[DefinitionRow],
        moved: BitSet,
        done: &mut UpdateStats,
    ) {
        let mut again = moved;
        for node in (0..self.nodes.len()).filter(|node| !self.change.is_unchanged(*node)) {
            again.insert(node as u32);
        }
        self.add_users_of(&self.changed_names(rows), &mut again);
        let in_family = |node: &u32| {
            self.nodes
                .get(*node as usize)
                .is_some_and(|node| name_dependencies::language_family(node.language).is_some())
        };
        let again = self.sort_by_snapshot(again.iter().filter(in_family).collect());
        done.linked = again.len();
        let mut by_segment = UsedNames::default();
        let mut from = 0;
        while let Some(first) = again.get(from).and_then(|node| self.view_of(*node)) {
            // Files of one segment are consecutive.
            let rest = again.get(from..).unwrap_or_default();
            let same = |node: &&u32| {
                self.view_of(**node).is_some_and(|view| std::ptr::eq(view.segment(), first.segment()))
            };
            let here: Vec<u32> = rest.iter().take_while(same).copied().collect();
            by_segment.add_segment(first.segment(), here.len() >= MANY_FILES_OF_SEGMENT, rows);
            let known: &[ResolvedFile] = files;
            let each = |some: &[u32]| -> Vec<(u32, Vec<Edge>)> {
                let linked = |node: &u32| Some((*node, self.link_file(*node, known, &by_segment, rows)?));
                some.iter().filter_map(linked).collect()
            };
            for (node, edges) in process_in_batches(&here, each).into_iter().flatten() {
                if let Some(file) = files.get_mut(node as usize) {
                    file.edges = edges;
                }
            }
            from += here.len().max(1);
        }
    }

    /// Combines a file's imports with its dependencies by names.
    fn link_file(
        &self,
        node: u32,
        files: &[ResolvedFile],
        names: &UsedNames,
        rows: &[DefinitionRow],
    ) -> Option<Vec<Edge>> {
        let (view, file) = (self.view_of(node)?, files.get(node as usize)?);
        let imports: Vec<u32> = imported_files(&file.edges).collect();
        let brought = name_dependencies::FileImports { files: &imports, names: &file.brought };
        let links = name_dependencies::links_by_names(
            node,
            &names.used_names_of(&view, rows),
            rows,
            self.nodes,
            &brought,
        );
        let own: Vec<Edge> = file.edges.iter().filter(|edge| edge.line > 0).copied().collect();
        Some(merge_edges(&own, &links))
    }

    fn view_of(&self, node: u32) -> Option<FileView<'_>> {
        self.snapshot.file(self.nodes.get(node as usize)?.file)
    }

    /// Returns the names with other definers than in the saved graph.
    fn changed_names(&self, rows: &[DefinitionRow]) -> HashSet<u64> {
        let mut names = HashSet::new();
        let Some(kept) = self.kept else { return names };
        // A file's definitions by its path: those it had and has no more, and new ones. A file that
        // changed its family of languages has nothing in common with its former self.
        let mut had: HashMap<(&str, u8), HashSet<u64>> = HashMap::new();
        for (name, file) in kept.definition_rows() {
            if self.change.now.get(file as usize) == Some(&NO_FILE)
                && let Some(file) = kept.files.get(file as usize)
            {
                had.entry((&file.path, file.family)).or_default().insert(name);
            }
        }
        for (name, file) in rows.iter().filter(|(_, file)| !self.change.is_unchanged(*file as usize)) {
            let Some(node) = self.nodes.get(*file as usize) else { continue };
            let family = name_dependencies::language_family(node.language).unwrap_or(0);
            if !had.get_mut(&(&*node.path, family)).is_some_and(|had| had.remove(name)) {
                names.insert(name_dependencies::name_of_key(*name));
            }
        }
        names.extend(had.into_values().flatten().map(name_dependencies::name_of_key));
        names
    }

    /// Adds the files that use one of some names.
    fn add_users_of(&self, wanted: &HashSet<u64>, users: &mut BitSet) {
        if wanted.is_empty() {
            return;
        }
        let mut by_file: HashMap<DocumentId, u32> = HashMap::with_capacity(self.nodes.len());
        by_file.extend((0..).zip(self.nodes).map(|(number, node)| (node.file, number)));
        for living in self.snapshot.live_segments() {
            let Some(words) = living.segment.inverted_index().dictionary(DictionaryKind::Used) else {
                continue;
            };
            let mut entries = words.entries();
            while let Some((_, list)) = entries.advance() {
                if wanted.contains(&name_dependencies::hash_name(entries.key())) {
                    decode_uses(list, |file, _| {
                        if let Some(node) = by_file.get(&living.snapshot_number(file)) {
                            users.insert(*node);
                        }
                    });
                }
            }
        }
    }
}

/// Returns the imported files.
fn imported_files(edges: &[Edge]) -> impl Iterator<Item = u32> {
    edges.iter().filter(|edge| edge.line > 0).map(|edge| edge.to)
}

/// Merges imports with dependencies by names; both by target.
fn merge_edges(imports: &[Edge], links: &[Edge]) -> Vec<Edge> {
    let mut all: Vec<Edge> = imports.iter().map(|edge| Edge { names: 0, ..*edge }).collect();
    for link in links {
        match all.binary_search_by_key(&link.to, |edge| edge.to) {
            Ok(at) => {
                if let Some(edge) = all.get_mut(at) {
                    edge.names = link.names;
                }
            }
            Err(at) => all.insert(at, Edge { to: link.to, names: link.names, ..Edge::default() }),
        }
    }
    all
}

/// Sorts packages by name, and drops unused ones.
fn sorted_packages(names: Vec<Box<str>>, files: &mut [ResolvedFile]) -> Vec<Box<str>> {
    let needed: HashSet<u32> = files.iter().flat_map(|file| &file.packages).copied().collect();
    let mut order: Vec<u32> = (0..names.len() as u32).filter(|name| needed.contains(name)).collect();
    order.sort_unstable_by_key(|name| names.get(*name as usize));
    let mut place = vec![0; names.len()];
    for (at, name) in (0..).zip(&order) {
        if let Some(place) = place.get_mut(*name as usize) {
            *place = at;
        }
    }
    for file in files {
        for package in &mut file.packages {
            *package = place.get(*package as usize).copied().unwrap_or(0);
        }
        file.packages.sort_unstable();
    }
    order.into_iter().filter_map(|name| names.get(name as usize).cloned()).collect()
}

/// Definitions of the names that the files of a segment use.
#[derive(Default)]
struct UsedNames {
    /// By a name's position in the segment's dictionary, where all were read at once; `None` for a
    /// name without definitions.
    all: Vec<Option<UsedName>>,
}

impl UsedNames {
    fn add_segment(&mut self, segment: &Segment, many: bool, rows: &[DefinitionRow]) {
        self.all.clear();
        if many && let Some(words) = segment.inverted_index().dictionary(DictionaryKind::Used) {
            let mut numbers = Vec::new();
            words.visit_with_prefix(b"", |key| {
                numbers.push(name_dependencies::hash_name(key));
                true
            });
            let each = |some: &[u64]| -> Vec<Option<UsedName>> {
                some.iter().map(|number| name_dependencies::find_used_name(*number, rows)).collect()
            };
            self.all.extend(process_in_batches(&numbers, each).into_iter().flatten());
        }
    }

    /// Returns the names that a file uses and another one defines.
    fn used_names_of(&self, view: &FileView<'_>, rows: &[DefinitionRow]) -> Vec<UsedName> {
        let numbers = view.segment().details(&view.record).used_names;
        let words = view.segment().inverted_index().dictionary(DictionaryKind::Used);
        let one = |number: u32| match self.all.get(number as usize) {
            Some(known) => *known,
            None => {
                name_dependencies::find_used_name(name_dependencies::hash_name(&words?.key(number)?), rows)
            }
        };
        numbers.into_iter().filter_map(one).collect()
    }
}

/// Processes all items in batches, on several threads where there are many; the results are in the
/// items' order.
fn process_in_batches<T: Sync, R: Send>(items: &[T], each: impl Fn(&[T]) -> R + Sync) -> Vec<R> {
    if items.len() < MIN_PARALLEL_ITEMS {
        return vec![each(items)];
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let pieces: Vec<&[T]> = items.chunks(BATCH_ITEMS).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut own = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = pieces.get(at) else { return own };
            own.push((at, each(piece)));
        }
    };
    let mut found = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut found = work();
        for other in others {
            match other.join() {
                Ok(more) => found.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        found
    });
    found.sort_unstable_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, found)| found).collect()
}
