//! Changes to files that no checkpoint covers, as far as they can be told after the fact.

use journeyman_protocol::{FileChange, RelPath};

use crate::snapshot::capture::ContentMode;
use crate::snapshot::snapshots::Snapshots;
use crate::walk::plan::WalkPlan;
use crate::walk::walk;

/// The maximum number of files that one look takes in: the installed dependencies of a large
/// project.
const MAX_EXAMINED_FILES: usize = 200_000;
/// The maximum number of changed files that are kept by name. A reader wants to know which to look
/// at.
const MAX_REPORTED_PATHS: usize = 20;

/// Ignored files that were changed within some time. Those that were removed leave no trace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IgnoredChanges {
    /// The changed files, sorted; at most 20.
    pub paths: Vec<RelPath>,
    /// True if there are more, or may be: the project has too many files to look at all, or they
    /// can't be listed.
    pub more: bool,
}

/// An ignored file that commands of a session changed or deleted, or may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredChange {
    /// The change from before the first of these commands to after the last.
    pub change: FileChange,
    /// True if an undo of the session gives the file's earlier content back.
    pub is_undoable: bool,
    /// True if a command of another session ran at the same time, which may have made the change as
    /// well.
    pub is_shared: bool,
}

/// Looks for files that aren't in the tree as checkpoints have it and were last changed, in
/// whichever way, from `since` to `until` in nanoseconds of the file system's clock.
pub(crate) fn find_ignored_changes(snapshots: &Snapshots, since: i64, until: i64) -> IgnoredChanges {
    let unknown = IgnoredChanges { paths: Vec::new(), more: true };
    let plan = WalkPlan {
        include_ignored: true,
        stat: true,
        ..WalkPlan::names_only(&snapshots.project.root_dir, &snapshots.project.rules, MAX_EXAMINED_FILES)
    };
    let Ok(walked) = walk(&plan) else { return unknown };
    let Ok(tree) = snapshots.take_snapshot(ContentMode::Hashes, None) else { return unknown };
    let is_covered =
        |path: &[u8]| tree.entries.binary_search_by(|entry| entry.path.as_slice().cmp(path)).is_ok();
    let changed = walked.files.iter().filter(|file| {
        let within = file.seen.is_some_and(|seen| (since..=until).contains(&seen.ctime));
        within && !is_covered(&file.path)
    });
    let mut paths: Vec<RelPath> =
        changed.filter_map(|file| RelPath::parse(&file.path).ok()).take(MAX_REPORTED_PATHS + 1).collect();
    let more = walked.overflow || paths.len() > MAX_REPORTED_PATHS;
    paths.truncate(MAX_REPORTED_PATHS);
    IgnoredChanges { paths, more }
}
