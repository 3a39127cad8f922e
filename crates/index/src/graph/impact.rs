//! The impact of a change, followed from symbol to symbol by the names that are used.
//!
//! A change propagates from a function to the functions that use it, not to users of other symbols
//! of the same file. So the analysis follows places: the symbols that a change reaches, and whole
//! files where names say nothing. Nothing is type-checked, and the result errs on the side of more
//! (`docs/graph.md` has the rules).
//!
//! A library's `lib.rs`, a package's `__init__.py`, an `index.ts` imports everything, and every
//! file imports it. A change passes through a file that only re-exports it, without using it, to
//! the users of its names only.

mod part;
mod seen;
mod symbols;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use hashbrown::{HashMap, HashSet};
use journeyman_syntax::outline::SymbolKind;

use super::Graph;
use super::ask::{MAX_REACHED, MAX_STEPS, Reach, Reached, Trail};
use super::names::{Role, is_type, role};
use crate::Snapshot;
pub use part::ChangedPart;
use seen::{ALL, ImpactCache, Named, UNNAMED, Viewers};
use symbols::Symbols;

/// Lines of uses and steps through files that hand names on; where there are more, files are
/// followed.
const MAX_WORK: usize = 20_000_000;
/// The family of C and C++, where what one file defines another one declares.
const C: u8 = 6;

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// Number of the file in the graph.
    pub file: u32,
    /// The changed part; `None` for the whole file.
    pub part: Option<ChangedPart>,
}

impl From<u32> for Changed {
    fn from(file: u32) -> Self {
        Self { file, part: None }
    }
}

/// A place that a change reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum At {
    /// The whole file.
    File,
    /// Code that runs when the file is loaded.
    Top,
    /// A symbol of the file, by its number.
    Symbol(u32),
    /// A type, one of whose members has changed.
    Type(u32),
    /// An import of the changed symbol.
    Import,
}

/// A place to continue from, and the way to it.
#[derive(Debug, Clone, Copy)]
struct Place {
    file: u32,
    at: At,
    /// Its number among the trails.
    trail: u32,
}

/// A name whose users are searched.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    name: &'a str,
    role: Role,
    /// The file that defines it.
    file: u32,
    /// Its position there, if it still exists.
    trail: u32,
}

impl Graph {
    /// Returns the files that a change may affect, at most `depth` steps away. Declarations of
    /// parts don't count.
    #[must_use]
    pub fn impact(&self, snapshot: &Snapshot, changed: &[Changed], depth: u32) -> Reach {
        let files = || changed.iter().map(|changed| changed.file).collect::<Vec<_>>();
        Follow::new(self, snapshot, depth)
            .from(changed)
            .unwrap_or_else(|| Reach { by_files: true, ..self.depending(&files(), depth) })
    }
}

struct Follow<'a> {
    graph: &'a Graph,
    known: ImpactCache<'a>,
    depth: u32,
    /// The minimum distance of each place.
    best: HashMap<(u32, At), u32>,
    /// Places to continue from, by their distance.
    left: BTreeMap<u32, Vec<Place>>,
    trails: Vec<Trail>,
    found: HashMap<u32, Reached>,
    /// Files whose unnamed users were already followed.
    opened: HashSet<u32>,
    work: usize,
}

impl<'a> Follow<'a> {
    fn new(graph: &'a Graph, snapshot: &'a Snapshot, depth: u32) -> Self {
        Self {
            graph,
            known: ImpactCache::new(graph, snapshot),
            depth: depth.min(MAX_STEPS),
            best: HashMap::new(),
            left: BTreeMap::new(),
            trails: Vec::new(),
            found: HashMap::new(),
            opened: HashSet::new(),
            work: 0,
        }
    }

    /// Follows the changes; `None` if that would take too long.
    fn from(mut self, changed: &[Changed]) -> Option<Reach> {
        let mut changed: Vec<&Changed> =
            changed.iter().filter(|changed| self.graph.node(changed.file).is_some()).collect();
        changed.sort_by_key(|changed| changed.file);
        let starts: HashSet<u32> = changed.iter().map(|changed| changed.file).collect();
        for changed in changed {
            self.start(changed);
            if self.is_too_much() {
                return None;
            }
        }
        while let Some((distance, places)) = self.left.pop_first() {
            let mut places = places;
            while !places.is_empty() {
                for place in places {
                    if self.best.get(&(place.file, place.at)) != Some(&distance) {
                        continue;
                    }
                    if !starts.contains(&place.file) {
                        self.reached(place, distance);
                    }
                    self.go(place);
                    if self.is_too_much() {
                        return None;
                    }
                }
                // Within a file the distance stays the same.
                places = self.left.remove(&distance).unwrap_or_default();
            }
            if self.found.len() > MAX_REACHED {
                break;
            }
        }
        let mut files: Vec<Reached> = self.found.into_values().collect();
        files.sort_unstable_by_key(|found| (found.distance, found.file));
        let cut = files.len() > MAX_REACHED;
        files.truncate(MAX_REACHED);
        Some(Reach { files, cut, by_files: false, trails: self.trails })
    }

