//! One round of checks: runs affected tests first, and marks failures that the task didn't cause.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use journeyman_protocol::{CheckKind, Event, Evidence, RelPath, Severity, label_check};
use journeyman_verify::{
    Check, accepts_test_names, compare_failures, failure_identity, is_skipped_after_failure,
    narrow_to_failed_tests, narrow_to_files,
};
use journeyman_workspace::{ChangedContent, CheckpointId, Workspace};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::affected_tests::AffectedTests;
use super::check_setup::{SetupProposalOutcome, explain_blocked};
use super::failed_checks::FailedChecks;
use super::scratch_copy::{MAX_COPIED_FILES, SessionTree};
use super::suite_times::SuiteTimes;
use super::{TestedTree, Verification};
use crate::AgentError;
use crate::approval::approvals::Approvals;
use crate::blocking::run_blocking;
use crate::session::context::SessionContext;
use crate::session::settings::ChecksSetting;

/// Minimum time of a run of all tests for a run of the affected tests before it.
const MIN_SUITE_TIME: Duration = Duration::from_secs(3);
/// Minimum number of test files for a run of the affected tests first, if the time of a run isn't
/// known.
const MIN_SUITE_FILES: usize = 20;
/// Maximum duration of a command that is run again as a whole to see if its failure stays.
const MAX_RERUN_TIME: Duration = Duration::from_secs(60);
/// Maximum bytes of a manifest that is read to narrow a command.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;

/// The change that a round of checks is about.
pub(crate) struct TaskChange {
    /// The checkpoint before it; `None` in a copy, whose project is the tree before it.
    since: Option<CheckpointId>,
    contents: Vec<ChangedContent>,
    affected: AffectedLookup,
}

/// The tests that a change can affect, as far as they were looked for.
enum AffectedLookup {
    Unasked,
    Running(JoinHandle<Option<AffectedTests>>),
    /// `None` if the index can't tell.
    Known(Option<AffectedTests>),
}

impl TaskChange {
    /// Describes a change by the contents before and after it.
    pub(crate) fn new(since: Option<CheckpointId>, contents: Vec<ChangedContent>) -> Self {
        Self { since, contents, affected: AffectedLookup::Unasked }
    }

    /// Begins to look for the tests that the change can affect, unless that was done.
    fn look_up_affected(&mut self, cx: &SessionContext, stop: &CancellationToken) {
        if matches!(self.affected, AffectedLookup::Unasked) {
            let looking = AffectedTests::find(Arc::clone(&cx.index), self.contents.clone(), stop.clone());
            self.affected = AffectedLookup::Running(tokio::spawn(looking));
        }
    }

    /// Returns the tests that the change can affect; `None` if that isn't known.
    async fn affected_tests(
        &mut self,
        cx: &SessionContext,
        stop: &CancellationToken,
    ) -> Option<&AffectedTests> {
        self.look_up_affected(cx, stop);
        if let AffectedLookup::Running(looking) = &mut self.affected {
            self.affected = AffectedLookup::Known(looking.await.ok().flatten());
        }
        match &self.affected {
            AffectedLookup::Known(affected) => affected.as_ref(),
            AffectedLookup::Unasked | AffectedLookup::Running(_) => None,
        }
    }
}

/// A run of all tests, which affected tests may run ahead of.
struct SuiteRun {
    all: Check,
    affected: Option<Check>,
    /// False if a run of all tests takes longer than the session may spend on it.
    is_affordable: bool,
}

impl SuiteRun {
    fn plan(check: Check, affected: Option<&AffectedTests>, times: &SuiteTimes, cx: &SessionContext) -> Self {
        let time = times.find_duration(&check);
        let is_small = time.is_some_and(|time| time < MIN_SUITE_TIME);
        let affected = affected.filter(|affected| {
            !is_small && affected.is_small_part() && (time.is_some() || affected.all >= MIN_SUITE_FILES)
        });
        let affected = affected.and_then(|affected| {
            narrow_to_files(&check, &affected.files, &|path| read_text(&cx.workspace, path))
        });
        let is_affordable = affected.is_none() || time.is_none_or(|time| time <= cx.settings.test_budget);
        Self { all: check, affected, is_affordable }
    }
}

