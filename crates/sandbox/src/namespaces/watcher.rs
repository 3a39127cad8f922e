//! The agent's side of a running command: it reads output, enforces limits and waits for the end.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use journeyman_protocol::Enforcement;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Signal;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio_util::sync::CancellationToken;

use super::c_string::display_path;
use super::cgroups::CgroupLease;
use super::descriptor_passing;
use super::job::{Job, StartedJob};
use super::messages::{HelperMessage, MESSAGE_BYTES, ProcessUsage, ResourceExcess, SetupStage};
use super::ready_helper::HelperProcess;
use super::root_steps::RootStep;
use super::watched_processes::WatchedProcesses;
use crate::capture::{CapturedOutput, OutputCollector, OutputStream, READ_BYTES};
use crate::network::{ProxyConnection, RunningService};
use crate::running_command::{CompletedCommand, NotStarted, NotStartedCause, Outcome, ResourceUsage};
use crate::{Denial, DenialKind, MountedTree, Network, SandboxError};

/// A helper says hello in a millisecond; only a program that is none takes this long on a busy
/// machine.
const MAX_HELLO_WAIT: Duration = Duration::from_secs(60);
/// Maximum time until killed processes are gone. One that waits for a dead disk or server can take
/// for ever.
const MAX_KILL_WAIT: Duration = Duration::from_secs(5);

/// The time between two checks for a process that the kernel killed for lack of memory.
const MEMORY_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Full reads in a row, before anything else is looked at again: what fits into the pipe.
const MAX_CONSECUTIVE_READS: usize = 8;

/// The observations of a command: its end, its output and its resources.
pub(super) struct CommandObservation {
    pub(super) outcome: Outcome,
    pub(super) escaped: Option<i32>,
    /// The stage and the error of a failed set-up, for advice.
    pub(super) failure: Option<(SetupStage, Errno)>,
    output: ([CapturedOutput; 3], Vec<u8>),
    spilled: Option<u64>,
    denials: Vec<Denial>,
    /// The command's network, and its requests to the proxy.
    network: Network,
    connections: Vec<ProxyConnection>,
    duration: Duration,
    usage: ResourceUsage,
}

/// The longest part of what a program said of its own failure that an error repeats.
const MAX_QUOTED_CHARACTERS: usize = 300;

impl CommandObservation {
    /// Returns the last line of output that begins so, cut: a program's message about itself.
    pub(super) fn last_line_with(&self, beginning: &str) -> Option<String> {
        let ([_, _, combined], _) = &self.output;
        let said = combined.text.lines().rfind(|line| line.starts_with(beginning))?;
        Some(said.chars().take(MAX_QUOTED_CHARACTERS).collect())
    }

    pub(super) fn into_completed(self, enforcement: Enforcement) -> CompletedCommand {
        let ([stdout, stderr, combined], exact) = self.output;
        let mut denials = self.denials;
        denials.extend(crate::denial::find_denials(&self.outcome, &combined.text, &self.network));
        let (duration, usage) = (self.duration, self.usage);
        CompletedCommand {
            outcome: self.outcome,
            stdout,
            stderr,
            combined,
            exact,
            spilled: self.spilled,
            denials,
            connections: self.connections,
            duration,
            usage,
            enforcement,
        }
    }
}

struct OutputPipe(Option<pipe::Receiver>);

impl OutputPipe {
    fn new(pipe: OwnedFd) -> io::Result<Self> {
        pipe::Receiver::from_owned_fd(pipe).map(|pipe| Self(Some(pipe)))
    }

    /// Waits until the pipe can be read; for ever once it has ended.
    async fn wait_readable(&self) -> io::Result<()> {
        match &self.0 {
            Some(pipe) => pipe.readable().await,
            None => std::future::pending().await,
        }
    }

