//! System calls that no safe interface has, because nobody should make them. The attempts are about
//! what the kernel answers, so they are made raw.
#![allow(unsafe_code, reason = "attempts to get out are made of calls that have no safe form")]

use std::ffi::{c_int, c_long, c_void};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// A system call by number. Pointers among the arguments are to live memory of the caller's.
pub(crate) fn call<const N: usize>(number: c_long, arguments: [usize; N]) -> io::Result<usize> {
    let at = |place: usize| arguments.get(place).copied().unwrap_or_default();
    // SAFETY: every caller passes numbers, or addresses of memory that lives until the call returns
    // and is as large as the kernel expects; none of the calls changes memory that Rust thinks
    // constant.
    let result = unsafe { libc::syscall(number, at(0), at(1), at(2), at(3), at(4), at(5)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result.cast_unsigned() as usize) }
}

/// A `clone`-like call whose child does nothing. `true` where a child was made.
pub(crate) fn fork_by(number: c_long, arguments: [usize; 2]) -> io::Result<bool> {
    let made = call(number, arguments)?;
    if made == 0 {
        // SAFETY: the child of a fork may do nothing but end.
        unsafe { libc::_exit(0) };
    }
    let mut status: c_int = 0;
    // SAFETY: the pointer is to a live integer.
    unsafe { libc::waitpid(c_int::try_from(made).unwrap_or(-1), &raw mut status, 0) };
    Ok(true)
}

/// Something tried in a process of its own, which leads neither a session nor a group. This program
/// has one thread.
pub(crate) fn in_child(attempt: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    // SAFETY: no other thread holds a lock that the child would wait for.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let errno = attempt().err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
        // SAFETY: what the parent's exit would do is the parent's.
        unsafe { libc::_exit(errno) };
    }
    let mut status: c_int = 0;
    // SAFETY: the pointer is to a live integer.
    if child < 0 || unsafe { libc::waitpid(child, &raw mut status, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    match libc::WEXITSTATUS(status) {
        0 if libc::WIFEXITED(status) => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Types one character into a terminal, as if its user had.
pub(crate) fn type_into(terminal: RawFd) -> io::Result<()> {
    let character = b'#';
    // SAFETY: the pointer is to one live byte, which the call reads.
    let done = unsafe { libc::ioctl(terminal, libc::TIOCSTI, &raw const character) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Writes to the first byte of a shared segment.
pub(crate) fn overwrite_segment(id: c_int) -> io::Result<()> {
    // SAFETY: the kernel picks a free address.
    let address = unsafe { libc::shmat(id, std::ptr::null(), 0) };
    if address.addr() == usize::MAX {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the segment has at least one byte and was attached for writing.
    unsafe { address.cast::<u8>().write_volatile(b'X') };
    Ok(())
}

/// A segment of shared memory that everybody on the machine may write to, with one byte in it.
pub(crate) struct Segment {
    pub(crate) id: c_int,
    address: *mut c_void,
}

impl Segment {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no pointer is passed.
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, 4096, libc::IPC_CREAT | 0o666) };
        if id < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel picks a free address.
        let address = unsafe { libc::shmat(id, std::ptr::null(), 0) };
        // SAFETY: the segment goes when nobody has it attached any more; no pointer is passed.
        unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
        if address.addr() == usize::MAX {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { id, address })
    }

    pub(crate) fn first(&self) -> u8 {
        // SAFETY: the segment is attached as long as this lives.
        unsafe { self.address.cast::<u8>().read_volatile() }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: it was attached at this address and nobody keeps a reference into it.
        unsafe { libc::shmdt(self.address) };
    }
}

/// A page of machine code that was just written, run. Gives the number that the code returns.
pub(crate) fn run_written_code() -> io::Result<i32> {
    #[cfg(target_arch = "x86_64")]
    let code: [u8; 6] = [0xb8, 42, 0, 0, 0, 0xc3];
    #[cfg(target_arch = "aarch64")]
    let code: [u8; 8] = [0x40, 0x05, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6];
    let (read_write, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, which nothing else refers to.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), 4096, read_write, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the page is writable and larger than the code.
    unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), page.cast::<u8>(), code.len()) };
    // SAFETY: the page is this function's own.
    if unsafe { libc::mprotect(page, 4096, libc::PROT_READ | libc::PROT_EXEC) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the page holds a whole function of this signature and is executable.
    let function: extern "C" fn() -> i32 = unsafe { std::mem::transmute(page) };
    Ok(function())
}

/// `socket(AF_VSOCK)` by the 32-bit way into the kernel, which has numbers of its own. `None` where
/// the processor has no such way.
pub(crate) fn foreign_vsock() -> Option<isize> {
    #[cfg(target_arch = "x86_64")]
    {
        let result: i32;
        // SAFETY: the gate preserves everything but rax (older kernels clear r8 to r11); rbx, which
        // the compiler keeps for itself, is put back. The call makes a descriptor and touches no
        // memory.
        unsafe {
            std::arch::asm!(
                "xchg rbx, {family}",
                "int 0x80",
                "xchg rbx, {family}",
                family = inout(reg) 40u64 => _,
                inout("eax") 359i32 => result,
                in("ecx") 1,
                in("edx") 0,
                out("r8") _, out("r9") _, out("r10") _, out("r11") _,
            );
        }
        Some(result as isize)
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// Makes a process the leader of a session at a terminal, with two descriptors that were never
/// marked to be closed.
pub(crate) fn leave_open(command: &mut Command, file: RawFd, directory: RawFd, terminal: RawFd) {
    // SAFETY: between fork and exec only system calls are made.
    unsafe {
        command.pre_exec(move || {
            let done = |result: c_int| if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
            done(libc::setsid())?;
            done(libc::ioctl(terminal, libc::TIOCSCTTY, 0))?;
            // High ones first: the originals may have the low numbers.
            let (file, directory) =
                (libc::fcntl(file, libc::F_DUPFD, 100), libc::fcntl(directory, libc::F_DUPFD, 100));
            let terminal = libc::fcntl(terminal, libc::F_DUPFD, 100);
            done(libc::dup2(file, 8))?;
            done(libc::dup2(directory, 9))?;
            done(libc::dup2(terminal, 0))?;
            done(libc::close(file))?;
            done(libc::close(directory))?;
            done(libc::close(terminal))
        });
    }
}