    fn is_too_much(&self) -> bool {
        self.work.saturating_add(self.known.handed) > MAX_WORK
    }

    fn start(&mut self, changed: &Changed) {
        let file = changed.file;
        let trail = self.trail(file, None);
        let symbols = self.known.symbols(file);
        let (Some(part), Some(symbols)) = (&changed.part, symbols) else {
            self.put(Place { file, at: At::File, trail }, 0);
            return;
        };
        let mut imported = BTreeSet::new();
        for line in part.lines.iter().cloned().flatten() {
            match symbols.at(line) {
                Some(own) => self.put(Place { file, at: At::Symbol(own), trail }, 0),
                None => {
                    let names = self.imported_by(file, line);
                    if names.is_empty() {
                        self.put(Place { file, at: At::File, trail }, 0);
                    }
                    imported.extend(names);
                }
            }
        }
        imported.extend(part.gone.iter().cloned());
        for name in &imported {
            self.brought(Wanted { name, role: Role::Own, file, trail });
        }
    }

    /// Returns the names that a line imports; none if it isn't an import, or imports something
    /// unlisted.
    fn imported_by(&mut self, file: u32, line: u32) -> Vec<String> {
        let (imports, ends) = (self.known.imports(file), self.known.ends(file));
        let here = imports.iter().zip(&*ends).filter(|(import, end)| import.line <= line && line <= **end);
        let names: Vec<String> = here.flat_map(|(import, _)| import.names.iter().cloned()).collect();
        if names.iter().any(|name| name == ALL || name == UNNAMED) { Vec::new() } else { names }
    }

    /// Continues from a name whose meaning changes in a file: to its uses there, also under an
    /// alias, and to the users to whom the file re-exports it.
    fn brought(&mut self, wanted: Wanted<'_>) {
        let seen = self.known.seen(wanted.file);
        self.uses(wanted);
        self.used_renamed_in(wanted, wanted.file, &seen);
    }

    fn trail(&mut self, file: u32, from: Option<u32>) -> u32 {
        let distance = from.map_or(0, |from| self.distance(from) + 1);
        self.trails.push(Trail { file, from, distance });
        u32::try_from(self.trails.len() - 1).unwrap_or(u32::MAX)
    }

    fn put(&mut self, place: Place, distance: u32) {
        let best = self.best.entry((place.file, place.at)).or_insert(u32::MAX);
        if distance < *best {
            *best = distance;
            self.left.entry(distance).or_default().push(place);
        }
    }

    /// Continues to the uses of another file's names in a file; `seen` tells how they are visible.
    fn step(&mut self, file: u32, at: At, from: u32, seen: Option<&Viewers>) {
        let Some(before) = self.trails.get(from as usize).map(|trail| trail.file) else { return };
        let known = self.distance(from);
        if before == file {
            self.put(Place { file, at, trail: from }, known);
            return;
        }
        let hubs: Vec<u32> = seen.map(|seen| seen.way(file).collect()).unwrap_or_default();
        let distance = known.saturating_add(u32::try_from(hubs.len()).unwrap_or(u32::MAX)).saturating_add(1);
        if distance > self.depth || self.best.get(&(file, at)).is_some_and(|best| *best <= distance) {
            return;
        }
        let behind = hubs.into_iter().rev().fold(from, |from, hub| self.trail(hub, Some(from)));
        let trail = self.trail(file, Some(behind));
        self.put(Place { file, at, trail }, distance);
    }

    /// Returns the distance of a place.
    fn distance(&self, trail: u32) -> u32 {
        self.trails.get(trail as usize).map_or(0, |trail| trail.distance)
    }

    fn reached(&mut self, place: Place, distance: u32) {
        let trail = self.trails.get(place.trail as usize).and_then(|trail| trail.from);
        let from = trail.and_then(|from| self.trails.get(from as usize)).map_or(place.file, |from| from.file);
        let found = Reached { file: place.file, distance, from, trail: place.trail };
        self.found.entry(place.file).or_insert(found);
    }

    fn go(&mut self, place: Place) {
        let Place { file, at, trail } = place;
        match at {
            At::Import => {}
            At::Top => self.loaded(file, trail),
            At::File => self.whole(file, trail),
            At::Symbol(own) | At::Type(own) => {
                self.open(file, trail);
                if let Some(symbols) = self.known.symbols(file) {
                    self.symbol(&symbols, own, place);
                }
            }
        }
    }

