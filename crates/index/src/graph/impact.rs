//! What a change may matter for: dependents, where names are followed through files that only pass them on.
//!
//! A library's `lib.rs`, a package's `__init__.py`, an `index.ts` imports everything, and everybody imports it. If it
//! counted as other files do, each change would matter for everything. So what only imports a file, and uses nothing of
//! it itself, hands that on to those who use one of its names, and to nobody else.
//!
//! A file needs another one *itself* where it uses a name of it elsewhere than in an import. Members count there too. Behind a
//! file that hands names on only those count by which one comes in: of what belongs to no type, of types that have
//! members there, and of members that nothing else is called as. Where names tell nothing, files are followed: in languages without
//! them, where a file defines nothing, or what it gives has no name (`export default`). So it errs on the side of more.

use std::rc::Rc;

use hashbrown::{HashMap, HashSet};
use journeyman_syntax::imports::Import;
use journeyman_syntax::language::Language;
use journeyman_syntax::outline::Kind;

use super::ask::{MAX_REACHED, MAX_STEPS, Reach, Reached};
use super::resolve::{last, parent};
use super::{Edge, Graph, names};
use crate::Snapshot;
use crate::bits::Bits;
use crate::facts::Content;

/// Names of one file that are followed: what defines more is generated, and is followed as a file.
const MAX_NAMES: usize = 2_000;
/// Definers of a name that are looked at.
const MAX_DEFINERS: usize = 64;
/// Steps through files that hand names on; where there are more, files are followed.
const MAX_HANDED: usize = 4_000_000;
/// Steps of imports behind a file in which is looked for what somebody wants of it.
const BEHIND: u32 = 3;
/// Files behind a file that are looked at.
const MAX_BEHIND: usize = 5_000;
/// Other names that a file gives to what it hands on.
const MAX_RENAMED: usize = 200;
/// All names are brought in.
const ALL: &str = "*";
/// What has no name of its own.
const UNNAMED: &str = "default";

/// Who uses what one file defines.
#[derive(Debug, Default)]
struct Users {
    /// What one comes in by: the names, and what the file is called as a module.
    names: HashSet<String>,
    /// Elsewhere than in an import, members too.
    itself: Bits,
    /// Anywhere, by a name that one comes in by.
    by_name: Bits,
    /// Nothing is known of its names.
    unknown: bool,
}

/// A name that stands beside an import, and nothing is defined by: what it lists may be called so from there on.
struct Renamed {
    name: String,
    /// What the import lists.
    of: Vec<String>,
}

/// Who defines a name, and who uses it.
#[derive(Debug, Default)]
struct Named {
    definers: Vec<u32>,
    /// In how many lines.
    users: Vec<(u32, usize)>,
}

/// A file from which on is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    file: u32,
    /// The file whose names it hands on; none where it is affected itself.
    of: Option<u32>,
}

impl Graph {
    /// The files that a change of some may matter for, at most `depth` steps away. That a file is declared to be a part of
    /// another one doesn't count, and of what only hands names on those are affected who use one of the names.
    #[must_use]
    pub fn impact(&self, snapshot: &Snapshot, changed: &[u32], depth: u32) -> Reach {
        Follow::new(self, snapshot).from(changed, depth).unwrap_or_else(|| self.depending(changed, depth))
    }
}

struct Follow<'a> {
    graph: &'a Graph,
    snapshot: &'a Snapshot,
    /// By a file's number in the snapshot.
    nodes: Vec<u32>,
    imports: HashMap<u32, Rc<Vec<Import>>>,
    users: HashMap<u32, Rc<Users>>,
    behind: HashMap<u32, Rc<Bits>>,
    renamed: HashMap<u32, Rc<Vec<Renamed>>>,
    named: HashMap<String, Rc<Named>>,
    handed: usize,
    affected: Bits,
    next: Vec<Step>,
    found: Vec<Reached>,
    seen: Bits,
    reach: Reach,
}