    /// Returns true if the pipe has ended or is empty. All that an ended command wrote is in it,
    /// and a process outside that the command gave the writing end to can keep it open for ever.
    fn is_drained(&self) -> bool {
        let Some(pipe) = &self.0 else { return true };
        let now = Timespec::default();
        matches!(poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&now)), Ok(0))
    }

    /// Wraps the outer side of a terminal, which can be read like a pipe.
    fn from_terminal(outer: OwnedFd) -> io::Result<Self> {
        pipe::Receiver::from_owned_fd_unchecked(outer).map(|pipe| Self(Some(pipe)))
    }

    /// Reads the available output.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(pipe) = &self.0 else { return Ok(0) };
        match pipe.try_read(buffer) {
            Ok(0) => {
                self.0 = None;
                Ok(0)
            }
            // Nobody has the terminal any more, and nothing is left in it.
            Err(error) if error.raw_os_error() == Some(libc::EIO) => {
                self.0 = None;
                Ok(0)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(0)
            }
            other => other,
        }
    }
}

/// The text that is typed into a command's terminal, as fast as the terminal takes it.
struct TerminalInput(Option<(pipe::Sender, Vec<u8>)>);

impl TerminalInput {
    async fn wait_writable(&self) -> io::Result<()> {
        match &self.0 {
            Some((terminal, _)) => terminal.writable().await,
            None => std::future::pending().await,
        }
    }

    /// Types on. A terminal that is gone needs no more.
    fn write_more(&mut self) {
        let Some((terminal, rest)) = &mut self.0 else { return };
        match terminal.try_write(rest) {
            Ok(count) => drop(rest.drain(..count.min(rest.len()))),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => rest.clear(),
        }
        if rest.is_empty() {
            self.0 = None;
        }
    }
}

/// Watches one command to its end.
pub(super) struct Watcher {
    processes: WatchedProcesses,
    job: Job,
    program: std::path::PathBuf,
    control: UnixStream,
    connected: bool,
    unsent: Vec<u8>,
    received: Vec<u8>,
    /// Descriptors that came with notes which weren't read yet.
    passed: Vec<OwnedFd>,
    servings: Vec<RunningService>,
    stdout: OutputPipe,
    stderr: OutputPipe,
    typing: TerminalInput,
    collector: OutputCollector,
    stop: CancellationToken,
    begun: Instant,
    greeted: bool,
    outcome: Option<Outcome>,
    escaped: Option<i32>,
    failure: Option<(SetupStage, Errno)>,
    /// Faults of the sandbox itself, for the result.
    told: Vec<Denial>,
    killed: Option<tokio::time::Instant>,
    used: ResourceUsage,
}

fn supervise_error(what: &'static str) -> impl Fn(io::Error) -> SandboxError {
    move |source| SandboxError::Supervise { what, source }
}

enum WatchEvent {
    Stdout,
    Stderr,
    Control,
    Typing,
    Ended(ResourceUsage),
    Stop(Outcome),
    Look,
    NoHello,
    GiveUp,
}

impl Watcher {
    pub(super) fn new(
        started: StartedJob,
        mut job: Job,
        collector: OutputCollector,
        stop: CancellationToken,
        begun: Instant,
    ) -> Result<Self, SandboxError> {
        let StartedJob { helper, unsent } = started;
        let HelperProcess { child: helper, program, control, stdout, stderr } = helper;
        let processes = WatchedProcesses {
            helper,
            init: None,
            signal: job.watched_process.end_signal(),
            usage: None,
            given_up: false,
            ending: false,
        };
        let error = supervise_error("connecting to the command");
        job.policy = Vec::new();
        Ok(Self {
            processes,
            job,
            program,
            control: UnixStream::from_std(control).map_err(&error)?,
            connected: true,
            unsent,
            received: Vec::new(),
            passed: Vec::new(),
            servings: Vec::new(),
            stdout: OutputPipe::new(stdout).map_err(&error)?,
            stderr: OutputPipe::new(stderr).map_err(&error)?,
            typing: TerminalInput(None),
            collector,
            stop,
            begun,
            greeted: false,
            outcome: None,
            escaped: None,
            failure: None,
            told: Vec::new(),
            killed: None,
            used: ResourceUsage::default(),
        })
    }

