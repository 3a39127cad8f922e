//! The request for a commit.

use journeyman_protocol::RelPath;

/// A request to commit files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommitRequest {
    /// The files, as they are in the work tree: added, edited, made executable, or deleted. Nothing
    /// else is committed. A rename needs both names.
    pub paths: Vec<RelPath>,
    /// The commit message, which hooks may change.
    pub message: String,
    /// Files with earlier changes of the user, as returned by
    /// [`Git::dirty_before`](crate::Git::find_dirty_paths) before the task. If `paths` contains one
    /// of them, nothing is committed.
    pub mixed: Vec<RelPath>,
}
