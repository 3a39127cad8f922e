//! The report of one command.

use std::io;
use std::path::PathBuf;

use journeyman_sandbox::{
    CapturedOutput, CompletedCommand, Network, NotStartedCause, Outcome, ProxyConnection, clean_output,
};
use serde_json::{Value, json};

use super::project::{CommandAccess, CommandEffect};

// Exit codes besides the command's own, as `timeout` and shells use them.
const EXIT_LIMIT_EXCEEDED: u8 = 123;
const EXIT_TIMED_OUT: u8 = 124;
/// The exit code of a command that could not be started.
pub const EXIT_DID_NOT_RUN: u8 = 125;
const EXIT_NOT_EXECUTABLE: u8 = 126;
const EXIT_NOT_FOUND: u8 = 127;
/// The exit code of an interrupted command.
pub const EXIT_INTERRUPTED: u8 = 130;
/// The exit code of a command whose output was closed by the reader.
pub const EXIT_OUTPUT_CLOSED: u8 = 141;
const EXIT_SIGNAL_BASE: u8 = 128;

/// The report of a command that has ended.
pub struct CommandReport {
    /// The end of the command, with its output.
    pub completed: CompletedCommand,
    /// The effect on the project.
    pub effect: CommandEffect,
    /// The exit code that stands for the end.
    pub code: u8,
    /// Why the command's output could not be written; a reader that went away is no reason.
    pub unwritten: Option<io::Error>,
    /// The root of the project.
    pub root: PathBuf,
    /// The access to the project.
    pub access: CommandAccess,
    /// The network that was allowed.
    pub network: Network,
    /// The number of further writable paths.
    pub extra_writable: usize,
}

/// Returns the report of a command that could not be prepared as JSON.
#[must_use]
pub fn setup_failure_to_json(error: &str) -> Value {
    json!({ "exit_code": EXIT_DID_NOT_RUN, "outcome": "setup_failed", "error": error })
}

impl CommandReport {
    /// Says why the command didn't run or was killed; `None` for a command that ended by itself.
    #[must_use]
    pub fn error(&self) -> Option<String> {
        if let Some(error) = &self.unwritten {
            return Some(format!("the command was killed, for its output could not be written: {error}"));
        }
        match &self.completed.outcome {
            Outcome::SetupFailed(failure) if failure.cause == NotStartedCause::TooManyProcesses => {
                Some("the command didn't run: more processes than --processes allows".to_owned())
            }
            Outcome::SetupFailed(failure) => {
                Some(format!("the command didn't run: {}", clean_output(failure.reason.as_bytes())))
            }
            Outcome::TimedOut => Some("the command was killed at its time limit; see --timeout".to_owned()),
            other => other.exceeded_limit().map(|what| format!("the command was killed for {what}")),
        }
    }

    /// Describes what the sandbox enforced and how the command ended, in one line.
    #[must_use]
    pub fn describe_run(&self) -> String {
        let CompletedCommand { enforcement, outcome, duration, .. } = &self.completed;
        let mut parts = Vec::new();
        let layers = enforcement.layers.join(", ");
        let tier = enforcement.tier.to_string();
        parts.push(if layers.is_empty() || layers == tier { tier } else { layers });
        let writes = match self.access {
            CommandAccess::ReadOnly => "nothing in the project".to_owned(),
            CommandAccess::Overlay => "a throw-away copy".to_owned(),
            CommandAccess::Direct => clean_output(self.root.as_os_str().as_encoded_bytes()),
        };
        let more = if self.extra_writable > 0 {
            format!(" and {} more", self.extra_writable)
        } else {
            String::new()
        };
        if enforcement.writes_confined {
            parts.push(format!("writes: {writes}{more}"));
        } else {
            parts.push("writes: not confined".to_owned());
        }
        parts.push(format!("network: {}", self.describe_network()));
        let ended = match outcome {
            Outcome::Exited(code) => format!("exit {code}"),
            Outcome::Signaled(signal) => format!("signal {signal}"),
            Outcome::TimedOut => "timed out".to_owned(),
            Outcome::Cancelled => "interrupted".to_owned(),
            Outcome::SetupFailed(_) => "didn't run".to_owned(),
            excess => format!("killed for {}", excess.exceeded_limit().unwrap_or_default()),
        };
        parts.push(format!("{ended} after {:.1} s", duration.as_secs_f64()));
        parts.join(" | ")
    }

    fn describe_network(&self) -> String {
        match &self.network {
            Network::Off if self.completed.enforcement.network_off => "off".to_owned(),
            Network::Off => "not confined".to_owned(),
            Network::Host => "the host's".to_owned(),
            Network::Filtered(rules) => match rules.hosts.as_slice() {
                [one] => one.to_string(),
                hosts => format!("{} hosts", hosts.len()),
            },
        }
    }

