//! Starting helpers, and keeping one ready for the next command.
//!
//! Executing a program and making a network namespace takes about as long as all the rest of a
//! sandbox. So from the second command of a sandbox on, a helper is started when a command has
//! ended, for the next one: it has user, network and IPC namespaces and a host name of its own, of
//! which nothing depends on a command, and waits for its policy. For commands in a mounted copy,
//! whose namespaces must contain the helper's, the helper has none yet: so only commands hold a
//! mount. The waiting helper has no data of a command and no mount, serves one command, and ends
//! when the agent closes its end of the socket. Without a waiting helper, a command gets the same
//! sandbox by the same steps in the same order.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::descriptor_passing;
use super::helper_arguments::HELPER_ARGUMENT;
use super::messages::{HelperMessage, MESSAGE_BYTES};
use crate::{SandboxError, SandboxSettings};

/// Maximum time that a helper waits for a command; longer than a model takes to answer.
pub(super) const MAX_HELPER_WAIT: Duration = Duration::from_secs(180);
/// Maximum age of a helper that is given a command: so much younger that the helper can't be about
/// to end.
const MAX_HELPER_AGE: Duration = Duration::from_secs(120);
/// Commands of a sandbox after which a helper is kept ready; a program that runs a single command
/// needs none.
const COMMANDS_BEFORE_READY_HELPER: u32 = 2;
/// Maximum bytes that wait in the pipe of standard output, in the kernel, until they are read.
const MAX_PIPE_BYTES: usize = 256 * 1024;

/// A helper, with the agent's ends of what connects them.
#[derive(Debug)]
pub(super) struct HelperProcess {
    pub(super) child: Child,
    pub(super) program: PathBuf,
    pub(super) control: UnixStream,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// A helper that has received no policy yet. Dropped, it is killed and reaped.
#[derive(Debug)]
pub(super) struct WaitingHelper {
    helper: Option<HelperProcess>,
    since: Instant,
}

impl WaitingHelper {
    /// Starts a helper with this second argument.
    pub(super) fn start(settings: &SandboxSettings, argument: &str) -> Result<Self, SandboxError> {
        let program = settings.helper.clone().unwrap_or_else(|| PathBuf::from("/proc/self/exe"));
        let error = |source| SandboxError::Start { path: program.clone(), source };
        let (control, theirs) = UnixStream::pair().map_err(error)?;
        control.set_nonblocking(true).map_err(error)?;
        let (stdout, out) = io::pipe().map_err(error)?;
        let (stderr, err) = io::pipe().map_err(error)?;
        // Fewer turns for a command that says much; one that says little costs no more. Where the
        // user's share is used up it stays as it is.
        rustix::pipe::fcntl_setpipe_size(&stdout, MAX_PIPE_BYTES).ok();
        let mut command = Command::new(&program);
        // Nothing of ours: neither variables nor the terminal's signals.
        command.args([HELPER_ARGUMENT, argument]).env_clear();
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(out).stderr(err);
        let child = command.spawn().map_err(error)?;
        let helper = HelperProcess { child, program, control, stdout: stdout.into(), stderr: stderr.into() };
        Ok(Self { helper: Some(helper), since: Instant::now() })
    }

    /// Sends the beginning of its policy, and descriptors with it; how many bytes went.
    pub(super) fn send_policy(
        mut self,
        policy: &[u8],
        passed: &[BorrowedFd<'_>],
    ) -> Result<(HelperProcess, usize), SandboxError> {
        let helper = self.helper.take().ok_or(SandboxError::Abandoned)?;
        match descriptor_passing::send_descriptors(&helper.control, policy, passed) {
            Ok(sent) => Ok((helper, sent)),
            // The rest is sent when the helper reads.
            Err(Errno::AGAIN) if passed.is_empty() => Ok((helper, 0)),
            // The helper has ended, and its earlier messages give the reason.
            Err(Errno::PIPE | Errno::CONNRESET) => Ok((helper, policy.len())),
            Err(errno) => {
                let path = helper.program.clone();
                drop(Self { helper: Some(helper), since: self.since });
                Err(SandboxError::Start { path, source: errno.into() })
            }
        }
    }

    /// Returns true if the helper lives, hasn't failed and won't end soon. Its messages stay
    /// unread.
    fn is_usable(&mut self) -> bool {
        let Some(helper) = &mut self.helper else { return false };
        // Messages from before its end could still be read.
        if !matches!(helper.child.try_wait(), Ok(None)) {
            return false;
        }
        let mut said = [0; MESSAGE_BYTES * 3];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let count = match recv(&helper.control, &mut said, flags) {
            Ok((count @ 1.., _)) => count,
            // It has only just begun.
            Err(Errno::AGAIN) => 0,
            Ok(_) | Err(_) => return false,
        };
        let expected = [HelperMessage::Hello.encode(), HelperMessage::Waiting.encode()].concat();
        self.since.elapsed() < MAX_HELPER_AGE
            && said.get(..count).is_some_and(|said| expected.starts_with(said))
    }
}

impl Drop for WaitingHelper {
    fn drop(&mut self) {
        if let Some(mut helper) = self.helper.take() {
            // It may have ended by itself. It does nothing that takes long to interrupt.
            helper.child.kill().ok();
            helper.child.wait().ok();
        }
    }
}

/// The helper that waits for the next command of a sandbox.
#[derive(Debug, Default)]
pub(super) struct ReadyHelper(Arc<Mutex<HelperSlot>>);

#[derive(Debug, Default)]
struct HelperSlot {
    /// Commands so far.
    commands: u32,
    /// The argument of a helper for the latest of them.
    latest: &'static str,
    waiting: Option<(&'static str, WaitingHelper)>,
}

impl ReadyHelper {
    /// Takes the helper that was started with this argument, for a command that begins. A helper of
    /// another kind, or one that has failed or is too old, is ended.
    pub(super) fn take(&self, argument: &'static str) -> Option<WaitingHelper> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slot.commands = slot.commands.saturating_add(1);
        slot.latest = argument;
        let taken = slot.waiting.take();
        drop(slot);
        taken.and_then(|(kind, mut waiting)| (kind == argument && waiting.is_usable()).then_some(waiting))
    }

    /// Returns the means to start a helper with this argument when that command has ended.
    pub(super) fn prepare_next(&self, settings: &SandboxSettings, argument: &'static str) -> NextHelper {
        NextHelper { slot: Arc::downgrade(&self.0), settings: settings.clone(), argument }
    }
}

/// The means to start a helper for the next command.
pub(super) struct NextHelper {
    slot: Weak<Mutex<HelperSlot>>,
    settings: SandboxSettings,
    argument: &'static str,
}

impl NextHelper {
    /// Starts the helper in the background, if the sandbox still exists and has none.
    pub(super) fn start(self) {
        drop(tokio::task::spawn_blocking(move || {
            let Some(slot) = self.slot.upgrade() else { return };
            // A start can take so long that a command of another kind has begun meanwhile, whose
            // own next helper this one must not keep out.
            let wanted = |slot: &HelperSlot| {
                slot.commands >= COMMANDS_BEFORE_READY_HELPER
                    && slot.latest == self.argument
                    && slot.waiting.is_none()
            };
            if !wanted(&slot.lock().unwrap_or_else(PoisonError::into_inner)) {
                return;
            }
            // Where none can be started, the next command says why.
            let Ok(started) = WaitingHelper::start(&self.settings, self.argument) else { return };
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            if wanted(&slot) {
                slot.waiting = Some((self.argument, started));
            }
        }));
    }
}
