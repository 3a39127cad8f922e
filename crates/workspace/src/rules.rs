//! Which files are ignored: `.gitignore` and `.ignore` files, git's own exclude file, and a list of names.
//!
//! The rules are git's, and they hold outside git repositories too. The rules of the user's own configuration
//! (`core.excludesFile`) aren't read: what only they ignore is looked at and can be undone.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{Mode, OFlags, fstat, openat};

use crate::door::{Seen, read_up_to};
use crate::limits::{IGNORE_FILE_BYTES, MAX_DEPTH};

/// Directories that hold what a tool made and can make again, or another version control system's data. They
/// aren't entered unless a rule says so with `!`. Build directories such as `target` aren't listed: they are
/// skipped when a rule ignores them, or when they carry a `CACHEDIR.TAG`.
const MADE_BY_TOOLS: [&[u8]; 15] = [
    b"node_modules",
    b"bower_components",
    b"__pycache__",
    b".venv",
    b".tox",
    b".nox",
    b".mypy_cache",
    b".pytest_cache",
    b".ruff_cache",
    b".gradle",
    b".terraform",
    b".direnv",
    b".hg",
    b".svn",
    b".jj",
];

/// How a cache directory's tag begins, by the Cache Directory Tagging Specification.
const CACHE_TAG: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";

/// Git's own directory (or, in a submodule or worktree, file): never looked at, never touched. Some file
/// systems don't tell cases apart.
pub(crate) fn is_git(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b".git")
}

/// Whether `name` is that of a file which holds ignore rules.
pub(crate) fn is_rule_file(name: &[u8]) -> bool {
    name == b".gitignore" || name == b".ignore"
}

/// The rules of one directory, and those of the directories above it.
#[derive(Debug)]
pub(crate) struct Layer {
    matcher: Arc<Gitignore>,
    /// Length of the directory's path with its `/`, to be cut off before matching.
    prefix: usize,
    /// What goes before a path from the root, for the rules of a directory above the root.
    above: Vec<u8>,
    outer: Option<Arc<Layer>>,
}

/// Whether something is looked at.
pub(crate) fn is_ignored(layers: Option<&Arc<Layer>>, path: &[u8], name: &[u8], is_dir: bool) -> bool {
    let mut next = layers;
    while let Some(layer) = next {
        let verdict = if layer.above.is_empty() {
            layer.matched(path.get(layer.prefix..).unwrap_or(path), is_dir)
        } else {
            layer.matched(&[&layer.above, path].concat(), is_dir)
        };
        match verdict {
            Match::Ignore(()) => return true,
            Match::Whitelist(()) => return false,
            Match::None => next = layer.outer.as_ref(),
        }
    }
    is_dir && MADE_BY_TOOLS.contains(&name)
}

impl Layer {
    fn matched(&self, path: &[u8], is_dir: bool) -> Match<()> {
        use std::os::unix::ffi::OsStrExt as _;
        let path = Path::new(std::ffi::OsStr::from_bytes(path));
        self.matcher.matched(path, is_dir).map(|_| ())
    }
}

/// A rule file's identity, so that it is parsed once.
type Identity = (u64, u64, i64, i64);
type Parsed = HashMap<Vec<u8>, (Vec<Identity>, Arc<Gitignore>)>;

/// Parsed rule files, kept from walk to walk.
#[derive(Debug, Default)]
pub(crate) struct RuleCache {
    parsed: Mutex<Parsed>,
    outermost: Mutex<Option<Option<Arc<Layer>>>>,
}

impl RuleCache {
    /// The rules that come from outside the tree's own rule files: `.git/info/exclude`, and where the root lies
    /// inside a repository, the `.gitignore` files above it. Read once.
    pub(crate) fn outermost(&self, root: &Path) -> Option<Arc<Layer>> {
        let mut known = self.outermost.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_or_insert_with(|| outside_rules(root)).clone()
    }

    /// The rules for what is in `dir`, given that it holds the rule files `names`.
    pub(crate) fn layer(
        &self,
        dir: BorrowedFd<'_>,
        path: &[u8],
        names: &[&[u8]],
        outer: Option<Arc<Layer>>,
    ) -> Option<Arc<Layer>> {
        let mut found = Vec::new();
        for name in names {
            if let Some((identity, text)) = read_rule_file(dir, name) {
                found.push((identity, text));
            }
        }
        let identity: Vec<Identity> = found.iter().map(|(identity, _)| *identity).collect();
        let mut parsed = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        let matcher = match parsed.get(path) {
            Some((known, matcher)) if *known == identity => matcher.clone(),
            _ => {
                let texts: Vec<Vec<u8>> = found.iter().map(|(_, file)| file.read()).collect();
                let matcher = parse(texts.iter().map(Vec::as_slice));
                parsed.insert(path.to_vec(), (identity, matcher.clone()));
                matcher
            }
        };
        drop(parsed);
        layered(matcher, path, outer)
    }
}

