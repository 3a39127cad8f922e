//! The end of a turn: verifies changes and feeds failures back to the model.

use journeyman_protocol::{Event, Evidence, Mode, RelPath, RunOutcome};
use journeyman_verify::{OverallOutcome, overall_outcome};
use journeyman_workspace::ChangedContent;
use tokio_util::sync::CancellationToken;

use super::context::SessionContext;
use super::task_end::TaskEnd;
use crate::AgentError;
use crate::approval::approvals::Approvals;
use crate::calls::runner::ToolRunner;
use crate::isolation::checkpoints::Checkpoints;
use crate::isolation::copy_updates::{CopyUpdates, RefreshOutcome};
use crate::session::settings::ChecksSetting;
use crate::supervision::Supervision;
use crate::transcript::record::{Record, TaskCounters};
use crate::verification::check_round::TaskChange;
use crate::verification::honesty::{add_way_to_accept, downgrade_for_dishonesty, has_new_blocking_findings};
use crate::verification::original_tests::{NewTestSetup, OriginalTests, OriginalTestsOutcome};
use crate::verification::strength::{
    MeasuredChange, amend_end_for_strength, ask_for_tests, measure_test_strength,
};
use crate::verification::{Verification, fails_as_before, feed_back_failures, task_end_for_verdict};

/// Maximum repetitions of passed checks because the tree changed while they ran or before their
/// verdict, or because they changed the tree themselves. Landing compares the trees again.
const MAX_REPEATED_ROUNDS: usize = 2;

/// The verdict of the original tests on a change whose checks passed.
#[derive(PartialEq)]
enum OriginalTestsResult {
    /// The session changed no test.
    NoneChanged,
    /// The original tests pass as well, the `proven` ones without a failure that is left aside.
    Passed { proven: Vec<RelPath> },
    /// The original tests fail or can't be run, so the task ends unverified.
    Contradicted(TaskEnd),
    /// The user stopped the tests.
    Stopped,
}

/// The stages that verify the changes of a task.
pub(super) struct TurnVerification<'a> {
    pub(super) cx: &'a mut SessionContext,
    pub(super) approvals: &'a mut Approvals,
    pub(super) runner: &'a mut ToolRunner,
    pub(super) supervision: &'a mut Supervision,
    pub(super) verification: &'a mut Verification,
    pub(super) checkpoints: &'a mut Checkpoints,
    pub(super) copy_updates: &'a mut CopyUpdates,
    /// True if the model's last reply has no words.
    pub(super) said_nothing: bool,
}