impl<'a> Follow<'a> {
    fn new(graph: &'a Graph, snapshot: &'a Snapshot) -> Self {
        let mut nodes = vec![u32::MAX; snapshot.file_numbers() as usize];
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
            users: HashMap::new(),
            behind: HashMap::new(),
            renamed: HashMap::new(),
            named: HashMap::new(),
            handed: 0,
            affected: Bits::default(),
            next: Vec::new(),
            found: Vec::new(),
            seen: Bits::default(),
            reach: Reach::default(),
        }
    }

    /// What is reached; nothing where that would take too long.
    fn from(mut self, changed: &[u32], depth: u32) -> Option<Reach> {
        let starts = changed.iter().copied().filter(|start| self.graph.node(*start).is_some());
        let mut level: Vec<Step> = starts.map(|file| Step { file, of: None }).collect();
        level.sort_unstable();
        level.dedup();
        for start in &level {
            self.affected.insert(start.file);
            self.seen.insert(start.file);
        }
        for distance in 1..=depth.min(MAX_STEPS) {
            for step in std::mem::take(&mut level) {
                match step.of {
                    None => self.affected_by(step.file, distance),
                    Some(of) => self.handed_on(step.file, of, distance),
                }
                if self.handed > MAX_HANDED {
                    return None;
                }
            }
            let mut found = std::mem::take(&mut self.found);
            found.sort_unstable_by_key(|found| found.file);
            let room = MAX_REACHED - self.reach.files.len();
            if found.len() > room {
                found.truncate(room);
                self.reach.cut = true;
            }
            self.reach.files.extend(found);
            level = std::mem::take(&mut self.next);
            level.sort_unstable();
            if level.is_empty() || self.reach.cut {
                break;
            }
        }
        Some(self.reach)
    }

    /// Goes on from a file that is affected itself, or was changed.
    fn affected_by(&mut self, file: u32, distance: u32) {
        let graph = self.graph;
        let back = graph.back(file).iter().filter(|edge| edge.depends());
        for edge in back {
            let users = self.users(file);
            let to = edge.to;
            let unnamed = self.lists(to, edge.line, &|name| name == UNNAMED);
            let itself = edge.line == 0 || users.unknown || unnamed || users.itself.contains(to);
            let hands_on = edge.line > 0 && !users.unknown && self.hands_on(to, &users);
            // What a changed file hands on may have changed with it.
            let counts = itself || !self.wants_another(to, file, distance > 1);
            if counts {
                self.reached(Reached { file: to, distance, from: file, of: None });
                if itself || !hands_on {
                    self.affect(to);
                }
            }
            if hands_on {
                self.hand(to, file, file);
            }
        }
    }

    /// Goes on from a file that hands on what another one defines.
    fn handed_on(&mut self, file: u32, of: u32, distance: u32) {
        let (graph, users) = (self.graph, self.users(of));
        let family = graph.node(of).and_then(|node| names::family(node.language));
        for edge in graph.back(file).iter().filter(|edge| edge.line > 0 && !edge.part) {
            self.handed += 1;
            let to = edge.to;
            if to == of || graph.node(to).and_then(|node| names::family(node.language)) != family {
                continue;
            }
            let all = users.itself.contains(to) && self.imports(to).iter().any(is_whole);
            // What needs it itself is gone on from as a file.
            let renamed = !users.itself.contains(file) && self.uses_renamed(to, file, &users);
            if all || renamed || users.by_name.contains(to) {
                self.reached(Reached { file: to, distance, from: file, of: Some(of) });
                if all || renamed || users.itself.contains(to) {
                    self.affect(to);
                }
            }
            if self.hands_on(to, &users) {
                self.hand(to, of, file);
            }
        }
    }

    fn reached(&mut self, found: Reached) {
        if !self.seen.contains(found.file) {
            self.seen.insert(found.file);
            self.found.push(found);
        }
    }

    fn affect(&mut self, file: u32) {
        if !self.affected.contains(file) {
            self.affected.insert(file);
            self.next.push(Step { file, of: None });
        }
    }

    fn hand(&mut self, file: u32, of: u32, from: u32) {
        if let hashbrown::hash_map::Entry::Vacant(place) = self.reach.handed.entry((file, of)) {
            place.insert(from);
            self.next.push(Step { file, of: Some(of) });
        }
    }

    fn imports(&mut self, file: u32) -> Rc<Vec<Import>> {
        let (graph, snapshot) = (self.graph, self.snapshot);
        let read = || {
            let view = snapshot.file(graph.node(file)?.file)?;
            Some(view.segment().imports(&view.record))
        };
        Rc::clone(self.imports.entry(file).or_insert_with(|| Rc::new(read().unwrap_or_default())))
    }

    /// Whether what a file brings in on a line has such a name.
    fn lists(&mut self, file: u32, line: u32, is: &dyn Fn(&str) -> bool) -> bool {
        let imports = self.imports(file);
        imports.iter().any(|import| import.line == line && import.names.iter().any(|name| is(name)))
    }

    /// Whether others can have by a file what another one defines.
    fn hands_on(&mut self, file: u32, users: &Users) -> bool {
        match self.graph.node(file).and_then(|node| node.language) {
            Some(
                Language::Rust
                | Language::Python
                | Language::JavaScript
                | Language::TypeScript
                | Language::Tsx,
            ) => {
                let lists = |import: &Import| import.names.iter().any(|name| users.names.contains(name));
                self.imports(file).iter().any(|import| is_whole(import) || lists(import))
            }
            Some(
                Language::C | Language::Cpp | Language::Ruby | Language::Php | Language::Lua | Language::Bash,
            ) => true,
            _ => false,
        }
    }

    /// Whether a file that uses nothing of another one imports it for the sake of something else: a file that the same
    /// line brings in, or, `behind` it, one that it imports.
    fn wants_another(&mut self, file: u32, other: u32, behind: bool) -> bool {
        let graph = self.graph;
        let line = graph.edge(file, other).map_or(0, |edge| edge.line);
        let wanted = |edge: &&Edge| edge.names > 0 && edge.to != other;
        if graph.edges(file).iter().filter(wanted).any(|edge| edge.line == line) {
            return true;
        }
        if !behind {
            return false;
        }
        let files = self.behind(other);
        graph.edges(file).iter().filter(wanted).any(|edge| edge.line == 0 && files.contains(edge.to))
    }

    /// The files that one imports, and those that these do.
    fn behind(&mut self, file: u32) -> Rc<Bits> {
        let graph = self.graph;
        let look = || {
            let (mut files, mut level, mut count) = (Bits::default(), vec![file], 0);
            for _ in 0..BEHIND {
                for here in std::mem::take(&mut level) {
                    for edge in graph.edges(here).iter().filter(|edge| edge.line > 0) {
                        if count < MAX_BEHIND && !files.contains(edge.to) {
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

    /// Who uses what a file defines.
    fn users(&mut self, file: u32) -> Rc<Users> {
        if let Some(known) = self.users.get(&file) {
            return Rc::clone(known);
        }
        let users = Rc::new(self.find_users(file).unwrap_or(Users { unknown: true, ..Users::default() }));
        self.users.insert(file, Rc::clone(&users));
        users
    }

    fn find_users(&mut self, file: u32) -> Option<Users> {
        let (graph, snapshot) = (self.graph, self.snapshot);
        let node = graph.node(file)?;
        let family = names::family(node.language)?;
        let view = snapshot.file(node.file).filter(|view| view.record.content == Content::Text)?;
        let first = view.record.first_symbol;
        let symbols = first..first.saturating_add(view.record.symbols);
        let mut defined: HashMap<String, Role> = HashMap::new();
        for symbol in symbols.filter_map(|symbol| view.segment().symbol(symbol)).filter(|one| !one.local) {
            let Some(role) = role(symbol.kind) else { continue };
            if let Some(outer) = symbol.own_scope.rsplit(['.', ':']).next().filter(|outer| !outer.is_empty())
            {
                let known = defined.entry(outer.to_owned()).or_insert(Role::Extended);
                *known = Role::Extended.max(*known);
            }
            let known = defined.entry(symbol.name).or_insert(role);
            *known = role.max(*known);
            if defined.len() > MAX_NAMES {
                return None;
            }
        }
        if defined.is_empty() {
            return None;
        }
        let mut users = Users::default();
        let own = defined.iter().filter(|(_, role)| **role != Role::Member).map(|(name, _)| name.clone());
        users.names.extend(own.chain([module(&node.path).to_owned()]));
        for (name, role) in &defined {
            let named = self.named(name);
            let others: Vec<u32> = named.definers.iter().copied().filter(|one| *one != file).collect();
            let comes_in = match role {
                Role::Member => others.is_empty(),
                // What is somebody else's type is used by everybody.
                Role::Extended if others.is_empty() => continue,
                Role::Extended | Role::Own => true,
            };
            for (user, lines) in named.users.iter().copied() {
                let other_family = |number: u32| {
                    graph.node(number).and_then(|node| names::family(node.language)) != Some(family)
                };
                if user == file || other_family(user) {
                    continue;
                }
                let means_another = || others.contains(&user) || self.imports_another(user, file, &others);
                if *role != Role::Extended && means_another() {
                    continue;
                }
                let imports = self.imports(user);
                let listed = imports.iter().filter(|import| import.names.contains(name)).count();
                if lines > listed {
                    users.itself.insert(user);
                }
                if comes_in {
                    users.by_name.insert(user);
                }
            }
        }
        Some(users)
    }

    /// Who defines a name and who uses it. Members of many types are called alike: each name is looked up once.
    fn named(&mut self, name: &str) -> Rc<Named> {
        if let Some(known) = self.named.get(name) {
            return Rc::clone(known);
        }
        let named = Rc::new(Named { definers: self.definers(name), users: self.uses(name) });
        self.named.insert(name.to_owned(), Rc::clone(&named));
        named
    }

    /// Files that define a name.
    fn definers(&self, name: &str) -> Vec<u32> {
        let mut others = Vec::new();
        self.snapshot.defined(name, |symbol| {
            if others.len() >= MAX_DEFINERS {
                return;
            }
            let Some((at, symbol)) = self.snapshot.symbol(symbol) else { return };
            let node = self.nodes.get(at as usize).copied().unwrap_or(u32::MAX);
            let defines = role(symbol.kind).is_some_and(|role| role != Role::Extended);
            if symbol.name == name && node != u32::MAX && defines {
                others.push(node);
            }
        });
        others.sort_unstable();
        others.dedup();
        others
    }

    /// The files that use a name, and in how many lines: `import a as a` is one.
    fn uses(&self, name: &str) -> Vec<(u32, usize)> {
        let mut uses: Vec<(u32, usize)> = Vec::new();
        let mut before = (u32::MAX, 0);
        self.snapshot.used(name, |file, line| {
            let node = self.nodes.get(file as usize).copied().unwrap_or(u32::MAX);
            if node == u32::MAX || before == (node, line) {
                return;
            }
            before = (node, line);
            match uses.last_mut().filter(|(last, _)| *last == node) {
                Some((_, lines)) => *lines += 1,
                None => uses.push((node, 1)),
            }
        });
        uses
    }

    /// Whether a name that others define too is one of theirs for a file: it imports one of them, and not this one.
    fn imports_another(&self, user: u32, file: u32, others: &[u32]) -> bool {
        let imports =
            |other: u32| self.graph.edge(user, other).is_some_and(|edge| edge.line > 0 && !edge.part);
        !others.is_empty() && !imports(file) && others.iter().any(|other| imports(*other))
    }

    /// Whether a file uses a name that another one gives to what it hands on, and that nothing is defined by.
    fn uses_renamed(&mut self, user: u32, file: u32, users: &Users) -> bool {
        let renamed = match self.renamed.get(&file) {
            Some(known) => Rc::clone(known),
            None => {
                let found = Rc::new(self.find_renamed(file).unwrap_or_default());
                self.renamed.insert(file, Rc::clone(&found));
                found
            }
        };
        let mut renamed = renamed
            .iter()
            .filter(|renamed| renamed.of.iter().any(|name| users.names.contains(name)))
            .peekable();
        if renamed.peek().is_none() {
            return false;
        }
        let view = self.graph.node(user).and_then(|node| self.snapshot.file(node.file));
        let used = view.map(|view| view.segment().names(&view.record)).unwrap_or_default();
        renamed.any(|renamed| used.contains(&renamed.name))
    }

    /// Names in a file's imports that they don't list, and that nothing is defined by.
    fn find_renamed(&mut self, file: u32) -> Option<Vec<Renamed>> {
        let imports = self.imports(file);
        let node = self.graph.node(file)?;
        let view = self.snapshot.file(node.file)?;
        let told = |name: &String| {
            imports.iter().any(|import| {
                import.names.contains(name) || import.target.split(['.', ':', '/']).any(|part| part == name)
            })
        };
        let mut renamed = Vec::new();
        for name in view.segment().names(&view.record).into_iter().filter(|name| !told(name)) {
            let mut is_defined = false;
            self.snapshot.defined(&name, |_| is_defined = true);
            let mut of: Vec<String> = Vec::new();
            if !is_defined {
                self.snapshot.used(&name, |at, line| {
                    if at != node.file {
                        return;
                    }
                    // The last one that begins before, as far as it can reach.
                    let before = imports.iter().filter(|import| import.line <= line);
                    let Some(from) = before.map(|import| import.line).max() else { return };
                    let reaches = |import: &&Import| {
                        let lines = u32::try_from(import.names.len()).unwrap_or(u32::MAX);
                        import.line == from && line <= from.saturating_add(lines)
                    };
                    of.extend(imports.iter().filter(reaches).flat_map(|import| import.names.iter().cloned()));
                });
            }
            if !of.is_empty() {
                renamed.push(Renamed { name, of });
            }
            if renamed.len() == MAX_RENAMED {
                break;
            }
        }
        Some(renamed)
    }
}

/// Whether all is brought in that there is.
fn is_whole(import: &Import) -> bool {
    import.names.iter().any(|name| name == ALL)
}

/// What a file is called as a module.
fn module(path: &str) -> &str {
    let name = last(path).split('.').next().unwrap_or_default();
    if matches!(name, "__init__" | "mod" | "index") { last(parent(path)) } else { name }
}

/// What a name is to those who use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// They have it by something else.
    Member,
    /// A type that has members here.
    Extended,
    /// They come in by it.
    Own,
}

/// What is so called; nothing where others can't name it.
pub(super) fn role(kind: Kind) -> Option<Role> {
    match kind {
        Kind::Function
        | Kind::Constant
        | Kind::Macro
        | Kind::Variable
        | Kind::Class
        | Kind::Struct
        | Kind::Enum
        | Kind::Interface
        | Kind::Trait
        | Kind::Type
        | Kind::Module => Some(Role::Own),
        Kind::Impl => Some(Role::Extended),
        Kind::Method | Kind::Constructor | Kind::Variant | Kind::Field | Kind::Property => Some(Role::Member),
        _ => None,
    }
}
