//! Visibility of a file's names in other files: its importers, and the importers of files that
//! re-export it.

use std::rc::Rc;

use hashbrown::{HashMap, HashSet};
use journeyman_syntax::imports::Import;
use journeyman_syntax::language::Language;

use super::symbols::Symbols;
use crate::Snapshot;
use crate::analysis::{ContentType, UseKind};
use crate::bit_set::BitSet;
use crate::graph::name_dependencies::{NameRole, role_of_kind};
use crate::graph::resolve::{last_part, parent};
use crate::graph::{Edge, Graph, name_dependencies};

/// Maximum symbols of one file: a generated file with more is followed as a whole.
const MAX_SYMBOLS_PER_FILE: u32 = 10_000;
/// Maximum definers of a name, and definitions that are examined for them.
const MAX_DEFINERS: usize = 64;
const MAX_EXAMINED_DEFINITIONS: usize = 1_000;
/// Maximum import steps behind a file when its purpose for an importer is determined.
const MAX_TRANSITIVE_IMPORT_STEPS: u32 = 3;
/// Maximum files behind a file.
const MAX_TRANSITIVE_IMPORTS: usize = 5_000;
/// Maximum aliases under which a file re-exports names.
const MAX_ALIASES: usize = 200;
/// If a name has this many times more users than the file has importers, the importers are searched
/// instead.
const MANY_USERS_FACTOR: usize = 8;
/// The bit of plain uses.
const PLAIN_BIT: u8 = 1 << UseKind::Plain as u8;
/// Marker for importing all names.
pub(super) const ALL_NAMES: &str = "*";
/// Marker for a symbol without a name of its own.
pub(super) const UNNAMED_SYMBOL: &str = "default";

/// The files that see one file's names.
#[derive(Debug, Default)]
pub(super) struct NameViewers {
    /// By file: the file that re-exports the names to it; `None` for a direct import.
    by: HashMap<u32, Option<u32>>,
    /// Those files, ascending.
    files: Vec<u32>,
    /// Files that re-export the names.
    hubs: Vec<u32>,
}

impl NameViewers {
    /// Returns the file that re-exports the names to a file: `Some(None)` for a direct import,
    /// `None` if the file doesn't see the names.
    pub(super) fn reexporter_for(&self, file: u32) -> Option<Option<u32>> {
        self.by.get(&file).copied()
    }

    /// Returns the files that re-export the names to a file, one after the other, the nearest to it
    /// first.
    pub(super) fn reexport_path(&self, file: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(self.reexporter_for(file).flatten(), |hub| self.reexporter_for(*hub).flatten())
    }
}

/// A name beside an import, without a definition: a possible alias of the import's listed names.
#[derive(Debug)]
pub(super) struct AliasName {
    pub(super) name: String,
    /// The names that the import lists.
    pub(super) of: Vec<String>,
}

/// Aliases by their original names: the renaming file, and the alias.
pub(super) type Aliases = HashMap<String, Vec<(u32, String)>>;

/// The definers and users of a name.
#[derive(Debug, Default)]
pub(super) struct NameUses {
    pub(super) definers: Vec<u32>,
    /// By file, with the lines.
    pub(super) users: Vec<(u32, Vec<u32>)>,
    /// The kinds of uses by file and line, as bits; lines with only plain uses are left out.
    kinds: HashMap<(u32, u32), u8>,
}

impl NameUses {
    /// Returns the lines in which a file uses it.
    pub(super) fn use_lines(&self, file: u32) -> &[u32] {
        let at = self.users.binary_search_by_key(&file, |(user, _)| *user).ok();
        at.and_then(|at| self.users.get(at)).map(|(_, lines)| lines.as_slice()).unwrap_or_default()
    }

