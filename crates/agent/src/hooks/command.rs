//! Runs a configured command outside the sandbox, as its configuration asks.
//!
//! Elsewhere only the crates `sandbox` and `git` start programs. A hook with `sandbox = false` is
//! the user's own program with the user's rights (for example, to send a notification or query a
//! server). The session must not decide what this program does. The program is therefore not
//! started once the session has changed a file that it is, names or obeys, and its `PATH` holds no
//! directory of the project. For this reason the module uses Tokio's processes directly.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStdin, Command};
use tokio_util::sync::CancellationToken;

/// Bytes of each output stream that are kept. The rest is read and dropped, so that a verbose hook
/// isn't blocked by a full pipe.
pub const MAX_HOOK_OUTPUT_BYTES: usize = 64 * 1024;
/// Maximum number of bytes that are read after the command has ended. No pipe holds more, whatever
/// a surviving child process goes on writing.
const MAX_BYTES_AFTER_EXIT: usize = 1024 * 1024;

/// The `PATH` for a user who has none.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The way in which a command ended.
#[derive(Debug)]
pub(super) enum CommandEnd {
    /// The process exited or was killed by a signal.
    Exited {
        status: ExitKind,
        stdout: KeptOutput,
        stderr: KeptOutput,
        /// The access that the sandbox denied.
        denial: Option<String>,
    },
    /// The command was killed for this reason.
    Killed(&'static str),
    /// The command exceeded its timeout.
    TimedOut,
    /// The command couldn't be started, for this reason.
    NotStarted(String),
    /// The session cancelled the command.
    Cancelled,
}

/// The exit status of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExitKind {
    Code(i32),
    Signal(i32),
}

/// The beginning of an output stream.
#[derive(Debug, Default)]
pub(super) struct KeptOutput {
    bytes: Vec<u8>,
    pub(super) cut: bool,
}

/// The parameters of a command to start.
pub(super) struct CommandParameters<'a> {
    pub(super) command: &'a str,
    pub(super) root: &'a Path,
    pub(super) variables: &'a BTreeMap<OsString, OsString>,
    pub(super) timeout: Duration,
    pub(super) cancel: &'a CancellationToken,
}

impl CommandParameters<'_> {
    /// Returns the user's `PATH` without directories of the project, since the session may have
    /// written the programs in them.
    fn path_variable(&self) -> OsString {
        let path =
            self.variables.get(OsStr::new("PATH")).map_or(OsStr::new(DEFAULT_PATH), OsString::as_os_str);
        let outside = |directory: &PathBuf| {
            let real = directory.canonicalize().unwrap_or_else(|_| directory.clone());
            directory.is_absolute() && !directory.starts_with(self.root) && !real.starts_with(self.root)
        };
        std::env::join_paths(std::env::split_paths(path).filter(outside))
            .unwrap_or_else(|_| DEFAULT_PATH.into())
    }
}

/// Runs a command with `input` on its standard input. Dropping the future kills the process group.
pub(super) async fn run_command(start: CommandParameters<'_>, input: Vec<u8>) -> CommandEnd {
    let finished = async {
        match tokio::time::timeout(start.timeout, run_process(&start, input)).await {
            Ok(Ok(ended)) => ended,
            Ok(Err(error)) => CommandEnd::NotStarted(error.to_string()),
            Err(_) => CommandEnd::TimedOut,
        }
    };
    tokio::select! {
        biased;
        () = start.cancel.cancelled() => CommandEnd::Cancelled,
        ended = finished => ended,
    }
}

