//! The strength of a verification: how much of the change the passed tests would notice.
//!
//! Copies of the session's tree get one small mutation of a changed line each, and the tests run
//! on it, within a budget of time. In one more copy the product is as it was before the change: a
//! test of a fix fails there.

use std::sync::Arc;
use std::time::{Duration, Instant};

use journeyman_protocol::{
    CheckKind, Event, Evidence, RelPath, RunOutcome, SessionId, Strength, StrengthReport,
};
use journeyman_verify::mutation::{
    MutationPlan, PlannedFile, TrialContext, TrialLimits, TrialOutcome, can_mutate, changed_lines,
    find_mutants, judge_trial, try_mutants,
};
use journeyman_verify::test_files::is_test_configuration;
use journeyman_verify::{Check, CheckCaches, RunContext, RunLimits};
use journeyman_workspace::{ChangedContent, CheckpointId};
use tokio_util::sync::CancellationToken;

use super::Verification;
use super::original_tests::is_test_or_runner_config;
use super::scratch_copy::{ScratchCopy, SessionTree};
use crate::AgentError;
use crate::blocking::run_blocking;
use crate::session::context::SessionContext;
use crate::session::task_end::TaskEnd;
use crate::transcript::record::{Record, TaskCounters};

/// Part of the budget that the tests may take themselves: with less than this many runs a
/// measurement says little.
const MIN_TEST_RUNS: u32 = 4;
/// Maximum number of copies in which mutations run at the same time.
const MAX_COPIES: usize = 4;
/// Maximum number of files that are copied one by one for a copy, of which there are several.
const MAX_COPIED_FILES: usize = 5_000;
/// Maximum number of mutations of a change.
const MAX_MUTATIONS: usize = 200;
/// Maximum number of survivors and untested lines in the message to the model.
const MAX_LISTED_SURVIVORS: usize = 8;

/// A change to measure.
pub(crate) struct MeasuredChange<'a> {
    pub(crate) contents: Vec<ChangedContent>,
    /// The checkpoint since which the session changed its tree.
    pub(crate) since: Option<CheckpointId>,
    /// The results of the checks.
    pub(crate) evidence: &'a [Evidence],
}

/// Measures what the tests that passed would notice of the change, and shows it. `None` where
/// nothing was to be measured: no budget, no tests, or no changed product.
pub(crate) async fn measure_test_strength(
    verification: &Verification,
    cx: &mut SessionContext,
    change: MeasuredChange<'_>,
    stop: &CancellationToken,
) -> Result<Option<StrengthReport>, AgentError> {
    let budget = cx.settings.strength.budget;
    let (checks, took) = verification.proving_checks(change.evidence);
    if budget.is_zero() || checks.is_empty() {
        return Ok(None);
    }
    let begun = Instant::now();
    let contents = change.contents;
    let planning = run_blocking("looking for mutations of the change", move || {
        let tests_changed =
            contents.iter().any(|content| content.after.is_some() && is_test_or_runner_config(&content.path));
        let files: Vec<PlannedFile> = contents.into_iter().filter_map(planned_file).collect();
        (MutationPlan::new(files), tests_changed)
    });
    let (plan, tests_changed) = planning.await?;
    if plan.is_empty() {
        return Ok(None);
    }
    let report = if took * MIN_TEST_RUNS > budget {
        let (took, budget) = (took.as_secs(), budget.as_secs());
        StrengthReport::unmeasured(format!(
            "the tests take {took} s, and {MIN_TEST_RUNS} more runs don't fit into the {budget} s of `notice_budget`"
        ))
    } else {
        cx.transcript.record(Record::Checking { running: true });
        cx.transcript.flush().await?;
        let measured = measure_in_copies(cx, plan, checks, change.since, tests_changed, stop).await;
        cx.transcript.record(Record::Checking { running: false });
        measured?
    };
    let duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let report = StrengthReport { duration_ms, ..report };
    cx.transcript.emit(Event::StrengthMeasured { strength: report.clone() });
    cx.transcript.flush().await?;
    Ok(Some(report))
}

impl Verification {
    /// Returns the checks that passed and prove a change, and the time that they took.
    fn proving_checks(&self, evidence: &[Evidence]) -> (Vec<Check>, Duration) {
        let mut took = Duration::ZERO;
        let proves = |check: &&Check| {
            let passed = evidence.iter().find(|one| {
                one.outcome.has_passed() && one.command == check.command && one.directory == check.directory
            });
            let kind = matches!(check.kind, CheckKind::Test | CheckKind::Custom);
            took +=
                passed.filter(|_| kind).map_or(Duration::ZERO, |one| Duration::from_millis(one.duration_ms));
            kind && passed.is_some() && !check.cannot_fail
        };
        (self.ran.iter().filter(proves).cloned().collect(), took)
    }
}