    /// Returns true if any use of the name in a line of a file is of one of some kinds.
    pub(super) fn is_used_as(&self, file: u32, line: u32, kinds: &[UseKind]) -> bool {
        let own = self.kinds.get(&(file, line)).copied().unwrap_or(PLAIN_BIT);
        kinds.iter().any(|kind| own & (1 << *kind as u8) != 0)
    }

    /// Returns the users that see a file's names, and that file, if it uses the name itself.
    pub(super) fn users_among<'a>(&'a self, file: u32, seen: &'a NameViewers) -> Vec<&'a (u32, Vec<u32>)> {
        // For a very common name, the files that see it are searched, if they are few.
        if seen.files.len() * MANY_USERS_FACTOR < self.users.len() {
            let mut files = seen.files.clone();
            files.push(file);
            files.sort_unstable();
            files.dedup();
            let user = |file: &u32| self.users.binary_search_by_key(file, |(user, _)| *user).ok();
            return files.iter().filter_map(user).filter_map(|at| self.users.get(at)).collect();
        }
        self.users.iter().filter(|(user, _)| *user == file || seen.by.contains_key(user)).collect()
    }
}

/// Cached knowledge of files and names.
pub(super) struct ImpactCache<'a> {
    pub(super) graph: &'a Graph,
    snapshot: &'a Snapshot,
    /// By a file's number in the snapshot.
    nodes: Vec<u32>,
    imports: HashMap<u32, Rc<Vec<Import>>>,
    ends: HashMap<u32, Rc<Vec<u32>>>,
    symbols: HashMap<u32, Option<Rc<Symbols>>>,
    seen: HashMap<u32, Rc<NameViewers>>,
    names: HashMap<u32, Rc<HashSet<String>>>,
    behind: HashMap<u32, Rc<BitSet>>,
    renamed: HashMap<u32, Rc<Vec<AliasName>>>,
    aliases: HashMap<u32, Rc<Aliases>>,
    named: HashMap<String, Rc<NameUses>>,
    pub(super) own_bases: HashMap<(u32, u32), bool>,
    /// Number of steps through re-exporting files.
    pub(super) handed: usize,
}

impl<'a> ImpactCache<'a> {
    pub(super) fn new(graph: &'a Graph, snapshot: &'a Snapshot) -> Self {
        let mut nodes = vec![u32::MAX; snapshot.file_number_bound() as usize];
        for (number, node) in (0..).zip(&graph.nodes) {
            if let Some(place) = nodes.get_mut(node.file as usize) {
                *place = number;
            }
        }
        Self {
            graph,
            snapshot,
            nodes,
            imports: HashMap::new(),
            ends: HashMap::new(),
            symbols: HashMap::new(),
            seen: HashMap::new(),
            names: HashMap::new(),
            behind: HashMap::new(),
            renamed: HashMap::new(),
            aliases: HashMap::new(),
            named: HashMap::new(),
            own_bases: HashMap::new(),
            handed: 0,
        }
    }

    /// Returns a file's family of languages.
    pub(super) fn family_of(&self, file: u32) -> Option<u8> {
        name_dependencies::language_family(self.graph.node(file)?.language)
    }

    /// Returns a file's symbols; `None` if names say nothing about it.
    pub(super) fn symbols_of(&mut self, file: u32) -> Option<Rc<Symbols>> {
        if let Some(known) = self.symbols.get(&file) {
            return known.clone();
        }
        let node =
            self.graph.node(file).filter(|node| name_dependencies::language_family(node.language).is_some());
        let view = node.and_then(|node| self.snapshot.file(node.file));
        let symbols = view
            .filter(|view| view.record.content == ContentType::Text)
            .and_then(|view| Symbols::read_symbols(&view, MAX_SYMBOLS_PER_FILE))
            .map(Rc::new);
        self.symbols.insert(file, symbols.clone());
        symbols
    }

