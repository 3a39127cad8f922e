//! The attempts of a canary run, made from within the sandbox in place of a command.

use std::ffi::CStr;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::Pid;

use super::policy::CanaryTargets;
use super::sys;

/// The escapes that are tried: a bit for each, and its description. [`NAMESPACE_NESTED`] is
/// reported and not fatal.
pub(super) const ESCAPES: [(i32, &str); 12] = [
    (1, "a file outside the project could be read"),
    (2, "a file outside the project could be written"),
    (4, "a masked file could be read"),
    (PROTECTED_WRITTEN, "a protected directory could be written"),
    (16, "a server on the host's loopback could be reached"),
    (PROCESS_SEEN, "a process outside could be seen"),
    (64, "capabilities were left, or could be gained"),
    (128, "the kernel's settings could be opened for writing"),
    (256, "the project could not be written"),
    (2048, "a process outside could be signalled"),
    (BOUNDING_SET_KEPT, "capabilities weren't given up for good"),
    (METADATA_CHANGED, "modes of files outside the project could be changed"),
];
/// Left open by Landlock alone: in a writable project everything can be written.
const PROTECTED_WRITTEN: i32 = 8;
/// Left open by Landlock alone: processes outside can be seen.
const PROCESS_SEEN: i32 = 32;
/// Left open by Landlock alone: a user without capabilities can't give up the bounding set. None
/// can be gained all the same.
const BOUNDING_SET_KEPT: i32 = 8192;
/// Landlock has no right for a file's mode, times and owner. They are held where the kernel can ask
/// the supervisor.
pub(super) const METADATA_CHANGED: i32 = 32768;
/// All escapes that Landlock alone leaves open.
pub(super) const BEYOND_LANDLOCK: i32 =
    PROTECTED_WRITTEN | PROCESS_SEEN | BOUNDING_SET_KEPT | METADATA_CHANGED;
/// A further user namespace could be made: more of the kernel is exposed, nothing is open yet.
pub(super) const NAMESPACE_NESTED: i32 = 512;
/// The memory of the tree can't be counted.
pub(super) const MEMORY_UNCOUNTED: i32 = 16384;
/// The proxy didn't refuse a host that isn't listed: it isn't there, or it isn't ours. Told, not
/// fatal: commands with a network of some hosts are refused then.
pub(super) const PROXY_MISSING: i32 = 4096;
/// A device was made, though one that is none: what Landlock alone forbids, so it isn't in force.
pub(super) const LANDLOCK_MISSING: i32 = 1024;

/// A request for a reserved name (RFC 6761), and the beginning of the only right answer.
const PROXY_REQUEST: &[u8] = b"CONNECT canary.invalid:443 HTTP/1.1\r\n\r\n";
const PROXY_REFUSAL: &[u8] = b"HTTP/1.1 403 ";
/// An answer that hasn't come by then doesn't come.
const PROXY_ANSWER_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(20);

fn can_open(path: &CStr, flags: OFlags) -> bool {
    rustix::fs::openat(CWD, path, flags | OFlags::CLOEXEC, Mode::from_raw_mode(0o600)).is_ok()
}

/// Tries every escape, and returns the bits of those that succeeded.
pub(super) fn try_escapes(
    canary: &CanaryTargets<&CStr>,
    own_network: bool,
    listen: &[u16],
    counted: bool,
) -> i32 {
    let create = OFlags::WRONLY | OFlags::CREATE;
    let reads = |path: &CStr| {
        let file = rustix::fs::openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        file.and_then(|file| rustix::io::read(file, &mut [0; 1])).is_ok_and(|count| count > 0)
    };
    let tried = [
        reads(canary.outside),
        can_open(canary.outside, OFlags::WRONLY)
            || can_open(c"/usr/.journeyman-canary", create)
            || can_open(c"/.canary", create),
        reads(canary.masked),
        can_open(canary.protected, create),
        own_network && can_connect(canary.port),
        can_see_process(canary.agent),
        has_privileges(),
        can_open(c"/proc/sys/kernel/core_pattern", OFlags::WRONLY),
        !can_open(canary.inside, create) || !can_change_mode(canary.inside),
        can_signal_process(canary.agent),
        rustix::thread::capability_is_in_bounding_set(rustix::thread::CapabilitySet::SYS_ADMIN) != Ok(false),
        can_change_mode(canary.outside),
    ];
    let escaped =
        ESCAPES.iter().zip(tried).filter(|(_, got_out)| *got_out).fold(0, |bits, ((bit, _), _)| bits | bit);
    let told = [
        (NAMESPACE_NESTED, sys::can_unshare_user()),
        (LANDLOCK_MISSING, can_make_device(canary.inside)),
        (PROXY_MISSING, listen.iter().any(|port| !is_refused_by_proxy(*port).is_ok_and(|refused| refused))),
        (MEMORY_UNCOUNTED, !counted),
    ];
    told.into_iter().filter(|(_, seen)| *seen).fold(escaped, |bits, (bit, _)| bits | bit)
}

fn can_change_mode(path: &CStr) -> bool {
    rustix::fs::chmod(path, Mode::from_raw_mode(0o600)).is_ok()
}

/// Tries to make the device 0:0, which stands for a removed file in overlays, and which everybody
/// may make since Linux 5.8.
fn can_make_device(beside: &CStr) -> bool {
    rustix::fs::unlink(beside)
        .and_then(|()| {
            rustix::fs::mknodat(CWD, beside, rustix::fs::FileType::CharacterDevice, Mode::empty(), 0)
        })
        .is_ok()
}

/// Returns true if the proxy answers and refuses a host that isn't listed.
fn is_refused_by_proxy(port: u16) -> Result<bool, Errno> {
    let socket =
        rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    rustix::net::sockopt::set_socket_timeout(
        &socket,
        rustix::net::sockopt::Timeout::Recv,
        Some(PROXY_ANSWER_TIMEOUT),
    )?;
    rustix::net::connect(&socket, &std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, port))?;
    rustix::io::write(&socket, PROXY_REQUEST)?;
    let mut answer = [0; PROXY_REFUSAL.len()];
    let mut got = 0;
    while let Some(rest) = answer.get_mut(got..).filter(|rest| !rest.is_empty()) {
        match rustix::io::read(&socket, rest)? {
            0 => return Ok(false),
            count => got += count,
        }
    }
    Ok(answer == *PROXY_REFUSAL)
}

fn can_connect(port: u16) -> bool {
    let address = std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, port);
    rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .and_then(|socket| rustix::net::connect(socket, &address))
        .is_ok()
}

fn can_see_process(agent: u32) -> bool {
    // Numbers this small exist inside, too: pid 1 and this process.
    let outside = i32::try_from(agent).ok().filter(|pid| *pid > 16).and_then(Pid::from_raw);
    outside.is_some_and(|pid| !matches!(rustix::process::test_kill_process(pid), Err(Errno::SRCH)))
}

fn can_signal_process(agent: u32) -> bool {
    let outside = i32::try_from(agent).ok().filter(|pid| *pid > 16).and_then(Pid::from_raw);
    outside.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

fn has_privileges() -> bool {
    let left = rustix::thread::capabilities(None)
        .is_ok_and(|sets| sets.effective.is_empty() && sets.permitted.is_empty());
    let gains = rustix::thread::no_new_privs() != Ok(true);
    !left || gains
}
