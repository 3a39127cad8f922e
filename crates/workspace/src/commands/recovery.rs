//! Recovery of calls and checks that a crash cut off.
//!
//! An edit is in the journal or it never happened. A command changed the tree as it went: what
//! differs from the tree before it, and wasn't changed later than the command can have lived, is
//! the command's. Such changes are journaled as those of a command that was cut off, and then
//! reverted by a transaction like any undo, so that either step may itself be cut off and repeated.
//! A person may have been at work meanwhile, so a checkpoint is made first, and a redo restores the
//! changes. All else stays, and is reported.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use journeyman_protocol::{CallId, FileChange, GuardViolation, RelPath, SessionId, UnixMillis};

use crate::change::CheckpointId;
use crate::commands::attribution::{change_time, parent_change_time, sessions_possibly_changing};
use crate::commands::heartbeat;
use crate::commands::heartbeat::{CommandStart, RecoveryStage, StaleHeartbeat, find_heartbeats};
use crate::commands::journaling::ChangeOrigin;
use crate::error::WorkspaceError;
use crate::failpoint::TransactionStep;
use crate::files::stat::file_clock;
use crate::guarded::ForbiddenChanges;
use crate::guarded::stored_state::CutOffWindow;
use crate::ignored::ignored_changes::{IgnoredChanges, find_ignored_changes};
use crate::journal::history::{History, SelectedChanges};
use crate::journal::record::{ChangeCause, ChangeRecord, JournalLine};
use crate::snapshot::capture::ContentMode;
use crate::snapshot::compare::{JournaledChanges, drop_rule_changes};
use crate::snapshot::differences::{Difference, TreeDifferences, change_kind, diff_trees};
use crate::snapshot::entry::EntryContent;
use crate::snapshot::tree::Tree;
use crate::state::lock::state_error;
use crate::undo::plan_undo;
use crate::workspace::Workspace;

/// The label of the checkpoint with what a command had done that was cut off, before it is put
/// back.
const CUT_OFF_CHECKPOINT_LABEL: &str = "what a command had changed that was cut off";
const CHANGED_LATER_REASON: &str = "changed after the command was cut off; kept";
const CHANGED_EARLIER_REASON: &str = "it was changed before the command began; kept";
const OTHERS_RAN_REASON: &str =
    "a command of another session ran at the same time, so it can't be told whose change this is; kept";
const REMOVER_UNKNOWN_REASON: &str = "gone, and it can't be told whether the command removed it; left so";
const CLOCK_UNRELIABLE_REASON: &str =
    "the clock was set back since the command was cut off, so it can't be told whose change this is; kept";
const REBOOTED_SINCE_REASON: &str =
    "the machine was restarted since the call began, so it can't be told whose change this is; kept";
const TOO_LARGE_REASON: &str = "it was too large for its earlier content to be kept";

/// The interval at which it is asked whether a command's program is gone.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of looks at a tree in which a command may still be at work.
const MAX_SNAPSHOT_ATTEMPTS: usize = 4;

/// The result of recovering a call that was cut off.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecoveredCall {
    /// The complete changes of the call in the journal. Where this isn't empty, the call happened.
    pub applied: Vec<FileChange>,
    /// Other changes of such a call, that an undo has taken back since.
    pub undone: Vec<FileChange>,
    /// The files restored to their state before the call; the kind says what was done, so that a
    /// file which the command added is `Deleted` here.
    pub restored: Vec<FileChange>,
    /// The checkpoints of the state before it was put back, because a person may have been at work
    /// while the command ran. [`Workspace::redo`] restores them.
    pub kept: Vec<CheckpointId>,
    /// Other files that differ from the checkpoint and are left as they are, each with the reason.
    pub left: Vec<(FileChange, String)>,
    /// True if a command ran, or may have run: unlike an edit it can change what no checkpoint
    /// covers.
    pub ran: bool,
    /// Ignored files that were changed while the command ran, and stay as they are.
    pub ignored: IgnoredChanges,
    /// The command's changes of guarded files and repositories: moved away or put back, each with
    /// where it is.
    pub violations: Vec<GuardViolation>,
    /// A problem with that for the user: not all of the tree could be looked at.
    pub problem: Option<String>,
}

