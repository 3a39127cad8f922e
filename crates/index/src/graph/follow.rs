//! Following a snapshot: what is known of unchanged files stays, the rest is resolved again.
//!
//! A file's imports are resolved again where it changed, where a file came or went at a place that was looked at, and
//! where settings of its language changed. Its names are looked up again where it changed, where its imports lead
//! elsewhere, and where another set of files defines one of them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::{HashMap, HashSet};
use journeyman_syntax::language::Language;

use super::kept::{Kept, Mark};
use super::names::{self, Row, Used};
use super::paths::Tree;
use super::resolve::{Key, Meant, Settings, resolve, touched};
use super::{Edge, Node};
use crate::bits::Bits;
use crate::facts::Content;
use crate::segment::{Id, Segment, Words, uses};
use crate::snapshot::{FileView, Snapshot};

/// Files of settings that are read: a repository of more packages has somebody's packages in it.
const MAX_SETTINGS: usize = 20_000;
/// Files of one segment from which on reading all its names at once costs less than one after the other.
const MANY: usize = 24;
/// Items that one thread does sooner than several, and how many of more are done at once.
const ALONE: usize = 512;
const PIECE: usize = 128;
/// Threads at most: somebody may be at work beside it.
const MAX_THREADS: usize = 4;
/// No number of a file.
const NONE: u32 = u32::MAX;

/// What a text of the project says, by its path; nothing where it can't be read.
pub(super) type Read<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// What was found of one file.
#[derive(Debug, Clone, Default)]
pub(super) struct FoundFile {
    /// By target.
    pub(super) edges: Vec<Edge>,
    pub(super) packages: Vec<u32>,
    /// Numbers of the names that it lists where it imports files, sorted.
    pub(super) brought: Vec<u64>,
    /// Places that were looked at, sorted.
    pub(super) looked: Vec<u32>,
}

/// What was found of all files.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// By path.
    pub(super) nodes: Vec<Node>,
    /// In their order.
    pub(super) files: Vec<FoundFile>,
    pub(super) packages: Vec<Box<str>>,
    /// Empty where nothing changed.
    pub(super) rows: Vec<Row>,
    pub(super) done: Done,
}

/// What following took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Done {
    /// Files whose imports were resolved.
    pub resolved: usize,
    /// Files whose names were looked up.
    pub linked: usize,
    /// Files that are new, changed or gone since the graph was kept.
    pub changed: usize,
}

/// A place that was looked at, as it is kept: a few files are resolved in vain for it.
fn place(key: Key) -> u32 {
    ((key.0 ^ key.0 >> 32) & 0x00ff_ffff) as u32
}

/// The files of a snapshot, by path. Those whose path isn't text can't be imported by name and are left out.
fn nodes(snapshot: &Snapshot) -> Vec<Node> {
    let node = |(file, view): (Id, FileView<'_>)| {
        let record = view.record;
        let mut mark = Mark::default();
        mark.iter_mut().zip(record.hash).for_each(|(to, byte)| *to = byte);
        // What wasn't read has no hash.
        mark[0] ^= record.content as u8;
        // A first look at it knows no names yet.
        mark[1] ^= u8::from(record.shallow);
        Some(Node {
            path: std::str::from_utf8(view.path_bytes()).ok()?.into(),
            file,
            mark,
            language: record.language.filter(|_| record.content == Content::Text),
            flags: record.flags,
        })
    };
    let mut nodes: Vec<Node> = snapshot.files().filter_map(node).collect();
    nodes.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    nodes
}

