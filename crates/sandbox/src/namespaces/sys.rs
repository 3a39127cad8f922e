//! The few kernel calls that have no safe wrapper. All unsafe code of this crate is here.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Pid;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::messages::ProcessUsage;
use crate::running_command::ResourceUsage;

/// Enough for the set-up, whose deepest calls need a few kilobytes; untouched pages cost nothing.
const STACK_BYTES: usize = 256 * 1024;

/// Signals whose disposition an agent or its parent may have changed, and which a command expects
/// to find as usual. Rust's runtime ignores SIGPIPE, `nohup` SIGHUP, Python SIGXFSZ.
const RESET_SIGNALS: [c_int; 12] = [
    libc::SIGPIPE,
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGCHLD,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGXFSZ,
    libc::SIGUSR1,
    libc::SIGALRM,
];

fn check_result(result: libc::c_long) -> Result<libc::c_long, Errno> {
    if result < 0 { Err(last_error()) } else { Ok(result) }
}

fn last_error() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Allocates memory for a stack. It is never freed: its process ends by exit or exec.
fn allocate_stack() -> *mut c_void {
    let memory: &'static mut [std::mem::MaybeUninit<u8>] = Box::leak(Box::new_uninit_slice(STACK_BYTES));
    // SAFETY: the offset is within the allocation.
    let top = unsafe { memory.as_mut_ptr().add(STACK_BYTES) };
    // The ABIs of x86-64 and AArch64 want 16 bytes.
    top.map_addr(|address| address & !15).cast()
}

extern "C" fn call_closure<F: FnMut() -> c_int>(body: *mut c_void) -> c_int {
    // SAFETY: `clone_sharing` passes a pointer to an `F` that outlives this process's use of the
    // memory.
    let body = unsafe { &mut *body.cast::<F>() };
    body()
}

/// Makes a process that shares this one's memory and runs `body` on a stack of its own.
///
/// # Safety
/// Until the new process has ended or executed another program, this one must be suspended
/// (`CLONE_VFORK`), or must do nothing but raw system calls and exit, so that memory is never used
/// by both; `body` must live as long.
unsafe fn clone_sharing<F: FnMut() -> c_int>(flags: c_int, body: &mut F) -> Result<Pid, Errno> {
    let flags = flags | libc::CLONE_VM | libc::SIGCHLD;
    let argument = std::ptr::from_mut(body).cast();
    // SAFETY: the stack is fresh and large enough, `enter::<F>` matches the argument; the rest is
    // the caller's promise.
    let pid = unsafe { libc::clone(call_closure::<F>, allocate_stack(), flags, argument) };
    check_result(libc::c_long::from(pid))?;
    Pid::from_raw(pid).ok_or(Errno::INVAL)
}

/// Hands this process's memory over to a new process in new namespaces, a child of this one's
/// parent, and ends. No page is copied. `tell` learns the new process's id; it must neither
/// allocate nor use `errno`, for the other runs already.
pub(super) fn become_init(
    namespaces: c_int,
    mut body: impl FnMut() -> c_int,
    tell: impl Fn(Result<Pid, Errno>),
) -> ! {
    // SAFETY: this process ends below without returning, so `body` stays, and does only what `tell`
    // may.
    let result = unsafe { clone_sharing(namespaces | libc::CLONE_PARENT, &mut body) };
    tell(result);
    exit(0)
}

/// Runs `body` in a child while this process is suspended; returns once the child has ended or
/// executed a program. What `body` writes to memory is seen here.
pub(super) fn run_suspended(mut body: impl FnMut() -> c_int) -> Result<Pid, Errno> {
    // SAFETY: CLONE_VFORK suspends this process for as long as the memory is shared.
    unsafe { clone_sharing(libc::CLONE_VFORK, &mut body) }
}

/// Ends the process at once, running nothing of its own.
pub(super) fn exit(code: c_int) -> ! {
    // SAFETY: _exit takes any value and touches no memory.
    unsafe { libc::_exit(code) }
}

/// Tries to execute a program that is open for writing, and the nanoseconds between two: a fifth of
/// a second in all. A writer may have forked in another thread, where the descriptor lives on until
/// that process executes its program: some milliseconds.
const MAX_BUSY_TRIES: usize = 40;
const BUSY_PAUSE: libc::c_long = 5_000_000;

/// Replaces the program. Returns only on failure.
pub(super) fn execute(program: &CStr, argv: &CStringArray, env: &CStringArray) -> Errno {
    for _ in 0..MAX_BUSY_TRIES {
        // SAFETY: both arrays end in a null pointer and hold pointers to strings that outlive the
        // call.
        unsafe { libc::execve(program.as_ptr(), argv.0.as_ptr(), env.0.as_ptr()) };
        let errno = last_error();
        if errno != Errno::TXTBSY {
            return errno;
        }
        let pause = libc::timespec { tv_sec: 0, tv_nsec: BUSY_PAUSE };
        // SAFETY: the pause is a valid time, and what would be left of it isn't asked for.
        unsafe { libc::nanosleep(&raw const pause, std::ptr::null_mut()) };
    }
    Errno::TXTBSY
}