    /// Returns the report as JSON.
    ///
    /// # Errors
    /// None that can be expected: the enforcement is plain data.
    pub fn to_json(&self) -> Result<Value, serde_json::Error> {
        let completed = &self.completed;
        let hosts: Vec<String> = match &self.network {
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
        let stream = |captured: &CapturedOutput| {
            json!({
                "text": captured.text, "bytes": captured.total_bytes, "left_out": captured.dropped_bytes,
            })
        };
        Ok(json!({
            "exit_code": self.code, "outcome": outcome, "code": number, "error": self.error(),
            "duration_ms": u64::try_from(completed.duration.as_millis()).unwrap_or(u64::MAX),
            "usage": {
                "user_ms": u64::try_from(completed.usage.user.as_millis()).unwrap_or(u64::MAX),
                "system_ms": u64::try_from(completed.usage.system.as_millis()).unwrap_or(u64::MAX),
                "peak_memory": completed.usage.peak_memory,
            },
            "stdout": stream(&completed.stdout), "stderr": stream(&completed.stderr),
            "enforcement": serde_json::to_value(&completed.enforcement)?,
            "network": { "mode": match &self.network {
                Network::Off => "off", Network::Host => "on", Network::Filtered(_) => "filtered",
            }, "hosts": hosts },
            "connections": connections, "denials": denials, "changes": changes,
            "violations": self.effect.violations, "violations_problem": self.effect.problem,
        }))
    }
}

/// Describes a connection that was allowed, in one line.
#[must_use]
pub fn describe_connection(connection: &ProxyConnection) -> String {
    let ProxyConnection { host, port, times, sent, received, failed, .. } = connection;
    let times = if *times > 1 { format!(" ×{times}") } else { String::new() };
    let failed = failed.as_ref().map(|why| format!("; {why}")).unwrap_or_default();
    let (sent, received) = (format_bytes(*sent), format_bytes(*received));
    format!("network: {host}:{port}{times}, {sent} sent, {received} received{failed}")
}

/// Formats a number of bytes, with a tenth from 1 kB on.
fn format_bytes(count: u64) -> String {
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

/// Returns the command's own exit code, or the code for how it ended otherwise.
pub(super) fn exit_code(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Exited(code) => u8::try_from(*code & 0xff).unwrap_or(1),
        Outcome::Signaled(signal) => EXIT_SIGNAL_BASE.saturating_add(u8::try_from(*signal).unwrap_or(0)),
        Outcome::TimedOut => EXIT_TIMED_OUT,
        Outcome::Cancelled => EXIT_INTERRUPTED,
        Outcome::OutputLimit | Outcome::MemoryLimit | Outcome::DiskLimit | Outcome::CpuLimit => {
            EXIT_LIMIT_EXCEEDED
        }
        Outcome::SetupFailed(failure) => match failure.cause {
            NotStartedCause::NotFound => EXIT_NOT_FOUND,
            NotStartedCause::NotExecutable => EXIT_NOT_EXECUTABLE,
            NotStartedCause::TooManyProcesses | NotStartedCause::Setup => EXIT_DID_NOT_RUN,
        },
    }
}

#[cfg(test)]
mod tests {
    use journeyman_sandbox::NotStarted;

    use super::*;

    fn not_started(cause: NotStartedCause) -> Outcome {
        Outcome::SetupFailed(NotStarted { cause, reason: "mounting /x: Permission denied".to_owned() })
    }

    #[test]
    fn exit_codes_tell_how_a_command_ended() {
        for (outcome, code) in [
            (Outcome::Exited(0), 0),
            (Outcome::Exited(255), 255),
            (Outcome::Signaled(15), 143),
            (Outcome::TimedOut, 124),
            (Outcome::MemoryLimit, 123),
            (Outcome::Cancelled, 130),
            (not_started(NotStartedCause::Setup), 125),
            (not_started(NotStartedCause::TooManyProcesses), 125),
            (not_started(NotStartedCause::NotExecutable), 126),
            (not_started(NotStartedCause::NotFound), 127),
        ] {
            assert_eq!(exit_code(&outcome), code, "{outcome:?}");
        }
    }

    #[test]
    fn numbers_of_bytes() {
        for (count, text) in
            [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (999_999, "999.9 kB"), (1_500_000, "1.5 MB")]
        {
            assert_eq!(format_bytes(count), text);
        }
        assert_eq!(format_bytes(u64::MAX), "18446744.0 TB");
    }
}