/// The graph of a snapshot, by what is kept of an earlier one; nothing where more files than `most` changed since.
pub(super) fn follow(
    snapshot: &Snapshot,
    kept: Option<&Kept>,
    read: &Read<'_>,
    most: usize,
) -> Option<Found> {
    let nodes = nodes(snapshot);
    let change = Change::between(kept, &nodes);
    if change.count > most {
        return None;
    }
    let mut work =
        Work { snapshot, kept, nodes: &nodes, change: &change, packages: HashMap::new(), names: Vec::new() };
    let mut files: Vec<FoundFile> = (0..nodes.len()).map(|node| work.known(node)).collect();
    let mut done = Done { changed: change.count, ..Done::default() };
    let mut rows = Vec::new();
    if change.count > 0 {
        let moved = work.resolve_again(&mut files, read, &mut done);
        rows = work.rows();
        work.link_again(&mut files, &rows, moved, &mut done);
    }
    let packages = sorted_packages(work.names, &mut files);
    Some(Found { nodes, files, packages, rows, done })
}

/// What differs between what is kept and what is there now.
struct Change {
    /// By a file's number now: what it was, if it is the same.
    same: Vec<u32>,
    /// By a file's number then: what it is now, if it is the same.
    now: Vec<u32>,
    /// Files that came or went.
    moved: Vec<String>,
    /// Of settings, those that differ.
    concerned: HashSet<Language>,
    count: usize,
}

impl Change {
    fn between(kept: Option<&Kept>, nodes: &[Node]) -> Self {
        let old = kept.map(|kept| kept.files.as_slice()).unwrap_or_default();
        let mut change = Self {
            same: vec![NONE; nodes.len()],
            now: vec![NONE; old.len()],
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
                (Some((_, old)), Some(_)) => change.note(&old.path, false),
                (Some((_, old)), None) => change.note(&old.path, true),
                (None, Some((_, node))) => change.note(&node.path, true),
                (None, None) => break,
            }
        }
        change
    }

    fn note(&mut self, path: &str, moved: bool) {
        self.count += 1;
        self.concerned.extend(Settings::concerns(path));
        if moved {
            self.moved.push(path.to_owned());
        }
    }

    fn is_same(&self, node: usize) -> bool {
        self.same.get(node).is_some_and(|was| *was != NONE)
    }
}

/// What a file's imports mean, before anything is numbered.
struct Resolved {
    /// By target.
    imports: Vec<Edge>,
    packages: BTreeSet<String>,
    /// As in [`FoundFile`].
    brought: Vec<u64>,
    looked: Vec<u32>,
}

struct Work<'a> {
    snapshot: &'a Snapshot,
    kept: Option<&'a Kept>,
    nodes: &'a [Node],
    change: &'a Change,
    /// Packages' numbers, and their names by number.
    packages: HashMap<String, u32>,
    names: Vec<Box<str>>,
}