    pub(super) fn imports_of(&mut self, file: u32) -> Rc<Vec<Import>> {
        let (graph, snapshot) = (self.graph, self.snapshot);
        let read = || {
            let view = snapshot.file(graph.node(file)?.file)?;
            Some(view.segment().details(&view.record).imports())
        };
        Rc::clone(self.imports.entry(file).or_insert_with(|| Rc::new(read().unwrap_or_default())))
    }

    /// Returns true if an import on a line brings in something without a name.
    pub(super) fn imports_unnamed_items(&mut self, file: u32, line: u32) -> bool {
        let imports = self.imports_of(file);
        imports
            .iter()
            .any(|import| import.line == line && import.names.iter().any(|name| name == UNNAMED_SYMBOL))
    }

    /// Returns true if a file imports all names of another one.
    pub(super) fn imports_all_names(&mut self, file: u32) -> bool {
        self.imports_of(file).iter().any(imports_everything)
    }

    /// Returns those of a name's lines in a file that only import it.
    pub(super) fn import_lines_of_name(&mut self, file: u32, name: &str, lines: &[u32]) -> Vec<u32> {
        let (imports, ends) = (self.imports_of(file), self.import_end_lines(file));
        let lists = |import: &Import| {
            import.names.iter().any(|listed| listed == name)
                || import.target.split(['.', ':', '/']).any(|part| part == name)
        };
        let line = |(import, end): (&Import, &u32)| {
            let here = |line: &u32| import.line <= *line && line <= end;
            lists(import).then(|| lines.iter().copied().find(here)).flatten()
        };
        imports.iter().zip(&*ends).filter_map(line).collect()
    }

    /// Returns the last lines of a file's imports: a listed name is at its first use from there on.
    pub(super) fn import_end_lines(&mut self, file: u32) -> Rc<Vec<u32>> {
        if let Some(known) = self.ends.get(&file) {
            return Rc::clone(known);
        }
        let imports = self.imports_of(file);
        let mut ends = Vec::with_capacity(imports.len());
        for import in imports.iter() {
            let reach = u32::try_from(import.names.len()).unwrap_or(u32::MAX);
            let farthest = import.line.saturating_add(reach);
            let mut end = import.line;
            for name in import.names.iter() {
                let named = self.definers_and_users(name);
                let lines = named.use_lines(file);
                let first = lines.iter().copied().find(|line| *line >= import.line);
                end = end.max(first.filter(|line| *line <= farthest).unwrap_or(0));
            }
            ends.push(end);
        }
        let ends = Rc::new(ends);
        self.ends.insert(file, Rc::clone(&ends));
        ends
    }

    /// Returns the names that a line imports; none if it isn't an import, or imports something
    /// unlisted.
    pub(super) fn names_imported_at(&mut self, file: u32, line: u32) -> Vec<String> {
        let (imports, ends) = (self.imports_of(file), self.import_end_lines(file));
        let here = imports.iter().zip(&*ends).filter(|(import, end)| import.line <= line && line <= **end);
        let names: Vec<String> = here.flat_map(|(import, _)| import.names.iter().cloned()).collect();
        if names.iter().any(|name| name == ALL_NAMES || name == UNNAMED_SYMBOL) { Vec::new() } else { names }
    }

    /// Returns the names by which users enter a file: its definitions, and its own name as a
    /// module.
    fn entry_names_of(&mut self, file: u32) -> Rc<HashSet<String>> {
        if let Some(known) = self.names.get(&file) {
            return Rc::clone(known);
        }
        let mut names = HashSet::from([module_name(self.graph.path(file)).to_owned()]);
        if let Some(symbols) = self.symbols_of(file) {
            for (own, symbol) in symbols.iter() {
                if role_of_kind(symbol.kind).is_some_and(|role| role != NameRole::Member)
                    && symbols.is_usable(own)
                {
                    names.insert(symbol.name.clone());
                }
            }
        }
        let names = Rc::new(names);
        self.names.insert(file, Rc::clone(&names));
        names
    }

