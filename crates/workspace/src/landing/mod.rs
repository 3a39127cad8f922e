//! Landing: the changes of a copy, brought into the user's tree in one step.
//!
//! [`CopyChanges`](changes::CopyChanges) are exact and complete in themselves: with the contents
//! among the blobs they can be landed, shown and compared while the copy is closed. Landing judges
//! each file by three states, merges lines where both sides changed them, and carries all of it out
//! as one journaled transaction.

use crate::workspace::Workspace;

pub(crate) mod changes;
pub(crate) mod collect;
pub(crate) mod contested;
pub(crate) mod diff;
pub(crate) mod land;
pub(crate) mod large_files;
pub(crate) mod line_file;
pub(crate) mod merge;
pub(crate) mod plan;
pub(crate) mod refusals;
pub(crate) mod stored_changes;

impl Workspace {
    /// Returns access to the changes of copies of this tree.
    #[must_use]
    pub fn landings(&self) -> Landings<'_> {
        Landings { workspace: self }
    }
}

/// Compares copies with the tree that they were made from, and lands their changes.
#[derive(Debug)]
pub struct Landings<'a> {
    pub(crate) workspace: &'a Workspace,
}
