//! The commit that is checked out, read from the repository's files without running git.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use journeyman_root_fs::read_path;

use crate::history::is_object_id;
use crate::limits::{MAX_GIT_FILE_BYTES, MAX_PACKED_REFS_BYTES, MAX_SYMBOLIC_REFS};
use crate::repository_paths::RepositoryPaths;
use crate::{Git, GitError};

impl Git {
    /// Returns the hash of the commit that is checked out; `None` if there is none. Git runs only
    /// where the references are stored otherwise than in plain files.
    ///
    /// # Errors
    /// [`GitError`].
    pub async fn head(&self) -> Result<Option<String>, GitError> {
        match RepositoryPaths::find(&self.root)?.read_head() {
            Some(commit) => Ok(Some(commit)),
            None => self.resolve("HEAD").await,
        }
    }

    /// Returns the hash of the commit that is checked out, if plain files have it.
    #[must_use]
    pub fn read_head_from_files(&self) -> Option<String> {
        RepositoryPaths::find(&self.root).ok()?.read_head()
    }
}

impl RepositoryPaths {
    /// Reads the commit of `HEAD` from plain files; `None` if they don't have it, as for a branch
    /// without a commit and for references stored as a table (reftable).
    fn read_head(&self) -> Option<String> {
        let mut text = read_path(&self.git_dir.join("HEAD"), MAX_GIT_FILE_BYTES).ok()??;
        for _ in 0..MAX_SYMBOLIC_REFS {
            let Some(name) = text.strip_prefix(b"ref:") else { return parse_object_id(&text) };
            let name = name.trim_ascii().to_owned();
            // Git accepts other names too. Those below `refs/heads` and `refs/remotes` are common
            // to all work trees; others may belong to one.
            let shared = [&b"refs/heads/"[..], b"refs/remotes/"].iter().any(|place| name.starts_with(place));
            if !shared || name.split(|byte| *byte == b'/').any(|part| part == b".." || part.is_empty()) {
                return None;
            }
            let file = self.common_dir.join(OsStr::from_bytes(&name));
            match read_path(&file, MAX_GIT_FILE_BYTES) {
                Ok(Some(next)) => text = next,
                // A loose reference counts more than a packed one, even one that can't be read.
                Err(error) if is_not_found(&error) => return self.read_packed_ref(&name),
                _ => return None,
            }
        }
        None
    }

    fn read_packed_ref(&self, name: &[u8]) -> Option<String> {
        let packed = read_path(&self.common_dir.join("packed-refs"), MAX_PACKED_REFS_BYTES).ok()??;
        let mut lines = packed.split(|byte| *byte == b'\n');
        lines.find_map(|line| parse_object_id(line.strip_suffix(name)?.strip_suffix(b" ")?))
    }
}

fn is_not_found(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | IsADirectory)
}

fn parse_object_id(text: &[u8]) -> Option<String> {
    let id = std::str::from_utf8(text.trim_ascii()).ok()?;
    is_object_id(id).then(|| id.to_ascii_lowercase())
}
