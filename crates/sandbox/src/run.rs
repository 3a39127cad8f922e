//! A command that runs, and what it came to.

use std::time::Duration;

use journeyman_protocol::Enforcement;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::capture::{Captured, OutputChunk};
use crate::{Connection, Denial, SandboxError};

/// Why a command didn't run where no process could be started for it.
pub(crate) const TOO_MANY_PROCESSES: &str = "starting the command: more processes than it may have at once";

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// Killed at its wall-time limit.
    TimedOut,
    /// Killed because the caller said so.
    Cancelled,
    /// Killed for flooding its output.
    OutputLimit,
    /// Killed because its processes together held more memory than [`Limits::memory`](crate::Limits::memory).
    MemoryLimit,
    /// Killed because it wrote more than [`Limits::disk_bytes`](crate::Limits::disk_bytes).
    DiskLimit,
    /// Killed by its limit of processor time.
    CpuLimit,
    /// It never ran: the step of the set-up that failed, on which path, and why.
    SetupFailed(String),
}

impl Outcome {
    /// What it was killed for, where that was a limit other than wall time: completes «killed for …».
    #[must_use]
    pub fn excess(&self) -> Option<&'static str> {
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

/// What a command used, its whole tree together as far as the system counts it.
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
pub struct Completed {
    /// How it ended.
    pub outcome: Outcome,
    /// Standard output.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
    /// Both, in the order they came.
    pub combined: Captured,
    /// Standard output as it was written, with [`Streams::Exact`](crate::Streams::Exact); else empty.
    pub exact: Vec<u8>,
    /// How many bytes of output are in the [`Spill`](crate::Spill) file, where one was asked for.
    pub spilled: Option<u64>,
    /// What the sandbox kept it from, as far as that can be told; a bounded number.
    pub denials: Vec<Denial>,
    /// What it asked the proxy for, with [`Network::Filtered`](crate::Network::Filtered); a bounded number.
    pub connections: Vec<Connection>,
    /// Wall time from the request to the end of the last process.
    pub duration: Duration,
    /// What it used.
    pub usage: ResourceUsage,
    /// What was enforced while it ran.
    pub enforcement: Enforcement,
}

/// A command under way. Dropping it kills the command and all its processes.
#[derive(Debug)]
pub struct Running {
    live: mpsc::Receiver<OutputChunk>,
    done: JoinHandle<Result<Completed, SandboxError>>,
    guard: DropGuard,
}

impl Running {
    /// Starts the task that watches a command; it ends, with the tree killed, once `stop` is cancelled.
    pub(crate) fn watch(
        live: mpsc::Receiver<OutputChunk>,
        stop: CancellationToken,
        watcher: impl Future<Output = Result<Completed, SandboxError>> + Send + 'static,
    ) -> Self {
        Self { live, done: tokio::spawn(watcher), guard: stop.drop_guard() }
    }

    /// The next piece of output, or `None` when there will be no more. A reader who lags misses pieces (at
    /// most 8 wait), unless [`Request::live`](crate::Request::live) is [`Live::Whole`](crate::Live::Whole);
    /// [`Completed`] has what counts.
    pub async fn next(&mut self) -> Option<OutputChunk> {
        self.live.recv().await
    }

    /// Waits for the end. Needs no [`next`](Self::next) before it; dropping the future kills the command.
    ///
    /// # Errors
    /// [`SandboxError`] when the program isn't a sandbox helper or the command could not be watched; it is
    /// killed then. A command that could not be set up is an [`Outcome`].
    pub async fn wait(self) -> Result<Completed, SandboxError> {
        let Self { live, done, guard } = self;
        drop(live);
        let result = done.await.unwrap_or(Err(SandboxError::Abandoned));
        drop(guard);
        result
    }
}
