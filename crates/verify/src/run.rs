//! Runs checks in order, independent ones at the same time, between two snapshots of the tree.
//!
//! Consecutive checks that are independent of each other make a batch. The checks of a batch start
//! in their order, as many at a time as there are cores, and their progress is reported in their
//! order as well. So a batch has the results of running its checks one after the other, only
//! sooner: once a check fails, running checks of later kinds are stopped and count as not run. A
//! failure that may be caused by what another check wrote meanwhile is no result: that check runs
//! again alone.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use journeyman_policy::GUARD_RULES;
use journeyman_protocol::{CallId, CheckKind, CheckOutcome, Enforcement, Evidence, FileChange};
use journeyman_workspace::{ForbiddenChanges, GuardedState, TreeSnapshot, WorkspaceError};
use tokio_util::sync::CancellationToken;

use crate::check::not_run_outcome;
use crate::execution::{
    CheckExecution, PreCheckState, evidence_without_output, execute_check, run_blocking, unused_enforcement,
};
use crate::forbidden_changes::forbidden_change_warnings;
use crate::independence::{WriteFootprint, count_leading_independent};
use crate::progress::{OrderedProgress, Progress};
use crate::run_context::RunContext;
use crate::{Check, VerifyError};

/// Runs `checks` in the given order and returns the evidence of each, in the same order.
///
/// Checks that are independent of each other run at the same time, within
/// [`RunLimits::at_once`](crate::RunLimits::at_once); progress is still reported in the order of
/// the checks. Once a check of a kind has failed, checks of later kinds are not run, or are stopped
/// and count as not run. Once `cancel` is cancelled, no further check runs. A check that can't run
/// has evidence with the reason.
///
/// # Errors
/// [`VerifyError`] when files can't be tracked around a check.
pub async fn run_checks(
    checks: &[Check],
    context: &RunContext,
    cancel: CancellationToken,
    observer: &mut (dyn FnMut(Progress) + Send),
) -> Result<Vec<Evidence>, VerifyError> {
    let progress = OrderedProgress::new(observer);
    let confined = context.sandbox.enforcement(&context.needs).await.ok();
    let confined = confined.is_some_and(|it| it.network_off && it.processes_confined);
    let footprints: Vec<WriteFootprint> = checks.iter().map(WriteFootprint::of_check).collect();
    let mut gate = StartGate { failed: None, cancel };
    let mut all: Vec<Evidence> = Vec::with_capacity(checks.len());
    let mut alone = context.limits.at_once <= 1;
    while all.len() < checks.len() {
        let left = footprints.get(all.len()..).unwrap_or_default();
        let count = if alone { 1 } else { count_leading_independent(left, confined) };
        let places = all.len()..all.len() + count;
        let wave = CheckBatch {
            first: all.len(),
            of: checks.len(),
            checks: checks.get(places.clone()).unwrap_or_default(),
            footprints: footprints.get(places).unwrap_or_default(),
            context,
            progress: &progress,
        };
        let settled = wave.run_batch(&mut gate).await?;
        alone = context.limits.at_once <= 1 || settled.len() < count;
        all.extend(settled);
    }
    Ok(all)
}

/// Beginning of the reason of a check that didn't run because a check of an earlier kind failed;
/// that kind's name follows.
const SKIPPED_REASON_PREFIX: &str = "not run because ";

/// Returns true for a check that was not run because a check of an earlier kind failed.
#[must_use]
pub fn is_skipped_after_failure(outcome: &CheckOutcome) -> bool {
    matches!(outcome, CheckOutcome::NotRun { reason } if reason.starts_with(SKIPPED_REASON_PREFIX))
}

/// Returns the evidence of a check that was not allowed to run, with the reason; `enforcement` is
/// what the check would have run under.
#[must_use]
pub fn refused_evidence(
    check: &Check,
    reason: impl Into<String>,
    enforcement: Option<&Enforcement>,
) -> Evidence {
    evidence_without_output(
        check,
        not_run_outcome(reason),
        enforcement.cloned().unwrap_or_else(Enforcement::none),
    )
}

/// Decides which checks may still run.
struct StartGate {
    /// The first kind that failed.
    failed: Option<CheckKind>,
    cancel: CancellationToken,
}

impl StartGate {
    /// Returns the reason why a check doesn't count, if an earlier check failed.
    fn reason_after_failure(&self, check: &Check) -> Option<String> {
        let kind = self.failed.filter(|kind| *kind != check.kind)?;
        Some(format!("{SKIPPED_REASON_PREFIX}{kind} failed first"))
    }

    /// Returns the reason why a check doesn't start.
    fn not_run_reason(&self, check: &Check) -> Option<String> {
        match &check.blocked {
            _ if self.cancel.is_cancelled() => Some("interrupted".to_owned()),
            Some(reason) => Some(reason.clone()),
            None => self.reason_after_failure(check),
        }
    }
}

/// Independent checks, which run between two snapshots of the tree.
struct CheckBatch<'a> {
    /// The index of the batch's first check.
    first: usize,
    /// Number of all checks.
    of: usize,
    checks: &'a [Check],
    footprints: &'a [WriteFootprint],
    context: &'a RunContext,
    progress: &'a OrderedProgress<'a>,
}

