//! The common start of the helpers outside of a sandbox, which start and watch a command without
//! being pid 1 of its namespaces.

use std::ffi::CStr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::cgroups;
use super::framing::read_frame;
use super::helper_files::{open_liveness_file, receive_input};
use super::init::{AtStage as _, SetupFailure, merge_outputs, send_message};
use super::messages::{HelperMessage, SetupStage};
use super::policy::{self, SandboxPolicy};
use super::sys;

/// The frames that such a helper received.
pub(super) struct LaunchRequest {
    /// Readable when a child ended, or when this process gets SIGTERM.
    pub(super) signals: OwnedFd,
    pub(super) order: Vec<u8>,
    pub(super) policy: Vec<u8>,
}

/// The files that the helper holds for the command.
pub(super) struct HeldFiles {
    /// Open for as long as this process, or the process that it is passed to, lives.
    pub(super) witness: Option<OwnedFd>,
    pub(super) stdin: Option<OwnedFd>,
}

/// Greets the agent, and takes the order, which begins with `magic`, and the policy.
pub(super) fn receive_order(control: &OwnedFd, magic: [u8; 4]) -> Result<LaunchRequest, SetupFailure> {
    send_message(control, HelperMessage::Hello);
    let signals = sys::watch_signals(&[libc::SIGCHLD, libc::SIGTERM]).at_stage(SetupStage::Supervise)?;
    let order = read_frame(control, magic).at_stage(SetupStage::Policy)?;
    let policy = read_frame(control, policy::POLICY_MAGIC).at_stage(SetupStage::Policy)?;
    Ok(LaunchRequest { signals, order, policy })
}

/// Returns the failure for a malformed frame.
pub(super) fn malformed_frame_failure() -> SetupFailure {
    SetupFailure(SetupStage::Policy, 1, Errno::PROTO)
}

/// Reports this process as the one that the agent watches, and prepares the files of its command.
pub(super) fn announce_start(
    control: &OwnedFd,
    policy: &SandboxPolicy<&CStr>,
) -> Result<HeldFiles, SetupFailure> {
    send_message(control, HelperMessage::Started { pid: rustix::process::getpid().as_raw_nonzero().get() });
    // The processes that the helper starts begin in these groups.
    cgroups::enter_groups(&policy.groups).at_stage(SetupStage::Groups)?;
    cgroups::join_groups(&policy.groups, std::process::id()).at_stage(SetupStage::Groups)?;
    merge_outputs(policy).at_stage(SetupStage::Supervise)?;
    let witness = policy.witness.map(open_liveness_file).transpose().at_stage(SetupStage::Witness)?;
    let stdin = receive_input(control, policy.stdin).at_stage(SetupStage::Input)?;
    if rustix::process::geteuid().is_root() {
        rustix::thread::set_thread_groups(&[]).at_stage(SetupStage::Identity)?;
    }
    Ok(HeldFiles { witness, stdin })
}
