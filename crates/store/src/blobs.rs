//! Content-addressed payloads: `<dir>/<two hex digits>/<the other 62>`.
//!
//! A blob's file is one header byte (how the rest is compressed) and the compressed bytes. Files
//! appear whole, by rename, and are never changed afterwards; two processes that put the same bytes
//! agree on the file.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use journeyman_protocol::ContentHash;

use crate::blobs::compression::{BlobCompressor, decompress_blob};
use crate::blobs::quota::{DiskUsage, TEMPORARY_PREFIX};
use crate::private_directories::{create_private_directory, sync_dir};
use crate::{Durability, StoreError};

mod compression;
mod locks;
mod quota;

pub use compression::MAX_BLOB_BYTES;
pub use locks::{SweepLock, UseLock};

/// Maximum bytes of a stored blob that is compared with the bytes to put. Comparing a larger one
/// would cost more memory than a damaged blob is worth.
const MAX_COMPARED_BYTES: usize = 16 * 1024 * 1024;
/// Name of the directory for quarantined damaged blobs. No fan-out directory has such a name.
const DAMAGED_DIR_NAME: &str = "damaged";

/// The result of a put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOutcome {
    /// The blob is new: it is about to be stored, in this many bytes on disk.
    New(u64),
    /// The blob was stored before.
    Already,
}

/// A callback for each put blob, called before the blob is visible.
type PutCallback<'a> = &'a mut dyn FnMut(&ContentHash, PutOutcome) -> io::Result<()>;

/// A directory of blobs, each under the hash of its bytes. Files have mode 0600, directories 0700.
///
/// The blobs that were put longest ago are removed for the quota, except pinned ones and those of
/// the last ten minutes. The quota may be exceeded by a 64th, because blobs aren't counted at every
/// put. All methods block; handles in several processes may use one directory.
#[derive(Debug)]
pub struct Blobs {
    dir: PathBuf,
    quota: u64,
    usage: Mutex<DiskUsage>,
    pinned: Mutex<HashSet<ContentHash>>,
    packer: Mutex<BlobCompressor>,
    unsynced: AtomicBool,
    flushing: Mutex<()>,
    names: AtomicU64,
}

impl Blobs {
    /// Creates a handle on `dir`. Nothing is read or created before the first use.
    ///
    /// # Errors
    /// None today; a directory that can't be used is reported by the first call that needs it.
    pub fn open(dir: &Path, quota_bytes: u64) -> Result<Self, StoreError> {
        Ok(Self {
            dir: dir.to_owned(),
            quota: quota_bytes,
            usage: Mutex::default(),
            pinned: Mutex::default(),
            packer: Mutex::default(),
            unsynced: AtomicBool::new(false),
            flushing: Mutex::default(),
            names: AtomicU64::new(0),
        })
    }

    /// Returns the directory of the blobs.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Stores `bytes` durably and returns their hash. Stored bytes are not written again, except
    /// over a damaged blob of up to 16 MiB.
    ///
    /// # Errors
    /// [`StoreError::BlobTooLarge`], [`StoreError::QuotaFull`], failures of the medium.
    pub fn put(&self, bytes: &[u8]) -> Result<ContentHash, StoreError> {
        self.put_with_durability(bytes, Durability::Now)
    }

    /// Stores `bytes` and returns their hash; `durability` determines when they have to be on disk.
    ///
    /// # Errors
    /// As [`Blobs::put`].
    pub fn put_with_durability(
        &self,
        bytes: &[u8],
        durability: Durability,
    ) -> Result<ContentHash, StoreError> {
        self.put_with_callback(bytes, durability, &mut |_, _| Ok(()))
    }

    /// Stores `bytes` as [`Blobs::put_with_durability`] does, and calls `note` before the blob is
    /// visible, so that the caller can record every blob: a crash leaves none unrecorded. If `note`
    /// fails, nothing is stored.
    ///
    /// # Errors
    /// As [`Blobs::put`], and the error of `note`.
    pub fn put_with_callback(
        &self,
        bytes: &[u8],
        durability: Durability,
        note: PutCallback<'_>,
    ) -> Result<ContentHash, StoreError> {
        if bytes.len() > MAX_BLOB_BYTES {
            let (bytes, limit) = (bytes.len() as u64, MAX_BLOB_BYTES as u64);
            return Err(StoreError::BlobTooLarge { bytes, limit });
        }
        let hash = ContentHash::of(bytes);
        let path = self.path(&hash);
        if self.reuse_existing_blob(&path, bytes, durability)? {
            note(&hash, PutOutcome::Already).map_err(|source| StoreError::io("note blob", &path, source))?;
        } else {
            self.write(&hash, &path, bytes, (durability, note))?;
        }
        Ok(hash)
    }

