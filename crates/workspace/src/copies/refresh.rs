//! A copy brought up to date with the tree it was made from.
//!
//! The user's changes since then are landed in the copy as a copy's changes are landed in the tree:
//! a file that only one side changed is that side's, a file that both changed is merged, and where
//! the changes conflict, the copy's version stays.
//!
//! The tree beneath an overlay must not change under the mount. So the layer is made anew: a second
//! one that shares the first one's files is mounted over the tree as it is now, the changes are
//! landed there, and it takes the first one's place under the workspace in one step. The record
//! names one of both at each instant; the other one is swept.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use journeyman_protocol::RelPath;
use journeyman_sandbox::ProjectCopy;

use crate::change::CheckpointId;
use crate::copies::info::{CopyTools, RefreshReport};
use crate::copies::isolated::IsolatedCopy;
use crate::copies::tier::IsolationTier;
use crate::copies::tiers;
use crate::copies::tiers::overlay;
use crate::error::WorkspaceError;
use crate::files::remove::remove_tree;
use crate::journal::record::DirRecord;
use crate::landing::changes::{CopyChanges, LandOptions, LandingReport, OnConflict};
use crate::landing::collect::with_renames;
use crate::landing::contested;
use crate::options::Options;
use crate::snapshot::compare::{dir_records, drop_rule_changes};
use crate::snapshot::differences::{Difference, diff_trees, directories_only_in};
use crate::snapshot::own_changes::is_own_change;
use crate::snapshot::tree::Tree;
use crate::workspace::{Workspace, open_project_copy};

/// The label of the checkpoint that a refreshed copy is compared with.
const REFRESH_LABEL: &str = "taken over into the isolated run";

impl IsolatedCopy {
    /// Takes over what the user changed in their tree since the copy was made, or last refreshed.
    /// Files that only one side changed become that side's, others are merged line by line; what
    /// doesn't go together stays as the copy has it. With no such changes it costs a look at the
    /// user's tree.
    ///
    /// The [workspace](IsolatedCopy::workspace) stays the same one; descriptors and paths got of it
    /// earlier, other than its root's, may still show the copy as it was. No undo in the copy takes
    /// this back.
    ///
    /// # Errors
    /// [`WorkspaceError::Busy`] while commands run in the copy; [`WorkspaceError::NoCopy`] when it
    /// can't be mounted again; as [`Workspace::checkpoint`] and [`Workspace::land`]. In each case
    /// the copy is as it was.
    pub fn refresh(
        &mut self,
        user: &Workspace,
        means: &CopyTools<'_>,
    ) -> Result<RefreshReport, WorkspaceError> {
        if user.history().differences_since(&self.info.base)?.is_empty() {
            return Ok(RefreshReport::default());
        }
        self.check_idle()?;
        let base = user.checkpoint(&self.info.session, REFRESH_LABEL)?;
        let changes = self.users_changes(user, &base)?;
        let workspace = Arc::clone(&self.workspace);
        // Nobody edits the copy meanwhile.
        let landing = workspace.transactions.write_locked(|_, _| match self.info.tier {
            IsolationTier::Overlay => self.refresh_overlay(user, means, base, &changes),
            IsolationTier::Reflink | IsolationTier::Worktree | IsolationTier::Copy => {
                self.refresh_directory(user, base, &changes)
            }
        })?;
        Ok(to_report(&changes, landing))
    }

    fn check_idle(&self) -> Result<(), WorkspaceError> {
        if self.workspace.running.has_running() {
            let (holder, waited) = ("a command in the copy".to_owned(), std::time::Duration::ZERO);
            return Err(WorkspaceError::Busy { holder, waited });
        }
        Ok(())
    }

    /// Returns the changes of the user's tree from the copy's base to `base`.
    fn users_changes(&self, user: &Workspace, base: &CheckpointId) -> Result<CopyChanges, WorkspaceError> {
        let (before, after) = (
            user.transactions.load_checkpoint_tree(&self.info.base)?,
            user.transactions.load_checkpoint_tree(base)?,
        );
        let found = differences_between(user, &before, &after)?;
        let (made, removed) = (directories_only_in(&after, &before), directories_only_in(&before, &after));
        Ok(CopyChanges {
            session: self.info.session.clone(),
            base: self.info.base,
            files: with_renames(found),
            made: dir_records(&user.project.root_dir, &made, true),
            removed: dir_records(&user.project.root_dir, &removed, false),
            objections: Vec::new(),
        })
    }

    fn refresh_directory(
        &mut self,
        user: &Workspace,
        base: CheckpointId,
        changes: &CopyChanges,
    ) -> Result<LandingReport, WorkspaceError> {
        let Some(tree) = self.workspace.project_copy() else { return Err(self.lost_error()) };
        let journal = self.place.refresh_dir();
        let landing = land_in_copy(user, tree, &journal, changes)?;
        // A crash before this leaves a copy that has all of it and is compared with the old base:
        // what the user changed is in both then, and the next refresh finds it so.
        contested::note_contested(self.place.dir(), changes, &landing)?;
        self.record_layer(self.record.layer, base)?;
        remove_tree(&journal)?;
        Ok(landing)
    }

