//! Ignore rules: determines the ignored files of a project.
//!
//! The rules are git's, and they hold outside of git repositories too: `.gitignore` files, with an
//! `.ignore` file beside one counting more, and the repository's `info/exclude`. A rule of a
//! directory counts more than one of a directory above it. Where the project's root lies inside a
//! repository, the rules of the directories above it hold as well, up to the repository's top. The
//! rules of the user's own configuration (`core.excludesFile`) aren't read: the files that only
//! they ignore are looked at.
//!
//! Beside the rules, names and tags count: directories of some [names](tool_directories) are
//! skipped unless a rule says otherwise with `!`, and so are directories [tagged](is_tagged_cache)
//! as caches. A directory named `.git` is never looked at, nor are the directories in which
//! [copies](is_copies_directory) of projects lie.
//!
//! [`walk`] has the walk for listing a tree by these rules. `workspace` walks to record the state
//! of a tree, `index` to list the files that it reads. Every file is read within bounds, through no
//! link.

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use journeyman_root_fs::{LinkPolicy, open_root, read_beneath, read_path, read_up_to};

mod glob;
mod rules;
pub mod tool_directories;
pub mod walk;

pub use rules::{RuleMatch, Rules};

/// Files that hold ignore rules; the later one of a directory counts more.
pub const RULE_FILES: [&[u8]; 2] = [b".gitignore", b".ignore"];
/// Maximum bytes of a rule file; a longer one has no rules. The largest published collections have
/// 20 KiB.
pub const MAX_RULE_FILE_BYTES: u64 = 256 * 1024;
/// Maximum bytes of a file that holds one path.
const MAX_PATH_FILE_BYTES: u64 = 8 * 1024;
/// Maximum directories above a root that are searched for the top of a repository.
const MAX_ANCESTORS: usize = 256;
/// The file by which a directory is tagged as a cache.
pub const CACHE_TAG_FILE: &[u8] = b"CACHEDIR.TAG";
/// The prefix of the name of a directory that holds copies of the project beside it.
pub const COPIES_DIR_PREFIX: &str = ".journeyman-work-";
/// Number of hexadecimal digits after the prefix, which identify the project.
pub const COPIES_DIR_DIGITS: usize = 16;
/// The first bytes of a cache directory's tag, by the Cache Directory Tagging Specification.
const CACHE_TAG: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";

/// Returns true if `name` is that of git's own directory (or, in a submodule or linked work tree,
/// file), in any letter case: some file systems ignore case.
#[must_use]
pub fn is_git_directory_name(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b".git")
}

/// Returns true if `name` is that of a directory which holds copies of a project. Such a directory
/// is never entered, like git's own.
#[must_use]
pub fn is_copies_directory(name: &[u8]) -> bool {
    name.strip_prefix(COPIES_DIR_PREFIX.as_bytes())
        .is_some_and(|digits| digits.len() == COPIES_DIR_DIGITS && digits.iter().all(u8::is_ascii_hexdigit))
}

/// Returns true if `name` is that of a file which holds ignore rules.
#[must_use]
pub fn is_rule_file(name: &[u8]) -> bool {
    RULE_FILES.contains(&name)
}

/// Returns true if `dir`, which holds a file named `CACHEDIR.TAG`, is tagged as a cache by it.
#[must_use]
pub fn is_tagged_cache(dir: BorrowedFd<'_>) -> bool {
    read_rule_file(dir, CACHE_TAG_FILE).starts_with(CACHE_TAG)
}

/// Reads an open rule file of `size` bytes; nothing if it can't be read or is too long.
#[must_use]
pub fn read_rules(file: &OwnedFd, size: u64) -> Vec<u8> {
    read_up_to(file, size, MAX_RULE_FILE_BYTES).ok().flatten().unwrap_or_default()
}

/// Reads the rule file `name` of a directory; nothing if there is none.
#[must_use]
pub fn read_rule_file(dir: BorrowedFd<'_>, name: &[u8]) -> Vec<u8> {
    read_beneath(dir, name, LinkPolicy::Refuse, MAX_RULE_FILE_BYTES).ok().flatten().unwrap_or_default()
}

