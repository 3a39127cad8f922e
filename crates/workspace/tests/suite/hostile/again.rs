//! This test program, started once more: as somebody else, or with mounts of its own.
#![allow(unsafe_code, reason = "system calls that no safe library has")]

use std::ffi::CString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use journeyman_testkit::skip;

/// Set in the program that was started.
const ROLE: &str = "JM_HOSTILE_ROLE";

/// What this program was started for, if it wasn't by the suite.
pub(crate) fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

fn program(test: &str, role: &str) -> Command {
    let mut program = journeyman_testkit::test_command(test);
    program.env(ROLE, role);
    program
}

/// Starts the test in another process, with a role and one word to go with it.
pub(crate) fn start(test: &str, role: &str, name: &str, value: &Path) -> Child {
    program(test, role).env(name, value).stdout(Stdio::null()).spawn().unwrap()
}

/// Runs the test in a process of its own and gives what it printed.
pub(crate) fn alone(test: &str, role: &str) -> String {
    let output = program(test, role).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
    said
}

/// Whether this process may mount what it likes, without anybody else seeing it. If not, the test
/// is run once more in a process that may, and that is its result.
pub(crate) fn may_mount(test: &str) -> bool {
    if role().as_deref() == Some("mounts") {
        return true;
    }
    let mut program = program(test, "mounts");
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    // SAFETY: between fork and exec, in a process with one thread; what it allocates is its own.
    unsafe {
        program.pre_exec(move || {
            if libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) != 0 {
                return Err(io::Error::last_os_error());
            }
            std::fs::write("/proc/self/setgroups", "deny")?;
            std::fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
            std::fs::write("/proc/self/gid_map", format!("0 {group} 1"))
        });
    }
    match program.output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && said.contains("1 passed"), "{said}\n{errors}");
        }
        Err(error) => skip(format!("no user namespace: {error}")),
    }
    false
}

/// Mounts a file system in memory of so many bytes.
pub(crate) fn mount_memory(at: &Path, bytes: u64) {
    let (at, data) = (c_path(at), CString::new(format!("size={bytes},mode=0755")).unwrap());
    // SAFETY: the strings outlive the call.
    let mounted =
        unsafe { libc::mount(c"none".as_ptr(), at.as_ptr(), c"tmpfs".as_ptr(), 0, data.as_ptr().cast()) };
    assert_eq!(mounted, 0, "{}", io::Error::last_os_error());
}

pub(crate) fn mount_read_only(at: &Path) {
    let at = c_path(at);
    let flags = libc::MS_REMOUNT | libc::MS_RDONLY;
    // SAFETY: the strings outlive the call.
    let mounted =
        unsafe { libc::mount(c"none".as_ptr(), at.as_ptr(), c"tmpfs".as_ptr(), flags, std::ptr::null()) };
    assert_eq!(mounted, 0, "{}", io::Error::last_os_error());
}

pub(crate) fn c_path(path: &Path) -> CString {
    use std::os::unix::ffi::OsStrExt as _;
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

/// Sets or clears the flag that forbids any change of a file; `Err` where that can't be done here.
pub(crate) fn set_immutable(path: &Path, immutable: bool) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    let file = std::fs::File::open(path)?;
    let mut flags: libc::c_int = 0;
    // SAFETY: the kernel reads or writes one `int` here.
    if unsafe { libc::ioctl(file.as_raw_fd(), libc::FS_IOC_GETFLAGS, &raw mut flags) } != 0 {
        return Err(io::Error::last_os_error());
    }
    const IMMUTABLE: libc::c_int = 0x10;
    flags = if immutable { flags | IMMUTABLE } else { flags & !IMMUTABLE };
    // SAFETY: the same.
    match unsafe { libc::ioctl(file.as_raw_fd(), libc::FS_IOC_SETFLAGS, &raw const flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The most memory that this process has had, in bytes.
pub(crate) fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}