    pub(super) async fn run(mut self) -> Result<CommandObservation, SandboxError> {
        let mut buffer = vec![0; READ_BYTES];
        let deadline = tokio::time::sleep_until((self.begun + self.job.limits.wall).into());
        tokio::pin!(deadline);
        let mut looks =
            tokio::time::interval_at((self.begun + MEMORY_CHECK_INTERVAL).into(), MEMORY_CHECK_INTERVAL);
        let grouped = !self.job.groups.is_empty();
        while !self.is_over() {
            let hello = (self.begun + MAX_HELLO_WAIT).into();
            let running = self.outcome.is_none();
            let reads = !self.has_enough_output();
            // The reader of the last output may take longer than the processes.
            let alive = !self.processes.have_ended(self.connected);
            let turn = tokio::select! {
                ready = wait_with_reader_room(&self.collector, self.stdout.wait_readable()), if reads => { ready.map_err(supervise_error("reading output"))?; WatchEvent::Stdout }
                ready = wait_with_reader_room(&self.collector, self.stderr.wait_readable()), if reads => { ready.map_err(supervise_error("reading output"))?; WatchEvent::Stderr }
                ready = self.control.ready(self.socket_interest()), if self.connected => {
                    ready.map_err(supervise_error("hearing from the command"))?;
                    WatchEvent::Control
                }
                ready = self.typing.wait_writable() => { ready.map_err(supervise_error("typing"))?; WatchEvent::Typing }
                usage = self.processes.wait_for_init() => WatchEvent::Ended(usage.map_err(supervise_error("waiting for the command"))?),
                () = &mut deadline, if running => WatchEvent::Stop(Outcome::TimedOut),
                _ = looks.tick(), if running && grouped => WatchEvent::Look,
                () = self.stop.cancelled(), if running => WatchEvent::Stop(Outcome::Cancelled),
                () = tokio::time::sleep_until(hello), if !self.greeted => WatchEvent::NoHello,
                () = sleep_until(self.killed), if alive => WatchEvent::GiveUp,
            };
            match turn {
                WatchEvent::Stdout => self.read_output(OutputStream::Stdout, &mut buffer)?,
                WatchEvent::Stderr => self.read_output(OutputStream::Stderr, &mut buffer)?,
                WatchEvent::Control => self.exchange_messages()?,
                WatchEvent::Typing => self.typing.write_more(),
                WatchEvent::Ended(usage) => self.processes.usage = Some(usage),
                WatchEvent::Stop(outcome) => self.stop(outcome),
                // One that goes on without what was killed is stopped as one is whose use is looked
                // at.
                WatchEvent::Look if self.job.groups.has_run_out_of_memory() => {
                    self.stop(Outcome::MemoryLimit)
                }
                WatchEvent::Look => {}
                WatchEvent::NoHello => return Err(SandboxError::NoHelper { path: self.program }),
                WatchEvent::GiveUp => {
                    if self.give_up_on_processes() {
                        break;
                    }
                }
            }
        }
        self.into_observation().await
    }

    /// Returns true if no more messages and output of the command can come: pid 1 has sent its last
    /// message or is gone, or there never was one, and what was written is read.
    fn is_over(&self) -> bool {
        self.processes.have_ended(self.connected) && self.stdout.is_drained() && self.stderr.is_drained()
    }

    /// Returns true if no more output is read of a flood that is to be stopped, but for the rest in
    /// the pipes when all writers are gone. Reading on would cost until the kernel ends the
    /// command; unread output makes it wait.
    fn has_enough_output(&self) -> bool {
        let never = self.processes.init.is_none() && !self.connected;
        let gone = never || self.processes.ending || self.processes.usage.is_some();
        self.outcome == Some(Outcome::OutputLimit) && !gone
    }

    fn socket_interest(&self) -> Interest {
        if self.unsent.is_empty() { Interest::READABLE } else { Interest::READABLE | Interest::WRITABLE }
    }

    fn stop(&mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
        self.killed = Some(tokio::time::Instant::now() + MAX_KILL_WAIT);
        // Before pid 1 is named the helper isn't killed: it may have begun pid 1 already, which
        // nobody would know of then. It ends by itself in a few milliseconds, and pid 1 is killed
        // when its name comes.
        if self.processes.init.is_some() {
            self.processes.kill();
        }
    }

