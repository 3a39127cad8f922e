//! What became of a command, in words and as an object.

use std::io::Write as _;
use std::path::Path;

use journeyman_host::Context as _;
use journeyman_protocol::{FileChange, FileChangeKind};
use journeyman_sandbox::{Completed, Connection, Network, Outcome, clean};
use serde_json::{Value, json};

use super::ExecArgs;
use crate::stdout::say;
use crate::{color, render};
use journeyman_host::HostError;
use journeyman_host::exec::CommandEffect;

/// Lines of one kind that are printed for people; `--json` has all.
const MOST_LINES: usize = 40;

pub(super) struct Report<'a> {
    pub(super) completed: &'a Completed,
    pub(super) network: &'a Network,
    pub(super) root: &'a Path,
    pub(super) args: &'a ExecArgs,
    pub(super) effect: CommandEffect,
    pub(super) code: u8,
}

impl Report<'_> {
    pub(super) fn print(&self) -> Result<(), HostError> {
        if self.args.json {
            say!("{}", self.object().context("the report")?);
            return Ok(());
        }
        if self.args.quiet {
            return Ok(());
        }
        let paint = color::stderr();
        let mut text = String::new();
        let mut line = |line: &str| {
            text.push_str(line);
            text.push('\n');
        };
        line(&paint.dim(&format!("sandbox: {}", self.enforced())));
        let mark = paint.yellow("warning:");
        let violations = self.effect.violations.iter().map(|one| {
            format!(
                "{mark} {}: programs outside the sandbox run or obey it",
                clean(one.to_string().as_bytes())
            )
        });
        let violations =
            violations.chain(self.effect.problem.iter().map(|problem| format!("{mark} {problem}")));
        let denials = self.completed.denials.iter().map(|denial| paint.yellow(&denial.to_string()));
        let connections =
            self.completed.connections.iter().filter(|one| one.denied.is_none()).map(connection);
        let changes = self.effect.changes.iter().flatten().map(change);
        for lines in
            [violations.collect::<Vec<_>>(), denials.collect(), connections.collect(), changes.collect()]
        {
            let left = lines.len().saturating_sub(MOST_LINES);
            lines.iter().take(MOST_LINES).for_each(|text| line(text));
            if left > 0 {
                line(&format!("… and {left} more (--json has all of them)"));
            }
        }
        if self.effect.changes.as_ref().is_some_and(Vec::is_empty) {
            line("it would have changed nothing");
        }
        if let Some(said) = self.said() {
            line(&format!("{} {said}", paint.red("error:")));
        }
        // Paths and hosts are others' to choose; the colours are ours, and were added only for a
        // terminal.
        std::io::stderr().write_all(text.as_bytes()).context("standard error")?;
        Ok(())
    }

    /// What was enforced, in one line.
    fn enforced(&self) -> String {
        let Completed { enforcement, outcome, duration, .. } = self.completed;
        let mut parts = Vec::new();
        let layers = enforcement.layers.join(", ");
        let tier = enforcement.tier.to_string();
        parts.push(if layers.is_empty() || layers == tier { tier } else { layers });
        let root = clean(self.root.as_os_str().as_encoded_bytes());
        let writes = match (self.args.read_only, self.args.overlay) {
            (true, _) => "nothing in the project".to_owned(),
            (_, true) => "a throw-away copy".to_owned(),
            _ => root,
        };
        let more = self.args.rw.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        if enforcement.writes_confined {
            parts.push(format!("writes: {writes}{more}"));
        } else {
            parts.push("writes: not confined".to_owned());
        }
        parts.push(format!("network: {}", self.reach()));
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

    fn reach(&self) -> String {
        match self.network {
            Network::Off if self.completed.enforcement.network_off => "off".to_owned(),
            Network::Off => "not confined".to_owned(),
            Network::Host => "the host's".to_owned(),
            Network::Filtered(rules) => match rules.hosts.as_slice() {
                [one] => one.to_string(),
                hosts => format!("{} hosts", hosts.len()),
            },
        }
    }

    /// Why it didn't run, or was ended.
    fn said(&self) -> Option<String> {
        match &self.completed.outcome {
            Outcome::SetupFailed(reason) if reason.contains("more processes than it may have") => {
                Some("the command didn't run: more processes than --processes allows".to_owned())
            }
            Outcome::SetupFailed(reason) => {
                Some(format!("the command didn't run: {}", clean(reason.as_bytes())))
            }
            Outcome::TimedOut => Some("the command was killed at its time limit; see --timeout".to_owned()),
            other => other.excess().map(|what| format!("the command was killed for {what}")),
        }
    }

    fn object(&self) -> Result<Value, serde_json::Error> {
        let completed = self.completed;
        let hosts: Vec<String> = match self.network {
            Network::Filtered(rules) => rules.hosts.iter().map(ToString::to_string).collect(),
            Network::Off | Network::Host => Vec::new(),
        };
        let (outcome, number) = match &completed.outcome {
            Outcome::Exited(code) => ("exited", Some(*code)),
            Outcome::Signaled(signal) => ("signaled", Some(*signal)),
            Outcome::TimedOut => ("timed_out", None),
            Outcome::Cancelled => ("cancelled", None),
            Outcome::OutputLimit => ("output_limit", None),
            Outcome::MemoryLimit => ("memory_limit", None),
            Outcome::DiskLimit => ("disk_limit", None),
            Outcome::CpuLimit => ("cpu_limit", None),
            Outcome::SetupFailed(_) => ("setup_failed", None),
        };
        let changes = self.effect.changes.as_ref().map(|changes| {
            changes
                .iter()
                .map(|change| json!({ "path": change.path, "kind": change.kind }))
                .collect::<Vec<_>>()
        });
        let connections: Vec<Value> = completed
            .connections
            .iter()
            .map(|one| {
                json!({
                    "host": one.host, "port": one.port, "times": one.times, "sent": one.sent,
                    "received": one.received, "denied": one.denied, "failed": one.failed,
                })
            })
            .collect();
        let denials: Vec<Value> = completed
            .denials
            .iter()
            .map(|one| {
                json!({
                    "kind": format!("{:?}", one.kind).to_ascii_lowercase(), "what": one.what,
                    "certain": one.certain, "hint": one.hint,
                })
            })
            .collect();
        let stream = |captured: &journeyman_sandbox::Captured| {
            json!({
                "text": captured.text, "bytes": captured.total_bytes, "left_out": captured.dropped_bytes,
            })
        };
        Ok(json!({
            "exit_code": self.code, "outcome": outcome, "code": number, "error": self.said(),
            "duration_ms": u64::try_from(completed.duration.as_millis()).unwrap_or(u64::MAX),
            "usage": {
                "user_ms": u64::try_from(completed.usage.user.as_millis()).unwrap_or(u64::MAX),
                "system_ms": u64::try_from(completed.usage.system.as_millis()).unwrap_or(u64::MAX),
                "peak_memory": completed.usage.peak_memory,
            },
            "stdout": stream(&completed.stdout), "stderr": stream(&completed.stderr),
            "enforcement": serde_json::to_value(&completed.enforcement)?,
            "network": { "mode": match self.network {
                Network::Off => "off", Network::Host => "on", Network::Filtered(_) => "filtered",
            }, "hosts": hosts },
            "connections": connections, "denials": denials, "changes": changes,
            "violations": self.effect.violations, "violations_problem": self.effect.problem,
        }))
    }
}

fn connection(one: &Connection) -> String {
    let Connection { host, port, times, sent, received, failed, .. } = one;
    let times = if *times > 1 { format!(" ×{times}") } else { String::new() };
    let failed = failed.as_ref().map(|why| format!("; {why}")).unwrap_or_default();
    format!("network: {host}:{port}{times}, {} sent, {} received{failed}", bytes(*sent), bytes(*received))
}

fn change(change: &FileChange) -> String {
    let what = match change.kind {
        FileChangeKind::Added => "add",
        FileChangeKind::Modified => "change",
        FileChangeKind::Deleted => "delete",
    };
    format!("it would {what} {}", clean(change.path.to_string().as_bytes()))
}

/// A number of bytes, with a tenth where it says something.
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
