//! The report of a command, for people.

use std::io::Write as _;

use journeyman_host::exec::{CommandReport, describe_connection};
use journeyman_host::format::printable;
use journeyman_host::{Context as _, HostError};
use journeyman_protocol::{FileChange, FileChangeKind};
use journeyman_terminal::stderr_paint;

use super::args::ExecArgs;

/// Maximum number of lines of one kind that are printed for people; `--json` has all.
const MAX_LINES_PER_KIND: usize = 40;

/// Prints the report in the format of the flags.
pub(super) fn print_report(report: &CommandReport, args: &ExecArgs) -> Result<(), HostError> {
    if args.json {
        outln!("{}", report.to_json().context("the report")?);
        return Ok(());
    }
    if args.quiet {
        return Ok(());
    }
    let paint = stderr_paint();
    let effect = &report.effect;
    let mut lines = vec![paint.dim(&format!("sandbox: {}", report.describe_run()))];
    let mark = paint.yellow("warning:");
    let violations = effect.violations.iter().map(|violation| {
        format!("{mark} {}: programs outside the sandbox run or obey it", printable(&violation))
    });
    let violations = violations.chain(effect.problem.iter().map(|problem| format!("{mark} {problem}")));
    let denials = report.completed.denials.iter().map(|denial| paint.yellow(&denial.to_string()));
    let allowed = report.completed.connections.iter().filter(|connection| connection.denied.is_none());
    let changes = effect.changes.iter().flatten();
    for list in [
        violations.collect::<Vec<_>>(),
        denials.collect(),
        allowed.map(describe_connection).collect(),
        changes.map(describe_change).collect(),
    ] {
        let left = list.len().saturating_sub(MAX_LINES_PER_KIND);
        lines.extend(list.into_iter().take(MAX_LINES_PER_KIND));
        if left > 0 {
            lines.push(format!("… and {left} more (--json has all of them)"));
        }
    }
    if effect.changes.as_ref().is_some_and(Vec::is_empty) {
        lines.push("it would have changed nothing".to_owned());
    }
    if let Some(error) = report.error() {
        lines.push(format!("{} {error}", paint.red("error:")));
    }
    // Paths and hosts are untrusted text; the colours are added only for a terminal. The exit code
    // stays the command's own if nobody reads this.
    std::io::stderr().write_all(format!("{}\n", lines.join("\n")).as_bytes()).ok();
    Ok(())
}

fn describe_change(change: &FileChange) -> String {
    let what = match change.kind {
        FileChangeKind::Added => "add",
        FileChangeKind::Modified => "change",
        FileChangeKind::Deleted => "delete",
    };
    format!("it would {what} {}", printable(&change.path))
}