    fn read_output(&mut self, stream: OutputStream, buffer: &mut [u8]) -> Result<(), SandboxError> {
        let pipe = if stream == OutputStream::Stdout { &mut self.stdout } else { &mut self.stderr };
        for _ in 0..MAX_CONSECUTIVE_READS {
            let count = pipe.read(buffer).map_err(supervise_error("reading output"))?;
            if count > 0 {
                self.collector.push_chunk(stream, buffer.get(..count).unwrap_or_default());
            }
            if count < buffer.len() || !self.collector.can_push_without_waiting() {
                break;
            }
        }
        if self.collector.is_flooded() {
            match self.outcome {
                None => self.stop(Outcome::OutputLimit),
                // It ended by itself before the last of its output was read.
                Some(Outcome::Exited(_)) => self.outcome = Some(Outcome::OutputLimit),
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Sends the rest of the policy, and handles the messages that came.
    fn exchange_messages(&mut self) -> Result<(), SandboxError> {
        if !self.unsent.is_empty() {
            match self.control.try_write(&self.unsent) {
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The helper ended before it read everything; its messages, or their absence, give
                // the reason.
                Err(_) => self.unsent.clear(),
            }
        }
        let mut buffer = [0; MESSAGE_BYTES * 8];
        let (control, passed) = (&self.control, &mut self.passed);
        let read = control.try_io(Interest::READABLE, || {
            Ok(descriptor_passing::receive_descriptors(control, &mut buffer, passed)?)
        });
        match read {
            Ok(0) => self.connected = false,
            Ok(count) => self.received.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => self.connected = false,
            Err(error) => return Err(supervise_error("hearing from the command")(error)),
        }
        while let Some((bytes, _)) = self.received.split_first_chunk::<MESSAGE_BYTES>() {
            let note = HelperMessage::decode(bytes);
            self.received.drain(..MESSAGE_BYTES);
            self.handle_message(note)?;
        }
        if !self.connected && !self.greeted {
            return Err(SandboxError::NoHelper { path: std::mem::take(&mut self.program) });
        }
        Ok(())
    }

    fn handle_message(&mut self, note: Option<HelperMessage>) -> Result<(), SandboxError> {
        if note == Some(HelperMessage::HasThreads) && !self.greeted {
            return Err(SandboxError::ThreadsStarted { path: std::mem::take(&mut self.program) });
        }
        let Some(note) = note.filter(|note| self.greeted || *note == HelperMessage::Hello) else {
            return Err(SandboxError::NoHelper { path: std::mem::take(&mut self.program) });
        };
        match note {
            HelperMessage::Hello => self.greeted = true,
            HelperMessage::Waiting => {}
            HelperMessage::Started { pid } => {
                self.processes.watch_init(pid).map_err(supervise_error("watching the command"))?;
                if self.killed.is_some() {
                    self.processes.kill();
                }
            }
            HelperMessage::Failed { stage, index, errno } => {
                let errno = Errno::from_raw_os_error(errno);
                self.failure = Some((stage, errno));
                if stage == SetupStage::Watch {
                    self.handle_lost_watcher(errno);
                    return Ok(());
                }
                let failure = describe_failure(&self.job, stage, index, errno);
                self.outcome.get_or_insert(Outcome::SetupFailed(failure));
            }
            HelperMessage::Exited { code, usage } => self.record_end(Outcome::Exited(code), usage),
            HelperMessage::Signaled { signal, usage } => self.record_end(Outcome::Signaled(signal), usage),
            HelperMessage::Exceeded { what, usage } => {
                let outcome = match what {
                    ResourceExcess::Memory => Outcome::MemoryLimit,
                    ResourceExcess::Cpu => Outcome::CpuLimit,
                    ResourceExcess::Disk => Outcome::DiskLimit,
                };
                self.record_end(outcome, usage);
            }
            HelperMessage::Canaries { escaped } => self.escaped = Some(escaped),
            HelperMessage::Listening => self.serve_listener()?,
            HelperMessage::Terminal => {
                self.attach_terminal().map_err(supervise_error("taking the command's terminal"))?
            }
            // The other helper's.
            HelperMessage::Unshared | HelperMessage::Mounted | HelperMessage::HasThreads => {
                return Err(SandboxError::NoHelper { path: std::mem::take(&mut self.program) });
            }
        }
        Ok(())
    }

    /// Serves the next of the sandbox's listeners, whose descriptor came with a message.
    fn serve_listener(&mut self) -> Result<(), SandboxError> {
        if self.passed.is_empty() {
            return Err(SandboxError::NoHelper { path: std::mem::take(&mut self.program) });
        }
        let listener = self.passed.remove(0);
        if let Some(service) = self.job.services.pop_front() {
            let serving = service.serve(listener);
            self.servings.push(serving.map_err(supervise_error("serving the command's network"))?);
        }
        Ok(())
    }

    /// Takes the outer side of the command's terminal, from which its output comes from now on.
    fn attach_terminal(&mut self) -> io::Result<()> {
        let outer = self.passed.pop().ok_or(io::ErrorKind::InvalidData)?;
        rustix::io::ioctl_fionbio(&outer, true)?;
        let typing = pipe::Sender::from_owned_fd_unchecked(outer.try_clone()?)?;
        self.typing = TerminalInput(Some((typing, std::mem::take(&mut self.job.typed))));
        self.stdout = OutputPipe::from_terminal(outer)?;
        Ok(())
    }

    /// Handles the failure of the process that watches the command inside.
    fn handle_lost_watcher(&mut self, errno: Errno) {
        self.outcome.get_or_insert(Outcome::Signaled(Signal::KILL.as_raw()));
        self.told.push(Denial {
            kind: DenialKind::Breach,
            what: format!("{} failed ({errno}), so it was killed", SetupStage::Watch.name()),
            certain: true,
            hint: "what it did until then stays; look at it, and run the command again".to_owned(),
        });
    }

    /// Gives up on processes that were killed and haven't ended, after killing an outer helper that
    /// didn't end the others. Returns true if there is nothing left to wait for.
    fn give_up_on_processes(&mut self) -> bool {
        if self.processes.init.is_some() && self.processes.signal != Signal::KILL {
            self.processes.signal = Signal::KILL;
            self.processes.kill();
            self.killed = Some(tokio::time::Instant::now() + MAX_KILL_WAIT);
            self.told.push(Denial {
                kind: DenialKind::Breach,
                what: "what ends the command's processes didn't in time, and was killed".to_owned(),
                certain: true,
                hint: "processes that the command left behind may live on; look for them".to_owned(),
            });
            return false;
        }
        // It waits for something that the kernel can't interrupt.
        self.processes.given_up = true;
        self.processes.usage.get_or_insert_default();
        true
    }

    /// Records the command's end. A command that was killed keeps the reason.
    fn record_end(&mut self, outcome: Outcome, usage: ProcessUsage) {
        self.outcome.get_or_insert(outcome);
        self.used = usage.into();
        self.processes.ending = true;
    }

    async fn into_observation(mut self) -> Result<CommandObservation, SandboxError> {
        // Pid 1 says how the command ended; if it couldn't, something outside killed it, or the
        // helper.
        let outcome = self.outcome.unwrap_or(if self.processes.init.is_some() {
            Outcome::Signaled(Signal::KILL.as_raw())
        } else {
            Outcome::SetupFailed(NotStarted::from_setup_failure("the sandbox helper was killed"))
        });
        let (mut connections, mut denials) = (Vec::new(), Vec::new());
        for serving in std::mem::take(&mut self.servings) {
            let (made, denied) = serving.finish().await;
            connections.extend(made);
            denials.extend(denied);
        }
        let (spilled, trouble) = self.collector.finish_spill();
        denials.extend(trouble);
        denials.append(&mut self.told);
        let seen = CommandObservation {
            outcome: self.job.explain_outcome(outcome),
            escaped: self.escaped,
            failure: self.failure,
            output: self.collector.finish(),
            spilled,
            denials,
            network: std::mem::take(&mut self.job.network),
            connections,
            duration: self.begun.elapsed(),
            usage: self.processes.usage.unwrap_or(self.used),
        };
        // Until pid 1 is gone its own mounts of a copy are there, and the layers are in use.
        let held = (self.job.joined.take(), std::mem::replace(&mut self.job.groups, CgroupLease::empty()));
        if self.processes.ending && self.processes.usage.is_none() {
            // The kernel takes the namespaces apart meanwhile, which needs no waiting.
            let mut processes = self.processes;
            tokio::spawn(async move {
                processes.usage = processes.wait_for_init().await.ok();
                drop(processes);
                release_mount_and_cgroups(held);
            });
        } else {
            release_mount_and_cgroups(held);
        }
        Ok(seen)
    }
}

/// Releases a copy's mount and the control groups. If no other command has the mount, the kernel
/// writes out what was changed, which takes its time.
fn release_mount_and_cgroups(held: (Option<Arc<MountedTree>>, CgroupLease)) {
    if held.0.is_some() || !held.1.is_empty() {
        tokio::task::spawn_blocking(move || drop(held));
    }
}

impl Job {
    /// Returns the outcome, which is a limit of the kernel's if that ended the command.
    fn explain_outcome(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Signaled(libc::SIGXCPU) if self.limits.cpu.is_some() => Outcome::CpuLimit,
            Outcome::Exited(_) | Outcome::Signaled(_) if self.groups.has_run_out_of_memory() => {
                Outcome::MemoryLimit
            }
            other => other,
        }
    }
}

/// Waits for output, and if the live reader must get every piece also for room: meanwhile the
/// command blocks on its pipe.
async fn wait_with_reader_room<T>(collector: &OutputCollector, ready: impl Future<Output = T>) -> T {
    collector.wait_for_room().await;
    ready.await
}

async fn sleep_until(when: Option<tokio::time::Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when).await,
        None => std::future::pending().await,
    }
}

