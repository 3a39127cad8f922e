//! An index that begins as another one: a copy of a tree has the same files, most of them.

use std::path::Path;

use super::Index;
use super::manifest::Manifest;
use crate::IndexError;

/// What lies beside the segments and is replaced whole, as they are.
const HISTORY: &str = "history";

impl Index {
    /// Lets the index in `directory` begin as that in `from`, unless there is one already. Segments are never written
    /// to, so both have the same files. What differs between the trees shows at the next refresh, as any change does.
    ///
    /// # Errors
    /// [`IndexError`] where there is nothing to begin with, or on another file system: the index is made from nothing then.
    pub fn seed(directory: &Path, from: &Path) -> Result<(), IndexError> {
        std::fs::create_dir_all(directory).map_err(IndexError::io("making", directory))?;
        if !Manifest::read(directory)?.segments.is_empty() {
            return Ok(());
        }
        let manifest = Manifest::read(from)?;
        for name in manifest.names() {
            let to = directory.join(name);
            // What a crash left under this name is nobody's.
            std::fs::remove_file(&to).ok();
            std::fs::hard_link(from.join(name), &to).map_err(IndexError::io("linking", &to))?;
        }
        // Without it commits are read from git once more.
        std::fs::hard_link(from.join(HISTORY), directory.join(HISTORY)).ok();
        manifest.write(directory)
    }
}
