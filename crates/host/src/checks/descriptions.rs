//! Describes checks and their results for people.

use journeyman_agent::verify::{Check, SetupPlan};
use journeyman_protocol::{CheckOutcome, Event, Evidence, RelPath};
use journeyman_terminal::{Style, StyledLine};

use super::{CheckVerdict, RoundResult, SelectedChecks};
use crate::event_text::describe_event;
use crate::format::{format_count, format_seconds, printable};

/// Columns of a kind's name.
const KIND_COLUMNS: usize = 8;

/// Describes a check: its command and directory, why it was found, and why it doesn't run.
#[must_use]
pub fn describe_check(check: &Check, reason: Option<&str>) -> Vec<StyledLine> {
    let left_out = reason.or(check.blocked.as_deref());
    let kind = format!("{:<KIND_COLUMNS$} ", check.kind.to_string());
    let place = describe_directory(check.directory.as_ref());
    let style = if left_out.is_some() { Style::Dim } else { Style::Strong };
    let head = StyledLine::new(Style::Plain, kind).with(style, printable(&check.command)).with_text(place);
    let indent = " ".repeat(KIND_COLUMNS + 1);
    let mut lines = vec![head, StyledLine::new(Style::Dim, format!("{indent}{}", printable(&check.why)))];
    if let Some(reason) = left_out {
        let mark = if left_out == check.blocked.as_deref() { "can't run" } else { "not run" };
        lines.push(
            StyledLine::new(Style::Plain, indent.clone())
                .with(Style::Warning, format!("{mark}: {}", printable(reason))),
        );
    }
    if let Some(fix) = &check.fix {
        lines.push(StyledLine::new(Style::Dim, format!("{indent}repairs with: {}", printable(fix))));
    }
    lines
}

/// Describes the result of a check: one line, and the diagnostics of a failure.
#[must_use]
pub fn describe_result(evidence: &Evidence) -> Vec<StyledLine> {
    let kind = format!(" {:<KIND_COLUMNS$} ", evidence.kind.to_string());
    let place = describe_directory(evidence.directory.as_ref());
    let took = format_seconds(evidence.duration_ms);
    let (mark, said) = match &evidence.outcome {
        CheckOutcome::Passed => (StyledLine::new(Style::Good, "✓"), took),
        CheckOutcome::Failed { reason, .. } => {
            (StyledLine::new(Style::Bad, "✗"), format!("{took}, {}", printable(reason)))
        }
        CheckOutcome::NotRun { reason } => {
            (StyledLine::new(Style::Warning, "–"), format!("not run: {}", printable(reason)))
        }
    };
    let head = mark.with_text(kind).with(Style::Strong, printable(&evidence.command)).with_text(place);
    let head = head.with(Style::Dim, format!("  {said}"));
    let found = describe_event(&Event::CheckResult { evidence: evidence.clone() });
    let mut lines: Vec<StyledLine> = std::iter::once(head).chain(found.into_iter().skip(1)).collect();
    if evidence.outcome.has_failed() && evidence.diagnostics.is_empty() {
        lines.extend(tail_of_output(&evidence.output));
    }
    lines
}

/// Returns the last lines of an output without parsable diagnostics.
fn tail_of_output(output: &str) -> Vec<StyledLine> {
    const MAX_LINES: usize = 20;
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let end = lines.get(lines.len().saturating_sub(MAX_LINES)..).unwrap_or_default();
    end.iter().map(|line| StyledLine::new(Style::Dim, format!("    {}", printable(line)))).collect()
}

/// Describes a round's result in one line. `is_about_nothing` is true if no file needed a check.
#[must_use]
pub fn describe_round(result: &RoundResult, selected: &SelectedChecks, is_about_nothing: bool) -> StyledLine {
    let count = |is: fn(&CheckOutcome) -> bool| result.evidence.iter().filter(|one| is(&one.outcome)).count();
    let (passed, failed) = (count(CheckOutcome::has_passed), count(CheckOutcome::has_failed));
    let not_run = result.evidence.len() - passed - failed;
    let also = |count: usize, what: &str| if count > 0 { format!(", {count} {what}") } else { String::new() };
    match result.overall_result() {
        CheckVerdict::Passed => {
            let text = format!("{} passed{}", format_count(passed, "check"), also(not_run, "not run"));
            StyledLine::new(Style::Good, text)
        }
        CheckVerdict::Failed => {
            let others = format!("{}{}", also(passed, "passed"), also(not_run, "not run"));
            StyledLine::new(Style::Bad, format!("{} failed{others}", format_count(failed, "check")))
        }
        CheckVerdict::Interrupted => StyledLine::new(Style::Warning, "interrupted"),
        CheckVerdict::NothingRan if passed > 0 => {
            let text =
                format!("{} passed, but no test ran: that proves little", format_count(passed, "check"));
            StyledLine::new(Style::Warning, text)
        }
        CheckVerdict::NothingRan if result.evidence.is_empty() => StyledLine::new(
            Style::Warning,
            match selected.left_out.is_empty() {
                _ if is_about_nothing => "no file differs from the last commit: nothing to check",
                true => "no check was found; name one with --check",
                false => "no check is left to run; `jm checks` lists them and says why",
            },
        ),
        CheckVerdict::NothingRan => StyledLine::new(
            Style::Warning,
            "no check could run, for the reasons above; `jm setup` installs missing programs, `jm doctor` shows the sandbox",
        ),
    }
}

/// Describes the setup steps and the programs that checks lack.
#[must_use]
pub fn describe_setup(plan: &SetupPlan) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    for step in &plan.steps {
        let place = describe_directory(step.directory.as_ref());
        let command = printable(&step.command);
        lines.push(StyledLine::new(Style::Plain, "to fetch: ").with(Style::Strong, command).with_text(place));
        lines.push(StyledLine::new(Style::Dim, format!("    {}", printable(&step.why))));
        let caches = if step.fills_caches { "; it writes the toolchain's own cache" } else { "" };
        let from = format!("    from {} alone{caches}", step.network.join(", "));
        lines.push(StyledLine::new(Style::Dim, from));
    }
    for lack in &plan.lacks {
        let text = format!("{} (for {})", printable(&lack.reason), printable(&lack.checks.join(", ")));
        lines.push(StyledLine::new(Style::Warning, "only you can: ").with_text(text));
    }
    if lines.is_empty() {
        lines.push(StyledLine::new(Style::Good, "nothing is missing"));
    }
    lines
}

fn describe_directory(directory: Option<&RelPath>) -> String {
    directory.map(|directory| format!(" (in {})", printable(directory))).unwrap_or_default()
}
