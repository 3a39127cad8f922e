//! The operations that leave a repository in progress.

use std::fmt;

/// An operation in progress in a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationInProgress {
    /// `git merge`.
    Merge,
    /// `git rebase`.
    Rebase,
    /// `git am`.
    Mailbox,
    /// `git cherry-pick`.
    CherryPick,
    /// `git revert`.
    Revert,
    /// `git bisect`.
    Bisect,
}

impl fmt::Display for OperationInProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Merge => "merge",
            Self::Rebase => "rebase",
            Self::Mailbox => "am",
            Self::CherryPick => "cherry-pick",
            Self::Revert => "revert",
            Self::Bisect => "bisect",
        })
    }
}
