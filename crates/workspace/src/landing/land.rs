//! Landing: a copy's changes as one transaction on the user's tree.

use std::collections::{HashMap, HashSet};

use journeyman_protocol::{CallId, FileChange, RelPath, SessionId};

use crate::change::{AppliedChanges, ChangeId};
use crate::error::WorkspaceError;
use crate::journal::record::ChangeCause;
use crate::landing::Landings;
use crate::landing::changes::{CopyChange, CopyChanges, LandOptions, LandingReport, OnConflict};
use crate::landing::collect::find_renames;
use crate::landing::merge::is_about_size;
use crate::landing::merge::is_same;
use crate::landing::plan::{ExtraOperations, LandingPlanner};
use crate::snapshot::capture::ContentMode;
use crate::snapshot::compare::drop_rule_changes;
use crate::snapshot::differences::{Difference, change_kind, diff_trees};
use crate::transaction::operation::ChangeIntent;
use crate::workspace::Workspace;
use journeyman_ignore_rules::is_git_directory_name;

impl Workspace {
    /// Brings the changes of a copy into this tree as one transaction, all of it or nothing. What
    /// the user changed meanwhile stays: files that both changed are merged line by line where that
    /// can be done; a file that the user gave another name gets the copy's changes there, and one
    /// that the copy gave another name takes the user's along. An undo takes the landing back like
    /// any change of the session.
    ///
    /// Links are landed as links, and nothing is written through one. What can't be undone is a
    /// conflict: replacing or deleting a file over
    /// [`kept_file_bytes`](crate::limits::Limits::kept_file_bytes). So is one of that size for
    /// which there was no room beside the copy.
    ///
    /// # Errors
    /// [`WorkspaceError::Lost`] when contents are gone; [`WorkspaceError::Protected`] for what
    /// belongs to git, [`WorkspaceError::Own`]; [`WorkspaceError::TooManyChanges`] when the journal
    /// couldn't hold it; as [`Workspace::apply`]. In each case the tree is as it was.
    pub fn land(
        &self,
        changes: &CopyChanges,
        options: &LandOptions,
    ) -> Result<LandingReport, WorkspaceError> {
        self.landings().land_for_call(changes, options, (&changes.session, None), ExtraOperations::default())
    }
}

impl Landings<'_> {
    /// Lands the changes on behalf of a session's call, together with other operations of the same
    /// transaction.
    pub(crate) fn land_for_call(
        &self,
        changes: &CopyChanges,
        options: &LandOptions,
        (session, call): (&SessionId, Option<&CallId>),
        besides: ExtraOperations,
    ) -> Result<LandingReport, WorkspaceError> {
        self.workspace.project.root_dir.check_alive()?;
        if let Some(file) =
            changes.files.iter().find(|file| file.path.components().any(is_git_directory_name))
        {
            return Err(WorkspaceError::Protected { path: file.path.clone() });
        }
        if let Some(file) =
            changes.files.iter().find(|file| self.workspace.project.rules.is_own_file(&file.path))
        {
            return Err(WorkspaceError::Own { path: file.path.clone() });
        }
        let moved = self.find_user_renames(changes)?;
        let landing = self.workspace.transactions.write_locked(|writer, context| {
            let mut plan = LandingPlanner::new(self.workspace, changes, &moved, options, &besides).plan()?;
            if options.on_conflict != OnConflict::Refuse || plan.conflicts.is_empty() {
                plan.operations.extend(besides.operations);
                plan.operations.sort_by(|one, other| one.path.cmp(&other.path));
                plan.make.extend(besides.make);
                plan.remove.extend(besides.remove);
            }
            let done = plan.operations.iter().map(|operation| FileChange {
                path: operation.path.clone(),
                kind: change_kind(operation.before.is_some(), operation.after.is_some()),
            });
            let is_refused = |path: &RelPath| changes.objections.iter().any(|(other, _)| other == path);
            let refused = plan.conflicts.iter().map(|(path, _)| path).filter(|path| is_refused(path));
            let too_large = plan.conflicts.iter().filter(|(_, reason)| is_about_size(reason));
            let mut landing = LandingReport {
                refused: refused.cloned().collect(),
                too_large: too_large.map(|(path, _)| path.clone()).collect(),
                applied: AppliedChanges { id: ChangeId::NONE, changes: done.collect() },
                merged: plan.merged,
                conflicts: plan.conflicts,
                already: plan.already,
                left: plan.left,
            };
            let nothing = plan.operations.is_empty() && plan.make.is_empty() && plan.remove.is_empty();
            if options.dry_run || nothing {
                return Ok(landing);
            }
            self.workspace.running.journal_running_changes(writer, &plan.operations)?;
            let intent = ChangeIntent {
                session: session.clone(),
                call: call.cloned(),
                cause: ChangeCause::Landing,
                description: None,
                undoes: Vec::new(),
                left: Vec::new(),
                modes: Vec::new(),
                make: plan.make,
                remove: plan.remove,
                settles_copy: call.is_none() && landing.left.is_empty(),
            };
            landing.applied.id = context.execute(&mut writer.journal, intent, &plan.operations)?;
            Ok(landing)
        })?;
        self.workspace.quota().enforce()?;
        Ok(landing)
    }

    /// Finds files that the user renamed since the base and that the copy changed under the old
    /// name. Searches only if a file is gone.
    fn find_user_renames(&self, changes: &CopyChanges) -> Result<HashMap<RelPath, RelPath>, WorkspaceError> {
        let is_gone = |file: &&CopyChange| {
            file.before.is_some()
                && !matches!(self.workspace.project.root_dir.stat(&file.path), Ok(Some(seen)) if !seen.is_dir())
        };
        let gone: HashSet<&RelPath> = changes.files.iter().filter(is_gone).map(|file| &file.path).collect();
        if gone.is_empty() {
            return Ok(HashMap::new());
        }
        let before = match self.workspace.transactions.load_checkpoint_tree(&changes.base) {
            Ok(before) => before,
            // Then nobody can tell.
            Err(WorkspaceError::UnknownCheckpoint { .. } | WorkspaceError::Lost { .. }) => {
                return Ok(HashMap::new());
            }
            Err(other) => return Err(other),
        };
        let now = self.workspace.snapshots.take_snapshot(ContentMode::Hashes, Some(&before))?;
        let found =
            drop_rule_changes(self.workspace.project.compare_inputs(), &before, diff_trees(&before, &now))?;
        let mut moved: HashMap<RelPath, RelPath> =
            find_renames(&found).into_iter().filter(|(from, _)| gone.contains(from)).collect();
        // A file under a new name that has the copy's changes already was landed there before.
        let is_new = |difference: &&Difference| difference.before.is_none();
        let known = found.iter().filter(is_new).filter_map(|new| Some((new.after?.hash?, new)));
        let known: HashMap<_, _> = known.collect();
        for file in changes.files.iter().filter(|file| gone.contains(&file.path)) {
            if let Some(after) = file.after.filter(|after| after.size > 0)
                && let Some(new) = after.hash.and_then(|hash| known.get(&hash))
                && is_same(new.after.as_ref(), Some(&after))
            {
                moved.entry(file.path.clone()).or_insert_with(|| new.path.clone());
            }
        }
        Ok(moved)
    }
}
