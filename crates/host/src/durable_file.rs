//! Small files of the user's that are replaced in one step.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::FlockOperation;

/// Keeps other processes from replacing files of a directory at the same time, until the result is
/// dropped.
pub(crate) fn lock_directory(dir: &Path) -> std::io::Result<File> {
    let lock = File::open(dir)?;
    rustix::fs::flock(&lock, FlockOperation::LockExclusive)?;
    Ok(lock)
}

/// Puts a new text in a file's place, durably and in one step.
pub(crate) fn replace_file(path: &Path, text: &str) -> std::io::Result<()> {
    let mode = std::fs::metadata(path).map_or(0o600, |meta| meta.permissions().mode() & 0o777);
    let beside = path.with_extension(format!("jm-{}", std::process::id()));
    let written = (|| {
        let mut file =
            std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&beside, path)?;
        match path.parent() {
            Some(dir) => std::fs::File::open(dir)?.sync_all(),
            None => Ok(()),
        }
    })();
    if written.is_err() {
        // The caller reports the failure; the half-written file is of no use.
        std::fs::remove_file(&beside).ok();
    }
    written
}