    /// Continues from a whole file.
    fn whole(&mut self, file: u32, trail: u32) {
        let graph = self.graph;
        let Some(symbols) = self.known.symbols(file).filter(|symbols| symbols.has_own()) else {
            // Names say nothing about it.
            for edge in graph.back(file).iter().filter(|edge| edge.depends()) {
                self.step(edge.to, At::File, trail, None);
            }
            return;
        };
        let behind = self.distance(trail) > 0;
        for edge in graph.importers(file) {
            // Names that a changed file re-exports may have changed with it.
            if edge.names > 0 || !self.known.wants_another(edge.to, file, behind) {
                self.step(edge.to, At::Import, trail, None);
            }
        }
        for (own, _) in symbols.iter().filter(|(own, _)| symbols.is_own(*own)) {
            self.step(file, At::Symbol(own), trail, None);
        }
        self.step(file, At::Top, trail, None);
        if !behind {
            self.hand_on(file, trail);
        }
    }

    /// Continues from the names that a changed file re-exports: their meaning may have changed.
    fn hand_on(&mut self, file: u32, trail: u32) {
        let graph = self.graph;
        if self.known.brings_all(file) {
            for edge in graph.importers(file) {
                self.step(edge.to, At::File, trail, None);
            }
            return;
        }
        let imports = self.known.imports(file);
        let names: BTreeSet<&String> = imports.iter().flat_map(|import| &import.names).collect();
        let taken = self.known.taken_from(file);
        let is_taken = |name: &&String| taken.as_ref().is_none_or(|taken| taken.contains(name.as_str()));
        for name in names.into_iter().filter(|name| *name != UNNAMED).filter(is_taken) {
            self.brought(Wanted { name, role: Role::Own, file, trail });
        }
    }

    /// Continues from a file's load-time code: to the files that import it for that.
    fn loaded(&mut self, file: u32, trail: u32) {
        let graph = self.graph;
        self.open(file, trail);
        for edge in graph.importers(file).filter(|edge| edge.names == 0) {
            let to = edge.to;
            if !self.known.hands_on(to, file) && !self.known.wants_another(to, file, true) {
                self.step(to, At::File, trail, None);
            }
        }
    }

    /// Continues to the files that use a file without naming anything of it.
    fn open(&mut self, file: u32, trail: u32) {
        if !self.opened.insert(file) {
            return;
        }
        let graph = self.graph;
        let family = self.known.family(file);
        for edge in graph.importers(file) {
            if self.known.family(edge.to) != family || self.known.brings_unnamed(edge.to, edge.line) {
                self.step(edge.to, At::File, trail, None);
            }
        }
    }

    /// Continues from a symbol: to its users, and to its enclosing symbols.
    fn symbol(&mut self, symbols: &Symbols, own: u32, place: Place) {
        let Place { file, at, trail } = place;
        let Some(symbol) = symbols.get(own) else { return };
        let Some(role) = role(symbol.kind) else { return };
        if role != Role::Extended {
            self.uses(Wanted { name: &symbol.name, role, file, trail });
        }
        if role == Role::Own && self.known.family(file) == Some(C) {
            self.declared(file, &symbol.name, trail);
        }
        if matches!(at, At::Symbol(_)) && is_type(symbol.kind) {
            for member in symbols.members(own) {
                self.step(file, At::Symbol(member), trail, None);
            }
        }
        if symbol.kind == SymbolKind::Impl {
            self.owner(file, None, &symbol.name, trail);
        } else if let Some((at, name)) = symbols.owner(own) {
            // Code with a value of a type needn't know where the type is: the change comes to it
            // from the value's creator.
            self.owner(file, at, name, trail);
        }
    }

    /// Continues to the declarations in an included header: other files see the definitions by
    /// those.
    fn declared(&mut self, file: u32, name: &str, trail: u32) {
        let definers = self.known.named(name).definers.clone();
        let included = |definer: &u32| self.graph.edge(file, *definer).is_some_and(|edge| edge.line > 0);
        for header in definers.into_iter().filter(|definer| *definer != file && included(definer)) {
            let Some(symbols) = self.known.symbols(header) else { continue };
            for (own, _) in symbols.iter().filter(|(own, _)| symbols.defines(*own, name)) {
                self.step(header, At::Symbol(own), trail, None);
            }
        }
    }

