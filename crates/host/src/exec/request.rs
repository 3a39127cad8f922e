//! Turns the options of `jm exec` into a request to the sandbox, and runs the request.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use journeyman_policy::registry;
use journeyman_sandbox::{
    CompletedCommand, HostEnvironment, HostPattern, Limits, LiveOutputMode, Network, NetworkRules,
    OutputChunk, Request, RunningCommand, Sandbox, SandboxError, Stdin, StdioMode, WriteMode,
    find_toolchains,
};
use journeyman_workspace::IsolationTier;
use tokio_util::sync::CancellationToken;

use super::project::{CommandAccess, CommandProject};
use super::report::{CommandReport, EXIT_DID_NOT_RUN, EXIT_OUTPUT_CLOSED, exit_code};
use crate::config::{Config, Environment, parse_duration};
use crate::root::project_root;
use crate::state::StateDirs;
use crate::{Context as _, HostError, load_assuming_trust, sandboxes};

/// Default wall time. A person who types a command waits for it; this only ends what was forgotten.
const DEFAULT_WALL_TIME: Duration = Duration::from_secs(24 * 3600);
/// Maximum size of each stream that is kept for the report, in bytes, half from its beginning and
/// half from its end.
const MAX_KEPT_OUTPUT_BYTES: usize = 256 * 1024;
/// Minimum memory limit, in bytes: with less, no program begins.
const MIN_MEMORY_BYTES: u64 = 4 * 1024 * 1024;

/// A command as a person types it. Errors name the flags of `jm exec`.
#[derive(Debug, Clone)]
pub struct CommandOptions {
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// The project's directory instead of the current one.
    pub root: Option<PathBuf>,
    /// The access to the project.
    pub access: CommandAccess,
    /// `off`, `on`, or hosts and registries; empty for `off`.
    pub net: Vec<String>,
    /// Allows plain HTTP to these hosts.
    pub plain_http: bool,
    /// Further paths, writable.
    pub writable: Vec<PathBuf>,
    /// Further paths, readable.
    pub readable: Vec<PathBuf>,
    /// Variables, as `NAME=VALUE`, or `NAME` for the value in the environment.
    pub variables: Vec<String>,
    /// Wall time, such as `10m`.
    pub timeout: Option<String>,
    /// Memory, such as `512M`.
    pub memory: Option<String>,
    /// Maximum number of processes and threads.
    pub processes: Option<u64>,
    /// Standard input; `None` for an empty one.
    pub stdin: Option<Vec<u8>>,
    /// Columns and rows of a terminal of its own.
    pub terminal: Option<(u16, u16)>,
    /// Only the report has the output: live output may be dropped, and its amount is bounded.
    pub captures_output: bool,
    /// As root, allow sandboxes other than the strongest.
    pub allow_root: bool,
}

/// A command that can be run: every option is valid.
pub struct CommandRequest {
    config: Config,
    request: Request,
    access: CommandAccess,
    extra_writable: usize,
}

impl CommandRequest {
    /// Checks the options, and makes the request of the sandbox. Nothing is opened or run.
    ///
    /// # Errors
    /// [`HostError::Usage`] naming the flag that can't be obeyed.
    pub fn new(environment: &Environment, options: CommandOptions) -> Result<Self, HostError> {
        let root = project_root(environment, options.root.as_deref())?;
        let mut config = load_assuming_trust(environment, &root)?;
        config.sandbox_allow_root |= options.allow_root;
        let network = parse_network(&options.net, options.plain_http)?;
        let mut needs = sandboxes::required_needs(&config)?;
        needs.network_off &= network != Network::Host;
        let host = HostEnvironment { vars: environment.vars.clone(), home: environment.home.clone() };
        let mut request = Request::for_program(&root, options.command.clone());
        request.network = network;
        let mut request = request.with_toolchains(&find_toolchains(&host, &root));
        request.needs = needs;
        request.cwd = if environment.cwd.starts_with(&root) { environment.cwd.clone() } else { root.clone() };
        request.write = match options.access {
            CommandAccess::ReadOnly => WriteMode::ReadOnly,
            CommandAccess::Direct | CommandAccess::Overlay => WriteMode::Direct,
        };
        request.writable = resolve_paths(environment, "--rw", &options.writable)?;
        request.read_only.extend(resolve_paths(environment, "--ro", &options.readable)?);
        for variable in &options.variables {
            let (name, value) = parse_variable(environment, variable)?;
            request.env.insert(name, value);
        }
        request.limits = build_limits(&options)?;
        request.stdin = options.stdin.map_or(Stdin::Null, Stdin::Bytes);
        request.live = if options.captures_output { LiveOutputMode::Lossy } else { LiveOutputMode::Whole };
        if let Some((columns, rows)) = options.terminal {
            request.streams = StdioMode::Terminal { columns, rows };
        }
        Ok(Self { config, request, access: options.access, extra_writable: options.writable.len() })
    }

    /// Opens the project and the sandbox for the command.
    ///
    /// # Errors
    /// [`HostError`] where the project can't be read or copied, or no sandbox is configured.
    pub fn open(mut self, state: &StateDirs) -> Result<OpenCommand, HostError> {
        let sandbox = Arc::new(state.sandbox(&self.config)?);
        let tiers: &[IsolationTier] = &self.config.isolation;
        let project = CommandProject::open(state, &self.request.root, &sandbox, self.access, tiers)?;
        self.request.base = project.project_copy();
        self.request.protected.extend(project.protected_paths().iter().cloned());
        self.request.linked = project.linked_paths().to_vec();
        let Self { request, access, extra_writable, .. } = self;
        Ok(OpenCommand { sandbox, project, request, access, extra_writable })
    }
}

