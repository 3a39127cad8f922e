//! Descriptions of copies: what making one needs, and what is known of one.

use journeyman_git::Git;
use journeyman_protocol::{RelPath, SessionId, UnixMillis};
use journeyman_sandbox::Sandbox;
use serde::{Deserialize, Serialize};

use crate::copies::tier::IsolationTier;
use crate::error::WorkspaceError;

/// The programs and tiers for making a copy.
#[derive(Clone, Copy)]
pub struct CopyTools<'a> {
    /// It mounts overlays.
    pub sandbox: &'a Sandbox,
    /// The user's git; without it there is no worktree tier.
    pub git: Option<&'a Git>,
    /// The tiers to try, in this order.
    pub tiers: &'a [IsolationTier],
    /// Maximum number of files that a tier may copy one by one.
    pub max_copied_files: usize,
}

/// The description of a copy, readable without opening it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyInfo {
    /// The session whose copy it is; it names it.
    pub session: SessionId,
    /// The way it was made.
    pub tier: IsolationTier,
    /// When.
    pub created: UnixMillis,
    /// The checkpoint of the user's tree that it was made from.
    pub base: crate::change::CheckpointId,
    /// The process that has it open, such as `pid 123`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
}

/// The result of bringing a copy up to date with the user's tree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RefreshReport {
    /// Files that were changed in the user's tree meanwhile, and are so in the copy now.
    pub taken: Vec<RelPath>,
    /// Files that both changed, and that were merged.
    pub merged: Vec<RelPath>,
    /// Files that both changed in ways that don't go together; the copy has its own version of
    /// them, and landing it asks again.
    pub conflicts: Vec<RelPath>,
}

/// The reason why a tier isn't available, for a person to read.
#[derive(Debug)]
pub(crate) struct UnavailableReason(pub(crate) String);

impl From<WorkspaceError> for UnavailableReason {
    fn from(error: WorkspaceError) -> Self {
        Self(error.to_string())
    }
}

impl From<&str> for UnavailableReason {
    fn from(words: &str) -> Self {
        Self(words.to_owned())
    }
}
