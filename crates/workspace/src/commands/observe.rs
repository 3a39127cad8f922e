//! Observation of commands and checks: the tree before and after, and the difference in the
//! journal.

use std::sync::Arc;

use journeyman_protocol::{CallId, FileChange, RelPath, SessionId};

use crate::commands::attribution::sessions_possibly_changing;
use crate::commands::heartbeat::{CommandSpan, CommandStart, Heartbeat, LiveCommand};
use crate::commands::journaling::ChangeOrigin;
use crate::commands::tree_snapshot::{CommandMark, TreeSnapshot};
use crate::error::WorkspaceError;
use crate::failpoint::TransactionStep;
use crate::files::portable_names::{NameTrouble, name_troubles};
use crate::files::stat::{CLOCK_TICK, file_clock, is_change_settled};
use crate::hard_links::HardLinks;
use crate::ignored::IgnoredSnapshot;
use crate::journal::record::ChangeCause;
use crate::mutex::lock;
use crate::snapshot::capture::ContentMode;
use crate::snapshot::compare::JournaledChanges;
use crate::snapshot::differences::TreeDifferences;
use crate::snapshot::entry::{EntryContent, TreeEntry};
use crate::snapshot::tree::Tree;
use crate::workspace::Workspace;

/// Minimum number of newly read files for which the stat cache is saved before a command: reading
/// them again would cost more.
const MIN_FILES_TO_SAVE_CACHE: usize = 64;

/// The way a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommandKind {
    /// The session waits for the command.
    Foreground,
    /// The command runs beside the session's turns.
    Background,
}

/// The files to record besides those that checkpoints cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExtraRecords {
    /// Small ignored files.
    Ignored,
    Nothing,
}

impl Workspace {
    /// Returns access to the observation of commands and checks.
    #[must_use]
    pub fn command_observer(&self) -> CommandObserver<'_> {
        CommandObserver { workspace: self }
    }
}

/// Observes commands and checks: the tree is compared before and after each, and the difference
/// journaled.
#[derive(Debug)]
pub struct CommandObserver<'a> {
    workspace: &'a Workspace,
}

