//! The back-end that confines nothing, used only where the user named it.

use std::path::{Path, PathBuf};
use std::process::Stdio as ProcessStdio;
use std::time::{Duration, Instant};

use journeyman_protocol::{Enforcement, SandboxTier};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdout, Command};
use tokio_util::sync::CancellationToken;

use crate::backend::{Backend, BackendFuture};
use crate::capture::{OutputCollector, OutputStream, READ_BYTES};
use crate::request::{Request, Stdin, StdioMode};
use crate::running_command::{CompletedCommand, Outcome, ResourceUsage, RunningCommand};
use crate::spill::SpillWriter;
use crate::{Limits, ProjectCopy, SandboxError};

/// Maximum wait for output after the command's end: a background process may hold the pipes for
/// ever.
const MAX_OUTPUT_WAIT: Duration = Duration::from_millis(250);

/// Gives the command its pipes; where both streams share one, its reading end is returned.
fn connect_outputs(command: &mut Command, streams: StdioMode) -> std::io::Result<Option<ChildStdout>> {
    if streams != StdioMode::Merged {
        command.stdout(ProcessStdio::piped()).stderr(ProcessStdio::piped());
        return Ok(None);
    }
    let (reader, writer) = std::io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    ChildStdout::from_std(std::process::ChildStdout::from(std::os::fd::OwnedFd::from(reader))).map(Some)
}

/// Runs commands with the caller's own rights.
#[derive(Debug)]
pub(crate) struct Unconfined;

impl Backend for Unconfined {
    fn tier(&self) -> SandboxTier {
        SandboxTier::Unconfined
    }

    fn probe(&self) -> BackendFuture<'_, Result<Enforcement, SandboxError>> {
        Box::pin(async { Ok(Enforcement::none()) })
    }

    fn spawn(
        &self,
        request: Request,
        _enforcement: Enforcement,
        cancel: CancellationToken,
    ) -> BackendFuture<'_, Result<RunningCommand, SandboxError>> {
        Box::pin(async move { spawn_unconfined(request, Enforcement::none(), cancel, None) })
    }
}

/// Runs the request with the caller's own rights, in a process group of its own. Of the limits only
/// wall time and output hold. `kept` is dropped when it is over.
pub(crate) fn spawn_unconfined(
    request: Request,
    enforcement: Enforcement,
    cancel: CancellationToken,
    kept: Option<Box<dyn Send>>,
) -> Result<RunningCommand, SandboxError> {
    let begun = Instant::now();
    let Some((program, arguments)) = request.argv.split_first() else {
        return Err(SandboxError::Refused("the command is empty".to_owned()));
    };
    if matches!(request.streams, StdioMode::Terminal { .. }) {
        let reason = "a terminal of its own is only given to a command that is confined";
        return Err(SandboxError::Refused(reason.to_owned()));
    }
    let cwd = working_directory(&request)?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(&request.env).current_dir(cwd).kill_on_drop(true);
    let merged = connect_outputs(&mut command, request.streams)
        .map_err(|source| SandboxError::Start { path: program.into(), source })?;
    command.stdin(match request.stdin {
        Stdin::Null => ProcessStdio::null(),
        Stdin::Bytes(_) => ProcessStdio::piped(),
    });
    command.process_group(0);
    let spilling = request.spill.as_ref().map(SpillWriter::create).transpose()?;
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(source) => {
            spilling.into_iter().for_each(SpillWriter::abandon);
            return Err(SandboxError::Start { path: program.into(), source });
        }
    };
    // The command holds the pipe's writing end; as long as it lives, the output has no end.
    drop(command);
    if let Some(reader) = merged {
        child.stdout = Some(reader);
    }
    let group = ProcessGroup(child.id());
    let (mut collector, live) = OutputCollector::new(&request.limits, request.streams, request.live);
    collector.spill_to(spilling);
    let stop = cancel.child_token();
    let watcher = watch_command(child, group, request.stdin, request.limits, stop.clone(), collector, begun);
    let watcher = async move {
        let completed = watcher.await.map(|completed| CompletedCommand { enforcement, ..completed });
        drop(kept);
        completed
    };
    Ok(RunningCommand::spawn_watcher(live, stop, watcher))
}

