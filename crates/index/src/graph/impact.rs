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

mod changed_part;
mod python_classes;
mod reached_places;
mod symbols;
mod test_paths;
mod visibility;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use hashbrown::{HashMap, HashSet};
use journeyman_syntax::outline::SymbolKind;

use super::Graph;
use super::name_dependencies::{NameRole, is_type, role_of_kind};
use super::queries::{MAX_DISTANCE, MAX_REACHED_FILES, ReachedFile, TraversalResult, TraversalStep};
use crate::Snapshot;
use crate::analysis::UseKind;
pub use changed_part::{ChangedPart, ChangedSourceFile};
use python_classes::use_kinds_of_symbol;
use reached_places::{ReachedPart, ReachedPlace, START_KEY, WantedName};
use symbols::Symbols;
use test_paths::{LinkKind, TestPaths, TestRule};
use visibility::{ImpactCache, NameUses, NameViewers, UNNAMED_SYMBOL};

/// Maximum followed lines of uses and steps through re-exporting files; beyond that, whole files
/// are followed.
const MAX_FOLLOWED_LINES: usize = 20_000_000;
/// Maximum followed lines for places that only determine which tests are reached.
const MAX_TEST_ONLY_LINES: usize = 2_000_000;
/// Distance of places that only determine which tests are reached: they are beyond the requested
/// depth, or don't see the used member's file. Greater than the distance of any place in the
/// result.
const TEST_ONLY_DISTANCE: u32 = 1 << 30;
/// The family of C and C++, where what one file defines another one declares.
const C_FAMILY: u8 = 6;

impl Graph {
    /// Returns the files that a change may affect, at most `depth` steps away. Declarations of
    /// parts don't count.
    #[must_use]
    pub fn find_impact(
        &self,
        snapshot: &Snapshot,
        changed: &[ChangedSourceFile],
        depth: u32,
    ) -> TraversalResult {
        let files = || changed.iter().map(|changed| changed.file).collect::<Vec<_>>();
        ImpactSearch::new(self, snapshot, depth)
            .run(changed)
            .unwrap_or_else(|| TraversalResult { by_files: true, ..self.dependents(&files(), depth) })
    }
}

struct ImpactSearch<'a> {
    graph: &'a Graph,
    known: ImpactCache<'a>,
    depth: u32,
    /// The minimum distance of each place.
    best: HashMap<(u32, ReachedPart), u32>,
    /// Places to continue from, by their distance.
    left: BTreeMap<u32, Vec<ReachedPlace>>,
    trails: Vec<TraversalStep>,
    found: HashMap<u32, ReachedFile>,
    /// Files whose unnamed users were already followed.
    opened: HashSet<u32>,
    work: usize,
    /// The uses between places; `None` for the users of a file that name nothing of it.
    tests: TestPaths<(u32, Option<ReachedPart>)>,
    /// The reason why places are followed; `None` if tests aren't reached by them.
    by: Option<LinkKind>,
    /// True while a type is followed for its values' sake: annotations make none.
    is_of_values: bool,
    /// True while users are followed that don't see the used file.
    is_unseen: bool,
}

impl<'a> ImpactSearch<'a> {
    fn new(graph: &'a Graph, snapshot: &'a Snapshot, depth: u32) -> Self {
        Self {
            graph,
            known: ImpactCache::new(graph, snapshot),
            depth: depth.min(MAX_DISTANCE),
            best: HashMap::new(),
            left: BTreeMap::new(),
            trails: Vec::new(),
            found: HashMap::new(),
            opened: HashSet::new(),
            work: 0,
            tests: TestPaths::default(),
            by: Some(LinkKind::Name),
            is_of_values: false,
            is_unseen: false,
        }
    }

