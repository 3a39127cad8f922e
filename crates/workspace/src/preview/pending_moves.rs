//! The list of files that a landing moves and no journal holds, written before the first step so
//! that a crash loses nothing.
//!
//! Removed files are kept in a directory of their own until all new files are in place. Until then
//! their list is in the layer's directory; clearing that directory puts the files on the list back
//! first.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use journeyman_protocol::RelPath;
use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error::WorkspaceError;
use crate::files::remove::open_directory;
use crate::files::root_dir::RootDir;
use crate::state::lock::state_error;

/// The list's name in the layer's directory.
const PENDING_FILE: &str = "landing";

/// The paths that a landing moves away, each under its number in the list.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PendingMoves {
    gone: PathBuf,
    paths: Vec<RelPath>,
}

impl PendingMoves {
    /// Writes it down in `dir`, for good.
    pub(crate) fn write(dir: &Path, gone: &Path, paths: Vec<RelPath>) -> Result<Self, WorkspaceError> {
        let pending = Self { gone: gone.to_owned(), paths };
        let at = dir.join(PENDING_FILE);
        let written = || {
            let mut file = File::create(&at)?;
            file.write_all(&serde_json::to_vec(&pending)?)?;
            file.sync_all()?;
            File::open(dir)?.sync_all()
        };
        written().map_err(|source| state_error("write", &at, source))?;
        Ok(pending)
    }

    /// Returns the name under which the file of `path` is kept.
    pub(crate) fn moved_name(&self, path: &RelPath) -> Option<String> {
        self.paths.iter().position(|other| other == path).map(|at| at.to_string())
    }
}

/// Ends a landing: deletes the files that it moved away.
pub(crate) fn delete_moved(dir: &Path) -> Result<(), WorkspaceError> {
    let at = dir.join(PENDING_FILE);
    match fs::remove_file(&at) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(state_error("remove", &at, source))
        }
        _ => Ok(()),
    }
}

/// Puts back into the tree at `root` what a landing that was cut off had moved away. If a path is
/// taken by now, its file is kept, and with it all of the layer's directory.
pub(crate) fn restore_moved(dir: &Path, root: &Path) -> Result<(), WorkspaceError> {
    let at = dir.join(PENDING_FILE);
    let text = match fs::read(&at) {
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(|source| state_error("read", &at, source))?,
    };
    let Ok(pending) = serde_json::from_slice::<PendingMoves>(&text) else {
        // A crash while it was written: nothing had been moved yet.
        return delete_moved(dir);
    };
    let gone = match open_directory(&pending.gone) {
        Err(WorkspaceError::State { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            return delete_moved(dir);
        }
        other => other?,
    };
    let root_dir = RootDir::open(root)?;
    for (number, path) in pending.paths.iter().enumerate() {
        let name = number.to_string();
        let back = root_dir.open_parent(path).and_then(|parent| {
            renameat_with(&gone, name.as_bytes(), &parent, path.file_name(), RenameFlags::NOREPLACE)
        });
        match back {
            Ok(()) => {}
            Err(_) if !is_there(&pending.gone.join(&name)) => {}
            Err(errno) => return Err(kept_aside_error(&pending.gone.join(name), path, errno)),
        }
    }
    rustix::fs::fsync(root_dir.root()).map_err(|errno| state_error("flush", root, errno.into()))?;
    delete_moved(dir)
}

fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

fn kept_aside_error(at: &Path, path: &RelPath, errno: Errno) -> WorkspaceError {
    let why = format!(
        "a command's landing was cut off, and what had been at `{path}` lies here ({}): move it back or remove it",
        std::io::Error::from(errno)
    );
    state_error("put back", at, std::io::Error::other(why))
}
