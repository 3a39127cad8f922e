//! The helper: it turns into pid 1 of a sandbox, builds the sandbox around itself, starts the
//! command, reaps, and ends with it.
//!
//! Runs single-threaded in a program that has done nothing else. Nothing here prints; events are
//! reported in [`HelperMessage`]s over the control socket, which is the helper's standard input.
//! When the other end of that socket closes, the agent is gone, and pid 1 ends, upon which the
//! kernel kills everything in the sandbox.

use std::cell::Cell;
use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::MountPropagationFlags;
use rustix::process::{Pid, Resource, Rlimit, WaitOptions};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, LinkNameSpaceType, move_into_link_name_space,
};

use super::cgroups::CgroupEntry;
use super::framing::{HEADER_BYTES, body_length, read_exact};
use super::helper_files::{lock_liveness_file, open_liveness_file, receive_input, write_file};
use super::landlock_rules::{self, Grant, TcpAccess};
use super::messages::{HelperMessage, SetupStage};
use super::policy::SandboxPolicy;
use super::ready_helper::MAX_HELPER_WAIT;
use super::resource_bounds::ResourceBounds;
use super::root::{RootBuilder, clone_mount, enter_root, mount_new_root};
use super::root_steps::RootStep;
use super::sys::{self, CStringArray};
use super::{canary, cgroups, descriptor_passing, policy, resource_bounds, terminal};

/// The resources of a policy's limits, in its order.
pub(super) const LIMITED_RESOURCES: [Resource; 6] =
    [Resource::Core, Resource::Nproc, Resource::Fsize, Resource::Nofile, Resource::Cpu, Resource::As];

/// Connections to the proxy that the agent hasn't taken yet; more are tried again by the client's
/// own kernel.
const MAX_PENDING_CONNECTIONS: i32 = 128;

/// A failed set-up: the stage, the step's number, the error.
pub(super) struct SetupFailure(pub(super) SetupStage, pub(super) u32, pub(super) Errno);

pub(super) trait AtStage<T> {
    fn at_stage(self, stage: SetupStage) -> Result<T, SetupFailure>;
}

impl<T> AtStage<T> for Result<T, Errno> {
    fn at_stage(self, stage: SetupStage) -> Result<T, SetupFailure> {
        self.map_err(|errno| SetupFailure(stage, 0, errno))
    }
}

/// Prepares a sandbox and becomes its pid 1; never returns. With `early`, namespaces are made
/// before the policy comes.
pub(super) fn run_init_helper(control: &OwnedFd, early: bool) -> ! {
    report_failure(control, prepare_sandbox(control, early));
    sys::exit(125)
}

/// Sends the failure to the agent, if there is one.
pub(super) fn report_failure(control: &OwnedFd, result: Result<(), SetupFailure>) {
    if let Err(SetupFailure(stage, index, errno)) = result {
        send_message(control, HelperMessage::Failed { stage, index, errno: errno.raw_os_error() });
    }
}

pub(super) fn send_message(control: &OwnedFd, message: HelperMessage) {
    // A reader that is gone needs no message.
    rustix::io::write(control, &message.encode()).ok();
}

/// The namespaces that depend on no command, so that they can be made before there is one.
const EARLY_NAMESPACES: libc::c_int =
    libc::CLONE_NEWUSER | libc::CLONE_NEWNET | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
/// The namespaces that begin with pid 1: the mounts are the host's of that moment.
const LATE_NAMESPACES: libc::c_int = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWCGROUP;

/// Makes the namespaces that can be made before there is a command.
fn make_early_namespaces() -> Result<(), SetupFailure> {
    // In the new namespace this process has no user until its user is mapped.
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    sys::unshare(EARLY_NAMESPACES).at_stage(SetupStage::Namespaces)?;
    map_single_user(uid.as_raw(), gid.as_raw()).at_stage(SetupStage::Identity)?;
    start_loopback().at_stage(SetupStage::Loopback)
}

/// Waits for the policy of a command.
fn wait_for_policy(control: &OwnedFd) -> Result<(), SetupFailure> {
    send_message(control, HelperMessage::Waiting);
    let max_wait =
        Timespec::try_from(MAX_HELPER_WAIT).map_err(|_| Errno::INVAL).at_stage(SetupStage::Policy)?;
    loop {
        match poll(&mut [PollFd::new(control, PollFlags::IN)], Some(&max_wait)) {
            Ok(0) => sys::exit(0),
            // The policy, or the agent's end.
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno).at_stage(SetupStage::Policy),
        }
    }
}

