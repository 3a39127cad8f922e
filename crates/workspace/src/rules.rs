//! Which files are ignored: `.gitignore` and `.ignore` files, git's own exclude file, and a list of
//! names.
//!
//! The rules are git's, and they hold outside git repositories too. The rules of the user's own
//! configuration (`core.excludesFile`) aren't read: what only they ignore is looked at and can be
//! undone.

use crate::files::paths::last_component;
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use journeyman_protocol::{ContentHash, RelPath};
use journeyman_root_fs::{open_regular, open_root};

use crate::files::root_dir::{Links, read_up_to};
use crate::files::stat::FileStat;
use crate::limits::{IGNORE_FILE_BYTES, MAX_DEPTH};
use crate::tool_directories::{is_skipped, skipped_names};

/// Files that hold ignore rules; the later one of a directory counts more.
pub(crate) const RULE_FILES: [&[u8]; 2] = [b".gitignore", b".ignore"];

/// The first bytes of a cache directory's tag, by the Cache Directory Tagging Specification.
const CACHE_TAG: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";

/// Git's own directory (or, in a submodule or worktree, file): never looked at, never touched. Some
/// file systems don't tell cases apart.
pub(crate) fn is_git(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b".git")
}

/// Returns true if `name` is that of a file which holds ignore rules.
pub(crate) fn is_rule_file(name: &[u8]) -> bool {
    RULE_FILES.contains(&name)
}

