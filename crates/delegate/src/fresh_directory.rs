//! Directories that are created for a task of low risk, and the removal of those that killed
//! programs left.

use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use journeyman_workspace::remove_tree;
use rustix::fs::{FlockOperation, flock};

/// Prefix of the directories' names.
const DIRECTORY_PREFIX: &str = "jm-delegate-";
/// Maximum bytes of a path in a record.
const MAX_PATH_BYTES: u64 = 4096;

/// A new directory for one run, removed when this value is dropped unless it is kept.
///
/// A record in the user's state directory names it. As long as its owner lives, the record is
/// locked: so the next one knows of what a killed program left.
#[derive(Debug)]
pub struct FreshDirectory {
    path: PathBuf,
    record: PathBuf,
    /// Holds the lock on the record.
    _lock: File,
    is_kept: bool,
}

impl FreshDirectory {
    /// Creates a directory beneath `parent` with a record in `records`, and removes directories
    /// that killed programs left.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn create(parent: &Path, records: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(records)?;
        remove_abandoned(records);
        let name = format!("{DIRECTORY_PREFIX}{:x}", fastrand::u64(..));
        let (path, record) = (parent.join(&name), records.join(name));
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&record)?;
        flock(&file, FlockOperation::LockExclusive)?;
        file.write_all(path.as_os_str().as_bytes())?;
        let made = DirBuilder::new().mode(0o700).create(&path);
        if let Err(error) = made {
            std::fs::remove_file(&record).ok();
            return Err(error);
        }
        Ok(Self { path, record, _lock: file, is_kept: false })
    }

    /// Returns the path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps the directory for the user, unless it is empty.
    pub fn keep(&mut self) {
        let mut entries = std::fs::read_dir(&self.path).into_iter().flatten();
        self.is_kept = entries.next().is_some();
    }
}

impl Drop for FreshDirectory {
    fn drop(&mut self) {
        // A directory that can't be removed now is removed by the next run.
        if self.is_kept || remove_tree(&self.path).is_ok() {
            std::fs::remove_file(&self.record).ok();
        }
    }
}

/// Removes the directories whose owners have exited.
pub fn remove_abandoned(records: &Path) {
    for entry in std::fs::read_dir(records).into_iter().flatten().flatten() {
        let Ok(file) = File::open(entry.path()) else { continue };
        // A running owner holds the lock.
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        let mut path = Vec::new();
        if (&file).take(MAX_PATH_BYTES).read_to_end(&mut path).is_err() {
            continue;
        }
        let path = PathBuf::from(std::ffi::OsString::from_vec(path));
        // A record of another program may name any path, so only our own directories are removed.
        let is_own = path.file_name() == Some(&entry.file_name())
            && entry.file_name().as_bytes().starts_with(DIRECTORY_PREFIX.as_bytes())
            && path
                .symlink_metadata()
                .is_ok_and(|found| found.is_dir() && found.uid() == rustix::process::geteuid().as_raw());
        if !is_own || remove_tree(&path).is_ok() {
            std::fs::remove_file(entry.path()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_program_left_is_removed_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let [parent, records] = ["parent", "records"].map(|name| directory.path().join(name));
        std::fs::create_dir(&parent).unwrap();
        let first = FreshDirectory::create(&parent, &records).unwrap();
        std::fs::write(first.path().join("file"), "x").unwrap();
        let mut second = FreshDirectory::create(&parent, &records).unwrap();
        assert!(first.path().exists(), "its owner lives");
        std::fs::write(second.path().join("file"), "x").unwrap();
        second.keep();
        let kept = second.path().to_owned();
        drop(second);
        // A killed program removes neither its directory nor its record, and its lock is gone.
        let left = parent.join("jm-delegate-1");
        std::fs::create_dir_all(left.join("deep")).unwrap();
        std::fs::write(records.join("jm-delegate-1"), left.as_os_str().as_bytes()).unwrap();
        let others = directory.path().join("others");
        std::fs::create_dir(&others).unwrap();
        std::fs::write(records.join("jm-delegate-2"), others.as_os_str().as_bytes()).unwrap();
        let mut third = FreshDirectory::create(&parent, &records).unwrap();
        third.keep();
        let empty = third.path().to_owned();
        drop(third);
        assert!(first.path().exists() && kept.exists() && others.exists());
        assert!(!left.exists() && !empty.exists());
        drop(first);
        assert_eq!(std::fs::read_dir(&records).unwrap().count(), 0);
        assert_eq!(std::fs::read_dir(&parent).unwrap().count(), 1);
    }
}
