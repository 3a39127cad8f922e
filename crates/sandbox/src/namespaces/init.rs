//! The helper: it turns into pid 1 of a sandbox, builds the sandbox around itself, starts the command,
//! reaps, and ends with it.
//!
//! Runs single-threaded in a program that has done nothing else. Nothing here prints; what happens is told
//! in [`Note`]s over the control socket, which is the helper's standard input. When the other end of that
//! socket is gone, so is the agent, and pid 1 ends, upon which the kernel kills everything in the sandbox.

use std::cell::Cell;
use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags,
};
use rustix::process::{Pid, Resource, Rlimit, WaitOptions};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, LinkNameSpaceType, move_into_link_name_space,
};

use super::overlay::{Life, cover, overlay};
use super::restrict::{self, Grant, Tcp};
use super::sys::{self, Strings};
use super::wire::{self, Access, HEADER, Note, Policy, Stage, Step, body_length};
use super::{canary, mounter, pass};

/// Which limits a policy carries, in its order.
pub(super) const RESOURCES: [Resource; 6] =
    [Resource::Core, Resource::Nproc, Resource::Fsize, Resource::Nofile, Resource::Cpu, Resource::As];

/// Holds what the private directories and layers are made of; nobody inside may enter it.
const STORE: &CStr = c".sandbox";
/// How many files the scratch space may hold; an inode is about 1 KiB of kernel memory.
const SCRATCH_FILES: u32 = 400_000;
/// Connections to the proxy that the agent hasn't taken yet; more are tried again by the client's own kernel.
const WAITING: i32 = 128;
/// One read of standard input on its way to the command.
const INPUT_CHUNK: usize = 64 * 1024;

const RDONLY: u64 = MountAttrFlags::MOUNT_ATTR_RDONLY.bits() as u64;
const NOSUID: u64 = MountAttrFlags::MOUNT_ATTR_NOSUID.bits() as u64;
const NODEV: u64 = MountAttrFlags::MOUNT_ATTR_NODEV.bits() as u64;
const NOEXEC: u64 = MountAttrFlags::MOUNT_ATTR_NOEXEC.bits() as u64;

pub(super) const RDONLY_NOSUID_NODEV: u64 = RDONLY | NOSUID | NODEV;

/// What failed: the stage, the step's number, the error.
pub(super) struct Failure(pub(super) Stage, pub(super) u32, pub(super) Errno);

pub(super) trait At<T> {
    fn at(self, stage: Stage) -> Result<T, Failure>;
}

impl<T> At<T> for Result<T, Errno> {
    fn at(self, stage: Stage) -> Result<T, Failure> {
        self.map_err(|errno| Failure(stage, 0, errno))
    }
}

/// Does the helper's whole work; never returns.
pub(super) fn run() -> ! {
    // What leaked into this process mustn't stay open in the sandbox.
    sys::close_from(3).ok();
    let Ok(control) = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3) else { sys::exit(125) };
    if std::env::args_os().nth(2).is_some_and(|argument| argument == super::MOUNT_ARGUMENT) {
        mounter::run(&control);
    }
    if let Err(Failure(stage, index, errno)) = prepare(&control) {
        say(&control, Note::Failed { stage, index, errno: errno.raw_os_error() });
    }
    sys::exit(125)
}

pub(super) fn say(control: &OwnedFd, note: Note) {
    // Whoever isn't there to hear it needn't.
    rustix::io::write(control, &note.encode()).ok();
}

fn prepare(control: &OwnedFd) -> Result<(), Failure> {
    say(control, Note::Hello);
    let mut header = [0; HEADER];
    let mut passed = Vec::new();
    pass::receive_exact(control, &mut header, &mut passed).at(Stage::Policy)?;
    let length = body_length(wire::MAGIC, &header).ok_or(Failure(Stage::Policy, 0, Errno::PROTO))?;
    let mut body = vec![0; length];
    read_exact(control, &mut body).at(Stage::Policy)?;
    let policy = Policy::decode(&body).ok_or(Failure(Stage::Policy, 1, Errno::PROTO))?;
    // Open here and in pid 1, which ends last.
    let _witness = policy.witness.map(witness).transpose().at(Stage::Witness)?;
    let stdin = input(control, policy.stdin).at(Stage::Input)?;
    if rustix::process::geteuid().is_root() {
        // Only root may, and only root need: a user's groups give what the user has anyway.
        rustix::thread::set_thread_groups(&[]).at(Stage::Identity)?;
    }
    let _lock = if policy.joins { Some(join(passed).at(Stage::Join)?) } else { None };
    let network = if policy.own_network { libc::CLONE_NEWNET } else { 0 };
    let namespaces = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP
        | network;
    // Modes are as given while the root is built; the command gets its own mask back.
    let mask = rustix::process::umask(Mode::empty());
    let init = Init { policy: &policy, control, stdin: stdin.as_ref(), mask };
    let body = || match init.run() {
        Ok(()) => 0,
        Err(Failure(stage, index, errno)) => {
            say(control, Note::Failed { stage, index, errno: errno.raw_os_error() });
            125
        }
    };
    sys::become_init(namespaces, body, |started| {
        say(
            control,
            match started {
                Ok(pid) => Note::Started { pid: pid.as_raw_nonzero().get() },
                Err(errno) => {
                    Note::Failed { stage: Stage::Namespaces, index: 0, errno: errno.raw_os_error() }
                }
            },
        );
    })
}

