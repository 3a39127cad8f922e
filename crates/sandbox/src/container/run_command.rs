//! Runs a command in a container, to its end.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bollard::container::LogOutput;
use bollard::errors::Error as ApiError;
use bollard::models::EventMessage;
use bollard::query_parameters::{EventsOptionsBuilder, ResizeExecOptionsBuilder};
use futures_util::StreamExt as _;
use journeyman_protocol::Enforcement;
use tokio::io::AsyncWriteExt as _;
use tokio_util::sync::CancellationToken;

use super::cgroup_counters::UsedResources;
use super::client::supervise_error;
use super::pool::Pool;
use super::warm_container::{ExecInput, WarmContainer};
use crate::SandboxError;
use crate::capture::{OutputCollector, OutputStream};
use crate::request::{Limits, Stdin, StdioMode};
use crate::running_command::{CompletedCommand, NotStarted, Outcome, ResourceUsage};

/// Maximum wait for output after the command's end: processes that it left may hold the pipes for
/// ever.
const MAX_OUTPUT_WAIT: Duration = Duration::from_millis(250);
/// Maximum wait for the kernel's report that memory ran out, after a command was killed.
const OOM_WAIT: Duration = Duration::from_millis(300);
/// Queries for the exit code of a command whose streams ended, with a short pause between them;
/// later queries are [`DISK_CHECK_INTERVAL`] apart.
const MAX_FAST_QUERIES: u32 = 5;
const FAST_QUERY_PAUSE: Duration = Duration::from_millis(5);
/// The interval between two checks of the disk.
const DISK_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Exit codes of a shell whose program doesn't exist or can't be run; the runtime's message of the
/// same begins so.
const NOT_RUN_CODES: [i64; 2] = [126, 127];
const NOT_RUN_PREFIX: &str = "OCI runtime exec failed";
/// The exit code of a killed command, as a shell reports it.
const KILLED_CODE: i64 = 128 + 9;
/// The end of the file, as a terminal takes it (Ctrl-D).
const END_OF_FILE: u8 = 4;

/// A command to run, without its container.
pub(super) struct ContainerJob {
    pub(super) argv: Vec<String>,
    pub(super) env: Vec<String>,
    pub(super) cwd: String,
    pub(super) stdin: Stdin,
    pub(super) streams: StdioMode,
    pub(super) limits: Limits,
    pub(super) enforcement: Enforcement,
    /// A directory on the file system that is written to.
    pub(super) disk: PathBuf,
    pub(super) begun: Instant,
    /// Locked while the command is there.
    pub(super) witness: Option<std::fs::File>,
}

/// The end of the command itself.
struct CommandEnd {
    outcome: Outcome,
    /// Its streams ended by themselves.
    complete: bool,
}

/// Runs a command to its end. When it returns, no process of the command is left.
pub(super) async fn run_in_container(
    warm: WarmContainer,
    mut job: ContainerJob,
    mut collector: OutputCollector,
    stop: CancellationToken,
    pool: std::sync::Arc<Pool>,
) -> Result<CompletedCommand, SandboxError> {
    let witness = job.witness.take();
    let before = warm.counters.read_usage();
    let ended = tokio::select! {
        biased;
        outcome = wait_for_stop(&job, &stop) => Ok(CommandEnd { outcome, complete: false }),
        ended = run_command(&warm, &job, &mut collector) => ended,
    };
    let used = warm.counters.read_usage();
    let outcome = match ended {
        Ok(ended) if ended.complete && warm.is_idle().await => {
            pool.put_back(warm);
            ended.outcome
        }
        Ok(ended) => {
            warm.remove().await.map_err(supervise_error("ending the command's container"))?;
            ended.outcome
        }
        Err(error) => {
            // The command's effects are unknown, but no process of it may be left.
            warm.remove().await.ok();
            return Err(supervise_error("running the command in its container")(error));
        }
    };
    drop(witness);
    let (spilled, denial) = collector.finish_spill();
    let ([stdout, stderr, combined], exact) = collector.finish();
    Ok(CompletedCommand {
        outcome: detect_not_run(outcome, &combined.text),
        stdout,
        stderr,
        combined,
        exact,
        spilled,
        denials: denial.into_iter().collect(),
        connections: Vec::new(),
        duration: job.begun.elapsed(),
        usage: usage_between(before, used),
        enforcement: job.enforcement,
    })
}