/// Returns a changed file of the product with its mutations.
fn planned_file(content: ChangedContent) -> Option<PlannedFile> {
    let path = content.path.as_str().filter(|path| can_mutate(path))?;
    if is_test_or_runner_config(&content.path) || is_test_configuration(path) {
        return None;
    }
    let old = content.before.and_then(|bytes| String::from_utf8(bytes).ok());
    let text = String::from_utf8(content.after?).ok()?;
    let found = find_mutants(&content.path, &text, &changed_lines(&content.path, old.as_deref(), &text));
    Some(PlannedFile { text, found })
}

async fn measure_in_copies(
    cx: &SessionContext,
    mut plan: MutationPlan,
    checks: Vec<Check>,
    since: Option<CheckpointId>,
    tests_changed: bool,
    stop: &CancellationToken,
) -> Result<StrengthReport, AgentError> {
    let begun = Instant::now();
    let Some(tree) = SessionTree::from_context(cx, since) else {
        return Ok(StrengthReport::unmeasured("the change has no checkpoint"));
    };
    let (owner, count) = (cx.session.clone(), max_concurrent_copies());
    let made =
        run_blocking("copying the project", move || make_copies(&tree, &owner, count, tests_changed)).await?;
    let MeasurementCopies { current, before } = match made {
        Ok(copies) => copies,
        Err(reason) => {
            return Ok(StrengthReport::unmeasured(format!("the project can't be copied: {reason}")));
        }
    };
    let failed_before = match &before {
        Some((copy, product)) => tests_fail_without_change(cx, copy, product, &checks, stop).await?,
        None => None,
    };
    let mut contexts = Vec::new();
    for copy in &current {
        contexts.push(build_run_context(cx, copy).await?);
    }
    let budget = cx.settings.strength.budget.saturating_sub(begun.elapsed());
    let limits = TrialLimits { budget, max_trials: MAX_MUTATIONS };
    let tried = try_mutants(&mut plan, TrialContext { copies: contexts, checks }, limits, stop).await;
    let removed = run_blocking("removing copies of the project", move || {
        current.into_iter().chain(before.map(|(copy, _)| copy)).for_each(ScratchCopy::remove_blocking);
    });
    // Files that can't be removed now are removed when the project is opened.
    removed.await.ok();
    let mut report = plan.into_report(tried?);
    report.failed_before = failed_before;
    Ok(report)
}

fn max_concurrent_copies() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(MAX_COPIES)
}

/// Copies of the session's tree, and one in which the product is as before the change, with the
/// files that are.
struct MeasurementCopies {
    current: Vec<ScratchCopy>,
    before: Option<(ScratchCopy, Vec<RelPath>)>,
}

fn make_copies(
    tree: &SessionTree,
    owner: &SessionId,
    count: usize,
    tests_changed: bool,
) -> Result<MeasurementCopies, String> {
    let (changes, _) =
        tree.diff_with_restored_files(owner, |_, _| false).map_err(|error| error.to_string())?;
    let mut current = Vec::new();
    for _ in 0..count {
        match tree.make_copy(owner, &changes, MAX_COPIED_FILES) {
            Ok(copy) => current.push(copy),
            Err(reason) if current.is_empty() => return Err(reason),
            // One copy is enough to measure, only slower.
            Err(_) => break,
        }
    }
    // New files of the product stay: without them the tests would only fail to load.
    let is_product = |path: &RelPath, was_there| {
        was_there && !is_test_or_runner_config(path) && path.as_str().is_some_and(can_mutate)
    };
    let before = tree
        .diff_with_restored_files(owner, is_product)
        .ok()
        .filter(|(_, product)| tests_changed && !product.is_empty());
    let before = before.and_then(|(changes, product)| {
        Some((tree.make_copy(owner, &changes, MAX_COPIED_FILES).ok()?, product))
    });
    Ok(MeasurementCopies { current, before })
}

/// Returns true if the tests fail on the product before the change; `None` if it doesn't build or
/// the tests were interrupted.
async fn tests_fail_without_change(
    cx: &SessionContext,
    copy: &ScratchCopy,
    product: &[RelPath],
    checks: &[Check],
    stop: &CancellationToken,
) -> Result<Option<bool>, AgentError> {
    let context = build_run_context(cx, copy).await?;
    let ran = journeyman_verify::run_checks(checks, &context, stop.clone(), &mut |_| {}).await?;
    // A compiler may refuse the tests for any of the files.
    let builds = |path: &RelPath| judge_trial(path, &ran) != Some(TrialOutcome::Invalid);
    let outcome = product.first().and_then(|path| judge_trial(path, &ran));
    Ok(outcome.filter(|_| product.iter().all(builds)).map(|outcome| outcome == TrialOutcome::Noticed))
}