/// Enters the namespaces of a base, and its root; what must stay open for as long as anything of the command lives.
fn join(passed: Vec<OwnedFd>) -> Result<OwnedFd, Errno> {
    let [root, user, mounts, lock] = <[OwnedFd; pass::MOST]>::try_from(passed).map_err(|_| Errno::PROTO)?;
    move_into_link_name_space(user.as_fd(), Some(LinkNameSpaceType::User))?;
    move_into_link_name_space(mounts.as_fd(), Some(LinkNameSpaceType::Mount))?;
    // A directory that is worked in is found again in a copy of its mount namespace; an open one isn't.
    rustix::process::fchdir(&root)?;
    Ok(lock)
}

/// Locks the file that says that the command lives. Whoever took it exclusively, or away, counts on there being no
/// command.
fn witness(path: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockShared)?;
    if rustix::fs::fstat(&file)?.st_nlink == 0 { Err(Errno::STALE) } else { Ok(file) }
}

pub(super) fn read_exact(from: impl AsFd, mut buffer: &mut [u8]) -> Result<(), Errno> {
    while !buffer.is_empty() {
        match rustix::io::retry_on_intr(|| rustix::io::read(&from, &mut *buffer))? {
            0 => return Err(Errno::PIPE),
            count => buffer = buffer.get_mut(count..).ok_or(Errno::IO)?,
        }
    }
    Ok(())
}

/// Standard input as a file in memory, read-only from its beginning.
fn input(control: &OwnedFd, length: Option<u64>) -> Result<Option<OwnedFd>, Errno> {
    let Some(mut left) = length else { return Ok(None) };
    let file = rustix::fs::memfd_create(c"stdin", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut buffer = vec![0; INPUT_CHUNK];
    while left > 0 {
        let wanted = usize::try_from(left).unwrap_or(INPUT_CHUNK).min(INPUT_CHUNK);
        let part = buffer.get_mut(..wanted).ok_or(Errno::IO)?;
        let count = rustix::io::retry_on_intr(|| rustix::io::read(control, &mut *part))?;
        let mut rest = part.get(..count).filter(|got| !got.is_empty()).ok_or(Errno::PIPE)?;
        left -= count as u64;
        while !rest.is_empty() {
            let written = rustix::io::write(&file, rest)?;
            rest = rest.get(written..).ok_or(Errno::IO)?;
        }
    }
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
    Ok(Some(file))
}

struct Init<'a> {
    policy: &'a Policy<&'a CStr>,
    control: &'a OwnedFd,
    stdin: Option<&'a OwnedFd>,
    mask: Mode,
}

