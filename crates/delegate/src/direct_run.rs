//! Runs of a CLI outside the sandbox, for tasks of low risk in a directory where nothing can be
//! lost.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use journeyman_protocol::{SandboxNeeds, SandboxTier};
use journeyman_sandbox::{
    KillOnExit, Limits, LiveOutputMode, Network, Outcome as End, Request, Sandbox, SandboxError,
    SandboxSettings, Stdin, StdioMode,
};
use tokio_util::sync::CancellationToken;

use crate::access::CliAccess;
use crate::bounds::MAX_RUN_OUTPUT_BYTES;
use crate::cli_input::open_input;
use crate::run_reader::{RunEnd, read_to_end};
use crate::settings::{DEFAULT_DIRECT_TIME, DelegateError, DelegateSettings, Delegates};
use crate::{AccessError, CommandLine, CommandRequest, DelegateEvent, Outcome, TokensAndCost};

/// The variable that all processes of a run inherit, by which they are found at its end.
const RUN_VARIABLE: &str = "JM_DELEGATE_RUN";
/// Maximum number of rounds of killing processes: one that forks meanwhile is found in the next.
const MAX_KILL_ROUNDS: usize = 50;
/// Maximum number of files that are compared for changes.
const MAX_COMPARED_FILES: usize = 20_000;
/// Maximum depth of directories that are searched.
const MAX_DEPTH: usize = 32;
/// Maximum bytes of output kept in addition to the lines that are read.
const MAX_KEPT_OUTPUT_BYTES: usize = 16 * 1024;

/// The reason why a run failed to start.
#[derive(Debug, thiserror::Error)]
pub enum DirectError {
    /// The CLI is unknown or not installed.
    #[error(transparent)]
    Delegate(#[from] DelegateError),
    /// The base URL can't be used.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The input pipe could not be created.
    #[error("its input can't be made: {0}")]
    Input(std::io::Error),
    /// The run can't be tied to the end of this program.
    #[error("a guard of its processes can't be made: {0}")]
    Guard(std::io::Error),
    /// The CLI could not be started or monitored.
    #[error(transparent)]
    Run(#[from] SandboxError),
}

/// A task for a CLI outside the sandbox.
#[derive(Debug, Clone, Copy)]
pub struct DirectRun<'a> {
    /// The prompt.
    pub prompt: &'a str,
    /// The directory to work in.
    pub directory: &'a Path,
    /// True for a directory that was created for the run, so that its settings are ours.
    pub is_fresh: bool,
    /// Maximum duration, in place of the CLI's setting and the default.
    pub time_limit: Option<Duration>,
}

/// The end of a run outside the sandbox.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectEnd {
    /// The outcome, according to the CLI.
    pub outcome: Outcome,
    /// The end of the CLI's process.
    pub end: End,
    /// Files that the run created, relative to the directory.
    pub created: Vec<PathBuf>,
    /// Files that the run changed.
    pub changed: Vec<PathBuf>,
    /// Files that the run deleted.
    pub deleted: Vec<PathBuf>,
}