/// Returns all that checks need in a copy. Each copy has caches of its own: where copies are
/// mounted, their paths are the same.
async fn build_run_context(cx: &SessionContext, copy: &ScratchCopy) -> Result<RunContext, AgentError> {
    let (project, toolchains) = (Arc::clone(cx.project()), Arc::clone(&cx.toolchains));
    let caches = run_blocking("making a directory for the checks' caches", move || {
        CheckCaches::create(&project, &toolchains, fastrand::u64(..))
    });
    Ok(RunContext {
        workspace: copy.workspace(),
        sandbox: Arc::clone(&cx.sandbox),
        toolchains: Arc::clone(&cx.toolchains),
        session: cx.session.clone(),
        needs: cx.settings.needs,
        caches: caches.await?.ok().map(Arc::new),
        limits: RunLimits::default(),
    })
}

/// Asks the model for tests that notice the survivors, as a round of feedback.
pub(crate) fn ask_for_tests(cx: &mut SessionContext, report: &StrengthReport) {
    let counters = cx.transcript.state().counters;
    let iterations = counters.iterations.saturating_add(1);
    cx.transcript.record(Record::Counters(TaskCounters { iterations, ..counters }));
    let needs = cx.settings.strength.needs;
    let untested = report.untested.iter().map(ToString::to_string);
    let lines = untested.chain(report.survivors.iter().map(ToString::to_string)).take(MAX_LISTED_SURVIVORS);
    let list: String = lines.map(|line| format!("- {line}\n")).collect();
    cx.transcript.add_user_text(format!(
        "All checks pass, but the tests would not notice every fault in the change (this run needs `{needs}`). \
         Each line is a mutation of your change for which all tests still pass:\n{list}Add tests for them, with \
         the values that the task demands. If such a test fails, the change is wrong: fix it. Change no code only \
         to satisfy a line; where a mutation makes no difference, say so."
    ));
}

