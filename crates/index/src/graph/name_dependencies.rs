//! Dependencies by names: the definitions of names, and the files that may mean them.
//!
//! A name is a number here. The names that a file uses and doesn't define are looked up among the
//! definitions of other files of its family of languages: in the files that it imports; otherwise,
//! where a folder is a package or names are global, in its folder; otherwise, for tests of Python,
//! among pytest's fixtures; otherwise in the whole project, if a single file defines the name and
//! an import brings it in, or it is distinctive.

use journeyman_syntax::language::Language;
use journeyman_syntax::outline::SymbolKind;

use super::folder_scopes::{is_folder_a_scope, sees_other_folder};
use super::resolve::{last_part, parent};
use super::{Edge, Node, UNIQUE_NAME_WEIGHT};
use crate::analysis::Visibility;
use crate::segment::SymbolRecord;

/// Maximum definers of a name: beyond that it says nothing.
pub(super) const MAX_DEFINERS: usize = 64;
/// Weight of a name if its file isn't imported.
const NAME_WEIGHT_WITHOUT_IMPORT: u32 = UNIQUE_NAME_WEIGHT / 2;
/// Maximum dependencies of a file by names, the heaviest: a file with more is a list of everything.
const MAX_NAME_DEPENDENCIES: usize = 400;
/// Minimum letters of a distinctive name of one word.
const MIN_DISTINCTIVE_LETTERS: usize = 10;
/// Minimum letters of a name that counts: shorter ones are variables.
const MIN_NAME_LETTERS: usize = 3;

/// Name of the file with pytest's fixtures for all tests beside and beneath it.
const FIXTURES_FILE: &str = "conftest.py";

/// A definition: the name's number, whose lowest bits are the reach of the name, and the file.
pub(super) type DefinitionRow = (u64, u32);

/// The lowest bits of a definition's key.
const REACH_BITS: u64 = 3;
/// Bits of a name that only its own file can mean.
const REACH_OWN_FILE: u64 = 0;
/// Bits of a private name that files which import its file may mean, such as a `static inline`
/// function of a header.
const REACH_IMPORTERS: u64 = 1;
/// Bits of other names: files of the same folder may mean it as well, if the language allows.
const REACH_FOLDER: u64 = 2;
/// Bits of a name that any file may mean.
const REACH_ANY: u64 = 3;

/// Returns the number of the name of a definition's key.
pub(super) fn name_of_key(key: u64) -> u64 {
    key & !REACH_BITS
}

/// A used name: its number, and the start of its definitions' rows.
pub(super) type UsedName = (u64, u32);

/// Finds a name's definitions; `None` where there are none, or too many to say anything.
pub(super) fn find_used_name(name: u64, rows: &[DefinitionRow]) -> Option<UsedName> {
    let from = rows.partition_point(|row| name_of_key(row.0) < name);
    let here = |at: usize| rows.get(at).is_some_and(|row| name_of_key(row.0) == name);
    (here(from) && !here(from + MAX_DEFINERS)).then_some((name, u32::try_from(from).ok()?))
}

/// FNV-1a of 64 bits without the lowest two. A collision only adds an edge.
pub(super) fn hash_name(name: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    name_of_key(name.iter().fold(0xcbf2_9ce4_8422_2325, step))
}

/// A family of languages whose files can use each other's names.
pub(super) fn language_family(language: Option<Language>) -> Option<u8> {
    Some(match language? {
        Language::Rust => 1,
        Language::Python => 2,
        Language::JavaScript | Language::TypeScript | Language::Tsx => 3,
        Language::Go => 4,
        Language::Java | Language::Kotlin | Language::Scala => 5,
        Language::C | Language::Cpp => 6,
        Language::CSharp => 7,
        Language::Ruby => 8,
        Language::Php => 9,
        Language::Swift => 10,
        Language::Lua => 11,
        Language::Bash => 12,
        _ => return None,
    })
}

/// Returns the definers that a file sees without an import: those in its folder, or else those in
/// folders that it sees.
fn definers_beside(node: &Node, definers: &[(u32, u64)], nodes: &[Node]) -> Vec<u32> {
    let folder = parent(&node.path);
    let of = |is_seen: &dyn Fn(&str) -> bool| -> Vec<u32> {
        let seen = definers.iter().map(|(file, _)| *file);
        seen.filter(|file| nodes.get(*file as usize).is_some_and(|other| is_seen(parent(&other.path))))
            .collect()
    };
    let own = of(&|other| other == folder);
    match node.language {
        Some(language) if own.is_empty() => of(&|other| sees_other_folder(language, folder, other)),
        _ => own,
    }
}

