//! The git repositories of a project before and after a command: the paths to protect, and the
//! repositories that the command made.
//!
//! Git runs programs that a repository's settings name, and it does so on the host, at the user's
//! next `git status`. A command may therefore neither change a repository's own files nor make a
//! repository. Those that exist are mounted read-only; a mount can't keep a directory above it from
//! being moved away, nor a new one from being made, so the entries afterwards are compared by
//! identity.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use journeyman_protocol::RelPath;
use serde::{Deserialize, Serialize};

use crate::host_files::HostFiles;

/// A `.git` file is one line with a path, which has at most 4,095 bytes.
const MAX_POINTER_BYTES: u64 = 8 * 1024;

/// The kind of a `.git` entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum GitEntryIdentity {
    /// A directory, by device and inode: a name alone may stand for another one now.
    Directory(u64, u64),
    /// A file, by its text, as far as git reads it.
    Pointer(Vec<u8>),
    Link(Vec<u8>),
    /// An entry that couldn't be read; never equal to another.
    Unknown,
}

/// The `.git` entries of a project before a command.
///
/// Where they are stored, [`Repositories::relocate`] has to say where the project is when they are
/// read back.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "Vec<(RelPath, GitEntryIdentity)>", into = "Vec<(RelPath, GitEntryIdentity)>")]
pub struct Repositories {
    /// The directory where this process finds the files.
    reach: PathBuf,
    /// The directory where commands find them.
    root: PathBuf,
    found: BTreeMap<RelPath, GitEntryIdentity>,
}

impl Repositories {
    /// Reads these `.git` entries of the project at `root`, given relative to it. `reach` is a path
    /// by which this process reaches the files: the root itself, or a copy that commands find at
    /// the root. What the system resolves it to doesn't matter.
    #[must_use]
    pub fn read(reach: &Path, root: &Path, entries: impl IntoIterator<Item = RelPath>) -> Self {
        let found = entries.into_iter().map(|path| {
            let identity = read_identity(&reach.join(path.as_path()));
            (path, identity)
        });
        Self { reach: reach.to_owned(), root: root.to_owned(), found: found.collect() }
    }

    /// Returns the same entries, of a project that is reached by these paths now (see
    /// [`Repositories::read`]). On another device than then, directories can't be told from each
    /// other any more: each that is there is taken for the one before.
    #[must_use]
    pub fn relocate(self, reach: &Path, root: &Path, is_same_device: bool) -> Self {
        let found = self.found.into_iter().map(|(path, known)| {
            let now = read_identity(&reach.join(path.as_path()));
            let known = match (&known, &now) {
                (GitEntryIdentity::Directory(..), GitEntryIdentity::Directory(..)) if !is_same_device => now,
                _ => known,
            };
            (path, known)
        });
        Self { reach: reach.to_owned(), root: root.to_owned(), found: found.collect() }
    }

    /// Returns the paths that must be read-only for a command that may write: the entries, and the
    /// directories beneath the root that they point to. Links are left out, because they can't be
    /// mounted over; [`Repositories::find_planted`] notices when one was replaced.
    #[must_use]
    pub fn protected_paths(&self) -> Vec<RelPath> {
        let mut all = Vec::with_capacity(self.found.len());
        let root = self.root.canonicalize().unwrap_or_else(|_| self.root.clone());
        // The targets of pointers and links are those that commands see.
        let view = HostFiles::new(root.clone(), self.reach.clone());
        for (path, identity) in &self.found {
            let at = root.join(path.as_path());
            let target = match identity {
                GitEntryIdentity::Directory(..) => None,
                GitEntryIdentity::Pointer(text) => {
                    git_directory_path(text).map(|to| at.parent().unwrap_or(&at).join(to))
                }
                GitEntryIdentity::Link(_) => Some(at.clone()),
                GitEntryIdentity::Unknown => continue,
            };
            if !matches!(identity, GitEntryIdentity::Link(_)) && is_reached_without_links(&self.reach, path) {
                all.push(path.clone());
            }
            let inside = target
                .and_then(|target| view.resolve(&target, |_, _| ()).ok())
                .and_then(|real| real.strip_prefix(&root).ok().and_then(to_rel_path));
            all.extend(inside);
        }
        all.sort();
        all.dedup();
        // What lies in a protected directory is protected with it.
        let mut outer: Option<PathBuf> = None;
        all.retain(|path| {
            let path = path.as_path();
            if outer.as_ref().is_some_and(|outer| path.starts_with(outer)) {
                return false;
            }
            outer = Some(path.to_owned());
            true
        });
        all
    }