impl Verification {
    /// Returns true if a check's time and runner make it worth finding out which tests a change
    /// affects.
    fn may_narrow_tests(&self, cx: &SessionContext, times: &SuiteTimes) -> bool {
        self.checks.iter().any(|check| {
            check.blocked.is_none()
                && times.find_duration(check).is_none_or(|time| time >= MIN_SUITE_TIME)
                && accepts_test_names(check, &|path| read_text(&cx.workspace, path))
        })
    }

    /// Runs the permitted checks. The evidence lists the others with the reason.
    pub(crate) async fn run_checks(
        &mut self,
        cx: &mut SessionContext,
        approvals: &mut Approvals,
        change: &mut TaskChange,
        stop: &CancellationToken,
    ) -> Result<Vec<Evidence>, AgentError> {
        // Slow work that needs no answer runs while questions are open.
        let mut times = SuiteTimes::load(cx);
        self.caches.prepare(cx);
        if self.may_narrow_tests(cx, &times) {
            change.look_up_affected(cx, stop);
        }
        self.run_setup(cx, approvals, stop).await?;
        let (checks, mut evidence) = self.authorize_checks(cx, approvals, stop).await?;
        let round = cx.transcript.state().counters.rounds;
        let commands = checks.iter().map(|check| label_check(&check.command, check.directory.as_ref()));
        let commands = commands.collect();
        cx.transcript.emit(Event::VerifyStarted { checks: commands, round });
        for refused in &evidence {
            cx.transcript.emit(Event::CheckResult { evidence: refused.clone() });
        }
        let affected = match self.may_narrow_tests(cx, &times) {
            true => change.affected_tests(cx, stop).await,
            false => None,
        };
        let suites: Vec<SuiteRun> =
            checks.into_iter().map(|check| SuiteRun::plan(check, affected, &times, cx)).collect();
        let first: Vec<Check> =
            suites.iter().map(|suite| suite.affected.as_ref().unwrap_or(&suite.all).clone()).collect();
        let mut ran = self.run_stage(cx, &first, change, stop).await?;
        let may_go_on = !stop.is_cancelled() && !ran.iter().any(Evidence::has_relevant_failure);
        let is_left = |suite: &SuiteRun| may_go_on && suite.affected.is_some() && suite.is_affordable;
        let left: Vec<Check> =
            suites.iter().filter(|suite| is_left(suite)).map(|suite| suite.all.clone()).collect();
        let places = (0..).zip(&suites).filter(|(_, suite)| is_left(suite)).map(|(place, _)| place);
        let all = if left.is_empty() { Vec::new() } else { self.run_stage(cx, &left, change, stop).await? };
        // A run of all tests includes the affected tests.
        replace_at(&mut ran, places.clone(), all);
        self.ran = first;
        replace_at(&mut self.ran, places, left);
        times.save_passed(
            ran.iter()
                .filter(|one| !one.affected_only && matches!(one.kind, CheckKind::Test | CheckKind::Custom)),
        );
        evidence.extend(ran);
        FailedChecks::in_directory(cx.project().state_dir()).save(&evidence, &cx.redactor);
        Ok(evidence)
    }

