//! Verification: the project's own checks run on what changed, and failures go back to the model.

use std::sync::Arc;

use journeyman_context::{CheckedRound, Feedback};
use journeyman_protocol::{
    CallId, ContentHash, Decision, Effects, Enforcement, Event, Evidence, FileChange, HonestyFinding,
    RelPath, SandboxNeeds, StrengthReport, ToolUse,
};
use journeyman_verify::diagnostics::sort_by_cause;
use journeyman_verify::{Check, ProgramLookup, Progress, RunContext, RunLimits, compare_failures};
use journeyman_workspace::{ListOptions, Listing, Workspace};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::AgentError;
use crate::approval::approvals::{Approvals, CHECK_TOOL};
use crate::blocking::run_blocking;
use crate::request::prose_edits::edit_instruction;
use crate::session::context::SessionContext;
use crate::session::settings::ChecksSetting;
use crate::transcript::record::{Record, TaskCounters};
use crate::transcript::stream_redactor::StreamRedactor;

pub(crate) mod affected_tests;
mod check_caches;
pub(crate) mod check_changes;
pub(crate) mod check_round;
mod check_setup;
mod derived_file;
pub(crate) mod failed_checks;
pub(crate) mod honesty;
pub(crate) mod original_tests;
mod repair;
mod scratch_copy;
pub(crate) mod strength;
mod suite_times;
mod summary;
mod unchanged_files;

use check_caches::SessionCaches;
use check_changes::CheckChanges;
use check_setup::{CheckSetup, MAX_VISITED_FILES};
use original_tests::retain_test_checks;
pub(crate) use summary::{fails_as_before, task_end_for_verdict};

/// Maximum number of recent edits in the feedback; older ones no longer explain a failure.
const MAX_RECALLED_EDITS: usize = 20;

/// The checks of a session, and their results in the running task.
pub(crate) struct Verification {
    programs: Arc<ProgramLookup>,
    checks: Vec<Check>,
    /// The checks that the newest round ran, some of them narrowed to affected tests.
    ran: Vec<Check>,
    evidence: Vec<Evidence>,
    /// The tree that is verified, with the files that checks made.
    verified_tree: Option<ContentHash>,
    findings: Vec<HonestyFinding>,
    /// The strength of the tests, as of the newest round.
    strength: Option<StrengthReport>,
    /// The model was asked for more tests in this task.
    asked_for_tests: bool,
    /// The changed files. A failure in a changed file is more likely a cause.
    changed: Vec<RelPath>,
    /// The caches of the session's checks, from the first round on.
    caches: SessionCaches,
    /// The files of the session's tree that checks of this task changed.
    changes: CheckChanges,
    setup: CheckSetup,
    /// The results on the tree before the task, of checks that failed since.
    before_task: Vec<Evidence>,
}

/// The name under which a check is judged.
struct CheckPermissionId {
    what: &'static str,
    place: usize,
}

/// The tree that checks run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TestedTree {
    /// The session's own.
    Session,
    /// The session's own, for tests that failed and run again.
    SessionAgain,
    /// A copy of the session's tree with the original tests.
    OriginalTests,
    /// A copy of the tree before the task.
    BeforeTask,
}

impl Verification {
    pub(crate) fn new(programs: Arc<ProgramLookup>) -> Self {
        Self {
            programs,
            checks: Vec::new(),
            ran: Vec::new(),
            evidence: Vec::new(),
            verified_tree: None,
            findings: Vec::new(),
            strength: None,
            asked_for_tests: false,
            changed: Vec::new(),
            caches: SessionCaches::default(),
            changes: CheckChanges::default(),
            setup: CheckSetup::default(),
            before_task: Vec::new(),
        }
    }

    /// Returns the hash of the tree that is verified if the task ends so.
    pub(crate) fn verified_tree(&self) -> Option<ContentHash> {
        self.verified_tree
    }

    /// Stores the tree as the verified one.
    pub(crate) async fn store_verified_tree(&mut self, cx: &SessionContext) -> Result<(), AgentError> {
        let workspace = Arc::clone(&cx.workspace);
        let hash = run_blocking("looking at the tree", move || workspace.history().tree_hash()).await??;
        self.verified_tree = Some(hash);
        Ok(())
    }