/// The state of a check of a batch.
enum CheckState {
    Waiting,
    Running(CancellationToken),
    Ended(Box<Evidence>),
}

/// The state of the checks of a batch while they run.
struct BatchState {
    states: Vec<CheckState>,
    /// The checks that were started.
    started: Vec<bool>,
    /// The results that can no longer change, in the order of the checks.
    evidence: Vec<Evidence>,
    /// True if the next result may be caused by another check that ran at the same time, so that no
    /// result from there on counts.
    doubtful: bool,
    /// False if the sandbox didn't keep protected paths from being changed.
    protected_kept: bool,
}

impl CheckBatch<'_> {
    /// Runs the checks. Returns fewer results than checks if the first check without a result has
    /// to run alone.
    async fn run_batch(&self, gate: &mut StartGate) -> Result<Vec<Evidence>, VerifyError> {
        if self.checks.iter().all(|check| gate.not_run_reason(check).is_some()) {
            let evidence: Vec<Evidence> =
                self.checks.iter().map(|check| not_run_evidence(check, gate)).collect();
            evidence.iter().enumerate().for_each(|(place, one)| self.report_finished(place, one));
            return Ok(evidence);
        }
        let around = self.snapshot_tree().await?;
        let course = self.run_until_settled(gate, &around).await?;
        self.report_tree_changes(around, course).await
    }

    /// Runs the checks until all have ended. All results but the last one are reported.
    async fn run_until_settled(
        &self,
        gate: &mut StartGate,
        around: &PreCheckState,
    ) -> Result<BatchState, VerifyError> {
        let mut course = BatchState {
            states: self.checks.iter().map(|_| CheckState::Waiting).collect(),
            started: vec![false; self.checks.len()],
            evidence: Vec::with_capacity(self.checks.len()),
            doubtful: false,
            protected_kept: true,
        };
        let mut running = FuturesUnordered::new();
        let mut next = 0;
        loop {
            while let Some(check) = self.checks.get(next)
                && running.len() < self.context.limits.at_once.max(1)
                && !course.doubtful
            {
                if gate.not_run_reason(check).is_none() {
                    let stop = gate.cancel.child_token();
                    course.mark_started(next, stop.clone());
                    running.push(self.run_one(next, check, around, stop));
                }
                next += 1;
            }
            self.collect_final_results(gate, &mut course);
            match running.next().await {
                Some((place, execution)) => course.record_execution(place, execution?),
                None if course.doubtful || course.evidence.len() == self.checks.len() => return Ok(course),
                None => {}
            }
        }
    }

    /// Adds the results that can no longer change, in the order of the checks.
    fn collect_final_results(&self, gate: &mut StartGate, course: &mut BatchState) {
        while !course.doubtful
            && let Some(check) = self.checks.get(course.evidence.len())
        {
            let place = course.evidence.len();
            let one = match course.states.get_mut(place) {
                _ if gate.reason_after_failure(check).is_some() => not_run_evidence(check, gate),
                Some(CheckState::Ended(one)) => (**one).clone(),
                Some(CheckState::Waiting) if gate.not_run_reason(check).is_some() => {
                    not_run_evidence(check, gate)
                }
                _ => return,
            };
            if one.outcome.has_failed() {
                if self.may_fail_from_overlap(place, course) {
                    course.doubtful = true;
                    self.stop_checks_from(place, course, |_| true);
                    return;
                }
                gate.failed.get_or_insert(check.kind);
                self.stop_checks_from(place + 1, course, |check| gate.reason_after_failure(check).is_some());
            }
            if place + 1 < self.checks.len() {
                self.report_finished(place, &one);
            }
            course.evidence.push(one);
        }
    }

    /// Stops checks whose results don't count, and reports no more of their progress.
    fn stop_checks_from(&self, place: usize, course: &BatchState, stops: impl Fn(&Check) -> bool) {
        let checks = self.checks.iter().zip(&course.states).enumerate().skip(place);
        for (place, (_, state)) in checks.filter(|(_, (check, _))| stops(check)) {
            self.progress.mute_check(self.first + place);
            if let CheckState::Running(stop) = state {
                stop.cancel();
            }
        }
    }

    /// Returns true for a failure of a check that ran beside another one that may write. Its cause
    /// can be an ignored file that the other check rewrote, whatever file the failure names.
    fn may_fail_from_overlap(&self, place: usize, course: &BatchState) -> bool {
        let others = self.footprints.iter().zip(&course.started).enumerate();
        others.filter(|(other, _)| *other != place).any(|(_, (it, started))| *started && it.may_write())
    }

    async fn run_one(
        &self,
        place: usize,
        check: &Check,
        around: &PreCheckState,
        stop: CancellationToken,
    ) -> (usize, Result<CheckExecution, VerifyError>) {
        let (index, of) = (self.first + place, self.of);
        self.progress.report_in_turn(index, Progress::Started { index, of, check: check.clone() });
        let mut check = check.clone();
        check.timeout = self.context.limits.longest.map_or(check.timeout, |most| most.min(check.timeout));
        (place, execute_check((index, &check), self.context, around, stop, self.progress).await)
    }

    /// Reports the result of a check, and gives the next check its turn.
    fn report_finished(&self, place: usize, evidence: &Evidence) {
        let index = self.first + place;
        self.progress.report_now(Progress::Finished { index, evidence: evidence.clone() });
        self.progress.advance_turn();
    }

    /// Returns the call id that repairs are journaled for: their changes are wanted, and an undo
    /// reverts them. `None` for checks.
    fn repair_call_id(&self) -> Option<CallId> {
        self.checks.iter().any(|check| check.repairs).then(|| CallId::new("repair"))
    }

    async fn snapshot_tree(&self) -> Result<PreCheckState, VerifyError> {
        let (workspace, session) = (Arc::clone(&self.context.workspace), self.context.session.clone());
        let (repair, caches) = (self.repair_call_id(), self.context.caches.clone());
        self.progress.unmute_all();
        let begun = run_blocking(move || {
            let before = match repair {
                Some(call) => workspace.command_observer().begin_call(&session, &call)?,
                None => workspace.command_observer().begin_checks(&session)?,
            };
            let guard = GuardedState::capture_for_recovery(&workspace, &before, GUARD_RULES)?;
            let caches = caches.filter(|caches| caches.remove_bytecode_of(&workspace).is_ok());
            Ok(PreCheckState { before, guard, caches })
        });
        begun.await?.map_err(|source| self.untracked_changes_error(source))
    }

    /// Compares the tree with the snapshot, and reports what the checks changed.
    async fn report_tree_changes(
        &self,
        around: PreCheckState,
        course: BatchState,
    ) -> Result<Vec<Evidence>, VerifyError> {
        let PreCheckState { before, guard, .. } = around;
        let BatchState { mut evidence, protected_kept, .. } = course;
        let (changes, aftermath) = self.revert_and_journal_changes(before, guard, protected_kept).await?;
        let warnings = forbidden_change_warnings(&aftermath);
        if !aftermath.violations.is_empty() {
            let (command, violations) = (self.joined_commands(), aftermath.violations);
            self.progress.report_now(Progress::GuardViolated { command, violations });
        }
        let changes = changes.map_err(|source| self.untracked_changes_error(source))?;
        if !changes.is_empty() {
            self.progress.report_now(Progress::Changed { changes });
        }
        let last = self.checks.len().saturating_sub(1);
        // Only a check that ran has a tree.
        let ran = evidence.iter().rposition(|one| one.tree.is_some());
        if let Some((place, one)) = ran.and_then(|place| Some((place, evidence.get_mut(place)?)))
            && !warnings.is_empty()
        {
            one.diagnostics.extend(warnings);
            if place < last {
                let index = self.first + place;
                self.progress.report_now(Progress::Finished { index, evidence: one.clone() });
            }
        }
        if let Some(one) = evidence.get(last) {
            self.report_finished(last, one);
        }
        Ok(evidence)
    }

    async fn revert_and_journal_changes(
        &self,
        before: TreeSnapshot,
        guard: GuardedState,
        kept: bool,
    ) -> Result<(Result<Vec<FileChange>, WorkspaceError>, ForbiddenChanges), VerifyError> {
        let (workspace, session) = (Arc::clone(&self.context.workspace), self.context.session.clone());
        let repair = self.repair_call_id();
        let changes = {
            let workspace = Arc::clone(&workspace);
            move || match repair {
                Some(call) => workspace.command_observer().end(before, &session, Some(&call)),
                None => workspace.command_observer().end_checks(before, &session),
            }
        };
        run_blocking(move || guard.revert_and_journal(&workspace, kept, changes)).await
    }

    /// Returns the commands of the checks that may have run.
    fn joined_commands(&self) -> String {
        let commands = self.checks.iter().filter(|check| check.blocked.is_none());
        commands.map(|check| check.command.as_str()).collect::<Vec<_>>().join(", ")
    }

    fn untracked_changes_error(&self, source: WorkspaceError) -> VerifyError {
        VerifyError::Workspace { command: self.joined_commands(), source }
    }
}

impl BatchState {
    fn mark_started(&mut self, place: usize, stop: CancellationToken) {
        if let (Some(state), Some(started)) = (self.states.get_mut(place), self.started.get_mut(place)) {
            (*state, *started) = (CheckState::Running(stop), true);
        }
    }

    fn record_execution(&mut self, place: usize, execution: CheckExecution) {
        self.protected_kept &= execution.protected_kept;
        if let Some(state) = self.states.get_mut(place) {
            *state = CheckState::Ended(Box::new(execution.evidence));
        }
    }
}

/// Returns the evidence of a check that the gate keeps from starting.
fn not_run_evidence(check: &Check, gate: &StartGate) -> Evidence {
    let reason = gate.not_run_reason(check).unwrap_or_default();
    evidence_without_output(check, not_run_outcome(reason), unused_enforcement())
}
