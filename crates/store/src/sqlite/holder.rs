//! The liveness of the process that holds a lease.
//!
//! A store that takes leases has one file beside the database, locked with `flock` for as long as
//! the store lives; leases name the file. The kernel lets go of the lock when the process ends,
//! however it does, so whoever can lock the file knows that its owner is gone.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::StoreError;
use crate::lease::unique_number;
use crate::place::path_with_suffix;

/// Between the database's name and the holder's.
const SUFFIX: &str = "-holder-";

/// This store's own file, locked.
#[derive(Debug)]
pub(super) struct Holder {
    name: String,
    path: PathBuf,
    _locked: File,
}

/// The state of the lock on a holder's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// Its process runs.
    Alive,
    /// It doesn't.
    Dead,
    /// It can't be told; the lease's time decides.
    Unknown,
}

impl Holder {
    /// Makes and locks a file; none where the file system has no such locks. What others that are
    /// gone have left is removed.
    pub(super) fn claim(database: &Path) -> Result<Option<Self>, StoreError> {
        sweep(database);
        loop {
            // A random name, never used again: a lease of long ago can't be taken for this store's.
            let name = format!("{}-{:016x}", std::process::id(), unique_number());
            let path = file_of(database, &name);
            let failed = |source| StoreError::io("create the lease file", &path, source);
            let file =
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    // Another store may have swept the file away before it was locked.
                    if file.metadata().map_err(failed)?.nlink() > 0 {
                        return Ok(Some(Self { name, path, _locked: file }));
                    }
                }
                // Another store sweeps it away right now.
                Err(Errno::WOULDBLOCK) => {}
                Err(Errno::NOSYS | Errno::NOTSUP | Errno::NOLCK | Errno::INVAL) => {
                    fs::remove_file(&path).map_err(failed)?;
                    return Ok(None);
                }
                Err(error) => {
                    drop(fs::remove_file(&path));
                    return Err(failed(error.into()));
                }
            }
        }
    }

    /// Returns the name that leases have.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // Its leases end with it. A file that stays is swept by the next store.
        drop(fs::remove_file(&self.path));
    }
}

/// Returns the liveness of the store that a lease names.
pub(super) fn life(database: &Path, name: &str) -> Life {
    // The name comes from a file that may be damaged; it must not lead elsewhere.
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Life::Unknown;
    }
    probe(&file_of(database, name))
}

/// Tries the lock, and removes the file if nobody has it.
fn probe(path: &Path) -> Life {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Life::Dead,
        Err(_) => return Life::Unknown,
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {
            // A leftover costs nothing but a name.
            drop(fs::remove_file(path));
            Life::Dead
        }
        Err(Errno::WOULDBLOCK) => Life::Alive,
        Err(_) => Life::Unknown,
    }
}

/// Removes the files of stores that are gone.
fn sweep(database: &Path) {
    let parent = match database.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let Some(name) = database.file_name() else { return };
    let prefix = [name.as_encoded_bytes(), SUFFIX.as_bytes()].concat();
    // Only for tidiness: a directory that can't be listed keeps its leftovers.
    for found in fs::read_dir(parent).into_iter().flatten().flatten() {
        if found.file_name().as_encoded_bytes().starts_with(&prefix) {
            probe(&found.path());
        }
    }
}

fn file_of(database: &Path, name: &str) -> PathBuf {
    path_with_suffix(database, &format!("{SUFFIX}{name}"))
}