impl Init<'_> {
    fn run(&self) -> Result<(), Failure> {
        map_one(self.policy.uid, self.policy.gid).at(Stage::Identity)?;
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        rustix::mount::mount_change(c"/", private).at(Stage::Root)?;
        let base = self.policy.joins.then(|| copy(CWD, c".", true, 0)).transpose().at(Stage::Join)?;
        let root = new_root(self.policy.scratch_bytes).at(Stage::Root)?;
        let mut builder = Builder { root: &root, base, pid_max: self.policy.pid_max, stores: 0 };
        for (index, step) in (0..).zip(&self.policy.steps) {
            builder.step(step).map_err(|errno| Failure(Stage::Step, index, errno))?;
        }
        enter(&root).at(Stage::Enter)?;
        drop(builder);
        drop(root);
        rustix::process::chdir(self.policy.cwd).at(Stage::Directory)?;
        if self.policy.own_network {
            loopback().at(Stage::Loopback)?;
        }
        if self.policy.listen > 0 {
            self.listen().at(Stage::Listen)?;
        }
        self.limits().at(Stage::Limits)?;
        drop_privileges().at(Stage::Privileges)?;
        if self.policy.landlock > 0 {
            self.restrict().at(Stage::Landlock)?;
        }
        if !self.policy.filter.is_empty() {
            sys::install_filter(&self.policy.filter).at(Stage::Filter)?;
        }
        self.command()
    }

    /// Makes the listener that the agent serves its proxy on, and passes it out. Nobody inside keeps it.
    fn listen(&self) -> Result<(), Errno> {
        let listener = listener(self.policy.listen)?;
        pass::send(self.control, &Note::Listening.encode(), &[listener.as_fd()]).map(drop)
    }

    /// Everything in the new root may be read; what is mounted for writing may be written. A way out to a tree that
    /// isn't part of this root would lead to nothing.
    fn restrict(&self) -> Result<(), Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(c"/", flags, Mode::empty())?;
        let written = self.policy.steps.iter().filter_map(Step::written);
        let grants = written.map(|path| (path, Grant::Write)).chain([(c".", Grant::Read)]);
        restrict::restrict(self.policy.landlock, &root, grants, Tcp::Free)
    }

    fn limits(&self) -> Result<(), Errno> {
        for (resource, limit) in RESOURCES.into_iter().zip(&self.policy.limits) {
            let Some(limit) = *limit else { continue };
            // Above the hard limit nothing can be had; it is the tighter one then.
            let limit = rustix::process::getrlimit(resource).maximum.map_or(limit, |hard| hard.min(limit));
            rustix::process::setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?;
        }
        Ok(())
    }

    fn command(&self) -> Result<(), Failure> {
        let children = sys::watch_children().at(Stage::Supervise)?;
        let (argv, env) = (Strings::new(&self.policy.argv), Strings::new(&self.policy.env));
        let trouble = Cell::new(None);
        let escaped = Cell::new(0);
        let pid = sys::run_suspended(|| {
            if let Some(canary) = &self.policy.canary {
                escaped.set(canary::escapes(canary, self.policy.own_network, self.policy.listen));
                return 0;
            }
            trouble.set(Some(match self.become_command(&argv, &env) {
                Ok(never) => match never {},
                Err(failure) => failure,
            }));
            125
        })
        .at(Stage::Execute)?;
        if let Some(failure) = trouble.into_inner() {
            return Err(failure);
        }
        if self.policy.canary.is_some() {
            say(self.control, Note::Canaries { escaped: escaped.get() });
        }
        // The output ends when its last writer does, and that isn't this process.
        sys::close_standard();
        self.supervise(pid, &children).at(Stage::Supervise)
    }

    /// In the new process. Returns only on failure.
    fn become_command(&self, argv: &Strings, env: &Strings) -> Result<std::convert::Infallible, Failure> {
        sys::reset_signals();
        rustix::process::umask(self.mask);
        rustix::process::setsid().at(Stage::Execute)?;
        match self.stdin {
            Some(file) => rustix::stdio::dup2_stdin(file).at(Stage::Input)?,
            None => {
                let null = rustix::fs::open(c"/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
                rustix::stdio::dup2_stdin(null.at(Stage::Input)?).at(Stage::Input)?;
            }
        }
        sys::close_from(3).at(Stage::Execute)?;
        let mut failure = Failure(Stage::Execute, 0, Errno::NOENT);
        for (index, candidate) in (0..).zip(&self.policy.candidates) {
            match sys::execute(candidate, argv, env) {
                // Not here; another directory may have it.
                Errno::NOENT | Errno::NOTDIR => {}
                errno => failure = Failure(Stage::Execute, index, errno),
            }
        }
        Err(failure)
    }

    /// Reaps until the command ends, or the agent does.
    fn supervise(&self, command: Pid, children: &OwnedFd) -> Result<(), Errno> {
        loop {
            while let Some((pid, status)) = reap()? {
                if pid != command {
                    continue;
                }
                return self.end(status);
            }
            let mut ready =
                [PollFd::new(children, PollFlags::IN), PollFd::new(self.control, PollFlags::empty())];
            match poll(&mut ready, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
            let [child, agent] = &ready;
            if !agent.revents().is_empty() {
                // Nothing of it may outlive this process, which holds the witness.
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
    /// Kills what is left and tells how the command ended. The agent needn't wait for the kernel to take the
    /// namespaces apart, which it does when this process ends.
    fn end(&self, command: rustix::process::WaitStatus) -> Result<(), Errno> {
        kill_all()?;
        let usage = sys::usage_so_far();
        if let Some(code) = command.exit_status() {
            say(self.control, Note::Exited { code, usage });
        } else if let Some(signal) = command.terminating_signal() {
            say(self.control, Note::Signaled { signal, usage });
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

fn reap() -> Result<Option<(Pid, rustix::process::WaitStatus)>, Errno> {
    match rustix::process::wait(WaitOptions::NOHANG) {
        Err(Errno::CHILD) => Ok(None),
        other => other,
    }
}

/// The same user inside as outside: files have the owners that they have.
pub(super) fn map_one(uid: u32, gid: u32) -> Result<(), Errno> {
    write_file(c"/proc/self/setgroups", b"deny")?;
    write_file(c"/proc/self/uid_map", format!("{uid} {uid} 1").as_bytes())?;
    write_file(c"/proc/self/gid_map", format!("{gid} {gid} 1").as_bytes())
}

fn write_file(path: &CStr, text: &[u8]) -> Result<(), Errno> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(file, text).map(drop)
}

/// An empty file system in memory, mounted over the old root, which all absolute paths still lead to.
fn new_root(bytes: u64) -> Result<OwnedFd, Errno> {
    let fs = rustix::mount::fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_string(fs.as_fd(), c"size", bytes.to_string())?;
    rustix::mount::fsconfig_set_string(fs.as_fd(), c"nr_inodes", SCRATCH_FILES.to_string())?;
    rustix::mount::fsconfig_set_string(fs.as_fd(), c"mode", c"0755")?;
    rustix::mount::fsconfig_create(fs.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let root = rustix::mount::fsmount(fs.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    rustix::mount::move_mount(root.as_fd(), c"", CWD, c"/", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    rustix::process::fchdir(&root)?;
    rustix::fs::mkdirat(&root, STORE, Mode::empty())?;
    Ok(root)
}

/// Makes the new root the only one, and read-only.
fn enter(root: &OwnedFd) -> Result<(), Errno> {
    sys::mount_attributes(root, c"", false, RDONLY)?;
    rustix::process::pivot_root(c".", c".")?;
    // The old one now lies over the new one.
    rustix::mount::unmount(c".", UnmountFlags::DETACH)?;
    rustix::process::chdir(c"/")
}

fn loopback() -> Result<(), Errno> {
    let (family, kind) = (rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM);
    sys::start_loopback(rustix::net::socket_with(family, kind, rustix::net::SocketFlags::CLOEXEC, None)?)
}

/// A listener on the sandbox's own loopback; connections wait until the agent takes them.
fn listener(port: u16) -> Result<OwnedFd, Errno> {
    let (family, kind) = (rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM);
    let listener = rustix::net::socket_with(family, kind, rustix::net::SocketFlags::CLOEXEC, None)?;
    let address = std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, port);
    rustix::net::bind(&listener, &address)?;
    rustix::net::listen(&listener, WAITING)?;
    Ok(listener)
}

/// No capability and no way to one; nor may another process look into this one, which has the same user.
fn drop_privileges() -> Result<(), Errno> {
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

struct Builder<'a> {
    root: &'a OwnedFd,
    base: Option<OwnedFd>,
    pid_max: u32,
    stores: u32,
}

impl Builder<'_> {
    fn step(&mut self, step: &Step<&CStr>) -> Result<(), Errno> {
        match *step {
            Step::Directory { path } => rustix::fs::mkdirat(self.root, path, Mode::from_raw_mode(0o755)),
            Step::File { path } => self.file(path),
            Step::Link { path, target } => rustix::fs::symlinkat(target, self.root, path),
            Step::Bind { path, source, access } => {
                let tree = copy(CWD, source, access != Access::Device, attributes(access))?;
                self.attach(&tree, path)
            }
            Step::Base { path, access } => {
                let tree = self.base.take().ok_or(Errno::PROTO)?;
                sys::mount_attributes(&tree, c"", true, attributes(access))?;
                self.attach(&tree, path)
            }
            Step::Scratch { path, mode } => {
                let store = self.store(b's', mode)?;
                let tree = copy(self.root, &store, false, 0)?;
                self.attach(&tree, path)
            }
            Step::Layer { path, source } => self.layer(path, source),
            Step::Proc { path } => self.proc(path),
            Step::Terminals { path } => {
                let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
                rustix::mount::mount(c"devpts", path, c"devpts", flags, c"newinstance,ptmxmode=0666,mode=620")
            }
            Step::Guard { path } => self.guard(path),
            Step::Mask { path, directory } => self.mask(path, directory),
        }
    }

    fn file(&self, path: &CStr) -> Result<(), Errno> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(self.root, path, flags, Mode::from_raw_mode(0o444)).map(drop)
    }

    /// A new directory in the store: `.sandbox/s0`, `.sandbox/u1`, …
    fn store(&mut self, letter: u8, mode: u32) -> Result<std::ffi::CString, Errno> {
        let name = format!("{}/{}{}", STORE.to_str().unwrap_or_default(), char::from(letter), self.stores);
        self.stores += 1;
        let name = std::ffi::CString::new(name).map_err(|_| Errno::INVAL)?;
        rustix::fs::mkdirat(self.root, &name, Mode::from_raw_mode(mode))?;
        Ok(name)
    }

    fn attach(&self, tree: &OwnedFd, path: &CStr) -> Result<(), Errno> {
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        rustix::mount::move_mount(tree.as_fd(), c"", self.root.as_fd(), path, flags)
    }

    fn layer(&mut self, path: &CStr, source: &CStr) -> Result<(), Errno> {
        let (upper, work) = (self.store(b'u', 0o755)?, self.store(b'w', 0o755)?);
        let mount = || {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let lower = rustix::fs::openat(CWD, source, flags, Mode::empty())?;
            let upper = rustix::fs::openat(self.root, &upper, flags, Mode::empty())?;
            let work = rustix::fs::openat(self.root, &work, flags, Mode::empty())?;
            self.attach(&overlay(lower, upper, work, Life::Command)?, path)
        };
        if mount().is_ok() {
            return Ok(());
        }
        // Kernels before 5.11, or file systems that can't be a lower layer.
        let tree = copy(CWD, source, true, RDONLY_NOSUID_NODEV)?;
        self.attach(&tree, path)
    }

    fn proc(&self, path: &CStr) -> Result<(), Errno> {
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        rustix::mount::mount(c"proc", path, c"proc", flags, None)?;
        if self.pid_max > 0 {
            // Root's processes don't count against RLIMIT_NPROC. The knob is per namespace since Linux 6.14;
            // before that the kernel refuses the write, and the gap is told.
            write_file(c"proc/sys/kernel/pid_max", self.pid_max.to_string().as_bytes()).ok();
        }
        // All of it, not `sys` alone: `sysrq-trigger` and others obey whoever is root.
        sys::mount_attributes(self.root, path, false, RDONLY)
    }

    /// Opens what is at the path inside, without following any link: the tree may belong to an attacker.
    fn find(&self, path: &CStr) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::BENEATH;
        rustix::io::retry_on_intr(|| rustix::fs::openat2(self.root, path, flags, Mode::empty(), resolve))
    }

    fn guard(&self, path: &CStr) -> Result<(), Errno> {
        let place = self.find(path)?;
        let tree = copy(&place, c"", true, RDONLY_NOSUID_NODEV)?;
        cover(&tree, &place)
    }

    fn mask(&mut self, path: &CStr, directory: bool) -> Result<(), Errno> {
        let place = self.find(path)?;
        let store = if directory {
            self.store(b'm', 0o555)?
        } else {
            let name =
                std::ffi::CString::new(format!(".sandbox/m{}", self.stores)).map_err(|_| Errno::INVAL)?;
            self.stores += 1;
            self.file(&name)?;
            name
        };
        let tree = copy(self.root, &store, false, RDONLY | NOSUID | NODEV | NOEXEC)?;
        cover(&tree, &place)
    }
}

fn attributes(access: Access) -> u64 {
    match access {
        Access::ReadOnly => RDONLY_NOSUID_NODEV,
        Access::Writable => NOSUID | NODEV,
        Access::Device => NOSUID | NOEXEC,
    }
}

/// A mount of its own of what is at the path.
pub(super) fn copy(at: impl AsFd, path: &CStr, recursive: bool, attributes: u64) -> Result<OwnedFd, Errno> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    flags.set(OpenTreeFlags::AT_RECURSIVE, recursive);
    let tree = rustix::mount::open_tree(at.as_fd(), path, flags)?;
    if attributes != 0 {
        sys::mount_attributes(&tree, c"", recursive, attributes)?;
    }
    Ok(tree)
}