    /// Returns true if other files can get another file's names through a file.
    pub(super) fn reexports_from(&mut self, file: u32, other: u32) -> bool {
        match self.graph.node(file).and_then(|node| node.language) {
            Some(
                Language::Rust
                | Language::Python
                | Language::JavaScript
                | Language::TypeScript
                | Language::Tsx,
            ) => {
                let names = self.entry_names_of(other);
                let lists = |import: &Import| import.names.iter().any(|name| names.contains(name));
                self.imports_of(file).iter().any(|import| imports_everything(import) || lists(import))
            }
            Some(
                Language::C | Language::Cpp | Language::Ruby | Language::Php | Language::Lua | Language::Bash,
            ) => true,
            _ => false,
        }
    }

    /// Returns the files that see a file's names.
    pub(super) fn name_viewers_of(&mut self, file: u32) -> Rc<NameViewers> {
        if let Some(known) = self.seen.get(&file) {
            return Rc::clone(known);
        }
        let (graph, family) = (self.graph, self.family_of(file));
        let mut seen = NameViewers::default();
        let mut level: Vec<u32> = Vec::new();
        for edge in graph.reverse_edges(file).iter().filter(|edge| edge.is_dependency()) {
            seen.by.insert(edge.to, None);
            if edge.line > 0 && self.reexports_from(edge.to, file) {
                level.push(edge.to);
            }
        }
        while !level.is_empty() {
            let mut next = Vec::new();
            for hub in &level {
                for edge in graph.importers(*hub) {
                    self.handed += 1;
                    let to = edge.to;
                    if to == file || seen.by.contains_key(&to) || self.family_of(to) != family {
                        continue;
                    }
                    seen.by.insert(to, Some(*hub));
                    if self.reexports_from(to, file) {
                        next.push(to);
                    }
                }
            }
            seen.hubs.append(&mut level);
            level = next;
        }
        seen.files = seen.by.keys().copied().collect();
        seen.files.sort_unstable();
        let seen = Rc::new(seen);
        self.seen.insert(file, Rc::clone(&seen));
        seen
    }

    /// Returns true if a file that uses no name of `other` imports it to reach another file: one
    /// that the same line imports, or, with `behind`, one that `other` imports.
    pub(super) fn imports_for_another_file(&mut self, file: u32, other: u32, behind: bool) -> bool {
        let graph = self.graph;
        let line = graph.edge(file, other).map_or(0, |edge| edge.line);
        let wanted = |edge: &&Edge| edge.names > 0 && edge.to != other;
        if graph.edges(file).iter().filter(wanted).any(|edge| edge.line == line) {
            return true;
        }
        if !behind {
            return false;
        }
        let files = self.transitively_imported_files(other);
        graph.edges(file).iter().filter(wanted).any(|edge| edge.line == 0 && files.contains(edge.to))
    }

    /// Returns the files that a file imports directly or within a few steps.
    fn transitively_imported_files(&mut self, file: u32) -> Rc<BitSet> {
        let graph = self.graph;
        let look = || {
            let (mut files, mut level, mut count) = (BitSet::default(), vec![file], 0);
            for _ in 0..MAX_TRANSITIVE_IMPORT_STEPS {
                for here in std::mem::take(&mut level) {
                    for edge in graph.edges(here).iter().filter(|edge| edge.line > 0) {
                        if count < MAX_TRANSITIVE_IMPORTS && !files.contains(edge.to) {
                            files.insert(edge.to);
                            level.push(edge.to);
                            count += 1;
                        }
                    }
                }
            }
            Rc::new(files)
        };
        Rc::clone(self.behind.entry(file).or_insert_with(look))
    }

    /// Returns the definers and users of a name.
    pub(super) fn definers_and_users(&mut self, name: &str) -> Rc<NameUses> {
        if let Some(known) = self.named.get(name) {
            return Rc::clone(known);
        }
        let definers = self.definers_of(name);
        let named = Rc::new(NameUses { definers, ..self.uses_of(name) });
        self.named.insert(name.to_owned(), Rc::clone(&named));
        named
    }