impl Work<'_> {
    fn package(&mut self, name: &str) -> u32 {
        if let Some(number) = self.packages.get(name) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.packages.insert(name.to_owned(), number);
        self.names.push(name.into());
        number
    }

    /// What is known of a file, with the numbers of today. Targets that are gone are left out.
    fn known(&mut self, node: usize) -> FoundFile {
        let (Some(kept), Some(was)) = (self.kept, self.change.same.get(node)) else {
            return FoundFile::default();
        };
        let Some(old) = kept.files.get(*was as usize) else { return FoundFile::default() };
        let now = |edge: &Edge| {
            // A file that changed keeps its place among the others.
            let path = &kept.files.get(edge.to as usize)?.path;
            let to = match self.change.now.get(edge.to as usize) {
                Some(now) if *now != NONE => *now,
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
        let packages = packages.into_iter().map(|name| self.package(name)).collect();
        // Only what is kept anew needs them.
        let looked = if self.change.count == 0 { Vec::new() } else { kept.looked(old) };
        FoundFile { edges, packages, brought: old.brought.to_vec(), looked }
    }

    /// Files in the order in which a snapshot has them: what lies beside each other is read together.
    fn in_order(&self, mut files: Vec<u32>) -> Vec<u32> {
        files.sort_unstable_by_key(|node| self.nodes.get(*node as usize).map(|node| node.file));
        files
    }

    /// Resolves what has to be, and says whose imports lead elsewhere now.
    fn resolve_again(&mut self, files: &mut [FoundFile], read: &Read<'_>, done: &mut Done) -> Bits {
        let places: HashSet<u32> =
            self.change.moved.iter().flat_map(|path| touched(path)).map(place).collect();
        let needs = |node: &usize| {
            let (Some(at), Some(file)) = (self.nodes.get(*node), files.get(*node)) else { return false };
            let Some(language) = at.language else { return false };
            !self.change.is_same(*node)
                || self.change.concerned.contains(&language)
                || file.looked.iter().any(|place| places.contains(place))
        };
        let again: Vec<u32> = (0..self.nodes.len()).filter(needs).map(|node| node as u32).collect();
        done.resolved = again.len();
        let mut moved = Bits::default();
        if again.is_empty() {
            return moved;
        }
        let settings = self.settings(&again, read);
        let tree = Tree::new(self.nodes.iter().map(|node| &*node.path));
        let again = self.in_order(again);
        let each = |some: &[u32]| -> Vec<(u32, Resolved)> {
            some.iter().filter_map(|node| Some((*node, self.resolved(*node, &tree, &settings)?))).collect()
        };
        for (number, resolved) in shared_out(&again, each).into_iter().flatten() {
            let Resolved { imports, packages, brought, looked } = resolved;
            let packages = packages.iter().map(|name| self.package(name)).collect();
            let Some(file) = files.get_mut(number as usize) else { continue };
            if file.brought != brought || !imported(&file.edges).eq(imported(&imports)) {
                moved.insert(number);
            }
            let links: Vec<Edge> = file.edges.iter().filter(|edge| edge.names > 0).copied().collect();
            *file = FoundFile { edges: joined(&imports, &links), packages, brought, looked };
        }
        moved
    }

    /// What a file's imports mean.
    fn resolved(&self, number: u32, tree: &Tree<'_>, settings: &Settings) -> Option<Resolved> {
        let node = self.nodes.get(number as usize)?;
        let (view, language) = (self.snapshot.file(node.file)?, node.language?);
        let imports = view.segment().imports(&view.record);
        let edges = resolve(&node.path, language, &imports, tree, settings);
        let mut targets: HashMap<u32, (u32, bool)> = HashMap::new();
        let mut packages = BTreeSet::new();
        let mut brought = Vec::new();
        for (import, meant) in imports.iter().zip(edges.meant) {
            // `mod x;` says that a file is a part of this one, and not yet that this one needs it.
            let part = language == Language::Rust
                && import.relative
                && import.up == 0
                && import.names.is_empty()
                && !import.target.contains(['/', '.']);
            match meant {
                Meant::Files(found) => {
                    brought.extend(import.names.iter().map(|name| names::number(name.as_bytes())));
                    for to in found.iter().filter_map(|path| tree.number(path)) {
                        let known = targets.entry(to).or_insert((u32::MAX, true));
                        *known = (known.0.min(import.line.max(1)), known.1 && part);
                    }
                }
                Meant::Package(name) => drop(packages.insert(name)),
                Meant::Nothing => {}
            }
        }
        let mut imports: Vec<Edge> =
            targets.into_iter().map(|(to, (line, part))| Edge { to, line, part, names: 0 }).collect();
        imports.sort_unstable_by_key(|edge| edge.to);
        let mut looked: Vec<u32> = edges.looked.into_iter().map(place).collect();
        looked.sort_unstable();
        looked.dedup();
        brought.sort_unstable();
        brought.dedup();
        Some(Resolved { imports, packages, brought, looked })
    }

    /// What the settings say of the languages that are to be resolved.
    fn settings(&self, again: &[u32], read: &Read<'_>) -> Settings {
        let languages: HashSet<Language> =
            again.iter().filter_map(|node| self.nodes.get(*node as usize)?.language).collect();
        let mut settings = Settings::default();
        let speaks = |node: &&Node| Settings::concerns(&node.path).iter().any(|one| languages.contains(one));
        for node in self.nodes.iter().filter(speaks).take(MAX_SETTINGS) {
            if let Some(text) = read(&node.path) {
                settings.put(&node.path, &text);
            }
        }
        settings
    }

    /// Which file defines which name now.
    fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        if let Some(kept) = self.kept {
            let now = |(name, file): Row| Some((name, *self.change.now.get(file as usize)?));
            rows.extend(kept.rows().filter_map(now).filter(|(_, file)| *file != NONE));
        }
        let fresh = (0..self.nodes.len() as u32).filter(|node| !self.change.is_same(*node as usize));
        let each = |some: &[u32]| -> Vec<Row> {
            let defined = |node: &u32| {
                let node = *node;
                self.definitions(node).into_iter().map(move |name| (name, node))
            };
            some.iter().flat_map(defined).collect()
        };
        rows.extend(shared_out(&self.in_order(fresh.collect()), each).into_iter().flatten());
        rows.sort_unstable();
        rows
    }

    fn definitions(&self, node: u32) -> Vec<u64> {
        let Some(node) = self.nodes.get(node as usize) else { return Vec::new() };
        let Some(view) = self.snapshot.file(node.file).filter(|_| names::family(node.language).is_some())
        else {
            return Vec::new();
        };
        let record = view.record;
        let symbols = record.first_symbol..record.first_symbol.saturating_add(record.symbols);
        names::definitions(symbols.filter_map(|symbol| view.segment().symbol(symbol)))
    }

    /// Looks up again what names mean.
    fn link_again(&self, files: &mut [FoundFile], rows: &[Row], moved: Bits, done: &mut Done) {
        let mut again = moved;
        for node in (0..self.nodes.len()).filter(|node| !self.change.is_same(*node)) {
            again.insert(node as u32);
        }
        self.users_of(&self.other_names(rows), &mut again);
        let in_family = |node: &u32| {
            self.nodes.get(*node as usize).is_some_and(|node| names::family(node.language).is_some())
        };
        let again = self.in_order(again.iter().filter(in_family).collect());
        done.linked = again.len();
        let mut by_segment = Names::default();
        let mut from = 0;
        while let Some(first) = again.get(from).and_then(|node| self.view(*node)) {
            // Those of one segment stand together.
            let rest = again.get(from..).unwrap_or_default();
            let same = |node: &&u32| {
                self.view(**node).is_some_and(|view| std::ptr::eq(view.segment(), first.segment()))
            };
            let here: Vec<u32> = rest.iter().take_while(same).copied().collect();
            by_segment.of(first.segment(), here.len() >= MANY, rows);
            let known: &[FoundFile] = files;
            let each = |some: &[u32]| -> Vec<(u32, Vec<Edge>)> {
                let linked = |node: &u32| Some((*node, self.linked(*node, known, &by_segment, rows)?));
                some.iter().filter_map(linked).collect()
            };
            for (node, edges) in shared_out(&here, each).into_iter().flatten() {
                if let Some(file) = files.get_mut(node as usize) {
                    file.edges = edges;
                }
            }
            from += here.len().max(1);
        }
    }

    /// A file's edges with what the names say that it uses.
    fn linked(&self, node: u32, files: &[FoundFile], names: &Names, rows: &[Row]) -> Option<Vec<Edge>> {
        let (view, file) = (self.view(node)?, files.get(node as usize)?);
        let imports: Vec<u32> = imported(&file.edges).collect();
        let brought = names::Brought { files: &imports, names: &file.brought };
        let links = names::links(node, &names.used(&view, rows), rows, self.nodes, &brought);
        let own: Vec<Edge> = file.edges.iter().filter(|edge| edge.line > 0).copied().collect();
        Some(joined(&own, &links))
    }

    fn view(&self, node: u32) -> Option<FileView<'_>> {
        self.snapshot.file(self.nodes.get(node as usize)?.file)
    }

    /// The names that other files define now than were kept.
    fn other_names(&self, rows: &[Row]) -> HashSet<u64> {
        let mut names = HashSet::new();
        let Some(kept) = self.kept else { return names };
        // A file's definitions by its path: what it had and has no more, what it has and hadn't. One that is of
        // another family now had and has nothing in common.
        let mut had: HashMap<(&str, u8), HashSet<u64>> = HashMap::new();
        for (name, file) in kept.rows() {
            if self.change.now.get(file as usize) == Some(&NONE)
                && let Some(file) = kept.files.get(file as usize)
            {
                had.entry((&file.path, file.family)).or_default().insert(name);
            }
        }
        for (name, file) in rows.iter().filter(|(_, file)| !self.change.is_same(*file as usize)) {
            let Some(node) = self.nodes.get(*file as usize) else { continue };
            let family = names::family(node.language).unwrap_or(0);
            if !had.get_mut(&(&*node.path, family)).is_some_and(|had| had.remove(name)) {
                names.insert(name & !1);
            }
        }
        names.extend(had.into_values().flatten().map(|name| name & !1));
        names
    }

    /// Adds the files that use one of some names.
    fn users_of(&self, wanted: &HashSet<u64>, users: &mut Bits) {
        if wanted.is_empty() {
            return;
        }
        let mut by_file: HashMap<Id, u32> = HashMap::with_capacity(self.nodes.len());
        by_file.extend((0..).zip(self.nodes).map(|(number, node)| (node.file, number)));
        for living in self.snapshot.living() {
            let Some(words) = living.segment.words(Words::Used) else { continue };
            let mut entries = words.entries();
            while let Some((_, list)) = entries.advance() {
                if wanted.contains(&names::number(entries.key())) {
                    uses(list, |file, _| {
                        if let Some(node) = by_file.get(&living.number_of(file)) {
                            users.insert(*node);
                        }
                    });
                }
            }
        }
    }
}

