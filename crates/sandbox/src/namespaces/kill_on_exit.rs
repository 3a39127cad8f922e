//! A helper between this program and an unconfined command. It kills the command and everything
//! that the command started once this program has ended, in whatever way.

use std::ffi::OsString;
use std::fmt::Display;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};

use rustix::io::{Errno, FdFlags};
use rustix::process::{Pid, Signal};

use super::helper_arguments::{HELPER_ARGUMENT, KILL_ARGUMENT};
use super::landlock_only::{ChildProcesses, EndReason, kill_descendants, wait_for_end};
use super::sys;

/// The exit code of a guard that could not start its command, as of a shell.
const NOT_STARTED_CODE: i32 = 127;
/// The exit code of a guard whose command was ended with this program.
const COMMAND_KILLED_CODE: i32 = 125;

/// Ends a command that isn't confined, with all processes that it started, when this value is
/// dropped or this program ends in any way: only this program holds the other end of a pipe.
#[derive(Debug)]
pub struct KillOnExit {
    /// The end that the helper inherits.
    inherited: OwnedFd,
    /// The end that closes when this program ends.
    _held: OwnedFd,
}

impl KillOnExit {
    /// Opens the pipe of a guard.
    ///
    /// # Errors
    /// Failures of the kernel.
    pub fn open() -> io::Result<Self> {
        let (inherited, held) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        Ok(Self { inherited, _held: held })
    }

    /// Returns the command that runs another one under this guard: this program, started as a
    /// helper.
    ///
    /// # Errors
    /// Failures of the kernel.
    pub fn wrap_command(&self, argv: Vec<OsString>) -> io::Result<Vec<OsString>> {
        rustix::io::fcntl_setfd(&self.inherited, FdFlags::empty())?;
        let number = self.inherited.as_raw_fd().to_string();
        let own = ["/proc/self/exe".into(), HELPER_ARGUMENT.into(), KILL_ARGUMENT.into(), number.into()];
        Ok(own.into_iter().chain(argv).collect())
    }
}

/// Does the guard's whole work; never returns.
pub(super) fn run_kill_helper() -> ! {
    let mut arguments = std::env::args_os().skip(3);
    let number = arguments.next().and_then(|number| number.to_str()?.parse().ok());
    let control = number.and_then(sys::take_inherited_descriptor);
    let (Some(control), Some(program)) = (control, arguments.next()) else { sys::exit(NOT_STARTED_CODE) };
    let mut command = Command::new(&program);
    command.args(arguments);
    match run_and_kill_tree(&control, &mut command) {
        Ok(Some(status)) => exit_like(status),
        Ok(None) => sys::exit(COMMAND_KILLED_CODE),
        Err(error) => exit_with_error(&program.display(), &error),
    }
}

fn exit_with_error(program: &dyn Display, error: &io::Error) -> ! {
    eprintln!("{program}: {error}");
    sys::exit(NOT_STARTED_CODE)
}

/// Runs the command, and kills the rest of its process tree. `None` if a stop was requested first.
fn run_and_kill_tree(control: &OwnedFd, command: &mut Command) -> io::Result<Option<ExitStatus>> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let children = ChildProcesses::open()?;
    let signals = sys::watch_signals(&[libc::SIGCHLD, libc::SIGTERM])?;
    let child = command.spawn()?;
    let pid = Pid::from_raw(child.id().cast_signed()).ok_or(Errno::SRCH)?;
    // The output ends when its last writer does, and that isn't this process.
    sys::close_standard_streams();
    let ended = wait_for_end(control, &signals, pid)?;
    let left = matches!(ended, EndReason::StopRequested).then_some(pid);
    kill_descendants(&children, left)?;
    Ok(match ended {
        EndReason::Command(status) => Some(ExitStatus::from_raw(status.as_raw())),
        EndReason::StopRequested => None,
    })
}

/// Exits with the status of a command, or kills itself by the same signal.
fn exit_like(status: ExitStatus) -> ! {
    if let Some(signal) = status.signal().and_then(Signal::from_named_raw) {
        sys::reset_signals();
        let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        rustix::process::setrlimit(rustix::process::Resource::Core, none).ok();
        rustix::process::kill_process(rustix::process::getpid(), signal).ok();
    }
    sys::exit(status.code().unwrap_or(COMMAND_KILLED_CODE))
}