/// Returns true if pytest offers a file's fixtures to the tests of a folder.
fn offers_fixtures_to(path: &str, folder: &str) -> bool {
    let outer = parent(path);
    last_part(path) == FIXTURES_FILE
        && (outer.is_empty()
            || folder.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

/// Returns the keys of a file's definitions, each name once, sorted.
pub(super) fn definition_keys(
    symbols: impl Iterator<Item = SymbolRecord>,
    language: Option<Language>,
) -> Vec<u64> {
    let mut names: Vec<u64> = symbols.filter_map(|symbol| key_of_definition(&symbol, language)).collect();
    // Of one name, the definition with the widest reach stays.
    names.sort_unstable_by_key(|name| std::cmp::Reverse(*name));
    names.dedup_by_key(|name| name_of_key(*name));
    names.reverse();
    names
}

/// The role of a name for its users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NameRole {
    /// A member: users get it from something else.
    Member,
    /// A type with members here.
    Extended,
    /// An entry: users import it by name.
    Own,
}

/// Returns the role of a kind; `None` if other files can't use it by name.
pub(super) fn role_of_kind(kind: SymbolKind) -> Option<NameRole> {
    match kind {
        SymbolKind::Impl => Some(NameRole::Extended),
        SymbolKind::Function
        | SymbolKind::Constant
        | SymbolKind::Macro
        | SymbolKind::Variable
        | SymbolKind::Module => Some(NameRole::Own),
        _ if is_type(kind) => Some(NameRole::Own),
        SymbolKind::Method
        | SymbolKind::Constructor
        | SymbolKind::Variant
        | SymbolKind::Field
        | SymbolKind::Property => Some(NameRole::Member),
        _ => None,
    }
}

/// Returns true for kinds with members.
pub(super) fn is_type(kind: SymbolKind) -> bool {
    matches!(
        kind,
        SymbolKind::Class
            | SymbolKind::Struct
            | SymbolKind::Enum
            | SymbolKind::Interface
            | SymbolKind::Trait
            | SymbolKind::Type
            | SymbolKind::Impl
    )
}

/// Returns true for names that count.
pub(super) fn is_counted_name(name: &str) -> bool {
    name.len() >= MIN_NAME_LETTERS
}

/// Returns true if other files can use a definition by its name.
pub(super) fn is_usable_by_name(symbol: &SymbolRecord, language: Option<Language>) -> bool {
    key_of_definition(symbol, language).is_some_and(|key| key & REACH_BITS != REACH_OWN_FILE)
}

/// Returns the key of a definition; `None` if no other file can use it.
fn key_of_definition(symbol: &SymbolRecord, language: Option<Language>) -> Option<u64> {
    let name = symbol.name.as_str();
    if symbol.local || !is_counted_name(name) {
        return None;
    }
    let lone = match role_of_kind(symbol.kind)? {
        // Any file of Ruby sees them, mostly because they are loaded by name.
        NameRole::Own if language == Some(Language::Ruby) && is_constant_of_ruby(symbol.kind) => true,
        NameRole::Own if symbol.kind != SymbolKind::Module => is_distinctive_name(name),
        // A member: many types have one of the same name.
        NameRole::Member if !matches!(symbol.kind, SymbolKind::Field | SymbolKind::Property) => false,
        _ => return None,
    };
    let reach = match symbol.visibility {
        Visibility::Private if is_hidden_if_private(language) => REACH_OWN_FILE,
        Visibility::Private => REACH_IMPORTERS,
        Visibility::Public | Visibility::Unknown if lone => REACH_ANY,
        Visibility::Public | Visibility::Unknown | Visibility::Restricted => REACH_FOLDER,
    };
    Some(hash_name(name.as_bytes()) | reach)
}

fn is_constant_of_ruby(kind: SymbolKind) -> bool {
    kind == SymbolKind::Module || is_type(kind)
}

/// Returns true for languages in which no other file can use a private name, whatever it imports.
fn is_hidden_if_private(language: Option<Language>) -> bool {
    matches!(
        language,
        Some(
            Language::JavaScript
                | Language::TypeScript
                | Language::Tsx
                | Language::Java
                | Language::Kotlin
                | Language::Scala
                | Language::Swift
                | Language::Php
        )
    )
}

/// Returns true for names of two words or more, or long ones.
pub(super) fn is_distinctive_name(name: &str) -> bool {
    let inner = name.trim_matches('_');
    inner.len() >= MIN_DISTINCTIVE_LETTERS
        || inner.contains('_')
        || inner.as_bytes().windows(2).any(|pair| {
            matches!(pair, [before, after] if before.is_ascii_lowercase() && after.is_ascii_uppercase())
        })
}

/// The imports of a file: the imported files and the listed names, both sorted.
pub(super) struct FileImports<'a> {
    pub(super) files: &'a [u32],
    pub(super) names: &'a [u64],
}