    /// Waits until all blobs put with [`Durability::Later`] are on disk, by one flush of the file
    /// system. Does nothing if there are none.
    ///
    /// # Errors
    /// Failures of the medium; the blobs then still count as not durable.
    pub fn sync(&self) -> Result<(), StoreError> {
        // Held during the flush: whoever finds nothing to flush has waited for the flush of others.
        let _flushing = self.lock_ignoring_poison(&self.flushing);
        if !self.unsynced.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        self.lock_ignoring_poison(&self.packer).release_buffers();
        let flushed = File::open(&self.dir).and_then(|dir| flush_file_system(&dir));
        flushed.map_err(|source| {
            self.unsynced.store(true, Ordering::Release);
            StoreError::io("flush the blobs in", &self.dir, source)
        })
    }

    /// Returns the bytes with this hash; `None` if they aren't stored.
    ///
    /// # Errors
    /// [`StoreError::BlobDamaged`] when the stored bytes don't have this hash; failures of the
    /// medium.
    pub fn get(&self, hash: &ContentHash) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.path(hash);
        let stored = match fs::read(&path) {
            Ok(stored) => stored,
            Err(error) if is_not_found(&error) => return Ok(None),
            Err(source) => return Err(StoreError::io("read blob", &path, source)),
        };
        let damaged = |detail: String| StoreError::BlobDamaged { hash: *hash, path: path.clone(), detail };
        let bytes = decompress_blob(stored).map_err(damaged)?;
        if ContentHash::of(&bytes) == *hash {
            Ok(Some(bytes))
        } else {
            Err(damaged("its content has another hash".to_owned()))
        }
    }

    /// Returns true if there is a file for this hash. Its content is not read.
    ///
    /// # Errors
    /// Failures of the medium.
    pub fn contains(&self, hash: &ContentHash) -> Result<bool, StoreError> {
        Ok(self.blob_file_metadata(&self.path(hash))?.is_some())
    }

    /// Returns true if there is a file for this hash, and marks it as put just now, as if its bytes
    /// had been put again.
    ///
    /// # Errors
    /// Failures of the medium.
    pub fn touch(&self, hash: &ContentHash) -> Result<bool, StoreError> {
        let path = self.path(hash);
        let found = self.blob_file_metadata(&path)?;
        Ok(found.is_some_and(|found| self.touch_if_stale(&path, found.mtime())))
    }

    fn blob_file_metadata(&self, path: &Path) -> Result<Option<fs::Metadata>, StoreError> {
        match fs::symlink_metadata(path) {
            Ok(found) => Ok(Some(found).filter(|found| found.is_file() && found.len() > 0)),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(source) => Err(StoreError::io("look for blob", path, source)),
        }
    }

    /// Returns the compressed size of a blob in bytes; `None` if it isn't stored.
    ///
    /// # Errors
    /// Failures of the medium.
    pub fn stored_bytes(&self, hash: &ContentHash) -> Result<Option<u64>, StoreError> {
        let path = self.path(hash);
        match fs::symlink_metadata(&path) {
            Ok(found) => Ok(Some(found.len()).filter(|_| found.is_file())),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(source) => Err(StoreError::io("look for blob", &path, source)),
        }
    }

    /// Removes the blob. Returns false if it wasn't stored.
    ///
    /// # Errors
    /// Failures of the medium.
    pub fn remove(&self, hash: &ContentHash) -> Result<bool, StoreError> {
        let path = self.path(hash);
        let size = fs::symlink_metadata(&path).map(|found| found.len()).unwrap_or_default();
        match fs::remove_file(&path) {
            Ok(()) => {
                self.lock_ignoring_poison(&self.usage).subtract_bytes(size);
                self.record_removal()?;
                Ok(true)
            }
            Err(error) if is_not_found(&error) => Ok(false),
            Err(source) => Err(StoreError::io("remove blob", &path, source)),
        }
    }

    /// Moves a damaged blob to the quarantine directory and returns its new path; `None` if it
    /// isn't stored. Afterwards the blob counts as removed.
    ///
    /// # Errors
    /// Failures of the medium.
    pub fn quarantine(&self, hash: &ContentHash) -> Result<Option<PathBuf>, StoreError> {
        let (path, aside) = (self.path(hash), self.dir.join(DAMAGED_DIR_NAME));
        create_private_directory(&aside, Durability::Later)?;
        let aside = aside.join(hash.to_string());
        match fs::rename(&path, &aside) {
            Ok(()) => {
                self.record_removal()?;
                Ok(Some(aside))
            }
            Err(error) if is_not_found(&error) => Ok(None),
            Err(source) => Err(StoreError::io("set aside blob", &path, source)),
        }
    }

    /// Counts the compressed bytes of all blobs.
    ///
    /// # Errors
    /// Failures of the medium.
    pub fn total_bytes(&self) -> Result<u64, StoreError> {
        Ok(quota::scan(&self.dir)?.total())
    }

    /// Prevents the removal of a blob for the quota, as long as this handle lives.
    pub fn pin(&self, hash: &ContentHash) {
        self.lock_ignoring_poison(&self.pinned).insert(*hash);
    }

    /// Returns the path of a blob's file, whether or not it exists.
    #[must_use]
    pub fn path(&self, hash: &ContentHash) -> PathBuf {
        let name = hash.to_string();
        let (fan_out, rest) = name.split_at_checked(2).unwrap_or(("", &name));
        let mut path = PathBuf::with_capacity(self.dir.as_os_str().len() + name.len() + 2);
        path.push(&self.dir);
        path.push(fan_out);
        path.push(rest);
        path
    }

    fn lock_ignoring_poison<'a, T>(&self, mutex: &'a Mutex<T>) -> std::sync::MutexGuard<'a, T> {
        // The locks protect a count, a set, a buffer and nothing, all valid after any panic.
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the blob is stored already. Marks it as recently put, and makes it durable
    /// if asked.
    fn reuse_existing_blob(
        &self,
        path: &Path,
        bytes: &[u8],
        durability: Durability,
    ) -> Result<bool, StoreError> {
        let found = match fs::symlink_metadata(path) {
            Ok(found) => found,
            Err(error) if is_not_found(&error) => return Ok(false),
            Err(source) => return Err(StoreError::io("look for blob", path, source)),
        };
        // A power failure before a `sync` can leave a file short or empty; such a file is
        // rewritten.
        if !found.is_file() || !compression::is_plausible_file_size(found.len(), bytes.len() as u64) {
            return Ok(false);
        }
        // Marked before it is compared, so that a removal is noticed here or leaves it out.
        if !self.touch_if_stale(path, found.mtime()) {
            return Ok(false);
        }
        // A file of the right size may be damaged. Then the good bytes replace it.
        let is_same = |stored| decompress_blob(stored).is_ok_and(|stored| stored == bytes);
        if bytes.len() <= MAX_COMPARED_BYTES && !fs::read(path).is_ok_and(is_same) {
            return Ok(false);
        }
        // Its writer may not have synced it yet. Syncing a clean file costs next to nothing.
        match durability {
            Durability::Now => {
                let synced = File::open(path).and_then(|file| file.sync_all());
                synced.map_err(|source| StoreError::io("flush blob", path, source))?;
                self.sync_parent(path)?;
            }
            Durability::Later => self.unsynced.store(true, Ordering::Release),
        }
        Ok(true)
    }

    /// Marks a blob as recently put. Returns false if it was removed meanwhile.
    fn touch_if_stale(&self, path: &Path, time: i64) -> bool {
        if !self.lock_ignoring_poison(&self.usage).is_stale_time(time) {
            return true;
        }
        match quota::touch(path).and_then(|()| fs::symlink_metadata(path)) {
            Ok(touched) => self.lock_ignoring_poison(&self.usage).advance_clock(touched.mtime()),
            Err(error) if is_not_found(&error) => return false,
            // Best effort: a blob whose time can't be set is removed earlier.
            Err(_) => {}
        }
        true
    }

    fn write(
        &self,
        hash: &ContentHash,
        path: &Path,
        bytes: &[u8],
        means: (Durability, PutCallback<'_>),
    ) -> Result<(), StoreError> {
        // Unique among the live handles and threads of this process.
        let handle = std::ptr::from_ref(self).addr();
        let number = self.names.fetch_add(1, Ordering::Relaxed);
        let name = format!("{TEMPORARY_PREFIX}{}-{handle:x}-{number}", std::process::id());
        let temporary = path.with_file_name(name);
        let written = self.write_and_rename(&temporary, path, hash, bytes, means);
        if written.is_err() {
            // The first error is reported; a leftover file is removed later.
            drop(fs::remove_file(&temporary));
        }
        written
    }

    fn write_and_rename(
        &self,
        temporary: &Path,
        path: &Path,
        hash: &ContentHash,
        bytes: &[u8],
        (durability, note): (Durability, PutCallback<'_>),
    ) -> Result<(), StoreError> {
        let mut file = self.create_file(temporary, durability)?;
        let failed = |source| StoreError::io("write blob", path, source);
        match self.packer.try_lock() {
            Ok(mut packer) => packer.compress_to_file(bytes, &mut file),
            // Another thread is compressing. A temporary compressor costs more, but less than
            // waiting.
            Err(_) => BlobCompressor::default().compress_to_file(bytes, &mut file),
        }
        .map_err(failed)?;
        if durability == Durability::Now {
            file.sync_all().map_err(failed)?;
        }
        let written = file.metadata().map_err(failed)?;
        self.make_room(hash, written.len(), written.mtime())?;
        note(hash, PutOutcome::New(written.len())).map_err(failed)?;
        fs::rename(temporary, path).map_err(failed)?;
        match durability {
            Durability::Now => self.sync_parent(path)?,
            Durability::Later => self.unsynced.store(true, Ordering::Release),
        }
        Ok(())
    }

    /// Creates a file that must not exist, and the directories above it where they are missing.
    fn create_file(&self, path: &Path, durability: Durability) -> Result<File, StoreError> {
        let open = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let opened = match open() {
            Err(error) if is_not_found(&error) => {
                create_private_directory(path.parent().unwrap_or(&self.dir), durability)?;
                open()
            }
            other => other,
        };
        opened.map_err(|source| StoreError::io("create blob", path, source))
    }

    fn sync_parent(&self, path: &Path) -> Result<(), StoreError> {
        sync_dir(path.parent().unwrap_or(&self.dir))
    }

    fn make_room(&self, hash: &ContentHash, size: u64, now: i64) -> Result<(), StoreError> {
        let mut usage = self.lock_ignoring_poison(&self.usage);
        usage.advance_clock(now);
        if usage.must_count(hash, size, self.quota) {
            let pinned = self.lock_ignoring_poison(&self.pinned).clone();
            if quota::enforce_quota(&self.dir, self.quota, size, now, &pinned, &mut usage)? {
                self.record_removal()?;
            }
        }
        usage.add_bytes(size);
        Ok(())
    }
}

impl Drop for Blobs {
    fn drop(&mut self) {
        // Callers that need the error call `sync` themselves; this serves the others.
        drop(self.sync());
    }
}

fn is_not_found(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

fn flush_file_system(dir: &File) -> io::Result<()> {
    rustix::fs::syncfs(dir).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_blob_that_another_process_put_is_flushed_by_whoever_puts_it_again() {
        let home = tempfile::tempdir().unwrap();
        let [other, own] = [(), ()].map(|()| Blobs::open(home.path(), 1 << 30).unwrap());
        other.put_with_durability(b"content", Durability::Later).unwrap();
        own.put_with_durability(b"content", Durability::Later).unwrap();
        assert!(own.unsynced.load(Ordering::Acquire));
    }

    #[test]
    fn nobody_is_told_that_blobs_are_on_disk_while_another_thread_flushes_them() {
        let home = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(home.path(), 1 << 30).unwrap();
        blobs.put_with_durability(b"content", Durability::Later).unwrap();
        let (tell, told) = channel();
        thread::scope(|scope| {
            // The first flush waits for this before it begins.
            let held = blobs.packer.lock().unwrap();
            scope.spawn(|| blobs.sync().unwrap());
            while blobs.unsynced.load(Ordering::Acquire) {
                thread::yield_now();
            }
            let (second, blobs) = (tell.clone(), &blobs);
            scope.spawn(move || {
                blobs.sync().unwrap();
                second.send("the second says that it is done").unwrap();
            });
            thread::sleep(Duration::from_millis(100));
            tell.send("the first begins to flush").unwrap();
            drop(held);
        });
        assert_eq!(told.recv().unwrap(), "the first begins to flush");
    }
}