/// Differences, and those of them that aren't the command's.
#[derive(Default)]
struct AttributedChanges {
    ours: TreeDifferences,
    others: Vec<(FileChange, String)>,
}

impl Workspace {
    /// Returns access to the recovery of commands that were cut off.
    #[must_use]
    pub fn recovery(&self) -> Recovery<'_> {
        Recovery { workspace: self }
    }
}

/// Settles calls and checks that a crash cut off.
#[derive(Debug)]
pub struct Recovery<'a> {
    workspace: &'a Workspace,
}

impl Recovery<'_> {
    /// Lists the calls of a session whose commands were cut off, by a crash or by dropping what
    /// [`Commands::begin_call`](crate::CommandObserver::begin_call) gave, and which weren't
    /// recovered yet, in the order to recover them in: oldest first, those in the background last.
    ///
    /// # Errors
    /// [`WorkspaceError::State`] when the state directory can't be read.
    pub fn cut_off_calls(&self, session: &SessionId) -> Result<Vec<CallId>, WorkspaceError> {
        self.cut_off_calls_at_stages(session, &[RecoveryStage::Running])
    }

    /// Returns the calls of [`Recovery::cut_off_calls`], and those that were recovered but not
    /// [forgotten](Recovery::forget_recovered) yet.
    ///
    /// # Errors
    /// As [`Recovery::cut_off_calls`].
    pub fn unrecorded_calls(&self, session: &SessionId) -> Result<Vec<CallId>, WorkspaceError> {
        self.cut_off_calls_at_stages(session, &[RecoveryStage::Running, RecoveryStage::Recovered])
    }

    fn cut_off_calls_at_stages(
        &self,
        session: &SessionId,
        stages: &[RecoveryStage],
    ) -> Result<Vec<CallId>, WorkspaceError> {
        let (mut calls, mut behind) = (Vec::new(), Vec::new());
        for found in find_heartbeats(&self.workspace.project.options.state_dir, stages, |begin| {
            begin.session == *session
        })? {
            if let heartbeat::HeartbeatState::Dead(heartbeat) = found
                && let Some(call) = &heartbeat.begin.call
            {
                let calls = if heartbeat.begin.background { &mut behind } else { &mut calls };
                if !calls.contains(call) {
                    calls.push(call.clone());
                }
            }
        }
        calls.append(&mut behind);
        Ok(calls)
    }

    /// Settles a call that was cut off, and returns the result. `checkpoint` is one from before the
    /// call, `started` the time at which the call began.
    ///
    /// If the call is in the journal, it is applied. Otherwise the changes of its command are taken
    /// back, as one change in the journal; changes that others made before or after stay, and so do
    /// changes that can't be attributed. Guarded paths are treated as at a command's
    /// [end](crate::GuardedState::revert_and_journal). Cut off itself or called again, it leaves
    /// the same tree, and until [`Recovery::forget_recovered`] says the same.
    ///
    /// The changes of a command in the [background](crate::CommandObserver::begin_background) stay:
    /// while it ran, a person may have changed the same tree for hours. It is journaled as at that
    /// command's end, and given as applied.
    ///
    /// # Errors
    /// [`WorkspaceError::Busy`] when the command still runs, in this process or another; as
    /// [`ProjectHistory::changes_since`](crate::ProjectHistory::changes_since) and
    /// [`Workspace::undo`].
    pub fn recover_call(
        &self,
        checkpoint: &CheckpointId,
        session: &SessionId,
        call: &CallId,
        started: UnixMillis,
    ) -> Result<RecoveredCall, WorkspaceError> {
        self.workspace.project.root_dir.check_alive()?;
        let is_ours = |begin: &CommandStart| begin.session == *session && begin.call.as_ref() == Some(call);
        let dead = self.stale_heartbeats(is_ours)?;
        let (mut reasons, mut guards) = (SkipReasons::default(), Vec::new());
        if let Some(oldest) = dead.first() {
            self.wait_until_tree_rests(oldest.until)?;
            guards = dead
                .iter()
                .map(|heartbeat| self.restore_guarded_paths(heartbeat))
                .collect::<Result<_, _>>()?;
            for _ in 0..MAX_SNAPSHOT_ATTEMPTS {
                // First what an earlier try left undone, so that it is told from what is new.
                self.revert_command(session, call, &mut reasons)?;
                if !self.journal_cut_off(oldest, &dead, session, call, &mut reasons)? {
                    break;
                }
            }
        }
        self.revert_command(session, call, &mut reasons)?;
        let (violations, problem) = self.mark_recovered(&dead, guards)?;
        let lines = self.workspace.transactions.write_locked(|writer, _| writer.journal.lines())?;
        let kept = find_pre_revert_checkpoints(&lines, session, call);
        let history = History::new(lines);
        let files_of = |causes: &[ChangeCause], undone: bool| {
            let records =
                history.changes_of_call(session, call).filter(|record| causes.contains(&record.cause));
            let mut changes: BTreeMap<&RelPath, (bool, bool)> = BTreeMap::new();
            for record in records {
                let is_meant = |path| history.is_undone(record.id, Some(path)) == undone;
                for file in record.files.iter().filter(|file| is_meant(&file.path)) {
                    let there = changes.entry(&file.path).or_insert((file.before.is_some(), false));
                    there.1 = file.after.is_some();
                }
                for dir in record.modes.iter().filter(|dir| is_meant(&dir.path)) {
                    changes.entry(&dir.path).or_insert((true, true));
                }
            }
            let changes = changes.into_iter().filter(|(_, there)| *there != (false, false));
            changes
                .map(|(path, there)| FileChange { path: path.clone(), kind: change_kind(there.0, there.1) })
                .collect::<Vec<_>>()
        };
        let done = [ChangeCause::Edit, ChangeCause::Command, ChangeCause::Background, ChangeCause::Landing];
        let applied = files_of(&done, false);
        let undone = if applied.is_empty() { Vec::new() } else { files_of(&done, true) };
        let restored = files_of(&[ChangeCause::Undo], false);
        // What another session journaled while the call may have run can be the call's.
        let ran = history.changes_of_call(session, call).any(|record| record.cause == ChangeCause::CutOff)
            || !dead.is_empty()
            || history.has_changes_beside(session, started);
        let lost = applied.is_empty() && !ran && was_restarted_since(started);
        let left = if ran || lost {
            self.unjournaled_changes(
                (checkpoint, session),
                reasons,
                if lost { REBOOTED_SINCE_REASON } else { CHANGED_EARLIER_REASON },
            )?
        } else {
            Vec::new()
        };
        let ran = ran || (lost && !left.is_empty());
        let ignored = match dead.first() {
            Some(oldest) => {
                let until = dead.iter().map(|heartbeat| heartbeat.until).max().unwrap_or(oldest.until);
                find_ignored_changes(&self.workspace.snapshots, oldest.began, until)
            }
            // It was recovered before, or its heartbeat is lost with the time of its end.
            None => IgnoredChanges { paths: Vec::new(), more: ran },
        };
        Ok(RecoveredCall { applied, undone, restored, kept, left, ran, ignored, violations, problem })
    }

    /// Brings checks of a session that were cut off to an end: what they did is journaled as
    /// [`Commands::end_checks`](crate::CommandObserver::end_checks) does, and given as applied.
    /// What was changed after them isn't journaled, so that no undo takes it back, and is given as
    /// left. Checks that still run, in another process, are passed over.
    ///
    /// # Errors
    /// As [`Commands::end_checks`](crate::CommandObserver::end_checks).
    pub fn recover_checks(&self, session: &SessionId) -> Result<RecoveredCall, WorkspaceError> {
        self.workspace.project.root_dir.check_alive()?;
        let mut recovered = RecoveredCall::default();
        let is_ours = |begin: &CommandStart| begin.session == *session && begin.call.is_none();
        for found in find_heartbeats(
            &self.workspace.project.options.state_dir,
            &[RecoveryStage::Running, RecoveryStage::Recovered],
            is_ours,
        )? {
            let heartbeat::HeartbeatState::Dead(heartbeat) = found else { continue };
            if heartbeat.is_recovered() {
                recovered.violations.extend(heartbeat.begin.violations.iter().cloned());
                continue;
            }
            self.wait_until_tree_rests(heartbeat.until)?;
            let guard = self.restore_guarded_paths(&heartbeat)?;
            let _using = self.workspace.project.blob_store.blobs().lock_for_use()?;
            if let Some(told) = self.changes_of_command(&heartbeat, heartbeat.until)? {
                recovered.left.extend(told.others);
                self.workspace.project.blob_store.sync()?;
                let doing = ChangeOrigin { session, call: None, cause: ChangeCause::Check };
                let journaled = self
                    .workspace
                    .transactions
                    .write_locked(|writer, _| doing.journal_differences(&mut writer.journal, told.ours))?;
                recovered.applied.extend(journaled);
            }
            let (violations, problem) = self.mark_recovered(std::slice::from_ref(&heartbeat), vec![guard])?;
            recovered.violations.extend(violations);
            recovered.problem = recovered.problem.or(problem);
        }
        Ok(recovered)
    }

    /// Forgets what is known of the recovered calls and checks of a session, because the session
    /// has it on record.
    ///
    /// # Errors
    /// As [`Recovery::cut_off_calls`].
    pub fn forget_recovered(&self, session: &SessionId) -> Result<(), WorkspaceError> {
        for found in find_heartbeats(
            &self.workspace.project.options.state_dir,
            &[RecoveryStage::Recovered],
            |begin| begin.session == *session,
        )? {
            if let heartbeat::HeartbeatState::Dead(heartbeat) = found {
                heartbeat.retire();
            }
        }
        Ok(())
    }

    /// Moves away and puts back what a command that was cut off did to guarded paths, as far as
    /// they are on record.
    fn restore_guarded_paths(&self, heartbeat: &StaleHeartbeat) -> Result<GuardedRecovery, WorkspaceError> {
        let (Some(guard), Some(rules)) = (&heartbeat.begin.guarded, self.workspace.project.options.guarded)
        else {
            return Ok(GuardedRecovery::default());
        };
        let _using = self.workspace.project.blob_store.blobs().lock_for_use()?;
        let window = CutOffWindow { began: heartbeat.began, until: heartbeat.until };
        let (ForbiddenChanges { violations, problem }, hidden) =
            guard.undo_forbidden_changes(self.workspace, rules, window)?;
        let call = &heartbeat.begin.call;
        let violations =
            violations.into_iter().map(|one| GuardViolation { call: call.clone(), ..one }).collect();
        Ok(GuardedRecovery { violations, problem, hidden })
    }

    /// Marks commands as recovered, with the result for guarded paths. Returns that result together
    /// with what was recorded before.
    fn mark_recovered(
        &self,
        dead: &[StaleHeartbeat],
        guards: Vec<GuardedRecovery>,
    ) -> Result<(Vec<GuardViolation>, Option<String>), WorkspaceError> {
        let (mut violations, mut problem) = (Vec::new(), None);
        for (heartbeat, mut settled) in dead.iter().zip(guards) {
            if settled.hidden {
                // Journaling opened directories that the command had closed.
                settled.merge(self.restore_guarded_paths(heartbeat)?);
            }
            self.workspace.project.transaction_context().reach_failpoint(TransactionStep::Bury, None)?;
            let noted = heartbeat.mark_recovered(&settled.violations);
            noted
                .map_err(|source| state_error("write", &self.workspace.project.options.state_dir, source))?;
            violations.extend(heartbeat.begin.violations.iter().cloned().chain(settled.violations));
            problem = problem.or(settled.problem);
        }
        Ok((violations, problem))
    }

    /// Returns the heartbeats of commands whose program is gone. A process that it was starting
    /// when it ended holds its locks until it runs a program of its own: a while on a busy machine.
    fn stale_heartbeats(
        &self,
        wanted: impl Fn(&CommandStart) -> bool,
    ) -> Result<Vec<StaleHeartbeat>, WorkspaceError> {
        let (started, wait) = (Instant::now(), self.workspace.project.limits().lock_wait);
        loop {
            let found = find_heartbeats(
                &self.workspace.project.options.state_dir,
                &[RecoveryStage::Running, RecoveryStage::Recovered],
                &wanted,
            )?;
            let (mut dead, mut running) = (Vec::new(), None);
            for one in found {
                match one {
                    heartbeat::HeartbeatState::Dead(heartbeat) => dead.push(*heartbeat),
                    heartbeat::HeartbeatState::Alive(begin) => running = Some(begin),
                }
            }
            let Some(begin) = running else { return Ok(dead) };
            if started.elapsed() >= wait {
                let call = begin.call.map_or_else(String::new, |call| format!(" of call {call}"));
                let holder = format!("the command{call} that still runs");
                return Err(WorkspaceError::Busy { holder, waited: wait });
            }
            drop(dead);
            std::thread::sleep(EXIT_POLL_INTERVAL);
        }
    }

    /// Waits until the tree rests, or a command can't be at work in it any more: its processes die
    /// after the agent, within milliseconds on a machine that isn't busy.
    fn wait_until_tree_rests(&self, until: i64) -> Result<(), WorkspaceError> {
        if file_clock() >= until {
            return Ok(());
        }
        let mut last = self.workspace.snapshots.take_snapshot(ContentMode::Hashes, None)?;
        loop {
            std::thread::sleep(self.workspace.project.limits().heartbeat / 2);
            let now = self.workspace.snapshots.take_snapshot(ContentMode::Hashes, None)?;
            if now.is_same(&last) || file_clock() >= until {
                return Ok(());
            }
            last = now;
        }
    }

    /// Journals what a command did up to its end and isn't journaled yet. Returns true if there was
    /// anything.
    fn journal_cut_off(
        &self,
        oldest: &StaleHeartbeat,
        dead: &[StaleHeartbeat],
        session: &SessionId,
        call: &CallId,
        reasons: &mut SkipReasons,
    ) -> Result<bool, WorkspaceError> {
        let _using = self.workspace.project.blob_store.blobs().lock_for_use()?;
        let until = dead.iter().map(|heartbeat| heartbeat.until).max().unwrap_or(oldest.until);
        let lines = self
            .workspace
            .transactions
            .write_locked(|writer, _| writer.journal.lines_since_mark(oldest.begin.journal_end))?;
        let history = History::new(lines);
        let is_end = |cause| matches!(cause, ChangeCause::Command | ChangeCause::Background);
        if history.changes_of_call(session, call).any(|record| is_end(record.cause)) {
            return Ok(false);
        }
        let Some(mut told) = self.changes_of_command(oldest, until)? else { return Ok(false) };
        let earlier =
            history.changes_of_call(session, call).filter(|record| record.cause == ChangeCause::CutOff);
        let earlier: Vec<_> = earlier.collect();
        let known_modes: HashSet<&RelPath> =
            earlier.iter().flat_map(|record| &record.modes).map(|dir| &dir.path).collect();
        let known: HashSet<&RelPath> =
            earlier.iter().flat_map(|record| &record.files).map(|file| &file.path).collect();
        // A file that was reported and differs again was put back, or is being worked on.
        told.ours.files.retain(|difference| !known.contains(&difference.path));
        told.ours.modes.retain(|dir| !known_modes.contains(&dir.path));
        reasons.others = told.others;
        let is_news = !(told.ours.files.is_empty() && told.ours.modes.is_empty());
        self.workspace.project.blob_store.sync()?;
        self.workspace.project.transaction_context().reach_failpoint(TransactionStep::Seal, None)?;
        let cause = if oldest.begin.background { ChangeCause::Background } else { ChangeCause::CutOff };
        let doing = ChangeOrigin { session, call: Some(call), cause };
        self.workspace
            .transactions
            .write_locked(|writer, _| doing.journal_differences(&mut writer.journal, told.ours))?;
        Ok(is_news)
    }

    /// Tells what a command did that ended at `until` at the latest; `None` when what was before it
    /// is lost.
    fn changes_of_command(
        &self,
        heartbeat: &StaleHeartbeat,
        until: i64,
    ) -> Result<Option<AttributedChanges>, WorkspaceError> {
        let before = match heartbeat.begin.load_tree(&self.workspace.project.blob_store) {
            Ok(before) => before,
            Err(WorkspaceError::Lost { .. }) => return Ok(None),
            Err(other) => return Err(other),
        };
        let session = &heartbeat.begin.session;
        let transactions = &self.workspace.transactions;
        // A command whose work is looked at is at work until it is in the journal: it has to be
        // seen there before the mark, or here.
        let ((after, at_work), mark) = transactions.snapshot_at_rest(|| {
            let after = self.workspace.snapshots.snapshot_after_command(&before, true)?;
            Ok((after, transactions.other_command_spans(session, heartbeat.began)?))
        })?;
        let TreeDifferences { files, made, removed, modes, .. } =
            self.workspace.snapshots.compare_snapshots(&before, &after)?;
        self.workspace.project.transaction_context().reach_failpoint(TransactionStep::Look, None)?;
        let mut lines = transactions
            .write_locked(|writer, _| writer.journal.lines_since_mark(heartbeat.begin.journal_end))?;
        // What was journaled after the look isn't in it.
        lines.retain(|line| mark.covers(line));
        let others = JournaledChanges::of(lines);
        let mut found = others.remove_from(files);
        found.extend(find_touched_large_files(&before, &after, heartbeat.began, &found));
        // Files may be stamped by a finer clock than is asked here; both are ticks apart, not
        // periods.
        let set_back =
            file_clock() < heartbeat.last.saturating_sub(heartbeat.until.saturating_sub(heartbeat.last));
        let is_theirs = |path: &RelPath, is_there| {
            !sessions_possibly_changing(&self.workspace.project.root_dir, path, is_there, &at_work).is_empty()
        };
        let mut told = AttributedChanges::default();
        for difference in found {
            let other = match set_back {
                true => Some(CLOCK_UNRELIABLE_REASON),
                false if !is_theirs(&difference.path, difference.after.is_some()) => {
                    self.reason_to_keep(&difference, until)
                }
                false => Some(OTHERS_RAN_REASON),
            };
            match other {
                None => told.ours.files.push(difference),
                Some(reason) => told.others.push((difference.file_change(), reason.to_owned())),
            }
        }
        told.others.extend(
            others
                .changes_by_other_sessions(session)
                .into_iter()
                .map(|change| (change, OTHERS_RAN_REASON.to_owned())),
        );
        for dir in others.without_modes(modes) {
            let is_ours =
                !set_back && !is_theirs(&dir.path, true) && self.is_unchanged_since(&dir.path, until);
            if is_ours {
                told.ours.modes.push(dir);
            } else {
                told.others.push((dir.file_change(), CHANGED_LATER_REASON.to_owned()));
            }
        }
        told.ours.made = others.without_dirs(made, true);
        told.ours.made.retain(|dir| {
            !set_back && !is_theirs(&dir.path, true) && self.is_unchanged_since(&dir.path, until)
        });
        told.ours.removed = others.without_dirs(removed, false);
        told.ours.removed.retain(|dir| {
            !set_back && !is_theirs(&dir.path, false) && self.is_parent_unchanged_since(&dir.path, until)
        });
        Ok(Some(told))
    }

    /// Returns the reason why a difference isn't from a command that ended at `until`; `None` if it
    /// is.
    fn reason_to_keep(&self, difference: &Difference, until: i64) -> Option<&'static str> {
        match (&difference.before, &difference.after) {
            (Some(before), _) if before.hash.is_none() => Some(TOO_LARGE_REASON),
            (_, Some(_)) if self.is_unchanged_since(&difference.path, until) => None,
            (_, Some(_)) => Some(CHANGED_LATER_REASON),
            (_, None) if self.is_parent_unchanged_since(&difference.path, until) => None,
            (_, None) => Some(REMOVER_UNKNOWN_REASON),
        }
    }

    /// Returns true if what is at the path was last changed, in whichever way, by then.
    fn is_unchanged_since(&self, path: &RelPath, until: i64) -> bool {
        change_time(&self.workspace.project.root_dir, path, until).is_some_and(|touched| touched <= until)
    }

    /// Returns true if the nearest existing directory above the path has gained or lost no name
    /// after `until`.
    fn is_parent_unchanged_since(&self, path: &RelPath, until: i64) -> bool {
        parent_change_time(&self.workspace.project.root_dir, path).is_some_and(|emptied| emptied <= until)
    }

    /// Reverts the journaled changes of the call's command that was cut off.
    fn revert_command(
        &self,
        session: &SessionId,
        call: &CallId,
        reasons: &mut SkipReasons,
    ) -> Result<(), WorkspaceError> {
        let is_cut_off = |history: &History, record: &ChangeRecord| {
            record.cause == ChangeCause::CutOff && history.is_undoable(record)
        };
        let history =
            History::new(self.workspace.transactions.write_locked(|writer, _| writer.journal.lines())?);
        if !history.changes_of_call(session, call).any(|record| is_cut_off(&history, record)) {
            return Ok(());
        }
        // A person may have been at work while the command ran: what is put back stays to be had.
        self.workspace.checkpoint(session, CUT_OFF_CHECKPOINT_LABEL)?;
        self.workspace.transactions.write_locked(|writer, context| {
            let history = History::new(writer.journal.lines()?);
            let records: Vec<_> = history
                .changes_of_call(session, call)
                .filter(|record| is_cut_off(&history, record))
                .collect();
            if records.is_empty() {
                return Ok(());
            }
            let records: Vec<_> = records.into_iter().rev().collect();
            let sessions = vec![session.clone()];
            let selected =
                SelectedChanges { records, sessions, replay: false, dropped: false, damaged: false };
            let mut plan = plan_undo(self.workspace.project.compare_inputs(), &history, &selected)?;
            plan.intent.call = Some(call.clone());
            let does = plan.has_effect();
            reasons.conflicts.extend(plan.conflicts);
            if does {
                context.execute(&mut writer.journal, plan.intent, &plan.operations)?;
            }
            Ok(())
        })
    }

    /// Lists what differs from the checkpoint and is in no journal, or there as what another
    /// session may have done as well.
    fn unjournaled_changes(
        &self,
        (checkpoint, session): (&CheckpointId, &SessionId),
        reasons: SkipReasons,
        otherwise: &str,
    ) -> Result<Vec<(FileChange, String)>, WorkspaceError> {
        let SkipReasons { others, conflicts } = reasons;
        let mut left: BTreeMap<RelPath, (FileChange, String)> =
            others.into_iter().map(|(change, reason)| (change.path.clone(), (change, reason))).collect();
        let conflicts: HashMap<RelPath, String> = conflicts.into_iter().collect();
        let before = match self.workspace.transactions.load_checkpoint_tree(checkpoint) {
            Ok(before) => before,
            // Then there is nothing to compare with, and what was told is done all the same.
            Err(WorkspaceError::UnknownCheckpoint { .. } | WorkspaceError::Lost { .. }) => {
                return Ok(left.into_values().collect());
            }
            Err(other) => return Err(other),
        };
        let after: Arc<Tree> = self.workspace.snapshots.take_snapshot(ContentMode::Hashes, Some(&before))?;
        let found =
            drop_rule_changes(self.workspace.project.compare_inputs(), &before, diff_trees(&before, &after))?;
        let lines =
            self.workspace.transactions.write_locked(|writer, _| writer.journal.lines_after(checkpoint.0))?;
        let others = JournaledChanges::of(lines);
        let shared: HashSet<RelPath> =
            others.changes_by_other_sessions(session).into_iter().map(|it| it.path).collect();
        for difference in found.iter().filter(|it| shared.contains(&it.path)) {
            let of = || (difference.file_change(), OTHERS_RAN_REASON.to_owned());
            left.entry(difference.path.clone()).or_insert_with(of);
        }
        for difference in others.remove_from(found) {
            let reason = conflicts.get(&difference.path).map_or(otherwise, String::as_str);
            let change = difference.file_change();
            left.entry(difference.path).or_insert_with(|| (change, reason.to_owned()));
        }
        Ok(left.into_values().collect())
    }
}

