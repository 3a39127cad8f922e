//! Formats the result of a run for people.

use journeyman_protocol::{
    CandidateReport, CheckOutcome, CommitReport, CopyReport, CopyState, Evidence, FileChangeKind,
    FileConflict, FileDiffStat, GuardViolation, HonestyFinding, PlanComparison, RelPath, RunOutcome,
    RunReport, SessionId,
};
use journeyman_terminal::Paint;

use crate::format::{describe_usage, format_count, format_seconds, outcome_name, printable};
use crate::resume::resume_command;

/// Maximum number of forbidden changes that are listed; `--json` has all.
const MAX_LISTED_VIOLATIONS: usize = 20;
/// Maximum number of files that are listed as running code.
const MAX_LISTED_FILES: usize = 10;

/// Maximum number of changed lines of one file that are shown without their number.
const MAX_SHORT_DIFF_LINES: u64 = 40;
/// Maximum number of files whose size is listed; `--json` has all.
const MAX_STAT_FILES: usize = 100;

/// The parts of a report that its reader has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShownParts {
    /// The summary, such as an error's message.
    pub summary: bool,
    /// The checks of the last round, each with its result.
    pub evidence: bool,
}

/// Formats the size of each file's difference, a line each; nothing for one short diff.
#[must_use]
pub fn format_diffstat(files: &[FileDiffStat], paint: Paint) -> String {
    let mut out = String::new();
    let is_short = |file: &FileDiffStat| file.added.saturating_add(file.removed) <= MAX_SHORT_DIFF_LINES;
    if let [] | [_] = files
        && files.iter().all(is_short)
    {
        return out;
    }
    for FileDiffStat { path, added, removed } in files.iter().take(MAX_STAT_FILES) {
        let (added, removed) = (paint.green(&format!("+{added}")), paint.red(&format!("−{removed}")));
        push_line(&mut out, &format!("{path}  {added} {removed}"));
    }
    if let Some(more) = files.len().checked_sub(MAX_STAT_FILES).filter(|more| *more > 0) {
        push_line(&mut out, &format!("… and {}", format_count(more, "more file")));
    }
    push_line(&mut out, "");
    out
}

/// Formats changes, checks, tokens, cost and the undo command, without the diff and the model's
/// text. What the reader has seen already is left out.
#[must_use]
pub fn format_report(report: &RunReport, shown: ShownParts, paint: Paint) -> String {
    let mut out = String::new();
    for change in report.changes.iter().filter(|_| report.diff.is_empty()) {
        let kind = match change.kind {
            FileChangeKind::Added => "added",
            FileChangeKind::Modified => "modified",
            FileChangeKind::Deleted => "deleted",
        };
        push_line(&mut out, &format!("{kind} {}", change.path));
    }
    out.push_str(&list_executed_files(report.changes.iter().map(|change| &change.path), paint));
    out.push_str(&format_violations(&report.violations, paint));
    if !shown.evidence {
        out.push_str(&format_findings(&report.findings, paint));
    }
    for one in report.evidence.iter().filter(|_| !shown.evidence) {
        push_line(&mut out, &format_evidence(one, paint));
    }
    out.push_str(&format_plan_departures(report.plan.as_ref(), paint));
    if !report.candidates.is_empty() {
        push_line(&mut out, "");
        out.push_str(&format_candidates(&report.candidates, paint));
        push_line(&mut out, "");
    }
    let summary = printable(&report.summary);
    let head = match report.outcome {
        RunOutcome::Verified | RunOutcome::Answered | RunOutcome::Planned => paint.green(&summary),
        RunOutcome::Unverified | RunOutcome::Limit | RunOutcome::Conflict | RunOutcome::NeedsAnswer => {
            paint.yellow(&summary)
        }
        _ => paint.red(&summary),
    };
    if !shown.summary {
        push_line(&mut out, &paint.bold(&head));
    }
    push_line(&mut out, &format_cost(report));
    let (copy, commit) = (report.copy.as_ref(), report.commit.as_ref());
    out.push_str(&format_work_location(&report.session, copy, commit, "", paint));
    if let Some(command) = resume_command(report) {
        push_line(&mut out, &format!("go on with: {command}"));
    }
    if let Some(undo) = &report.undo {
        push_line(&mut out, &format!("take it back with: {undo}"));
    }
    out
}

/// Formats the requests, tokens, cost and session of a run.
#[must_use]
pub fn format_cost(report: &RunReport) -> String {
    let usage = describe_usage(&report.usage, report.cost_usd);
    format!("{} · {usage} · session {}", format_turns(report), report.session)
}

/// Lists changes by commands that no command may make, a line each with what became of them.
#[must_use]
pub fn format_violations(violations: &[GuardViolation], paint: Paint) -> String {
    let lines: Vec<String> = violations.iter().map(printable).collect();
    format_list(&paint.red("not a command's to do:"), &lines, MAX_LISTED_VIOLATIONS, "more")
}

/// Lists the places where a change makes tests or checks say less, those that block first.
#[must_use]
pub fn format_findings(findings: &[HonestyFinding], paint: Paint) -> String {
    let (blocking, others): (Vec<&HonestyFinding>, Vec<&HonestyFinding>) =
        findings.iter().partition(|finding| finding.is_blocking());
    let lines =
        |findings: Vec<&HonestyFinding>| -> Vec<String> { findings.into_iter().map(printable).collect() };
    format_list(&paint.red("makes tests say less:"), &lines(blocking), MAX_LISTED_VIOLATIONS, "more")
        + &format_list(&paint.yellow("worth a look:"), &lines(others), MAX_LISTED_VIOLATIONS, "more")
}

