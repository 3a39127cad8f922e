//! Names that are legal here but cause problems on other systems.
//!
//! Any legal name works. A project that is checked out on Windows or macOS too can't have some of
//! them, and the problem is noticed only there; so creating such a name is reported.

use std::collections::HashMap;
use std::fmt;

use journeyman_protocol::{FileChange, FileChangeKind, RelPath};
use rustix::fs::{Dir, OFlags};

use crate::files::root_dir::{LinkPolicy, RootDir};
use crate::limits;

/// Names that Windows takes for devices, with any extension.
const DEVICE_NAMES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];
/// Names that Windows takes for devices when followed by a digit from 1 to 9, or one of the
/// superscripts ¹²³.
const NUMBERED_DEVICES: [&str; 2] = ["com", "lpt"];
/// Characters that Windows has in no name.
const FORBIDDEN_CHARS: [char; 8] = ['<', '>', ':', '"', '\\', '|', '?', '*'];

/// A problem that a name makes on other systems.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameTrouble {
    /// Windows takes it for a device.
    Reserved,
    /// Windows drops the dot or space at its end.
    Ending,
    /// Windows has no such character in names.
    Character(char),
    /// The name isn't UTF-8: macOS refuses it, and so does git on Windows.
    Encoding,
    /// The name is the same as this one on systems that ignore letter case (Windows, macOS).
    Collision(RelPath),
}

impl fmt::Display for NameTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reserved => f.write_str("Windows takes this name for a device"),
            Self::Ending => f.write_str("Windows drops the dot or space at the end of a name"),
            Self::Character(character) => {
                write!(f, "Windows has no {} in names", character.escape_default())
            }
            Self::Encoding => f.write_str("the name isn't UTF-8, which macOS and Windows want"),
            Self::Collision(other) => {
                write!(f, "on Windows and macOS, where letter case doesn't count, it is the same as {other}")
            }
        }
    }
}

/// Returns the problem of one component of a path, by itself.
pub(crate) fn find_trouble(component: &[u8]) -> Option<NameTrouble> {
    let Ok(name) = std::str::from_utf8(component) else { return Some(NameTrouble::Encoding) };
    if let Some(bad) = name.chars().find(|c| FORBIDDEN_CHARS.contains(c) || (*c as u32) < 0x20) {
        return Some(NameTrouble::Character(bad));
    }
    if name.ends_with(['.', ' ']) {
        return Some(NameTrouble::Ending);
    }
    // `nul.txt` and `NUL .txt` are the device as well.
    let stem = name.split('.').next().unwrap_or(name).trim_end_matches(' ').to_lowercase();
    let is_numbered = |prefix: &&str| {
        let digit = stem.strip_prefix(*prefix).map(|digit| digit.chars().collect::<Vec<char>>());
        matches!(digit.as_deref(), Some(['1'..='9' | '¹' | '²' | '³']))
    };
    let reserved = DEVICE_NAMES.contains(&stem.as_str()) || NUMBERED_DEVICES.iter().any(is_numbered);
    reserved.then_some(NameTrouble::Reserved)
}

/// Returns a name in the form by which case-insensitive systems compare it.
fn fold_case(name: &[u8]) -> Option<String> {
    // Both ways, so that letters with two lower or upper cases fall together too.
    std::str::from_utf8(name).ok().map(|name| name.to_uppercase().to_lowercase())
}

/// Returns the problems that names of added files make on other systems; sorted, each
/// name once, and at most [`limits::MAX_NAME_TROUBLES`] of them.
#[must_use]
pub(crate) fn name_troubles(root_dir: &RootDir, changes: &[FileChange]) -> Vec<(RelPath, NameTrouble)> {
    let mut found: Vec<(RelPath, NameTrouble)> = Vec::new();
    let mut looked_at: HashMap<RelPath, Option<NameTrouble>> = HashMap::new();
    for change in changes.iter().filter(|change| change.kind == FileChangeKind::Added) {
        let mut path = Some(change.path.clone());
        while let Some(at) = path {
            path = at.parent();
            if looked_at.contains_key(&at) {
                break;
            }
            let trouble = find_trouble(at.file_name()).or_else(|| find_collision(root_dir, &at));
            found.extend(trouble.clone().map(|trouble| (at.clone(), trouble)));
            looked_at.insert(at, trouble);
        }
        if found.len() >= limits::MAX_NAME_TROUBLES || looked_at.len() >= limits::MAX_NAMES_CHECKED {
            break;
        }
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found.truncate(limits::MAX_NAME_TROUBLES);
    found
}

/// Returns a sibling name that differs in letter case alone.
fn find_collision(root_dir: &RootDir, path: &RelPath) -> Option<NameTrouble> {
    let name = path.file_name();
    let wanted = fold_case(name)?;
    let parent = path.parent();
    let at = parent.as_ref().map_or(b".".as_slice(), RelPath::as_bytes);
    let dir = root_dir.open_beneath(at, OFlags::RDONLY | OFlags::DIRECTORY, LinkPolicy::Refuse).ok()?;
    let entries = Dir::read_from(&dir).ok()?.flatten().take(limits::MAX_NAMES_CHECKED);
    let mut others = entries.filter(|entry| {
        let other = entry.file_name().to_bytes();
        other != name && other.len() <= wanted.len() * 4 && fold_case(other).as_ref() == Some(&wanted)
    });
    let other = others.next()?;
    let beside = match &parent {
        Some(parent) => parent.join(other.file_name().to_bytes()),
        None => RelPath::parse(other.file_name().to_bytes()),
    };
    beside.ok().map(NameTrouble::Collision)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_names_are_told_with_any_extension_and_case() {
        let table = [
            ("con", Some(NameTrouble::Reserved)),
            ("NUL.txt", Some(NameTrouble::Reserved)),
            ("aux .c", Some(NameTrouble::Reserved)),
            ("Com1", Some(NameTrouble::Reserved)),
            ("lpt².log", Some(NameTrouble::Reserved)),
            ("conout$", Some(NameTrouble::Reserved)),
            ("com0", None),
            ("com10", None),
            ("console", None),
            ("com", None),
            ("icon", None),
            ("..foo", None),
            (".gitignore", None),
            ("foo.", Some(NameTrouble::Ending)),
            ("foo ", Some(NameTrouble::Ending)),
            ("a:b", Some(NameTrouble::Character(':'))),
            ("a\nb", Some(NameTrouble::Character('\n'))),
            ("ordentlich-ä", None),
        ];
        for (name, expected) in table {
            assert_eq!(find_trouble(name.as_bytes()), expected, "{name:?}");
        }
        assert_eq!(find_trouble(b"\xff"), Some(NameTrouble::Encoding));
    }

    proptest::proptest! {
        #[test]
        fn no_name_makes_it_panic(name in proptest::collection::vec(proptest::num::u8::ANY, 0..40)) {
            let _told = find_trouble(&name);
            let _folded = fold_case(&name);
        }
    }
}