    /// Follows the changes; `None` if that would take too long.
    fn run(mut self, changed: &[ChangedSourceFile]) -> Option<TraversalResult> {
        let mut changed: Vec<&ChangedSourceFile> =
            changed.iter().filter(|changed| self.graph.node(changed.file).is_some()).collect();
        changed.sort_by_key(|changed| changed.file);
        let starts: HashSet<u32> = changed.iter().map(|changed| changed.file).collect();
        self.tests.set_current_place(START_KEY);
        for changed in changed {
            self.start_from_change(changed);
            if self.exceeds_limits() {
                return None;
            }
        }
        while let Some((distance, places)) = self.left.pop_first() {
            if distance >= TEST_ONLY_DISTANCE || self.found.len() > MAX_REACHED_FILES {
                self.left.insert(distance, places);
                break;
            }
            self.follow_places(distance, places, &starts);
            if self.exceeds_limits() {
                return None;
            }
        }
        let cut = self.found.len() > MAX_REACHED_FILES;
        if !cut {
            self.drop_unreached_tests(&starts);
        }
        let mut files: Vec<ReachedFile> = self.found.into_values().collect();
        files.sort_unstable_by_key(|found| (found.distance, found.file));
        files.truncate(MAX_REACHED_FILES);
        Some(TraversalResult { files, cut, by_files: false, trails: self.trails })
    }

    /// Continues from all places of a distance.
    fn follow_places(&mut self, distance: u32, mut places: Vec<ReachedPlace>, starts: &HashSet<u32>) {
        while !places.is_empty() {
            for place in places {
                if self.best.get(&(place.file, place.at)) != Some(&distance) {
                    continue;
                }
                if distance < TEST_ONLY_DISTANCE && !starts.contains(&place.file) {
                    self.record_reached(place, distance);
                }
                self.follow_place(place);
                if self.exceeds_limits() {
                    return;
                }
            }
            // Within a file the distance stays the same.
            places = self.left.remove(&distance).unwrap_or_default();
        }
    }

    /// Drops those test files from the result in which no changed code can run.
    fn drop_unreached_tests(&mut self, starts: &HashSet<u32>) {
        let tests = self.found.keys().copied().filter(|file| self.graph.is_test(*file));
        let tests: HashMap<u32, u32> = tests.zip(0..).collect();
        if tests.is_empty() {
            return;
        }
        let limit = self.work.saturating_add(MAX_TEST_ONLY_LINES);
        while let Some((distance, places)) = self.left.pop_first() {
            self.follow_places(distance, places, starts);
            if self.exceeds_limits() || self.work > limit {
                return;
            }
        }
        let count = u32::try_from(tests.len()).unwrap_or(u32::MAX);
        let paths = std::mem::take(&mut self.tests);
        let Some(reached) = paths.tests_reaching_first(count, |(file, _)| tests.get(file).copied()) else {
            return;
        };
        self.found.retain(|file, _| tests.get(file).is_none_or(|test| reached.contains(*test)));
    }

    fn exceeds_limits(&self) -> bool {
        self.work.saturating_add(self.known.handed) > MAX_FOLLOWED_LINES
    }

    fn start_from_change(&mut self, changed: &ChangedSourceFile) {
        let file = changed.file;
        let trail = self.add_step(file, None, 0);
        let symbols = self.known.symbols_of(file);
        let (Some(part), Some(symbols)) = (&changed.part, symbols) else {
            self.follow_uses_in(file, ReachedPart::File, trail, None);
            return;
        };
        let mut imported = BTreeSet::new();
        for line in part.lines.iter().cloned().flatten() {
            match symbols.symbol_at(line) {
                Some(own) => {
                    self.follow_uses_in(file, ReachedPart::Symbol(own), trail, None);
                    if self.known.is_module_hook(file, &symbols, own) {
                        for edge in self.graph.importers(file) {
                            self.follow_uses_in(edge.to, ReachedPart::Import, trail, None);
                        }
                    }
                }
                None => {
                    let names = self.known.names_imported_at(file, line);
                    if names.is_empty() {
                        self.follow_uses_in(file, ReachedPart::File, trail, None);
                    }
                    imported.extend(names);
                }
            }
        }
        imported.extend(part.gone.iter().cloned());
        for name in &imported {
            self.follow_name(WantedName { name, role: NameRole::Own, kinds: &UseKind::ALL, file, trail });
        }
    }

