//! The report at the end of a task.

use std::time::Duration;

use journeyman_protocol::{
    AgentState, Event, FileChange, FileChangeKind, FileDiffStat, GuardViolation, Mode, PlanComparison,
    RunOutcome, RunReport, TurnPhase,
};
use journeyman_store::StoreError;
use journeyman_workspace::{DiffFileStat, IgnoredChange};

use super::agent_end::{agent_report, amend_for_failed_members};
use super::context::SessionContext;
use super::limits::spent_usd;
use super::task_end::TaskEnd;
use crate::AgentError;
use crate::agents::role::AgentOutputSpec;
use crate::approval::ask_user::find_closing_question;
use crate::calls::runner::ToolRunner;
use crate::isolation::checkpoints::Checkpoints;
use crate::supervision::Supervision;
use crate::transcript::log::redact_value;
use crate::transcript::record::Record;
use crate::verification::Verification;

/// Maximum bytes of diff in a report. `git diff` shows the rest.
const MAX_DIFF_BYTES: usize = 256 * 1024;
/// Maximum number of ignored files named in a summary, which is one line.
const MAX_NAMED_IGNORED_FILES: usize = 5;

/// The stages that the report of a task is built from.
pub(super) struct TaskReporter<'a> {
    pub(super) cx: &'a mut SessionContext,
    pub(super) runner: &'a ToolRunner,
    pub(super) supervision: &'a mut Supervision,
    pub(super) verification: &'a mut Verification,
    pub(super) checkpoints: &'a mut Checkpoints,
    /// The text of the model's last reply.
    pub(super) last_text: &'a str,
}

impl TaskReporter<'_> {
    /// Ends a task: builds its report and writes its last entries. Problems with the diff or the
    /// changes become warnings.
    pub(super) async fn finish(&mut self, end: TaskEnd, took: Duration) -> RunReport {
        self.runner.record_background_violations(self.cx).await;
        let end = downgrade_for_violations(end, &self.cx.transcript.state().violations);
        let end = amend_for_failed_members(end, self.cx);
        let mut problems = Vec::new();
        let has_evidence = !self.verification.evidence().is_empty();
        let (looked, unverified) =
            changes_to_report(self.cx, self.checkpoints, has_evidence, end.outcome).await;
        let changes = match looked {
            Ok(changes) => changes,
            Err(error) => {
                problems.push(error.to_string());
                Vec::new()
            }
        };
        let end = self.amend_for_closing_question(end, changes.is_empty());
        let (diff, diffstat) = match diff_changes(self.cx, self.checkpoints, changes.is_empty()).await {
            Ok(diff) => diff,
            Err(problem) => {
                problems.push(problem);
                (String::new(), Vec::new())
            }
        };
        let cost_usd = spent_usd(self.cx);
        let agent = agent_report(self.cx, &end);
        let output = match &self.cx.transcript.state().plan {
            Some(plan) if end.outcome == RunOutcome::Planned => Some(plan.to_string()),
            _ => agent.as_ref().and_then(|agent| agent.output.as_ref()).map(AgentOutputSpec::format_output),
        };
        let copy = self.cx.copy.as_ref().map(|copy| copy.kept_report());
        // `jm undo` works on the user's tree, so it can't undo changes that are only in a copy.
        let ignored = self.checkpoints.ignored_changes(self.cx).await;
        let undo = ((!changes.is_empty() || ignored.iter().any(|it| it.is_undoable)) && copy.is_none())
            .then(|| format!("jm undo {}", self.cx.session));
        // Later changes aren't verified.
        let tree = self.verification.verified_tree().filter(|_| end.outcome == RunOutcome::Verified);
        let plan = compare_plan(self.cx, &changes);
        let report = RunReport {
            session: self.cx.session.clone(),
            outcome: end.outcome,
            exit_code: end.outcome.exit_code(),
            summary: end.summary + &describe_ignored(&ignored),
            context_exceeded: end.context_exceeded,
            text: output.unwrap_or_else(|| self.last_text.to_owned()),
            changes,
            diff,
            diffstat,
            violations: self.cx.transcript.state().violations.clone(),
            findings: self.verification.honesty_findings().to_vec(),
            strength: self.verification.strength().cloned(),
            evidence: self.verification.replace_evidence(Vec::new()),
            tree,
            iterations: self.cx.transcript.state().counters.iterations,
            turns: self.cx.transcript.state().counters.turns,
            usage: self.cx.transcript.state().counters.total_usage(),
            cost_usd,
            model: self.cx.model.name(),
            undo,
            copy,
            commit: None,
            agent,
            plan,
            candidates: Vec::new(),
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        };
        let report = redact_value(&self.cx.redactor, &report).unwrap_or(report);
        for message in problems {
            self.cx.transcript.emit(Event::Warning { message });
        }
        if report.outcome == RunOutcome::Verified && !report.changes.is_empty() && report.copy.is_none() {
            self.cx.transcript.emit(Event::Landed { changes: report.changes.clone(), copy: None });
        }
        self.cx.transcript.close_calls("not run: the task ended first");
        self.supervision.record_todo_changes(self.cx);
        self.cx.transcript.set_agent_state(AgentState::Ready);
        self.cx.transcript.set_phase(TurnPhase::Ready);
        self.cx.transcript.record(Record::Ended { outcome: report.outcome, unverified });
        self.cx.transcript.emit(Event::Done { report: Box::new(report.clone()) });
        write_last_entries(self.cx, report).await
    }
}

