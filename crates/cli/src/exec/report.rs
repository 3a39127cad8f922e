//! The report of a command, for people.

use std::io::Write as _;

use journeyman_host::exec::{CommandAccess, CommandReport};
use journeyman_host::{Context as _, HostError};
use journeyman_protocol::{FileChange, FileChangeKind};
use journeyman_sandbox::{Completed, Connection, Network, Outcome, clean};

use super::args::ExecArgs;
use crate::stdout::say;
use crate::{color, render};

/// Maximum number of lines of one kind that are printed for people; `--json` has all.
const MAX_LINES: usize = 40;

/// Prints the report, as the flags ask for it.
pub(super) fn print(report: &CommandReport, args: &ExecArgs) -> Result<(), HostError> {
    if args.json {
        say!("{}", report.to_json().context("the report")?);
        return Ok(());
    }
    if args.quiet {
        return Ok(());
    }
    let paint = color::stderr();
    let effect = &report.effect;
    let mut lines = vec![paint.dim(&format!("sandbox: {}", enforced(report)))];
    let mark = paint.yellow("warning:");
    let violations = effect.violations.iter().map(|violation| {
        format!(
            "{mark} {}: programs outside the sandbox run or obey it",
            clean(violation.to_string().as_bytes())
        )
    });
    let violations = violations.chain(effect.problem.iter().map(|problem| format!("{mark} {problem}")));
    let denials = report.completed.denials.iter().map(|denial| paint.yellow(&denial.to_string()));
    let allowed = report.completed.connections.iter().filter(|connection| connection.denied.is_none());
    let changes = effect.changes.iter().flatten();
    for list in [
        violations.collect::<Vec<_>>(),
        denials.collect(),
        allowed.map(connection_line).collect(),
        changes.map(change_line).collect(),
    ] {
        let left = list.len().saturating_sub(MAX_LINES);
        lines.extend(list.into_iter().take(MAX_LINES));
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
    // Paths and hosts are others' to choose; the colours are ours, and were added only for a
    // terminal.
    std::io::stderr().write_all(format!("{}\n", lines.join("\n")).as_bytes()).context("standard error")
}

/// Says what the sandbox enforced, in one line.
fn enforced(report: &CommandReport) -> String {
    let Completed { enforcement, outcome, duration, .. } = &report.completed;
    let mut parts = Vec::new();
    let layers = enforcement.layers.join(", ");
    let tier = enforcement.tier.to_string();
    parts.push(if layers.is_empty() || layers == tier { tier } else { layers });
    let root = clean(report.root.as_os_str().as_encoded_bytes());
    let writes = match report.access {
        CommandAccess::ReadOnly => "nothing in the project".to_owned(),
        CommandAccess::Overlay => "a throw-away copy".to_owned(),
        CommandAccess::Direct => root,
    };
    let more = report.writable;
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    if enforcement.writes_confined {
        parts.push(format!("writes: {writes}{more}"));
    } else {
        parts.push("writes: not confined".to_owned());
    }
    parts.push(format!("network: {}", reach(report)));
    let ended = match outcome {
        Outcome::Exited(code) => format!("exit {code}"),
        Outcome::Signaled(signal) => format!("signal {signal}"),
        Outcome::TimedOut => "timed out".to_owned(),
        Outcome::Cancelled => "interrupted".to_owned(),
        Outcome::SetupFailed(_) => "didn't run".to_owned(),
        excess => format!("killed for {}", excess.excess().unwrap_or_default()),
    };
    let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    parts.push(format!("{ended} after {:.1} s", render::seconds(milliseconds)));
    parts.join(" | ")
}

fn reach(report: &CommandReport) -> String {
    match &report.network {
        Network::Off if report.completed.enforcement.network_off => "off".to_owned(),
        Network::Off => "not confined".to_owned(),
        Network::Host => "the host's".to_owned(),
        Network::Filtered(rules) => match rules.hosts.as_slice() {
            [one] => one.to_string(),
            hosts => format!("{} hosts", hosts.len()),
        },
    }
}

fn connection_line(connection: &Connection) -> String {
    let Connection { host, port, times, sent, received, failed, .. } = connection;
    let times = if *times > 1 { format!(" ×{times}") } else { String::new() };
    let failed = failed.as_ref().map(|why| format!("; {why}")).unwrap_or_default();
    format!("network: {host}:{port}{times}, {} sent, {} received{failed}", bytes(*sent), bytes(*received))
}

fn change_line(change: &FileChange) -> String {
    let what = match change.kind {
        FileChangeKind::Added => "add",
        FileChangeKind::Modified => "change",
        FileChangeKind::Deleted => "delete",
    };
    format!("it would {what} {}", clean(change.path.to_string().as_bytes()))
}

/// Formats a number of bytes, with a tenth from 1 kB on.
fn bytes(count: u64) -> String {
    let units = ["kB", "MB", "GB", "TB"];
    if count < 1000 {
        return format!("{count} B");
    }
    let (mut tenths, mut unit) = (count / 100, 0);
    while tenths >= 10_000 && unit + 1 < units.len() {
        tenths /= 1000;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, units.get(unit).unwrap_or(&"TB"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_bytes() {
        for (count, text) in
            [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (999_999, "999.9 kB"), (1_500_000, "1.5 MB")]
        {
            assert_eq!(bytes(count), text);
        }
        assert_eq!(bytes(u64::MAX), "18446744.0 TB");
    }
}