/// Returns the checkpoints made of a call's changes before these were reverted.
fn find_pre_revert_checkpoints(
    lines: &[JournalLine],
    session: &SessionId,
    call: &CallId,
) -> Vec<CheckpointId> {
    let (mut kept, mut newest) = (Vec::new(), None);
    for line in lines {
        match line {
            JournalLine::Checkpoint(record)
                if record.session == *session && record.label == CUT_OFF_CHECKPOINT_LABEL =>
            {
                newest = Some(record.id);
            }
            JournalLine::Change(record)
                if record.cause == ChangeCause::Undo
                    && record.session == *session
                    && record.call.as_ref() == Some(call) =>
            {
                kept.extend(newest.take());
            }
            _ => {}
        }
    }
    kept
}

/// The reasons to leave files as they are.
#[derive(Default)]
struct SkipReasons {
    /// Paths that aren't the command's.
    others: Vec<(FileChange, String)>,
    /// Files that the command changed and that can't be restored.
    conflicts: Vec<(RelPath, String)>,
}

/// The result for guarded paths.
#[derive(Default)]
struct GuardedRecovery {
    violations: Vec<GuardViolation>,
    problem: Option<String>,
    /// True if a directory can't be listed that could be before.
    hidden: bool,
}

impl GuardedRecovery {
    fn merge(&mut self, other: Self) {
        self.violations.extend(other.violations);
        self.problem = other.problem.or(self.problem.take());
    }
}

/// Returns the files too large to be hashed, of the same size as before, that were touched since
/// the command began.
fn find_touched_large_files(
    before: &Tree,
    after: &Tree,
    began: i64,
    found: &[Difference],
) -> Vec<Difference> {
    let touched = after
        .entries
        .iter()
        .filter(|entry| entry.content == EntryContent::Unkept && entry.seen.ctime >= began);
    let large = touched.filter_map(|entry| {
        let at = before.entries.binary_search_by(|old| old.path.cmp(&entry.path)).ok()?;
        let path = RelPath::parse(&entry.path).ok()?;
        let known = found.iter().any(|difference| difference.path == path);
        let old = before.entries.get(at).filter(|_| !known)?;
        Some(Difference { path, before: Some(old.state()), after: Some(entry.state()) })
    });
    large.collect()
}

/// Returns true if the machine was started after `then`, so that heartbeats may be lost.
fn was_restarted_since(then: UnixMillis) -> bool {
    {
        let up = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let millis = |time: rustix::time::Timespec| {
            i128::from(time.tv_sec) * 1_000 + i128::from(time.tv_nsec) / 1_000_000
        };
        millis(now) - millis(up) > i128::from(then.0)
    }
}
