//! A copy's changes, written down beside it, so that they can be landed, shown and compared with the copy closed.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use journeyman_protocol::{ContentHash, SessionId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::WorkspaceError;
use crate::journal::line_format::{parse, push_line};
use crate::landing::CopyChanges;
use crate::rules::is_git;
use crate::state::lock::{make_private_dir, replace_durably, state_error, sync_above};

/// The file in the copy's directory: one line, as the journal's.
pub(crate) const NAME: &str = "changes";
/// The list of contested files, beside it.
pub(crate) const CONTESTED: &str = "contested";
/// A larger one wasn't written by us: 400,000 files with long paths.
const STORED_BYTES: u64 = 512 * 1024 * 1024;

pub(crate) fn write(dir: &Path, changes: &CopyChanges) -> Result<(), WorkspaceError> {
    write_to(dir, NAME, changes)
}

/// What was written, as long as it is whole and of that session.
pub(crate) fn read(dir: &Path, session: &SessionId) -> Result<Option<CopyChanges>, WorkspaceError> {
    let Some(text) = read_from(dir, NAME)? else { return Ok(None) };
    let changes: Option<CopyChanges> = parsed(&text);
    Ok(changes.filter(|changes| {
        let sorted = changes.files.is_sorted_by(|one, other| one.path < other.path);
        // Whoever edits the file by hand gets nothing past the door by it.
        let touches_git = changes.files.iter().any(|file| file.path.components().any(is_git));
        changes.session == *session && sorted && !touches_git
    }))
}

/// The contents that what lies beside a copy speaks of: without them it couldn't be landed any more.
///
/// # Errors
/// [`WorkspaceError::State`]; [`WorkspaceError::Lost`] for a damaged list of contested files.
pub(crate) fn contents(dir: &Path) -> Result<Vec<ContentHash>, WorkspaceError> {
    let changes: Option<CopyChanges> = read_from(dir, NAME)?.and_then(|text| parsed(&text));
    let files = changes.map(|changes| changes.files).unwrap_or_default();
    let states = files.iter().flat_map(|file| [file.before, file.after]);
    let contested = crate::landing::contested::read(dir)?;
    let states = states.chain(contested.into_values()).flatten();
    Ok(states.filter_map(|state| state.hash).collect())
}

/// Replaces a file of one line whole; it is on the disk when this returns.
pub(crate) fn write_to(dir: &Path, name: &str, value: &impl Serialize) -> Result<(), WorkspaceError> {
    let path = dir.join(name);
    let failed = |source| state_error("write", &path, source);
    let mut text = Vec::new();
    push_line(&mut text, &serde_json::to_vec(value).map_err(|error| failed(error.into()))?);
    make_private_dir(dir)?;
    replace_durably(&path, &text).and_then(|()| sync_above(&path)).map_err(failed)
}

/// The bytes of such a file; `None` without one.
pub(crate) fn read_from(dir: &Path, name: &str) -> Result<Option<Vec<u8>>, WorkspaceError> {
    let path = dir.join(name);
    let mut text = Vec::new();
    match File::open(&path).and_then(|file| file.take(STORED_BYTES).read_to_end(&mut text)) {
        Ok(_) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(state_error("read", &path, source)),
    }
}

/// Whether such a file is there and not as it was written.
pub(crate) fn is_damaged(dir: &Path, name: &str) -> Result<bool, WorkspaceError> {
    let text = read_from(dir, name)?;
    Ok(text.is_some_and(|text| parsed::<serde::de::IgnoredAny>(&text).is_none()))
}

/// What they say, where they are whole.
pub(crate) fn parsed<T: DeserializeOwned>(text: &[u8]) -> Option<T> {
    text.strip_suffix(b"\n").and_then(parse)
}

pub(crate) fn remove(dir: &Path) -> Result<(), WorkspaceError> {
    let path = dir.join(NAME);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(state_error("remove", &path, error)),
        _ => Ok(()),
    }
}
