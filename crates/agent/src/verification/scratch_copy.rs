//! Copies of a session's tree for checks, in which some files are as they were before the task.

use std::sync::Arc;

use journeyman_protocol::{RelPath, SessionId, UnixMillis};
use journeyman_workspace::{
    CheckpointId, CopyChanges, IsolatedCopy, IsolationTier, LandOptions, Workspace, WorkspaceError,
};

use crate::blocking::run_blocking;
use crate::isolation::{Isolation, WorkCopy};
use crate::session::context::SessionContext;

/// Maximum number of files that are copied one by one for a copy.
pub(crate) const MAX_COPIED_FILES: usize = 50_000;

/// The tree of a session, from which copies are made.
pub(crate) enum SessionTree {
    /// The user's tree, with the checkpoint since which the session changes it.
    InPlace(Box<Isolation>, CheckpointId),
    /// The session's own copy.
    Copy(Arc<WorkCopy>),
}

/// A temporary copy, which is not listed among the copies of sessions.
pub(crate) struct ScratchCopy {
    origin: Arc<Workspace>,
    name: SessionId,
    copy: IsolatedCopy,
}

impl SessionTree {
    /// Returns the session's tree; `None` where nothing changed since any checkpoint.
    pub(crate) fn from_context(cx: &SessionContext, since: Option<CheckpointId>) -> Option<Self> {
        if let Some(copy) = &cx.copy {
            return Some(Self::Copy(Arc::clone(copy)));
        }
        let isolation = Isolation {
            origin: Arc::clone(&cx.workspace),
            sandbox: Arc::clone(&cx.sandbox),
            git: None,
            tiers: IsolationTier::ALL.to_vec(),
            max_copied_files: MAX_COPIED_FILES,
        };
        Some(Self::InPlace(Box::new(isolation), since?))
    }

    /// Returns the changes from the user's tree to the session's, in which the files that
    /// `is_restored` selects have their content from before the task, and the paths of the restored
    /// files. `is_restored` gets a path, and true if the file existed before the task.
    ///
    /// # Errors
    /// Errors of reading the journal or the copy.
    pub(crate) fn diff_with_restored_files(
        &self,
        owner: &SessionId,
        is_restored: impl Fn(&RelPath, bool) -> bool,
    ) -> Result<(CopyChanges, Vec<RelPath>), WorkspaceError> {
        match self {
            Self::InPlace(isolation, since) => {
                let changes = isolation.origin.history().changes_to_restore(since, owner, is_restored)?;
                let restored = changes.files().into_iter().map(|change| change.path).collect();
                Ok((changes, restored))
            }
            Self::Copy(copy) => {
                let mut changes = copy.changes()?;
                let restored = changes.exclude_files(is_restored);
                Ok((changes, restored))
            }
        }
    }

    /// Makes a copy of the user's tree with these changes, for which at most `max_copied_files` are
    /// copied one by one. The error is the reason, in words.
    pub(crate) fn make_copy(
        &self,
        owner: &SessionId,
        changes: &CopyChanges,
        max_copied_files: usize,
    ) -> Result<ScratchCopy, String> {
        let isolation = match self {
            Self::InPlace(isolation, _) => isolation,
            Self::Copy(copy) => copy.isolation(),
        };
        let isolation = Isolation { max_copied_files, ..isolation.clone() };
        if isolation.origin.project_copy().is_some() {
            return Err("the project is a copy itself".to_owned());
        }
        // The name is unique: ids of sessions begin with the time, which is never 0.
        let name = SessionId::new(UnixMillis(0), fastrand::u64(..));
        let origin = Arc::clone(&isolation.origin);
        let copy = origin
            .copies()
            .create_scratch(&name, owner, &isolation.copy_tools())
            .map_err(|error| error.to_string())?;
        // Changes in this copy are never undone.
        let options = LandOptions { beyond_undo: true, ..LandOptions::default() };
        let landed = copy.workspace().land(changes, &options);
        let scratch = ScratchCopy { origin, name, copy };
        match landed {
            Ok(landing) => match landing.conflicts.first() {
                None => Ok(scratch),
                Some((path, reason)) => Err(scratch.discard_with_reason(format!("{path}: {reason}"))),
            },
            Err(error) => Err(scratch.discard_with_reason(error.to_string())),
        }
    }
}

impl ScratchCopy {
    /// Returns the copy as a workspace.
    pub(crate) fn workspace(&self) -> Arc<Workspace> {
        Arc::clone(self.copy.workspace())
    }

    /// Removes the copy.
    pub(crate) async fn remove(self) {
        run_blocking("removing a copy of the tree", move || self.remove_blocking()).await.ok();
    }

    /// Removes the copy. Blocks.
    pub(crate) fn remove_blocking(self) {
        let Self { origin, name, copy } = self;
        drop(copy);
        // Files that can't be removed now are removed when the project is opened.
        origin.copies().discard(&name).ok();
    }

    fn discard_with_reason(self, reason: String) -> String {
        self.remove_blocking();
        reason
    }
}
