//! The files that checks changed.

use std::collections::BTreeSet;

use journeyman_protocol::{FileChange, FileChangeKind, RelPath};

/// The files that checks changed, apart from those that they made: output, which no check of the
/// project was about.
#[derive(Debug, Default)]
pub(crate) struct CheckChanges {
    /// The files that checks changed and didn't make, until they are taken.
    rewritten: Vec<RelPath>,
    made: BTreeSet<RelPath>,
}

impl CheckChanges {
    /// Records the changes of a run of checks.
    pub(crate) fn record(&mut self, changes: Vec<FileChange>) {
        for change in changes {
            if change.kind == FileChangeKind::Added {
                self.made.insert(change.path);
            } else if !self.made.contains(&change.path) {
                self.record_rewritten(change.path);
            }
        }
    }

    /// Records a file that checks changed.
    pub(crate) fn record_rewritten(&mut self, path: RelPath) {
        if !self.rewritten.contains(&path) {
            self.rewritten.push(path);
        }
    }

    /// Returns the files that checks changed and didn't make, since they were taken last.
    pub(crate) fn take_rewritten(&mut self) -> Vec<RelPath> {
        std::mem::take(&mut self.rewritten)
    }

    /// Returns true for a file that checks made.
    pub(crate) fn has_made(&self, path: &RelPath) -> bool {
        self.made.contains(path)
    }
}