async fn run_process(start: &CommandParameters<'_>, input: Vec<u8>) -> std::io::Result<CommandEnd> {
    let mut child = spawn_process(start)?;
    let mut group = ProcessGroup(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw));
    let (stdin, mut stdout, mut stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (mut out, mut err) = (KeptOutput::default(), KeptOutput::default());
    let status = {
        // Closing pipes don't tell when a command ends: a surviving child process may hold them
        // open.
        let pipes = async {
            tokio::join!(
                write_input(stdin, input),
                out.read_stream(&mut stdout),
                err.read_stream(&mut stderr)
            );
            std::future::pending::<Infallible>().await
        };
        tokio::select! {
            biased;
            status = child.wait() => status?,
            never = pipes => match never {},
        }
    };
    // Processes that the command left running (such as a notifier) belong to the user from here on.
    group.0 = None;
    out.read_available(stdout.as_ref());
    err.read_available(stderr.as_ref());
    Ok(CommandEnd::Exited { status: ExitKind::from(status), stdout: out, stderr: err, denial: None })
}

fn spawn_process(start: &CommandParameters<'_>) -> std::io::Result<tokio::process::Child> {
    let mut command = Command::new("/bin/sh");
    command
        .arg("-c")
        .arg(start.command)
        .current_dir(start.root)
        .env_clear()
        .envs(start.variables)
        .env("PATH", start.path_variable())
        .env("JOURNEYMAN_PROJECT_DIR", start.root)
        .env("CLAUDE_PROJECT_DIR", start.root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    command.spawn()
}

/// Writes the JSON to the command. A hook that doesn't read its input closes the pipe, which is no
/// error.
async fn write_input(stdin: Option<ChildStdin>, input: Vec<u8>) {
    if let Some(mut stdin) = stdin
        && stdin.write_all(&input).await.is_ok()
    {
        stdin.shutdown().await.ok();
    }
}

/// The process group of a command. Dropping the group kills it, unless the command has ended.
struct ProcessGroup(Option<Pid>);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // A failure means that the group has no process left to kill.
            kill_process_group(group, Signal::KILL).ok();
        }
    }
}

impl From<ExitStatus> for ExitKind {
    fn from(status: ExitStatus) -> Self {
        status.code().map_or_else(|| Self::Signal(status.signal().unwrap_or_default()), Self::from)
    }
}

impl From<i32> for ExitKind {
    fn from(code: i32) -> Self {
        match code {
            // The shell reports a command killed by a signal with 128 plus the signal's number.
            129..=159 => Self::Signal(code - 128),
            code => Self::Code(code),
        }
    }
}

impl KeptOutput {
    /// Keeps the beginning of `bytes`. `cut` is true if the caller has dropped output already.
    pub(super) fn from_bytes(bytes: &[u8], cut: bool) -> Self {
        let mut kept = Self { bytes: Vec::new(), cut };
        kept.push(bytes);
        kept
    }

    /// Reads the stream to its end.
    async fn read_stream(&mut self, stream: &mut Option<impl AsyncRead + Unpin>) {
        let Some(stream) = stream else { return };
        let mut piece = vec![0; 8 * 1024];
        while let Ok(count @ 1..) = stream.read(&mut piece).await {
            self.push(piece.get(..count).unwrap_or_default());
        }
    }

    /// Reads what a pipe holds at this moment, without waiting for more.
    fn read_available(&mut self, stream: Option<&impl AsFd>) {
        let Some(stream) = stream else { return };
        let mut piece = vec![0; 8 * 1024];
        let mut total = 0;
        // Tokio's pipes don't block, so reading an empty pipe that is still open fails and ends the
        // loop.
        while total < MAX_BYTES_AFTER_EXIT
            && let Ok(count @ 1..) = rustix::io::read(stream, &mut piece)
        {
            total += count;
            self.push(piece.get(..count).unwrap_or_default());
        }
    }

    fn push(&mut self, piece: &[u8]) {
        let room = MAX_HOOK_OUTPUT_BYTES.saturating_sub(self.bytes.len());
        self.cut |= piece.len() > room;
        self.bytes.extend_from_slice(piece.get(..room).unwrap_or(piece));
    }

    /// Returns the kept output as text without surrounding white space. Invalid UTF-8 is replaced.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).trim().to_owned()
    }
}
