//! Files of a copy that are too large for the blobs, kept beside the copy under their hashes.
//!
//! They are copied piece by piece, only where landing would need them, and go with the copy.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use journeyman_protocol::{ContentHash, RelPath};

use crate::error::WorkspaceError;
use crate::files::root_dir::{LinkPolicy, RootDir};
use crate::limits::MAX_LARGE_FILES_BYTES;
use crate::snapshot::entry::{FileKind, FileState};
use crate::state::lock::{make_private_dir, state_error};
use crate::transaction::staging::copy_and_hash;

/// The directory in the copy's.
const LARGE_FILES_DIR: &str = "large";

/// The large files kept beside one copy.
pub(crate) struct LargeFiles {
    dir: PathBuf,
    /// The files that belong to the current changes.
    wanted: HashSet<String>,
    bytes: u64,
}

impl LargeFiles {
    pub(crate) fn of(copy_dir: &Path) -> Self {
        Self { dir: copy_dir.join(LARGE_FILES_DIR), wanted: HashSet::new(), bytes: 0 }
    }

    /// Returns the path of a content, if it is kept.
    pub(crate) fn kept_path(&self, hash: &ContentHash, size: u64) -> Option<PathBuf> {
        let path = self.dir.join(hash.to_string());
        let found = fs::symlink_metadata(&path).ok()?;
        (found.is_file() && found.len() == size).then_some(path)
    }

    /// Keeps a file of the copy, unless there is no room for it: then it can't be landed, and that
    /// is said there.
    pub(crate) fn keep(
        &mut self,
        root_dir: &RootDir,
        path: &RelPath,
        state: &FileState,
    ) -> Result<(), WorkspaceError> {
        let Some(hash) = state.hash.filter(|_| state.kind == FileKind::File) else { return Ok(()) };
        let bytes = self.bytes.saturating_add(state.size);
        if bytes > MAX_LARGE_FILES_BYTES {
            return Ok(());
        }
        self.bytes = bytes;
        self.wanted.insert(hash.to_string());
        if self.kept_path(&hash, state.size).is_some() {
            return Ok(());
        }
        make_private_dir(&self.dir)?;
        let target = self.dir.join(hash.to_string());
        let new = target.with_extension("new");
        let (file, _) = root_dir.open_file(path, LinkPolicy::Refuse)?;
        let made = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new);
        let made: OwnedFd = made.map_err(|source| state_error("write", &new, source))?.into();
        let copied = copy_and_hash(&file, &made)
            .map_err(std::io::Error::from)
            .and_then(|copied| fs::File::from(made).sync_all().map(|()| copied));
        match copied {
            Ok(copied) if copied == hash => {
                fs::rename(&new, &target).map_err(|source| state_error("write", &target, source))
            }
            Ok(_) => Err(WorkspaceError::Raced { path: path.clone() }),
            Err(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
                fs::remove_file(&new).map_err(|source| state_error("remove", &new, source))
            }
            Err(source) => Err(state_error("write", &new, source)),
        }
    }

    /// Drops what isn't wanted any more.
    pub(crate) fn remove_unwanted(&self) -> Result<(), WorkspaceError> {
        let failed = |source| state_error("tidy up", &self.dir, source);
        let entries = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            other => other.map_err(failed)?,
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            if !entry.file_name().to_str().is_some_and(|name| self.wanted.contains(name)) {
                fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        Ok(())
    }
}
