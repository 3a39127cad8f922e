//! Copies of the tree that a task works in, so that nothing reaches the user's files before it is to.

use std::fmt;
use std::sync::Arc;

use journeyman_git::Git;
use journeyman_protocol::{RelPath, SessionId, UnixMillis};
use journeyman_sandbox::Sandbox;
use serde::{Deserialize, Serialize};

use crate::{Workspace, WorkspaceError};

/// How a copy is made, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// An overlay: nothing is copied, changes lie in a layer of their own. Ignored files are seen too.
    Overlay,
    /// Files that share their blocks with the tree's.
    Reflink,
    /// What git has, checked out, and what differs from it copied.
    Worktree,
    /// Every file that isn't ignored, copied.
    Copy,
}

impl Tier {
    /// All of them, best first.
    pub const ALL: [Self; 4] = [Self::Overlay, Self::Reflink, Self::Worktree, Self::Copy];
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Overlay => "overlay",
            Self::Reflink => "reflink",
            Self::Worktree => "worktree",
            Self::Copy => "copy",
        })
    }
}

/// What making a copy needs.
#[derive(Clone, Copy)]
pub struct Means<'a> {
    /// It mounts overlays.
    pub sandbox: &'a Sandbox,
    /// The user's git; without it there is no worktree tier.
    pub git: Option<&'a Git>,
    /// The tiers to try, in this order.
    pub tiers: &'a [Tier],
}

/// A copy of the tree, open. While it lives, nobody else can open, land or discard it.
#[derive(Debug)]
pub struct Isolated {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) info: CopyInfo,
    pub(crate) passed_over: Vec<(Tier, String)>,
}

/// What is known of a copy without opening it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyInfo {
    /// The session whose copy it is; it names it.
    pub session: SessionId,
    /// How it was made.
    pub tier: Tier,
    /// When.
    pub created: UnixMillis,
    /// The checkpoint of the user's tree that it was made from.
    pub base: crate::CheckpointId,
    /// Who has it open, such as `pid 123`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
}

/// What [`Isolated::refresh`] found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refreshed {
    /// Files that were changed in the user's tree meanwhile, and are so in the copy now.
    pub taken: Vec<RelPath>,
    /// Files that both changed, and that were merged.
    pub merged: Vec<RelPath>,
    /// Files that both changed in ways that don't go together; the copy has its own version of them.
    pub conflicts: Vec<RelPath>,
}

impl Isolated {
    /// The copy as a workspace: its root is the user's, its files are its own.
    #[must_use]
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.workspace
    }

    /// What is known of it.
    #[must_use]
    pub fn info(&self) -> &CopyInfo {
        &self.info
    }

    /// The better tiers that couldn't be had, each with the reason.
    #[must_use]
    pub fn passed_over(&self) -> &[(Tier, String)] {
        &self.passed_over
    }
}

impl Workspace {
    /// Makes a copy of this tree for a session, by the first tier that works here.
    ///
    /// # Errors
    /// [`WorkspaceError::NoCopy`] with each tier's reason; [`WorkspaceError::CopyExists`]; as
    /// [`Workspace::checkpoint`].
    pub fn isolate(&self, session: &SessionId, means: &Means<'_>) -> Result<Isolated, WorkspaceError> {
        let _ = (session, means);
        Err(WorkspaceError::NoCopy { reasons: Vec::new() })
    }

    /// Opens a session's copy again, such as after a restart.
    ///
    /// # Errors
    /// [`WorkspaceError::UnknownCopy`]; [`WorkspaceError::Busy`] when somebody has it open;
    /// [`WorkspaceError::NoCopy`] when it can't be mounted any more.
    pub fn open_copy(&self, session: &SessionId, means: &Means<'_>) -> Result<Isolated, WorkspaceError> {
        let _ = means;
        Err(WorkspaceError::UnknownCopy { session: session.clone() })
    }

    /// The copies of this tree, oldest first.
    ///
    /// # Errors
    /// [`WorkspaceError::State`].
    pub fn copies(&self) -> Result<Vec<CopyInfo>, WorkspaceError> {
        Ok(Vec::new())
    }

    /// Removes a copy with all that was changed in it.
    ///
    /// # Errors
    /// [`WorkspaceError::UnknownCopy`]; [`WorkspaceError::Busy`] when somebody has it open; failures of the disk.
    pub fn discard_copy(&self, session: &SessionId) -> Result<(), WorkspaceError> {
        Err(WorkspaceError::UnknownCopy { session: session.clone() })
    }
}
