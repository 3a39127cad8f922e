//! The workspace itself: one project tree and its state.

use std::path::{Path, PathBuf};

use journeyman_protocol::{CallId, FileChange, RelPath, SessionId};

use crate::{
    Applied, ChangeSet, CheckpointId, Diff, FileContent, ListOptions, Listing, Options, Stat, TreeSnapshot,
    UndoReport, UndoTarget, WorkspaceError,
};

/// One project tree.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
}
fn unfinished<T>() -> Result<T, WorkspaceError> {
    Err(WorkspaceError::Lost { what: "a part that is being built".to_owned() })
}
impl Workspace {
    /// Opens the tree beneath `root`.
    ///
    /// # Errors
    /// [`WorkspaceError::Root`].
    pub fn open(root: &Path, _options: Options) -> Result<Self, WorkspaceError> {
        Ok(Self { root: root.to_owned() })
    }
    /// The root as given.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }
    /// Reads a file.
    /// # Errors
    /// Many.
    pub fn read(&self, _path: &RelPath, _max_bytes: u64) -> Result<FileContent, WorkspaceError> {
        unfinished()
    }
    /// Lists files.
    /// # Errors
    /// Many.
    pub fn list(&self, _options: ListOptions) -> Result<Listing, WorkspaceError> {
        unfinished()
    }
    /// What is known of a file without reading it; `None` when there is none.
    /// # Errors
    /// Many.
    pub fn stat(&self, _path: &RelPath) -> Result<Option<Stat>, WorkspaceError> {
        unfinished()
    }
    /// Applies a change set.
    /// # Errors
    /// Many.
    pub fn apply(&self, _set: ChangeSet) -> Result<Applied, WorkspaceError> {
        unfinished()
    }
    /// Records the tree.
    /// # Errors
    /// Many.
    pub fn checkpoint(&self, _session: &SessionId, _label: &str) -> Result<CheckpointId, WorkspaceError> {
        unfinished()
    }
    /// Before a command.
    /// # Errors
    /// Many.
    pub fn command_begin(&self) -> Result<TreeSnapshot, WorkspaceError> {
        unfinished()
    }
    /// After a command.
    /// # Errors
    /// Many.
    pub fn command_end(
        &self,
        _before: TreeSnapshot,
        _session: &SessionId,
        _call: Option<&CallId>,
    ) -> Result<Vec<FileChange>, WorkspaceError> {
        unfinished()
    }
    /// Since a checkpoint.
    /// # Errors
    /// Many.
    pub fn changes_since(&self, _checkpoint: &CheckpointId) -> Result<Vec<FileChange>, WorkspaceError> {
        unfinished()
    }
    /// Since a checkpoint.
    /// # Errors
    /// Many.
    pub fn diff_since(&self, _checkpoint: &CheckpointId, _max_bytes: usize) -> Result<Diff, WorkspaceError> {
        unfinished()
    }
    /// Takes changes back.
    /// # Errors
    /// Many.
    pub fn undo(&self, _target: UndoTarget) -> Result<UndoReport, WorkspaceError> {
        unfinished()
    }
}