    /// Fetches what blocked checks need, if that is allowed, and finds the checks again. Checks
    /// stay blocked where it isn't allowed or fails, and say so.
    async fn run_setup(
        &mut self,
        cx: &mut SessionContext,
        approvals: &mut Approvals,
        stop: &CancellationToken,
    ) -> Result<(), AgentError> {
        let is_blocked = self.checks.iter().any(|check| check.blocked.is_some());
        if !is_blocked || cx.settings.checks != ChecksSetting::Found {
            return Ok(());
        }
        let steps = match self.setup.propose(cx, approvals, &self.programs, &self.changed, stop).await? {
            SetupProposalOutcome::Nothing => return Ok(()),
            SetupProposalOutcome::Refused(steps, why) => {
                explain_blocked(&mut self.checks, &steps, &why);
                return Ok(());
            }
            SetupProposalOutcome::Permitted(steps) => steps,
        };
        for step in &steps {
            let workspace = Arc::clone(&cx.workspace);
            let evidence =
                self.run_checks_in(cx, workspace, &[step.to_check()], TestedTree::Session, stop).await?;
            if evidence.iter().any(|one| !one.outcome.has_passed()) {
                explain_blocked(&mut self.checks, &steps, "it failed");
                return Ok(());
            }
        }
        self.find_checks_again(cx).await
    }

    /// Runs checks in order. A kind with nothing but failures that were there before the task
    /// doesn't keep later kinds from running.
    async fn run_stage(
        &mut self,
        cx: &mut SessionContext,
        checks: &[Check],
        change: &mut TaskChange,
        stop: &CancellationToken,
    ) -> Result<Vec<Evidence>, AgentError> {
        let mut evidence = self.run_and_examine(cx, checks, change, stop).await?;
        loop {
            let held: Vec<usize> = (0..)
                .zip(&evidence)
                .filter(|(_, one)| is_skipped_after_failure(&one.outcome))
                .map(|(place, _)| place)
                .collect();
            if held.is_empty() || stop.is_cancelled() || evidence.iter().any(Evidence::has_relevant_failure) {
                return Ok(evidence);
            }
            let left: Vec<Check> = held.iter().filter_map(|place| checks.get(*place)).cloned().collect();
            let ran = self.run_and_examine(cx, &left, change, stop).await?;
            replace_at(&mut evidence, held.into_iter(), ran);
        }
    }

    async fn run_and_examine(
        &mut self,
        cx: &mut SessionContext,
        checks: &[Check],
        change: &mut TaskChange,
        stop: &CancellationToken,
    ) -> Result<Vec<Evidence>, AgentError> {
        let workspace = Arc::clone(&cx.workspace);
        let mut evidence = self.run_checks_in(cx, workspace, checks, TestedTree::Session, stop).await?;
        for (check, one) in checks.iter().zip(&mut evidence) {
            let found = one.clone();
            self.run_failed_tests_again(cx, check, one, stop).await?;
            self.compare_with_tree_before(cx, check, one, change, stop).await?;
            if *one != found {
                cx.transcript.emit(Event::CheckResult { evidence: one.clone() });
            }
        }
        Ok(evidence)
    }

    /// Runs tests that failed once more, unless they failed in the last round as well. Those that
    /// pass then are flaky, and no failures.
    async fn run_failed_tests_again(
        &mut self,
        cx: &mut SessionContext,
        check: &Check,
        one: &mut Evidence,
        stop: &CancellationToken,
    ) -> Result<(), AgentError> {
        let failed = failed_tests(one);
        let known: BTreeSet<String> = self.evidence.iter().flat_map(failed_tests).collect();
        if failed.is_empty() || !failed.is_disjoint(&known) || stop.is_cancelled() {
            return Ok(());
        }
        let narrowed = narrow_to_failed_tests(check, one, &|path| read_text(&cx.workspace, path));
        let is_quick = Duration::from_millis(one.duration_ms) <= MAX_RERUN_TIME;
        let Some(again) = narrowed.or_else(|| is_quick.then(|| check.clone())) else { return Ok(()) };
        let workspace = Arc::clone(&cx.workspace);
        let ran = self
            .run_checks_in(cx, workspace, std::slice::from_ref(&again), TestedTree::SessionAgain, stop)
            .await?;
        let Some(second) = ran.first() else { return Ok(()) };
        let still_failed = failed_tests(second);
        // A runner that stops at the first failure says nothing about the tests after it.
        let ran_all = || {
            let ran = second.tests.map_or(0, |tests| tests.passed.saturating_add(tests.failed));
            !still_failed.is_empty() && usize::try_from(ran).is_ok_and(|ran| ran >= failed.len())
        };
        if second.outcome.has_passed() {
            one.outcome = second.outcome.clone();
        } else if !second.outcome.has_failed() || !ran_all() {
            return Ok(());
        }
        one.flaky = failed.difference(&still_failed).cloned().collect();
        one.diagnostics.retain(|found| found.test.as_ref().is_none_or(|test| !one.flaky.contains(test)));
        Ok(())
    }

