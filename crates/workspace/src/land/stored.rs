//! A copy's changes, written down beside it, so that they can be landed, shown and compared with the copy closed.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use journeyman_protocol::SessionId;

use super::CopyChanges;
use crate::WorkspaceError;
use crate::journal::{parse, push_line};
use crate::lock::{make_private_dir, state_error};
use crate::rules::is_git;

/// The file in the copy's directory: one line, as the journal's.
const NAME: &str = "changes";
/// A larger one wasn't written by us: 400,000 files with long paths.
const STORED_BYTES: u64 = 512 * 1024 * 1024;

pub(super) fn write(dir: &Path, changes: &CopyChanges) -> Result<(), WorkspaceError> {
    let path = dir.join(NAME);
    let failed = |source| state_error("write", &path, source);
    let mut text = Vec::new();
    push_line(&mut text, &serde_json::to_vec(changes).map_err(|error| failed(error.into()))?);
    make_private_dir(dir)?;
    let new = path.with_extension("new");
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)
        .and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&new, &path))
        .and_then(|()| File::open(dir)?.sync_all());
    written.map_err(failed)
}

/// What was written, as long as it is whole and of that session.
pub(super) fn read(dir: &Path, session: &SessionId) -> Result<Option<CopyChanges>, WorkspaceError> {
    let path = dir.join(NAME);
    let mut text = Vec::new();
    match File::open(&path).and_then(|file| file.take(STORED_BYTES).read_to_end(&mut text)) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(state_error("read", &path, source)),
    }
    let changes: Option<CopyChanges> = text.strip_suffix(b"\n").and_then(parse);
    Ok(changes.filter(|changes| {
        let sorted = changes.files.is_sorted_by(|one, other| one.path < other.path);
        // Whoever edits the file by hand gets nothing past the door by it.
        let touches_git = changes.files.iter().any(|file| file.path.components().any(is_git));
        changes.session == *session && sorted && !touches_git
    }))
}

pub(super) fn remove(dir: &Path) -> Result<(), WorkspaceError> {
    let path = dir.join(NAME);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(state_error("remove", &path, error)),
        _ => Ok(()),
    }
}