impl TaskReporter<'_> {
    /// Changes the end of an unverified task whose last text ends in a question: the task waits for
    /// an answer if nothing changed.
    fn amend_for_closing_question(&self, end: TaskEnd, changed_nothing: bool) -> TaskEnd {
        if end.outcome != RunOutcome::Unverified
            || self.cx.asks_question
            || self.cx.settings.mode == Mode::Plan
        {
            return end;
        }
        let asked = find_closing_question(self.last_text).or_else(|| self.cx.unanswered_question.clone());
        let Some(question) = asked.filter(|question| !question.is_empty()) else { return end };
        match changed_nothing {
            true => TaskEnd::new(
                RunOutcome::NeedsAnswer,
                format!("not finished: it changed nothing and asks: {question}"),
            ),
            false => TaskEnd { summary: format!("{}; it asks: {question}", end.summary), ..end },
        }
    }
}

/// Compares the plan of a task with its changes, if it has both.
fn compare_plan(cx: &SessionContext, changes: &[FileChange]) -> Option<PlanComparison> {
    let plan = cx.transcript.state().plan.as_ref().filter(|_| cx.role().is_none() && !changes.is_empty())?;
    Some(plan.compare(changes.iter().map(|change| &change.path)))
}

/// Returns the changes to report: those since the last verified state if checks ran, or else those
/// of this task. Also returns the checkpoint since which changes are unverified, if any.
async fn changes_to_report(
    cx: &mut SessionContext,
    checkpoints: &mut Checkpoints,
    has_evidence: bool,
    outcome: RunOutcome,
) -> (Result<Vec<FileChange>, AgentError>, Option<u64>) {
    let earlier = cx.transcript.state().unverified;
    // In an isolated copy, changes are relative to the user's tree, whatever was verified.
    let in_place = cx.copy.is_none();
    let all = checkpoints.unverified_changes(cx).await;
    let unverified = match &all {
        _ if outcome == RunOutcome::Verified || !in_place => None,
        _ if cx.settings.mode == Mode::Plan => earlier,
        Ok(changes) if changes.is_empty() => None,
        Ok(_) => checkpoints.compared_checkpoint().map(|id| id.0),
        Err(_) => cx.transcript.state().unverified_since(),
    };
    let looked = match !has_evidence && earlier.is_some() && in_place {
        true => checkpoints.changes(cx).await,
        false => all,
    };
    (looked, unverified)
}

/// Writes the last entries. If the log refuses them, the outcome becomes an error, because an
/// unrecorded task doesn't count as verified.
async fn write_last_entries(cx: &mut SessionContext, mut report: RunReport) -> RunReport {
    let written = cx.transcript.flush().await;
    let Err(problem) = written else { return report };
    if matches!(problem, AgentError::Store(StoreError::Gone { .. })) {
        // A missing session also explains earlier problems, such as a missing checkpoint.
        report.summary = problem.to_string();
    } else if report.outcome != RunOutcome::Error {
        report.summary = format!("{} (before that: {})", problem, report.summary);
    }
    report.outcome = RunOutcome::Error;
    report.exit_code = RunOutcome::Error.exit_code();
    report
}

