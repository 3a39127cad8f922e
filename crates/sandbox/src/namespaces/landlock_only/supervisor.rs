//! The helper outside: it starts the command, restricted for good, and stays until every process of
//! it is gone.
//!
//! Without a process namespace nothing kills a tree at once. Orphans of the tree become children of
//! this process (a child subreaper), so while any process of the tree lives, this process has a
//! child. It kills its children, and orphans that become its children, until there are none. The
//! command can't signal it: Landlock's scope forbids that.

use std::cell::Cell;
use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus};

use super::super::canary;
use super::super::framing::HEADER_BYTES;
use super::super::helper_files::open_without_links;
use super::super::init::{AtStage as _, Init, SetupFailure, drop_privileges, report_failure, send_message};
use super::super::landlock_rules::{self, Grant, TcpAccess};
use super::super::messages::{HelperMessage, SetupStage};
use super::super::outer_helper::{self, HeldFiles, LaunchRequest};
use super::super::policy::SandboxPolicy;
use super::super::sys::{self, CStringArray};
use super::metadata_changes::{MetadataThread, allows_metadata_changes};
use super::order::{self, SupervisorOrder};

/// Rounds of killing without a pause. A process that forks and ends without a pause is caught by
/// being as fast; one that waits for a dead disk isn't worth a processor.
const MAX_FAST_KILL_ROUNDS: u32 = 20_000;
/// One read of the list of children.
const CHILD_LIST_BYTES: usize = 64 * 1024;
/// The pause between two later rounds.
const KILL_ROUND_PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// Does the supervisor's whole work; never returns.
pub(in super::super) fn run_supervisor_helper(control: &OwnedFd) -> ! {
    report_failure(control, supervise_command(control));
    sys::exit(125)
}

fn supervise_command(control: &OwnedFd) -> Result<(), SetupFailure> {
    let LaunchRequest { signals, order, policy } = outer_helper::receive_order(control, order::ORDER_MAGIC)?;
    let order = order
        .get(HEADER_BYTES..)
        .and_then(SupervisorOrder::decode)
        .ok_or_else(outer_helper::malformed_frame_failure)?;
    let policy = policy
        .get(HEADER_BYTES..)
        .and_then(SandboxPolicy::decode)
        .ok_or_else(outer_helper::malformed_frame_failure)?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).at_stage(SetupStage::Supervise)?;
    // Nothing leaves this process but by the witness.
    let HeldFiles { witness: _witness, stdin } = outer_helper::announce_start(control, &policy)?;
    let mask = rustix::process::umask(Mode::empty());
    let private = PrivateDirectory::create(order.private).at_stage(SetupStage::Private)?;
    let init = Init { policy: &policy, control, stdin: stdin.as_ref(), mask, gate: None };
    let children = ChildProcesses::open().at_stage(SetupStage::Supervise)?;
    let granted = open_granted(&order).at_stage(SetupStage::Landlock)?;
    let metadata =
        order.notify.then(|| start_metadata_thread(&granted)).transpose().at_stage(SetupStage::Supervise)?;
    let mut command = None;
    let outcome = run_command(&init, &order, granted, metadata.as_ref(), &signals, &mut command);
    let swept = kill_descendants(&children, command);
    if let Some(metadata) = metadata.filter(|_| swept.is_ok()) {
        metadata.join();
    }
    drop(private);
    let ended = outcome?;
    swept.at_stage(SetupStage::Watch)?;
    match ended {
        EndReason::Command(status) => {
            let usage = sys::total_usage();
            if let Some(code) = status.exit_status() {
                send_message(control, HelperMessage::Exited { code, usage });
            } else if let Some(signal) = status.terminating_signal() {
                send_message(control, HelperMessage::Signaled { signal, usage });
            }
        }
        EndReason::StopRequested => {}
    }
    sys::exit(0)
}

/// The command's own directory for what is temporary, and for a home.
struct PrivateDirectory<'a>(&'a Path);

impl<'a> PrivateDirectory<'a> {
    fn create(path: &'a CStr) -> Result<Self, Errno> {
        rustix::fs::mkdir(path, Mode::RWXU)?;
        let private = Self(Path::new(OsStr::from_bytes(path.to_bytes())));
        rustix::fs::mkdir(private.0.join(order::HOME_NAME), Mode::RWXU)?;
        Ok(private)
    }
}

impl Drop for PrivateDirectory<'_> {
    fn drop(&mut self) {
        // Nobody writes to it any more. What can't be removed is the user's own, and lies where
        // such things do.
        if std::fs::remove_dir_all(self.0).is_err() {
            unlock_directories(self.0);
            std::fs::remove_dir_all(self.0).ok();
        }
    }
}

