//! Changes of files' modes, times and owners, for which Landlock has no right.
//!
//! The kernel holds a call of the command's that changes metadata, and notifies this process's
//! second thread (`SECCOMP_RET_USER_NOTIF`). The thread reads the call's arguments from the
//! command's memory, opens the file that they name with `O_PATH`, and asks the kernel for the path
//! of that very file. Where the command may write there, the thread makes the change on the
//! descriptor that it has; else the call fails with `EPERM`. No held call ever continues in the
//! kernel, because the command can change the memory that was judged.
//!
//! The thread has the command's user and no capability, so it can change nothing that the command
//! couldn't. It handles one call at a time and keeps nothing of it. Without the thread such calls
//! fail.

use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, Timespec, Timestamps, UTIME_NOW};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::super::descriptor_passing;
use super::super::sys::{self, HeldCall};
use crate::syscalls::FCHMODAT2;

/// The thread's deepest calls need a few kilobytes; untouched pages cost nothing.
const STACK_BYTES: usize = 256 * 1024;
/// The longest path that the kernel takes, its end included.
const MAX_PATH_BYTES: usize = 4096;
/// Reads of the command's memory end where pages of this size do, because the next one may be
/// missing.
const PAGE_BYTES: u64 = 4096;
/// Lookups of a file that is moved at the same time.
const MAX_MOVE_RETRIES: usize = 16;
/// Modes that can be set; the filter refuses set-ID bits.
const MODE_BITS: u32 = 0o1777;

/// The thread, and the socket by which the command's first process hands over the descriptor of
/// held calls.
pub(super) struct MetadataThread {
    thread: JoinHandle<()>,
    socket: OwnedFd,
}

impl MetadataThread {
    /// Starts the thread, which changes metadata beneath these files and directories.
    pub(super) fn start(writable: Vec<OwnedFd>) -> Result<Self, Errno> {
        let (family, kind) = (rustix::net::AddressFamily::UNIX, rustix::net::SocketType::STREAM);
        let (socket, far) = rustix::net::socketpair(family, kind, rustix::net::SocketFlags::CLOEXEC, None)?;
        let work = move || serve_calls(&far, &writable);
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work);
        Ok(Self { thread: thread.map_err(|_| Errno::AGAIN)?, socket })
    }

    /// Hands over the descriptor on which held calls arrive.
    pub(super) fn hand_over(&self, listener: &OwnedFd) -> Result<(), Errno> {
        descriptor_passing::send_descriptors(&self.socket, &[0], &[listener.as_fd()]).map(drop)
    }

    /// Waits for the thread, which ends when no process of the command is left.
    pub(super) fn join(self) {
        drop(self.socket);
        // A thread that panicked has ended, too.
        self.thread.join().ok();
    }
}

