//! Locks between putting and sweeping blobs, for all handles and processes.
//!
//! A blob is put some time before a reference to it is recorded. A sweep, which removes blobs
//! without a reference, must not run in between. So a put holds a shared lock until the reference
//! is recorded, and a sweep holds it exclusively.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::{Duration, Instant};

use journeyman_protocol::ContentHash;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::{Blobs, Durability};
use crate::StoreError;
use crate::private_directories::create_private_directory;

/// The name of the lock file. No fan-out directory has such a name.
const LOCK_FILE_NAME: &str = ".lock";
/// The file that gets a byte for each removal of blobs.
const REMOVALS_FILE_NAME: &str = ".removals";
/// Maximum wait for a removal: thousands of blobs are removed within a second.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause between two tries.
const LOCK_RETRY_PAUSE: Duration = Duration::from_millis(2);

/// A shared lock: while it lives, no [sweep](Blobs::try_lock_for_sweep) runs.
#[derive(Debug)]
pub struct UseLock(File);

/// An exclusive lock: while it lives, nobody holds the lock of [`Blobs::lock_for_use`].
#[derive(Debug)]
pub struct SweepLock(File);

impl Drop for UseLock {
    fn drop(&mut self) {
        // A child process that is being started may have the descriptor too for a moment.
        flock(&self.0, FlockOperation::Unlock).ok();
    }
}

impl Drop for SweepLock {
    fn drop(&mut self) {
        flock(&self.0, FlockOperation::Unlock).ok();
    }
}

impl Blobs {
    /// Takes the shared lock. The caller holds it from before putting (or finding) a blob until a
    /// reference to the blob is recorded where a sweep finds it. Several may hold it, also in one
    /// thread.
    ///
    /// # Errors
    /// Failures of the medium; a sweep that doesn't end in time.
    pub fn lock_for_use(&self) -> Result<UseLock, StoreError> {
        let begin = Instant::now();
        let file = self.open_lock_file()?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockShared) {
                Ok(()) => return Ok(UseLock(file)),
                Err(Errno::WOULDBLOCK | Errno::INTR) if begin.elapsed() < LOCK_TIMEOUT => {
                    std::thread::sleep(LOCK_RETRY_PAUSE);
                }
                Err(errno) => return Err(StoreError::io("wait for the blobs in", &self.dir, errno.into())),
            }
        }
    }

    /// Takes the exclusive lock for removing unreferenced blobs; `None` while the lock of
    /// [`Blobs::lock_for_use`] is held.
    ///
    /// # Errors
    /// Failures of the medium.
    pub fn try_lock_for_sweep(&self) -> Result<Option<SweepLock>, StoreError> {
        let file = self.open_lock_file()?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(SweepLock(file))),
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
            Err(errno) => Err(StoreError::io("lock the blobs in", &self.dir, errno.into())),
        }
    }

    /// Removes these blobs, except missing ones, and returns the number of removed ones.
    ///
    /// # Errors
    /// Failures of the medium, at the first blob that can't be removed.
    pub fn sweep(
        &self,
        _right: &SweepLock,
        hashes: impl IntoIterator<Item = ContentHash>,
    ) -> Result<usize, StoreError> {
        // Before and after: a process that looks in between has to look again, also after a crash
        // here.
        self.record_removal()?;
        let mut removed = 0;
        for hash in hashes {
            let path = self.path(&hash);
            let size = fs::symlink_metadata(&path).map(|found| found.len()).unwrap_or_default();
            match fs::remove_file(&path) {
                Ok(()) => {
                    removed += 1;
                    self.lock_ignoring_poison(&self.usage).subtract_bytes(size);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(StoreError::io("remove blob", &path, source)),
            }
        }
        self.record_removal()?;
        Ok(removed)
    }

    /// Returns a number that grows with each removal of blobs by any process. After a change, blobs
    /// that existed before may be gone.
    #[must_use]
    pub fn removal_count(&self) -> u64 {
        fs::metadata(self.dir.join(REMOVALS_FILE_NAME)).map_or(0, |found| found.len())
    }

    pub(super) fn record_removal(&self) -> Result<(), StoreError> {
        let path = self.dir.join(REMOVALS_FILE_NAME);
        let noted = OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
        let noted = noted.and_then(|mut file| file.write_all(b"."));
        noted.map_err(|source| StoreError::io("write", &path, source))
    }

    fn open_lock_file(&self) -> Result<File, StoreError> {
        let path = self.dir.join(LOCK_FILE_NAME);
        let open =
            || OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
        let opened = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create_private_directory(&self.dir, Durability::Later)?;
                open()
            }
            other => other,
        };
        opened.map_err(|source| StoreError::io("open", &path, source))
    }
}