/// Rules made of contents that are known, such as those of a checkpoint: `files` are paths and texts.
pub(crate) struct FixedRules {
    matchers: HashMap<Vec<u8>, Arc<Gitignore>>,
    outermost: Option<Arc<Layer>>,
}

impl FixedRules {
    /// `files` holds the path of each rule file with its text, `.gitignore` before `.ignore` in each directory.
    pub(crate) fn new(files: &[(Vec<u8>, Vec<u8>)], outermost: Option<Arc<Layer>>) -> Self {
        let mut texts: HashMap<Vec<u8>, Vec<&[u8]>> = HashMap::new();
        for (path, text) in files {
            let cut = path.iter().rposition(|&byte| byte == b'/').unwrap_or_default();
            texts.entry(path.get(..cut).unwrap_or_default().to_vec()).or_default().push(text);
        }
        let matchers = texts.into_iter().map(|(dir, texts)| (dir, parse(texts.into_iter()))).collect();
        Self { matchers, outermost }
    }

    /// Whether the file at `path`, or a directory above it, was ignored.
    pub(crate) fn covers(&self, path: &[u8]) -> bool {
        let mut layers = self.descend(&[], self.outermost.clone());
        for (at, byte) in path.iter().enumerate() {
            if *byte == b'/' {
                let dir = path.get(..at).unwrap_or_default();
                if is_ignored(layers.as_ref(), dir, last_component(dir), true) {
                    return true;
                }
                layers = self.descend(dir, layers);
            }
        }
        is_ignored(layers.as_ref(), path, last_component(path), false)
    }

    fn descend(&self, dir: &[u8], outer: Option<Arc<Layer>>) -> Option<Arc<Layer>> {
        match self.matchers.get(dir) {
            Some(matcher) => layered(matcher.clone(), dir, outer),
            None => outer,
        }
    }
}

pub(crate) fn last_component(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

fn layered(matcher: Arc<Gitignore>, dir: &[u8], outer: Option<Arc<Layer>>) -> Option<Arc<Layer>> {
    if matcher.is_empty() {
        return outer;
    }
    let prefix = if dir.is_empty() { 0 } else { dir.len() + 1 };
    Some(Arc::new(Layer { matcher, prefix, above: Vec::new(), outer }))
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

fn read_rule_file(dir: BorrowedFd<'_>, name: &[u8]) -> Option<(Identity, RuleFile)> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(dir, name, flags, Mode::empty()).ok()?;
    let seen = Seen::of(&fstat(&file).ok()?);
    let identity = (seen.ino, seen.size, seen.mtime, seen.ctime);
    seen.is_file().then_some((identity, RuleFile { file, size: seen.size }))
}

/// Whether `dir`, which holds a file named `CACHEDIR.TAG`, says by it that it is a cache.
pub(crate) fn is_tagged_cache(dir: BorrowedFd<'_>) -> bool {
    let Some((_, tag)) = read_rule_file(dir, b"CACHEDIR.TAG") else { return false };
    tag.read().starts_with(CACHE_TAG)
}

fn outside_rules(root: &Path) -> Option<Arc<Layer>> {
    // Without following `..` by name: a root that is a link has the parents of what it points to.
    let root = std::fs::canonicalize(root).ok()?;
    let top = root.ancestors().take(MAX_DEPTH).find(|dir| dir.join(".git").symlink_metadata().is_ok())?;
    let mut dirs: Vec<&Path> = root.ancestors().take_while(|dir| dir.starts_with(top)).collect();
    dirs.reverse();
    let mut layers = None;
    let exclude = rule_text(&top.join(".git/info"), b"exclude");
    add_above(&mut layers, &exclude, top, &root);
    for dir in dirs.into_iter().filter(|dir| *dir != root) {
        add_above(&mut layers, &rule_text(dir, b".gitignore"), dir, &root);
    }
    layers
}

fn rule_text(dir: &Path, name: &[u8]) -> Vec<u8> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(dir) = openat(rustix::fs::CWD, dir, flags, Mode::empty()) else { return Vec::new() };
    read_rule_file(dir.as_fd(), name).map(|(_, file)| file.read()).unwrap_or_default()
}

fn add_above(layers: &mut Option<Arc<Layer>>, text: &[u8], dir: &Path, root: &Path) {
    use std::os::unix::ffi::OsStrExt as _;
    let matcher = parse(std::iter::once(text));
    if matcher.is_empty() {
        return;
    }
    let mut above = root.strip_prefix(dir).unwrap_or(Path::new("")).as_os_str().as_bytes().to_vec();
    if !above.is_empty() {
        above.push(b'/');
    }
    *layers = Some(Arc::new(Layer { matcher, prefix: 0, above, outer: layers.take() }));
}
