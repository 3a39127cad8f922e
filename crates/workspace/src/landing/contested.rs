//! Contested files: both the user and the copy changed them, and a refresh left the copy's version.
//!
//! From then on the copy is compared with the tree that has the user's change, in which these files
//! would look as if the copy alone had changed them: landing would remove the user's lines
//! silently. So the state from before both changes is stored beside the copy, and is what they are
//! compared with.

use crate::landing::line_file;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use journeyman_protocol::RelPath;
use serde::{Deserialize, Serialize};

use crate::error::WorkspaceError;
use crate::landing::changes::{CopyChange, CopyChanges, LandingReport};
use crate::snapshot::entry::FileState;

/// The state of each file before both sides changed it.
pub(crate) type ContestedFiles = BTreeMap<RelPath, Option<FileState>>;

#[derive(Serialize, Deserialize)]
struct ContestedLine {
    path: RelPath,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<FileState>,
}

/// Notes what came of landing the user's changes in the copy. To be called before the copy's base
/// is another one.
///
/// # Errors
/// [`WorkspaceError::State`]; [`WorkspaceError::Lost`] when what was noted before is damaged.
pub(crate) fn note_contested(
    dir: &Path,
    changes: &CopyChanges,
    landing: &LandingReport,
) -> Result<(), WorkspaceError> {
    let known = read_contested(dir)?;
    let apart: HashSet<&RelPath> = landing.conflicts.iter().map(|(path, _)| path).collect();
    let merged: HashSet<&RelPath> = landing.merged.iter().collect();
    let files: HashMap<&RelPath, &CopyChange> = changes.files.iter().map(|file| (&file.path, file)).collect();
    let mut noted = known.clone();
    // The copy has these as the user has them now.
    noted.retain(|path, _| !files.contains_key(path) || apart.contains(path) || merged.contains(path));
    for file in apart.iter().filter_map(|path| files.get(path)) {
        let source = file.from.as_ref().and_then(|from| files.get(from));
        for file in source.into_iter().chain([file]) {
            // What was contested before is still compared with what was there then.
            noted.entry(file.path.clone()).or_insert(file.before);
        }
    }
    if noted == known {
        return Ok(());
    }
    let lines: Vec<ContestedLine> =
        noted.into_iter().map(|(path, before)| ContestedLine { path, before }).collect();
    line_file::write_line_file(dir, line_file::CONTESTED_FILE, &lines)
}

/// Reads the contested files.
pub(crate) fn read_contested(dir: &Path) -> Result<ContestedFiles, WorkspaceError> {
    let damaged = || WorkspaceError::Lost { what: "the list of contested files".to_owned() };
    let Some(text) = line_file::read_line_file(dir, line_file::CONTESTED_FILE)? else {
        return Ok(ContestedFiles::new());
    };
    let lines: Vec<ContestedLine> = line_file::parse_line(&text).ok_or_else(damaged)?;
    Ok(lines.into_iter().map(|line| (line.path, line.before)).collect())
}
