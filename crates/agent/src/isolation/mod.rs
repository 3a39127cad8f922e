//! Sessions that work in an isolated copy of the project, and the landing of the copy.
//!
//! An [`Isolation`] holds the means of making copies. [`Isolation::open_or_create`] opens a
//! session's copy or makes a new one, and [`SessionParts::move_into_copy`] puts a session's parts
//! into the copy. The session works there as it would in the user's tree: paths and the commands'
//! views are the same. The user's changes are taken over before checks run, so that the verified
//! state is the state that would be landed.
//!
//! When the session is closed, [`finish_copy`] lands verified work as one transaction and keeps the
//! rest. [`land_copy`] and [`discard_copy`] do the same later for a kept copy. Unverified work is
//! landed only if the caller says so, and a merged result only after the checks have passed on it.
//!
//! [`SessionParts::move_into_copy`]: crate::SessionParts::move_into_copy

pub mod candidates;
mod check_runner;
pub(crate) mod checkpoints;
mod commit;
mod commit_options;
pub(crate) mod copy_updates;
mod land_context;
mod land_request;
mod landing;
mod landing_reports;
mod landing_session;
mod planned_copy;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use journeyman_git::Git;
use journeyman_protocol::{CopyReport, CopyState, RelPath, SessionId, UnavailableTier};
use journeyman_sandbox::Sandbox;
use journeyman_workspace::{
    ChangedContent, CopyChanges, CopyInfo, CopyTools, Diff, DiffStat, IsolatedCopy, IsolationTier,
    LandOptions, RefreshReport, Workspace, WorkspaceError,
};

use crate::AgentError;

pub use check_runner::CheckRunner;
pub use commit::{Committer, commit_message, list_uncommitted_files};
pub use commit_options::CommitOptions;
pub use land_context::{LandContext, load_last_report};
pub use land_request::{LandOutcome, LandReport, LandRequest, UnverifiedPolicy};
pub(crate) use landing::keep_copy;
pub use landing::{commit_run, discard_copy, finish_copy, land_copy};
pub use landing_session::{hand_over_copy, is_verified_status, open_copy};
pub use planned_copy::PlannedCopy;

/// The means of making copies.
#[derive(Debug, Clone)]
pub struct Isolation {
    /// The user's tree.
    pub origin: Arc<Workspace>,
    /// The sandbox, which mounts overlays.
    pub sandbox: Arc<Sandbox>,
    /// The user's git. Without git no copy is made by checking out.
    pub git: Option<Git>,
    /// The ways of copying to try, in this order.
    pub tiers: Vec<IsolationTier>,
    /// Maximum number of files that a tier may copy one by one.
    pub max_copied_files: usize,
}

/// Maximum number of files that are copied one by one without being asked for, for a copy that
/// takes less than a second: shared blocks cost about 50 µs a file.
const MAX_CHEAP_FILES: usize = 10_000;

impl Isolation {
    /// Restricts the copies to those that take less than a second.
    #[must_use]
    pub fn cheap_only(mut self) -> Self {
        self.tiers.retain(|tier| matches!(tier, IsolationTier::Overlay | IsolationTier::Reflink));
        self.max_copied_files = MAX_CHEAP_FILES;
        self
    }

    /// Opens the copy that a session has, or makes one, which stays only if a session begins in it.
    /// Blocks.
    ///
    /// # Errors
    /// [`WorkspaceError::NoCopy`] with the reason for each way of copying,
    /// [`WorkspaceError::Busy`], failures of the disk.
    pub fn open_or_create(&self, session: &SessionId) -> Result<WorkCopy, AgentError> {
        match self.open(session) {
            Err(AgentError::Workspace(WorkspaceError::UnknownCopy { .. })) => {
                let isolated = self.origin.copies().create(session, &self.copy_tools())?;
                Ok(WorkCopy::new(isolated, self.clone(), false))
            }
            opened => opened,
        }
    }

    /// Opens the copy that a session has. Blocks.
    ///
    /// # Errors
    /// [`WorkspaceError::UnknownCopy`], [`WorkspaceError::Busy`], [`WorkspaceError::NoCopy`].
    pub fn open(&self, session: &SessionId) -> Result<WorkCopy, AgentError> {
        let isolated = self.origin.copies().open(session, &self.copy_tools())?;
        Ok(WorkCopy::new(isolated, self.clone(), true))
    }

    /// Returns the session's copy of this tree, if there is one. Blocks.
    ///
    /// # Errors
    /// Failures of the state directory.
    pub fn find(&self, session: &SessionId) -> Result<Option<CopyInfo>, AgentError> {
        Ok(self.origin.copies().list()?.into_iter().find(|copy| copy.session == *session))
    }

    pub(crate) fn copy_tools(&self) -> CopyTools<'_> {
        CopyTools {
            sandbox: &self.sandbox,
            git: self.git.as_ref(),
            tiers: &self.tiers,
            max_copied_files: self.max_copied_files,
        }
    }
}