impl TurnVerification<'_> {
    /// Verifies the changes, and repeats that if files changed after the checks that passed, such
    /// as while the strength of the tests was measured. `Some` ends the task. `None` means that
    /// failures were fed back to the model, or that the user stopped the checks.
    pub(super) async fn run(&mut self, stop: &CancellationToken) -> Result<Option<TaskEnd>, AgentError> {
        let mut again = 0;
        loop {
            let mut tested = Vec::new();
            let Some(end) = self.run_once(&mut tested, stop).await? else { return Ok(None) };
            if end.outcome != RunOutcome::Verified {
                return Ok(Some(end));
            }
            // Before the comparison: what is written after it makes another tree.
            self.verification.store_verified_tree(self.cx).await?;
            let changed = self.find_changes_since(tested).await?;
            if changed.is_empty() || again >= MAX_REPEATED_ROUNDS {
                return Ok(Some(downgrade_for_later_changes(end, &changed)));
            }
            again += 1;
        }
    }

    /// Verifies the changes once, and stores in `tested` the changes that the last checks ran on.
    async fn run_once(
        &mut self,
        tested: &mut Vec<ChangedContent>,
        stop: &CancellationToken,
    ) -> Result<Option<TaskEnd>, AgentError> {
        self.refresh_copy().await?;
        let changes = self.checkpoints.unverified_changes(self.cx).await?;
        if changes.is_empty() {
            return Ok(Some(self.unchanged_task_end().await));
        }
        if self.cx.settings.checks == ChecksSetting::Off {
            return self.unchecked_task_end("finished; no check was run (--no-check)").await;
        }
        self.verification.refresh_checks(self.cx, &changes).await?;
        if self.verification.has_no_checks() {
            let why =
                "finished; no check was found in the project, so nothing verified it (name one with --check)";
            return self.unchecked_task_end(why).await;
        }
        let Some((evidence, rewritten)) = self.run_rounds(tested, stop).await? else { return Ok(None) };
        let contents = self.checkpoints.changed_contents(self.cx).await?;
        let verdict = overall_outcome(&evidence);
        let contradicted = self.judge_honesty(verdict, &evidence, &contents, stop).await?;
        let is_blocked = self.verification.has_blocking_finding();
        if contradicted == OriginalTestsResult::Stopped {
            self.cx.transcript.flush().await?;
            return Ok(None);
        }
        let passed = verdict == OverallOutcome::Passed
            && !matches!(contradicted, OriginalTestsResult::Contradicted(_));
        let asks_for_tests =
            passed && !is_blocked && self.measure_test_strength(&evidence, contents, stop).await?;
        if stop.is_cancelled() {
            self.cx.transcript.flush().await?;
            return Ok(None);
        }
        let changed = self.runner.has_new_edits() || self.runner.has_running_commands();
        let feeds_back = asks_for_tests || self.has_failures_to_feed_back(verdict, changed, &evidence);
        self.cx.transcript.emit(Event::VerifyFinished {
            round: self.cx.transcript.state().counters.rounds,
            passed,
            fed_back: feeds_back,
        });
        if feeds_back {
            match self.verification.strength().filter(|_| asks_for_tests) {
                Some(strength) => ask_for_tests(self.cx, strength),
                None => {
                    let attempt = self.cx.transcript.state().counters.iterations.saturating_add(1);
                    let checkpoint = self.checkpoints.record_attempt(self.cx, attempt).await?;
                    feed_back_failures(
                        self.cx,
                        changed,
                        &evidence,
                        self.verification.honesty_findings(),
                        checkpoint,
                    );
                }
            }
            self.runner.mark_edits_checked();
            self.cx.transcript.flush().await?;
            return Ok(None);
        }
        self.cx.transcript.flush().await?;
        let iterations = self.cx.transcript.state().counters.iterations;
        let verification = &*self.verification;
        let mut end = task_end_for_verdict(verdict, &evidence, iterations, &|command| {
            verification.cannot_fail(command)
        });
        match contradicted {
            OriginalTestsResult::Contradicted(not_verified) => {
                end = add_way_to_accept(not_verified, verification.honesty_findings());
            }
            OriginalTestsResult::Passed { .. } => {
                end.summary.push_str(", also with the tests as they were before")
            }
            OriginalTestsResult::NoneChanged | OriginalTestsResult::Stopped => {}
        }
        let end = downgrade_for_rewrites(end, &rewritten);
        let end = amend_end_for_strength(end, verification.strength(), self.cx.settings.strength.needs);
        Ok(Some(downgrade_for_dishonesty(end, verification.honesty_findings())))
    }

    /// Searches the changes for places where they weaken tests or checks, and tries the original
    /// tests.
    async fn judge_honesty(
        &mut self,
        verdict: OverallOutcome,
        evidence: &[Evidence],
        contents: &[ChangedContent],
        stop: &CancellationToken,
    ) -> Result<OriginalTestsResult, AgentError> {
        self.verification.find_dishonesty(self.cx, contents.to_vec(), evidence).await?;
        // A finding that blocks whatever the original tests say tells the same, and better.
        let are_tried = verdict == OverallOutcome::Passed && !self.verification.has_irrefutable_finding();
        let result = match are_tried {
            true => self.try_original_tests(evidence, contents, stop).await?,
            false => OriginalTestsResult::NoneChanged,
        };
        if let OriginalTestsResult::Passed { proven } = &result {
            self.verification.refute_findings(proven);
        }
        self.verification.show_findings(self.cx);
        Ok(result)
    }

    /// Ends a task without checks: unverified for the reason `why`, or unchanged if the session has
    /// changed nothing.
    async fn unchecked_task_end(&mut self, why: &str) -> Result<Option<TaskEnd>, AgentError> {
        if self.checkpoints.changes(self.cx).await?.is_empty() {
            return Ok(Some(self.unchanged_task_end().await));
        }
        Ok(Some(TaskEnd::new(RunOutcome::Unverified, why)))
    }

    /// Measures how much of the change the tests would notice. Returns true if the model is to be
    /// asked for more tests.
    async fn measure_test_strength(
        &mut self,
        evidence: &[Evidence],
        contents: Vec<ChangedContent>,
        stop: &CancellationToken,
    ) -> Result<bool, AgentError> {
        let change = MeasuredChange { contents, since: self.checkpoints.compared_checkpoint(), evidence };
        let strength = measure_test_strength(self.verification, self.cx, change, stop).await?;
        Ok(self.verification.store_strength(self.cx, strength))
    }

    /// Runs the checks that passed again with the original tests, if the session changed tests or
    /// added what decides about them. Where no test loads without what is new, that stays.
    async fn try_original_tests(
        &mut self,
        passed: &[Evidence],
        contents: &[ChangedContent],
        stop: &CancellationToken,
    ) -> Result<OriginalTestsResult, AgentError> {
        for setup in [NewTestSetup::LeftOut, NewTestSetup::Kept] {
            let since = self.checkpoints.compared_checkpoint();
            let accepted = self.verification.honesty_findings().iter().filter(|finding| finding.accepted);
            let accepted = accepted.map(|finding| finding.path.clone()).collect();
            let prepared = OriginalTests::prepare(self.cx, since, accepted, contents.to_vec(), setup).await;
            let Some(tests) = prepared else { return Ok(OriginalTestsResult::NoneChanged) };
            let ran = match tests.workspace() {
                Ok(copy) => self.verification.run_with_original_tests(self.cx, copy, passed, stop).await,
                Err(_) => Ok(Vec::new()),
            };
            let result = tests.finish(ran.as_deref().unwrap_or_default()).await;
            let ran = ran?;
            if result == OriginalTestsOutcome::NotLoaded && !stop.is_cancelled() {
                continue;
            }
            self.verification.add_evidence(ran);
            return Ok(match result {
                _ if stop.is_cancelled() => OriginalTestsResult::Stopped,
                OriginalTestsOutcome::Contradicted(end) => OriginalTestsResult::Contradicted(end),
                OriginalTestsOutcome::Passed { proven } => OriginalTestsResult::Passed { proven },
                OriginalTestsOutcome::NotLoaded => OriginalTestsResult::Passed { proven: Vec::new() },
            });
        }
        Ok(OriginalTestsResult::Passed { proven: Vec::new() })
    }

    /// Returns true if failures, or findings that block a change whose checks pass, are to be fed
    /// back to the model.
    fn has_failures_to_feed_back(
        &self,
        verdict: OverallOutcome,
        changed: bool,
        evidence: &[Evidence],
    ) -> bool {
        let state = self.cx.transcript.state();
        let has_heard = state.task.as_ref().is_some_and(|task| !task.rounds.is_empty());
        // The model has heard of failures from before the task, and leaves them.
        let are_left = has_heard && !changed && fails_as_before(evidence);
        let is_dishonest = verdict == OverallOutcome::Passed
            && has_new_blocking_findings(self.cx, self.verification.honesty_findings());
        let has_rounds = state.counters.iterations < self.cx.settings.max_iterations;
        (verdict == OverallOutcome::Failed && !are_left || is_dishonest) && has_rounds
    }

    /// Runs the checks, and repeats passed checks if they or the user changed the tree while they
    /// ran, so that the verified state is the state to land. Linters fix once what they can.
    /// Returns the evidence of the last round, and the files that its checks changed; `None` if the
    /// user stopped the checks. Stores in `tested` the changes that the last round ran on.
    async fn run_rounds(
        &mut self,
        tested: &mut Vec<ChangedContent>,
        stop: &CancellationToken,
    ) -> Result<Option<(Vec<Evidence>, Vec<RelPath>)>, AgentError> {
        let (mut again, mut has_repaired) = (0, false);
        loop {
            let rounds = self.cx.transcript.state().counters.rounds.saturating_add(1);
            self.cx
                .transcript
                .record(Record::Counters(TaskCounters { rounds, ..self.cx.transcript.state().counters }));
            *tested = self.checkpoints.changed_contents(self.cx).await?;
            let mut change = TaskChange::new(self.checkpoints.compared_checkpoint(), tested.clone());
            let evidence = self.verification.run_checks(self.cx, self.approvals, &mut change, stop).await?;
            if stop.is_cancelled() {
                break;
            }
            self.verification.replace_evidence(evidence.clone());
            self.supervision.observe_checks(&evidence);
            let rewritten = self.verification.changes_by_checks().take_rewritten();
            let passed = overall_outcome(&evidence) == OverallOutcome::Passed;
            if !passed {
                let repaired = !std::mem::replace(&mut has_repaired, true)
                    && self.verification.repair_lint(self.cx, self.approvals, &evidence, stop).await?;
                if !repaired {
                    return Ok(Some((evidence, Vec::new())));
                }
            } else {
                // Another round doesn't fix a violation by a check.
                let is_last =
                    again >= MAX_REPEATED_ROUNDS || !self.cx.transcript.state().violations.is_empty();
                let moved = !is_last && self.refresh_copy().await? != RefreshOutcome::Unchanged;
                if is_last || !moved && rewritten.is_empty() {
                    return Ok(Some((evidence, rewritten)));
                }
                if moved {
                    // The copy follows the user's tree, which is the tree before the task.
                    self.verification.forget_tree_before();
                }
                again += 1;
            }
            self.cx.transcript.emit(Event::VerifyFinished { round: rounds, passed, fed_back: false });
        }
        self.cx.transcript.flush().await?;
        Ok(None)
    }

    /// Returns the files that differ from the changes that checks ran on, without those that checks
    /// made.
    async fn find_changes_since(&mut self, tested: Vec<ChangedContent>) -> Result<Vec<RelPath>, AgentError> {
        let now = self.checkpoints.changed_contents(self.cx).await?;
        let (mut differing, later): (Vec<_>, Vec<_>) = (
            tested.iter().filter(|one| !now.contains(one)).map(|one| one.path.clone()).collect(),
            now.iter().filter(|one| !tested.contains(one)).map(|one| one.path.clone()).collect(),
        );
        differing.extend(later);
        differing.sort();
        differing.dedup();
        differing.retain(|path| !self.verification.changes_by_checks().has_made(path));
        Ok(differing)
    }

    async fn refresh_copy(&mut self) -> Result<RefreshOutcome, AgentError> {
        let busy = self.runner.has_running_commands();
        self.copy_updates.refresh(self.cx, self.runner.seen_files(), busy).await
    }

    async fn unchanged_task_end(&self) -> TaskEnd {
        let budget = self.cx.settings.shared_budget.as_ref();
        if self.approvals.unanswered_count() > 0 || budget.is_some_and(|budget| budget.has_unanswered_calls())
        {
            let why = "a permission was needed and there was nobody to ask; nothing was changed";
            return TaskEnd::new(RunOutcome::PermissionNeeded, why);
        }
        let only_ignored = !self.checkpoints.ignored_changes(self.cx).await.is_empty();
        if self.cx.settings.mode == Mode::Plan && self.said_nothing {
            let why = "the model's reply is empty, so nothing is answered; ask again, or try another model";
            return TaskEnd::new(RunOutcome::Error, why);
        }
        if self.cx.settings.mode == Mode::Plan {
            return TaskEnd::new(RunOutcome::Answered, "answered; nothing is changed in plan mode");
        }
        let why = match only_ignored {
            true => "finished; only ignored files changed, so there was nothing to verify",
            false if self.said_nothing => "finished; no file changed, and the model's last reply is empty",
            false => "finished; no file changed, so there was nothing to verify",
        };
        TaskEnd::new(RunOutcome::Unverified, why)
    }
}

