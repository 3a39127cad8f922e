//! A write lock for files on disk, held by one process at a time.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::IndexError;

/// A write lock, held until it is dropped: a locked file (`flock`).
#[derive(Debug)]
pub(crate) struct WriteLock {
    file: File,
}

impl WriteLock {
    /// Takes the write lock. Without `wait`, `None` if another process has it.
    pub(crate) fn take(path: &Path, wait: bool) -> Result<Option<Self>, IndexError> {
        let file = File::options().create(true).truncate(false).write(true).open(path);
        let file = file.map_err(IndexError::io("opening", path))?;
        let how = if wait { FlockOperation::LockExclusive } else { FlockOperation::NonBlockingLockExclusive };
        match flock(&file, how) {
            Ok(()) => Ok(Some(Self { file })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(IndexError::io("locking", path)(error.into())),
        }
    }
}

impl Drop for WriteLock {
    fn drop(&mut self) {
        // Closing it isn't enough: a child that this process starts at the moment shares the locked
        // file until it executes its program.
        flock(&self.file, FlockOperation::Unlock).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_when_it_is_dropped_though_a_child_shares_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let held = WriteLock::take(&path, false).unwrap().unwrap();
        assert!(WriteLock::take(&path, false).unwrap().is_none(), "two writers at once");
        let childs = held.file.try_clone().unwrap();
        drop(held);
        assert!(WriteLock::take(&path, false).unwrap().is_some(), "nobody writes any more");
        drop(childs);
    }
}