    /// Continues from a name whose meaning changes in a file: to its uses there, also under an
    /// alias, and to the users to whom the file re-exports it.
    fn follow_name(&mut self, wanted: WantedName<'_>) {
        let seen = self.known.name_viewers_of(wanted.file);
        self.follow_users(wanted);
        self.follow_aliases_in(wanted, wanted.file, &seen);
    }

    fn add_step(&mut self, file: u32, from: Option<u32>, distance: u32) -> u32 {
        self.trails.push(TraversalStep { file, from, distance });
        u32::try_from(self.trails.len() - 1).unwrap_or(u32::MAX)
    }

    fn enqueue(&mut self, place: ReachedPlace, distance: u32) {
        let best = self.best.entry((place.file, place.at)).or_insert(u32::MAX);
        if distance < *best {
            *best = distance;
            self.left.entry(distance).or_default().push(place);
        }
    }

    /// Continues to the uses of another file's names in a file; `seen` has the visibility of the
    /// names.
    fn follow_uses_in(&mut self, file: u32, at: ReachedPart, from: u32, seen: Option<&NameViewers>) {
        let Some(before) = self.trails.get(from as usize).map(|trail| trail.file) else { return };
        let known = self.distance_of(from);
        if let Some(by) = self.by {
            self.tests.add_user((file, Some(at)), by);
        }
        if before == file {
            self.enqueue(ReachedPlace { file, at, trail: from }, known);
            return;
        }
        let hubs: Vec<u32> = seen.map(|seen| seen.reexport_path(file).collect()).unwrap_or_default();
        let steps = u32::try_from(hubs.len()).unwrap_or(u32::MAX).saturating_add(1);
        let mut distance = known.saturating_add(steps);
        if self.is_unseen || distance > self.depth {
            distance = distance.max(TEST_ONLY_DISTANCE);
        }
        if self.best.get(&(file, at)).is_some_and(|best| *best <= distance) {
            return;
        }
        let mut behind = from;
        for (hub, step) in hubs.into_iter().rev().zip(1..) {
            behind = self.add_step(hub, Some(behind), known.saturating_add(step));
        }
        let trail = self.add_step(file, Some(behind), distance);
        self.enqueue(ReachedPlace { file, at, trail }, distance);
    }

    /// Returns the distance of a place.
    fn distance_of(&self, trail: u32) -> u32 {
        self.trails.get(trail as usize).map_or(0, |trail| trail.distance)
    }

    fn record_reached(&mut self, place: ReachedPlace, distance: u32) {
        let trail = self.trails.get(place.trail as usize).and_then(|trail| trail.from);
        let from = trail.and_then(|from| self.trails.get(from as usize)).map_or(place.file, |from| from.file);
        let found = ReachedFile { file: place.file, distance, from, trail: place.trail };
        self.found.entry(place.file).or_insert(found);
    }

    fn follow_place(&mut self, place: ReachedPlace) {
        let ReachedPlace { file, at, trail } = place;
        self.tests.set_current_place((file, Some(at)));
        match at {
            ReachedPart::Import => {}
            ReachedPart::Top => self.follow_load_time_imports(place),
            ReachedPart::File => self.follow_whole_file(file, trail),
            ReachedPart::Symbol(own) | ReachedPart::Type(own) => {
                self.follow_unnamed_users(place);
                if let Some(symbols) = self.known.symbols_of(file) {
                    self.follow_symbol(&symbols, own, place);
                }
            }
        }
    }

    /// Continues from a whole file.
    fn follow_whole_file(&mut self, file: u32, trail: u32) {
        let graph = self.graph;
        let Some(symbols) = self.known.symbols_of(file).filter(|symbols| symbols.has_usable_symbols()) else {
            // Names say nothing about it.
            for edge in graph.reverse_edges(file).iter().filter(|edge| edge.is_dependency()) {
                self.follow_uses_in(edge.to, ReachedPart::File, trail, None);
            }
            return;
        };
        let behind = self.distance_of(trail) > 0;
        for edge in graph.importers(file) {
            // Names that a changed file re-exports may have changed with it.
            if edge.names > 0 || !self.known.imports_for_another_file(edge.to, file, behind) {
                self.follow_uses_in(edge.to, ReachedPart::Import, trail, None);
            }
        }
        for (own, _) in symbols.iter().filter(|(own, _)| symbols.is_usable(*own)) {
            self.follow_uses_in(file, ReachedPart::Symbol(own), trail, None);
        }
        self.follow_uses_in(file, ReachedPart::Top, trail, None);
        if !behind {
            self.follow_reexports(file, trail);
        }
    }