/// A command whose project is open.
pub struct OpenCommand {
    sandbox: Arc<Sandbox>,
    project: CommandProject,
    request: Request,
    access: CommandAccess,
    extra_writable: usize,
}

impl OpenCommand {
    /// Returns the notes that a person should read about how the command is confined.
    pub async fn sandbox_notes(&self) -> Vec<String> {
        sandboxes::notes_if_confined(&self.sandbox, &self.request.needs).await
    }

    /// Runs the command to its end, and passes output to `show` as it arrives. If `show` fails, the
    /// command is killed.
    ///
    /// # Errors
    /// [`HostError::Usage`] where the sandbox refuses a path that a flag names;
    /// [`HostError::Failed`] where the sandbox fails or the copy can't be read or removed.
    pub async fn run(
        mut self,
        cancel: &CancellationToken,
        mut show: impl AsyncFnMut(OutputChunk) -> io::Result<()>,
    ) -> Result<CommandReport, HostError> {
        let mut running = self.spawn(cancel).await?;
        let mut unwritten = None;
        while let Some(chunk) = running.next_chunk().await {
            if let Err(error) = show(chunk).await {
                cancel.cancel();
                unwritten = Some(error);
                break;
            }
        }
        let completed = running.wait().await.context("the sandbox")?;
        self.close(completed, unwritten)
    }

    /// Starts the command. Its standard input is given to the first start alone.
    async fn spawn(&mut self, cancel: &CancellationToken) -> Result<RunningCommand, HostError> {
        let stdin = std::mem::replace(&mut self.request.stdin, Stdin::Null);
        let request = Request { stdin, ..self.request.clone() };
        let started = self.sandbox.spawn(request, cancel.clone()).await;
        started.map_err(|error| match self.flag_of_refused_path(&error) {
            Some(flag) => HostError::usage(format_args!("{flag}: {error}")),
            None => HostError::Failed { what: Some("the sandbox".into()), source: error.into() },
        })
    }

    /// Returns the flag that names the refused path.
    fn flag_of_refused_path(&self, error: &SandboxError) -> Option<&'static str> {
        let SandboxError::RefusedPath { path, .. } = error else { return None };
        if *path == self.request.root {
            Some("-C")
        } else if self.request.writable.contains(path) {
            Some("--rw")
        } else {
            self.request.read_only.contains(path).then_some("--ro")
        }
    }

    /// Ends the command: its effect is settled, and a copy is discarded. `unwritten` says why its
    /// output was not shown to the end.
    fn close(
        self,
        completed: CompletedCommand,
        unwritten: Option<io::Error>,
    ) -> Result<CommandReport, HostError> {
        let effect = self.project.close(completed.enforcement.protected_kept)?;
        let is_closed = unwritten.as_ref().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
        let code = match &unwritten {
            None => exit_code(&completed.outcome),
            Some(_) if is_closed => EXIT_OUTPUT_CLOSED,
            Some(_) => EXIT_DID_NOT_RUN,
        };
        let unwritten = unwritten.filter(|_| !is_closed);
        let Request { root, network, .. } = self.request;
        let (access, extra_writable) = (self.access, self.extra_writable);
        Ok(CommandReport { completed, effect, code, unwritten, root, access, network, extra_writable })
    }
}

fn build_limits(options: &CommandOptions) -> Result<Limits, HostError> {
    let mut limits =
        Limits { wall: DEFAULT_WALL_TIME, output_bytes: MAX_KEPT_OUTPUT_BYTES, ..Limits::default() };
    if !options.captures_output {
        // The reader of live output decides how much is enough.
        limits.flood_bytes = Some(u64::MAX);
    }
    if let Some(text) = &options.timeout {
        limits.wall = parse_duration(text).ok_or_else(|| {
            HostError::usage(format_args!("--timeout `{text}` is no time; say 90s, 10m or 2h"))
        })?;
    }
    if let Some(text) = &options.memory {
        let size = parse_size(text)
            .ok_or_else(|| HostError::usage(format_args!("--memory `{text}` is no size; say 512M or 4G")))?;
        if size < MIN_MEMORY_BYTES {
            return Err(HostError::usage(format_args!("--memory `{text}` is too little; at least 4M")));
        }
        limits.memory = Some(size);
    }
    if let Some(processes) = options.processes {
        limits.processes = processes.max(1);
    }
    Ok(limits)
}

/// Parses `off`, `on`, or a list of hosts and registries as network access.
fn parse_network(net: &[String], plain_http: bool) -> Result<Network, HostError> {
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
        for host in
            registry::resolve_hosts(word).map_err(|error| HostError::usage(format_args!("--net: {error}")))?
        {
            let host: HostPattern =
                host.parse().map_err(|error| HostError::usage(format_args!("--net: {error}")))?;
            hosts.push(host);
        }
    }
    hosts.sort();
    hosts.dedup();
    Ok(Network::Filtered(Arc::new(NetworkRules { hosts, plain_http, ..NetworkRules::default() })))
}

/// Resolves existing paths with their links: the sandbox mounts what the links lead to now.
fn resolve_paths(
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
fn parse_variable(environment: &Environment, given: &str) -> Result<(OsString, OsString), HostError> {
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
fn parse_size(text: &str) -> Option<u64> {
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
}