/// Parses the rule files of one directory, the ones that count more later.
pub fn parse_rules<'a>(texts: impl Iterator<Item = &'a [u8]>) -> Arc<Rules> {
    let mut rules = Rules::default();
    texts.for_each(|text| rules.add(text));
    Arc::new(rules)
}

/// The rules of one directory, and through `outer` those of the directories above it. `S`
/// identifies a state of a rule file.
#[derive(Debug)]
pub struct RuleLayer<S = ()> {
    /// Parsed when the first path is matched: most directories have no path that has to be.
    rules: OnceLock<Arc<Rules>>,
    /// The directory's path.
    dir: Vec<u8>,
    /// Its rule files as they were seen when the directory was read.
    files: Vec<(&'static [u8], S)>,
    position: RuleDirPosition,
    outer: Option<Arc<Self>>,
}

/// The position of a rule's directory, from which its patterns are matched.
#[derive(Debug)]
enum RuleDirPosition {
    /// Beneath the project's root; so many bytes of a path from the root lead into it.
    Beneath(usize),
    /// Above the project's root, to which this path leads.
    Above(Vec<u8>),
}

impl<S> RuleLayer<S> {
    /// Adds the rules of the directory at `dir`, which holds these rule files. They are loaded when
    /// they are needed first.
    pub fn new(dir: &[u8], files: Vec<(&'static [u8], S)>, outer: Option<Arc<Self>>) -> Arc<Self> {
        let (rules, dir, position) = (OnceLock::new(), dir.to_vec(), RuleDirPosition::beneath(dir));
        Arc::new(Self { rules, dir, files, position, outer })
    }

    /// Adds the parsed rules of the directory at `dir`, if there are any.
    pub fn from_parsed(rules: Arc<Rules>, dir: &[u8], outer: Option<Arc<Self>>) -> Option<Arc<Self>> {
        Self::with_position(rules, dir, RuleDirPosition::beneath(dir), outer)
    }

    fn with_position(
        rules: Arc<Rules>,
        dir: &[u8],
        position: RuleDirPosition,
        outer: Option<Arc<Self>>,
    ) -> Option<Arc<Self>> {
        if rules.is_empty() {
            return outer;
        }
        let (rules, dir, files) = (OnceLock::from(rules), dir.to_vec(), Vec::new());
        Some(Arc::new(Self { rules, dir, files, position, outer }))
    }
}

impl RuleDirPosition {
    fn beneath(dir: &[u8]) -> Self {
        Self::Beneath(if dir.is_empty() { 0 } else { dir.len() + 1 })
    }
}

/// The source of rules that aren't parsed yet.
pub trait RuleSource<S> {
    /// Loads the rules of the directory `dir` from its rule files.
    fn load(&self, dir: &[u8], files: &[(&'static [u8], S)]) -> Arc<Rules>;
}

/// The source of rules that are all parsed already.
#[derive(Debug, Clone, Copy)]
pub struct ParsedRuleSource;

impl<S> RuleSource<S> for ParsedRuleSource {
    fn load(&self, _dir: &[u8], _files: &[(&'static [u8], S)]) -> Arc<Rules> {
        Arc::new(Rules::default())
    }
}

/// Returns true if the file or directory at `path` is ignored, given that no directory above it is.
/// `path` begins at the project's root, and `name` is its last component.
pub fn is_ignored<S>(
    source: &impl RuleSource<S>,
    layers: Option<&Arc<RuleLayer<S>>>,
    path: &[u8],
    name: &[u8],
    is_dir: bool,
) -> bool {
    let mut next = layers;
    while let Some(layer) = next {
        let rules = layer.rules.get_or_init(|| source.load(&layer.dir, &layer.files));
        let verdict = match &layer.position {
            RuleDirPosition::Beneath(lead) => rules.match_path(path.get(*lead..).unwrap_or(path), is_dir),
            RuleDirPosition::Above(lead) => rules.match_path(&[lead, path].concat(), is_dir),
        };
        match verdict {
            Some(verdict) => return verdict == RuleMatch::Ignored,
            None => next = layer.outer.as_ref(),
        }
    }
    is_dir && tool_directories::is_skipped_directory(name)
}

/// Reads the rules that hold in the project at `root` and come from outside of its own rule files:
/// the repository's exclude file and, where the root lies inside the repository, the files `names`
/// of the directories above it. `visit` gets the texts that were read.
pub fn rules_from_outside<S>(
    root: &Path,
    names: &[&[u8]],
    mut visit: impl FnMut(&[u8]),
) -> Option<Arc<RuleLayer<S>>> {
    // Without following `..` by name: a root that is a link has the parents of its target.
    let root = std::fs::canonicalize(root).ok()?;
    let top = root.ancestors().take(MAX_ANCESTORS).find(|dir| dir.join(".git").symlink_metadata().is_ok())?;
    let excluded = exclude_file(top).and_then(|file| read_path(&file, MAX_RULE_FILE_BYTES).ok().flatten());
    let excluded = excluded.unwrap_or_default();
    visit(&excluded);
    let mut layers = add_ancestor_rules(None, &[excluded], top, &root);
    let mut dirs: Vec<&Path> = root.ancestors().skip(1).take_while(|dir| dir.starts_with(top)).collect();
    dirs.reverse();
    for dir in dirs {
        let opened = open_root(dir).ok();
        let read = |name: &&[u8]| {
            opened.as_ref().map(|opened| read_rule_file(opened.as_fd(), name)).unwrap_or_default()
        };
        let texts: Vec<Vec<u8>> = names.iter().map(read).collect();
        texts.iter().for_each(|text| visit(text));
        layers = add_ancestor_rules(layers, &texts, dir, &root);
    }
    layers
}

/// Adds rules of `dir`, which is `root` or above it.
fn add_ancestor_rules<S>(
    outer: Option<Arc<RuleLayer<S>>>,
    texts: &[Vec<u8>],
    dir: &Path,
    root: &Path,
) -> Option<Arc<RuleLayer<S>>> {
    let mut lead = root.strip_prefix(dir).unwrap_or(Path::new("")).as_os_str().as_bytes().to_vec();
    if !lead.is_empty() {
        lead.push(b'/');
    }
    let rules = parse_rules(texts.iter().map(Vec::as_slice));
    RuleLayer::with_position(rules, b"", RuleDirPosition::Above(lead), outer)
}

/// Returns the exclude file of the repository whose top is `top`. A linked work tree has that of
/// its main one, a submodule one of its own.
fn exclude_file(top: &Path) -> Option<PathBuf> {
    let git = top.join(".git");
    if std::fs::metadata(&git).ok()?.is_dir() {
        return Some(git.join("info/exclude"));
    }
    let pointer = read_path(&git, MAX_PATH_FILE_BYTES).ok().flatten()?;
    let git_directory = top.join(first_line_path(pointer.strip_prefix(b"gitdir: ")?));
    let common = read_path(&git_directory.join("commondir"), MAX_PATH_FILE_BYTES).ok().flatten();
    Some(git_directory.join(first_line_path(&common.unwrap_or_default())).join("info/exclude"))
}

fn first_line_path(text: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(text.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_work_tree_has_the_exclude_file_of_its_repository_wherever_that_lies() {
        let kept = tempfile::tempdir().unwrap();
        let at = |path: &str| kept.path().join(path);
        for (git, common) in [("whole/modules/sub", None), ("linked/worktrees/one", Some("../.."))] {
            std::fs::create_dir_all(at(git)).unwrap();
            if let Some(common) = common {
                std::fs::write(at(git).join("commondir"), format!("{common}\n")).unwrap();
            }
            let shared = at(git).join(common.unwrap_or("."));
            std::fs::create_dir_all(shared.join("info")).unwrap();
            std::fs::write(shared.join("info/exclude"), "x\n").unwrap();
            std::fs::create_dir_all(at("tree")).unwrap();
            std::fs::write(at("tree/.git"), format!("gitdir: ../{git}\n")).unwrap();
            let layers = rules_from_outside::<()>(&at("tree"), &RULE_FILES, |_| {});
            assert!(is_ignored(&ParsedRuleSource, layers.as_ref(), b"x", b"x", false), "{git}");
            assert!(!is_ignored(&ParsedRuleSource, layers.as_ref(), b"y", b"y", false), "{git}");
        }
    }
}
