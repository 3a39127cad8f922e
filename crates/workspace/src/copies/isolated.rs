//! An open copy.

use crate::copies::info::CopyInfo;
use crate::copies::location::CopyLocation;
use crate::copies::record::CopyRecord;
use crate::copies::tier::IsolationTier;
use crate::error::WorkspaceError;
use crate::state::lock::OwnedLockGuard;
use crate::workspace::Workspace;
use journeyman_protocol::RelPath;
use std::sync::Arc;

/// A copy of the tree, open. While it lives, nobody else can open, land or discard it.
#[derive(Debug)]
pub struct IsolatedCopy {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) info: CopyInfo,
    pub(crate) unavailable_tiers: Vec<(IsolationTier, String)>,
    pub(crate) left_out: Vec<(RelPath, String)>,
    pub(crate) record: CopyRecord,
    pub(crate) place: CopyLocation,
    pub(crate) _held: OwnedLockGuard,
}

impl IsolatedCopy {
    /// Returns the copy as a workspace: its root is the user's, its files are its own.
    #[must_use]
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.workspace
    }

    /// Returns the copy's description.
    #[must_use]
    pub fn info(&self) -> &CopyInfo {
        &self.info
    }

    /// Keeps the copy: from now on it stays until it is landed or discarded. One that isn't kept is
    /// removed some time after it is dropped, or after its process dies.
    ///
    /// # Errors
    /// Failures of the state directory.
    pub fn keep(&mut self) -> Result<(), WorkspaceError> {
        if !self.record.kept {
            self.record.kept = true;
            self.record.write(self.place.dir())?;
        }
        Ok(())
    }

    /// Returns the better tiers that were unavailable, each with the reason.
    #[must_use]
    pub fn unavailable_tiers(&self) -> &[(IsolationTier, String)] {
        &self.unavailable_tiers
    }

    /// Returns the files that the copy doesn't have as the tree has them, each with the reason.
    /// Known after [`Copies::create`](crate::Copies::create) only.
    #[must_use]
    pub fn left_out_files(&self) -> &[(RelPath, String)] {
        &self.left_out
    }
}