/// The files that are imported.
fn imported(edges: &[Edge]) -> impl Iterator<Item = u32> {
    edges.iter().filter(|edge| edge.line > 0).map(|edge| edge.to)
}

/// Imports with what names say; both by target.
fn joined(imports: &[Edge], links: &[Edge]) -> Vec<Edge> {
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

/// Puts packages into the order of their names, and leaves out those that nobody needs any more.
fn sorted_packages(names: Vec<Box<str>>, files: &mut [FoundFile]) -> Vec<Box<str>> {
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

/// What the names that files of a segment use are defined by.
#[derive(Default)]
struct Names {
    /// By a name's place in the segment's dictionary, where all were read at once; nothing of one that nobody defines.
    all: Vec<Option<Used>>,
}

impl Names {
    fn of(&mut self, segment: &Segment, many: bool, rows: &[Row]) {
        self.all.clear();
        if many && let Some(words) = segment.words(Words::Used) {
            let mut numbers = Vec::new();
            words.beginning(b"", |key| {
                numbers.push(names::number(key));
                true
            });
            let each = |some: &[u64]| -> Vec<Option<Used>> {
                some.iter().map(|number| names::used(*number, rows)).collect()
            };
            self.all.extend(shared_out(&numbers, each).into_iter().flatten());
        }
    }

    /// The names that a file uses and somebody defines.
    fn used(&self, view: &FileView<'_>, rows: &[Row]) -> Vec<Used> {
        let (places, _) = view.segment().details(&view.record);
        let words = view.segment().words(Words::Used);
        let one = |place: u32| match self.all.get(place as usize) {
            Some(known) => *known,
            None => names::used(names::number(&words?.key(place)?), rows),
        };
        places.into_iter().filter_map(one).collect()
    }
}

/// Does something with all items, piece by piece, on several threads where there are many; what comes of it is in the items'
/// order.
fn shared_out<T: Sync, R: Send>(items: &[T], each: impl Fn(&[T]) -> R + Sync) -> Vec<R> {
    if items.len() < ALONE {
        return vec![each(items)];
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let pieces: Vec<&[T]> = items.chunks(PIECE).collect();
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
