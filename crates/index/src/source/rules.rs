//! Ignore rules of a tree, read within bounds: of whatever kind or size a rule file is, it costs a
//! bounded read.

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use journeyman_root_fs::{Links, open_root, read_beneath, read_path};

/// A project's own ignore file for the index, in the form of `.gitignore`.
pub const IGNORE_FILE: &str = ".journeymanignore";
/// Rule files of a directory. One that comes earlier overrides those after it, wherever they are.
const RULE_FILES: [&str; 3] = [IGNORE_FILE, ".ignore", ".gitignore"];
/// [`RULE_FILES`], and a repository's own `info/exclude` after them.
const SOURCES: usize = RULE_FILES.len() + 1;
/// Git's directory, or the file that names it.
pub(super) const GIT: &str = ".git";

/// Maximum bytes of a rule file; a longer one has no rules. The largest published collections have
/// 20 KiB.
const MAX_RULE_BYTES: u64 = 256 * 1024;
/// Maximum bytes of a file that holds one path.
const MAX_POINTER_BYTES: u64 = 8 * 1024;

/// Rules of one directory, and through `outer` of those above it.
#[derive(Debug)]
pub(super) struct Rules {
    matchers: [Option<Gitignore>; SOURCES],
    base: Base,
    outer: Option<Arc<Self>>,
}

/// Position of a rule's directory, from which its patterns are matched.
#[derive(Debug)]
enum Base {
    /// Beneath the project's root; so many bytes of a path from the root lead to it.
    Beneath(usize),
    /// Above the project's root, to which this path leads.
    Above(Vec<u8>),
}

impl Rules {
    /// Reads the rules of the directories above a project's root.
    pub(super) fn above(root: &Path) -> Option<Arc<Self>> {
        // Not by name: a root that is a link has the parents of its target.
        let root = std::fs::canonicalize(root).ok()?;
        let mut above: Vec<&Path> = root.ancestors().skip(1).collect();
        above.reverse();
        above.into_iter().fold(None, |outer, directory| {
            let Ok(opened) = open_root(directory) else { return outer };
            let mut lead = root.strip_prefix(directory).unwrap_or(&root).as_os_str().as_bytes().to_vec();
            lead.push(b'/');
            let matchers = matchers(opened.as_fd(), b"", directory, |_| true);
            Self::layered(matchers, Base::Above(lead), outer)
        })
    }

    /// Adds the rules of a directory beneath `root`; `may_have` tells which names it can have.
    pub(super) fn enter(
        outer: Option<Arc<Self>>,
        root: (BorrowedFd<'_>, &Path),
        directory: &[u8],
        may_have: impl Fn(&str) -> bool,
    ) -> Option<Arc<Self>> {
        let lead = if directory.is_empty() { 0 } else { directory.len() + 1 };
        let matchers = matchers(root.0, directory, &root.1.join(OsStr::from_bytes(directory)), may_have);
        Self::layered(matchers, Base::Beneath(lead), outer)
    }

    fn layered(
        matchers: [Option<Gitignore>; SOURCES],
        base: Base,
        outer: Option<Arc<Self>>,
    ) -> Option<Arc<Self>> {
        if matchers.iter().all(Option::is_none) {
            return outer;
        }
        Some(Arc::new(Self { matchers, base, outer }))
    }
}

/// Returns true if the rules leave out what is at `path`, from the project's root.
pub(super) fn is_ignored(rules: Option<&Arc<Rules>>, path: &[u8], is_directory: bool) -> bool {
    let layers = || std::iter::successors(rules, |layer| layer.outer.as_ref());
    for source in 0..SOURCES {
        for layer in layers() {
            let Some(matcher) = layer.matchers.get(source).and_then(Option::as_ref) else { continue };
            let verdict = match &layer.base {
                Base::Beneath(lead) => matched(matcher, path.get(*lead..).unwrap_or(path), is_directory),
                Base::Above(lead) => matched(matcher, &[lead, path].concat(), is_directory),
            };
            match verdict {
                Match::Ignore(()) => return true,
                Match::Whitelist(()) => return false,
                Match::None => {}
            }
        }
    }
    false
}

fn matched(matcher: &Gitignore, path: &[u8], is_directory: bool) -> Match<()> {
    matcher.matched(OsStr::from_bytes(path), is_directory).map(|_| ())
}

/// Reads the rule files of `directory` beneath `root`, which is at `place`.
fn matchers(
    root: BorrowedFd<'_>,
    directory: &[u8],
    place: &Path,
    may_have: impl Fn(&str) -> bool,
) -> [Option<Gitignore>; SOURCES] {
    let mut found: [Option<Gitignore>; SOURCES] = [const { None }; SOURCES];
    let names = RULE_FILES.into_iter().chain([GIT]);
    for (slot, name) in found.iter_mut().zip(names).filter(|(_, name)| may_have(name)) {
        let text = if name == GIT {
            exclude_file(place).and_then(|file| read_path(&file, MAX_RULE_BYTES).ok().flatten())
        } else {
            let path = if directory.is_empty() {
                name.as_bytes().to_vec()
            } else {
                [directory, b"/", name.as_bytes()].concat()
            };
            read_beneath(root, &path, Links::Refuse, MAX_RULE_BYTES).ok().flatten()
        };
        *slot = text.map(|text| parse(&text)).filter(|matcher| !matcher.is_empty());
    }
    found
}

fn parse(text: &[u8]) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    for line in text.split(|&byte| byte == b'\n') {
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
        // A line that is no pattern is skipped, as git skips it.
        drop(builder.add_line(None, &line));
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// The file with the rules of a repository whose top is `place`. A linked work tree has those of
/// its main one.
fn exclude_file(place: &Path) -> Option<PathBuf> {
    let git = place.join(GIT);
    if std::fs::metadata(&git).ok()?.is_dir() {
        return Some(git.join("info/exclude"));
    }
    let pointer = read_path(&git, MAX_POINTER_BYTES).ok().flatten()?;
    let git_directory = place.join(path_in(pointer.strip_prefix(b"gitdir: ")?));
    let common = read_path(&git_directory.join("commondir"), MAX_POINTER_BYTES).ok().flatten()?;
    Some(git_directory.join(path_in(&common)).join("info/exclude"))
}

fn path_in(text: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(text.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or(text)))
}
