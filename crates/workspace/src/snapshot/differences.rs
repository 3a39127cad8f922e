//! Differences between two trees.

use std::cmp::Ordering as Order;

use journeyman_protocol::{FileChange, FileChangeKind, RelPath, SessionId};

use crate::journal::record::{DirModeRecord, DirRecord};
use crate::snapshot::entry::{FileState, TreeEntry, WalkedDir};
use crate::snapshot::tree::Tree;

/// One difference between two trees.
#[derive(Debug, Clone)]
pub(crate) struct Difference {
    pub(crate) path: RelPath,
    pub(crate) before: Option<FileState>,
    pub(crate) after: Option<FileState>,
}

impl Difference {
    pub(crate) fn file_change(&self) -> FileChange {
        FileChange { path: self.path.clone(), kind: change_kind(self.before.is_some(), self.after.is_some()) }
    }
}

/// Returns the kind of change of a file that was there before or is there after.
pub(crate) fn change_kind(before: bool, after: bool) -> FileChangeKind {
    match (before, after) {
        (false, _) => FileChangeKind::Added,
        (true, false) => FileChangeKind::Deleted,
        (true, true) => FileChangeKind::Modified,
    }
}

/// Returns all differences between two trees, sorted. Files in a directory that couldn't be read in
/// one of them are left out.
pub(crate) fn diff_trees(before: &Tree, after: &Tree) -> Vec<Difference> {
    let unknown = |path: &[u8]| {
        before.unreadable.iter().chain(&after.unreadable).any(|dir| {
            dir.is_empty()
                || path.strip_prefix(dir.as_slice()).is_some_and(|rest| rest.first() == Some(&b'/'))
        })
    };
    let mut found = Vec::new();
    let mut add = |path: &[u8], before: Option<&TreeEntry>, after: Option<&TreeEntry>| {
        if unknown(path) {
            return;
        }
        if let Ok(path) = RelPath::parse(path) {
            let (before, after) = (before.map(TreeEntry::state), after.map(TreeEntry::state));
            found.push(Difference { path, before, after });
        }
    };
    let (mut old, mut new) = (before.entries.iter().peekable(), after.entries.iter().peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => break,
            (Some(_), None) => Order::Less,
            (None, Some(_)) => Order::Greater,
            (Some(old), Some(new)) => old.path.cmp(&new.path),
        };
        match order {
            Order::Less => {
                if let Some(gone) = old.next() {
                    add(&gone.path, Some(gone), None);
                }
            }
            Order::Greater => {
                if let Some(made) = new.next() {
                    add(&made.path, None, Some(made));
                }
            }
            Order::Equal => {
                if let (Some(old), Some(new)) = (old.next(), new.next())
                    && old.differs(new)
                {
                    add(&old.path, Some(old), Some(new));
                }
            }
        }
    }
    found
}

/// Returns the directories that are only in `there`, sorted.
pub(crate) fn directories_only_in(there: &Tree, not_there: &Tree) -> Vec<WalkedDir> {
    let known: std::collections::HashSet<&[u8]> =
        not_there.dirs.iter().map(|dir| dir.path.as_slice()).collect();
    let mut only: Vec<WalkedDir> =
        there.dirs.iter().filter(|dir| !known.contains(dir.path.as_slice())).cloned().collect();
    only.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    only
}

/// The differences between two looks at the tree.
#[derive(Default)]
pub(crate) struct TreeDifferences {
    pub(crate) files: Vec<Difference>,
    pub(crate) made: Vec<DirRecord>,
    pub(crate) removed: Vec<DirRecord>,
    pub(crate) modes: Vec<DirModeRecord>,
    /// Other sessions that may have made the differences.
    pub(crate) beside: Vec<SessionId>,
}

impl TreeDifferences {
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.made.is_empty() && self.removed.is_empty() && self.modes.is_empty()
    }
}