    /// Continues from the names that a changed file re-exports: their meaning may have changed.
    fn follow_reexports(&mut self, file: u32, trail: u32) {
        let graph = self.graph;
        if self.known.imports_all_names(file) {
            for edge in graph.importers(file) {
                self.follow_uses_in(edge.to, ReachedPart::File, trail, None);
            }
            return;
        }
        let imports = self.known.imports_of(file);
        let names: BTreeSet<&String> = imports.iter().flat_map(|import| &import.names).collect();
        let taken = self.known.names_imported_by_others(file);
        let is_taken = |name: &&String| taken.as_ref().is_none_or(|taken| taken.contains(name.as_str()));
        for name in names.into_iter().filter(|name| *name != UNNAMED_SYMBOL).filter(is_taken) {
            self.follow_name(WantedName { name, role: NameRole::Own, kinds: &UseKind::ALL, file, trail });
        }
    }

    /// Continues from a file's load-time code: to the files that import it for that.
    fn follow_load_time_imports(&mut self, place: ReachedPlace) {
        let (graph, ReachedPlace { file, trail, .. }) = (self.graph, place);
        self.follow_unnamed_users(place);
        for edge in graph.importers(file).filter(|edge| edge.names == 0) {
            let to = edge.to;
            if !self.known.reexports_from(to, file) && !self.known.imports_for_another_file(to, file, true) {
                self.follow_uses_in(to, ReachedPart::File, trail, None);
            }
        }
    }

    /// Continues to the files that use a file without naming anything of it.
    fn follow_unnamed_users(&mut self, place: ReachedPlace) {
        let ReachedPlace { file, at, trail } = place;
        self.tests.add_user((file, None), LinkKind::Name);
        if !self.opened.insert(file) {
            return;
        }
        self.tests.set_current_place((file, None));
        let graph = self.graph;
        let family = self.known.family_of(file);
        for edge in graph.importers(file) {
            if self.known.family_of(edge.to) != family || self.known.imports_unnamed_items(edge.to, edge.line)
            {
                self.follow_uses_in(edge.to, ReachedPart::File, trail, None);
            }
        }
        self.tests.set_current_place((file, Some(at)));
    }

    /// Continues from a symbol: to its users, and to its enclosing symbols.
    fn follow_symbol(&mut self, symbols: &Symbols, own: u32, place: ReachedPlace) {
        let ReachedPlace { file, at, trail } = place;
        let Some(symbol) = symbols.get(own) else { return };
        let Some(role) = role_of_kind(symbol.kind) else { return };
        let kinds = use_kinds_of_symbol(symbol.kind, symbols.owner_of(own).is_some());
        let wanted = WantedName { name: &symbol.name, role, kinds, file, trail };
        self.is_of_values =
            matches!(at, ReachedPart::Type(_)) && self.known.is_instantiated_by_name(file, symbol, own);
        if role != NameRole::Extended {
            self.follow_users(wanted);
        }
        self.is_of_values = false;
        let rule = self.known.test_rule_of_symbol(file, symbols, own);
        self.tests.set_rule(rule);
        if rule == TestRule::Both && !self.graph.is_test(file) {
            self.follow_users_for_tests(wanted);
        }
        if role == NameRole::Own && self.known.family_of(file) == Some(C_FAMILY) {
            self.follow_header_declarations(file, &symbol.name, trail);
        }
        if matches!(at, ReachedPart::Symbol(_)) && is_type(symbol.kind) {
            for member in symbols.members(own) {
                self.follow_uses_in(file, ReachedPart::Symbol(member), trail, None);
            }
        }
        self.by = Some(LinkKind::Type);
        if symbol.kind == SymbolKind::Impl {
            self.follow_owner_type(file, None, &symbol.name, trail);
        } else if let Some((at, name)) = symbols.owner_of(own) {
            // Code with a value of a type needn't know where the type is: the change comes to it
            // from the value's creator.
            self.follow_owner_type(file, at, name, trail);
        }
        self.by = Some(LinkKind::Name);
    }