    /// Forgets the check results of the last task.
    pub(crate) fn begin_task(&mut self) {
        self.evidence.clear();
        self.verified_tree = None;
        self.findings.clear();
        self.strength = None;
        self.asked_for_tests = false;
        self.changes = CheckChanges::default();
        self.forget_tree_before();
    }

    /// Forgets the check results of the tree before the task, because that tree has changed.
    pub(crate) fn forget_tree_before(&mut self) {
        self.before_task.clear();
    }

    /// Returns the files of the session's tree that checks changed.
    pub(crate) fn changes_by_checks(&mut self) -> &mut CheckChanges {
        &mut self.changes
    }

    /// Returns the results of this task's newest round of checks.
    pub(crate) fn evidence(&self) -> &[Evidence] {
        &self.evidence
    }

    /// Adds the results of checks that ran with the original tests.
    pub(crate) fn add_evidence(&mut self, evidence: Vec<Evidence>) {
        self.evidence.extend(evidence);
    }

    /// Stores the results of a round of checks, and returns the results of the round before.
    pub(crate) fn replace_evidence(&mut self, evidence: Vec<Evidence>) -> Vec<Evidence> {
        std::mem::replace(&mut self.evidence, evidence)
    }

    /// Returns the places where the changes weaken tests or checks, as of the newest round.
    pub(crate) fn honesty_findings(&self) -> &[HonestyFinding] {
        &self.findings
    }

    /// Stores what the tests would notice of the change. Returns true if the model is to be asked
    /// for tests, once in a task, because the user needs more.
    pub(crate) fn store_strength(&mut self, cx: &SessionContext, strength: Option<StrengthReport>) -> bool {
        let lacks =
            strength.as_ref().is_some_and(|it| it.tried > 0 && it.strength < cx.settings.strength.needs);
        self.strength = strength;
        let iterations = cx.transcript.state().counters.iterations;
        lacks
            && iterations < cx.settings.max_iterations
            && !std::mem::replace(&mut self.asked_for_tests, true)
    }

    /// Returns the strength of the verification, if it was measured.
    pub(crate) fn strength(&self) -> Option<&StrengthReport> {
        self.strength.as_ref()
    }

    /// Returns true if a check with this command passes whatever the files hold.
    pub(crate) fn cannot_fail(&self, command: &str) -> bool {
        self.ran.iter().any(|check| check.cannot_fail && check.command == command)
    }

    /// Returns true if there is no check to run.
    pub(crate) fn has_no_checks(&self) -> bool {
        self.checks.is_empty()
    }

    /// Finds the project's checks in a listing and makes them known to policy. Returns their
    /// command lines.
    pub(crate) fn find_checks(
        &mut self,
        cx: &SessionContext,
        approvals: &mut Approvals,
        listing: &Listing,
    ) -> Vec<String> {
        self.checks = match &cx.settings.checks {
            ChecksSetting::Off => Vec::new(),
            ChecksSetting::Custom(commands) => journeyman_verify::custom_checks(commands),
            ChecksSetting::Found => {
                journeyman_verify::find_project_checks(&cx.workspace, listing, &*self.programs)
            }
        };
        let commands: Vec<String> = self.checks.iter().map(|check| check.command.clone()).collect();
        approvals.register_checks(commands.clone());
        commands
    }

    /// Finds the checks again, because the change may have added some.
    pub(crate) async fn refresh_checks(
        &mut self,
        cx: &SessionContext,
        changes: &[FileChange],
    ) -> Result<(), AgentError> {
        self.changed = changes.iter().map(|change| change.path.clone()).collect();
        if cx.settings.checks != ChecksSetting::Found {
            return Ok(());
        }
        self.find_checks_again(cx).await
    }