    /// Returns true if the entry was there before.
    #[must_use]
    pub fn contains(&self, path: &RelPath) -> bool {
        self.found.contains_key(path)
    }

    /// Returns the entries among `now` that weren't there before, or are other ones. A repository
    /// that came to another place with a directory above it is the same one, unless it points
    /// elsewhere by a relative path.
    #[must_use]
    pub fn find_planted(&self, now: impl IntoIterator<Item = RelPath>) -> Vec<RelPath> {
        let is_known = |path: &RelPath| {
            let identity = read_identity(&self.reach.join(path.as_path()));
            match &identity {
                GitEntryIdentity::Unknown => false,
                GitEntryIdentity::Directory(..) => self.found.values().any(|known| *known == identity),
                GitEntryIdentity::Pointer(_) | GitEntryIdentity::Link(_) => {
                    self.found.get(path) == Some(&identity)
                }
            }
        };
        // A walk may pass by one that was there before: new ignore rules can hide it.
        let there = |path: &&RelPath| fs::symlink_metadata(self.reach.join(path.as_path())).is_ok();
        let before = self.found.keys().filter(there).cloned();
        let all: BTreeSet<RelPath> = now.into_iter().chain(before).collect();
        all.into_iter().filter(|path| !is_known(path)).collect()
    }
}

impl From<Vec<(RelPath, GitEntryIdentity)>> for Repositories {
    fn from(found: Vec<(RelPath, GitEntryIdentity)>) -> Self {
        Self { reach: PathBuf::new(), root: PathBuf::new(), found: found.into_iter().collect() }
    }
}

impl From<Repositories> for Vec<(RelPath, GitEntryIdentity)> {
    fn from(repositories: Repositories) -> Self {
        repositories.found.into_iter().collect()
    }
}

fn read_identity(path: &Path) -> GitEntryIdentity {
    let Ok(found) = fs::symlink_metadata(path) else { return GitEntryIdentity::Unknown };
    if found.is_symlink() {
        let target = fs::read_link(path).map(|target| target.into_os_string().into_encoded_bytes());
        return target.map_or(GitEntryIdentity::Unknown, GitEntryIdentity::Link);
    }
    if found.is_dir() {
        {
            use std::os::unix::fs::MetadataExt as _;
            return GitEntryIdentity::Directory(found.dev(), found.ino());
        }
    }
    // Opening a pipe would wait for a writer.
    if !found.is_file() {
        return GitEntryIdentity::Unknown;
    }
    let read = || {
        let mut text = Vec::new();
        fs::File::open(path)?.take(MAX_POINTER_BYTES).read_to_end(&mut text).map(|_| text)
    };
    read().map_or(GitEntryIdentity::Unknown, GitEntryIdentity::Pointer)
}

/// Returns the path that a `.git` file points to.
fn git_directory_path(text: &[u8]) -> Option<&Path> {
    let text = text.strip_prefix(b"gitdir:")?.trim_ascii();
    bytes_to_path(text)
}

fn bytes_to_path(text: &[u8]) -> Option<&Path> {
    use std::os::unix::ffi::OsStrExt as _;
    Some(Path::new(OsStr::from_bytes(text)))
}

fn to_rel_path(path: &Path) -> Option<RelPath> {
    RelPath::parse(path.as_os_str().as_encoded_bytes()).ok()
}

/// Returns true if no directory on the way is a link: the sandbox refuses to protect files beyond
/// one.
fn is_reached_without_links(root: &Path, path: &RelPath) -> bool {
    let mut above = path.parent();
    while let Some(directory) = above {
        if fs::symlink_metadata(root.join(directory.as_path())).map_or(true, |found| found.is_symlink()) {
            return false;
        }
        above = directory.parent();
    }
    true
}