/// Returns a file's dependencies by the names that it uses, by number.
pub(super) fn links_by_names(
    own: u32,
    used: &[UsedName],
    rows: &[DefinitionRow],
    nodes: &[Node],
    brought: &FileImports<'_>,
) -> Vec<Edge> {
    let Some(node) = nodes.get(own as usize) else { return Vec::new() };
    let Some(family) = language_family(node.language) else { return Vec::new() };
    let folder = parent(&node.path);
    let mut weights: std::collections::BTreeMap<u32, u32> = std::collections::BTreeMap::new();
    // Files that define a name, with the reach of the definition.
    let mut files: Vec<(u32, u64)> = Vec::new();
    for (name, from) in used {
        files.clear();
        let here = rows.get(*from as usize..).unwrap_or_default();
        let same = here.iter().take_while(|row| name_of_key(row.0) == *name);
        files.extend(same.map(|(key, file)| (*file, key & REACH_BITS)));
        if files.iter().any(|(file, _)| *file == own) {
            continue;
        }
        files.retain(|(file, reach)| {
            *reach != REACH_OWN_FILE
                && nodes
                    .get(*file as usize)
                    .is_some_and(|other| self::language_family(other.language) == Some(family))
        });
        let mut meant: Vec<u32> = files
            .iter()
            .map(|(file, _)| *file)
            .filter(|file| brought.files.binary_search(file).is_ok())
            .collect();
        files.retain(|(_, reach)| *reach != REACH_IMPORTERS);
        if meant.is_empty() && is_folder_a_scope(node.language) {
            meant = definers_beside(node, &files, nodes);
        }
        if meant.is_empty() && node.language == Some(Language::Python) && node.flags.test {
            let given = |file: &u32| {
                nodes.get(*file as usize).is_some_and(|other| offers_fixtures_to(&other.path, folder))
            };
            meant = files.iter().map(|(file, _)| *file).filter(given).collect();
        }
        let mut weight = UNIQUE_NAME_WEIGHT;
        if let ([], [(file, reach)]) = (meant.as_slice(), files.as_slice())
            && (*reach == REACH_ANY || brought.names.binary_search(name).is_ok())
        {
            meant.push(*file);
            weight = NAME_WEIGHT_WITHOUT_IMPORT;
        }
        let share = weight / u32::try_from(meant.len()).unwrap_or(u32::MAX).max(1);
        for file in meant {
            let sum = weights.entry(file).or_insert(0);
            *sum = sum.saturating_add(share);
        }
    }
    let mut links: Vec<Edge> =
        weights.into_iter().map(|(to, names)| Edge { to, names, ..Edge::default() }).collect();
    if links.len() > MAX_NAME_DEPENDENCIES {
        links.sort_by_key(|link| (std::cmp::Reverse(link.names), link.to));
        links.truncate(MAX_NAME_DEPENDENCIES);
        links.sort_by_key(|link| link.to);
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixtures_apply_beneath_their_folder() {
        assert!(offers_fixtures_to("conftest.py", "") && offers_fixtures_to("conftest.py", "a/b"));
        assert!(offers_fixtures_to("a/conftest.py", "a") && offers_fixtures_to("a/conftest.py", "a/b"));
        assert!(
            !offers_fixtures_to("a/conftest.py", "ab")
                && !offers_fixtures_to("a/conftest.py", "")
                && !offers_fixtures_to("a/x.py", "a")
        );
    }

    #[test]
    fn distinctive_names() {
        for (name, rare) in [
            ("open", false),
            ("parse", false),
            ("_main", false),
            ("parse_header", true),
            ("parseHeader", true),
            ("initialise", true),
            ("HTTP", false),
        ] {
            assert_eq!(is_distinctive_name(name), rare, "{name}");
        }
    }
}
