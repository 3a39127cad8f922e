//! Which names make files depend on each other: what is defined where, and who may mean it.
//!
//! A name is a number here. A file's names that it uses and doesn't define itself are looked for among what others of
//! its family of languages define: in what it imports; else, where a folder is a package or names are everybody's, in
//! its folder; else, for tests of Python, among pytest's fixtures; else in the whole project, if one file alone defines it
//! and the name is brought in by an import, or is one that nobody else would give.

use journeyman_syntax::language::Language;
use journeyman_syntax::outline::Kind;

use super::resolve::{last, parent};
use super::{Edge, Node};
use crate::facts::Visibility;
use crate::segment::SymbolRecord;

/// A name that more files define tells nothing.
pub(super) const MAX_DEFINERS: usize = 64;
/// What one name weighs, divided by the files that can be meant by it.
pub const WHOLE: u32 = 256;
/// The same where the file isn't imported and only the name says so.
const ALONE: u32 = WHOLE / 2;
/// Other files that one depends on by names, the heaviest: what uses more is a list of everything.
const MAX_LINKS: usize = 400;
/// Letters of a name of one word that nobody else would give by chance.
const LONG: usize = 10;
/// Letters of a name that counts at all: shorter ones are variables.
const SHORT: usize = 3;

/// What pytest calls the file whose fixtures all tests beside and beneath it have.
const FIXTURES: &str = "conftest.py";

/// Where a name is defined: the name's number, of which the lowest bit says that it may stand alone, and the file.
pub(super) type Row = (u64, u32);

/// A name that is used: its number, and where the rows of its definitions begin.
pub(super) type Used = (u64, u32);

/// Where a name's definitions are; nothing where nobody defines it, or so many do that it tells nothing.
pub(super) fn used(name: u64, rows: &[Row]) -> Option<Used> {
    let from = rows.partition_point(|row| row.0 & !1 < name);
    let here = |at: usize| rows.get(at).is_some_and(|row| row.0 & !1 == name);
    (here(from) && !here(from + MAX_DEFINERS)).then_some((name, u32::try_from(from).ok()?))
}

/// FNV-1a of 64 bits without the lowest one. Two names of one number make one edge too many.
pub(super) fn number(name: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    name.iter().fold(0xcbf2_9ce4_8422_2325, step) & !1
}

/// Languages whose files can use each other's names.
pub(super) fn family(language: Option<Language>) -> Option<u8> {
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

/// Whether files of one folder see each other's names without an import.
fn shares_folder(language: Option<Language>) -> bool {
    !matches!(
        language,
        None | Some(
            Language::Rust | Language::Python | Language::JavaScript | Language::TypeScript | Language::Tsx
        )
    )
}

/// Whether pytest gives a file's fixtures to the tests of a folder.
fn gives_to(path: &str, folder: &str) -> bool {
    let outer = parent(path);
    last(path) == FIXTURES
        && (outer.is_empty()
            || folder.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

/// What a file's definitions are looked for by, each name once, sorted.
pub(super) fn definitions(symbols: impl Iterator<Item = SymbolRecord>) -> Vec<u64> {
    let mut names: Vec<u64> = symbols.filter_map(|symbol| defined(&symbol)).collect();
    // Of one name, that which may stand alone is the later one: it stays.
    names.sort_unstable_by_key(|name| std::cmp::Reverse(*name));
    names.dedup_by_key(|name| *name & !1);
    names.reverse();
    names
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
        Kind::Impl => Some(Role::Extended),
        Kind::Function | Kind::Constant | Kind::Macro | Kind::Variable | Kind::Module => Some(Role::Own),
        _ if is_type(kind) => Some(Role::Own),
        Kind::Method | Kind::Constructor | Kind::Variant | Kind::Field | Kind::Property => Some(Role::Member),
        _ => None,
    }
}

/// Whether it has members.
pub(super) fn is_type(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Class | Kind::Struct | Kind::Enum | Kind::Interface | Kind::Trait | Kind::Type | Kind::Impl
    )
}

/// Whether a name is one that counts.
pub(super) fn is_name(name: &str) -> bool {
    name.len() >= SHORT
}

/// Whether others can mean a definition by its name.
pub(super) fn counts(symbol: &SymbolRecord) -> bool {
    defined(symbol).is_some()
}

/// What a definition is looked for by; nothing where nobody elsewhere can mean it.
fn defined(symbol: &SymbolRecord) -> Option<u64> {
    let name = symbol.name.as_str();
    if symbol.local || !is_name(name) {
        return None;
    }
    let lone = match role(symbol.kind)? {
        Role::Own if symbol.kind != Kind::Module => is_rare(name),
        // They belong to a type, and many types have one of the name.
        Role::Member if !matches!(symbol.kind, Kind::Field | Kind::Property) => false,
        _ => return None,
    };
    let lone = lone && matches!(symbol.visibility, Visibility::Public | Visibility::Unknown);
    Some(number(name.as_bytes()) | u64::from(lone))
}

/// Of two words or more, or long.
fn is_rare(name: &str) -> bool {
    let inner = name.trim_matches('_');
    inner.len() >= LONG
        || inner.contains('_')
        || inner.as_bytes().windows(2).any(|pair| {
            matches!(pair, [before, after] if before.is_ascii_lowercase() && after.is_ascii_uppercase())
        })
}

/// What a file brings in: the files that it imports and the names that are listed there, both sorted.
pub(super) struct Brought<'a> {
    pub(super) files: &'a [u32],
    pub(super) names: &'a [u64],
}