/// The rules of one directory, and those of the directories above it.
#[derive(Debug)]
pub(crate) struct RuleLayer {
    /// Parsed when something is first held against it: most directories have nothing that has to
    /// be.
    matcher: OnceLock<Arc<Gitignore>>,
    /// The directory's path.
    dir: Vec<u8>,
    /// Its rule files as they were seen when the directory was read.
    files: Vec<(&'static [u8], FileStat)>,
    /// Length of the directory's path with its `/`, to be cut off before matching.
    prefix: usize,
    /// The prefix of paths from the root, for the rules of a directory above the root.
    above: Vec<u8>,
    outer: Option<Arc<RuleLayer>>,
}

impl RuleLayer {
    /// For what is in the directory at `dir`, which holds these rule files.
    pub(crate) fn new(
        dir: &[u8],
        files: Vec<(&'static [u8], FileStat)>,
        outer: Option<Arc<Self>>,
    ) -> Option<Arc<Self>> {
        let prefix = prefix_of(dir);
        let (matcher, dir) = (OnceLock::new(), dir.to_vec());
        Some(Arc::new(Self { matcher, dir, files, prefix, above: Vec::new(), outer }))
    }

    fn from_parsed(
        matcher: Arc<Gitignore>,
        dir: &[u8],
        above: Vec<u8>,
        outer: Option<Arc<Self>>,
    ) -> Arc<Self> {
        let prefix = if above.is_empty() { prefix_of(dir) } else { 0 };
        let (dir, files) = (dir.to_vec(), Vec::new());
        Arc::new(Self { matcher: OnceLock::from(matcher), dir, files, prefix, above, outer })
    }
}

fn prefix_of(dir: &[u8]) -> usize {
    if dir.is_empty() { 0 } else { dir.len() + 1 }
}

/// The source of rules that aren't parsed yet.
pub(crate) trait RuleSource {
    fn load(&self, dir: &[u8], files: &[(&'static [u8], FileStat)]) -> Arc<Gitignore>;
}

/// Returns true if something is looked at.
pub(crate) fn is_ignored(
    source: &impl RuleSource,
    layers: Option<&Arc<RuleLayer>>,
    path: &[u8],
    name: &[u8],
    is_dir: bool,
) -> bool {
    let mut next = layers;
    while let Some(layer) = next {
        let matcher = layer.matcher.get_or_init(|| source.load(&layer.dir, &layer.files));
        let verdict = if layer.above.is_empty() {
            match_path(matcher, path.get(layer.prefix..).unwrap_or(path), is_dir)
        } else {
            match_path(matcher, &[&layer.above, path].concat(), is_dir)
        };
        match verdict {
            Match::Ignore(()) => return true,
            Match::Whitelist(()) => return false,
            Match::None => next = layer.outer.as_ref(),
        }
    }
    is_dir && is_skipped(name)
}

fn match_path(matcher: &Gitignore, path: &[u8], is_dir: bool) -> Match<()> {
    use std::os::unix::ffi::OsStrExt as _;
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    matcher.matched(path, is_dir).map(|_| ())
}

/// A rule file's identity, so that it is parsed once.
type RuleFileId = (u64, u64, i64, i64);
type ParsedRules = HashMap<Vec<u8>, (Vec<RuleFileId>, Arc<Gitignore>)>;

fn rule_file_id(seen: &FileStat) -> RuleFileId {
    (seen.ino, seen.size, seen.mtime, seen.ctime)
}

/// The rules that come from outside the tree's own rule files.
#[derive(Debug, Clone)]
struct OutsideRules {
    layers: Option<Arc<RuleLayer>>,
    /// The hash of all that they say.
    print: ContentHash,
}

/// A directory's path from the root, where it lies beneath it; it need not be there yet.
fn path_from_root(root: &Path, dir: &Path) -> Option<RelPath> {
    let root = std::fs::canonicalize(root).ok()?;
    let there = dir.ancestors().find_map(|above| Some((above, std::fs::canonicalize(above).ok()?)));
    let (above, real) = there?;
    let whole = real.join(dir.strip_prefix(above).ok()?);
    RelPath::parse(whole.strip_prefix(&root).ok()?.as_os_str().as_encoded_bytes()).ok()
}

/// Parsed rule files, kept from walk to walk.
#[derive(Debug, Default)]
pub(crate) struct RuleCache {
    parsed: Mutex<ParsedRules>,
    outside: OnceLock<OutsideRules>,
    /// Directories of our own that lie in the tree, where somebody has their state in a project.
    own: Vec<RelPath>,
}

/// The prefix of the name of a directory that holds copies of the project beside it.
pub(crate) const COPIES_DIR_PREFIX: &str = ".journeyman-work-";
/// Hexadecimal digits at its end, that tell one project's directory from another's.
pub(crate) const COPIES_DIR_DIGITS: usize = 16;

impl RuleCache {
    /// Of the tree at `root`, given the directories that are ours wherever they are.
    pub(crate) fn with_own<'a>(root: &Path, dirs: impl IntoIterator<Item = &'a Path>) -> Self {
        let mut own: Vec<RelPath> = dirs.into_iter().filter_map(|dir| path_from_root(root, dir)).collect();
        own.sort();
        own.dedup();
        // What lies in another one of them goes with it.
        let all = own.clone();
        own.retain(|dir| !all.iter().any(|other| other != dir && dir.as_path().starts_with(other.as_path())));
        Self { own, ..Self::default() }
    }

    /// Directories of our own in the tree.
    pub(crate) fn own_directories(&self) -> &[RelPath] {
        &self.own
    }

    /// Returns true if a directory is ours: never looked into, as git's own isn't. Taking back what
    /// is in there would take back our own memory.
    pub(crate) fn is_own(&self, path: &[u8]) -> bool {
        let digits = last_component(path).strip_prefix(COPIES_DIR_PREFIX.as_bytes());
        let beside = digits.is_some_and(|digits| {
            digits.len() == COPIES_DIR_DIGITS && digits.iter().all(u8::is_ascii_hexdigit)
        });
        beside || self.own.iter().any(|own| own.as_bytes() == path)
    }

    /// Returns true if a file is ours.
    pub(crate) fn is_own_file(&self, path: &RelPath) -> bool {
        let mut above = Some(path.clone());
        while let Some(at) = above {
            if self.is_own(at.as_bytes()) {
                return true;
            }
            above = at.parent();
        }
        false
    }

    /// The rules that come from outside the tree's own rule files: `.git/info/exclude`, and where
    /// the root lies inside a repository, the `.gitignore` files above it. Read once.
    pub(crate) fn outer_rules(&self, root: &Path) -> Option<Arc<RuleLayer>> {
        self.outside.get_or_init(|| outside_rules(root)).layers.clone()
    }

    /// Returns a hash that is the same for two walks with the same rules but for the tree's own
    /// files.
    pub(crate) fn rules_hash(&self, root: &Path) -> ContentHash {
        self.outside.get_or_init(|| outside_rules(root)).print
    }

    /// The rules of the directory `dir` at `path`. `None` in place of the second where a rule file
    /// isn't as it was seen before.
    pub(crate) fn load(
        &self,
        dir: BorrowedFd<'_>,
        path: &[u8],
        files: &[(&'static [u8], FileStat)],
    ) -> (Arc<Gitignore>, Option<()>) {
        let found: Vec<(FileStat, RuleFile)> =
            files.iter().filter_map(|(name, _)| read_rule_file(dir, name)).collect();
        let now: Vec<RuleFileId> = found.iter().map(|(seen, _)| rule_file_id(seen)).collect();
        let then = files.iter().filter(|(_, seen)| seen.is_file()).map(|(_, seen)| rule_file_id(seen));
        let as_seen = then.eq(now.iter().copied()).then_some(());
        let mut parsed = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        let matcher = match parsed.get(path) {
            Some((known, matcher)) if *known == now => matcher.clone(),
            _ => {
                let texts: Vec<Vec<u8>> = found.iter().map(|(_, file)| file.read()).collect();
                let matcher = parse(texts.iter().map(Vec::as_slice));
                parsed.insert(path.to_vec(), (now, matcher.clone()));
                matcher
            }
        };
        (matcher, as_seen)
    }
}

/// Rules made of contents that are known, such as those of a checkpoint: `files` are paths and
/// texts.
pub(crate) struct FixedRules {
    matchers: HashMap<Vec<u8>, Arc<Gitignore>>,
    outermost: Option<Arc<RuleLayer>>,
}

impl FixedRules {
    /// `files` holds the path of each rule file with its text, `.gitignore` before `.ignore` in
    /// each directory.
    pub(crate) fn new(files: &[(Vec<u8>, Vec<u8>)], outermost: Option<Arc<RuleLayer>>) -> Self {
        let mut texts: HashMap<Vec<u8>, Vec<&[u8]>> = HashMap::new();
        for (path, text) in files {
            let cut = path.iter().rposition(|&byte| byte == b'/').unwrap_or_default();
            texts.entry(path.get(..cut).unwrap_or_default().to_vec()).or_default().push(text);
        }
        let matchers = texts.into_iter().map(|(dir, texts)| (dir, parse(texts.into_iter()))).collect();
        Self { matchers, outermost }
    }

    /// Returns true if the file at `path`, or a directory above it, was ignored.
    pub(crate) fn is_ignored(&self, path: &[u8]) -> bool {
        let mut layers = self.descend_into(&[], self.outermost.clone());
        for (at, byte) in path.iter().enumerate() {
            if *byte == b'/' {
                let dir = path.get(..at).unwrap_or_default();
                if is_ignored(self, layers.as_ref(), dir, last_component(dir), true) {
                    return true;
                }
                layers = self.descend_into(dir, layers);
            }
        }
        is_ignored(self, layers.as_ref(), path, last_component(path), false)
    }

    fn descend_into(&self, dir: &[u8], outer: Option<Arc<RuleLayer>>) -> Option<Arc<RuleLayer>> {
        match self.matchers.get(dir) {
            Some(matcher) => layer_of(matcher.clone(), dir, outer),
            None => outer,
        }
    }
}

impl RuleSource for FixedRules {
    /// All of them are parsed from the beginning.
    fn load(&self, _dir: &[u8], _files: &[(&'static [u8], FileStat)]) -> Arc<Gitignore> {
        Arc::new(Gitignore::empty())
    }
}

fn layer_of(matcher: Arc<Gitignore>, dir: &[u8], outer: Option<Arc<RuleLayer>>) -> Option<Arc<RuleLayer>> {
    if matcher.is_empty() {
        return outer;
    }
    Some(RuleLayer::from_parsed(matcher, dir, Vec::new(), outer))
}

fn parse<'a>(texts: impl Iterator<Item = &'a [u8]>) -> Arc<Gitignore> {
    let mut builder = GitignoreBuilder::new("");
    for text in texts {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        for line in text.split(|&byte| byte == b'\n') {
            let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
            // A line that is no pattern is skipped, as git skips it.
            drop(builder.add_line(None, &line));
        }
    }
    Arc::new(builder.build().unwrap_or_else(|_| Gitignore::empty()))
}

struct RuleFile {
    file: std::os::fd::OwnedFd,
    size: u64,
}

impl RuleFile {
    /// The text; nothing when it can't be read or is larger than any real one.
    fn read(&self) -> Vec<u8> {
        read_up_to(&self.file, self.size, IGNORE_FILE_BYTES).ok().flatten().unwrap_or_default()
    }
}

fn read_rule_file(dir: BorrowedFd<'_>, name: &[u8]) -> Option<(FileStat, RuleFile)> {
    let (file, stat) = open_regular(dir, name, Links::Refuse).ok()?;
    let seen = FileStat::of(&stat);
    Some((seen, RuleFile { file, size: seen.size }))
}

/// Returns true if `dir`, which holds a file named `CACHEDIR.TAG`, says by it that it is a cache.
pub(crate) fn is_tagged_cache(dir: BorrowedFd<'_>) -> bool {
    let Some((_, tag)) = read_rule_file(dir, b"CACHEDIR.TAG") else { return false };
    tag.read().starts_with(CACHE_TAG)
}

fn outside_rules(root: &Path) -> OutsideRules {
    let mut said = skipped_names().collect::<Vec<_>>().join(&b'/');
    let layers = layers_outside(root, &mut said);
    OutsideRules { layers, print: ContentHash::of(&said) }
}

/// Everything that is read goes to `said` too.
fn layers_outside(root: &Path, said: &mut Vec<u8>) -> Option<Arc<RuleLayer>> {
    // Without following `..` by name: a root that is a link has the parents of what it points to.
    let root = std::fs::canonicalize(root).ok()?;
    let top = root.ancestors().take(MAX_DEPTH).find(|dir| dir.join(".git").symlink_metadata().is_ok())?;
    let mut dirs: Vec<&Path> = root.ancestors().take_while(|dir| dir.starts_with(top)).collect();
    dirs.reverse();
    let mut layers = None;
    let mut add = |text: Vec<u8>, dir: &Path| {
        said.extend_from_slice(&(text.len() as u64).to_le_bytes());
        said.extend_from_slice(&text);
        add_above(&mut layers, &text, dir, &root);
    };
    add(rule_text(&top.join(".git/info"), b"exclude"), top);
    for dir in dirs.into_iter().filter(|dir| *dir != root) {
        add(rule_text(dir, b".gitignore"), dir);
    }
    layers
}

fn rule_text(dir: &Path, name: &[u8]) -> Vec<u8> {
    let Ok(dir) = open_root(dir) else { return Vec::new() };
    read_rule_file(dir.as_fd(), name).map(|(_, file)| file.read()).unwrap_or_default()
}

fn add_above(layers: &mut Option<Arc<RuleLayer>>, text: &[u8], dir: &Path, root: &Path) {
    use std::os::unix::ffi::OsStrExt as _;
    let matcher = parse(std::iter::once(text));
    if matcher.is_empty() {
        return;
    }
    let mut above = root.strip_prefix(dir).unwrap_or(Path::new("")).as_os_str().as_bytes().to_vec();
    if !above.is_empty() {
        above.push(b'/');
    }
    *layers = Some(RuleLayer::from_parsed(matcher, b"", above, layers.take()));
}