/// A null-terminated array of C strings, as `execve` takes them.
pub(super) struct CStringArray<'a>(Vec<*const c_char>, std::marker::PhantomData<&'a CStr>);

impl<'a> CStringArray<'a> {
    pub(super) fn new(list: &[&'a CStr]) -> Self {
        let pointers = list.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]);
        Self(pointers.collect(), std::marker::PhantomData)
    }
}

/// Moves this process into new namespaces; it must have one thread.
pub(super) fn unshare(namespaces: c_int) -> Result<(), Errno> {
    // SAFETY: new user and mount namespaces touch no memory, and no descriptor table is split
    // (CLONE_FILES isn't among them).
    check_result(unsafe { libc::syscall(libc::SYS_unshare, namespaces & !libc::CLONE_FILES) }).map(drop)
}

/// Makes `old`'s number stand for what `new` stands for, at once; what it stood for is closed.
pub(super) fn replace_descriptor(old: BorrowedFd<'_>, new: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: both are open. Whoever owns or borrows the number `old` goes on with a descriptor
    // that is open, and that still nobody else owns; nothing in this process maps or keeps what it
    // stood for.
    let result = unsafe { libc::dup3(new.as_raw_fd(), old.as_raw_fd(), libc::O_CLOEXEC) };
    check_result(libc::c_long::from(result)).map(drop)
}

/// Closes every descriptor from `first` on.
pub(super) fn close_from(first: u32) -> Result<(), Errno> {
    // SAFETY: no descriptor from `first` on is owned by a value that is used later; callers pass
    // the number right at the start of the helper, or right before exec.
    check_result(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0u32) }).map(drop)
}

/// Closes standard input, output and error of this process.
pub(super) fn close_standard_streams() {
    // SAFETY: no value owns the three; whatever writes to them later gets an error, which nothing
    // here does.
    unsafe { libc::syscall(libc::SYS_close_range, 0u32, 2u32, 0u32) };
}

/// Adds attributes to a mount (`mount_setattr`), or with `recursive` to the mount and all beneath
/// it.
pub(super) fn mount_attributes(
    mount: impl AsFd,
    path: &CStr,
    recursive: bool,
    set: u64,
) -> Result<(), Errno> {
    let attributes = libc::mount_attr { attr_set: set, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let recursion = if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the structure is a valid `mount_attr` of the size that is passed with it.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            path.as_ptr(),
            libc::AT_EMPTY_PATH | libc::AT_SYMLINK_NOFOLLOW | recursion,
            std::ptr::from_ref(&attributes),
            size_of::<libc::mount_attr>(),
        )
    };
    check_result(result).map(drop)
}

/// Returns the version of Landlock that the kernel has on; 0 or less where it hasn't.
pub(super) fn landlock_version() -> c_int {
    /// `LANDLOCK_CREATE_RULESET_VERSION`, of <linux/landlock.h>.
    const CREATE_RULESET_VERSION: libc::c_uint = 1;
    // SAFETY: with this flag no attribute is read, as none is given.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<c_void>(),
            0usize,
            CREATE_RULESET_VERSION,
        )
    };
    c_int::try_from(version).unwrap_or(0)
}

/// Installs a seccomp filter given as its instructions' bytes, 8 each, in the machine's byte order.
pub(super) fn install_filter(instructions: &[u8]) -> Result<(), Errno> {
    set_filter(instructions, 0).map(drop)
}

/// Installs a filter as [`install_filter`] does, and returns the descriptor on which the calls that
/// it holds arrive. Once a call was taken there, only a deadly signal interrupts it, so none is
/// made twice.
pub(super) fn install_filter_with_listener(instructions: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let descriptor = set_filter(instructions, flags)?;
    let descriptor = c_int::try_from(descriptor).map_err(|_| Errno::BADF)?;
    // SAFETY: with this flag the call returns a new descriptor, which nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn set_filter(instructions: &[u8], flags: libc::c_ulong) -> Result<libc::c_long, Errno> {
    let count =
        u16::try_from(instructions.len() / size_of::<libc::sock_filter>()).map_err(|_| Errno::INVAL)?;
    let mut aligned: Vec<libc::sock_filter> = Vec::with_capacity(usize::from(count));
    for [a, b, jt, jf, k @ ..] in instructions.as_chunks::<8>().0 {
        let (code, k) = (u16::from_ne_bytes([*a, *b]), u32::from_ne_bytes(*k));
        aligned.push(libc::sock_filter { code, jt: *jt, jf: *jf, k });
    }
    let program = libc::sock_fprog { len: count, filter: aligned.as_mut_ptr() };
    // SAFETY: `program` describes `aligned`, which lives through the call; the kernel copies and
    // checks it.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, std::ptr::from_ref(&program))
    };
    check_result(result)
}