    fn refresh_overlay(
        &mut self,
        user: &Workspace,
        means: &CopyTools<'_>,
        base: CheckpointId,
        changes: &CopyChanges,
    ) -> Result<LandingReport, WorkspaceError> {
        let files =
            self.place.files_dir(self.record.beside).map(Path::to_owned).ok_or_else(|| self.lost_error())?;
        let (old, new) = (self.record.layer, self.record.layer.saturating_add(1));
        overlay::remove_other_layers(&files, old);
        // What is about to be changed isn't shared: the old layer counts until the new one is
        // complete.
        let own: HashSet<&[u8]> = changes.files.iter().map(|file| file.path.as_bytes()).collect();
        let decided = changes_decided_by_layer(self.workspace.project_copy().as_ref(), changes);
        let made = overlay::create_layer(user, &files, new)
            .and_then(|()| overlay::link_layer_files(&files, old, new, &own))
            .and_then(|()| {
                overlay::mount_layer(user, means, &files, new).map_err(|reason| WorkspaceError::NoCopy {
                    reasons: vec![(IsolationTier::Overlay, reason.0)],
                })
            })
            .and_then(|mounted| {
                let journal = overlay::refresh_journal_dir(&files, new);
                let landing = land_in_copy(user, mounted.clone(), &journal, &decided)?;
                remove_tree(&journal)?;
                Ok((mounted, landing))
            });
        let (mounted, landing) = made.inspect_err(|_| overlay::remove_other_layers(&files, old))?;
        let record = self.record.clone();
        contested::note_contested(self.place.dir(), changes, &landing)?;
        self.record_layer(new, base)?;
        if let Err(error) = self.workspace.project.replace_project_copy(mounted) {
            self.info = record.info.clone();
            self.record = record;
            self.record.write(self.place.dir())?;
            overlay::remove_other_layers(&files, old);
            return Err(error);
        }
        overlay::remove_other_layers(&files, new);
        Ok(landing)
    }

    /// Writes down which layer counts, and with which checkpoint it is compared.
    fn record_layer(&mut self, layer: u32, base: CheckpointId) -> Result<(), WorkspaceError> {
        let mut record = self.record.clone();
        record.layer = layer;
        record.info.base = base;
        record.write(self.place.dir())?;
        self.info = record.info.clone();
        self.record = record;
        Ok(())
    }

    fn lost_error(&self) -> WorkspaceError {
        WorkspaceError::UnknownCopy { session: self.info.session.clone() }
    }
}

/// Returns those of the user's changes whose place the copy's layer decides, and the other side of
/// a rename. The others show through as they are, even those that the user changes again by now:
/// they must not become the copy's.
fn changes_decided_by_layer(base: Option<&ProjectCopy>, changes: &CopyChanges) -> CopyChanges {
    let is_own = |path: &RelPath| is_own_change(base, path);
    let mut decided: HashSet<&RelPath> =
        changes.files.iter().map(|file| &file.path).filter(|path| is_own(path)).collect();
    for (file, from) in changes.files.iter().filter_map(|file| Some((file, file.from.as_ref()?))) {
        if is_own(from) || decided.contains(&file.path) {
            decided.extend([&file.path, from]);
        }
    }
    let files = changes.files.iter().filter(|file| decided.contains(&file.path)).cloned().collect();
    let dirs = |dirs: &[DirRecord]| dirs.iter().filter(|dir| is_own(&dir.path)).cloned().collect();
    CopyChanges { files, made: dirs(&changes.made), removed: dirs(&changes.removed), ..changes.clone() }
}

/// Ends a refresh that a crash cut off: what it changed so far is taken back.
pub(crate) fn recover_refresh(
    user: &Workspace,
    tree: ProjectCopy,
    journal: &Path,
) -> Result<(), WorkspaceError> {
    if journal.symlink_metadata().is_err() {
        return Ok(());
    }
    drop(open_with_own_journal(user, tree, journal)?);
    remove_tree(journal)
}

/// Lands the user's changes in a copy, with a journal of their own: the copy's is about what was
/// done in it.
fn land_in_copy(
    user: &Workspace,
    tree: ProjectCopy,
    journal: &Path,
    changes: &CopyChanges,
) -> Result<LandingReport, WorkspaceError> {
    let options = LandOptions { on_conflict: OnConflict::Mine, ..LandOptions::default() };
    let copy = open_with_own_journal(user, tree, journal)?;
    let landing = copy.land(changes, &options)?;
    tiers::copy_large_files(user, &copy, changes, landing)
}

fn open_with_own_journal(
    user: &Workspace,
    tree: ProjectCopy,
    journal: &Path,
) -> Result<Workspace, WorkspaceError> {
    let options = Options { state_dir: journal.to_owned(), ..user.project.options.clone() };
    open_project_copy(user.root(), tree, user.project.blob_store.dir(), options)
}

/// Returns the differences between two checkpoints of a tree. A file that only left the sight of
/// ignore rules is still there; one that only came into it is new to a copy.
fn differences_between(
    user: &Workspace,
    before: &Tree,
    after: &Tree,
) -> Result<Vec<Difference>, WorkspaceError> {
    let all = diff_trees(before, after);
    let (gone, others): (Vec<Difference>, Vec<Difference>) =
        all.into_iter().partition(|difference| difference.after.is_none());
    let mut found = drop_rule_changes(user.project.compare_inputs(), before, gone)?;
    // One that a look found changed rather than gone: the next refresh sees which.
    found.retain(|difference| difference.after.is_none());
    found.extend(others);
    found.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

fn to_report(changes: &CopyChanges, landing: LandingReport) -> RefreshReport {
    let conflicts: Vec<RelPath> = landing.conflicts.into_iter().map(|(path, _)| path).collect();
    let merged = landing.merged;
    let paths = changes.files.iter().map(|file| &file.path);
    let taken = paths.filter(|path| !merged.contains(path) && !conflicts.contains(path)).cloned().collect();
    RefreshReport { taken, merged, conflicts }
}
