//! The lock between putting and removing blobs, among all handles and processes.
//!
//! Whoever puts a blob needs some time until it is written down somewhere that it is needed.
//! Whoever removes blobs that nobody needs has to know that nobody is in the middle of that: the
//! one holds a lock shared, the other alone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::{Duration, Instant};

use journeyman_protocol::ContentHash;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::{Blobs, Durability};
use crate::StoreError;
use crate::place::create_private;

/// The file that is locked. No fan-out directory has such a name.
const LOCK: &str = ".lock";
/// One byte for each time that blobs were removed.
const REMOVALS: &str = ".removals";
/// Maximum wait for a removal: thousands of blobs are removed within a second.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(2);

/// While it lives, nobody [sweeps](Blobs::sweeping).
#[derive(Debug)]
pub struct Using(File);

/// While it lives, nobody [uses](Blobs::using) blobs in a way that the sweeper can't see.
#[derive(Debug)]
pub struct Sweeping(File);

impl Drop for Using {
    fn drop(&mut self) {
        // A process that is being started may have the descriptor too for a moment.
        flock(&self.0, FlockOperation::Unlock).ok();
    }
}

impl Drop for Sweeping {
    fn drop(&mut self) {
        flock(&self.0, FlockOperation::Unlock).ok();
    }
}

impl Blobs {
    /// To be held from before a blob is put (or found to be there) until it is written down where a
    /// sweeper looks that it is needed. Several may hold it, also in one thread.
    ///
    /// # Errors
    /// Failures of the medium; somebody sweeps and doesn't come to an end.
    pub fn using(&self) -> Result<Using, StoreError> {
        let begin = Instant::now();
        let file = self.lock_file()?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockShared) {
                Ok(()) => return Ok(Using(file)),
                Err(Errno::WOULDBLOCK | Errno::INTR) if begin.elapsed() < TIMEOUT => {
                    std::thread::sleep(PAUSE);
                }
                Err(errno) => return Err(StoreError::io("wait for the blobs in", &self.dir, errno.into())),
            }
        }
    }

    /// The right to remove blobs that nobody needs; `None` while somebody [uses](Blobs::using)
    /// them.
    ///
    /// # Errors
    /// Failures of the medium.
    pub fn sweeping(&self) -> Result<Option<Sweeping>, StoreError> {
        let file = self.lock_file()?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Sweeping(file))),
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
            Err(errno) => Err(StoreError::io("lock the blobs in", &self.dir, errno.into())),
        }
    }

    /// Removes these blobs. Those that aren't there are passed over; gives how many were.
    ///
    /// # Errors
    /// Failures of the medium, at the first blob that can't be removed.
    pub fn sweep(
        &self,
        _right: &Sweeping,
        hashes: impl IntoIterator<Item = ContentHash>,
    ) -> Result<usize, StoreError> {
        // Before and after: whoever looks in between looks again, also when this is cut off.
        self.note_removal()?;
        let mut removed = 0;
        for hash in hashes {
            let path = self.path(&hash);
            let size = fs::symlink_metadata(&path).map(|found| found.len()).unwrap_or_default();
            match fs::remove_file(&path) {
                Ok(()) => {
                    removed += 1;
                    self.lock(&self.usage).shrink(size);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(StoreError::io("remove blob", &path, source)),
            }
        }
        self.note_removal()?;
        Ok(removed)
    }

    /// A number that grows whenever blobs are removed, by whichever process: what was known to be
    /// here before may not be any more.
    #[must_use]
    pub fn removals(&self) -> u64 {
        fs::metadata(self.dir.join(REMOVALS)).map_or(0, |found| found.len())
    }

    pub(super) fn note_removal(&self) -> Result<(), StoreError> {
        let path = self.dir.join(REMOVALS);
        let noted = OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
        let noted = noted.and_then(|mut file| file.write_all(b"."));
        noted.map_err(|source| StoreError::io("write", &path, source))
    }

    fn lock_file(&self) -> Result<File, StoreError> {
        let path = self.dir.join(LOCK);
        let open =
            || OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
        let opened = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create_private(&self.dir, Durability::Later)?;
                open()
            }
            other => other,
        };
        opened.map_err(|source| StoreError::io("open", &path, source))
    }
}