fn usage_between(before: UsedResources, after: UsedResources) -> ResourceUsage {
    ResourceUsage {
        user: after.user.saturating_sub(before.user),
        system: after.system.saturating_sub(before.system),
        peak_memory: after.peak,
    }
}

/// Recognizes a program that couldn't be started, by the runtime's message in place of output.
fn detect_not_run(outcome: Outcome, text: &str) -> Outcome {
    match outcome {
        Outcome::Exited(code)
            if NOT_RUN_CODES.contains(&i64::from(code)) && text.starts_with(NOT_RUN_PREFIX) =>
        {
            Outcome::SetupFailed(NotStarted::from_setup_failure(super::client::to_one_line(text)))
        }
        other => other,
    }
}

/// Waits for a reason to kill the command, and returns it.
async fn wait_for_stop(job: &ContainerJob, stop: &CancellationToken) -> Outcome {
    let deadline = tokio::time::sleep_until((job.begun + job.limits.wall).into());
    tokio::select! {
        () = deadline => Outcome::TimedOut,
        () = stop.cancelled() => Outcome::Cancelled,
        () = wait_for_disk_limit(job) => Outcome::DiskLimit,
    }
}

/// Waits until the file system has filled by as much as the command may write. Others' writes
/// count, too, because they can't be told apart.
async fn wait_for_disk_limit(job: &ContainerJob) {
    let free = || {
        let found = rustix::fs::statvfs(&job.disk).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    };
    let Some(before) = free() else { return std::future::pending().await };
    let most = job.limits.disk_bytes.unwrap_or(before / 4);
    loop {
        tokio::time::sleep(DISK_CHECK_INTERVAL).await;
        if free().is_some_and(|now| before.saturating_sub(now) > most) {
            return;
        }
    }
}

/// Starts the command and collects its output, until it ends, floods or runs out of memory.
async fn run_command(
    warm: &WarmContainer,
    job: &ContainerJob,
    collector: &mut OutputCollector,
) -> Result<CommandEnd, ApiError> {
    let exhausted = warm.counters.read_usage().exhausted;
    let mut events = Box::pin(container_events(warm));
    let terminal = match job.streams {
        StdioMode::Terminal { columns, rows } => Some((columns, rows)),
        _ => None,
    };
    let stdin = matches!(job.stdin, Stdin::Bytes(_));
    let (argv, env, cwd) = (job.argv.clone(), job.env.clone(), Some(job.cwd.clone()));
    let (id, mut output, input) = warm.start_command(argv, env, cwd, stdin, terminal.is_some()).await?;
    if let Some((columns, rows)) = terminal {
        let options = ResizeExecOptionsBuilder::default().w(columns.into()).h(rows.into()).build();
        // Fails where the command has ended already.
        warm.daemon.docker.resize_exec(&id, options).await.ok();
    }
    let mut feeding = Box::pin(feed_input(input, &job.stdin, terminal.is_some()));
    let (mut fed, mut open, mut code, mut listening) = (false, true, None, true);
    let mut linger = None;
    while open {
        collector.wait_for_room_before(&mut linger).await;
        tokio::select! {
            piece = next_with_reader_room(collector, output.next()) => match piece.transpose()? {
                Some(piece) => {
                    collect_output(collector, piece);
                    if collector.is_flooded() {
                        return Ok(CommandEnd { outcome: Outcome::OutputLimit, complete: false });
                    }
                }
                None => open = false,
            },
            event = events.next(), if listening => match event {
                Some(Ok(event)) if is_out_of_memory(&event) => {
                    return Ok(CommandEnd { outcome: Outcome::MemoryLimit, complete: false });
                }
                Some(Ok(event)) => if let Some(ended) = event_exit_code(&event, &id) {
                    code = Some(ended);
                    linger = Some(tokio::time::Instant::now() + MAX_OUTPUT_WAIT);
                },
                // Without events, the end of the streams means that the command ended.
                Some(Err(_)) | None => listening = false,
            },
            () = &mut feeding, if !fed => fed = true,
            () = sleep_until(linger) => break,
        }
    }
    let code = match code {
        Some(code) => code,
        None => query_exit_code(warm, &id).await?,
    };
    if warm.counters.read_usage().exhausted > exhausted
        || code == KILLED_CODE && wait_for_out_of_memory(&mut events).await
    {
        return Ok(CommandEnd { outcome: Outcome::MemoryLimit, complete: false });
    }
    let cpu = job.limits.cpu.is_some() && matches!(code, 137 | 152);
    let outcome = match code {
        // SIGXCPU, or the kill that follows it.
        _ if cpu => Outcome::CpuLimit,
        code if code > 128 && code < 128 + 65 => Outcome::Signaled(i32::try_from(code - 128).unwrap_or(0)),
        code => Outcome::Exited(i32::try_from(code).unwrap_or(-1)),
    };
    Ok(CommandEnd { outcome, complete: !open })
}