/// Describes a failed set-up: the step, the path, the system's reason.
fn describe_failure(job: &Job, stage: SetupStage, index: u32, errno: Errno) -> NotStarted {
    let cause = match (stage, errno) {
        (SetupStage::Execute, Errno::AGAIN) => return NotStarted::too_many_processes(),
        (SetupStage::Execute, Errno::NOENT) => NotStartedCause::NotFound,
        (SetupStage::Execute, _) => NotStartedCause::NotExecutable,
        _ => NotStartedCause::Setup,
    };
    let index = index as usize;
    let step = || {
        Some(match job.plan.steps.get(index)? {
            RootStep::Directory { path } => format!("making the directory /{}", display_path(path)),
            RootStep::File { path } => format!("making the file /{}", display_path(path)),
            RootStep::Link { path, .. } => format!("making the link /{}", display_path(path)),
            RootStep::Bind { path, .. } | RootStep::Base { path, .. } => {
                format!("mounting /{}", display_path(path))
            }
            RootStep::Scratch { path, .. } => format!("making the private directory /{}", display_path(path)),
            RootStep::Layer { path, .. } => format!("layering /{}", display_path(path)),
            RootStep::Proc { path } | RootStep::Terminals { path } => {
                format!("mounting /{}", display_path(path))
            }
            RootStep::Guard { path } => format!("protecting /{}", display_path(path)),
            RootStep::Mask { path, .. } => format!("masking /{}", display_path(path)),
        })
    };
    let what = match stage {
        SetupStage::Step => step(),
        SetupStage::Directory => Some(format!("{} {}", stage.name(), display_path(&job.plan.cwd))),
        SetupStage::Execute => job.candidates.get(index).map(|program| match errno {
            Errno::NOENT => {
                format!("{} {}", stage.name(), program_name(job).unwrap_or_else(|| display_path(program)))
            }
            _ => format!("{} {}", stage.name(), display_path(program)),
        }),
        _ => None,
    };
    let reason = format!("{}: {errno}", what.unwrap_or_else(|| stage.name().to_owned()));
    NotStarted { cause, reason }
}

/// Returns the program's name if it was searched in several directories and found in none.
fn program_name(job: &Job) -> Option<String> {
    let path = display_path(job.candidates.first()?);
    (job.candidates.len() > 1).then(|| path.rsplit('/').next().unwrap_or_default().to_owned())
}