    /// Finds the checks for the changed files.
    async fn find_checks_again(&mut self, cx: &SessionContext) -> Result<(), AgentError> {
        let (workspace, programs) = (Arc::clone(&cx.workspace), Arc::clone(&self.programs));
        let changed = self.changed.clone();
        self.checks = run_blocking("finding the project's checks", move || {
            let listing = workspace.list(ListOptions { limit: MAX_VISITED_FILES, ..ListOptions::default() });
            listing.map(|listing| {
                journeyman_verify::find_checks_for_changes(&workspace, &listing, &changed, &*programs)
            })
        })
        .await??;
        Ok(())
    }

    /// Runs the checks that passed once more, in a copy of the tree with the original tests.
    pub(crate) async fn run_with_original_tests(
        &mut self,
        cx: &mut SessionContext,
        copy: Arc<Workspace>,
        passed: &[Evidence],
        stop: &CancellationToken,
    ) -> Result<Vec<Evidence>, AgentError> {
        let has_passed = |check: &&Check| {
            passed
                .iter()
                .any(|one| one.is_proof() && one.command == check.command && one.directory == check.directory)
        };
        let mut checks: Vec<Check> = self.ran.iter().filter(has_passed).cloned().collect();
        retain_test_checks(&mut checks);
        let mut evidence = self.run_checks_in(cx, copy, &checks, TestedTree::OriginalTests, stop).await?;
        for one in &mut evidence {
            let before = self.before_task.iter().find(|before| before.command == one.command);
            // Failures that remain in the session's tree are not part of the change. The change's
            // tests may hide other failures from before the task.
            let left =
                passed.iter().find(|left| left.command == one.command && left.directory == one.directory);
            let left = left.and_then(|left| left.baseline.as_ref()).map_or(&[][..], |left| &left.old);
            one.baseline = before.and_then(|before| compare_failures(one, before, &|_| false));
            if let Some(baseline) = &mut one.baseline {
                baseline.affected =
                    baseline.old.iter().filter(|name| !left.contains(name)).cloned().collect();
            }
        }
        Ok(evidence)
    }

    async fn run_checks_in(
        &mut self,
        cx: &mut SessionContext,
        workspace: Arc<Workspace>,
        checks: &[Check],
        tree: TestedTree,
        stop: &CancellationToken,
    ) -> Result<Vec<Evidence>, AgentError> {
        cx.transcript.record(Record::Checking { running: true });
        cx.transcript.flush().await?;
        let context = RunContext {
            workspace,
            sandbox: Arc::clone(&cx.sandbox),
            toolchains: Arc::clone(&cx.toolchains),
            session: cx.session.clone(),
            needs: cx.settings.needs,
            caches: self.caches.get(cx).await,
            limits: RunLimits::default(),
        };
        let (sender, mut progress) = mpsc::unbounded_channel();
        let mut observer = move |step| {
            // The receiver lives until the checks have ended.
            sender.send(step).ok();
        };
        let mut output = StreamRedactor::default();
        let mut changed = Vec::new();
        let running = journeyman_verify::run_checks(checks, &context, stop.clone(), &mut observer);
        tokio::pin!(running);
        let ran = loop {
            tokio::select! {
                biased;
                Some(step) = progress.recv() => {
                    changed.extend(changes_of(&step));
                    show_progress(cx, &mut output, step, tree).await?;
                }
                ran = &mut running => break ran?,
            }
        };
        while let Ok(step) = progress.try_recv() {
            changed.extend(changes_of(&step));
            show_progress(cx, &mut output, step, tree).await?;
        }
        cx.transcript.record(Record::Checking { running: false });
        if matches!(tree, TestedTree::Session | TestedTree::SessionAgain) {
            self.changes.record(changed);
        }
        let original_tests = tree == TestedTree::OriginalTests;
        let found = ran.into_iter().map(|mut evidence| {
            sort_by_cause(&mut evidence.diagnostics, &self.changed);
            Evidence { original_tests, ..evidence }
        });
        Ok(found.collect())
    }

