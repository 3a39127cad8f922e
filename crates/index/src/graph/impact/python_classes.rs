//! Rules for Python: the bases of a class, read from its signature, the tests of its members, and
//! the uses that may refer to a name.

use journeyman_syntax::language::Language;
use journeyman_syntax::outline::SymbolKind;

use super::symbols::{Symbol, Symbols};
use super::test_paths::TestRule;
use super::visibility::{ImpactCache, module_name};
use crate::analysis::UseKind;
use crate::graph::name_dependencies::{NameRole, is_distinctive_name, is_type, role_of_kind};

/// Bases in Python's standard library that only call methods whose names are enclosed in
/// underscores.
const DUNDER_ONLY_BASES: [&str; 26] = [
    "ABC",
    "BaseException",
    "Enum",
    "Exception",
    "Flag",
    "Generic",
    "IntEnum",
    "IntFlag",
    "NamedTuple",
    "Protocol",
    "StrEnum",
    "TypedDict",
    "bytearray",
    "bytes",
    "complex",
    "dict",
    "float",
    "frozenset",
    "int",
    "list",
    "object",
    "property",
    "set",
    "str",
    "tuple",
    "type",
];
/// Ends of the names of Python's own exceptions.
const EXCEPTION_NAME_ENDINGS: [&str; 2] = ["Error", "Warning"];

/// Maximum uses of a member's name: more frequent names are too common.
const MAX_MEMBER_USES: usize = 10_000;

/// Maximum steps from a class to its furthest base; the bases beyond count as foreign.
const MAX_BASE_STEPS: u32 = 50;

/// The kinds of uses of members.
const MEMBER_KINDS: &[UseKind] = &[UseKind::Member, UseKind::ValueMember];

/// Returns the kinds of uses in Python that may mean a symbol: members are only used after a dot,
/// entries alone or after the name of a module.
pub(super) fn use_kinds_of_symbol(kind: SymbolKind, is_in_type: bool) -> &'static [UseKind] {
    match role_of_kind(kind) {
        Some(NameRole::Member) => MEMBER_KINDS,
        Some(NameRole::Own) if !is_in_type && is_type(kind) => {
            &[UseKind::Plain, UseKind::Annotation, UseKind::Member]
        }
        Some(NameRole::Own) if !is_in_type => &[UseKind::Plain, UseKind::Member],
        _ => &UseKind::ALL,
    }
}