    /// Returns the files that define a name.
    fn definers_of(&mut self, name: &str) -> Vec<u32> {
        let mut places: Vec<(u32, u32)> = Vec::new();
        self.snapshot.visit_definitions(name, |symbol| {
            if let Some((file, own)) = self.snapshot.locate_symbol(symbol)
                && let Some(node) = self.nodes.get(file as usize).filter(|node| **node != u32::MAX)
            {
                places.push((*node, own));
            }
        });
        places.sort_unstable();
        places.truncate(MAX_EXAMINED_DEFINITIONS);
        let mut definers: Vec<u32> = Vec::new();
        for (file, own) in places {
            if definers.last() == Some(&file) {
                continue;
            }
            let defines = self.symbols_of(file).is_some_and(|symbols| symbols.defines(own, name));
            if defines {
                definers.push(file);
            }
            if definers.len() == MAX_DEFINERS {
                break;
            }
        }
        definers
    }

    /// Returns true if a file defines an entry of a name.
    pub(super) fn defines_entry(&mut self, file: u32, name: &str) -> bool {
        self.symbols_of(file).is_none_or(|symbols| {
            symbols.iter().any(|(own, symbol)| {
                role_of_kind(symbol.kind) == Some(NameRole::Own) && symbols.defines(own, name)
            })
        })
    }

    /// Returns the files that use a name, by path, and the kinds of the uses.
    fn uses_of(&self, name: &str) -> NameUses {
        let mut uses: Vec<(u32, Vec<u32>)> = Vec::new();
        let mut kinds: HashMap<(u32, u32), u8> = HashMap::new();
        let mut plain = (u32::MAX, 0);
        self.snapshot.visit_uses(name, |file, line, kind| {
            let node = self.nodes.get(file as usize).copied().unwrap_or(u32::MAX);
            if node == u32::MAX {
                return;
            }
            // The uses in a line come one after the other.
            if kind == UseKind::Plain {
                plain = (node, line);
                kinds.entry(plain).and_modify(|kinds| *kinds |= PLAIN_BIT);
            } else {
                let before = if plain == (node, line) { PLAIN_BIT } else { 0 };
                *kinds.entry((node, line)).or_insert(before) |= 1 << kind as u8;
            }
            match uses.last_mut().filter(|(last, _)| *last == node) {
                Some((_, lines)) if lines.last() == Some(&line) => {}
                Some((_, lines)) => lines.push(line),
                None => uses.push((node, vec![line])),
            }
        });
        uses.sort_unstable_by_key(|(file, _)| *file);
        NameUses { users: uses, kinds, ..NameUses::default() }
    }

    /// Returns true if a file's import of another file lists a name.
    pub(super) fn imports_name(&mut self, user: u32, file: u32, name: &str) -> bool {
        let line = self.graph.edge(user, file).map_or(0, |edge| edge.line);
        let lists = |import: &Import| import.line == line && import.names.iter().any(|one| one == name);
        line > 0 && self.imports_of(user).iter().any(lists)
    }

    /// Returns those of `lines` in which a file also uses another file's name as a module, as in
    /// `module.name`.
    pub(super) fn lines_that_name_module(&mut self, user: u32, file: u32, lines: &[u32]) -> Vec<u32> {
        let module = self.definers_and_users(module_name(self.graph.path(file)));
        let named = module.use_lines(user);
        lines.iter().copied().filter(|line| named.contains(line)).collect()
    }

    /// Returns true if a name with several definers refers to another definer in a file: the file
    /// imports that one, and not this one.
    pub(super) fn imports_another_definer(&self, user: u32, file: u32, others: &[u32]) -> bool {
        let imports =
            |other: u32| self.graph.edge(user, other).is_some_and(|edge| edge.line > 0 && !edge.part);
        !others.is_empty() && !imports(file) && others.iter().any(|other| imports(*other))
    }

