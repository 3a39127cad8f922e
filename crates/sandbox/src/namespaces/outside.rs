//! The common beginning of the helpers outside of a sandbox, which start and watch a command
//! without being pid 1 of namespaces of ours.

use std::ffi::CStr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::cgroups;
use super::init::{At as _, Failure, input, merge, read_frame, say, witness};
use super::sys;
use super::wire::{self, Note, Policy, Stage};

/// The frames that such a helper received.
pub(super) struct Told {
    /// Says when a child ended, and when this process is told to end.
    pub(super) signals: OwnedFd,
    pub(super) order: Vec<u8>,
    pub(super) policy: Vec<u8>,
}

/// The files that the helper holds for the command.
pub(super) struct Held {
    /// Open for as long as this process or whoever it is passed to lives.
    pub(super) witness: Option<OwnedFd>,
    pub(super) stdin: Option<OwnedFd>,
}

/// Greets the agent, and takes the order, which begins with `magic`, and the policy.
pub(super) fn greet(control: &OwnedFd, magic: [u8; 4]) -> Result<Told, Failure> {
    say(control, Note::Hello);
    let signals = sys::watch_signals(&[libc::SIGCHLD, libc::SIGTERM]).at(Stage::Supervise)?;
    let order = read_frame(control, magic).at(Stage::Policy)?;
    let policy = read_frame(control, wire::MAGIC).at(Stage::Policy)?;
    Ok(Told { signals, order, policy })
}

/// A frame that says nothing of sense.
pub(super) fn malformed() -> Failure {
    Failure(Stage::Policy, 1, Errno::PROTO)
}

/// Names this process as the one that the agent watches, and readies what a command of it needs.
pub(super) fn begin(control: &OwnedFd, policy: &Policy<&CStr>) -> Result<Held, Failure> {
    say(control, Note::Started { pid: rustix::process::getpid().as_raw_nonzero().get() });
    // What it starts begins in them.
    cgroups::enter(&policy.groups).at(Stage::Groups)?;
    cgroups::join(&policy.groups, std::process::id()).at(Stage::Groups)?;
    merge(policy).at(Stage::Supervise)?;
    let witness = policy.witness.map(witness).transpose().at(Stage::Witness)?;
    let stdin = input(control, policy.stdin).at(Stage::Input)?;
    if rustix::process::geteuid().is_root() {
        rustix::thread::set_thread_groups(&[]).at(Stage::Identity)?;
    }
    Ok(Held { witness, stdin })
}