impl ImpactCache<'_> {
    /// Returns the rule for the tests of a symbol.
    pub(super) fn test_rule_of_symbol(&mut self, file: u32, symbols: &Symbols, own: u32) -> TestRule {
        let (Some(symbol), Some((Some(owner), _))) = (symbols.get(own), symbols.owner_of(own)) else {
            return TestRule::Either;
        };
        if !self.is_python(file) || role_of_kind(symbol.kind) != Some(NameRole::Member) {
            return TestRule::Either;
        }
        let is_implicit = symbol.name.starts_with('_') && symbol.name.ends_with('_');
        if is_implicit || !is_distinctive_name(&symbol.name) || !self.has_only_project_bases(file, owner) {
            return TestRule::OfType;
        }
        let named = self.definers_and_users(&symbol.name);
        let uses = named.users.iter().flat_map(|(user, lines)| lines.iter().map(move |line| (*user, *line)));
        let uses = uses.filter(|(user, line)| *user != file || !symbol.contains(*line));
        match uses.filter(|(user, line)| named.is_used_as(*user, *line, MEMBER_KINDS)).count() {
            1..=MAX_MEMBER_USES => TestRule::Both,
            _ => TestRule::OfType,
        }
    }

    /// Returns true if the project's own code creates values of a type by its name. Then the uses
    /// of the type in annotations and checks don't matter for the tests of its members.
    pub(super) fn is_instantiated_by_name(&mut self, file: u32, symbol: &Symbol, own: u32) -> bool {
        if !self.is_python(file) || !self.has_only_project_bases(file, own) {
            return false;
        }
        let named = self.definers_and_users(&symbol.name);
        named.users.iter().any(|(user, lines)| {
            let uses = lines
                .iter()
                .copied()
                .filter(|line| named.is_used_as(*user, *line, &UseKind::ALL_BUT_ANNOTATION));
            let uses: Vec<u32> = uses.filter(|line| *user != file || !symbol.contains(*line)).collect();
            !uses.is_empty() && self.import_lines_of_name(*user, &symbol.name, &uses).len() < uses.len()
        })
    }

    /// Returns the variables that a line of a file's load-time code works with.
    pub(super) fn variables_used_at(&mut self, file: u32, line: u32, symbols: &Symbols) -> Vec<u32> {
        let variables = symbols.iter().filter(|(own, symbol)| {
            matches!(symbol.kind, SymbolKind::Variable | SymbolKind::Constant) && symbols.is_usable(*own)
        });
        let mut is_used =
            |name: &str| self.definers_and_users(name).use_lines(file).binary_search(&line).is_ok();
        variables.filter(|(_, symbol)| is_used(&symbol.name)).map(|(own, _)| own).collect()
    }

    /// Returns true for a function that Python calls for each use of a module: `__getattr__`.
    pub(super) fn is_module_hook(&self, file: u32, symbols: &Symbols, own: u32) -> bool {
        symbols.get(own).is_some_and(|symbol| {
            symbol.kind == SymbolKind::Function
                && symbol.name.starts_with("__")
                && symbol.name.ends_with("__")
        }) && self.is_python(file)
    }

    fn is_python(&self, file: u32) -> bool {
        self.graph.node(file).is_some_and(|node| node.language == Some(Language::Python))
    }

    /// Returns the kinds of uses by which a file may refer to a name of another file, out of those
    /// possible in Python.
    pub(super) fn use_kinds_of_name(
        &mut self,
        kinds: &'static [UseKind],
        user: u32,
        file: u32,
        name: &str,
    ) -> &'static [UseKind] {
        if !self.is_python(user) {
            &UseKind::ALL
        } else if user == file && kinds == MEMBER_KINDS {
            // A class's own lines use its members without a dot.
            &UseKind::ALL_BUT_ANNOTATION
        } else if user != file && self.imports_module(user, file, name) {
            &[UseKind::Member]
        } else {
            kinds
        }
    }

    /// Returns true if a file imports a name, or a module of this name, from the project.
    fn imports_from_project(&mut self, file: u32, name: &str) -> bool {
        let imports = self.imports_of(file);
        let mut named = imports.iter().filter(|import| {
            import.names.iter().any(|listed| listed == name)
                || import.names.is_empty() && import.target.split('.').next() == Some(name)
        });
        named.any(|import| self.graph.edges(file).iter().any(|edge| edge.line == import.line))
    }

    /// Returns true if a file imports another one as a module by a name: `from . import cli`.
    fn imports_module(&mut self, user: u32, file: u32, name: &str) -> bool {
        if module_name(self.graph.path(file)) != name {
            return false;
        }
        let line = self.graph.edge(user, file).map_or(0, |edge| edge.line);
        self.imports_of(user).iter().any(|import| {
            import.line == line
                && import.names.iter().any(|listed| listed == name)
                && import.target.rsplit('.').next() != Some(name)
        })
    }

    /// Returns true if only the project's code calls a type's methods: all its bases, also indirect
    /// ones, are in the project, or call no methods.
    pub(super) fn has_only_project_bases(&mut self, file: u32, own: u32) -> bool {
        self.has_only_project_bases_within(file, own, MAX_BASE_STEPS)
    }

    fn has_only_project_bases_within(&mut self, file: u32, own: u32, steps: u32) -> bool {
        let Some(steps) = steps.checked_sub(1) else { return false };
        if let Some(known) = self.own_bases.get(&(file, own)) {
            return *known;
        }
        // Types that are each other's bases add nothing.
        self.own_bases.insert((file, own), true);
        let symbols = self.symbols_of(file);
        let bases = symbols
            .as_ref()
            .and_then(|symbols| symbols.get(own))
            .and_then(|symbol| base_names(&symbol.signature, &symbol.name));
        let is_own =
            bases.is_some_and(|bases| bases.iter().all(|base| self.is_project_base(file, own, base, steps)));
        self.own_bases.insert((file, own), is_own);
        is_own
    }

    fn is_project_base(&mut self, file: u32, own: u32, base: &str, steps: u32) -> bool {
        let (module, name) = base.rsplit_once('.').unwrap_or(("", base));
        let mut definers = self.definers_and_users(name).definers.clone();
        if module.is_empty() && definers.is_empty() {
            let aliases = self.alias_names(file);
            let mut meant = aliases.iter().filter(|alias| alias.name == name).flat_map(|alias| &alias.of);
            let is_alias = aliases.iter().any(|alias| alias.name == name);
            return if is_alias {
                meant.all(|name| self.is_imported_project_base(file, own, name, steps))
            } else {
                self.is_dunder_only_base(file, base)
            };
        }
        if module.is_empty() && definers.contains(&file) {
            definers = vec![file];
        } else if !module.is_empty() {
            let is_project = self.imports_from_project(file, module.split('.').next().unwrap_or(module));
            definers.retain(|definer| is_project && *definer != file);
        }
        self.types_have_only_project_bases((file, own), name, definers, steps)
            .unwrap_or_else(|| self.is_dunder_only_base(file, base))
    }

    /// Returns true if a base that a file imports under another name is in the project.
    fn is_imported_project_base(&mut self, file: u32, own: u32, name: &str, steps: u32) -> bool {
        let mut definers = self.definers_and_users(name).definers.clone();
        definers.retain(|definer| *definer != file);
        self.imports_from_project(file, name)
            && self.types_have_only_project_bases((file, own), name, definers, steps).unwrap_or(false)
    }

    /// Returns true if all types of a name that a type's file sees have only bases in the project;
    /// `None` if it sees none.
    fn types_have_only_project_bases(
        &mut self,
        (file, own): (u32, u32),
        name: &str,
        mut definers: Vec<u32>,
        steps: u32,
    ) -> Option<bool> {
        definers.retain(|definer| {
            *definer == file || self.name_viewers_of(*definer).reexporter_for(file).is_some()
        });
        let mut types = Vec::new();
        for definer in definers {
            let symbols = self.symbols_of(definer);
            let called = symbols.iter().flat_map(|symbols| symbols.types_named(name));
            types.extend(called.map(|own| (definer, own)));
        }
        types.retain(|found| *found != (file, own));
        let are_own =
            || types.iter().all(|(definer, own)| self.has_only_project_bases_within(*definer, *own, steps));
        (!types.is_empty()).then(are_own)
    }

    /// Returns true for a base in Python's standard library that calls no method.
    fn is_dunder_only_base(&mut self, file: u32, base: &str) -> bool {
        let name = base.rsplit('.').next().unwrap_or(base);
        DUNDER_ONLY_BASES.contains(&name)
            || base == name
                && EXCEPTION_NAME_ENDINGS.iter().any(|end| name.ends_with(end))
                && !self.imports_of(file).iter().any(|import| import.names.iter().any(|one| one == name))
    }
}