/// The files that one depends on by the names it uses, by number.
pub(super) fn links(
    own: u32,
    used: &[Used],
    rows: &[Row],
    nodes: &[Node],
    brought: &Brought<'_>,
) -> Vec<Edge> {
    let Some(node) = nodes.get(own as usize) else { return Vec::new() };
    let Some(family) = family(node.language) else { return Vec::new() };
    let folder = parent(&node.path);
    let mut weights: std::collections::BTreeMap<u32, u32> = std::collections::BTreeMap::new();
    let mut files: Vec<(u32, bool)> = Vec::new();
    for (name, from) in used {
        files.clear();
        let here = rows.get(*from as usize..).unwrap_or_default();
        let same = here.iter().take_while(|row| row.0 & !1 == *name);
        files.extend(same.map(|(name, file)| (*file, name & 1 == 1)));
        if files.iter().any(|(file, _)| *file == own) {
            continue;
        }
        files.retain(|(file, _)| {
            nodes.get(*file as usize).is_some_and(|other| self::family(other.language) == Some(family))
        });
        let mut meant: Vec<u32> = files
            .iter()
            .map(|(file, _)| *file)
            .filter(|file| brought.files.binary_search(file).is_ok())
            .collect();
        if meant.is_empty() && shares_folder(node.language) {
            let beside =
                |file: &u32| nodes.get(*file as usize).is_some_and(|other| parent(&other.path) == folder);
            meant = files.iter().map(|(file, _)| *file).filter(beside).collect();
        }
        if meant.is_empty() && node.language == Some(Language::Python) && node.flags.test {
            let given =
                |file: &u32| nodes.get(*file as usize).is_some_and(|other| gives_to(&other.path, folder));
            meant = files.iter().map(|(file, _)| *file).filter(given).collect();
        }
        let mut weight = WHOLE;
        if let ([], [(file, rare)]) = (meant.as_slice(), files.as_slice())
            && (*rare || brought.names.binary_search(name).is_ok())
        {
            meant.push(*file);
            weight = ALONE;
        }
        let share = weight / u32::try_from(meant.len()).unwrap_or(u32::MAX).max(1);
        for file in meant {
            let sum = weights.entry(file).or_insert(0);
            *sum = sum.saturating_add(share);
        }
    }
    let mut links: Vec<Edge> =
        weights.into_iter().map(|(to, names)| Edge { to, names, ..Edge::default() }).collect();
    if links.len() > MAX_LINKS {
        links.sort_by_key(|link| (std::cmp::Reverse(link.names), link.to));
        links.truncate(MAX_LINKS);
        links.sort_by_key(|link| link.to);
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixtures_are_given_to_what_lies_beneath() {
        assert!(gives_to("conftest.py", "") && gives_to("conftest.py", "a/b"));
        assert!(gives_to("a/conftest.py", "a") && gives_to("a/conftest.py", "a/b"));
        assert!(
            !gives_to("a/conftest.py", "ab") && !gives_to("a/conftest.py", "") && !gives_to("a/x.py", "a")
        );
    }

    #[test]
    fn names_that_nobody_gives_by_chance() {
        for (name, rare) in [
            ("open", false),
            ("parse", false),
            ("_main", false),
            ("parse_header", true),
            ("parseHeader", true),
            ("initialise", true),
            ("HTTP", false),
        ] {
            assert_eq!(is_rare(name), rare, "{name}");
        }
    }
}