/// Returns the diff of the changes, up to its limit, and the size of each file's difference.
async fn diff_changes(
    cx: &SessionContext,
    checkpoints: &Checkpoints,
    nothing: bool,
) -> Result<(String, Vec<FileDiffStat>), String> {
    if nothing {
        return Ok((String::new(), Vec::new()));
    }
    let diff = checkpoints.diff(cx, MAX_DIFF_BYTES).await.map_err(|error| error.to_string())?;
    let Some(diff) = diff else { return Ok((String::new(), Vec::new())) };
    let size = |lines: usize| u64::try_from(lines).unwrap_or(u64::MAX);
    let stat = |file: &DiffFileStat| FileDiffStat {
        path: file.path.clone(),
        added: size(file.added),
        removed: size(file.removed),
    };
    let diffstat = diff.files.iter().map(stat).collect();
    let cut = if diff.truncated { "\n… the diff is cut here\n" } else { "" };
    Ok((format!("{}{cut}", cx.redactor.redact(&diff.text)), diffstat))
}

/// Turns a verified outcome into an unverified one if a command violated a guard: its other effects
/// are unknown.
fn downgrade_for_violations(end: TaskEnd, violations: &[GuardViolation]) -> TaskEnd {
    let Some(first) = violations.first() else { return end };
    let more = match violations.len() - 1 {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let did = format!("a command did what it may not: {first}{more}");
    let (outcome, summary) = match end.outcome {
        RunOutcome::Verified => {
            (RunOutcome::Unverified, format!("not verified, though checks passed: {did}"))
        }
        other => (other, format!("{}; {did}", end.summary)),
    };
    TaskEnd { outcome, summary, ..end }
}

/// Describes changes to ignored files for the end of a summary. A change that a command of another
/// session may also have made is listed apart.
fn describe_ignored(ignored: &[IgnoredChange]) -> String {
    let names = |all: Vec<String>| {
        let more = all.len().saturating_sub(MAX_NAMED_IGNORED_FILES);
        let named = all.get(..all.len() - more).unwrap_or_default().join(", ");
        if more > 0 { format!("{named} and {more} more") } else { named }
    };
    let verb =
        |change: &FileChange| if change.kind == FileChangeKind::Deleted { "deleted" } else { "changed" };
    let described = |it: &IgnoredChange| format!("{} ({})", it.change.path, verb(&it.change));
    let own = || ignored.iter().filter(|it| !it.is_shared);
    let lost = own().filter(|it| !it.is_undoable).map(|it| it.change.path.to_string());
    let (all, lost): (Vec<String>, Vec<String>) = (own().map(described).collect(), lost.collect());
    let mut text = match (all.len(), lost.len()) {
        (0, _) => String::new(),
        (_, 0) => format!("; ignored files of the run: {}", names(all)),
        (_, count) => format!(
            "; ignored files of the run: {}; undo can't bring back {count} of them: {}",
            names(all),
            names(lost)
        ),
    };
    let shared: Vec<String> = ignored.iter().filter(|it| it.is_shared).map(described).collect();
    if !shared.is_empty() {
        text.push_str(&format!(
            "; ignored files that this run or another one changed at the same time, so that undo leaves them: {}",
            names(shared)
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::{GuardViolationKind, RelPath};
    use journeyman_tools::Registry;
    use serde_json::json;

    use std::sync::Arc;

    use super::*;
    use crate::supervision::schedule::Schedule;
    use crate::supervision::todos::SharedTodoList;
    use crate::test_context::{SECRET, TestContext, call};

    async fn finish(test: &mut TestContext, outcome: RunOutcome) -> RunReport {
        let todos = Arc::new(SharedTodoList::new(crate::Clock::new(|| journeyman_protocol::UnixMillis(1))));
        let mut supervision = Supervision::new(todos, Arc::new(Schedule::default()), 0);
        let runner = ToolRunner::new(Arc::new(Registry::default()), Arc::clone(&test.inbox));
        let mut verification = Verification::new(Arc::new(|_: &str| None));
        let mut report = TaskReporter {
            cx: &mut test.cx,
            runner: &runner,
            supervision: &mut supervision,
            verification: &mut verification,
            checkpoints: &mut test.checkpoints,
            last_text: "done",
        };
        report.finish(TaskEnd::new(outcome, "finished"), Duration::from_secs(2)).await
    }

    fn violation() -> GuardViolation {
        GuardViolation {
            path: RelPath::parse(".git/config").unwrap(),
            kind: GuardViolationKind::Changed,
            repository: false,
            moved_to: None,
            put_back: true,
            problem: None,
            call: None,
        }
    }

    #[tokio::test]
    async fn the_report_is_the_last_entry_and_closes_every_call() {
        let mut test = TestContext::new(&[("a.rs", "one\n")]).await;
        test.cx.transcript.record(Record::Began);
        test.checkpoints.wait_until_recorded(&mut test.cx).await.unwrap();
        test.write("a.rs", &format!("{SECRET}\n"));
        test.record_reply(&[call("c1", "read_file", json!({}))]);
        let report = finish(&mut test, RunOutcome::Verified).await;
        assert_eq!((report.outcome, report.text.as_str()), (RunOutcome::Verified, "done"));
        assert_eq!(report.changes.iter().map(|change| change.path.to_string()).collect::<Vec<_>>(), ["a.rs"]);
        assert!(report.diff.contains("-one") && !report.diff.contains(SECRET), "{}", report.diff);
        assert_eq!(report.undo, Some(format!("jm undo {}", test.cx.session)));
        assert!(test.cx.transcript.state().is_settled());
        let events = test.events().await;
        assert!(events.iter().any(|event| matches!(event, Event::Landed { copy: None, .. })), "{events:?}");
        assert_eq!(events.last(), Some(&Event::Done { report: Box::new(report) }));
        assert_eq!(test.reloaded_state().await.outcome, Some(RunOutcome::Verified));
    }

    #[tokio::test]
    async fn a_guard_violation_takes_the_proof_away() {
        let mut test = TestContext::new(&[]).await;
        test.cx.transcript.record_violations(None, vec![violation()]);
        let report = finish(&mut test, RunOutcome::Verified).await;
        assert_eq!(report.outcome, RunOutcome::Unverified);
        assert!(report.summary.starts_with("not verified, though checks passed"), "{}", report.summary);
        let report = finish(&mut test, RunOutcome::ChecksFail).await;
        assert_eq!(report.outcome, RunOutcome::ChecksFail);
        assert!(report.summary.starts_with("finished; a command did"), "{}", report.summary);
    }

    #[tokio::test]
    async fn changes_of_an_unverified_task_are_to_be_verified_by_the_next() {
        let mut test = TestContext::new(&[("a.rs", "one\n")]).await;
        test.cx.transcript.record(Record::Began);
        let id = test.checkpoints.wait_until_recorded(&mut test.cx).await.unwrap();
        test.write("a.rs", "two\n");
        finish(&mut test, RunOutcome::Unverified).await;
        assert_eq!(test.reloaded_state().await.unverified, Some(id.0));
    }

    #[test]
    fn ignored_files_are_named_by_what_undo_can_do() {
        let change = |name: &str, is_undoable: bool, is_shared: bool| IgnoredChange {
            change: FileChange { path: RelPath::parse(name).unwrap(), kind: FileChangeKind::Modified },
            is_undoable,
            is_shared,
        };
        assert_eq!(describe_ignored(&[]), "");
        assert_eq!(
            describe_ignored(&[change(".env", true, false)]),
            "; ignored files of the run: .env (changed)"
        );
        assert_eq!(
            describe_ignored(&[
                change(".env", true, false),
                change("db", false, false),
                change("log", true, true)
            ]),
            "; ignored files of the run: .env (changed), db (changed); undo can't bring back 1 of them: db; \
             ignored files that this run or another one changed at the same time, so that undo leaves them: \
             log (changed)"
        );
    }
}
