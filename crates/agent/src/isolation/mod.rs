//! Sessions that work in a copy of the project, and what becomes of the copy.
//!
//! An [`Isolation`] says what copies are made of and with; [`Isolation::enter`] gives a session its copy, the one it has
//! already or a new one, and [`Parts::within`] puts a session's parts into it. The session works there as it would in
//! the user's tree: paths and commands' views are the same. What the user changes meanwhile is taken over before
//! checks run, so that what is verified is what would be landed.
//!
//! When the session is closed, [`settle`] lands verified work as one transaction and keeps the rest; [`land`] and
//! [`discard`] do the same later, for a copy that was kept. Nothing is landed unverified unless the caller says so, and
//! nothing that had to be merged before the checks have passed on the merged result.
//!
//! [`Parts::within`]: crate::Parts::within

pub mod candidates;
pub(crate) mod checkpoints;
mod commit;
mod commit_wish;
pub(crate) mod copy_updates;
mod desk;
mod land_context;
mod landing;
mod proof;
mod wish;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use journeyman_git::Git;
use journeyman_protocol::{CopyReport, CopyState, RelPath, SessionId, UnavailableTier};
use journeyman_sandbox::Sandbox;
use journeyman_workspace::{
    CopyChanges, CopyInfo, Diff, DiffStat, Isolated, LandOptions, Means, Refreshed, Tier, Workspace,
    WorkspaceError,
};

use crate::AgentError;

pub use commit::{Committer, commit_message, uncommitted};
pub use commit_wish::CommitWish;
pub use land_context::{LandContext, last_report};
pub(crate) use landing::keep;
pub use landing::{commit_run, discard, land, settle};
pub use proof::Proof;
pub use wish::{LandEnd, LandReport, LandWish, Unverified};

/// What copies are made of and with.
#[derive(Debug, Clone)]
pub struct Isolation {
    /// The user's tree.
    pub origin: Arc<Workspace>,
    /// It mounts overlays.
    pub sandbox: Arc<Sandbox>,
    /// The user's git; without it no copy is made by checking out.
    pub git: Option<Git>,
    /// The ways of copying to try, in this order.
    pub tiers: Vec<Tier>,
}

impl Isolation {
    /// Opens the copy that a session has, or makes one. Blocks.
    ///
    /// # Errors
    /// [`WorkspaceError::NoCopy`] with each way's reason, [`WorkspaceError::Busy`], failures of the disk.
    pub fn enter(&self, session: &SessionId) -> Result<WorkCopy, AgentError> {
        match self.open(session) {
            Err(AgentError::Workspace(WorkspaceError::UnknownCopy { .. })) => {
                let isolated = self.origin.isolate(session, &self.means())?;
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
        let isolated = self.origin.open_copy(session, &self.means())?;
        Ok(WorkCopy::new(isolated, self.clone(), true))
    }

    /// Whether a session has a copy of this tree. Blocks.
    ///
    /// # Errors
    /// Failures of the state directory.
    pub fn find(&self, session: &SessionId) -> Result<Option<CopyInfo>, AgentError> {
        Ok(self.origin.copies()?.into_iter().find(|copy| copy.session == *session))
    }

    fn means(&self) -> Means<'_> {
        Means { sandbox: &self.sandbox, git: self.git.as_ref(), tiers: &self.tiers }
    }
}

/// A session's copy of the project, open: nobody else can open, land or discard it meanwhile.
#[derive(Debug)]
pub struct WorkCopy {
    isolated: Mutex<Isolated>,
    isolation: Isolation,
    reopened: bool,
}

impl WorkCopy {
    fn new(isolated: Isolated, isolation: Isolation, reopened: bool) -> Self {
        Self { isolated: Mutex::new(isolated), isolation, reopened }
    }

    /// The copy as a workspace.
    #[must_use]
    pub fn workspace(&self) -> Arc<Workspace> {
        Arc::clone(self.lock().workspace())
    }

    /// How it was made.
    #[must_use]
    pub fn tier(&self) -> Tier {
        self.lock().info().tier
    }

    /// The better ways of copying that couldn't be had, each with the reason.
    #[must_use]
    pub fn unavailable_tiers(&self) -> Vec<UnavailableTier> {
        let isolated = self.lock();
        let each = isolated.unavailable_tiers().iter();
        each.map(|(tier, reason)| UnavailableTier { tier: tier.to_string(), reason: reason.clone() })
            .collect()
    }

    /// What it hasn't as the project has it, each with the reason: a file that nobody may read, a pipe.
    #[must_use]
    pub fn left_out(&self) -> Vec<(RelPath, String)> {
        self.lock().left_out().to_vec()
    }

    /// Whether it was there already.
    #[must_use]
    pub fn reopened(&self) -> bool {
        self.reopened
    }

    /// What was changed in it, exactly. Blocks.
    ///
    /// # Errors
    /// As [`Workspace::copy_changes`].
    pub fn changes(&self) -> Result<CopyChanges, WorkspaceError> {
        self.isolation.origin.copy_changes(&self.lock())
    }

    /// Those changes as a unified diff of at most `max_bytes` bytes. Blocks.
    ///
    /// # Errors
    /// As [`Workspace::copy_diff`].
    pub fn diff(&self, changes: &CopyChanges, max_bytes: usize) -> Result<Diff, WorkspaceError> {
        self.isolation.origin.copy_diff(changes, max_bytes)
    }

    /// How many files and lines those changes are. Blocks.
    ///
    /// # Errors
    /// As [`Workspace::copy_stat`].
    pub fn stat(&self, changes: &CopyChanges) -> Result<DiffStat, WorkspaceError> {
        self.isolation.origin.copy_stat(changes)
    }

    /// Takes over what the user changed in their tree meanwhile. Where both changed a file in ways that don't go
    /// together nothing is taken over: the copy would be compared with the user's new version from then on, and
    /// landing it would replace that without a word. Blocks.
    ///
    /// # Errors
    /// As [`Isolated::refresh`] and [`Workspace::land`].
    pub fn refresh(&self) -> Result<Refreshed, WorkspaceError> {
        let mut isolated = self.lock();
        let origin = &self.isolation.origin;
        if origin.changes_since(&isolated.info().base)?.is_empty() {
            return Ok(Refreshed::default());
        }
        let changes = origin.copy_changes(&isolated)?;
        let looked = origin.land(&changes, &LandOptions { dry_run: true, ..LandOptions::default() })?;
        if !looked.conflicts.is_empty() {
            let conflicts = looked.conflicts.into_iter().map(|(path, _)| path).collect();
            return Ok(Refreshed { conflicts, ..Refreshed::default() });
        }
        isolated.refresh(origin, &self.isolation.means())
    }

    /// Whether the user's tree isn't what the copy was made from, or last brought up to date with. Blocks.
    pub(crate) fn is_outdated(&self) -> Result<bool, WorkspaceError> {
        let base = self.lock().info().base;
        Ok(!self.isolation.origin.changes_since(&base)?.is_empty())
    }

    /// What is told of it while it is neither landed nor discarded.
    pub(crate) fn kept(&self) -> CopyReport {
        report_of(self.tier(), CopyState::Kept)
    }

    fn lock(&self) -> MutexGuard<'_, Isolated> {
        // What it guards is valid at every instant.
        self.isolated.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn report_of(tier: Tier, state: CopyState) -> CopyReport {
    CopyReport { tier: tier.to_string(), state, merged: Vec::new(), conflicts: Vec::new() }
}
