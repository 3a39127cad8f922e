//! Starting an index as a copy of another one, for a copy of a tree, where most files are the same.

use std::path::Path;

use super::manifest::Manifest;
use super::{Index, LOCK_FILE_NAME};
use crate::IndexError;
use crate::write_lock::WriteLock;

/// Files beside the segments that are replaced as a whole, as segments are.
const HISTORY_FILE_NAME: &str = "history";

impl Index {
    /// Starts the index in `directory` as a copy of that in `from`, unless it has one already or
    /// another process makes one. Segments are never modified, so both share their files.
    /// Differences between the trees appear at the next refresh.
    ///
    /// # Errors
    /// [`IndexError`] where there is no index to copy, or it is on another file system: the index
    /// is then built from nothing.
    pub fn copy_from(directory: &Path, from: &Path) -> Result<(), IndexError> {
        std::fs::create_dir_all(directory).map_err(IndexError::io("making", directory))?;
        let Some(_lock) = WriteLock::take(&directory.join(LOCK_FILE_NAME), false)? else { return Ok(()) };
        if !Manifest::read(directory)?.segments.is_empty() {
            return Ok(());
        }
        let manifest = Manifest::read(from)?;
        for name in manifest.listed_names() {
            let to = directory.join(name);
            // A file that a crash left under this name is unused.
            std::fs::remove_file(&to).ok();
            std::fs::hard_link(from.join(name), &to).map_err(IndexError::io("linking", &to))?;
        }
        // Without the history, commits are read from git once more.
        std::fs::hard_link(from.join(HISTORY_FILE_NAME), directory.join(HISTORY_FILE_NAME)).ok();
        manifest.write(directory)
    }
}
