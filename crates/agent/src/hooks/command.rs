//! Running one configured command outside of the sandbox, as its configuration says.
//!
//! Elsewhere only the crates `sandbox` and `git` start programs. A hook with `sandbox = false` is the user's own program,
//! with the user's rights (it notifies, or asks a server). Nothing of the session may decide what it does: so it isn't
//! started once the session changed a file that it is, names or obeys, and no directory of the project is in its
//! `PATH`. That is why this module uses Tokio's processes.

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

/// Bytes of each output stream that are kept; the rest is read and dropped, so that a talkative hook ends too.
pub const HOOK_OUTPUT_BYTES: usize = 64 * 1024;
/// Bytes that are still read once the command has ended. A pipe holds no more, whatever a child that lives on
/// goes on writing.
const REST_BYTES: usize = 1024 * 1024;

/// Where programs are for a user without a `PATH`.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// How a command ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// By itself, or by a signal.
    Exited {
        status: Exit,
        stdout: Kept,
        stderr: Kept,
        /// What the sandbox kept it from.
        denial: Option<String>,
    },
    /// It was killed for what this says.
    Killed(&'static str),
    /// It ran for longer than it may.
    TimedOut,
    /// It couldn't be started.
    NotStarted(String),
    /// The session stopped it.
    Cancelled,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    Code(i32),
    Signal(i32),
}

/// The head of an output stream.
#[derive(Debug, Default)]
pub(super) struct Kept {
    bytes: Vec<u8>,
    pub(super) cut: bool,
}

/// What a command is started with.
pub(super) struct Start<'a> {
    pub(super) command: &'a str,
    pub(super) root: &'a Path,
    pub(super) variables: &'a BTreeMap<OsString, OsString>,
    pub(super) timeout: Duration,
    pub(super) cancel: &'a CancellationToken,
}

impl Start<'_> {
    /// The user's `PATH` without directories of the project: whatever lies there, the session may have put there.
    fn path(&self) -> OsString {
        let path = self.variables.get(OsStr::new("PATH")).map_or(OsStr::new(PATH), OsString::as_os_str);
        let outside = |directory: &PathBuf| {
            let real = directory.canonicalize().unwrap_or_else(|_| directory.clone());
            directory.is_absolute() && !directory.starts_with(self.root) && !real.starts_with(self.root)
        };
        std::env::join_paths(std::env::split_paths(path).filter(outside)).unwrap_or_else(|_| PATH.into())
    }
}

/// Runs a command with `input` on its standard input. Whoever drops the future kills the process group.
pub(super) async fn run(start: Start<'_>, input: Vec<u8>) -> Ended {
    let finished = async {
        match tokio::time::timeout(start.timeout, talk(&start, input)).await {
            Ok(Ok(ended)) => ended,
            Ok(Err(error)) => Ended::NotStarted(error.to_string()),
            Err(_) => Ended::TimedOut,
        }
    };
    tokio::select! {
        biased;
        () = start.cancel.cancelled() => Ended::Cancelled,
        ended = finished => ended,
    }
}

async fn talk(start: &Start<'_>, input: Vec<u8>) -> std::io::Result<Ended> {
    let mut child = spawn(start)?;
    let mut group = Group(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw));
    let (stdin, mut stdout, mut stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (mut out, mut err) = (Kept::default(), Kept::default());
    let status = {
        // The pipes don't say when a command has ended: a child that it left behind may hold them open for ever.
        let pipes = async {
            tokio::join!(write(stdin, input), out.fill(&mut stdout), err.fill(&mut stderr));
            std::future::pending::<Infallible>().await
        };
        tokio::select! {
            biased;
            status = child.wait() => status?,
            never = pipes => match never {},
        }
    };
    // What was left behind on purpose (a notifier in the background) is the user's own business from here on.
    group.0 = None;
    out.take_rest(stdout.as_ref());
    err.take_rest(stderr.as_ref());
    Ok(Ended::Exited { status: Exit::from(status), stdout: out, stderr: err, denial: None })
}

fn spawn(start: &Start<'_>) -> std::io::Result<tokio::process::Child> {
    let mut command = Command::new("/bin/sh");
    command
        .arg("-c")
        .arg(start.command)
        .current_dir(start.root)
        .env_clear()
        .envs(start.variables)
        .env("PATH", start.path())
        .env("JOURNEYMAN_PROJECT_DIR", start.root)
        .env("CLAUDE_PROJECT_DIR", start.root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    command.spawn()
}

/// Hands the JSON over. A hook that doesn't read it closes the pipe, which is its right.
async fn write(stdin: Option<ChildStdin>, input: Vec<u8>) {
    if let Some(mut stdin) = stdin
        && stdin.write_all(&input).await.is_ok()
    {
        stdin.shutdown().await.ok();
    }
}

/// A command's processes. Dropping it kills them, unless the command has ended by itself.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // Nobody is left to kill when this fails.
            kill_process_group(group, Signal::KILL).ok();
        }
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        status.code().map_or_else(|| Self::Signal(status.signal().unwrap_or_default()), Self::from)
    }
}

impl From<i32> for Exit {
    fn from(code: i32) -> Self {
        match code {
            // The shell's own way to say that what it ran was killed.
            129..=159 => Self::Signal(code - 128),
            code => Self::Code(code),
        }
    }
}

impl Kept {
    /// The head of what there was; `cut` says that more was dropped already.
    pub(super) fn head(bytes: &[u8], cut: bool) -> Self {
        let mut kept = Self { bytes: Vec::new(), cut };
        kept.push(bytes);
        kept
    }

    /// Reads to the end.
    async fn fill(&mut self, stream: &mut Option<impl AsyncRead + Unpin>) {
        let Some(stream) = stream else { return };
        let mut piece = vec![0; 8 * 1024];
        while let Ok(count @ 1..) = stream.read(&mut piece).await {
            self.push(piece.get(..count).unwrap_or_default());
        }
    }

    /// Reads what is in a pipe at this moment, without waiting for more.
    fn take_rest(&mut self, stream: Option<&impl AsFd>) {
        let Some(stream) = stream else { return };
        let mut piece = vec![0; 8 * 1024];
        let mut total = 0;
        // Tokio's pipes don't block, so an empty one that is still open ends the loop with an error.
        while total < REST_BYTES
            && let Ok(count @ 1..) = rustix::io::read(stream, &mut piece)
        {
            total += count;
            self.push(piece.get(..count).unwrap_or_default());
        }
    }

    fn push(&mut self, piece: &[u8]) {
        let room = HOOK_OUTPUT_BYTES.saturating_sub(self.bytes.len());
        self.cut |= piece.len() > room;
        self.bytes.extend_from_slice(piece.get(..room).unwrap_or(piece));
    }

    /// The text, with what isn't UTF-8 replaced and without the blank space around it.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).trim().to_owned()
    }
}