    /// Continues to the uses of a member's name in files that may get a value of its type from
    /// other files, only to find reached tests.
    fn follow_users_for_tests(&mut self, wanted: WantedName<'_>) {
        let (named, seen) =
            (self.known.definers_and_users(wanted.name), self.known.name_viewers_of(wanted.file));
        let family = self.known.family_of(wanted.file);
        self.is_unseen = true;
        for (user, lines) in &named.users {
            if *user != wanted.file && self.known.family_of(*user) == family {
                self.work += lines.len();
                self.follow_user(wanted, *user, lines, &seen);
            }
        }
        self.is_unseen = false;
    }

    /// Continues to the declarations in an included header, by which other files see the
    /// definitions.
    fn follow_header_declarations(&mut self, file: u32, name: &str, trail: u32) {
        let definers = self.known.definers_and_users(name).definers.clone();
        let included = |definer: &u32| self.graph.edge(file, *definer).is_some_and(|edge| edge.line > 0);
        for header in definers.into_iter().filter(|definer| *definer != file && included(definer)) {
            let Some(symbols) = self.known.symbols_of(header) else { continue };
            for (own, _) in symbols.iter().filter(|(own, _)| symbols.defines(*own, name)) {
                self.follow_uses_in(header, ReachedPart::Symbol(own), trail, None);
            }
        }
    }

    /// Continues to the type of a member.
    fn follow_owner_type(&mut self, file: u32, own: Option<u32>, name: &str, trail: u32) {
        if let Some(own) = own {
            self.follow_uses_in(file, ReachedPart::Type(own), trail, None);
            return;
        }
        let family = self.known.family_of(file);
        let mut definers = self.known.definers_and_users(name).definers.clone();
        definers.retain(|definer| self.known.family_of(*definer) == family);
        let imported = |definer: &u32| self.graph.edge(file, *definer).is_some();
        let own_types =
            self.known.symbols_of(file).filter(|symbols| symbols.types_named(name).next().is_some());
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
            meant.into_iter().partition(|definer| self.graph.units.are_in_one_unit(file, *definer));
        // Additions to another file's type are used by files that know of the addition.
        if !strangers.is_empty() {
            self.follow_users(WantedName { name, role: NameRole::Own, kinds: &UseKind::ALL, file, trail });
        }
        for definer in meant {
            let Some(symbols) = self.known.symbols_of(definer) else { continue };
            for own in symbols.types_named(name) {
                self.follow_uses_in(definer, ReachedPart::Type(own), trail, None);
            }
        }
    }

    /// Continues to the users of a name.
    fn follow_users(&mut self, wanted: WantedName<'_>) {
        let WantedName { name, role, file, .. } = wanted;
        let (named, seen) = (self.known.definers_and_users(name), self.known.name_viewers_of(file));
        let family = self.known.family_of(file);
        let mut others: Vec<u32> = named.definers.iter().copied().filter(|one| *one != file).collect();
        if role == NameRole::Own {
            // A member of the name is no other meaning of it.
            others.retain(|other| self.known.defines_entry(*other, name));
        }
        for (user, lines) in named.users_among(file, &seen) {
            self.work += lines.len();
            let mut lines = Cow::Borrowed(lines.as_slice());
            if *user != file {
                if self.known.imports_another_definer(*user, file, &others)
                    || self.known.family_of(*user) != family
                {
                    continue;
                }
                if others.contains(user) && !self.known.imports_name(*user, file, name) {
                    // The file means its own definition, except where it names the other module.
                    lines = Cow::Owned(self.known.lines_that_name_module(*user, file, &lines));
                    if lines.is_empty() {
                        continue;
                    }
                }
                // A member's name alone doesn't lead from outside.
                let handed_on = seen.reexporter_for(*user).flatten().is_some();
                if role == NameRole::Member
                    && handed_on
                    && !others.is_empty()
                    && !self.known.imports_all_names(*user)
                {
                    continue;
                }
            }
            self.follow_user(wanted, *user, &lines, &seen);
        }
        if role == NameRole::Own {
            self.follow_aliases(wanted, &seen);
        }
    }