    /// Continues to the type of a member.
    fn owner(&mut self, file: u32, own: Option<u32>, name: &str, trail: u32) {
        if let Some(own) = own {
            self.step(file, At::Type(own), trail, None);
            return;
        }
        let family = self.known.family(file);
        let mut definers = self.known.named(name).definers.clone();
        definers.retain(|definer| self.known.family(*definer) == family);
        let imported = |definer: &u32| self.graph.edge(file, *definer).is_some();
        let own_types =
            self.known.symbols(file).filter(|symbols| symbols.types_called(name).next().is_some());
        let meant: Vec<u32> = if own_types.is_some() {
            vec![file]
        } else if definers.iter().any(imported) {
            definers.into_iter().filter(imported).collect()
        } else if let [definer] = definers.as_slice() {
            vec![*definer]
        } else {
            Vec::new()
        };
        let (meant, strangers): (Vec<u32>, Vec<u32>) =
            meant.into_iter().partition(|definer| self.graph.units.are_one(file, *definer));
        // Additions to another file's type are used by files that know of the addition.
        if !strangers.is_empty() {
            self.uses(Wanted { name, role: Role::Own, file, trail });
        }
        for definer in meant {
            let Some(symbols) = self.known.symbols(definer) else { continue };
            for own in symbols.types_called(name) {
                self.step(definer, At::Type(own), trail, None);
            }
        }
    }

    /// Continues to the users of a name.
    fn uses(&mut self, wanted: Wanted<'_>) {
        let Wanted { name, role, file, .. } = wanted;
        let (named, seen) = (self.known.named(name), self.known.seen(file));
        let family = self.known.family(file);
        let others: Vec<u32> = named.definers.iter().copied().filter(|one| *one != file).collect();
        for (user, lines) in named.users_among(file, &seen) {
            self.work += lines.len();
            if *user != file {
                let is_another = others.contains(user) || self.known.imports_another(*user, file, &others);
                if is_another || self.known.family(*user) != family {
                    continue;
                }
                // A member's name alone doesn't lead from outside.
                let handed_on = seen.by(*user).flatten().is_some();
                if role == Role::Member && handed_on && !others.is_empty() && !self.known.brings_all(*user) {
                    continue;
                }
            }
            self.used_in(wanted, *user, lines, &seen);
        }
        if role == Role::Own {
            self.used_renamed(wanted, &seen);
        }
    }

    /// Continues to the uses of a name in a file, and returns true if there are any besides
    /// imports.
    fn used_in(&mut self, wanted: Wanted<'_>, user: u32, lines: &[u32], seen: &Rc<Viewers>) -> bool {
        let Some(symbols) = self.known.symbols(user) else {
            self.step(user, At::File, wanted.trail, Some(seen));
            return true;
        };
        let mut is_used = false;
        let mut imported: Option<Vec<u32>> = None;
        for line in lines {
            match symbols.at(*line) {
                Some(own) => {
                    let is_type = symbols.get(own).is_some_and(|symbol| is_type(symbol.kind));
                    let at = if is_type { At::Type(own) } else { At::Symbol(own) };
                    self.step(user, at, wanted.trail, Some(seen));
                    is_used = true;
                }
                None => {
                    let imported =
                        imported.get_or_insert_with(|| self.known.imported_at(user, wanted.name, lines));
                    let only_imported = imported.contains(line);
                    let at = if only_imported { At::Import } else { At::Top };
                    self.step(user, at, wanted.trail, Some(seen));
                    is_used |= !only_imported;
                }
            }
        }
        if !is_used && user != wanted.file && wanted.role == Role::Own {
            self.used_renamed_in(wanted, user, seen);
        }
        is_used
    }

    /// Continues to the users of a name under an alias that a file re-exports it by.
    fn used_renamed(&mut self, wanted: Wanted<'_>, seen: &Rc<Viewers>) {
        let aliases = self.known.aliases(wanted.file);
        for (hub, alias) in aliases.get(wanted.name).into_iter().flatten() {
            let named: Rc<Named> = self.known.named(alias);
            for (user, lines) in named.users_among(*hub, seen).into_iter().filter(|(user, _)| user != hub) {
                self.used_in(Wanted { name: alias, role: Role::Extended, ..wanted }, *user, lines, seen);
            }
        }
    }

    /// Does the same within the file that defines the alias.
    fn used_renamed_in(&mut self, wanted: Wanted<'_>, file: u32, seen: &Rc<Viewers>) {
        let renamed = self.known.renamed(file);
        for renamed in renamed.iter().filter(|renamed| renamed.of.iter().any(|of| of == wanted.name)) {
            let named = self.known.named(&renamed.name);
            let again = Wanted { name: &renamed.name, role: Role::Extended, ..wanted };
            self.used_in(again, file, named.lines_in(file), seen);
        }
    }
}
