//! Reviews a session's isolated copy: its changes, and the conflicts that would prevent landing.

use std::sync::Arc;

use journeyman_agent::isolation::{WorkCopy, is_verified_status, open_copy};
use journeyman_protocol::{FileConflict, RelPath, RunOutcome, Seq, SessionId};
use journeyman_store::Store;
use journeyman_workspace::{CheckpointInfo, LandOptions, UndoTarget, Workspace, WorkspaceError};

use crate::format::outcome_name;
use crate::hunks::ChangedFile;
use crate::project::ProjectContext;
use crate::undo::{RecoveredCalls, UndoResult, undo_to_target};
use crate::{Context as _, HostError};

/// The isolated copy of a closed session. Holds the copy's lock, so no other process can open, land
/// or discard it.
pub struct CopyReview {
    session: SessionId,
    project: ProjectContext,
    copy: Arc<WorkCopy>,
}

/// The changes of a copy, and how they go together with the user's files as they are now.
#[derive(Debug, Clone, Default)]
pub struct LandingPreview {
    /// The files that are different in the copy.
    pub files: Vec<ChangedFile>,
    /// Files that the user changed too, and whose changes go together.
    pub merged: Vec<RelPath>,
    /// Files that keep the copy from being landed, each with the reason.
    pub conflicts: Vec<FileConflict>,
    /// True if checks passed on the copy as it is.
    pub is_verified: bool,
    /// The last entry of the session's log; `None` for a session that isn't in the log.
    pub known_end: Option<Seq>,
}

impl CopyReview {
    /// Opens the copy of a session that is closed.
    ///
    /// # Errors
    /// [`HostError`] where the session has no copy (any more), or another process has it open.
    pub async fn open(project: &ProjectContext, session: &SessionId) -> Result<Self, HostError> {
        let copy = Arc::new(open_copy(&project.isolation(), session).await?);
        Ok(Self { session: session.clone(), project: project.clone(), copy })
    }

    /// Returns the copy as a workspace.
    #[must_use]
    pub fn workspace(&self) -> Arc<Workspace> {
        self.copy.workspace()
    }

    /// Compares the copy with the user's files. Changes nothing.
    ///
    /// # Errors
    /// [`HostError::Failed`] where one of the trees can't be read.
    pub async fn preview(&self) -> Result<LandingPreview, HostError> {
        let (copy, origin) = (Arc::clone(&self.copy), Arc::clone(&self.project.workspace));
        let compare = move || {
            let changes = copy.changes()?;
            let files = copy.changed_contents(&changes)?.into_iter().map(ChangedFile::from).collect();
            let landing = origin.land(&changes, &LandOptions { dry_run: true, ..LandOptions::default() })?;
            let conflicts = landing.conflicts.into_iter();
            let conflicts = conflicts.map(|(path, reason)| FileConflict { path, reason }).collect();
            Ok::<_, WorkspaceError>(LandingPreview {
                files,
                merged: landing.merged,
                conflicts,
                is_verified: false,
                known_end: None,
            })
        };
        let compared = tokio::task::spawn_blocking(compare).await.context("comparing the copy")?;
        let found = Store::find_sessions(&*self.project.store, self.session.as_str()).await;
        let found = found.context("the session log")?.into_iter().find(|found| found.id == self.session);
        let is_verified = found.as_ref().is_some_and(|found| is_verified_status(&found.status));
        let known_end = found.map(|found| found.last);
        Ok(LandingPreview { is_verified, known_end, ..compared.context("the copy")? })
    }

    /// Lists the copy's checkpoints, oldest first.
    ///
    /// # Errors
    /// [`HostError::Failed`] where the copy's journal can't be read.
    pub async fn checkpoints(&self) -> Result<Vec<CheckpointInfo>, HostError> {
        let workspace = self.workspace();
        let listed = tokio::task::spawn_blocking(move || workspace.checkpoints()).await;
        listed.context("the copy")?.context("the checkpoints of the copy")
    }

    /// Redoes the changes that the newest undo in the copy took back. Returns `None` if there is no
    /// undo.
    ///
    /// # Errors
    /// [`HostError::Failed`] where the copy can't be written.
    pub async fn redo(&self) -> Result<Option<UndoResult>, HostError> {
        let workspace = self.workspace();
        let redone = tokio::task::spawn_blocking(move || workspace.redo(None)).await.context("the copy")?;
        let report = match redone {
            Err(WorkspaceError::NothingToRedo { .. }) => return Ok(None),
            redone => redone.context("redo")?,
        };
        self.record_unverified().await?;
        let (sessions, violations, commits) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Some(UndoResult { report, sessions, steps: 1, violations, commits }))
    }

    /// Undoes changes in the copy: those of a session, or those since a checkpoint.
    ///
    /// # Errors
    /// [`HostError::Failed`] where nothing was, the copy has no such checkpoint, or it can't be
    /// written.
    pub async fn undo(&self, target: UndoTarget) -> Result<UndoResult, HostError> {
        let workspace = self.workspace();
        let undo = move || undo_to_target(&workspace, target, RecoveredCalls::default());
        let undone = tokio::task::spawn_blocking(undo).await.context("the copy")??;
        self.record_unverified().await?;
        Ok(undone)
    }

    /// Records that the copy is unverified after a change, so that it isn't landed as verified.
    ///
    /// # Errors
    /// [`HostError::Failed`] where the session log takes nothing.
    pub async fn record_unverified(&self) -> Result<(), HostError> {
        let word = outcome_name(RunOutcome::Unverified);
        let ProjectContext { store, clock, .. } = &self.project;
        Store::set_status(&**store, &self.session, &word, clock.now()).await.context("the session log")
    }
}
