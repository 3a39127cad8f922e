//! Files of one checksummed line beside a copy.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::WorkspaceError;
use crate::journal::line_format::{parse_checked_line, push_line};
use crate::state::lock::{make_private_dir, replace_durably, state_error, sync_parent_dir};

/// The file in the copy's directory: one line, as the journal's.
pub(crate) const CHANGES_FILE: &str = "changes";

/// The list of contested files, beside it.
pub(crate) const CONTESTED_FILE: &str = "contested";

/// A larger one wasn't written by us: 400,000 files with long paths.
pub(crate) const MAX_LINE_FILE_BYTES: u64 = 512 * 1024 * 1024;

/// Replaces a file of one line whole; it is on the disk when this returns.
pub(crate) fn write_line_file(dir: &Path, name: &str, value: &impl Serialize) -> Result<(), WorkspaceError> {
    let path = dir.join(name);
    let failed = |source| state_error("write", &path, source);
    let mut text = Vec::new();
    push_line(&mut text, &serde_json::to_vec(value).map_err(|error| failed(error.into()))?);
    make_private_dir(dir)?;
    replace_durably(&path, &text).and_then(|()| sync_parent_dir(&path)).map_err(failed)
}

/// Reads the file; `None` if there is none.
pub(crate) fn read_line_file(dir: &Path, name: &str) -> Result<Option<Vec<u8>>, WorkspaceError> {
    let path = dir.join(name);
    let mut text = Vec::new();
    match File::open(&path).and_then(|file| file.take(MAX_LINE_FILE_BYTES).read_to_end(&mut text)) {
        Ok(_) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(state_error("read", &path, source)),
    }
}

/// Returns true if the file exists and its checksum is wrong.
pub(crate) fn is_damaged(dir: &Path, name: &str) -> Result<bool, WorkspaceError> {
    let text = read_line_file(dir, name)?;
    Ok(text.is_some_and(|text| parse_line::<serde::de::IgnoredAny>(&text).is_none()))
}

/// Parses the line of such a file, if it is whole.
pub(crate) fn parse_line<T: DeserializeOwned>(text: &[u8]) -> Option<T> {
    text.strip_suffix(b"\n").and_then(parse_checked_line)
}