/// Maximum number of files that a summary names.
const MAX_NAMED_FILES: usize = 3;

/// Turns a verified end into an unverified one if checks change files whenever they run: then none
/// ran on the tree that is left.
fn downgrade_for_rewrites(end: TaskEnd, rewritten: &[RelPath]) -> TaskEnd {
    if end.outcome != RunOutcome::Verified || rewritten.is_empty() {
        return end;
    }
    let named = name_files(rewritten);
    let why = format!(
        "finished, but not verified: checks pass and change {named} whenever they run, so none ran on the \
         files that are left; have git ignore what they write, or let them write elsewhere"
    );
    TaskEnd::new(RunOutcome::Unverified, why)
}

/// Turns a verified end into an unverified one if files changed after the checks whenever these
/// ran.
fn downgrade_for_later_changes(end: TaskEnd, changed: &[RelPath]) -> TaskEnd {
    if changed.is_empty() {
        return end;
    }
    let why =
        format!("finished, but not verified: checks passed, and {} changed after them", name_files(changed));
    TaskEnd::new(RunOutcome::Unverified, why)
}

/// Names a few files, and counts the rest.
fn name_files(paths: &[RelPath]) -> String {
    let named: Vec<String> = paths.iter().take(MAX_NAMED_FILES).map(ToString::to_string).collect();
    match paths.len() - named.len() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests;