    /// Returns the permitted checks, and evidence of the others with the reason why they didn't
    /// run.
    async fn authorize_checks(
        &self,
        cx: &mut SessionContext,
        approvals: &mut Approvals,
        stop: &CancellationToken,
    ) -> Result<(Vec<Check>, Vec<Evidence>), AgentError> {
        let commands = self.checks.iter().map(|check| check.command.clone()).collect();
        approvals.register_checks(commands);
        let mut permitted = Vec::new();
        let mut refused = Vec::new();
        for (place, check) in self.checks.clone().into_iter().enumerate() {
            let id = CheckPermissionId { what: "check", place };
            match self.authorize_check(cx, approvals, &check, id, stop).await? {
                None => permitted.push(check),
                Some((reason, enforcement)) => {
                    refused.push(journeyman_verify::refused_evidence(&check, reason, enforcement.as_ref()));
                }
            }
        }
        Ok((permitted, refused))
    }

    /// Asks policy, and a person if needed, for permission to run a check. Returns the reason why
    /// the check may not run, with the protections it would have had; `None` if it may run.
    async fn authorize_check(
        &self,
        cx: &mut SessionContext,
        approvals: &mut Approvals,
        check: &Check,
        id: CheckPermissionId,
        stop: &CancellationToken,
    ) -> Result<Option<(String, Option<Enforcement>)>, AgentError> {
        let enforcement = cx.sandbox.enforcement(&cx.settings.needs).await.ok();
        let confined = enforcement.as_ref().is_some_and(|it| it.first_unmet(&SandboxNeeds::ALL).is_none());
        let effects = Effects { command: Some(check.command.clone()), ..Effects::default() };
        let mut judged = approvals.judge_in_mode(CHECK_TOOL, &effects, cx.settings.mode, enforcement.clone());
        if judged.verdict.decision == Decision::Ask && confined && judged.verdict.rules.is_empty() {
            // The mode `ask` covers the calls of the model. A confined check is part of what the
            // user asked for and runs without a question. An unconfined check asks first, because
            // it runs the project's code, which the model has changed. A check also asks if a rule
            // demands it.
            judged.verdict.decision = Decision::Allow;
        }
        let CheckPermissionId { what, place } = id;
        let call = ToolUse {
            id: CallId::new(format!("{what}-{}-{place}", cx.transcript.state().counters.rounds)),
            name: CHECK_TOOL.to_owned(),
            input: json!({ "command": check.command }),
            malformed: None,
            signature: None,
        };
        let reason = approvals.authorize_check(cx, call, effects, judged, stop).await?;
        Ok(reason.map(|reason| (reason, enforcement)))
    }
}

/// Returns the files that a step of checks changed.
fn changes_of(step: &Progress) -> Vec<FileChange> {
    match step {
        Progress::Changed { changes } => changes.clone(),
        _ => Vec::new(),
    }
}

async fn show_progress(
    cx: &mut SessionContext,
    output: &mut StreamRedactor,
    step: Progress,
    tree: TestedTree,
) -> Result<(), AgentError> {
    let original_tests = tree == TestedTree::OriginalTests;
    match step {
        Progress::Output { text, .. } => {
            if let Some(text) = output.push(&text) {
                cx.transcript.emit(Event::CheckOutput { text });
            }
            return Ok(());
        }
        Progress::Started { check, .. } => {
            let Check { kind, command, directory, .. } = check;
            let before_task = tree == TestedTree::BeforeTask;
            cx.transcript.emit(Event::CheckStarted { kind, command, directory, original_tests, before_task });
        }
        Progress::Finished { evidence, .. } => {
            // The evidence has the end of the output.
            output.take_rest();
            // These say something of an earlier result, which is then shown again.
            if !matches!(tree, TestedTree::BeforeTask | TestedTree::SessionAgain) {
                cx.transcript.emit(Event::CheckResult { evidence: Evidence { original_tests, ..evidence } });
            }
        }
        Progress::GuardViolated { command, violations } => {
            cx.transcript.record_violations(Some(command), violations);
        }
        // The diff and the report show the files that checks changed.
        Progress::Changed { .. } => return Ok(()),
    }
    cx.transcript.flush().await
}

