//! The helper inside of `bwrap`'s sandbox: pid 1 there. It checks that the sandbox is as requested,
//! drops what a command mustn't have, and goes on as back-end 1 does: starts the command, reaps,
//! ends with it.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, StatVfsMountFlags};
use rustix::io::Errno;

use super::super::framing::{HEADER_BYTES, body_length, read_exact};
use super::super::helper_files::open_without_links;
use super::super::init::{AtStage as _, Init, SetupFailure, send_message};
use super::super::messages::{HelperMessage, SetupStage};
use super::super::policy::{self, SandboxPolicy};
use super::super::sys;
use super::arguments::MountCheckKind;
use super::bwrap_helper::{
    CONTROL_DESCRIPTOR, INPUT_DESCRIPTOR, POLICY_DESCRIPTOR, READY_DESCRIPTOR, STDERR_DESCRIPTOR,
    STDOUT_DESCRIPTOR,
};
use super::order::{self, ExpectedFile};

/// Does the inner helper's whole work; never returns.
pub(crate) fn run_inner_helper() -> ! {
    let Some(control) = sys::take_inherited_descriptor(CONTROL_DESCRIPTOR) else { sys::exit(125) };
    if let Err(SetupFailure(stage, index, errno)) = start_command(&control) {
        send_message(&control, HelperMessage::Failed { stage, index, errno: errno.raw_os_error() });
    }
    sys::exit(0)
}

fn start_command(control: &OwnedFd) -> Result<(), SetupFailure> {
    let mask = rustix::process::umask(Mode::empty());
    let missing = |stage| move || SetupFailure(stage, 0, Errno::BADF);
    let ready =
        sys::take_inherited_descriptor(READY_DESCRIPTOR).ok_or_else(missing(SetupStage::Supervise))?;
    let told = sys::take_inherited_descriptor(POLICY_DESCRIPTOR).ok_or_else(missing(SetupStage::Policy))?;
    let (out, err) = (
        sys::take_inherited_descriptor(STDOUT_DESCRIPTOR),
        sys::take_inherited_descriptor(STDERR_DESCRIPTOR),
    );
    let stdin = sys::take_inherited_descriptor(INPUT_DESCRIPTOR);
    rustix::io::write(&ready, b"!").at_stage(SetupStage::Supervise)?;
    drop(ready);
    rustix::stdio::dup2_stdout(out.ok_or_else(missing(SetupStage::Supervise))?)
        .at_stage(SetupStage::Supervise)?;
    rustix::stdio::dup2_stderr(err.ok_or_else(missing(SetupStage::Supervise))?)
        .at_stage(SetupStage::Supervise)?;
    let expected = read_body(&told, order::ORDER_MAGIC).at_stage(SetupStage::Policy)?;
    let policy = read_body(&told, policy::POLICY_MAGIC).at_stage(SetupStage::Policy)?;
    drop(told);
    let malformed = || SetupFailure(SetupStage::Policy, 1, Errno::PROTO);
    for expected in order::decode_expected(&expected).ok_or_else(malformed)? {
        check_mount(&expected).at_stage(SetupStage::Root)?;
    }
    let policy = SandboxPolicy::decode(&policy).ok_or_else(malformed)?;
    rustix::process::chdir(policy.cwd).at_stage(SetupStage::Directory)?;
    let init = Init { policy: &policy, control, stdin: stdin.as_ref(), mask, gate: None };
    init.pass_listeners().at_stage(SetupStage::Listen)?;
    init.set_limits().at_stage(SetupStage::Limits)?;
    check_privileges().at_stage(SetupStage::Privileges)?;
    init.confine_and_run()
}

fn read_body(from: &OwnedFd, magic: [u8; 4]) -> Result<Vec<u8>, Errno> {
    let mut header = [0; HEADER_BYTES];
    read_exact(from, &mut header)?;
    let mut body = vec![0; body_length(magic, &header).ok_or(Errno::PROTO)?];
    read_exact(from, &mut body)?;
    Ok(body)
}

/// Checks that the file at a path is the one that was to be mounted there.
fn check_mount(expected: &ExpectedFile<&CStr>) -> Result<(), Errno> {
    let place = match open_without_links(expected.path) {
        Ok(place) => place,
        Err(Errno::NOENT) if expected.kind == MountCheckKind::Hidden => return Ok(()),
        Err(errno) => return Err(errno),
    };
    let found = rustix::fs::fstat(&place)?;
    let same = (found.st_dev, found.st_ino) == expected.identity;
    let holds = match expected.kind {
        MountCheckKind::Writable => same,
        MountCheckKind::ReadOnly => same && is_read_only(&place)?,
        MountCheckKind::Hidden => !same && is_read_only(&place)?,
    };
    if holds { Ok(()) } else { Err(Errno::STALE) }
}

fn is_read_only(place: impl AsFd) -> Result<bool, Errno> {
    Ok(rustix::fs::fstatvfs(place)?.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// Checks that `bwrap` took away every capability and every way to gain one, and keeps other
/// processes from looking into this one.
fn check_privileges() -> Result<(), Errno> {
    let sets = rustix::thread::capabilities(None)?;
    let none = sets.effective.is_empty() && sets.permitted.is_empty() && sets.inheritable.is_empty();
    let bound = (0..u64::BITS).any(|bit| {
        let set = rustix::thread::CapabilitySet::from_bits_retain(1 << bit);
        rustix::thread::capability_is_in_bounding_set(set) == Ok(true)
    });
    if !none || bound || !rustix::thread::no_new_privs()? {
        return Err(Errno::PERM);
    }
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
}