/// Adds the strength to a verified end, or turns it into an unverified one if the user needs more.
pub(crate) fn amend_end_for_strength(
    end: TaskEnd,
    report: Option<&StrengthReport>,
    needs: Strength,
) -> TaskEnd {
    if end.outcome != RunOutcome::Verified {
        return end;
    }
    let reached = report.map_or(Strength::Ran, |report| report.strength);
    if reached < needs {
        let why = match report {
            Some(report) => report.to_string(),
            None => "what the tests would notice of the change can't be measured".to_owned(),
        };
        let why = format!("finished, but not verified: checks pass, and this run needs `{needs}`: {why}");
        return TaskEnd::new(RunOutcome::Unverified, why);
    }
    let Some(report) = report.filter(|report| report.tried > report.invalid) else { return end };
    let valid = report.tried - report.invalid;
    let summary =
        format!("{}; the tests notice {} of {valid} mutations of the change", end.summary, report.noticed);
    TaskEnd { summary, ..end }
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::MutationKind;
    use journeyman_testkit::has_program_or_skip;
    use journeyman_workspace::ListOptions;

    use super::*;
    use crate::session::settings::{ChecksSetting, TestStrengthSettings};
    use crate::test_context::TestContext;
    use crate::verification::check_round::TaskChange;

    const BEFORE: &str = "def fee(total):\n    return 4\n";
    const AFTER: &str = "def fee(total):\n    if total >= 50:\n        return 0\n    return 4\n";

    /// Returns a test file with one assertion for each fee.
    fn tests_of(fees: &[(u32, u32)]) -> String {
        let mut text =
            "import unittest\nfrom fee import fee\n\n\nclass Fees(unittest.TestCase):\n".to_owned();
        for (total, fee) in fees {
            text.push_str(&format!(
                "    def test_{total}(self):\n        self.assertEqual(fee({total}), {fee})\n\n"
            ));
        }
        text
    }

    /// Changes the product and its tests, runs the tests and measures what they would notice.
    async fn measured(budget: u64, tests: &str) -> Option<(TestContext, Option<StrengthReport>)> {
        if !has_program_or_skip("python3") {
            return None;
        }
        let mut test = TestContext::new(&[("fee.py", BEFORE), ("test_fee.py", &tests_of(&[(10, 4)]))]).await;
        test.set_rules("[[rule]]\ncommand = ['python3', '-m', 'unittest']\ndecision = 'allow'\n");
        test.cx.settings.checks = ChecksSetting::Custom(vec!["python3 -m unittest".to_owned()]);
        test.cx.settings.strength =
            TestStrengthSettings { budget: Duration::from_secs(budget), ..Default::default() };
        let since = test.checkpoints.wait_until_recorded(&mut test.cx).await.unwrap();
        test.write("fee.py", AFTER);
        test.write("test_fee.py", tests);
        test.checkpoints.changes(&mut test.cx).await.unwrap();
        let mut verification = Verification::new(Arc::new(|_: &str| None));
        let listing = test.cx.workspace.list(ListOptions::default()).unwrap();
        verification.find_checks(&test.cx, &mut test.approvals, &listing);
        let stop = CancellationToken::new();
        let evidence = verification
            .run_checks(&mut test.cx, &mut test.approvals, &mut TaskChange::new(None, Vec::new()), &stop)
            .await
            .unwrap();
        let contents = test.checkpoints.changed_contents(&test.cx).await.unwrap();
        let change = MeasuredChange { contents, since: Some(since), evidence: &evidence };
        let report = measure_test_strength(&verification, &mut test.cx, change, &stop).await.unwrap();
        assert_eq!(
            std::fs::read_to_string(test.root.join("fee.py")).unwrap(),
            AFTER,
            "the tree is as it was"
        );
        assert!(test.cx.workspace.copies().list().unwrap().is_empty());
        Some((test, report))
    }

    #[tokio::test]
    async fn tests_that_try_the_bound_notice_and_others_do_not() {
        let full = tests_of(&[(10, 4), (49, 4), (50, 0), (80, 0)]);
        let Some((mut test, Some(report))) = measured(600, &full).await else { return };
        assert_eq!(
            (report.strength, report.count_survivors(), report.limit.as_deref()),
            (Strength::Notices, 0, None),
            "{report:?}"
        );
        assert_eq!((report.failed_before, report.statements, report.run_statements), (Some(true), 2, 2));
        let shown = test.events().await.into_iter().find_map(|event| match event {
            Event::StrengthMeasured { strength } => Some(strength),
            _ => None,
        });
        assert_eq!(shown, Some(report));

        let weak = tests_of(&[(10, 4), (80, 0)]);
        let Some((_, Some(report))) = measured(600, &weak).await else { return };
        assert_eq!(report.strength, Strength::Covers, "{report:?}");
        let first = report.survivors.first().unwrap();
        assert_eq!(
            (first.line, first.kind, first.after.as_str()),
            (2, MutationKind::Boundary, "if total > 50:")
        );
        assert_eq!(first.proposal, "`fee` with a case in which `total` equals `50`");
    }

    #[tokio::test]
    async fn a_statement_that_no_test_runs_is_named() {
        let Some((mut test, Some(report))) = measured(600, &tests_of(&[(10, 4), (11, 4)])).await else {
            return;
        };
        assert_eq!((report.strength, report.failed_before), (Strength::Ran, Some(false)));
        let untested: Vec<String> = report.untested.iter().map(ToString::to_string).collect();
        assert_eq!(untested, ["fee.py:3: no test runs this line of `fee`"]);
        ask_for_tests(&mut test.cx, &report);
        let text = test.last_text();
        assert!(text.contains("fee.py:3: no test runs this line") && text.contains("Add tests"), "{text}");
    }

    #[tokio::test]
    async fn slow_tests_and_no_budget_measure_nothing() {
        let Some((_, report)) = measured(0, &tests_of(&[(10, 4)])).await else { return };
        assert_eq!(report, None);
    }

    #[test]
    fn a_verified_end_needs_the_strength_that_the_user_demands() {
        let end = || TaskEnd::new(RunOutcome::Verified, "verified by `x`");
        let report =
            StrengthReport { strength: Strength::Covers, tried: 4, noticed: 3, ..Default::default() };
        let verified = amend_end_for_strength(end(), Some(&report), Strength::Covers);
        assert_eq!(verified.summary, "verified by `x`; the tests notice 3 of 4 mutations of the change");
        let unverified = amend_end_for_strength(end(), Some(&report), Strength::Notices);
        assert_eq!(unverified.outcome, RunOutcome::Unverified);
        assert!(
            unverified.summary.contains("needs `notices`: the tests run the change"),
            "{}",
            unverified.summary
        );
        assert_eq!(amend_end_for_strength(end(), None, Strength::Covers).outcome, RunOutcome::Unverified);
        assert_eq!(amend_end_for_strength(end(), None, Strength::Ran), end());
        let failed = TaskEnd::new(RunOutcome::ChecksFail, "no");
        assert_eq!(amend_end_for_strength(failed.clone(), Some(&report), Strength::Notices), failed);
    }
}
