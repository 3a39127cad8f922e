//! The ways to make a copy of the tree.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The ways to make a copy, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IsolationTier {
    /// An overlay: nothing is copied, changes lie in a layer of their own. Ignored files are seen
    /// too.
    Overlay,
    /// Files that share their blocks with the tree's.
    Reflink,
    /// A git checkout, with differing files copied.
    Worktree,
    /// Every file that isn't ignored, copied.
    Copy,
}

impl IsolationTier {
    /// All of them, best first.
    pub const ALL: [Self; 4] = [Self::Overlay, Self::Reflink, Self::Worktree, Self::Copy];
}

impl fmt::Display for IsolationTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Overlay => "overlay",
            Self::Reflink => "reflink",
            Self::Worktree => "worktree",
            Self::Copy => "copy",
        })
    }
}