    /// Continues to the uses of a name in a file, and returns true if there are any besides
    /// imports.
    fn follow_user(
        &mut self,
        wanted: WantedName<'_>,
        user: u32,
        lines: &[u32],
        seen: &Rc<NameViewers>,
    ) -> bool {
        let Some(symbols) = self.known.symbols_of(user) else {
            self.follow_uses_in(user, ReachedPart::File, wanted.trail, Some(seen));
            return true;
        };
        let mut is_used = false;
        let mut imported: Option<Vec<u32>> = None;
        let named = self.known.definers_and_users(wanted.name);
        let kinds = self.known.use_kinds_of_name(wanted.kinds, user, wanted.file, wanted.name);
        for line in lines.iter().filter(|line| named.is_used_as(user, **line, kinds)) {
            let by = self.by;
            if self.is_of_values && !named.is_used_as(user, *line, &UseKind::ALL_BUT_ANNOTATION) {
                self.by = None;
            }
            match symbols.symbol_at(*line) {
                Some(own) => {
                    let is_type = symbols.get(own).is_some_and(|symbol| is_type(symbol.kind));
                    let at = if is_type { ReachedPart::Type(own) } else { ReachedPart::Symbol(own) };
                    self.follow_uses_in(user, at, wanted.trail, Some(seen));
                    is_used = true;
                }
                None => {
                    let imported = imported
                        .get_or_insert_with(|| self.known.import_lines_of_name(user, wanted.name, lines));
                    let only_imported = imported.contains(line);
                    let at = if only_imported { ReachedPart::Import } else { ReachedPart::Top };
                    self.follow_uses_in(user, at, wanted.trail, Some(seen));
                    if !only_imported {
                        // `app.register(page)` changes `app`.
                        for own in self.known.variables_used_at(user, *line, &symbols) {
                            self.follow_uses_in(user, ReachedPart::Symbol(own), wanted.trail, Some(seen));
                        }
                    }
                    is_used |= !only_imported;
                }
            }
            self.by = by;
        }
        if !is_used && user != wanted.file && wanted.role == NameRole::Own {
            self.follow_aliases_in(wanted, user, seen);
        }
        is_used
    }

    /// Continues to the users of a name under an alias that a file re-exports it by.
    fn follow_aliases(&mut self, wanted: WantedName<'_>, seen: &Rc<NameViewers>) {
        let aliases = self.known.aliases_of(wanted.file);
        for (hub, alias) in aliases.get(wanted.name).into_iter().flatten() {
            let named: Rc<NameUses> = self.known.definers_and_users(alias);
            for (user, lines) in named.users_among(*hub, seen).into_iter().filter(|(user, _)| user != hub) {
                self.follow_user(
                    WantedName { name: alias, role: NameRole::Extended, kinds: &UseKind::ALL, ..wanted },
                    *user,
                    lines,
                    seen,
                );
            }
        }
    }

    /// Continues to the users of a name under an alias, within the file that defines the alias.
    fn follow_aliases_in(&mut self, wanted: WantedName<'_>, file: u32, seen: &Rc<NameViewers>) {
        let renamed = self.known.alias_names(file);
        for renamed in renamed.iter().filter(|renamed| renamed.of.iter().any(|of| of == wanted.name)) {
            let named = self.known.definers_and_users(&renamed.name);
            let again =
                WantedName { name: &renamed.name, role: NameRole::Extended, kinds: &UseKind::ALL, ..wanted };
            self.follow_user(again, file, named.use_lines(file), seen);
        }
    }
}
