//! The liveness of the process that holds a lease.
//!
//! A store that takes leases has one file beside the database, locked with `flock` for as long as
//! the store lives; leases name the file. The kernel releases the lock when the process ends,
//! however that happens, so a process that can lock the file knows that its owner is gone.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::StoreError;
use crate::lease::unique_number;
use crate::private_directories::path_with_suffix;

/// The part of a holder file's name between the database's name and the holder's.
const HOLDER_FILE_INFIX: &str = "-holder-";

/// The lock of a look at a holder file. It excludes no other look.
const PROBE: FlockOperation = FlockOperation::NonBlockingLockShared;

/// The locked holder file of this store.
#[derive(Debug)]
pub(super) struct HolderFile {
    name: String,
    path: PathBuf,
    _locked: File,
}

/// The state of the lock on a holder's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Liveness {
    /// The holder's process runs.
    Alive,
    /// The holder's process is gone.
    Dead,
    /// Unknown; the lease's time decides.
    Unknown,
}

impl HolderFile {
    /// Creates and locks a holder file; `None` if the file system has no such locks. Removes the
    /// files of stores that are gone.
    pub(super) fn claim(database: &Path) -> Result<Option<Self>, StoreError> {
        remove_dead_holders(database);
        loop {
            // A random name, so that an old lease can't be taken for one of this store.
            let name = format!("{}-{:016x}", std::process::id(), unique_number());
            let path = holder_path(database, &name);
            let failed = |source| StoreError::io("create the lease file", &path, source);
            let file =
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    // Another store may have removed the file before it was locked.
                    if file.metadata().map_err(failed)?.nlink() > 0 {
                        return Ok(Some(Self { name, path, _locked: file }));
                    }
                }
                // Another store is removing the file.
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

    /// Returns the name by which leases refer to the file.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for HolderFile {
    fn drop(&mut self) {
        // Its leases end with it. The next store removes a leftover file.
        drop(fs::remove_file(&self.path));
    }
}

/// Returns the liveness of the store that a lease names.
pub(super) fn holder_liveness(database: &Path, name: &str) -> Liveness {
    // The name comes from a file that may be damaged; it must not lead elsewhere.
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Liveness::Unknown;
    }
    probe(&holder_path(database, name))
}

/// Tries to lock a holder file, and removes the file if the lock is free.
fn probe(path: &Path) -> Liveness {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Liveness::Dead,
        Err(_) => return Liveness::Unknown,
    };
    match flock(&file, PROBE) {
        Ok(()) => {
            // A leftover file costs only its name.
            drop(fs::remove_file(path));
            Liveness::Dead
        }
        Err(Errno::WOULDBLOCK) => Liveness::Alive,
        Err(_) => Liveness::Unknown,
    }
}

/// Removes the files of stores that are gone.
fn remove_dead_holders(database: &Path) {
    let parent = match database.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let Some(name) = database.file_name() else { return };
    let prefix = [name.as_encoded_bytes(), HOLDER_FILE_INFIX.as_bytes()].concat();
    // Best effort: a directory that can't be listed keeps its leftovers.
    for found in fs::read_dir(parent).into_iter().flatten().flatten() {
        if found.file_name().as_encoded_bytes().starts_with(&prefix) {
            probe(&found.path());
        }
    }
}

fn holder_path(database: &Path, name: &str) -> PathBuf {
    path_with_suffix(database, &format!("{HOLDER_FILE_INFIX}{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_that_look_at_once_none_takes_the_other_for_the_holder() {
        let home = tempfile::tempdir().unwrap();
        let database = home.path().join("sessions.db");
        let holder = HolderFile::claim(&database).unwrap().unwrap();
        assert_eq!(holder_liveness(&database, holder.name()), Liveness::Alive);
        let left = holder_path(&database, "left");
        File::create(&left).unwrap();
        let look = || {
            let file = File::open(&left).unwrap();
            flock(&file, PROBE).map(|()| file)
        };
        let other = look().unwrap();
        assert_eq!(holder_liveness(&database, "left"), Liveness::Dead);
        drop(other);
    }
}