impl CommandObserver<'_> {
    /// Looks at the tree before a command runs. What the command may change is kept, so that it can
    /// be undone; [`TreeSnapshot::not_undoable_files`] names the exceptions.
    ///
    /// # Errors
    /// As [`Workspace::checkpoint`]. It waits for another process only while that one changes the
    /// tree.
    pub fn begin(&self) -> Result<TreeSnapshot, WorkspaceError> {
        self.take_snapshot_before(ExtraRecords::Ignored)
    }

    fn take_snapshot_before(&self, besides: ExtraRecords) -> Result<TreeSnapshot, WorkspaceError> {
        let _using = self.workspace.project.blob_store.blobs().lock_for_use()?;
        let (tree, journal_end) = self
            .workspace
            .transactions
            .snapshot_at_rest(|| self.workspace.snapshots.take_snapshot(ContentMode::Contents, None))?;
        // Of these the signature is all that tells a change, so that the next one has to get a
        // later time.
        let now = file_clock();
        let is_fresh =
            |entry: &TreeEntry| entry.content == EntryContent::Unkept && !is_change_settled(&entry.seen, now);
        if tree.entries.iter().any(is_fresh) {
            std::thread::sleep(CLOCK_TICK);
        }
        self.workspace.snapshots.track_in_use(&tree);
        let (ignored, hard_links) =
            self.snapshot_ignored_and_links(&tree, besides == ExtraRecords::Ignored)?;
        self.workspace.snapshots.save_cache(MIN_FILES_TO_SAVE_CACHE)?;
        Ok(TreeSnapshot { tree, heartbeat: None, journal_end, ignored, hard_links: Arc::new(hard_links) })
    }

    /// Takes the snapshot before a command of this call, and keeps a heartbeat from here on until
    /// [`CommandObserver::end`]. If a crash comes first, or the snapshot is dropped,
    /// [`Recovery::recover_call`](crate::Recovery::recover_call) puts back what the command did.
    ///
    /// # Errors
    /// As [`CommandObserver::begin`], and failures of the state directory.
    pub fn begin_call(&self, session: &SessionId, call: &CallId) -> Result<TreeSnapshot, WorkspaceError> {
        self.begin_with_heartbeat(session, Some(call), CommandKind::Foreground)
    }

    /// Takes the snapshot before a command that runs in the background, perhaps for hours in which
    /// a person works too. What differs at its [end](CommandObserver::end) is journaled for the
    /// call, and an undo treats it as it treats what [checks](CommandObserver::end_checks) left.
    ///
    /// # Errors
    /// As [`CommandObserver::begin_call`].
    pub fn begin_background(
        &self,
        session: &SessionId,
        call: &CallId,
    ) -> Result<TreeSnapshot, WorkspaceError> {
        self.begin_with_heartbeat(session, Some(call), CommandKind::Background)
    }

    /// Takes the snapshot before checks, which end with [`CommandObserver::end_checks`]. After a
    /// crash, [`Recovery::recover_checks`](crate::Recovery::recover_checks) journals what they did.
    ///
    /// # Errors
    /// As [`CommandObserver::begin_call`].
    pub fn begin_checks(&self, session: &SessionId) -> Result<TreeSnapshot, WorkspaceError> {
        self.begin_with_heartbeat(session, None, CommandKind::Foreground)
    }

    fn begin_with_heartbeat(
        &self,
        session: &SessionId,
        call: Option<&CallId>,
        place: CommandKind,
    ) -> Result<TreeSnapshot, WorkspaceError> {
        let _using = self.workspace.project.blob_store.blobs().lock_for_use()?;
        // Tests write to their own databases: what checks change there is nobody's to take back.
        let besides = if call.is_some() { ExtraRecords::Ignored } else { ExtraRecords::Nothing };
        let mut snapshot = self.take_snapshot_before(besides)?;
        let mut begin = {
            let writer = &mut *lock(&self.workspace.transactions.writer);
            self.workspace.transactions.invalidate_removed_blobs(writer);
            let base = &mut writer.base;
            let means = (&self.workspace.project.blob_store, self.workspace.project.limits().heartbeat);
            CommandStart::new((session, call), &snapshot.tree, snapshot.journal_end, base, means)?
        };
        begin.background = place == CommandKind::Background;
        let live = call.map(|call| LiveCommand {
            session: session.clone(),
            call: call.clone(),
            tree: Arc::clone(&snapshot.tree),
            journal_end: snapshot.journal_end,
        });
        let heartbeat = Arc::new(Heartbeat::start(&self.workspace.project.options.state_dir, &begin, live)?);
        self.workspace.running.note_running(&heartbeat);
        snapshot.heartbeat = Some(heartbeat);
        Ok(snapshot)
    }

    /// Compares the tree after a command with the snapshot before it, journals the differences as
    /// one change, and returns them, sorted.
    ///
    /// Files are compared by signature and then by content; a new modification time alone is no
    /// change. Mode changes count, also of directories. Directories come and go with the change but
    /// aren't reported. So do small ignored files count that the command changed or deleted, but
    /// not those that it added. What other processes journaled meanwhile isn't taken for the
    /// command's doing; what a person changed by hand in that time is. What may as well be the
    /// doing of another session's command that ran at the same time is given too; an undo of either
    /// session leaves and names it. A command that changes ignore rules neither adds nor deletes
    /// the files that they concern. A directory that it made unreadable gets its permissions back,
    /// and one that it tagged as a cache is looked into all the same.
    ///
    /// # Errors
    /// As [`Workspace::checkpoint`]; [`WorkspaceError::MadeUnreadable`] where permissions can't be
    /// given back.
    pub fn end(
        &self,
        before: TreeSnapshot,
        session: &SessionId,
        call: Option<&CallId>,
    ) -> Result<Vec<FileChange>, WorkspaceError> {
        let using = self.workspace.project.blob_store.blobs().lock_for_use()?;
        let since = before.command_mark();
        let background = before.heartbeat.as_ref().is_some_and(|heartbeat| heartbeat.background);
        let cause = if background { ChangeCause::Background } else { ChangeCause::Command };
        let doing = ChangeOrigin { session, call, cause };
        let changes = self.journal_difference((&before.tree, &before.ignored), since, doing)?;
        before.heartbeat.iter().for_each(|heartbeat| heartbeat.retire());
        drop(using);
        self.workspace.quota().enforce()?;
        Ok(changes)
    }

    /// As [`CommandObserver::end`], for checks and commit hooks, during which a person may well be
    /// working. What differs is journaled as found while checks ran, and an undo of the session
    /// takes it back only where an edit or a command of the session changed the same file, or where
    /// the file was new. All else is kept and reported.
    ///
    /// # Errors
    /// As [`CommandObserver::end`].
    // By value, as for a command: a snapshot is good for one comparison.
    #[allow(clippy::needless_pass_by_value)]
    pub fn end_checks(
        &self,
        before: TreeSnapshot,
        session: &SessionId,
    ) -> Result<Vec<FileChange>, WorkspaceError> {
        let using = self.workspace.project.blob_store.blobs().lock_for_use()?;
        let since = before.command_mark();
        let doing = ChangeOrigin { session, call: None, cause: ChangeCause::Check };
        let changes = self.journal_difference((&before.tree, &before.ignored), since, doing)?;
        before.heartbeat.iter().for_each(|heartbeat| heartbeat.retire());
        drop(using);
        self.workspace.quota().enforce()?;
        Ok(changes)
    }

    /// Tells where writing would change files outside of the project, by the newest look at the
    /// tree, or a new one.
    ///
    /// # Errors
    /// As [`Workspace::checkpoint`].
    pub fn hard_links(&self) -> Result<HardLinks, WorkspaceError> {
        if self.workspace.project_copy().is_some() {
            return Ok(HardLinks::default());
        }
        match self.workspace.snapshots.newest_tree().filter(|_| self.workspace.ignored.has_scanned()) {
            Some(tree) => {
                Ok(self.workspace.hard_links.find_in_tree(&tree, &self.workspace.ignored.dependency_dirs()))
            }
            None => Ok(self.begin()?.hard_links.as_ref().clone()),
        }
    }

    /// Tells where writing would change files outside of the project. Nothing is kept of the tree,
    /// and no content is read.
    ///
    /// # Errors
    /// [`WorkspaceError::Root`] when the root can't be listed.
    pub fn find_hard_links(&self) -> Result<HardLinks, WorkspaceError> {
        self.workspace.hard_links.find()
    }

    /// Returns the problems that names of added files make on other systems; sorted, each name
    /// once, and at most [`limits::MAX_NAME_TROUBLES`](crate::limits::MAX_NAME_TROUBLES) of them.
    #[must_use]
    pub fn name_troubles(&self, changes: &[FileChange]) -> Vec<(RelPath, NameTrouble)> {
        name_troubles(&self.workspace.project.root_dir, changes)
    }

    /// Looks at the ignored files beside `tree`, which is the newest snapshot, and keeps small ones
    /// where `keep` says so; and at links that lead out. A copy's ignored files aren't the user's,
    /// and its links its own.
    pub(crate) fn snapshot_ignored_and_links(
        &self,
        tree: &Arc<Tree>,
        keep: bool,
    ) -> Result<(IgnoredSnapshot, HardLinks), WorkspaceError> {
        if self.workspace.project_copy().is_some() {
            return Ok(<_>::default());
        }
        let listed = self.workspace.snapshots.directory_signatures(tree);
        let ignored = self.workspace.ignored.take_snapshot(tree, &listed, keep)?;
        Ok((ignored, self.workspace.hard_links.find_in_tree(tree, &self.workspace.ignored.dependency_dirs())))
    }

    /// Journals what differs from `before` and nobody has journaled yet.
    fn journal_difference(
        &self,
        (before, ignored): (&Tree, &IgnoredSnapshot),
        since: CommandMark,
        doing: ChangeOrigin<'_>,
    ) -> Result<Vec<FileChange>, WorkspaceError> {
        let look = || self.workspace.snapshots.snapshot_after_command(before, true);
        let compared = |after: &Tree| -> Result<TreeDifferences, WorkspaceError> {
            let mut found = self.workspace.snapshots.compare_snapshots(before, after)?;
            // One that isn't ignored any more is among the others.
            found.files.extend(self.workspace.ignored.ignored_differences(ignored));
            found.files.sort_by(|one, other| one.path.cmp(&other.path));
            found.files.dedup_by(|later, earlier| later.path == earlier.path);
            Ok(found)
        };
        let seen = self.workspace.transactions.mark_if_at_rest()?;
        let mut after = look()?;
        self.workspace.project.transaction_context().reach_failpoint(TransactionStep::Look, None)?;
        let mut found = compared(&after)?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        self.workspace.project.blob_store.sync()?;
        self.workspace.transactions.write_locked(|writer, _| {
            // The tree was changed meanwhile; under the lock it no longer is.
            if seen != Some(writer.journal.current_mark()?) {
                after = look()?;
                found = compared(&after)?;
                self.workspace.project.blob_store.sync()?;
            }
            let lines = writer.journal.lines_since_mark(since.mark)?;
            let others = JournaledChanges::of(lines);
            let found = TreeDifferences {
                files: others.remove_from(found.files),
                made: others.without_dirs(found.made, true),
                removed: others.without_dirs(found.removed, false),
                modes: others.without_modes(found.modes),
                beside: Vec::new(),
            };
            let (own, shared) = self.split_ambiguous(
                found,
                &self.workspace.transactions.other_command_spans(doing.session, since.began)?,
            );
            let mut changes = others.changes_by_other_sessions(doing.session);
            for found in [own, shared] {
                changes.extend(doing.journal_differences(&mut writer.journal, found)?);
            }
            changes.sort_by(|one, other| one.path.cmp(&other.path));
            changes.dedup_by(|one, other| one.path == other.path);
            Ok(changes)
        })
    }

    /// Splits differences into those that only this session's command can have made, and those that
    /// commands of other sessions may have made, which ran at the same time.
    fn split_ambiguous(
        &self,
        found: TreeDifferences,
        others: &[CommandSpan],
    ) -> (TreeDifferences, TreeDifferences) {
        if others.is_empty() {
            return (found, TreeDifferences::default());
        }
        let (mut own, mut shared) = (TreeDifferences::default(), TreeDifferences::default());
        let mut sessions = Vec::new();
        let mut side = |path: &RelPath, is_there: bool| {
            let mut beside =
                sessions_possibly_changing(&self.workspace.project.root_dir, path, is_there, others);
            let is_shared = !beside.is_empty();
            sessions.append(&mut beside);
            is_shared
        };
        (shared.files, own.files) =
            found.files.into_iter().partition(|it| side(&it.path, it.after.is_some()));
        (shared.made, own.made) = found.made.into_iter().partition(|dir| side(&dir.path, true));
        (shared.modes, own.modes) = found.modes.into_iter().partition(|dir| side(&dir.path, true));
        (shared.removed, own.removed) = found.removed.into_iter().partition(|dir| side(&dir.path, false));
        sessions.sort();
        sessions.dedup();
        shared.beside = sessions;
        (own, shared)
    }
}