/// A system call that a filter holds until it is answered.
#[derive(Debug)]
pub(super) struct HeldCall {
    pub(super) id: u64,
    /// The calling thread's number.
    pub(super) thread: u32,
    pub(super) number: libc::c_long,
    pub(super) arguments: [u64; 6],
}

/// Takes the next held call; waits for one.
pub(super) fn receive_call(listener: &OwnedFd) -> Result<HeldCall, Errno> {
    // SAFETY: `seccomp_notif` is plain data for which all zeros is a value, and has to be before
    // the call.
    let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the request's number has the size of the structure, which the kernel fills.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) };
    check_result(libc::c_long::from(result))?;
    Ok(HeldCall { id: call.id, thread: call.pid, number: call.data.nr.into(), arguments: call.data.args })
}

/// Returns true if the call is still held, so that its thread's number is still that thread's.
pub(super) fn is_call_waiting(listener: &OwnedFd, id: u64) -> bool {
    // SAFETY: the kernel reads the number that the pointer is to.
    let result =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) };
    result == 0
}

/// Ends a held call with this result; the kernel itself does nothing of the call.
pub(super) fn answer_call(listener: &OwnedFd, id: u64, result: Result<(), Errno>) -> Result<(), Errno> {
    let error = result.map_or_else(|errno| -errno.raw_os_error(), |()| 0);
    let mut answer = libc::seccomp_notif_resp { id, val: 0, error, flags: 0 };
    // SAFETY: the request's number has the size of the structure, which lives through the call.
    let result =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) };
    check_result(libc::c_long::from(result)).map(drop)
}

/// Has caller and listener take turns on one processor, which is faster; older kernels don't know
/// it.
pub(super) fn wake_synchronously(listener: &OwnedFd) {
    /// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP`, of <linux/seccomp.h>.
    const SYNC_WAKE_UP: libc::c_ulong = 1;
    // SAFETY: the flags are passed by value; no memory is touched.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP) };
}

/// Reads memory of the process that a thread belongs to, all of the buffer or nothing.
pub(super) fn read_memory(thread: u32, address: u64, buffer: &mut [u8]) -> Result<(), Errno> {
    let thread = libc::pid_t::try_from(thread).map_err(|_| Errno::SRCH)?;
    let address = usize::try_from(address).map_err(|_| Errno::FAULT)?;
    let here = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let there = libc::iovec { iov_base: std::ptr::without_provenance_mut(address), iov_len: buffer.len() };
    // SAFETY: the kernel writes to `buffer` alone, at most its length; the other address is of
    // another process.
    let count = unsafe { libc::process_vm_readv(thread, &raw const here, 1, &raw const there, 1, 0) };
    let count = usize::try_from(count).map_err(|_| last_error())?;
    if count == buffer.len() { Ok(()) } else { Err(Errno::FAULT) }
}

/// Changes the mode of what a descriptor stands for, which needn't be open for anything
/// (`fchmodat2`, Linux 6.6).
pub(super) fn change_mode(file: impl AsFd, mode: u32) -> Result<(), Errno> {
    // SAFETY: the path is a string of no length; no other memory is touched.
    let result = unsafe {
        libc::syscall(
            crate::syscalls::FCHMODAT2,
            file.as_fd().as_raw_fd(),
            c"".as_ptr(),
            mode,
            libc::AT_EMPTY_PATH,
        )
    };
    check_result(result).map(drop)
}

/// Brings the loopback interface of this network namespace up.
pub(super) fn start_loopback(socket: impl AsFd) -> Result<(), Errno> {
    // SAFETY: `ifreq` is plain data for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads an `ifreq`, which this is.
    let result =
        unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::SIOCSIFFLAGS, std::ptr::from_ref(&request)) };
    check_result(libc::c_long::from(result)).map(drop)
}

/// Blocks SIGCHLD and returns a descriptor that becomes readable when a child ends.
pub(super) fn watch_children() -> Result<OwnedFd, Errno> {
    watch_signals(&[libc::SIGCHLD])
}

/// Takes the next signals from such a descriptor; none where none came.
pub(super) fn read_signals(descriptor: &OwnedFd) -> Vec<c_int> {
    const SIGNAL_INFO_BYTES: usize = size_of::<libc::signalfd_siginfo>();
    let mut buffer = [0; SIGNAL_INFO_BYTES * 4];
    let count = rustix::io::read(descriptor, &mut buffer).unwrap_or(0);
    let all = buffer.get(..count).unwrap_or_default().chunks_exact(SIGNAL_INFO_BYTES);
    // The number comes first in the structure.
    all.filter_map(|one| one.first_chunk().map(|number| c_int::from_ne_bytes(*number))).collect()
}

