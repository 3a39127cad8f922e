//! Finds the paths of a project's repository as git does, without running git.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use journeyman_root_fs::read_path;

use crate::GitError;
use crate::limits::{MAX_ALTERNATES, MAX_GIT_FILE_BYTES, MAX_SETTINGS_BYTES};

/// Files that git reads in a git directory for every command, with their maximum sizes. Git waits
/// forever at a pipe and reads a device without end.
const GIT_DIRECTORY_FILES: [(&str, u64); 6] = [
    ("HEAD", MAX_GIT_FILE_BYTES),
    ("config.worktree", MAX_SETTINGS_BYTES),
    ("index", u64::MAX),
    ("commondir", MAX_GIT_FILE_BYTES),
    ("gitdir", MAX_GIT_FILE_BYTES),
    ("info/sparse-checkout", MAX_SETTINGS_BYTES),
];
/// Files that git reads in the directory that all work trees share, with their maximum sizes.
const COMMON_DIRECTORY_FILES: [(&str, u64); 7] = [
    ("config", MAX_SETTINGS_BYTES),
    ("packed-refs", u64::MAX),
    ("shallow", u64::MAX),
    ("info/exclude", MAX_SETTINGS_BYTES),
    ("info/attributes", MAX_SETTINGS_BYTES),
    ("info/grafts", MAX_SETTINGS_BYTES),
    ("objects/info/alternates", MAX_SETTINGS_BYTES),
];

/// The paths of a repository, absolute and without links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RepositoryPaths {
    /// The project.
    pub(crate) root: PathBuf,
    /// This work tree's git directory.
    pub(crate) git_dir: PathBuf,
    /// The git directory that all work trees of the repository share; often the same.
    pub(crate) common_dir: PathBuf,
    /// The top of the work tree; `None` where the project is itself a git directory.
    pub(crate) top: Option<PathBuf>,
    /// The project's path within the work tree: empty, or a path that ends with `/`.
    pub(crate) prefix: Vec<u8>,
}

impl RepositoryPaths {
    /// Searches `root` and the directories above it.
    ///
    /// # Errors
    /// [`GitError::NoRepository`]; [`GitError::Broken`] for a repository that git could not use
    /// either.
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
                check_regular_files(&git_dir, &common_dir)?;
                return Ok(Self { top: Some(top.to_owned()), root, git_dir, common_dir, prefix });
            }
            if top == root && is_git_dir(top) {
                let common_dir = common_dir(top)?;
                check_regular_files(top, &common_dir)?;
                return Ok(Self { git_dir: top.to_owned(), top: None, prefix: Vec::new(), root, common_dir });
            }
        }
        Err(GitError::NoRepository { root })
    }

    /// Returns the top of the work tree.
    pub(crate) fn work_tree(&self) -> Result<&Path, GitError> {
        self.top.as_deref().ok_or_else(|| GitError::NoWorkTree { root: self.root.clone() })
    }

    /// Returns the paths outside the project that must be readable: git directories elsewhere,
    /// alternate object stores, and ignore rules of directories above the project. All of them
    /// exist and have the expected type.
    pub(crate) fn outside_paths(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut add = |path: PathBuf| {
            if !path.starts_with(&self.root) && !found.contains(&path) {
                found.push(path);
            }
        };
        add(self.git_dir.clone());
        add(self.common_dir.clone());
        alternate_stores(&self.common_dir).into_iter().for_each(&mut add);
        for parent_directories in self.root.ancestors().skip(1) {
            if !self.top.as_ref().is_some_and(|top| parent_directories.starts_with(top)) {
                break;
            }
            for name in [".gitignore", ".gitattributes"] {
                let file = parent_directories.join(name);
                // Git does not follow links here either.
                if fs::symlink_metadata(&file).is_ok_and(|found| found.is_file()) {
                    add(file);
                }
            }
        }
        found
    }

    /// Returns the text of the repository's settings, including those of this work tree, to search
    /// for words. `None` if they can't be read completely.
    pub(crate) fn read_settings(&self) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        for file in [self.common_dir.join("config"), self.git_dir.join("config.worktree")] {
            match read_path(&file, MAX_SETTINGS_BYTES) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Ok(Some(settings)) => text.extend(settings),
                _ => return None,
            }
            text.push(b'\n');
        }
        Some(text)
    }
}

const TOO_LONG_REASON: &str = "it is longer than any that git writes";

