//! What a finished run says.

use std::sync::Arc;
use std::time::Duration;

use journeyman_protocol::{
    AgentState, Event, FileChange, FileChangeKind, GuardViolation, Mode, RunOutcome, RunReport, TurnPhase,
};
use journeyman_store::StoreError;
use journeyman_workspace::IgnoredChange;

use crate::AgentError;
use crate::session::turn::{End, Worker, blocking};
use crate::transcript::log::redacted;
use crate::transcript::record::Record;

/// Bytes of diff in the report. What a person reads in one sitting; `git diff` shows the rest.
const MAX_DIFF: usize = 256 * 1024;
/// Ignored files named in a summary, which is one line.
const MAX_NAMED: usize = 5;

/// Closes a task: the diff, the books, the last entry. Never fails: what can't be said is left out and named.
pub(crate) async fn finish(worker: &mut Worker, end: End, took: Duration) -> RunReport {
    worker.note_background_violations();
    let end = without_violation(end, &worker.state.violations);
    let mut problems = Vec::new();
    let (looked, unverified) = look_at_changes(worker, end.outcome).await;
    let changes = match looked {
        Ok(changes) => changes,
        Err(error) => {
            problems.push(error.to_string());
            Vec::new()
        }
    };
    let diff = match diff(worker, changes.is_empty()).await {
        Ok(diff) => diff,
        Err(problem) => {
            problems.push(problem);
            String::new()
        }
    };
    let cost_usd = worker.settings.price.as_ref().map(|price| price.cost(&worker.state.books.usage));
    let copy = worker.parts.copy.as_ref().map(|copy| copy.kept());
    // What isn't in the user's tree can't be taken back there.
    let ignored = worker.ignored_changes().await;
    let undo = ((!changes.is_empty() || ignored.iter().any(|it| it.is_undoable)) && copy.is_none())
        .then(|| format!("jm undo {}", worker.session));
    let report = RunReport {
        session: worker.session.clone(),
        outcome: end.outcome,
        exit_code: end.outcome.exit_code(),
        summary: end.summary + &describe_ignored(&ignored),
        text: worker.tally.last_text.clone(),
        changes,
        diff,
        violations: worker.state.violations.clone(),
        evidence: std::mem::take(&mut worker.tally.evidence),
        iterations: worker.state.books.iterations,
        turns: worker.state.books.turns,
        usage: worker.state.books.usage,
        cost_usd,
        model: worker.parts.model.name(),
        undo,
        copy,
        commit: None,
        candidates: Vec::new(),
        duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
    };
    let report = redacted(&worker.parts.redactor, &report).unwrap_or(report);
    for message in problems {
        worker.log.emit(Event::Warning { message });
    }
    if report.outcome == RunOutcome::Verified && !report.changes.is_empty() && report.copy.is_none() {
        worker.log.emit(Event::Landed { changes: report.changes.clone(), copy: None });
    }
    worker.close_calls("not run: the task ended first");
    worker.note_todos();
    worker.become_(AgentState::Ready);
    worker.at(TurnPhase::Ready);
    worker.note(Record::Ended { outcome: report.outcome, unverified });
    worker.log.emit(Event::Done { report: Box::new(report.clone()) });
    close(worker, report).await
}

/// What passed its checks isn't verified where a command did what it may not: what else it did nobody knows.
fn without_violation(end: End, violations: &[GuardViolation]) -> End {
    let Some(first) = violations.first() else { return end };
    let more = match violations.len() - 1 {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let did = format!("a command did what it may not: {first}{more}");
    match end.outcome {
        RunOutcome::Verified => {
            End::new(RunOutcome::Unverified, format!("not verified, though checks passed: {did}"))
        }
        other => End::new(other, format!("{}; {did}", end.summary)),
    }
}

/// Describes the changes to ignored files, as the end of a report's summary. A change that a command of another session
/// may have made as well is not called the run's.
fn describe_ignored(ignored: &[IgnoredChange]) -> String {
    let names = |all: Vec<String>| {
        let more = all.len().saturating_sub(MAX_NAMED);
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

/// The changes that the report shows: what checks have looked at, or else what this task changed. Beside them the
/// checkpoint since which there are changes that nothing has verified.
async fn look_at_changes(
    worker: &mut Worker,
    outcome: RunOutcome,
) -> (Result<Vec<FileChange>, AgentError>, Option<u64>) {
    let earlier = worker.state.unverified;
    // A copy is compared with the user's tree, whatever was verified of it.
    let in_place = worker.parts.copy.is_none();
    let all = worker.unverified_changes().await;
    let unverified = match &all {
        _ if outcome == RunOutcome::Verified || !in_place => None,
        _ if worker.settings.mode == Mode::Plan => earlier,
        Ok(changes) if changes.is_empty() => None,
        Ok(_) => worker.tally.compared.map(|id| id.0),
        Err(_) => worker.state.unverified_since(),
    };
    let looked = match worker.tally.evidence.is_empty() && earlier.is_some() && in_place {
        true => worker.changes().await,
        false => all,
    };
    (looked, unverified)
}

/// Writes the last entries. A log that refuses them turns the outcome into an error: what is not on
/// record has not been verified.
async fn close(worker: &mut Worker, mut report: RunReport) -> RunReport {
    let written = worker.flush().await;
    let Err(problem) = written else { return report };
    if matches!(problem, AgentError::Store(StoreError::Gone { .. })) {
        // Whatever went wrong before that, such as a checkpoint that wasn't there, came of the same.
        report.summary = problem.to_string();
    } else if report.outcome != RunOutcome::Error {
        report.summary = format!("{} (before that: {})", problem, report.summary);
    }
    report.outcome = RunOutcome::Error;
    report.exit_code = RunOutcome::Error.exit_code();
    report
}

async fn diff(worker: &mut Worker, nothing: bool) -> Result<String, String> {
    if nothing {
        return Ok(String::new());
    }
    let compared = match (&worker.parts.copy, worker.tally.compared) {
        (Some(copy), _) => {
            let copy = Arc::clone(copy);
            let compare = move || copy.diff(&copy.changes()?, MAX_DIFF);
            blocking("comparing the copy", compare).await
        }
        (None, Some(id)) => {
            let workspace = Arc::clone(&worker.parts.workspace);
            blocking("comparing the tree", move || workspace.diff_since(&id, MAX_DIFF)).await
        }
        (None, None) => return Ok(String::new()),
    };
    let diff = compared.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
    let cut = if diff.truncated { "\n… the diff is cut here\n" } else { "" };
    Ok(format!("{}{cut}", worker.parts.redactor.redact(&diff.text)))
}