/// Returns the command's working directory: in a copy, if there is one.
fn working_directory(request: &Request) -> Result<PathBuf, SandboxError> {
    let copy = match &request.base {
        None => return Ok(request.cwd.clone()),
        Some(ProjectCopy::Mounted(_)) => {
            let reason =
                "the copy is mounted in namespaces of its own, which a command without any can't see";
            return Err(SandboxError::Refused(reason.to_owned()));
        }
        Some(ProjectCopy::Directory { path, .. }) => path,
    };
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let beneath = request.cwd.strip_prefix(&request.root).map(Path::to_owned);
    // A directory that only the copy has can't be resolved here, so its name is used.
    let beneath =
        beneath.or_else(|_| real(&request.cwd).strip_prefix(real(&request.root)).map(Path::to_owned));
    let beneath = beneath.map_err(|_| {
        SandboxError::Refused(format!(
            "the working directory `{}` isn't in the project, of which there is a copy",
            request.cwd.display()
        ))
    })?;
    let cwd = copy.join(beneath);
    let error = |source| SandboxError::Path { what: "the working directory", path: cwd.clone(), source };
    let (found, copy) = (cwd.canonicalize().map_err(error)?, real(copy));
    if !found.starts_with(copy) {
        let reason = format!("a link leads the working directory `{}` out of the copy", cwd.display());
        return Err(SandboxError::Refused(reason));
    }
    Ok(found)
}

/// The process group; killed when dropped, so that nothing of it survives the watcher.
struct ProcessGroup(Option<u32>);

impl ProcessGroup {
    fn kill(&self) {
        if let Some(pid) = self.0.and_then(|id| rustix::process::Pid::from_raw(id.cast_signed())) {
            // Fails only where the group is gone already, which is what is wanted.
            rustix::process::kill_process_group(pid, rustix::process::Signal::KILL).ok();
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn watch_command(
    mut child: Child,
    group: ProcessGroup,
    stdin: Stdin,
    limits: Limits,
    stop: CancellationToken,
    mut collector: OutputCollector,
    begun: Instant,
) -> Result<CompletedCommand, SandboxError> {
    let supervise = |what| move |source| SandboxError::Supervise { what, source };
    if let (Stdin::Bytes(bytes), Some(mut pipe)) = (stdin, child.stdin.take()) {
        // Ends with the pipe: a command that doesn't read its input breaks it when it ends.
        tokio::spawn(async move { pipe.write_all(&bytes).await.ok() });
    }
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let (mut out_buffer, mut err_buffer) = (vec![0; READ_BYTES], vec![0; READ_BYTES]);
    let deadline = tokio::time::sleep(limits.wall);
    tokio::pin!(deadline);
    let mut outcome = None;
    let mut linger = None;
    while out.is_some() || err.is_some() || linger.is_none() {
        collector.wait_for_room_before(&mut linger).await;
        // A flooding command runs until the kernel kills it; unread output blocks it.
        let reads = outcome != Some(Outcome::OutputLimit) || linger.is_some();
        tokio::select! {
            read = async { collector.wait_for_room().await; read_or_wait(&mut out, &mut out_buffer).await }, if reads => {
                let bytes = read.map_err(supervise("reading the command's output"))?;
                collector.push_chunk(OutputStream::Stdout, out_buffer.get(..bytes).unwrap_or_default());
                if bytes == 0 { out = None; }
            }
            read = async { collector.wait_for_room().await; read_or_wait(&mut err, &mut err_buffer).await }, if reads => {
                let bytes = read.map_err(supervise("reading the command's errors"))?;
                collector.push_chunk(OutputStream::Stderr, err_buffer.get(..bytes).unwrap_or_default());
                if bytes == 0 { err = None; }
            }
            status = child.wait(), if linger.is_none() => {
                let status = status.map_err(supervise("waiting for the command"))?;
                outcome.get_or_insert(to_outcome(status));
                linger = Some(tokio::time::Instant::now() + MAX_OUTPUT_WAIT);
                group.kill();
            }
            () = &mut deadline, if outcome.is_none() => { outcome = Some(Outcome::TimedOut); group.kill(); }
            () = stop.cancelled(), if outcome.is_none() => { outcome = Some(Outcome::Cancelled); group.kill(); }
            () = sleep_until(linger) => break,
        }
        // It may have ended by itself before the last of its output was read.
        if collector.is_flooded() && matches!(outcome, None | Some(Outcome::Exited(_))) {
            outcome = Some(Outcome::OutputLimit);
            group.kill();
        }
    }
    let (spilled, denial) = collector.finish_spill();
    let ([stdout, stderr, combined], exact) = collector.finish();
    Ok(CompletedCommand {
        outcome: outcome.unwrap_or(Outcome::Cancelled),
        stdout,
        stderr,
        combined,
        exact,
        spilled,
        denials: denial.into_iter().collect(),
        connections: Vec::new(),
        duration: begun.elapsed(),
        usage: ResourceUsage::default(),
        enforcement: Enforcement::none(),
    })
}

/// Reads from the stream; waits for ever once it has ended.
async fn read_or_wait(
    stream: &mut Option<impl AsyncRead + Unpin>,
    buffer: &mut [u8],
) -> std::io::Result<usize> {
    match stream {
        Some(stream) => stream.read(buffer).await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(when: Option<tokio::time::Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when).await,
        None => std::future::pending().await,
    }
}

fn to_outcome(status: std::process::ExitStatus) -> Outcome {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => Outcome::Exited(code),
        (None, signal) => Outcome::Signaled(signal.unwrap_or(0)),
    }
}
