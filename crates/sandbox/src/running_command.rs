//! A running command, and its outcome.

use std::fmt;
use std::time::Duration;

use journeyman_protocol::Enforcement;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::capture::{CapturedOutput, OutputChunk};
use crate::{Denial, ProxyConnection, SandboxError};

/// The reason why a command didn't run when no process could be made for it.
const TOO_MANY_PROCESSES: &str = "starting the command: more processes than it may have at once";

/// The end of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The command ended by itself, with this code.
    Exited(i32),
    /// A signal, with this number, ended the command.
    Signaled(i32),
    /// Killed at its wall-time limit.
    TimedOut,
    /// Killed because the caller said so.
    Cancelled,
    /// Killed for flooding its output.
    OutputLimit,
    /// Killed because its processes together held more memory than
    /// [`Limits::memory`](crate::Limits::memory).
    MemoryLimit,
    /// Killed because it wrote more than [`Limits::disk_bytes`](crate::Limits::disk_bytes).
    DiskLimit,
    /// Killed by its limit of processor time.
    CpuLimit,
    /// The command never ran.
    SetupFailed(NotStarted),
}

/// The cause why a command never ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotStartedCause {
    /// It may have no process of its own beside those that there are.
    TooManyProcesses,
    /// There is no such program.
    NotFound,
    /// The program is there and can't be executed.
    NotExecutable,
    /// The sandbox couldn't be set up, or the back-end says no more than a text.
    Setup,
}

/// A command that never ran. Displays the failed step, its path, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotStarted {
    /// The cause.
    pub cause: NotStartedCause,
    /// The failed step, its path, and the reason.
    pub reason: String,
}

impl NotStarted {
    /// Makes the failure of a set-up.
    pub(crate) fn from_setup_failure(reason: impl Into<String>) -> Self {
        Self { cause: NotStartedCause::Setup, reason: reason.into() }
    }

    /// Makes the failure to start a process.
    pub(crate) fn too_many_processes() -> Self {
        Self { cause: NotStartedCause::TooManyProcesses, reason: TOO_MANY_PROCESSES.to_owned() }
    }
}

impl fmt::Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl Outcome {
    /// Returns the limit, other than wall time, that the command was killed for: it completes
    /// "killed for …".
    #[must_use]
    pub fn exceeded_limit(&self) -> Option<&'static str> {
        match self {
            Self::OutputLimit => Some("flooding its output"),
            Self::MemoryLimit => Some("holding more memory than it was given"),
            Self::DiskLimit => Some("writing more to disk than it was given"),
            Self::CpuLimit => Some("using more processor time than it was given"),
            Self::Exited(_) | Self::Signaled(_) | Self::TimedOut | Self::Cancelled | Self::SetupFailed(_) => {
                None
            }
        }
    }
}

/// The resources that a command used, its whole process tree together as far as the system counts
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResourceUsage {
    /// Processor time in user mode.
    pub user: Duration,
    /// Processor time in the kernel, the set-up of the sandbox included.
    pub system: Duration,
    /// Most memory a single process held, in bytes.
    pub peak_memory: u64,
}

/// A finished command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletedCommand {
    /// The command's end.
    pub outcome: Outcome,
    /// Standard output.
    pub stdout: CapturedOutput,
    /// Standard error.
    pub stderr: CapturedOutput,
    /// Both, in the order they came.
    pub combined: CapturedOutput,
    /// Standard output as it was written, with [`Streams::Exact`](crate::StdioMode::Exact); else
    /// empty.
    pub exact: Vec<u8>,
    /// The bytes of output in the [`Spill`](crate::SpillFile) file, where the request has one.
    pub spilled: Option<u64>,
    /// The actions that the sandbox denied, as far as they can be known; a bounded number.
    pub denials: Vec<Denial>,
    /// The connections asked of the proxy, with [`Network::Filtered`](crate::Network::Filtered); a
    /// bounded number.
    pub connections: Vec<ProxyConnection>,
    /// Wall time from the request to the end of the last process.
    pub duration: Duration,
    /// The resources used.
    pub usage: ResourceUsage,
    /// The guarantees that held while the command ran.
    pub enforcement: Enforcement,
}

/// A command under way. Dropping it kills the command and all its processes.
#[derive(Debug)]
pub struct RunningCommand {
    live: mpsc::Receiver<OutputChunk>,
    done: JoinHandle<Result<CompletedCommand, SandboxError>>,
    guard: DropGuard,
}

impl RunningCommand {
    /// Starts the task that watches a command; it ends, with the tree killed, once `stop` is
    /// cancelled.
    pub(crate) fn spawn_watcher(
        live: mpsc::Receiver<OutputChunk>,
        stop: CancellationToken,
        watcher: impl Future<Output = Result<CompletedCommand, SandboxError>> + Send + 'static,
    ) -> Self {
        Self { live, done: tokio::spawn(watcher), guard: stop.drop_guard() }
    }

    /// Returns the next piece of output, or `None` when there will be no more. A reader who lags
    /// misses pieces (at most 8 wait), unless [`Request::live`](crate::Request::live) is
    /// [`Live::Whole`](crate::LiveOutputMode::Whole); [`CompletedCommand`] has all that counts.
    pub async fn next_chunk(&mut self) -> Option<OutputChunk> {
        self.live.recv().await
    }

    /// Waits for the end. Needs no [`next_chunk`](Self::next_chunk) before it; dropping the future
    /// kills the command.
    ///
    /// # Errors
    /// [`SandboxError`] when the program isn't a sandbox helper or the command could not be
    /// watched; it is killed then. A command that could not be set up is an [`Outcome`].
    pub async fn wait(self) -> Result<CompletedCommand, SandboxError> {
        let Self { live, done, guard } = self;
        drop(live);
        let result = done.await.unwrap_or(Err(SandboxError::Abandoned));
        drop(guard);
        result
    }
}