    /// Compares the failures of a check with its failures in the tree before the task.
    async fn compare_with_tree_before(
        &mut self,
        cx: &mut SessionContext,
        check: &Check,
        one: &mut Evidence,
        change: &mut TaskChange,
        stop: &CancellationToken,
    ) -> Result<(), AgentError> {
        // A check that the user named has to pass, whatever it did before.
        if !one.outcome.has_failed() || one.kind == CheckKind::Custom || stop.is_cancelled() {
            return Ok(());
        }
        let known = self.before_task.iter().find(|before| is_evidence_of(before, check)).cloned();
        let before = match known {
            Some(before) => before,
            None => match self.run_on_tree_before_task(cx, check, change, stop).await? {
                Some(before) if !stop.is_cancelled() => before,
                _ => return Ok(()),
            },
        };
        let affected = change.affected_tests(cx, stop).await;
        let is_affected = |path: &RelPath| affected.is_none_or(|affected| affected.files.contains(path));
        one.baseline = compare_failures(one, &before, &is_affected);
        if let Some(baseline) = &one.baseline {
            for found in &mut one.diagnostics {
                found.before_task = baseline.old.contains(&failure_identity(found));
            }
        }
        Ok(())
    }

    /// Runs a check in a copy of the tree before the task; `None` if there is no such copy, or if
    /// the task changed nothing.
    async fn run_on_tree_before_task(
        &mut self,
        cx: &mut SessionContext,
        check: &Check,
        change: &mut TaskChange,
        stop: &CancellationToken,
    ) -> Result<Option<Evidence>, AgentError> {
        let Some(tree) = SessionTree::from_context(cx, change.since) else { return Ok(None) };
        let owner = cx.session.clone();
        let made = run_blocking("copying the tree as before the task", move || {
            let (changes, restored) = tree.diff_with_restored_files(&owner, |_, _| true).ok()?;
            (!restored.is_empty()).then(|| tree.make_copy(&owner, &changes, MAX_COPIED_FILES).ok()).flatten()
        });
        let Some(scratch) = made.await? else { return Ok(None) };
        let ran = self
            .run_checks_in(cx, scratch.workspace(), std::slice::from_ref(check), TestedTree::BeforeTask, stop)
            .await;
        scratch.remove().await;
        let before = ran?.into_iter().next();
        self.before_task.extend(before.clone());
        Ok(before)
    }
}

/// Replaces the items at `places`.
fn replace_at<T>(items: &mut [T], places: impl Iterator<Item = usize>, by: Vec<T>) {
    for (place, new) in places.zip(by) {
        if let Some(old) = items.get_mut(place) {
            *old = new;
        }
    }
}

fn is_evidence_of(evidence: &Evidence, check: &Check) -> bool {
    evidence.command == check.command && evidence.directory == check.directory
}

fn failed_tests(evidence: &Evidence) -> BTreeSet<String> {
    let failures = evidence.diagnostics.iter().filter(|found| found.severity == Severity::Error);
    match evidence.outcome.has_failed() {
        true => failures.filter_map(|found| found.test.clone()).collect(),
        false => BTreeSet::new(),
    }
}

fn read_text(workspace: &Workspace, path: &RelPath) -> Option<String> {
    Some(workspace.read(path, MAX_MANIFEST_BYTES).ok()?.text()?.to_owned())
}
