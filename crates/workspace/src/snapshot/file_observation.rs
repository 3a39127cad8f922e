//! The state of a single path on the disk.

use journeyman_protocol::{ContentHash, RelPath};

use crate::error::WorkspaceError;
use crate::files::root_dir::{LinkPolicy, RootDir, hash_file};
use crate::files::stat::FileStat;
use crate::snapshot::entry::{FileKind, FileState};

/// Maximum number of attempts to read a file that changes between `stat` and opening.
pub(crate) const MAX_READ_ATTEMPTS: usize = 8;

/// Returns the state of the canonical `path` right now, with its content hashed; `None` if nothing
/// is there, also because a link stands where a directory was.
///
/// # Errors
/// [`WorkspaceError::NotAFile`] for a directory and everything else without content;
/// [`WorkspaceError::Raced`] when it is another thing at each look.
pub(crate) fn observe_file(
    root_dir: &RootDir,
    path: &RelPath,
) -> Result<Option<(FileState, FileStat)>, WorkspaceError> {
    for _ in 0..MAX_READ_ATTEMPTS {
        let look = root_dir.stat(path).map_err(|errno| root_dir.error_for("look at", path, errno))?;
        let Some(seen) = look else { return Ok(None) };
        if seen.is_link() {
            let Ok(target) = root_dir.read_link(path) else { continue };
            let (size, hash) = (target.len() as u64, Some(ContentHash::of(&target)));
            return Ok(Some((
                FileState { kind: FileKind::Link, mode: seen.permissions(), size, hash },
                seen,
            )));
        }
        let (file, seen) = match root_dir.open_file(path, LinkPolicy::Refuse) {
            // Gone, or a link by now: the next look tells.
            Err(WorkspaceError::NotFound { .. } | WorkspaceError::Raced { .. }) => continue,
            other => other?,
        };
        let hash = hash_file(&file).map_err(|source| WorkspaceError::Io {
            action: "read",
            path: path.clone(),
            source,
        })?;
        let (kind, mode) = (FileKind::File, seen.permissions());
        return Ok(Some((FileState { kind, mode, size: seen.size, hash: Some(hash) }, seen)));
    }
    Err(WorkspaceError::Raced { path: path.clone() })
}
