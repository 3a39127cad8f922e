//! Where a project's repository lies. Found by looking, as git looks, without running it.

use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::GitError;
use crate::limits::{MAX_BORROWED, MAX_POINTER, MAX_SETTINGS};

/// The paths of a repository, absolute and without links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The project.
    pub(crate) root: PathBuf,
    /// This work tree's git directory.
    pub(crate) git_dir: PathBuf,
    /// The one that all work trees of the repository share; often the same.
    pub(crate) common_dir: PathBuf,
    /// The top of the work tree; `None` where the project is itself a git directory.
    pub(crate) top: Option<PathBuf>,
    /// The project within the work tree: empty, or a path that ends with `/`.
    pub(crate) prefix: Vec<u8>,
}

impl Place {
    /// Looks at `root` and the directories above it.
    ///
    /// # Errors
    /// [`GitError::NoRepository`]; [`GitError::Broken`] where something is there that git couldn't use either.
    pub(crate) fn find(root: &Path) -> Result<Self, GitError> {
        let root = root.canonicalize().map_err(GitError::io("looking at", root))?;
        let device = fs::metadata(&root).map_err(GitError::io("looking at", &root))?.dev();
        for top in root.ancestors() {
            // Git stops at a file system's border too.
            if !fs::metadata(top).is_ok_and(|found| found.dev() == device) {
                break;
            }
            if let Some(git_dir) = git_dir_of(top)? {
                let below = root.strip_prefix(top).unwrap_or(Path::new(""));
                let mut prefix = below.as_os_str().as_bytes().to_vec();
                if !prefix.is_empty() {
                    prefix.push(b'/');
                }
                let common_dir = common_dir(&git_dir)?;
                return Ok(Self { top: Some(top.to_owned()), root, git_dir, common_dir, prefix });
            }
            if top == root && is_git_dir(top) {
                let common_dir = common_dir(top)?;
                return Ok(Self { git_dir: top.to_owned(), top: None, prefix: Vec::new(), root, common_dir });
            }
        }
        Err(GitError::NoRepository { root })
    }

    /// The top of the work tree.
    pub(crate) fn work_tree(&self) -> Result<&Path, GitError> {
        self.top.as_deref().ok_or_else(|| GitError::NoWorkTree { root: self.root.clone() })
    }

    /// What must be readable besides the project: git directories elsewhere, object stores that are borrowed from,
    /// and the rules of directories above it. All of them exist, and are what they seem to be.
    pub(crate) fn outside(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut add = |path: PathBuf| {
            if !path.starts_with(&self.root) && !found.contains(&path) {
                found.push(path);
            }
        };
        add(self.git_dir.clone());
        add(self.common_dir.clone());
        borrowed(&self.common_dir).into_iter().for_each(&mut add);
        for above in self.root.ancestors().skip(1) {
            if !self.top.as_ref().is_some_and(|top| above.starts_with(top)) {
                break;
            }
            for name in [".gitignore", ".gitattributes"] {
                let file = above.join(name);
                // Git doesn't follow links here, either.
                if fs::symlink_metadata(&file).is_ok_and(|found| found.is_file()) {
                    add(file);
                }
            }
        }
        found
    }

    /// The repository's own settings, those of this work tree with them, as text: for looking whether a word is in
    /// them at all. `None` where they can't be read whole.
    pub(crate) fn settings(&self) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        for file in [self.common_dir.join("config"), self.git_dir.join("config.worktree")] {
            match fs::metadata(&file) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Ok(found) if found.is_file() && found.len() <= MAX_SETTINGS => {}
                _ => return None,
            }
            let before = text.len() as u64;
            fs::File::open(&file).ok()?.take(MAX_SETTINGS + 1).read_to_end(&mut text).ok()?;
            if text.len() as u64 - before > MAX_SETTINGS {
                return None;
            }
            text.push(b'\n');
        }
        Some(text)
    }
}

/// The git directory that `top/.git` is or names.
fn git_dir_of(top: &Path) -> Result<Option<PathBuf>, GitError> {
    let entry = top.join(".git");
    let Ok(found) = fs::metadata(&entry) else { return Ok(None) };
    let broken = |reason: &str| GitError::Broken { path: entry.clone(), reason: reason.to_owned() };
    if found.is_dir() {
        let real = entry.canonicalize().map_err(GitError::io("looking at", &entry))?;
        return Ok(is_git_dir(&real).then_some(real));
    }
    if !found.is_file() {
        return Err(broken("it is neither a directory nor a file"));
    }
    let mut text = Vec::new();
    let read = fs::File::open(&entry).and_then(|file| file.take(MAX_POINTER).read_to_end(&mut text));
    read.map_err(GitError::io("reading", &entry))?;
    let named = text.strip_prefix(b"gitdir: ").ok_or_else(|| broken("it doesn't name a git directory"))?;
    let end = named.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    let named = Path::new(OsStr::from_bytes(named.get(..end).unwrap_or_default()));
    let real = top.join(named).canonicalize();
    let real = real.map_err(|_| broken("the git directory it names is not there"))?;
    if !is_git_dir(&real) {
        return Err(broken("what it names is not a git directory"));
    }
    Ok(Some(real))
}

/// As git tells one: a `HEAD`, objects and references, the latter two perhaps shared.
fn is_git_dir(path: &Path) -> bool {
    let head = fs::symlink_metadata(path.join("HEAD"));
    let Ok(common) = common_dir(path) else { return false };
    head.is_ok_and(|found| found.is_file() || found.is_symlink())
        && common.join("objects").is_dir()
        && common.join("refs").is_dir()
}

fn common_dir(git_dir: &Path) -> Result<PathBuf, GitError> {
    let file = git_dir.join("commondir");
    let Ok(found) = fs::metadata(&file) else { return Ok(git_dir.to_owned()) };
    let broken = |reason: &str| GitError::Broken { path: file.clone(), reason: reason.to_owned() };
    if !found.is_file() {
        return Err(broken("it is not a file"));
    }
    let mut text = Vec::new();
    let read = fs::File::open(&file).and_then(|file| file.take(MAX_POINTER).read_to_end(&mut text));
    read.map_err(GitError::io("reading", &file))?;
    let named = Path::new(OsStr::from_bytes(text.trim_ascii_end()));
    git_dir.join(named).canonicalize().map_err(|_| broken("the directory it names is not there"))
}

/// The object stores that a repository borrows from, as far as they belong to a git directory.
fn borrowed(common_dir: &Path) -> Vec<PathBuf> {
    let mut stores = vec![common_dir.join("objects")];
    let mut next = 0;
    while let Some(store) = stores.get(next).cloned() {
        next += 1;
        for named in alternates(&store) {
            let Ok(real) = store.join(named).canonicalize() else { continue };
            let is_store = real.is_dir() && real.parent().is_some_and(is_git_dir);
            if is_store && !stores.contains(&real) && stores.len() <= MAX_BORROWED {
                stores.push(real);
            }
        }
    }
    stores.split_off(1)
}

fn alternates(store: &Path) -> Vec<PathBuf> {
    let file = store.join("info/alternates");
    let mut text = Vec::new();
    // Opening a pipe would wait for somebody to write.
    if fs::metadata(&file).is_ok_and(|found| found.is_file()) {
        let read = fs::File::open(&file).and_then(|file| file.take(MAX_SETTINGS).read_to_end(&mut text));
        if read.is_err() {
            text.clear();
        }
    }
    let lines = text.split(|&byte| byte == b'\n').filter(|line| !matches!(line.first(), None | Some(b'#')));
    lines.map(|line| PathBuf::from(OsStr::from_bytes(line))).collect()
}