fn prepare_sandbox(control: &OwnedFd, early: bool) -> Result<(), SetupFailure> {
    send_message(control, HelperMessage::Hello);
    // Modes are as given while the root is built; the command gets its own mask back.
    let mask = rustix::process::umask(Mode::empty());
    if rustix::process::geteuid().is_root() {
        // Only root may, and only root need: a user's groups give what the user has anyway.
        rustix::thread::set_thread_groups(&[]).at_stage(SetupStage::Identity)?;
    }
    if early {
        make_early_namespaces()?;
    }
    wait_for_policy(control)?;
    let mut header = [0; HEADER_BYTES];
    let mut passed = Vec::new();
    descriptor_passing::receive_exact_bytes(control, &mut header, &mut passed)
        .at_stage(SetupStage::Policy)?;
    let length = body_length(policy::POLICY_MAGIC, &header).ok_or(SetupFailure(
        SetupStage::Policy,
        0,
        Errno::PROTO,
    ))?;
    let mut body = vec![0; length];
    read_exact(control, &mut body).at_stage(SetupStage::Policy)?;
    let policy = SandboxPolicy::decode(&body).ok_or(SetupFailure(SetupStage::Policy, 1, Errno::PROTO))?;
    if early && (policy.joins || !policy.own_network) {
        // The namespaces are made, and aren't those that it needs.
        return Err(SetupFailure(SetupStage::Policy, 2, Errno::PROTO));
    }
    // Open here and in pid 1, which ends last. What the agent opened may be where this process
    // can't come to any more.
    let _witness = match (policy.witness, early.then(|| passed.pop()).flatten()) {
        (Some(_), Some(file)) => Some(lock_liveness_file(file)),
        (path, _) => path.map(open_liveness_file),
    }
    .transpose()
    .at_stage(SetupStage::Witness)?;
    let stdin = receive_input(control, policy.stdin).at_stage(SetupStage::Input)?;
    merge_outputs(&policy).at_stage(SetupStage::Supervise)?;
    let _lock = if policy.joins { Some(join_namespaces(passed).at_stage(SetupStage::Join)?) } else { None };
    let network = if policy.own_network { EARLY_NAMESPACES } else { EARLY_NAMESPACES & !libc::CLONE_NEWNET };
    let namespaces = if early { LATE_NAMESPACES } else { LATE_NAMESPACES | network };
    cgroups::enter_groups(&policy.groups).at_stage(SetupStage::Groups)?;
    let gate = if policy.groups.iter().any(CgroupEntry::is_joined) {
        Some(eventfd(0, EventfdFlags::CLOEXEC).at_stage(SetupStage::Groups)?)
    } else {
        None
    };
    let init = Init { policy: &policy, control, stdin: stdin.as_ref(), mask, gate: gate.as_ref() };
    let body = || match init.run(early) {
        Ok(()) => 0,
        Err(SetupFailure(stage, index, errno)) => {
            send_message(control, HelperMessage::Failed { stage, index, errno: errno.raw_os_error() });
            125
        }
    };
    sys::become_init(namespaces, body, |started| {
        send_message(
            control,
            match started {
                Ok(pid) => HelperMessage::Started { pid: pid.as_raw_nonzero().get() },
                Err(errno) => HelperMessage::Failed {
                    stage: SetupStage::Namespaces,
                    index: 0,
                    errno: errno.raw_os_error(),
                },
            },
        );
        if let (Ok(pid), Some(gate)) = (started, &gate) {
            let joined = cgroups::join_groups(&policy.groups, pid.as_raw_nonzero().get().cast_unsigned());
            let errno = joined.err().map_or(0, |errno| errno.raw_os_error().unsigned_abs());
            // Pid 1 waits for it.
            rustix::io::write(gate, &(u64::from(errno) + 1).to_ne_bytes()).ok();
        }
    })
}

/// Enters the namespaces of a base, and its root. Returns the descriptor that must stay open for as
/// long as any process of the command lives.
fn join_namespaces(passed: Vec<OwnedFd>) -> Result<OwnedFd, Errno> {
    let [root, user, mounts, lock] =
        <[OwnedFd; descriptor_passing::MAX_DESCRIPTORS]>::try_from(passed).map_err(|_| Errno::PROTO)?;
    move_into_link_name_space(user.as_fd(), Some(LinkNameSpaceType::User))?;
    move_into_link_name_space(mounts.as_fd(), Some(LinkNameSpaceType::Mount))?;
    // A directory that is worked in is found again in a copy of its mount namespace; an open one
    // isn't.
    rustix::process::fchdir(&root)?;
    Ok(lock)
}

