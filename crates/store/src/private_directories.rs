//! Creating private directories.

use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::{Durability, StoreError};

/// Creates `dir` and its missing ancestors with mode 0700. Existing directories keep their mode.
/// With [`Durability::Now`] the new names survive a power failure.
pub(crate) fn create_private_directory(dir: &Path, durability: Durability) -> Result<(), StoreError> {
    let failed = |source| Err(StoreError::io("create directory", dir, source));
    match make_directory(dir) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return if dir.is_dir() { Ok(()) } else { failed(io::ErrorKind::NotADirectory.into()) };
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) else {
                return failed(error);
            };
            create_private_directory(parent, durability)?;
            match make_directory(dir) {
                // Another process was faster.
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return failed(error),
                _ => {}
            }
        }
        Err(error) => return failed(error),
    }
    match (durability, dir.parent()) {
        (Durability::Now, Some(parent)) => sync_dir(parent),
        _ => Ok(()),
    }
}

fn make_directory(dir: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(dir)
}

/// Flushes a directory, which makes the names in it durable.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    File::open(dir)
        .and_then(|opened| opened.sync_all())
        .map_err(|source| StoreError::io("flush directory", dir, source))
}

/// Returns the path with `suffix` appended.
pub(crate) fn path_with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
