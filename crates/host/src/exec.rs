//! One command in the sandbox, run by hand: its project, or a throw-away copy of it.
//!
//! The command has a state directory of its own: it is no session's work, and leaves nothing
//! behind.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::Environment;
use crate::state::{StateDirs, now};
use crate::{Context as _, HostError};
use journeyman_policy::{GUARDS, registry};
use journeyman_protocol::{FileChange, GuardViolation, RelPath, SessionId};
use journeyman_sandbox::{Base, HostPattern, Network, NetworkRules, Outcome, Sandbox};
use journeyman_store::Blobs;
use journeyman_workspace::{
    Aftermath, Clock, Guarded, HardLinks, Isolated, Means, Options, Tier, Workspace, remove_tree,
};

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

/// Maximum size of the contents that are kept while the command runs, in bytes.
const MAX_KEPT_BYTES: u64 = 1024 * 1024 * 1024;

/// How a command sees its project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandAccess {
    /// It writes the project.
    Direct,
    /// It only reads the project.
    ReadOnly,
    /// It writes a throw-away copy.
    Overlay,
}

/// The project around one command, or a copy of it. Dropping it removes the state of the command.
pub struct CommandProject {
    workspace: Workspace,
    /// `None` for a command that can't write.
    guard: Option<Guarded>,
    /// Files with hard links out of the project.
    linked: Vec<RelPath>,
    copy: Option<(SessionId, Isolated)>,
    _state: CommandState,
}

/// The effect of a command on its project.
pub struct CommandEffect {
    /// The changes in its copy, if it had one.
    pub changes: Option<Vec<FileChange>>,
    /// The changes that no command may make, and what became of them.
    pub violations: Vec<GuardViolation>,
    /// Why the violations are not all known or repaired.
    pub problem: Option<String>,
}

/// The state directory of one command.
struct CommandState(PathBuf);

impl CommandState {
    fn make(dirs: &StateDirs) -> Result<Self, HostError> {
        let all = dirs.dir.join("exec");
        sweep_killed(&all);
        let path = all.join(format!("{}-{:x}", std::process::id(), fastrand::u64(..)));
        DirBuilder::new().recursive(true).mode(0o700).create(&path).context("a directory for the command")?;
        Ok(Self(path))
    }
}

impl Drop for CommandState {
    fn drop(&mut self) {
        // The next command sweeps what can't be removed now.
        remove_tree(&self.0).ok();
    }
}

/// Removes the state of killed processes. A process id that is in use again is swept later.
fn sweep_killed(all: &Path) {
    let Ok(entries) = std::fs::read_dir(all) else { return };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let pid =
            name.to_str().and_then(|name| name.split_once('-')).and_then(|(pid, _)| pid.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            remove_tree(&entry.path()).ok();
        }
    }
}

impl CommandProject {
    /// Opens the project at `root` for one command.
    ///
    /// # Errors
    /// [`HostError::Failed`] where the project can't be read or copied.
    pub fn open(
        dirs: &StateDirs,
        root: &Path,
        sandbox: &Arc<Sandbox>,
        access: CommandAccess,
        tiers: &[Tier],
    ) -> Result<Self, HostError> {
        let (overlay, read_only) = (access == CommandAccess::Overlay, access == CommandAccess::ReadOnly);
        let state = CommandState::make(dirs)?;
        let blobs =
            Arc::new(Blobs::open(&state.0.join("blobs"), MAX_KEPT_BYTES).context("a place for contents")?);
        let options = Options {
            own_dir: Some(dirs.dir.clone()),
            clock: Some(Clock::new(now)),
            removed_dir: Some(dirs.project_dir(root).join("removed")),
            ..Options::new(state.0.join("project"), blobs)
        };
        let workspace = Workspace::open(root, options).context("the project")?;
        let guard = (!read_only).then(|| Guarded::before(&workspace, GUARDS));
        let guard = guard.transpose().context("looking for what a command may not change")?;
        let linked = if overlay || read_only {
            HardLinks::default()
        } else {
            workspace.commands().find_hard_links().context("the project")?
        };
        let copy = overlay.then(|| {
            let session = SessionId::new(now(), fastrand::u64(..));
            let tiers = if tiers.is_empty() { Tier::ALL.to_vec() } else { tiers.to_vec() };
            let means = Means { sandbox, git: None, tiers: &tiers };
            let copy = workspace.copies().create(&session, &means).context("a throw-away copy")?;
            Ok::<_, HostError>((session, copy))
        });
        let copy = copy.transpose()?;
        let linked = linked.paths().cloned().collect();
        Ok(Self { workspace, guard, linked, copy, _state: state })
    }

    /// Returns the tree that the command sees in place of the project, if there is one.
    #[must_use]
    pub fn base(&self) -> Option<Base> {
        self.copy.as_ref().and_then(|(_, copy)| copy.workspace().base())
    }

