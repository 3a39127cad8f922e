//! A copy's changes, written down beside it, so that they can be landed, shown and compared with
//! the copy closed.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use journeyman_protocol::{ContentHash, SessionId};

use crate::error::WorkspaceError;
use crate::landing::changes::CopyChanges;
use crate::landing::line_file::{CHANGES_FILE, parse_line, read_line_file, write_line_file};
use crate::state::lock::state_error;
use journeyman_ignore_rules::is_git_directory_name;

pub(crate) fn write_changes(dir: &Path, changes: &CopyChanges) -> Result<(), WorkspaceError> {
    write_line_file(dir, CHANGES_FILE, changes)
}

/// Reads the stored changes, if they are whole and of that session.
pub(crate) fn read_changes(dir: &Path, session: &SessionId) -> Result<Option<CopyChanges>, WorkspaceError> {
    let Some(text) = read_line_file(dir, CHANGES_FILE)? else { return Ok(None) };
    let changes: Option<CopyChanges> = parse_line(&text);
    Ok(changes.filter(|changes| {
        let sorted = changes.files.is_sorted_by(|one, other| one.path < other.path);
        // Whoever edits the file by hand gets nothing past the root by it.
        let touches_git = changes.files.iter().any(|file| file.path.components().any(is_git_directory_name));
        changes.session == *session && sorted && !touches_git
    }))
}

/// Returns the contents that the files beside a copy refer to; without them the copy couldn't be
/// landed any more.
///
/// # Errors
/// [`WorkspaceError::State`]; [`WorkspaceError::Lost`] for a damaged list of contested files.
pub(crate) fn referenced_contents(dir: &Path) -> Result<Vec<ContentHash>, WorkspaceError> {
    let changes: Option<CopyChanges> = read_line_file(dir, CHANGES_FILE)?.and_then(|text| parse_line(&text));
    let files = changes.map(|changes| changes.files).unwrap_or_default();
    let states = files.iter().flat_map(|file| [file.before, file.after]);
    let contested = crate::landing::contested::read_contested(dir)?;
    let states = states.chain(contested.into_values()).flatten();
    Ok(states.filter_map(|state| state.hash).collect())
}

pub(crate) fn remove_changes(dir: &Path) -> Result<(), WorkspaceError> {
    let path = dir.join(CHANGES_FILE);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(state_error("remove", &path, error)),
        _ => Ok(()),
    }
}
