//! Changes to files that no checkpoint covers, as far as they can be told after the fact.

use std::collections::BTreeMap;

use journeyman_protocol::{FileChange, RelPath, SessionId};

use crate::change::CheckpointId;
use crate::error::WorkspaceError;
use crate::journal::history::History;
use crate::mutex::lock;
use crate::snapshot::capture::Keep;
use crate::snapshot::differences::Difference;
use crate::snapshot::tree::Tree;
use crate::walk::plan::Plan;
use crate::walk::walk;
use crate::workspace::Workspace;

/// The maximum number of files that one look takes in: the installed dependencies of a large
/// project.
const MAX_LOOKED_AT: usize = 200_000;
/// The maximum number of changed files that are kept by name. A reader wants to know which to look
/// at.
const MAX_NAMED: usize = 20;

/// Ignored files that were changed within some time. Those that were removed leave no trace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IgnoredChanges {
    /// The changed files, sorted; at most 20.
    pub paths: Vec<RelPath>,
    /// Whether there are more, or may be: the project has too many files to look at all, or they
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

impl Workspace {
    /// Lists the changes since a checkpoint that commands of a session made, or may have made, to
    /// files that neither the checkpoint nor the newest look at the tree has: ignored ones. Sorted
    /// by path.
    ///
    /// # Errors
    /// As [`Workspace::changes_since`].
    pub fn ignored_changes_since(
        &self,
        checkpoint: &CheckpointId,
        session: &SessionId,
    ) -> Result<Vec<IgnoredChange>, WorkspaceError> {
        let then = self.checkpoint_tree(checkpoint)?;
        let now = self.newest_tree().unwrap_or_default();
        let has = |tree: &Tree, path: &RelPath| {
            tree.entries.binary_search_by(|entry| entry.path.as_slice().cmp(path.as_bytes())).is_ok()
        };
        let mut found: BTreeMap<RelPath, (Difference, bool)> = BTreeMap::new();
        let lines = lock(&self.writer).journal.lines_after(checkpoint.0)?;
        let done = History::new(lines).into_done().into_iter();
        for record in done.filter(|it| it.session == *session || it.beside.contains(session)) {
            let is_shared = !record.beside.is_empty();
            for file in record.files {
                if has(&then, &file.path) || has(&now, &file.path) {
                    continue;
                }
                let (path, after) = (file.path.clone(), file.after);
                let of = || (Difference { path, before: file.before, after }, false);
                let (difference, was_shared) = found.entry(file.path.clone()).or_insert_with(of);
                difference.after = after;
                *was_shared |= is_shared;
            }
        }
        // What an edit made and a command took away again was nobody's.
        let differs = |difference: &Difference| match (&difference.before, &difference.after) {
            (None, _) => false,
            (Some(before), Some(after)) => {
                before.hash.is_none() || !before.same_content(after) || before.mode != after.mode
            }
            (Some(_), None) => true,
        };
        let found = found.into_values().filter(|(difference, _)| differs(difference));
        let changes = found.map(|(difference, is_shared)| {
            let is_kept = difference.before.is_some_and(|it| it.hash.is_some());
            IgnoredChange { change: difference.file_change(), is_undoable: is_kept && !is_shared, is_shared }
        });
        Ok(changes.collect())
    }

    /// Looks for files that aren't in the tree as checkpoints have it and were last changed, in
    /// whichever way, from `since` to `until` in nanoseconds of the file system's clock.
    pub(crate) fn ignored_changes(&self, since: i64, until: i64) -> IgnoredChanges {
        let unknown = IgnoredChanges { paths: Vec::new(), more: true };
        let plan = Plan {
            include_ignored: true,
            stat: true,
            ..Plan::of_names(&self.door, &self.rules, MAX_LOOKED_AT)
        };
        let Ok(walked) = walk(&plan) else { return unknown };
        let Ok(tree) = self.snapshot(Keep::Hashes, None) else { return unknown };
        let is_covered =
            |path: &[u8]| tree.entries.binary_search_by(|entry| entry.path.as_slice().cmp(path)).is_ok();
        let changed = walked.files.iter().filter(|file| {
            let within = file.seen.is_some_and(|seen| (since..=until).contains(&seen.ctime));
            within && !is_covered(&file.path)
        });
        let mut paths: Vec<RelPath> =
            changed.filter_map(|file| RelPath::parse(&file.path).ok()).take(MAX_NAMED + 1).collect();
        let more = walked.overflow || paths.len() > MAX_NAMED;
        paths.truncate(MAX_NAMED);
        IgnoredChanges { paths, more }
    }
}