/// Feeds the failures back to the model as one structured message, and records the round with the
/// `checkpoint` of its tree. `changed` is true if files may have changed since the round before.
pub(crate) fn feed_back_failures(
    cx: &mut SessionContext,
    changed: bool,
    evidence: &[Evidence],
    findings: &[HonestyFinding],
    checkpoint: Option<u64>,
) {
    let how_to_edit = edit_instruction(cx.transcript.state().tool_calling());
    let iterations = cx.transcript.state().counters.iterations.saturating_add(1);
    cx.transcript.record(Record::Counters(TaskCounters { iterations, ..cx.transcript.state().counters }));
    let task = cx.transcript.state().task.as_ref();
    let (edits, earlier) = task.map_or((&[][..], &[][..]), |task| (&task.edits, &task.rounds));
    let unchanged = !earlier.is_empty() && !changed;
    let mut round = CheckedRound::new(iterations, evidence, findings);
    (round.checkpoint, round.edits) = (checkpoint, edits.len());
    let skip = edits.len().saturating_sub(MAX_RECALLED_EDITS);
    let text = Feedback {
        evidence,
        round: &round,
        earlier,
        findings,
        attempt: iterations,
        of: cx.settings.max_iterations,
        edits_summary: &edits.get(skip..).unwrap_or_default().join("\n"),
        unchanged: unchanged.then_some(how_to_edit),
    }
    .to_message();
    cx.transcript.record(Record::Failed(round));
    cx.transcript.add_user_text(text);
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::{Baseline, CheckKind, CheckOutcome, Mode, RunOutcome};
    use journeyman_verify::OverallOutcome;

    use super::check_round::TaskChange;
    use super::*;
    use crate::session::task_end::TaskEnd;
    use crate::test_context::TestContext;

    fn no_change() -> TaskChange {
        TaskChange::new(None, Vec::new())
    }

    fn verification(test: &mut TestContext, commands: &[&str]) -> Verification {
        let commands = commands.iter().map(|command| (*command).to_owned()).collect();
        test.cx.settings.checks = ChecksSetting::Custom(commands);
        let mut verification = Verification::new(Arc::new(|_: &str| None));
        let listing = test.cx.workspace.list(ListOptions::default()).unwrap();
        verification.find_checks(&test.cx, &mut test.approvals, &listing);
        verification
    }

    fn evidence(kind: CheckKind, outcome: CheckOutcome) -> Evidence {
        Evidence { duration_ms: 1, ..Evidence::new(kind, "cargo test", outcome) }
    }

    #[tokio::test]
    async fn an_unconfined_check_needs_a_person_and_is_refused_without_one() {
        let mut test = TestContext::new(&[]).await;
        test.cx.settings.mode = Mode::Ask;
        let mut verification = verification(&mut test, &["touch ran"]);
        let stop = CancellationToken::new();
        let evidence = verification
            .run_checks(&mut test.cx, &mut test.approvals, &mut no_change(), &stop)
            .await
            .unwrap();
        let [Evidence { outcome: CheckOutcome::NotRun { reason }, .. }] = &evidence[..] else {
            panic!("{evidence:?}")
        };
        assert!(reason.starts_with("it needs a person's permission"), "{reason}");
        assert!(!test.root.join("ran").exists());
        assert_eq!(journeyman_verify::overall_outcome(&evidence), OverallOutcome::NothingRan);
    }

    #[tokio::test]
    async fn a_rule_denies_one_check_and_the_others_run() {
        let mut test = TestContext::new(&[]).await;
        test.set_rules("[[rule]]\ncommand = ['touch']\ndecision = 'deny'\n[[rule]]\ncommand = ['true']\ndecision = 'allow'\n");
        let mut verification = verification(&mut test, &["touch ran", "true"]);
        let stop = CancellationToken::new();
        let evidence = verification
            .run_checks(&mut test.cx, &mut test.approvals, &mut no_change(), &stop)
            .await
            .unwrap();
        let outcomes: Vec<(&str, bool)> =
            evidence.iter().map(|one| (one.command.as_str(), one.outcome.has_passed())).collect();
        assert_eq!(outcomes, [("touch ran", false), ("true", true)]);
        assert!(!test.root.join("ran").exists());
        let kinds: Vec<&str> = test.events().await.iter().map(Event::kind).collect();
        assert_eq!(kinds, ["verify_started", "check_result", "check_started", "check_result"]);
        let running: Vec<bool> = test
            .records()
            .await
            .into_iter()
            .filter_map(|record| if let Record::Checking { running } = record { Some(running) } else { None })
            .collect();
        assert_eq!(running, [true, false], "a crash between the two belongs to the checks");
    }

    #[tokio::test]
    async fn feedback_is_one_message_and_counts_a_round() {
        let mut test = TestContext::new(&[]).await;
        test.cx.transcript.record(Record::Began);
        test.cx.transcript.record(Record::Edited { summary: "write_file: src/a.rs".to_owned() });
        let failed = CheckOutcome::Failed { exit_code: Some(101), reason: "exit code 101".to_owned() };
        let evidence = [evidence(CheckKind::Test, failed)];
        feed_back_failures(&mut test.cx, true, &evidence, &[], Some(7));
        let text = test.last_text();
        assert!(text.contains("cargo test") && text.contains("src/a.rs"), "{text}");
        let reloaded = test.reloaded_state().await;
        assert_eq!(reloaded.counters.iterations, 1);
        let task = reloaded.task.unwrap();
        assert_eq!(task.edits, ["write_file: src/a.rs"], "a restart knows the edits and the rounds");
        let round = &task.rounds[0];
        assert_eq!((round.attempt, round.count, round.checkpoint, round.edits), (1, 1, Some(7), 1));
        // The second attempt changed nothing: that isn't a change that failed.
        feed_back_failures(&mut test.cx, false, &evidence, &[], None);
        let text = test.last_text();
        assert!(text.contains("no file was changed since") && text.contains("call `edit_file`"), "{text}");
        assert!(!text.contains("touch their cause"), "{text}");
    }

    #[test]
    fn the_verdict_and_the_rounds_make_the_outcome() {
        let passed = || evidence(CheckKind::Test, CheckOutcome::Passed);
        let fails_as_it_did = || Evidence {
            baseline: Some(Baseline { old: vec!["TestAdd".to_owned()], ..Baseline::default() }),
            ..evidence(
                CheckKind::Test,
                CheckOutcome::Failed { exit_code: Some(1), reason: "exit code 1".to_owned() },
            )
        };
        let not_run = || evidence(CheckKind::Lint, CheckOutcome::NotRun { reason: "no clippy".to_owned() });
        for (verdict, evidence, iterations, outcome, summary) in [
            (OverallOutcome::Passed, vec![passed()], 0, RunOutcome::Verified, "verified by `cargo test`"),
            (
                OverallOutcome::Passed,
                vec![passed(), not_run()],
                2,
                RunOutcome::Verified,
                "verified by `cargo test`; 1 not run",
            ),
            (OverallOutcome::Failed, Vec::new(), 0, RunOutcome::ChecksFail, "finished, but checks fail"),
            (
                OverallOutcome::Failed,
                Vec::new(),
                1,
                RunOutcome::ChecksFail,
                "finished, but checks fail after a round of feedback",
            ),
            (
                OverallOutcome::NothingRan,
                vec![not_run()],
                0,
                RunOutcome::Unverified,
                "finished; what would prove the change could not run (no clippy)",
            ),
            (
                OverallOutcome::NothingRan,
                vec![evidence(CheckKind::Types, CheckOutcome::Passed), fails_as_it_did()],
                0,
                RunOutcome::Unverified,
                "finished, but not verified: nothing new fails; failed before the task as well: TestAdd",
            ),
            (
                OverallOutcome::NothingRan,
                vec![evidence(
                    CheckKind::Test,
                    CheckOutcome::NotRun { reason: "it passed without running a single test".to_owned() },
                )],
                0,
                RunOutcome::Unverified,
                "finished, but not verified: `cargo test`: it passed without running a single test",
            ),
        ] {
            assert_eq!(
                task_end_for_verdict(verdict, &evidence, iterations, &|_| false),
                TaskEnd::new(outcome, summary)
            );
        }
    }
}