/// A session's open copy of the project. Nobody else can open, land or discard it in the meantime.
#[derive(Debug)]
pub struct WorkCopy {
    isolated: Mutex<IsolatedCopy>,
    isolation: Isolation,
    was_reopened: bool,
}

impl WorkCopy {
    fn new(isolated: IsolatedCopy, isolation: Isolation, reopened: bool) -> Self {
        Self { isolated: Mutex::new(isolated), isolation, was_reopened: reopened }
    }

    /// Returns the means with which the copy was made.
    pub(crate) fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    /// Returns the copy as a workspace.
    #[must_use]
    pub fn workspace(&self) -> Arc<Workspace> {
        Arc::clone(self.lock().workspace())
    }

    /// Returns the way in which the copy was made.
    #[must_use]
    pub fn tier(&self) -> IsolationTier {
        self.lock().info().tier
    }

    /// Returns the better ways of copying that were not available, each with the reason.
    #[must_use]
    pub fn unavailable_tiers(&self) -> Vec<UnavailableTier> {
        let isolated = self.lock();
        let each = isolated.unavailable_tiers().iter();
        each.map(|(tier, reason)| UnavailableTier { tier: tier.to_string(), reason: reason.clone() })
            .collect()
    }

    /// Returns the files that the copy lacks, each with the reason, such as an unreadable file or a
    /// pipe.
    #[must_use]
    pub fn left_out_files(&self) -> Vec<(RelPath, String)> {
        self.lock().left_out_files().to_vec()
    }

    /// Returns true if the copy existed already.
    #[must_use]
    pub fn was_reopened(&self) -> bool {
        self.was_reopened
    }

    /// Keeps the copy until it is landed or discarded. Blocks.
    pub(crate) fn keep(&self) -> Result<(), WorkspaceError> {
        self.lock().keep()
    }

    /// Returns the exact changes in the copy. Blocks.
    ///
    /// # Errors
    /// As [`Landings::changes`](journeyman_workspace::Landings::changes).
    pub fn changes(&self) -> Result<CopyChanges, WorkspaceError> {
        self.isolation.origin.landings().changes(&self.lock())
    }

    /// Returns those changes as a unified diff of at most `max_bytes` bytes. Blocks.
    ///
    /// # Errors
    /// As [`Landings::diff`](journeyman_workspace::Landings::diff).
    pub fn diff(&self, changes: &CopyChanges, max_bytes: usize) -> Result<Diff, WorkspaceError> {
        self.isolation.origin.landings().diff(changes, max_bytes)
    }

    /// Reads both contents of those changes. Blocks.
    ///
    /// # Errors
    /// As [`Landings::contents`](journeyman_workspace::Landings::contents).
    pub fn changed_contents(&self, changes: &CopyChanges) -> Result<Vec<ChangedContent>, WorkspaceError> {
        self.isolation.origin.landings().contents(changes)
    }

    /// Counts the files and lines of those changes. Blocks.
    ///
    /// # Errors
    /// As [`Landings::stat`](journeyman_workspace::Landings::diff_stat).
    pub fn stat(&self, changes: &CopyChanges) -> Result<DiffStat, WorkspaceError> {
        self.isolation.origin.landings().diff_stat(changes)
    }

    /// Takes over the changes that the user made in their tree. If both sides changed a file in
    /// conflicting ways, nothing is taken over: otherwise the copy would be compared with the
    /// user's new version from then on, and landing it would silently replace that version. Blocks.
    ///
    /// # Errors
    /// As [`IsolatedCopy::refresh`] and [`Workspace::land`].
    pub fn refresh(&self) -> Result<RefreshReport, WorkspaceError> {
        let mut isolated = self.lock();
        let origin = &self.isolation.origin;
        if origin.history().changes_since(&isolated.info().base)?.is_empty() {
            return Ok(RefreshReport::default());
        }
        let changes = origin.landings().changes(&isolated)?;
        let looked = origin.land(&changes, &LandOptions { dry_run: true, ..LandOptions::default() })?;
        if !looked.conflicts.is_empty() {
            let conflicts = looked.conflicts.into_iter().map(|(path, _)| path).collect();
            return Ok(RefreshReport { conflicts, ..RefreshReport::default() });
        }
        isolated.refresh(origin, &self.isolation.copy_tools())
    }

    /// Returns true if the user's tree differs from the state that the copy was made from or last
    /// refreshed to. Blocks.
    pub(crate) fn is_outdated(&self) -> Result<bool, WorkspaceError> {
        let base = self.lock().info().base;
        Ok(!self.isolation.origin.history().changes_since(&base)?.is_empty())
    }

    /// Returns the report of a copy that is neither landed nor discarded.
    pub(crate) fn kept_report(&self) -> CopyReport {
        copy_report(self.tier(), CopyState::Kept)
    }

    fn lock(&self) -> MutexGuard<'_, IsolatedCopy> {
        // The guarded value is valid at every moment, so a poisoned lock is usable.
        self.isolated.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn copy_report(tier: IsolationTier, state: CopyState) -> CopyReport {
    CopyReport { tier: tier.to_string(), state, merged: Vec::new(), conflicts: Vec::new() }
}