/// Returns the git directory that `top/.git` is or names.
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
    let read = read_path(&entry, MAX_GIT_FILE_BYTES).map_err(GitError::io("reading", &entry))?;
    let text = read.ok_or_else(|| broken(TOO_LONG_REASON))?;
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

/// Refuses a git directory with anything but regular files where git reads files.
fn check_regular_files(git_dir: &Path, common_dir: &Path) -> Result<(), GitError> {
    let own = GIT_DIRECTORY_FILES.iter().map(|(name, limit)| (git_dir.join(name), *limit));
    let shared = COMMON_DIRECTORY_FILES.iter().map(|(name, limit)| (common_dir.join(name), *limit));
    let head = read_path(&git_dir.join("HEAD"), MAX_GIT_FILE_BYTES).ok().flatten().unwrap_or_default();
    let branch = head.strip_prefix(b"ref: ").map(|name| OsStr::from_bytes(name.trim_ascii()));
    let branch = branch.map(|name| (common_dir.join(name), MAX_GIT_FILE_BYTES));
    for (path, limit) in own.chain(shared).chain(branch) {
        let Ok(found) = fs::metadata(&path) else { continue };
        if !found.is_file() {
            return Err(GitError::Broken { path, reason: "it is not a file".to_owned() });
        }
        if found.len() > limit {
            return Err(GitError::Broken { path, reason: TOO_LONG_REASON.to_owned() });
        }
    }
    Ok(())
}

/// Returns true for a git directory by git's own rule: it has a `HEAD`, objects and references, the
/// latter two possibly shared.
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
    let read = read_path(&file, MAX_GIT_FILE_BYTES).map_err(GitError::io("reading", &file))?;
    let text = read.ok_or_else(|| broken(TOO_LONG_REASON))?;
    let named = Path::new(OsStr::from_bytes(text.trim_ascii_end()));
    git_dir.join(named).canonicalize().map_err(|_| broken("the directory it names is not there"))
}

/// Returns a repository's alternate object stores, as far as they belong to a git directory.
fn alternate_stores(common_dir: &Path) -> Vec<PathBuf> {
    let mut stores = vec![common_dir.join("objects")];
    let mut next = 0;
    while let Some(store) = stores.get(next).cloned() {
        next += 1;
        for named in read_alternates(&store) {
            let Ok(real) = store.join(named).canonicalize() else { continue };
            let is_store = real.is_dir() && real.parent().is_some_and(is_git_dir);
            if is_store && !stores.contains(&real) && stores.len() <= MAX_ALTERNATES {
                stores.push(real);
            }
        }
    }
    stores.split_off(1)
}

fn read_alternates(store: &Path) -> Vec<PathBuf> {
    let file = store.join("info/alternates");
    let text = read_path(&file, MAX_SETTINGS_BYTES).ok().flatten().unwrap_or_default();
    let lines = text.split(|&byte| byte == b'\n').filter(|line| !matches!(line.first(), None | Some(b'#')));
    lines.map(|line| PathBuf::from(OsStr::from_bytes(line))).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn a_repository_with_a_pipe_where_git_reads_a_file_is_refused_before_git_runs() {
        let kept = tempfile::tempdir().unwrap();
        let git_dir = kept.path().canonicalize().unwrap().join(".git");
        for directory in ["objects/info", "refs/heads", "info"] {
            fs::create_dir_all(git_dir.join(directory)).unwrap();
        }
        fs::write(git_dir.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        RepositoryPaths::find(kept.path()).unwrap();
        let names = GIT_DIRECTORY_FILES
            .iter()
            .chain(&COMMON_DIRECTORY_FILES)
            .map(|(name, _)| *name)
            .chain(["refs/heads/main"]);
        // Without these two in order it is no repository at all.
        for name in names.filter(|name| !["HEAD", "commondir"].contains(name)) {
            let pipe = git_dir.join(name);
            mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
            let found = RepositoryPaths::find(kept.path());
            let Err(GitError::Broken { path, .. }) = found else { panic!("{name}: {found:?}") };
            assert_eq!(path, pipe);
            fs::remove_file(pipe).unwrap();
        }
        fs::File::create(git_dir.join("config")).unwrap().set_len(1 << 40).unwrap();
        assert!(matches!(RepositoryPaths::find(kept.path()), Err(GitError::Broken { .. })));
    }
}