    /// Returns the paths that the command may not change.
    #[must_use]
    pub fn protected(&self) -> &[RelPath] {
        self.guard.as_ref().map_or(&[], Guarded::protected)
    }

    /// Returns the paths that are read-only because writing there would change files outside of the
    /// project.
    #[must_use]
    pub fn linked(&self) -> &[RelPath] {
        &self.linked
    }

    /// Ends the command and returns its effect; a copy is discarded. New files that programs
    /// outside of the sandbox obey are moved away, and changed ones are put back. `kept` says that
    /// the sandbox protected these paths.
    ///
    /// # Errors
    /// [`HostError::Failed`] where the copy can't be read or removed.
    pub fn close(self, kept: bool) -> Result<CommandEffect, HostError> {
        let Some((session, copy)) = self.copy else {
            let ended = self.guard.map(|guard| guard.end(&self.workspace, kept, || Ok(Vec::new())).1);
            let Aftermath { violations, problem } = ended.unwrap_or_default();
            return Ok(CommandEffect { changes: None, violations, problem });
        };
        let changes = self.workspace.landings().changes(&copy).context("what the command changed")?;
        drop(copy);
        self.workspace.copies().discard(&session).context("the throw-away copy")?;
        Ok(CommandEffect { changes: Some(changes.files()), violations: Vec::new(), problem: None })
    }
}

/// Returns the network that `off`, `on`, or a list of hosts and registries stands for.
///
/// # Errors
/// [`HostError::Usage`] for a word that is no host and no registry.
pub fn parse_network(net: &[String], plain_http: bool) -> Result<Network, HostError> {
    let words: Vec<&str> = net.iter().map(|word| word.trim()).filter(|word| !word.is_empty()).collect();
    match words.as_slice() {
        [] | ["off"] => return Ok(Network::Off),
        ["on"] => return Ok(Network::Host),
        words if words.contains(&"on") || words.contains(&"off") => {
            return Err(HostError::usage("--net is off, on, or hosts and registries; not both"));
        }
        _ => {}
    }
    let mut hosts = Vec::new();
    for word in words {
        for host in registry::hosts(word).map_err(|error| HostError::usage(format_args!("--net: {error}")))? {
            let host: HostPattern =
                host.parse().map_err(|error| HostError::usage(format_args!("--net: {error}")))?;
            hosts.push(host);
        }
    }
    hosts.sort();
    hosts.dedup();
    Ok(Network::Filtered(Arc::new(NetworkRules { hosts, plain_http })))
}

/// Resolves existing paths with their links: the sandbox mounts what the links lead to now.
///
/// # Errors
/// [`HostError::Usage`] naming `flag` and the path that can't be resolved.
pub fn resolve_paths(
    environment: &Environment,
    flag: &str,
    given: &[PathBuf],
) -> Result<Vec<PathBuf>, HostError> {
    let real = |path: &PathBuf| {
        let whole = environment.cwd.join(path);
        std::fs::canonicalize(&whole)
            .map_err(|error| HostError::usage(format_args!("{flag} {}: {error}", path.display())))
    };
    given.iter().map(real).collect()
}

/// Parses `NAME=VALUE`, or `NAME` for the value in the environment.
///
/// # Errors
/// [`HostError::Usage`] for a variable without a name or a value.
pub fn parse_variable(environment: &Environment, given: &str) -> Result<(OsString, OsString), HostError> {
    let (name, value) = match given.split_once('=') {
        Some((name, value)) => (name, OsString::from(value)),
        None => match environment.vars.get(Path::new(given).as_os_str()) {
            Some(value) => (given, value.clone()),
            None => return Err(HostError::usage(format_args!("--env {given}: you have no such variable"))),
        },
    };
    if name.is_empty() {
        return Err(HostError::usage(format_args!("--env `{given}` names no variable")));
    }
    Ok((name.into(), value))
}

/// Parses `512M`, `4G`, `4GiB` or a number of bytes, at least one.
#[must_use]
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(split)?;
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift).filter(|bytes| *bytes > 0)
}

/// Returns the command's own exit code, or the code for how it ended otherwise.
#[must_use]
pub fn exit_code(outcome: &Outcome) -> u8 {
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
    fn sizes() {
        for (text, bytes) in
            [("1", 1), ("512M", 512 << 20), ("4GiB", 4 << 30), (" 2 k ", 2048), ("3tb", 3 << 40)]
        {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        for text in ["", "0", "M", "-1", "1.5G", "1x", "99999999999T"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
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
            (Outcome::SetupFailed("mounting /x: Permission denied (os error 13)".into()), 125),
        ] {
            assert_eq!(exit_code(&outcome), code, "{outcome:?}");
        }
    }
}