/// Lists where a change departs from the plan of its task.
fn format_plan_departures(plan: Option<&PlanComparison>, paint: Paint) -> String {
    let Some(PlanComparison { outside, untouched }) = plan else { return String::new() };
    let outside: Vec<String> = outside.iter().map(printable).collect();
    let untouched: Vec<String> = untouched.iter().map(printable).collect();
    format_list(&paint.yellow("not in the plan:"), &outside, MAX_LISTED_FILES, "more files")
        + &format_list(&paint.yellow("planned and not changed:"), &untouched, MAX_LISTED_FILES, "more files")
}

/// Lists the files that run code outside of any sandbox at the next build; empty where none does.
#[must_use]
pub fn list_executed_files<'a>(paths: impl Iterator<Item = &'a RelPath>, paint: Paint) -> String {
    let describe = |path| Some(format!("{path}: {}", journeyman_policy::execution_reason(path)?));
    let lines: Vec<String> = paths.filter_map(describe).collect();
    format_list(&paint.yellow("runs code on your machine:"), &lines, MAX_LISTED_FILES, "more files")
}

/// Lists at most `max` items, each after `head`, and says how many more there are.
fn format_list(head: &str, items: &[String], max: usize, more: &str) -> String {
    let mut out = String::new();
    for item in items.iter().take(max) {
        push_line(&mut out, &format!("{head} {item}"));
    }
    if items.len() > max {
        push_line(&mut out, &format!("{head} {} {more}", items.len() - max));
    }
    out
}

/// Formats a check and its result.
#[must_use]
pub fn format_evidence(evidence: &Evidence, paint: Paint) -> String {
    let took = format_seconds(evidence.duration_ms);
    let result = match &evidence.outcome {
        CheckOutcome::Passed => format!("{} in {took}", paint.green("passed")),
        CheckOutcome::Failed { reason, .. } => {
            format!("{} in {took}", paint.red(&format!("failed ({})", printable(&reason))))
        }
        CheckOutcome::NotRun { reason } => paint.yellow(&format!("not run ({})", printable(&reason))),
    };
    let with = if evidence.original_tests { " with the original tests" } else { "" };
    format!("{}: {}{with} — {result}", evidence.kind, printable(&evidence.label()))
}

/// Formats the location of a session's work and the next commands. `land_flags` are flags for `jm
/// land`.
#[must_use]
pub fn format_work_location(
    session: &SessionId,
    copy: Option<&CopyReport>,
    commit: Option<&CommitReport>,
    land_flags: &str,
    paint: Paint,
) -> String {
    let mut out = String::new();
    if let Some(CopyReport { tier, state, merged, conflicts }) = copy {
        let named: Vec<String> = merged.iter().map(ToString::to_string).collect();
        if !named.is_empty() {
            let how =
                if *state == CopyState::Landed { "merged with your own changes" } else { "to be merged" };
            push_line(&mut out, &format!("{how}: {}", named.join(", ")));
        }
        for FileConflict { path, reason } in conflicts {
            push_line(&mut out, &format!("{} {path}: {}", paint.red("conflict"), printable(&reason)));
        }
        if *state == CopyState::Kept {
            push_line(&mut out, &format!("kept in its copy ({tier}); your files are as they were"));
            push_line(&mut out, &format!("look at it with: jm land {session} --dry-run"));
            push_line(&mut out, &format!("land it with: jm land {session}{land_flags}"));
            push_line(&mut out, &format!("drop it with: jm discard {session}"));
        }
    }
    if let Some(CommitReport { id, branch, subject }) = commit {
        let on = branch.as_ref().map(|branch| format!(" on {branch}")).unwrap_or_default();
        let short = id.get(..10).unwrap_or(id);
        push_line(&mut out, &printable(&format_args!("committed {short}{on}: {subject}")));
    }
    out
}

/// Formats candidates as a table, one line each.
#[must_use]
pub fn format_candidates(all: &[CandidateReport], paint: Paint) -> String {
    let mut out = String::new();
    for candidate in all {
        let outcome = match candidate.outcome {
            Some(RunOutcome::Verified) => paint.green("verified"),
            Some(outcome) => paint.yellow(&outcome_name(outcome)),
            None => paint.yellow("cut off"),
        };
        let state = match candidate.state {
            CopyState::Landed => "landed",
            CopyState::Kept => "kept",
            CopyState::Discarded => "gone",
        };
        let cost = candidate.cost_usd.map(|usd| format!("  ${usd:.4}")).unwrap_or_default();
        let CandidateReport { number, session, added, removed, .. } = candidate;
        let (files, turns) = (format_count(candidate.files, "file"), format_count(candidate.turns, "turn"));
        let line = format!(
            "[{number}]  {session}  {outcome}  +{added} −{removed} in {files}  {turns}{cost}  {state}"
        );
        push_line(&mut out, &line);
        if candidate.outcome != Some(RunOutcome::Verified) {
            push_line(&mut out, &paint.dim(&format!("     {}", printable(&candidate.summary))));
        }
    }
    out
}

fn push_line(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

fn format_turns(report: &RunReport) -> String {
    let turns = format_count(report.turns, "turn");
    match report.iterations {
        0 => turns,
        rounds => format!("{turns}, {} of feedback", format_count(rounds, "round")),
    }
}