/// Makes standard error a copy of standard output, if the policy says so.
pub(super) fn merge_outputs(policy: &SandboxPolicy<&CStr>) -> Result<(), Errno> {
    if policy.merged { rustix::stdio::dup2_stderr(rustix::stdio::stdout()) } else { Ok(()) }
}

/// Pid 1.
pub(super) struct Init<'a> {
    pub(super) policy: &'a SandboxPolicy<&'a CStr>,
    pub(super) control: &'a OwnedFd,
    pub(super) stdin: Option<&'a OwnedFd>,
    /// The command's mask for modes of new files.
    pub(super) mask: Mode,
    /// The descriptor on which the helper reports that pid 1 is in its control groups; `None` for a
    /// pid 1 that is in them from its beginning.
    pub(super) gate: Option<&'a OwnedFd>,
}

impl Init<'_> {
    /// Sets up the sandbox as pid 1. With `apart` the user is mapped and the loopback is up
    /// already.
    fn run(&self, apart: bool) -> Result<(), SetupFailure> {
        if !apart {
            map_single_user(self.policy.uid, self.policy.gid).at_stage(SetupStage::Identity)?;
        }
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        rustix::mount::mount_change(c"/", private).at_stage(SetupStage::Root)?;
        let base = self
            .policy
            .joins
            .then(|| clone_mount(CWD, c".", true, 0))
            .transpose()
            .at_stage(SetupStage::Join)?;
        let root = mount_new_root(self.policy.scratch_bytes).at_stage(SetupStage::Root)?;
        let mut builder = RootBuilder::new(&root, base, self.policy.pid_max);
        for (index, step) in (0..).zip(&self.policy.steps) {
            builder.carry_out(step).map_err(|errno| SetupFailure(SetupStage::Step, index, errno))?;
        }
        enter_root(&root).at_stage(SetupStage::Enter)?;
        drop(builder);
        drop(root);
        rustix::process::chdir(self.policy.cwd).at_stage(SetupStage::Directory)?;
        if self.policy.own_network && !apart {
            start_loopback().at_stage(SetupStage::Loopback)?;
        }
        self.pass_listeners().at_stage(SetupStage::Listen)?;
        self.set_limits().at_stage(SetupStage::Limits)?;
        drop_privileges().at_stage(SetupStage::Privileges)?;
        self.confine_and_run()
    }

    /// Adds the remaining confinement, after the root was built and privileges were dropped, and
    /// runs the command to its end.
    pub(super) fn confine_and_run(&self) -> Result<(), SetupFailure> {
        if self.policy.landlock > 0 {
            self.restrict_by_landlock().at_stage(SetupStage::Landlock)?;
        }
        if !self.policy.filter.is_empty() {
            sys::install_filter(&self.policy.filter).at_stage(SetupStage::Filter)?;
        }
        self.run_command()
    }

    /// Restricts this process by Landlock: the whole new root may be read, and mounts for writing
    /// may be written.
    fn restrict_by_landlock(&self) -> Result<(), Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(c"/", flags, Mode::empty())?;
        let written = self.policy.steps.iter().filter_map(RootStep::writable_path);
        let grants = written.map(|path| (path, Grant::Write)).chain([(c".", Grant::Read)]);
        landlock_rules::enforce_landlock(self.policy.landlock, &root, grants, TcpAccess::Free)
    }

    /// Creates the listeners that the agent serves, and passes them to the agent. No process inside
    /// keeps one.
    pub(super) fn pass_listeners(&self) -> Result<(), Errno> {
        self.policy.listen.iter().try_for_each(|port| {
            let listener = create_listener(*port)?;
            descriptor_passing::send_descriptors(
                self.control,
                &HelperMessage::Listening.encode(),
                &[listener.as_fd()],
            )
            .map(drop)
        })
    }

    pub(super) fn set_limits(&self) -> Result<(), Errno> {
        for (resource, limit) in LIMITED_RESOURCES.into_iter().zip(&self.policy.limits) {
            let Some(limit) = *limit else { continue };
            // Above the hard limit nothing can be had; it is the tighter one then.
            let bound = |limit: u64| {
                rustix::process::getrlimit(resource).maximum.map_or(limit, |hard| hard.min(limit))
            };
            // At the hard limit of processor time the kernel sends SIGKILL, which may come from
            // anybody; at the soft one it sends SIGXCPU.
            let hard = if resource == Resource::Cpu { limit.saturating_add(1) } else { limit };
            let (current, maximum) = (Some(bound(limit)), Some(bound(hard)));
            rustix::process::setrlimit(resource, Rlimit { current, maximum })?;
        }
        Ok(())
    }

    /// Waits until the helper has put this process into its control groups, so that the command
    /// begins in them.
    fn wait_for_groups(&self) -> Result<(), Errno> {
        let Some(gate) = self.gate else { return Ok(()) };
        loop {
            let mut ready = [PollFd::new(gate, PollFlags::IN), PollFd::new(self.control, PollFlags::empty())];
            match poll(&mut ready, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
            let [joined, agent] = &ready;
            if !joined.revents().is_empty() {
                let mut said = [0; 8];
                rustix::io::read(gate, &mut said)?;
                return match i32::try_from(u64::from_ne_bytes(said)) {
                    Ok(1) => Ok(()),
                    Ok(more) => Err(Errno::from_raw_os_error(more - 1)),
                    Err(_) => Err(Errno::IO),
                };
            }
            if !agent.revents().is_empty() {
                return Err(Errno::PIPE);
            }
        }
    }

    fn run_command(&self) -> Result<(), SetupFailure> {
        let terminal = self.policy.terminal.map(|size| terminal::open_terminal(size, self.control));
        let terminal = terminal.transpose().at_stage(SetupStage::Terminal)?;
        self.wait_for_groups().at_stage(SetupStage::Groups)?;
        let mut bounds = ResourceBounds::new(self.policy);
        let children = sys::watch_children().at_stage(SetupStage::Supervise)?;
        let (argv, env) = (CStringArray::new(&self.policy.argv), CStringArray::new(&self.policy.env));
        let trouble = Cell::new(None);
        let escaped = Cell::new(0);
        let pid = sys::run_suspended(|| {
            if let Some(canary) = &self.policy.canary {
                let counted = bounds.resident_bytes(&resource_bounds::list_processes()) > 0;
                let SandboxPolicy { own_network, ref listen, .. } = *self.policy;
                escaped.set(canary::try_escapes(canary, own_network, listen, counted));
                return 0;
            }
            trouble.set(Some(match self.become_command(&argv, &env, terminal.as_ref()) {
                Ok(never) => match never {},
                Err(failure) => failure,
            }));
            125
        })
        .at_stage(SetupStage::Execute)?;
        if let Some(failure) = trouble.into_inner() {
            return Err(failure);
        }
        if self.policy.canary.is_some() {
            send_message(self.control, HelperMessage::Canaries { escaped: escaped.get() });
        }
        // The output ends when its last writer does, and that isn't this process.
        sys::close_standard_streams();
        drop(terminal);
        self.supervise(pid, &children, &mut bounds).map_err(|errno| {
            // With this process the rest is gone, whatever became of this.
            kill_all().ok();
            SetupFailure(SetupStage::Watch, 0, errno)
        })
    }

    /// Becomes the command, in the new process. Returns only on failure.
    pub(super) fn become_command(
        &self,
        argv: &CStringArray,
        env: &CStringArray,
        terminal: Option<&OwnedFd>,
    ) -> Result<std::convert::Infallible, SetupFailure> {
        sys::reset_signals();
        rustix::process::umask(self.mask);
        rustix::process::setsid().at_stage(SetupStage::Execute)?;
        match (terminal, self.stdin) {
            (Some(terminal), _) => {
                terminal::attach_session_terminal(terminal).at_stage(SetupStage::Terminal)?
            }
            (None, Some(file)) => rustix::stdio::dup2_stdin(file).at_stage(SetupStage::Input)?,
            (None, None) => {
                let null = rustix::fs::open(c"/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
                rustix::stdio::dup2_stdin(null.at_stage(SetupStage::Input)?).at_stage(SetupStage::Input)?;
            }
        }
        sys::close_from(3).at_stage(SetupStage::Execute)?;
        let mut failure = SetupFailure(SetupStage::Execute, 0, Errno::NOENT);
        for (index, candidate) in (0..).zip(&self.policy.candidates) {
            match sys::execute(candidate, argv, env) {
                // The program isn't here; another directory may have it.
                Errno::NOENT | Errno::NOTDIR => {}
                // Said of every path, whether it is there or not: there are too many processes.
                Errno::AGAIN => return Err(SetupFailure(SetupStage::Execute, index, Errno::AGAIN)),
                errno => failure = SetupFailure(SetupStage::Execute, index, errno),
            }
        }
        Err(failure)
    }

    /// Reaps until the command ends, or the agent does, or too much is used.
    fn supervise(&self, command: Pid, children: &OwnedFd, bounds: &mut ResourceBounds) -> Result<(), Errno> {
        loop {
            if let Some(what) = bounds.find_excess() {
                kill_all()?;
                send_message(self.control, HelperMessage::Exceeded { what, usage: sys::total_usage() });
                return Ok(());
            }
            while let Some((pid, status)) = reap_child()? {
                if pid != command {
                    continue;
                }
                return self.report_end(status);
            }
            let mut ready =
                [PollFd::new(children, PollFlags::IN), PollFd::new(self.control, PollFlags::empty())];
            let wait = Timespec::try_from(bounds.time_to_next_check()).map_err(|_| Errno::INVAL)?;
            match poll(&mut ready, Some(&wait)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
            let [child, agent] = &ready;
            if !agent.revents().is_empty() {
                // No process of the command may outlive this one, which holds the lock that shows
                // that the command lives.
                return kill_all();
            }
            if !child.revents().is_empty() {
                // Only empties it; which child ended, `reap` says.
                rustix::io::read(children, &mut [0; 128]).ok();
            }
        }
    }
}

impl Init<'_> {
    /// Kills the remaining processes and reports how the command ended. The agent needn't wait for
    /// the kernel to take the namespaces apart, which it does when this process ends.
    fn report_end(&self, command: rustix::process::WaitStatus) -> Result<(), Errno> {
        kill_all()?;
        let usage = sys::total_usage();
        if let Some(code) = command.exit_status() {
            send_message(self.control, HelperMessage::Exited { code, usage });
        } else if let Some(signal) = command.terminating_signal() {
            send_message(self.control, HelperMessage::Signaled { signal, usage });
        }
        Ok(())
    }
}

/// Kills everything else in the sandbox, and waits until it is gone.
fn kill_all() -> Result<(), Errno> {
    match rustix::process::kill_process_group(Pid::INIT, rustix::process::Signal::KILL) {
        Ok(()) | Err(Errno::SRCH) => {}
        Err(errno) => return Err(errno),
    }
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::CHILD) => return Ok(()),
            Err(errno) => return Err(errno),
        }
    }
}