impl DirectRun<'_> {
    /// Runs a CLI in the directory, with the user's own settings, but without other providers'
    /// keys. Its own permission prompts and sandbox stay on. `stop`, the time limit or the end of
    /// this program ends the CLI and all processes that it started.
    ///
    /// # Errors
    /// [`DirectError`] if nothing ran.
    pub async fn run(
        &self,
        delegates: &Delegates,
        name: &str,
        stop: CancellationToken,
        watch: &mut (dyn FnMut(&DelegateEvent) + Send),
    ) -> Result<DirectEnd, DirectError> {
        // A CLI that lingers after its end is stopped, and nothing else of the caller's.
        let stop = stop.child_token();
        let settings = delegates.find(name)?;
        let program = delegates.find_program(settings)?;
        let access = CliAccess::from_environment(settings, delegates.host_environment(), false)?;
        let request = self.command_request(settings, &access);
        let mut command = settings.adapter.build_command(&request);
        let place =
            delegates.host_environment().vars.get(OsStr::new("TMPDIR")).map_or(Path::new("/tmp"), Path::new);
        let input = open_input(&mut command, place).map_err(DirectError::Input)?;
        let marker = format!("{}-{:x}", std::process::id(), fastrand::u64(..));
        let mut argv: Vec<OsString> = vec![program.into_os_string()];
        argv.extend(std::mem::take(&mut command.argv).into_iter().skip(1));
        let argv = input.as_ref().map_or_else(|| argv.clone(), |input| input.wrap_command(argv.clone()));
        // Ends the CLI when it is dropped.
        let guard = KillOnExit::open().map_err(DirectError::Guard)?;
        command.argv = guard.wrap_command(argv).map_err(DirectError::Guard)?;
        let command = self.sandbox_request(settings, command, &access, delegates, &marker);
        let sandbox = Sandbox::new(SandboxSettings {
            allow: vec![SandboxTier::Unconfined],
            allow_root: true,
            ..SandboxSettings::default()
        });
        let before = list_files(self.directory);
        let conversation = settings.adapter.start_conversation(&request);
        let leftovers = LeftoverProcesses(marker);
        let running = sandbox.spawn(command, stop.clone()).await?;
        let ended = read_to_end(running, stop, input, conversation, watch).await;
        drop((leftovers, guard));
        let RunEnd { outcome, completed } = ended?;
        let after = list_files(self.directory);
        let only_in = |one: &FileStamps, other: &FileStamps| {
            one.keys().filter(|path| !other.contains_key(*path)).cloned().collect::<Vec<_>>()
        };
        let changed = after.iter().filter(|(path, state)| before.get(*path).is_some_and(|was| was != *state));
        Ok(DirectEnd {
            outcome,
            end: completed.outcome,
            created: only_in(&after, &before),
            changed: changed.map(|(path, _)| path.clone()).collect(),
            deleted: only_in(&before, &after),
        })
    }

    fn command_request<'a>(
        &'a self,
        settings: &'a DelegateSettings,
        access: &'a CliAccess,
    ) -> CommandRequest<'a> {
        CommandRequest {
            prompt: self.prompt,
            directory: self.directory,
            resume: None,
            spent: TokensAndCost::default(),
            model: settings.model.as_deref(),
            base_url: access.base_url.as_deref(),
            confined: false,
            trusted: self.is_fresh,
            arguments: &settings.arguments,
        }
    }

    fn sandbox_request(
        &self,
        settings: &DelegateSettings,
        command: CommandLine,
        access: &CliAccess,
        delegates: &Delegates,
        marker: &str,
    ) -> Request {
        let mut request = Request::for_program(self.directory, command.argv);
        request.env.clone_from(&delegates.host_environment().vars);
        for key in delegates.all().iter().flat_map(|one| one.adapter.requirements().providers) {
            key.keys.iter().for_each(|name| drop(request.env.remove(&OsString::from(name))));
        }
        request.env.extend(access.environment.clone());
        request.env.extend(command.environment.into_iter().map(|(name, value)| (name.into(), value.into())));
        request.env.insert(RUN_VARIABLE.into(), marker.into());
        request.needs = SandboxNeeds::NONE;
        request.network = Network::Host;
        request.stdin = if command.stdin.is_empty() { Stdin::Null } else { Stdin::Bytes(command.stdin) };
        request.streams = StdioMode::Separate;
        request.live = LiveOutputMode::Whole;
        request.limits = Limits {
            wall: self.time_limit.or(settings.time_limit).unwrap_or(DEFAULT_DIRECT_TIME),
            output_bytes: MAX_KEPT_OUTPUT_BYTES,
            flood_bytes: Some(MAX_RUN_OUTPUT_BYTES),
            ..Limits::default()
        };
        request
    }
}

/// The processes that a run leaves behind, also in other sessions, found by the variable that they
/// inherited. Dropping this value kills them.
struct LeftoverProcesses(String);

impl Drop for LeftoverProcesses {
    fn drop(&mut self) {
        let mark = format!("{RUN_VARIABLE}={}", self.0);
        for _ in 0..MAX_KILL_ROUNDS {
            let left = processes_with_variable(mark.as_bytes());
            if left.is_empty() {
                return;
            }
            for pid in left {
                // The process may have ended meanwhile.
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Returns the user's processes that have an assignment in their environment. Zombies are left out,
/// because they have no environment.
fn processes_with_variable(assignment: &[u8]) -> Vec<rustix::process::Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbered = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        Some((rustix::process::Pid::from_raw(pid)?, entry.path().join("environ")))
    });
    let has = |path: &Path| {
        let environment = std::fs::read(path).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == assignment)
    };
    numbered.filter(|(_, path)| has(path)).map(|(pid, _)| pid).collect()
}

/// Files by path, with size and modification time.
type FileStamps = BTreeMap<PathBuf, (u64, Option<SystemTime>)>;

/// Lists the files beneath a directory, up to a bound, without following links.
fn list_files(directory: &Path) -> FileStamps {
    let mut files = FileStamps::new();
    let mut waiting = vec![(directory.to_owned(), 0)];
    while let Some((next, depth)) = waiting.pop() {
        for entry in std::fs::read_dir(next).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            if found.is_dir() {
                if depth < MAX_DEPTH {
                    waiting.push((entry.path(), depth + 1));
                }
            } else if files.len() < MAX_COMPARED_FILES
                && let Ok(path) = entry.path().strip_prefix(directory)
            {
                files.insert(path.to_owned(), (found.len(), found.modified().ok()));
            }
        }
    }
    files
}