/// Handles held calls until no process of the command is left.
fn serve_calls(socket: &OwnedFd, writable: &[OwnedFd]) {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    let mut passed = Vec::new();
    if rustix::thread::set_capabilities(None, sets).is_err()
        || descriptor_passing::receive_exact_bytes(socket, &mut [0], &mut passed).is_err()
    {
        return;
    }
    let Some(listener) = passed.pop() else { return };
    sys::wake_synchronously(&listener);
    loop {
        let mut ready = [PollFd::new(&listener, PollFlags::IN)];
        match poll(&mut ready, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return,
        }
        let [ready] = &ready;
        if !ready.revents().contains(PollFlags::IN) {
            return;
        }
        match sys::receive_call(&listener) {
            Ok(call) => {
                let result = apply_change(&call, &listener, writable);
                // A process that was killed meanwhile needs no answer.
                sys::answer_call(&listener, call.id, result).ok();
            }
            // The caller was killed or interrupted before the call was taken.
            Err(Errno::NOENT | Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Makes the change that a call asks for.
fn apply_change(call: &HeldCall, listener: &OwnedFd, writable: &[OwnedFd]) -> Result<(), Errno> {
    let (target, change) = read_arguments(call)?;
    let file = target.open(call.thread)?;
    // The thread's number may be another's by now, with whose memory and files this would have to
    // do then.
    if !sys::is_call_waiting(listener, call.id) {
        return Err(Errno::SRCH);
    }
    let file = open_beneath_writable(file, writable)?;
    match change {
        MetadataChange::Mode(mode) => sys::change_mode(&file, mode),
        MetadataChange::Times(times) => rustix::fs::utimensat(&file, c"", &times, AtFlags::EMPTY_PATH),
        MetadataChange::Owner(user, group) => {
            rustix::fs::chownat(&file, c"", user, group, AtFlags::EMPTY_PATH)
        }
    }
}

/// A change of a file's metadata.
enum MetadataChange {
    Mode(u32),
    Times(Timestamps),
    Owner(Option<Uid>, Option<Gid>),
}

/// The file that a call names.
enum ChangedFile {
    /// An open file of the caller's.
    Open(i32),
    /// A path from a directory of the caller's, or from its working directory (`None`).
    Path { directory: Option<i32>, path: Vec<u8>, follow: bool },
}

impl ChangedFile {
    /// Opens the file with `O_PATH`.
    fn open(&self, thread: u32) -> Result<OwnedFd, Errno> {
        match self {
            Self::Open(number) => open_caller_file(thread, Some(*number)),
            Self::Path { directory, path, .. } if path.is_empty() => open_caller_file(thread, *directory),
            Self::Path { path, follow: true, .. } if let Some(number) = parse_own_descriptor(path) => {
                open_caller_file(thread, Some(number))
            }
            Self::Path { directory, path, follow } => {
                let links = if *follow { OFlags::empty() } else { OFlags::NOFOLLOW };
                let flags = OFlags::PATH | OFlags::CLOEXEC | links;
                // A link of /proc would lead to this process's own files in place of the caller's.
                let resolve = ResolveFlags::NO_MAGICLINKS;
                if path.starts_with(b"/") {
                    return rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve);
                }
                let directory = open_caller_file(thread, *directory)?;
                rustix::fs::openat2(&directory, path, flags, Mode::empty(), resolve)
            }
        }
    }
}

/// Opens what a thread has open under this number, or its working directory.
fn open_caller_file(thread: u32, number: Option<i32>) -> Result<OwnedFd, Errno> {
    let path = match number {
        Some(..0) => return Err(Errno::BADF),
        Some(number) => format!("/proc/{thread}/fd/{number}"),
        None => format!("/proc/{thread}/cwd"),
    };
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(|errno| match errno {
        Errno::NOENT => Errno::BADF,
        // The caller's memory can't be read.
        _ => Errno::PERM,
    })
}

/// Returns the number in a path that names an open file of the caller's own, as C libraries write
/// it.
fn parse_own_descriptor(path: &[u8]) -> Option<i32> {
    let prefixes: [&[u8]; 3] = [b"/proc/self/fd/", b"/proc/thread-self/fd/", b"/dev/fd/"];
    let number = prefixes.iter().find_map(|prefix| path.strip_prefix(*prefix))?;
    str::from_utf8(number).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

/// Returns a descriptor of the file that was opened beneath one of the places that the command may
/// write.
///
/// # Errors
/// `EPERM` if the file is elsewhere.
fn open_beneath_writable(file: OwnedFd, writable: &[OwnedFd]) -> Result<OwnedFd, Errno> {
    let found = rustix::fs::fstat(&file)?;
    for _ in 0..MAX_MOVE_RETRIES {
        let at = descriptor_path(&file)?;
        let mut is_beneath = false;
        for place in writable {
            let above = descriptor_path(place)?;
            let Ok(rest) = Path::new(to_os_str(&at)).strip_prefix(to_os_str(&above)) else { continue };
            is_beneath = true;
            let place_found = rustix::fs::fstat(place)?;
            if is_same_file(&found, &place_found) {
                return Ok(file);
            }
            if found.st_nlink == 0 && found.st_dev == place_found.st_dev {
                // Deleted, or made without a name (`O_TMPFILE`): /proc gives its former path.
                return Ok(file);
            }
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            if let Ok(again) = rustix::fs::openat2(place, rest, flags, Mode::empty(), resolve)
                && is_same_file(&found, &rustix::fs::fstat(&again)?)
            {
                return Ok(again);
            }
        }
        if !is_beneath {
            break;
        }
    }
    Err(Errno::PERM)
}

fn to_os_str(path: &[u8]) -> &std::ffi::OsStr {
    std::ffi::OsStr::from_bytes(path)
}

/// Returns the kernel's path of what a descriptor stands for.
fn descriptor_path(file: &OwnedFd) -> Result<Vec<u8>, Errno> {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::readlink(link, Vec::with_capacity(256)).map(std::ffi::CString::into_bytes)
}

fn is_same_file(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

/// Returns true if metadata may be changed at or beneath what is granted: devices are granted for
/// writing to them.
pub(super) fn allows_metadata_changes(granted: BorrowedFd<'_>) -> bool {
    let kind = rustix::fs::fstat(granted).map(|found| FileType::from_raw_mode(found.st_mode));
    matches!(kind, Ok(FileType::Directory | FileType::RegularFile))
}

/// Reads a call's arguments, and what they point to.
fn read_arguments(call: &HeldCall) -> Result<(ChangedFile, MetadataChange), Errno> {
    let [first, second, third, fourth, fifth, _] = call.arguments;
    let memory = CallerMemory { thread: call.thread };
    let at_first = to_descriptor(first);
    match call.number {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod => Ok((memory.read_path(libc::AT_FDCWD, first, 0)?, parse_mode_change(second))),
        libc::SYS_fchmod => Ok((ChangedFile::Open(at_first), parse_mode_change(second))),
        libc::SYS_fchmodat => Ok((memory.read_path(at_first, second, 0)?, parse_mode_change(third))),
        FCHMODAT2 => Ok((memory.read_path(at_first, second, fourth)?, parse_mode_change(third))),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chown => {
            Ok((memory.read_path(libc::AT_FDCWD, first, 0)?, parse_owner_change(second, third)))
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_lchown => {
            let flags = u64::from(libc::AT_SYMLINK_NOFOLLOW.cast_unsigned());
            Ok((memory.read_path(libc::AT_FDCWD, first, flags)?, parse_owner_change(second, third)))
        }
        libc::SYS_fchown => Ok((ChangedFile::Open(at_first), parse_owner_change(second, third))),
        libc::SYS_fchownat => {
            Ok((memory.read_path(at_first, second, fifth)?, parse_owner_change(third, fourth)))
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utime => {
            let times = memory.read_times(second, TimeUnit::Seconds)?;
            Ok((memory.read_times_target(libc::AT_FDCWD, first, 0)?, times))
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utimes => {
            let times = memory.read_times(second, TimeUnit::Microseconds)?;
            Ok((memory.read_times_target(libc::AT_FDCWD, first, 0)?, times))
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_futimesat => {
            let times = memory.read_times(third, TimeUnit::Microseconds)?;
            Ok((memory.read_times_target(at_first, second, 0)?, times))
        }
        libc::SYS_utimensat => {
            let times = memory.read_times(third, TimeUnit::Nanoseconds)?;
            Ok((memory.read_times_target(at_first, second, fourth)?, times))
        }
        _ => Err(Errno::NOSYS),
    }
}

/// Returns the 32 bits that the kernel reads of a descriptor, an identity or a mode.
const fn low_bits(argument: u64) -> u32 {
    (argument & 0xffff_ffff) as u32
}

const fn to_descriptor(argument: u64) -> i32 {
    low_bits(argument).cast_signed()
}

const fn parse_mode_change(argument: u64) -> MetadataChange {
    MetadataChange::Mode(low_bits(argument) & MODE_BITS)
}

fn parse_owner_change(user: u64, group: u64) -> MetadataChange {
    let given = |id| (id != u32::MAX).then_some(id);
    MetadataChange::Owner(given(low_bits(user)).map(Uid::from_raw), given(low_bits(group)).map(Gid::from_raw))
}

/// The units of a call's two times.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TimeUnit {
    #[cfg(target_arch = "x86_64")]
    Seconds,
    #[cfg(target_arch = "x86_64")]
    Microseconds,
    Nanoseconds,
}

/// The memory of the process that makes a call.
struct CallerMemory {
    thread: u32,
}

impl CallerMemory {
    /// Reads a path, and how the call takes it.
    fn read_path(&self, directory: i32, path: u64, flags: u64) -> Result<ChangedFile, Errno> {
        let known = libc::AT_SYMLINK_NOFOLLOW | libc::AT_EMPTY_PATH;
        let flags = to_descriptor(flags);
        if flags & !known != 0 {
            return Err(Errno::INVAL);
        }
        let path = self.read_path_bytes(path)?;
        if path.is_empty() && flags & libc::AT_EMPTY_PATH == 0 {
            return Err(Errno::NOENT);
        }
        let directory = (directory != libc::AT_FDCWD).then_some(directory);
        Ok(ChangedFile::Path { directory, path, follow: flags & libc::AT_SYMLINK_NOFOLLOW == 0 })
    }

    /// Reads a target as [`read_path`](Self::read_path) does, for calls that take no path for the
    /// open file itself.
    fn read_times_target(&self, directory: i32, path: u64, flags: u64) -> Result<ChangedFile, Errno> {
        match (path, flags) {
            (0, 0) => Ok(ChangedFile::Open(directory)),
            (0, _) => Err(Errno::INVAL),
            _ => self.read_path(directory, path, flags),
        }
    }

    fn read_path_bytes(&self, address: u64) -> Result<Vec<u8>, Errno> {
        let mut text = Vec::new();
        let mut buffer = [0; MAX_PATH_BYTES];
        while text.len() < MAX_PATH_BYTES {
            let from = address.checked_add(text.len() as u64).ok_or(Errno::FAULT)?;
            let to_border = usize::try_from(PAGE_BYTES - from % PAGE_BYTES).map_err(|_| Errno::FAULT)?;
            let wanted = to_border.min(MAX_PATH_BYTES - text.len());
            let part = buffer.get_mut(..wanted).ok_or(Errno::FAULT)?;
            sys::read_memory(self.thread, from, part)?;
            if let Some(end) = part.iter().position(|byte| *byte == 0) {
                text.extend(part.iter().take(end));
                return Ok(text);
            }
            text.extend_from_slice(part);
        }
        Err(Errno::NAMETOOLONG)
    }

    /// Reads two times. Without any the file is given the present one.
    fn read_times(&self, address: u64, clock: TimeUnit) -> Result<MetadataChange, Errno> {
        if address == 0 {
            let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
            return Ok(MetadataChange::Times(Timestamps { last_access: now, last_modification: now }));
        }
        let mut numbers = [0; 32];
        let (length, stride) = if clock.is_seconds() { (16, 8) } else { (32, 16) };
        sys::read_memory(self.thread, address, numbers.get_mut(..length).ok_or(Errno::FAULT)?)?;
        let number = |at: usize| {
            numbers.get(at..).and_then(|rest| rest.first_chunk()).map(|eight| i64::from_ne_bytes(*eight))
        };
        let time = |at: usize| {
            let seconds = number(at).ok_or(Errno::FAULT)?;
            let fraction = if clock.is_seconds() { 0 } else { number(at + 8).ok_or(Errno::FAULT)? };
            Ok(Timespec { tv_sec: seconds, tv_nsec: clock.nanoseconds(fraction)? })
        };
        Ok(MetadataChange::Times(Timestamps { last_access: time(0)?, last_modification: time(stride)? }))
    }
}

#[cfg(target_arch = "x86_64")]
impl TimeUnit {
    fn is_seconds(self) -> bool {
        self == Self::Seconds
    }

    /// Microseconds must be less than a second; the kernel itself judges nanoseconds, which have
    /// special values.
    fn nanoseconds(self, fraction: i64) -> Result<i64, Errno> {
        match self {
            Self::Seconds => Ok(0),
            Self::Microseconds if (0..1_000_000).contains(&fraction) => Ok(fraction * 1000),
            Self::Microseconds => Err(Errno::INVAL),
            Self::Nanoseconds => Ok(fraction),
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl TimeUnit {
    fn is_seconds(self) -> bool {
        false
    }

    fn nanoseconds(self, fraction: i64) -> Result<i64, Errno> {
        Ok(fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> u32 {
        u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap()
    }

    fn held(number: libc::c_long, arguments: [u64; 6]) -> HeldCall {
        HeldCall { id: 0, thread: here(), number, arguments }
    }

    #[test]
    fn arguments_are_read_as_the_kernel_reads_them() {
        let memory = CallerMemory { thread: here() };
        let path = c"some/path";
        assert_eq!(memory.read_path_bytes(path.as_ptr().addr() as u64).unwrap(), b"some/path");
        assert_eq!(memory.read_path_bytes(8).unwrap_err(), Errno::FAULT);
        let long = vec![b'x'; 2 * MAX_PATH_BYTES];
        assert_eq!(memory.read_path_bytes(long.as_ptr().addr() as u64).unwrap_err(), Errno::NAMETOOLONG);
        let times: [i64; 4] = [1, 2, 3, 4];
        let Ok(MetadataChange::Times(found)) =
            memory.read_times(times.as_ptr().addr() as u64, TimeUnit::Nanoseconds)
        else {
            panic!("no times")
        };
        let all = [found.last_access, found.last_modification].map(|time| [time.tv_sec, time.tv_nsec]);
        assert_eq!(all, [[1, 2], [3, 4]]);
        let address = path.as_ptr().addr() as u64;
        let refused = |number, arguments| read_arguments(&held(number, arguments)).err();
        assert_eq!(refused(FCHMODAT2, [3, address, 0o644, 1, 0, 0]), Some(Errno::INVAL));
        assert_eq!(refused(libc::SYS_fchmodat, [3, 0, 0o644, 0, 0, 0]), Some(Errno::FAULT));
        assert_eq!(refused(libc::SYS_utimensat, [3, 0, 0, 0x100, 0, 0]), Some(Errno::INVAL));
        assert_eq!(refused(libc::SYS_read, [0; 6]), Some(Errno::NOSYS));
    }

    #[test]
    fn own_descriptors_are_told_by_their_paths() {
        assert_eq!(parse_own_descriptor(b"/proc/self/fd/7"), Some(7));
        assert_eq!(parse_own_descriptor(b"/dev/fd/12"), Some(12));
        for other in
            [&b"/proc/self/fd/"[..], b"/proc/self/fd/7/x", b"/proc/self/fd/-1", b"/proc/1/fd/7", b"7"]
        {
            assert_eq!(parse_own_descriptor(other), None);
        }
    }

    #[test]
    fn only_files_beneath_the_places_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for made in ["place/sub", "place-beside"] {
            std::fs::create_dir_all(at(made)).unwrap();
        }
        for file in ["place/sub/file", "place-beside/file", "outside", "single"] {
            std::fs::write(at(file), "").unwrap();
        }
        let open =
            |name: &str| rustix::fs::open(at(name), OFlags::PATH | OFlags::NOFOLLOW, Mode::empty()).unwrap();
        let places = [open("place"), open("single")];
        let is_within = |file| open_beneath_writable(file, &places).is_ok();
        for inside in ["place", "place/sub", "place/sub/file", "single"] {
            assert!(is_within(open(inside)), "{inside}");
        }
        for outside in ["place-beside", "place-beside/file", "outside", ""] {
            assert!(!is_within(open(outside)), "{outside}");
        }
        // Another directory at the same path isn't the place.
        std::fs::rename(at("place"), at("moved")).unwrap();
        std::fs::create_dir(at("place")).unwrap();
        std::fs::write(at("place/file"), "").unwrap();
        assert!(!is_within(open("place/file")));
        assert!(is_within(open("moved/sub/file")));
        let removed = open("moved/sub/file");
        std::fs::remove_file(at("moved/sub/file")).unwrap();
        assert!(is_within(removed));
    }
}
