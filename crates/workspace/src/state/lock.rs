//! One writer a tree: an advisory lock on a file in the state directory.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::WorkspaceError;

/// The interval at which a lock that another process holds is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Maximum time for which another process holds the lock only to test it.
const MAX_PROBE_WAIT: Duration = Duration::from_millis(50);
/// The lock file holds `pid` and a number; whatever is longer wasn't written by us.
const MAX_HOLDER_BYTES: u64 = 64;

/// The lock file; locked while a [`LockGuard`] of it lives.
#[derive(Debug)]
pub(crate) struct FileLock {
    path: PathBuf,
    file: File,
}

/// The lock, held. Dropping it lets go.
#[derive(Debug)]
pub(crate) struct LockGuard<'a>(&'a FileLock);

impl Drop for LockGuard<'_> {
    fn drop(&mut self) {
        // Unlocking a descriptor of our own can't fail; if it did, closing it unlocks too.
        let _unlocked = flock(&self.0.file, FlockOperation::Unlock);
    }
}

/// The lock, held without a borrow. Dropping it lets go.
#[derive(Debug)]
pub(crate) struct OwnedLockGuard(FileLock);

impl Drop for OwnedLockGuard {
    fn drop(&mut self) {
        drop(LockGuard(&self.0));
    }
}

impl OwnedLockGuard {
    /// Returns true if the file that is locked still has its name.
    pub(crate) fn is_in_place(&self) -> bool {
        self.0.is_in_place()
    }
}

impl FileLock {
    /// Opens the lock file, making it and the state directory where they are missing.
    pub(crate) fn open(state_dir: &Path) -> Result<Self, WorkspaceError> {
        make_private_dir(state_dir)?;
        let path = state_dir.join("lock");
        let file = private_file_options().read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(|source| state_error("open", &path, source))?;
        Ok(Self { path, file })
    }

    /// Takes the lock, waiting at most `wait`.
    pub(crate) fn acquire(&self, wait: Duration) -> Result<LockGuard<'_>, WorkspaceError> {
        let begin = Instant::now();
        loop {
            if let Some(held) = self.try_take()? {
                return Ok(held);
            }
            if begin.elapsed() >= wait {
                return Err(WorkspaceError::Busy { holder: self.holder(), waited: wait });
            }
            std::thread::sleep(POLL_INTERVAL.min(wait));
        }
    }

    /// Takes the lock if nobody has it.
    pub(crate) fn try_take(&self) -> Result<Option<LockGuard<'_>>, WorkspaceError> {
        match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                let held = LockGuard(self);
                self.write_holder().map_err(|source| state_error("write", &self.path, source))?;
                Ok(Some(held))
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
            Err(errno) => Err(state_error("lock", &self.path, errno.into())),
        }
    }

    /// Takes the lock for as long as the returned guard lives. Waits for a process that holds the
    /// lock only to test it.
    pub(crate) fn into_guard(self) -> Result<OwnedLockGuard, WorkspaceError> {
        // What `take` gives would end with this call; the file stays locked until its own
        // unlocking.
        std::mem::forget(self.acquire(MAX_PROBE_WAIT)?);
        Ok(OwnedLockGuard(self))
    }

    /// Returns the holder of the lock, if there is one. Nothing is written.
    pub(crate) fn current_holder(&self) -> Option<String> {
        match flock(&self.file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => {
                drop(LockGuard(self));
                None
            }
            Err(_) => Some(self.holder()),
        }
    }

    /// Returns true if the file that is locked still has its name.
    pub(crate) fn is_in_place(&self) -> bool {
        let ours = self.file.metadata().map(|found| (found.dev(), found.ino()));
        let there = fs::symlink_metadata(&self.path).map(|found| (found.dev(), found.ino()));
        matches!((ours, there), (Ok(ours), Ok(there)) if ours == there)
    }

    fn write_holder(&self) -> std::io::Result<()> {
        // The number is padded, so that a shorter one leaves nothing of a longer one behind.
        let line = format!("pid {:<10}\n", std::process::id());
        self.file.write_all_at(line.as_bytes(), 0)
    }

    fn holder(&self) -> String {
        let mut text = String::new();
        let read =
            fs::File::open(&self.path).and_then(|file| file.take(MAX_HOLDER_BYTES).read_to_string(&mut text));
        match read {
            Ok(_) if !text.trim().is_empty() => text.trim().to_owned(),
            _ => "unknown".to_owned(),
        }
    }
}

/// Replaces a file that is checked when it is read, through a temporary file. Does nothing while
/// another process replaces it.
pub(crate) fn replace_file(new: &Path, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let file = private_file_options().write(true).create(true).truncate(false).open(new)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK | Errno::INTR) => return Ok(()),
        Err(errno) => return Err(errno.into()),
    }
    // Whoever had the lock until now has given this file its place.
    let still_there = fs::symlink_metadata(new).is_ok_and(|there| {
        file.metadata().is_ok_and(|ours| (ours.dev(), ours.ino()) == (there.dev(), there.ino()))
    });
    if !still_there {
        return Ok(());
    }
    let written =
        file.set_len(0).and_then(|()| file.write_all_at(bytes, 0)).and_then(|()| fs::rename(new, path));
    written.inspect_err(|_| drop(fs::remove_file(new)))
}

/// Replaces a file of our own whole, by way of one beside it whose name ends in `.new`; its content
/// is on the disk when this returns. One writer at a time: the caller sees to it.
/// [`sync_parent_dir`] is for who needs the name there as well.
pub(crate) fn replace_durably(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let new = path.with_extension("new");
    let file = private_file_options().write(true).create(true).truncate(true).open(&new);
    file.and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&new, path))
        .inspect_err(|_| drop(fs::remove_file(&new)))
}

/// Waits until the names in the directory of `path` are on the disk.
pub(crate) fn sync_parent_dir(path: &Path) -> std::io::Result<()> {
    fs::File::open(path.parent().unwrap_or(path))?.sync_all()
}

/// Returns options for a private file in the state directory, never opened through a link, whose
/// target may be a foreign file.
pub(crate) fn private_file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    options
}

/// Makes a directory that only its owner may enter.
pub(crate) fn make_private_dir(path: &Path) -> Result<(), WorkspaceError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| state_error("create the directory", path, source))
}

pub(crate) fn state_error(action: &'static str, path: &Path, source: std::io::Error) -> WorkspaceError {
    WorkspaceError::State { action, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_told_who_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, theirs) = (FileLock::open(dir.path()).unwrap(), FileLock::open(dir.path()).unwrap());
        let held = ours.acquire(Duration::ZERO).unwrap();
        let refusal = theirs.acquire(Duration::ZERO).unwrap_err();
        let pid = format!("pid {}", std::process::id());
        assert!(matches!(&refusal, WorkspaceError::Busy { holder, .. } if *holder == pid), "{refusal}");
        drop(held);
        assert!(theirs.acquire(Duration::ZERO).is_ok());
    }
}