/// Lets this user list and change a directory and those beneath it: a command may have taken these
/// rights away, as Go does in its module cache.
fn unlock_directories(top: &Path) {
    let mut pending = vec![top.to_owned()];
    while let Some(directory) = pending.pop() {
        let opened = CString::new(directory.as_os_str().as_bytes()).map(|path| open_without_links(&path));
        if let Ok(Ok(opened)) = opened {
            sys::change_mode(opened, Mode::RWXU.bits()).ok();
        }
        let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
        let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        pending.extend(directories.map(|entry| entry.path()));
    }
}

pub(in super::super) enum EndReason {
    Command(WaitStatus),
    /// The agent said so, or is gone.
    StopRequested,
}

/// Starts the command and waits for its end. Leaves its process id in `command` if it wasn't
/// reaped.
fn run_command(
    init: &Init<'_>,
    order: &SupervisorOrder<&CStr>,
    granted: Vec<GrantedFile>,
    metadata: Option<&MetadataThread>,
    signals: &OwnedFd,
    command: &mut Option<Pid>,
) -> Result<EndReason, SetupFailure> {
    let policy = init.policy;
    let is_home = |variable: &CStr| variable.to_bytes().starts_with(b"HOME=");
    let env = policy.env.iter().map(|one| if is_home(one) { order.home } else { *one });
    let env: Vec<&CStr> = env.collect();
    let (argv, env) = (CStringArray::new(&policy.argv), CStringArray::new(&env));
    let (trouble, escaped) = (Cell::new(None), Cell::new(0));
    let pid = sys::run_suspended(|| {
        if let Err(failure) = restrict_command(init, order, &granted, metadata) {
            trouble.set(Some(failure));
            return 125;
        }
        if let Some(canary) = &policy.canary {
            escaped.set(canary::try_escapes(canary, policy.own_network, &policy.listen, false));
            return 0;
        }
        trouble.set(Some(match init.become_command(&argv, &env, None) {
            Ok(never) => match never {},
            Err(failure) => failure,
        }));
        125
    })
    .at_stage(SetupStage::Execute)?;
    if let Some(failure) = trouble.into_inner() {
        return Err(failure);
    }
    if policy.canary.is_some() {
        send_message(init.control, HelperMessage::Canaries { escaped: escaped.get() });
    }
    drop(granted);
    // The output ends when its last writer does, and that isn't this process.
    sys::close_standard_streams();
    *command = Some(pid);
    let ended = wait_for_end(init.control, signals, pid).at_stage(SetupStage::Watch)?;
    if matches!(ended, EndReason::Command(_)) {
        *command = None;
    }
    Ok(ended)
}

/// A granted file: open, a path that leads to the descriptor, and the grant.
type GrantedFile = (OwnedFd, CString, Grant);

/// Starts the thread that changes metadata where the command may write.
fn start_metadata_thread(granted: &[GrantedFile]) -> Result<MetadataThread, Errno> {
    let places = granted
        .iter()
        .filter(|(place, _, grant)| *grant == Grant::Write && allows_metadata_changes(place.as_fd()));
    let places = places.map(|(place, ..)| rustix::io::fcntl_dupfd_cloexec(place, 0));
    MetadataThread::start(places.collect::<Result<_, _>>()?)
}

/// Opens the granted files, following no link: a file may have been replaced by one since the plan
/// was made.
fn open_granted(order: &SupervisorOrder<&CStr>) -> Result<Vec<GrantedFile>, Errno> {
    let hard = rustix::process::getrlimit(Resource::Nofile).maximum;
    rustix::process::setrlimit(Resource::Nofile, Rlimit { current: hard, maximum: hard })?;
    let private = (order.private, Grant::Write);
    let mut all = Vec::with_capacity(order.grants.len() + 1);
    for (path, grant) in order.grants.iter().copied().chain([private]) {
        let place = match open_without_links(path) {
            Ok(place) => place,
            // The file is gone or can't be opened: it grants nothing.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => continue,
            Err(errno) => return Err(errno),
        };
        let name = CString::new(format!("/proc/self/fd/{}", place.as_raw_fd())).map_err(|_| Errno::INVAL)?;
        all.push((place, name, grant));
    }
    Ok(all)
}