fn reap_child() -> Result<Option<(Pid, rustix::process::WaitStatus)>, Errno> {
    match rustix::process::wait(WaitOptions::NOHANG) {
        Err(Errno::CHILD) => Ok(None),
        other => other,
    }
}

/// Maps the same user inside as outside, so that files have their owners.
pub(super) fn map_single_user(uid: u32, gid: u32) -> Result<(), Errno> {
    write_file(c"/proc/self/setgroups", b"deny")?;
    write_file(c"/proc/self/uid_map", format!("{uid} {uid} 1").as_bytes())?;
    write_file(c"/proc/self/gid_map", format!("{gid} {gid} 1").as_bytes())
}

fn start_loopback() -> Result<(), Errno> {
    let (family, kind) = (rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM);
    sys::start_loopback(rustix::net::socket_with(family, kind, rustix::net::SocketFlags::CLOEXEC, None)?)
}

/// Creates a listener on the sandbox's own loopback; connections wait until the agent takes them.
fn create_listener(port: u16) -> Result<OwnedFd, Errno> {
    let (family, kind) = (rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM);
    let listener = rustix::net::socket_with(family, kind, rustix::net::SocketFlags::CLOEXEC, None)?;
    let address = std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, port);
    rustix::net::bind(&listener, &address)?;
    rustix::net::listen(&listener, MAX_PENDING_CONNECTIONS)?;
    Ok(listener)
}

/// Drops all capabilities and every way to gain one, and keeps other processes of the same user
/// from looking into this one.
pub(super) fn drop_privileges() -> Result<(), Errno> {
    let locked = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    rustix::thread::set_capabilities_secure_bits(locked)?;
    for bit in 0..u64::BITS {
        match rustix::thread::remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << bit)) {
            Ok(()) => {}
            // The first number beyond the kernel's last capability.
            Err(Errno::INVAL) if bit > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(
        None,
        CapabilitySets { effective: none, permitted: none, inheritable: none },
    )?;
    rustix::thread::set_no_new_privs(true)?;
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
}