/// Takes the next piece once a reader that must get every piece has room for it.
async fn next_with_reader_room<T>(collector: &OutputCollector, next: impl Future<Output = T>) -> T {
    collector.wait_for_room().await;
    next.await
}

fn collect_output(collector: &mut OutputCollector, piece: LogOutput) {
    let (stream, bytes) = match piece {
        LogOutput::StdErr { message } => (OutputStream::Stderr, message),
        LogOutput::StdOut { message } | LogOutput::Console { message } | LogOutput::StdIn { message } => {
            (OutputStream::Stdout, message)
        }
    };
    collector.push_chunk(stream, &bytes);
}

/// Writes the command's input, then the end of the file. A command that doesn't read its input
/// breaks the pipe.
async fn feed_input(mut input: ExecInput, stdin: &Stdin, terminal: bool) {
    if let Stdin::Bytes(bytes) = stdin {
        input.write_all(bytes).await.ok();
        if terminal {
            input.write_all(&[END_OF_FILE]).await.ok();
            input.flush().await.ok();
            // Closing it would hang the terminal up.
            return std::future::pending().await;
        }
        input.shutdown().await.ok();
    }
    // The same connection brings the output.
    std::future::pending().await
}

/// Returns the daemon's events of the container from now on.
fn container_events(
    warm: &WarmContainer,
) -> impl futures_util::Stream<Item = Result<EventMessage, ApiError>> + use<> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // The daemon repeats what happened since, so that nothing is lost until it listens.
    let since = now.as_secs().to_string();
    let filters = HashMap::from([
        ("type", vec!["container"]),
        ("container", vec![warm.id.as_str()]),
        ("event", vec!["oom", "exec_die", "die"]),
    ]);
    let options = EventsOptionsBuilder::default().since(&since).filters(&filters).build();
    warm.daemon.docker.events(Some(options))
}

fn is_out_of_memory(event: &EventMessage) -> bool {
    event.action.as_deref() == Some("oom")
}

/// Returns the code with which this command ended, if the event says so.
fn event_exit_code(event: &EventMessage, id: &str) -> Option<i64> {
    let attributes = event.actor.as_ref()?.attributes.as_ref()?;
    let action = event.action.as_deref()?;
    match action {
        "exec_die" if attributes.get("execID").map(String::as_str) == Some(id) => {
            attributes.get("exitCode")?.parse().ok()
        }
        // The container itself ended, and all in it.
        "die" => Some(KILLED_CODE),
        _ => None,
    }
}

async fn wait_for_out_of_memory(
    events: &mut (impl futures_util::Stream<Item = Result<EventMessage, ApiError>> + Unpin),
) -> bool {
    let heard = async {
        while let Some(Ok(event)) = events.next().await {
            if is_out_of_memory(&event) {
                return true;
            }
        }
        false
    };
    tokio::time::timeout(OOM_WAIT, heard).await.unwrap_or(false)
}

/// Returns the exit code of a command whose streams ended.
async fn query_exit_code(warm: &WarmContainer, id: &str) -> Result<i64, ApiError> {
    let mut asked = 0;
    loop {
        let found = warm.daemon.docker.inspect_exec(id).await?;
        if let (Some(false), Some(code)) = (found.running, found.exit_code) {
            return Ok(code);
        }
        // It closed its streams and goes on; it is waited for until its time is over.
        asked += 1;
        tokio::time::sleep(if asked < MAX_FAST_QUERIES { FAST_QUERY_PAUSE } else { DISK_CHECK_INTERVAL })
            .await;
    }
}

async fn sleep_until(when: Option<tokio::time::Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when).await,
        None => std::future::pending().await,
    }
}