/// Takes away, in the new process and for good, what a command mustn't have.
fn restrict_command(
    init: &Init<'_>,
    order: &SupervisorOrder<&CStr>,
    granted: &[GrantedFile],
    metadata: Option<&MetadataThread>,
) -> Result<(), SetupFailure> {
    // If another process kills the supervisor, this process's parent, the command is killed with
    // it.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).at_stage(SetupStage::Supervise)?;
    rustix::process::chdir(order.cwd).at_stage(SetupStage::Directory)?;
    init.set_limits().at_stage(SetupStage::Limits)?;
    if rustix::process::geteuid().is_root() {
        drop_privileges().at_stage(SetupStage::Privileges)?;
    } else {
        drop_user_privileges().at_stage(SetupStage::Privileges)?;
    }
    let grants = granted.iter().map(|(_, name, grant)| (name.as_c_str(), *grant));
    let tcp = if init.policy.own_network { TcpAccess::Denied } else { TcpAccess::Free };
    landlock_rules::enforce_landlock(init.policy.landlock, CWD, grants, tcp)
        .at_stage(SetupStage::Landlock)?;
    let Some(metadata) = metadata else {
        return sys::install_filter(&order.filter).at_stage(SetupStage::Filter);
    };
    let listener = sys::install_filter_with_listener(&order.filter).at_stage(SetupStage::Filter)?;
    metadata.hand_over(&listener).at_stage(SetupStage::Filter)
}

/// Drops the privileges of a user without capabilities. Such a user can't give up the bounding set;
/// `no_new_privs` keeps capabilities from being gained.
fn drop_user_privileges() -> Result<(), Errno> {
    let none = rustix::thread::CapabilitySet::empty();
    let sets = rustix::thread::CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, sets)?;
    rustix::thread::set_no_new_privs(true)?;
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
}

/// Reaps processes until the command ends or a stop is requested.
pub(in super::super) fn wait_for_end(
    control: &OwnedFd,
    signals: &OwnedFd,
    command: Pid,
) -> Result<EndReason, Errno> {
    loop {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == command => return Ok(EndReason::Command(status)),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) | Err(Errno::CHILD) => break,
                Err(errno) => return Err(errno),
            }
        }
        let mut ready = [PollFd::new(signals, PollFlags::IN), PollFd::new(control, PollFlags::empty())];
        match poll(&mut ready, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let [_, agent] = &ready;
        if !agent.revents().is_empty() || sys::read_signals(signals).contains(&libc::SIGTERM) {
            return Ok(EndReason::StopRequested);
        }
    }
}

/// Kills children until there are none. Orphans of theirs become children. Where they can't be
/// listed, the command and its group are killed, if they may live, and it is told.
pub(in super::super) fn kill_descendants(
    children: &ChildProcesses,
    mut command: Option<Pid>,
) -> Result<(), Errno> {
    let mut round: u32 = 0;
    loop {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, _))) if Some(pid) == command => command = None,
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break,
                // No child, so nothing at all.
                Err(Errno::CHILD) => return Ok(()),
                Err(errno) => return Err(errno),
            }
        }
        let listed = children.list().inspect_err(|_| {
            if let Some(command) = command {
                // Not reaped, so it and its group still have this number.
                rustix::process::kill_process_group(command, Signal::KILL).ok();
                rustix::process::kill_process(command, Signal::KILL).ok();
            }
        })?;
        for child in listed {
            // Not reaped, so the number is still its own.
            rustix::process::kill_process(child, Signal::KILL).ok();
        }
        round = round.saturating_add(1);
        if round > MAX_FAST_KILL_ROUNDS {
            poll(&mut [], Some(&KILL_ROUND_PAUSE)).ok();
        }
    }
}

/// This process's children, as the kernel lists them. Open before the command begins: later there
/// may be no descriptor to be had.
pub(in super::super) struct ChildProcesses(File);

impl ChildProcesses {
    pub(in super::super) fn open() -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::open(c"/proc/thread-self/children", flags, Mode::empty())?;
        Ok(Self(file.into()))
    }

    fn list(&self) -> Result<Vec<Pid>, Errno> {
        // More than the kernel hands out at once, so no number is cut.
        let mut buffer = vec![0; CHILD_LIST_BYTES];
        let mut text = Vec::new();
        loop {
            let count =
                rustix::io::retry_on_intr(|| rustix::io::pread(&self.0, &mut *buffer, text.len() as u64))?;
            if count == 0 {
                break;
            }
            text.extend_from_slice(buffer.get(..count).ok_or(Errno::IO)?);
        }
        let numbers = text.split(u8::is_ascii_whitespace).filter_map(|number| str::from_utf8(number).ok());
        Ok(numbers.filter_map(|number| Pid::from_raw(number.parse().ok()?)).collect())
    }
}
