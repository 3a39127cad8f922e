//! The changes of a copy, the options of landing them, and the result.

use std::collections::BTreeSet;

use journeyman_protocol::{FileChange, RelPath, SessionId};
use serde::{Deserialize, Serialize};

use crate::change::{AppliedChanges, CheckpointId};
use crate::journal::record::DirRecord;
use crate::snapshot::differences::change_kind;
use crate::snapshot::entry::FileState;

/// The exact changes of a copy against the tree it was made from: additions, edits, deletions,
/// renames, changes of mode, links. Contents lie among the blobs, so that the copy itself isn't
/// needed any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyChanges {
    /// The session whose copy it was.
    pub session: SessionId,
    /// The checkpoint of the user's tree that the changes are against.
    pub base: CheckpointId,
    /// Sorted by name, each name once.
    pub(crate) files: Vec<CopyChange>,
    /// Directories that are only in the copy, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) made: Vec<DirRecord>,
    /// Directories that the copy hasn't any more, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) removed: Vec<DirRecord>,
    /// Files that may not be landed, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) objections: Vec<(RelPath, String)>,
}

/// One file of [`CopyChanges`]. One that got another name is two: the old name is gone, the new one
/// says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CopyChange {
    pub(crate) path: RelPath,
    /// The file's earlier name, if it has the content and the mode of a file that is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<RelPath>,
    /// In the tree that the copy was made from, under this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<FileState>,
    /// In the copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<FileState>,
}

/// The treatment of files that both sides changed in conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnConflict {
    /// Nothing at all is landed.
    #[default]
    Refuse,
    /// Texts get conflict markers, all others stay as the user has them. The user asked for it.
    Markers,
    /// The user's version of these files is kept.
    Mine,
    /// The copy's version of these files is taken, as far as possible.
    Theirs,
}

/// Options for landing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LandOptions {
    /// Files that both changed.
    pub on_conflict: OnConflict,
    /// Only tell what would happen.
    pub dry_run: bool,
    /// Nothing is merged: files that both changed are conflicts, also where their lines go
    /// together. For landing exactly what was checked.
    pub as_checked: bool,
    /// True to land also changes that can't be undone, because a person approved that.
    pub beyond_undo: bool,
}

/// The result of landing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandingReport {
    /// The change in the journal; with nothing landed it is
    /// [`ChangeId::NONE`](crate::change::ChangeId::NONE).
    pub applied: AppliedChanges,
    /// Files that both changed, and that were merged line by line: nobody has checked the result
    /// yet.
    pub merged: Vec<RelPath>,
    /// Files that both changed in ways that don't go together, or that can't be landed, each with
    /// the reason. With [`OnConflict::Refuse`] nothing was landed when there are any.
    pub conflicts: Vec<(RelPath, String)>,
    /// The conflicts that are independent of the user's changes: paths that a command made or
    /// changed and that may not be landed.
    pub refused: Vec<RelPath>,
    /// The conflicts over files that are larger than what is kept of a file.
    pub too_large: Vec<RelPath>,
    /// Files that the user's tree has already as the copy has them.
    pub already: Vec<RelPath>,
    /// The conflicts that [`LandOptions::on_conflict`] couldn't resolve, each with the reason: the
    /// copy's version of these files isn't in the tree. Empty with [`OnConflict::Refuse`] and
    /// [`OnConflict::Mine`].
    pub left: Vec<(RelPath, String)>,
}

impl CopyChanges {
    /// Removes the files for which `unwanted` returns true, given their path and true if they
    /// existed before. Returns their paths. These files stay unchanged when the rest is landed.
    pub fn exclude_files(&mut self, unwanted: impl Fn(&RelPath, bool) -> bool) -> Vec<RelPath> {
        let left_out: BTreeSet<RelPath> = self
            .files
            .iter()
            .filter(|file| unwanted(&file.path, file.before.is_some()))
            .map(|file| file.path.clone())
            .collect();
        self.files.retain(|file| !left_out.contains(&file.path));
        for file in &mut self.files {
            // The old name stays, so the new one is a file of its own.
            file.from = file.from.take().filter(|from| !left_out.contains(from));
        }
        self.removed
            .retain(|dir| !left_out.iter().any(|path| path.as_path().starts_with(dir.path.as_path())));
        left_out.into_iter().collect()
    }

    /// Returns the files, sorted.
    #[must_use]
    pub fn files(&self) -> Vec<FileChange> {
        let files = self.files.iter().map(|file| FileChange {
            path: file.path.clone(),
            kind: change_kind(file.before.is_some(), file.after.is_some()),
        });
        files.collect()
    }

    /// Returns the renames among them, as (earlier, later) name.
    #[must_use]
    pub fn renames(&self) -> Vec<(RelPath, RelPath)> {
        let renamed = self.files.iter().filter_map(|file| Some((file.from.clone()?, file.path.clone())));
        renamed.collect()
    }

    /// Returns true if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.made.is_empty() && self.removed.is_empty()
    }
}
