//! The report of one command.

use std::path::PathBuf;

use journeyman_sandbox::{Captured, Completed, Network, Outcome, clean};
use serde_json::{Value, json};

use super::project::{CommandAccess, CommandEffect};

// Exit codes besides the command's own, as `timeout` and shells use them.
const LIMIT: u8 = 123;
const TIMED_OUT: u8 = 124;
/// The exit code of a command that could not be started.
pub const DID_NOT_RUN: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_THERE: u8 = 127;
/// The exit code of an interrupted command.
pub const INTERRUPTED: u8 = 130;
/// The exit code of a command whose output nobody reads any more.
pub const UNREAD: u8 = 141;
const SIGNALLED: u8 = 128;

/// The report of a command that has ended.
pub struct CommandReport {
    /// The end of the command, with its output.
    pub completed: Completed,
    /// The effect on the project.
    pub effect: CommandEffect,
    /// The exit code that stands for the end.
    pub code: u8,
    /// The root of the project.
    pub root: PathBuf,
    /// The access to the project.
    pub access: CommandAccess,
    /// The network that was allowed.
    pub network: Network,
    /// The number of further writable paths.
    pub writable: usize,
}

impl CommandReport {
    /// Says why the command didn't run or was killed; `None` for a command that ended by itself.
    #[must_use]
    pub fn error(&self) -> Option<String> {
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
        let stream = |captured: &Captured| {
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

/// Returns the command's own exit code, or the code for how it ended otherwise.
pub(super) fn exit_code(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Exited(code) => u8::try_from(*code & 0xff).unwrap_or(1),
        Outcome::Signaled(signal) => SIGNALLED.saturating_add(u8::try_from(*signal).unwrap_or(0)),
        Outcome::TimedOut => TIMED_OUT,
        Outcome::Cancelled => INTERRUPTED,
        Outcome::OutputLimit | Outcome::MemoryLimit | Outcome::DiskLimit | Outcome::CpuLimit => LIMIT,
        Outcome::SetupFailed(reason) if !reason.starts_with("executing ") => DID_NOT_RUN,
        Outcome::SetupFailed(reason) if reason.contains("No such file") => NOT_THERE,
        Outcome::SetupFailed(_) => NOT_EXECUTABLE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_tell_how_a_command_ended() {
        for (outcome, code) in [
            (Outcome::Exited(0), 0),
            (Outcome::Exited(255), 255),
            (Outcome::Signaled(15), 143),
            (Outcome::TimedOut, 124),
            (Outcome::MemoryLimit, 123),
            (Outcome::Cancelled, 130),
            (Outcome::SetupFailed("mounting /x: Permission denied (os error 13)".into()), 125),
        ] {
            assert_eq!(exit_code(&outcome), code, "{outcome:?}");
        }
    }
}