/// Takes over a descriptor that this program was started with; `None` where there is none of the
/// number. It is closed on exec from then on. Called once for a number, right at the start of a
/// helper.
pub(super) fn take_inherited_descriptor(number: u32) -> Option<OwnedFd> {
    let number = c_int::try_from(number).ok()?;
    // SAFETY: fcntl takes any number; where nothing is open under it, it fails.
    check_result(libc::c_long::from(unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) })).ok()?;
    // SAFETY: it is open, and nobody in this program owns it: it came with the start, and is taken
    // once.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Blocks these signals and returns a descriptor that becomes readable when one comes.
pub(super) fn watch_signals(signals: &[c_int]) -> Result<OwnedFd, Errno> {
    // SAFETY: `sigset_t` is plain data that sigemptyset fills; both calls get valid pointers to it,
    // and the descriptor that signalfd returns is new and owned by nobody else.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        check_result(libc::c_long::from(libc::sigprocmask(
            libc::SIG_BLOCK,
            &raw const set,
            std::ptr::null_mut(),
        )))?;
        let descriptor = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        check_result(libc::c_long::from(descriptor))?;
        Ok(OwnedFd::from_raw_fd(descriptor))
    }
}

/// Gives signals back their usual meaning, and unblocks all.
pub(super) fn reset_signals() {
    // SAFETY: SIG_DFL is a valid handler for each of the signals; `sigset_t` is filled before its
    // use.
    unsafe {
        for signal in RESET_SIGNALS {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
    }
}

/// Reaps a child of this process, and returns the resources that its whole tree used. `None`: it
/// hasn't ended yet (only with `wait` false), or is nobody's child any more.
pub(super) fn reap_child(pid: Pid, wait: bool) -> Option<ResourceUsage> {
    let mut status = 0;
    // SAFETY: `rusage` is plain data; the kernel fills it, or it stays zero.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let options = if wait { 0 } else { libc::WNOHANG };
    // SAFETY: both pointers are to live values of the right types.
    let reaped = unsafe { libc::wait4(pid.as_raw_nonzero().get(), &raw mut status, options, &raw mut usage) };
    if reaped <= 0 {
        return None;
    }
    Some(to_usage(&usage).into())
}

/// Returns the resources used by this process and by all that it reaped.
pub(super) fn total_usage() -> ProcessUsage {
    let mut total = ProcessUsage::default();
    for whose in [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN] {
        // SAFETY: `rusage` is plain data, all zeros before the kernel fills it; the pointer is to
        // it.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(whose, &raw mut usage);
            usage
        };
        let part = to_usage(&usage);
        total.user += part.user;
        total.system += part.system;
        total.peak_memory = total.peak_memory.max(part.peak_memory);
    }
    total
}

/// Returns the processor time of all processes that this one reaped, and of those that they reaped.
pub(super) fn children_cpu_time() -> Duration {
    // SAFETY: `rusage` is plain data, all zeros before the kernel fills it; the pointer is to it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let usage = to_usage(&usage);
    Duration::from_micros(usage.user + usage.system)
}

fn to_usage(usage: &libc::rusage) -> ProcessUsage {
    let micros = |value: libc::timeval| {
        value.tv_sec.max(0).cast_unsigned() * 1_000_000 + value.tv_usec.max(0).cast_unsigned()
    };
    // Linux counts `ru_maxrss` in KiB.
    let peak_memory = usage.ru_maxrss.max(0).cast_unsigned() * 1024;
    ProcessUsage { user: micros(usage.ru_utime), system: micros(usage.ru_stime), peak_memory }
}

impl From<ProcessUsage> for ResourceUsage {
    fn from(usage: ProcessUsage) -> Self {
        Self {
            user: Duration::from_micros(usage.user),
            system: Duration::from_micros(usage.system),
            peak_memory: usage.peak_memory,
        }
    }
}

/// Opens a descriptor of the process, for the runtime to wait on.
pub(super) fn watch_process(pid: Pid) -> io::Result<AsyncFd<OwnedFd>> {
    let descriptor = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?;
    // SAFETY: an owned descriptor stays open and the same until the `AsyncFd` that owns it is
    // dropped, which takes it from the runtime first.
    let watched = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
    Ok(watched?)
}

/// Tries a further user namespace, as a canary. True if it was made.
pub(super) fn can_unshare_user() -> bool {
    // SAFETY: unshare touches no memory of this process; the caller ends right after.
    let made = check_result(unsafe { libc::syscall(libc::SYS_unshare, libc::CLONE_NEWUSER) });
    // EINVAL comes after the permission checks: this process shares its memory with another.
    !matches!(made, Err(Errno::PERM | Errno::NOSPC | Errno::NOSYS))
}
