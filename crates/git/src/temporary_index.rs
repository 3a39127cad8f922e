//! The temporary index of a commit.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::GitError;
use crate::repository_paths::RepositoryPaths;

/// Prefix of the names of temporary indexes; the process id follows.
const TEMPORARY_INDEX_PREFIX: &str = "journeyman-index-";

/// The temporary index of a commit, in a directory of its own, which is removed when dropped.
pub(crate) struct TemporaryIndex {
    pub(crate) directory: PathBuf,
    pub(crate) path: PathBuf,
}

impl TemporaryIndex {
    /// Creates a copy of the user's index.
    pub(crate) fn create(place: &RepositoryPaths) -> Result<Self, GitError> {
        static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);
        remove_stale_indexes(&place.git_dir);
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory =
            place.git_dir.join(format!("{TEMPORARY_INDEX_PREFIX}{}.{number}", std::process::id()));
        fs::create_dir(&directory).map_err(GitError::io("making", &directory))?;
        let made = Self { path: directory.join("index"), directory };
        match copy_with_mtime(&place.git_dir.join("index"), &made.path) {
            Ok(()) => Ok(made),
            // No file was ever staged.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(made),
            Err(source) => {
                Err(GitError::Io { what: "copying the index to", path: made.path.clone(), source })
            }
        }
    }
}

/// Copies a file with its time: git compares the contents of files that are as new as the index.
pub(crate) fn copy_with_mtime(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = fs::File::open(from)?;
    let mut to = fs::File::create_new(to)?;
    io::copy(&mut from, &mut to)?;
    to.set_modified(from.metadata()?.modified()?)
}

impl Drop for TemporaryIndex {
    fn drop(&mut self) {
        // The next commit removes what is left after an error.
        fs::remove_dir_all(&self.directory).ok();
    }
}

/// Removes the temporary indexes of processes that no longer run.
fn remove_stale_indexes(git_dir: &Path) {
    let Ok(entries) = fs::read_dir(git_dir) else { return };
    for entry in entries.flatten() {
        let name: OsString = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(TEMPORARY_INDEX_PREFIX)) else {
            continue;
        };
        let pid = rest.split('.').next().and_then(|pid| pid.parse::<i32>().ok());
        let pid = pid.and_then(rustix::process::Pid::from_raw);
        let is_alive = pid.is_some_and(|pid| {
            !matches!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH))
        });
        if !is_alive {
            // Another process may have removed it already.
            fs::remove_file(entry.path()).or_else(|_| fs::remove_dir_all(entry.path())).ok();
        }
    }
}