/// Returns the bases in the signature of a Python class; `None` if one of them isn't a name, or
/// the signature is cut off.
fn base_names<'a>(signature: &'a str, name: &str) -> Option<Vec<&'a str>> {
    let (_, rest) = signature.split_once(&format!("class {name}"))?;
    let rest = rest.trim_start();
    if rest.is_empty() {
        return Some(Vec::new());
    }
    let list = rest.find(['(']).and_then(|at| rest.get(at + 1..))?.strip_suffix(')')?;
    let (mut depth, mut start, mut arguments) = (0_usize, 0, Vec::new());
    for (at, letter) in list.char_indices() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                arguments.push(list.get(start..at)?);
                start = at + 1;
            }
            _ => {}
        }
    }
    arguments.push(list.get(start..)?);
    let mut bases = Vec::new();
    for argument in arguments.into_iter().map(str::trim).filter(|argument| !argument.is_empty()) {
        let (base, parameters) = argument.split_once('[').unwrap_or((argument, "]"));
        let is_name = |text: &str| text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
        if is_name(base) && parameters.ends_with(']') {
            bases.push(base);
        } else if !is_keyword_argument(argument) {
            return None;
        }
    }
    Some(bases)
}

/// Returns true for `metaclass=Meta`.
fn is_keyword_argument(argument: &str) -> bool {
    let name = argument.split_once('=').map(|(name, _)| name.trim());
    name.is_some_and(|name| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bases_are_read_from_signatures() {
        for (signature, bases) in [
            ("class Till", Some(&[][..])),
            ("class Till()", Some(&[])),
            ("class Till(Box, shop.Door, metaclass=Meta)", Some(&["Box", "shop.Door"])),
            ("@final class Till(Box, Generic[K, list[V]], total=f(1, 2),)", Some(&["Box", "Generic"])),
            ("class Till[T](Box[T])", Some(&["Box"])),
            ("class Till(make_base(1))", None),
            ("class Till(*bases)", None),
            ("class Till(First, Second,", None),
        ] {
            assert_eq!(base_names(signature, "Till").as_deref(), bases, "{signature}");
        }
    }
}