    /// Returns, for each name that a file defines or imports, its aliases where it is re-exported,
    /// and the files that define the aliases, with the file itself.
    pub(super) fn aliases_of(&mut self, file: u32) -> Rc<Aliases> {
        if let Some(known) = self.aliases.get(&file) {
            return Rc::clone(known);
        }
        let seen = self.name_viewers_of(file);
        let mut aliases = Aliases::default();
        for hub in seen.hubs.iter().copied().chain([file]) {
            for renamed in self.alias_names(hub).iter() {
                self.handed += renamed.of.len();
                for name in &renamed.of {
                    aliases.entry(name.clone()).or_default().push((hub, renamed.name.clone()));
                }
            }
        }
        let aliases = Rc::new(aliases);
        self.aliases.insert(file, Rc::clone(&aliases));
        aliases
    }

    /// Returns the names that other files import from a file; `None` if any file imports all of it.
    pub(super) fn names_imported_by_others(&mut self, file: u32) -> Option<HashSet<String>> {
        let graph = self.graph;
        let mut taken = HashSet::new();
        for edge in graph.importers(file) {
            let imports = self.imports_of(edge.to);
            let here = || imports.iter().filter(|import| import.line == edge.line);
            if here().any(|import| import.names.is_empty() || imports_everything(import)) {
                return None;
            }
            let from_it = |import: &&Import| here().any(|one| one.target == import.target);
            taken.extend(imports.iter().filter(from_it).flat_map(|import| import.names.iter().cloned()));
        }
        Some(taken)
    }

    /// Returns aliases that a file defines for its imports.
    pub(super) fn alias_names(&mut self, file: u32) -> Rc<Vec<AliasName>> {
        if let Some(known) = self.renamed.get(&file) {
            return Rc::clone(known);
        }
        let found = Rc::new(self.find_alias_names(file).unwrap_or_default());
        self.renamed.insert(file, Rc::clone(&found));
        found
    }

    /// Returns names in a file's imports that aren't listed, and have no definition.
    fn find_alias_names(&mut self, file: u32) -> Option<Vec<AliasName>> {
        let imports = self.imports_of(file);
        if imports.iter().all(|import| import.names.is_empty()) {
            return None;
        }
        let ends = self.import_end_lines(file);
        let node = self.graph.node(file)?;
        let view = self.snapshot.file(node.file)?;
        let told = |name: &String| {
            imports.iter().any(|import| {
                import.names.contains(name) || import.target.split(['.', ':', '/']).any(|part| part == name)
            })
        };
        let mut names = view.segment().used_names(&view.record);
        names.retain(|name| !told(name));
        names.sort_unstable();
        let mut renamed = Vec::new();
        for name in names {
            let named = self.definers_and_users(&name);
            self.handed += 1;
            if !named.definers.is_empty() {
                continue;
            }
            let lines = named.use_lines(file);
            let stands = |(import, end): &(&Import, &u32)| {
                lines.iter().any(|line| import.line <= *line && line <= *end)
            };
            let beside = imports.iter().zip(&*ends).filter(stands);
            let of: Vec<String> = beside.flat_map(|(import, _)| import.names.iter().cloned()).collect();
            if !of.is_empty() {
                renamed.push(AliasName { name, of });
            }
            if renamed.len() == MAX_ALIASES {
                break;
            }
        }
        Some(renamed)
    }
}

/// Returns true if everything is imported.
fn imports_everything(import: &Import) -> bool {
    import.names.iter().any(|name| name == ALL_NAMES)
}

/// Returns a file's name as a module.
pub(super) fn module_name(path: &str) -> &str {
    let name = last_part(path).split('.').next().unwrap_or_default();
    if matches!(name, "__init__" | "mod" | "index") { last_part(parent(path)) } else { name }
}
