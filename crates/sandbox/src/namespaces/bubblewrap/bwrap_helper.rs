//! The helper around `bwrap`: it reads the order and the policy, has `bwrap` build the root and
//! start the inner helper in it as pid 1, and stays until both are gone.
//!
//! The agent watches this process alone. Asked to end (by SIGTERM, or by the agent's end of the
//! socket being closed), the helper kills pid 1, upon which the kernel kills everything inside, and
//! waits. When the helper has ended, no process is left.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, FdFlags};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions};

use super::super::framing::HEADER_BYTES;
use super::super::helper_arguments::{HELPER_ARGUMENT, INSIDE_ARGUMENT};
use super::super::helper_files::{create_memory_file, open_without_links};
use super::super::init::{AtStage as _, SetupFailure, report_failure};
use super::super::messages::SetupStage;
use super::super::outer_helper::{self, HeldFiles, LaunchRequest};
use super::super::policy::SandboxPolicy;
use super::super::sys::{self, CStringArray};
use super::arguments::{FIRST_TEXT_DESCRIPTOR, HELPER_PATH, MountCheckKind};
use super::order::{self, BwrapOrder, ExpectedFile};

/// Descriptors of the inner helper. What of the agent's this process inherited is closed, so that
/// they are free.
pub(super) const CONTROL_DESCRIPTOR: u32 = 100;
pub(super) const POLICY_DESCRIPTOR: u32 = 101;
pub(super) const INPUT_DESCRIPTOR: u32 = 102;
pub(super) const STDOUT_DESCRIPTOR: u32 = 103;
pub(super) const STDERR_DESCRIPTOR: u32 = 104;
/// A byte comes out of it once the inner helper has begun.
pub(super) const READY_DESCRIPTOR: u32 = 105;
/// Open for as long as the inner helper lives.
const LIVENESS_DESCRIPTOR: u32 = 106;
const ARGUMENTS_DESCRIPTOR: u32 = 107;
const INFO_DESCRIPTOR: u32 = 108;

/// Maximum bytes of `bwrap`'s message of its own failure, which is a line.
const MAX_ERROR_BYTES: usize = 1024;
/// `{ "child-pid": 4194304, … }`
const MAX_INFO_BYTES: usize = 1024;

/// Does the outer helper's whole work; never returns.
pub(crate) fn run_bwrap_helper(control: &OwnedFd) -> ! {
    report_failure(control, run_bwrap(control));
    sys::exit(125)
}

fn run_bwrap(control: &OwnedFd) -> Result<(), SetupFailure> {
    let LaunchRequest { signals, order, policy: policy_bytes } =
        outer_helper::receive_order(control, order::ORDER_MAGIC)?;
    let order = order
        .get(HEADER_BYTES..)
        .and_then(BwrapOrder::decode)
        .ok_or_else(outer_helper::malformed_frame_failure)?;
    let policy = policy_bytes
        .get(HEADER_BYTES..)
        .and_then(SandboxPolicy::decode)
        .ok_or_else(outer_helper::malformed_frame_failure)?;
    let HeldFiles { witness, stdin } = outer_helper::announce_start(control, &policy)?;
    rustix::process::chdir(c"/").at_stage(SetupStage::Root)?;
    let expected = order::encode_expected(&identify_files(&order)?);
    let told = create_memory_file(&[&expected, &policy_bytes]).at_stage(SetupStage::Policy)?;
    let arguments = join_arguments(&order.arguments);
    let arguments = create_memory_file(&[&arguments]).at_stage(SetupStage::Policy)?;
    let null = || rustix::fs::open(c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    let null = null().at_stage(SetupStage::Input)?;
    let pipe = || rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC);
    let (ready, theirs) = pipe().at_stage(SetupStage::Supervise)?;
    let (information, informer) = pipe().at_stage(SetupStage::Supervise)?;
    let (complaint, complainer) = pipe().at_stage(SetupStage::Supervise)?;
    let descriptors = NumberedDescriptors::new(&order.texts).at_stage(SetupStage::Limits)?;
    let passed = descriptors
        .duplicate_to_numbers(
            &[
                (CONTROL_DESCRIPTOR, Some(control)),
                (POLICY_DESCRIPTOR, Some(&told)),
                (INPUT_DESCRIPTOR, stdin.as_ref()),
                (READY_DESCRIPTOR, Some(&theirs)),
                (LIVENESS_DESCRIPTOR, witness.as_ref()),
                (ARGUMENTS_DESCRIPTOR, Some(&arguments)),
                (INFO_DESCRIPTOR, Some(&informer)),
            ],
            &null,
        )
        .at_stage(SetupStage::Limits)?;
    let bwrap = start_bwrap(&order, &null, &complainer, &passed)?;
    drop((passed, theirs, informer, complainer, null));
    let init = open_init_pidfd(&information);
    wait_for_bwrap(control, &signals, bwrap, init.as_ref()).map_err(|errno| {
        kill_init(bwrap, init.as_ref());
        SetupFailure(SetupStage::Watch, 0, errno)
    })?;
    let mut byte = [0];
    let began = rustix::io::read(&ready, &mut byte).is_ok_and(|count| count == 1);
    if began {
        sys::exit(0);
    }
    forward_error_output(&complaint);
    Err(SetupFailure(SetupStage::Bubblewrap, 0, Errno::CANCELED))
}

/// Identifies the host's files that will be mounted. Links are not followed, because a file may
/// have been replaced by one since the plan was made.
fn identify_files(order: &BwrapOrder<'_>) -> Result<Vec<ExpectedFile<CString>>, SetupFailure> {
    let mut expected = Vec::with_capacity(order.checks.len());
    for check in &order.checks {
        let found = open_without_links(check.source).and_then(|file| rustix::fs::fstat(&file));
        let identity = match found {
            Ok(stat) => (stat.st_dev, stat.st_ino),
            // Nothing to hide any more; whatever takes its place is another file.
            Err(Errno::NOENT) if check.kind == MountCheckKind::Hidden => (0, 0),
            Err(errno) => return Err(SetupFailure(SetupStage::Root, 0, errno)),
        };
        expected.push(ExpectedFile { path: check.path.to_owned(), kind: check.kind, identity });
    }
    Ok(expected)
}

/// Joins the arguments as `--args` wants them: each ends in NUL; the program follows.
fn join_arguments(arguments: &[&CStr]) -> Vec<u8> {
    arguments.iter().flat_map(|argument| argument.to_bytes_with_nul()).copied().collect()
}

/// Descriptors with the fixed numbers that `bwrap` and the inner helper use.
struct NumberedDescriptors<'a> {
    texts: &'a [&'a CStr],
}

impl<'a> NumberedDescriptors<'a> {
    /// Raises the limit of open files so that they fit.
    fn new(texts: &'a [&'a CStr]) -> Result<Self, Errno> {
        let hard = rustix::process::getrlimit(Resource::Nofile).maximum;
        rustix::process::setrlimit(Resource::Nofile, Rlimit { current: hard, maximum: hard })?;
        let needed = u64::from(FIRST_TEXT_DESCRIPTOR) + texts.len() as u64;
        if hard.is_some_and(|hard| hard <= needed) { Err(Errno::MFILE) } else { Ok(Self { texts }) }
    }

    fn duplicate_to_numbers(
        &self,
        named: &[(u32, Option<&OwnedFd>)],
        null: &OwnedFd,
    ) -> Result<Vec<OwnedFd>, Errno> {
        let mut all = Vec::with_capacity(named.len() + 2 + self.texts.len());
        for (number, descriptor) in named {
            if let Some(descriptor) = descriptor {
                all.push(check_descriptor_number(
                    rustix::io::fcntl_dupfd_cloexec(descriptor, number.cast_signed())?,
                    *number,
                )?);
            }
        }
        let out = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), STDOUT_DESCRIPTOR.cast_signed())?;
        all.push(check_descriptor_number(out, STDOUT_DESCRIPTOR)?);
        let err = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), STDERR_DESCRIPTOR.cast_signed())?;
        all.push(check_descriptor_number(err, STDERR_DESCRIPTOR)?);
        for (number, text) in (FIRST_TEXT_DESCRIPTOR..).zip(self.texts) {
            let written = (!text.is_empty()).then(|| create_memory_file(&[text.to_bytes()])).transpose()?;
            let file = written.as_ref().unwrap_or(null);
            all.push(check_descriptor_number(
                rustix::io::fcntl_dupfd_cloexec(file, number.cast_signed())?,
                number,
            )?);
        }
        Ok(all)
    }
}

fn check_descriptor_number(descriptor: OwnedFd, number: u32) -> Result<OwnedFd, Errno> {
    use std::os::fd::AsRawFd as _;
    if descriptor.as_raw_fd() == number.cast_signed() { Ok(descriptor) } else { Err(Errno::MFILE) }
}

fn start_bwrap(
    order: &BwrapOrder<'_>,
    null: &OwnedFd,
    complainer: &OwnedFd,
    passed: &[OwnedFd],
) -> Result<Pid, SetupFailure> {
    let numbers = ARGUMENTS_DESCRIPTOR.to_string();
    let information = INFO_DESCRIPTOR.to_string();
    let owned: Vec<CString> = [
        "bwrap",
        "--args",
        &numbers,
        "--info-fd",
        &information,
        "--",
        HELPER_PATH,
        HELPER_ARGUMENT,
        INSIDE_ARGUMENT,
    ]
    .into_iter()
    .map(CString::new)
    .collect::<Result<_, _>>()
    .map_err(|_| SetupFailure(SetupStage::Bubblewrap, 0, Errno::INVAL))?;
    let argv: Vec<&CStr> = owned.iter().map(CString::as_c_str).collect();
    let (argv, env) = (CStringArray::new(&argv), CStringArray::new(&[]));
    let mut trouble = Errno::IO;
    let mut failed = false;
    let pid = sys::run_suspended(|| {
        sys::reset_signals();
        let prepared = rustix::stdio::dup2_stdin(null)
            .and_then(|()| rustix::stdio::dup2_stdout(complainer))
            .and_then(|()| rustix::stdio::dup2_stderr(complainer))
            .and_then(|()| passed.iter().try_for_each(|one| rustix::io::fcntl_setfd(one, FdFlags::empty())));
        trouble = match prepared {
            Ok(()) => sys::execute(order.program, &argv, &env),
            Err(errno) => errno,
        };
        failed = true;
        125
    })
    .at_stage(SetupStage::Bubblewrap)?;
    if failed { Err(SetupFailure(SetupStage::Bubblewrap, 1, trouble)) } else { Ok(pid) }
}

/// Returns pid 1 of the sandbox, as this process numbers it. `None` if `bwrap` ended before there
/// was one.
fn open_init_pidfd(information: &OwnedFd) -> Option<OwnedFd> {
    let mut text = Vec::with_capacity(MAX_INFO_BYTES);
    let mut part = [0; 128];
    while text.len() < MAX_INFO_BYTES {
        match rustix::io::retry_on_intr(|| rustix::io::read(information, &mut part)) {
            Ok(0) | Err(_) => break,
            Ok(count) => text.extend_from_slice(part.get(..count)?),
        }
    }
    // It is a child of `bwrap`'s, which reaps it and ends: the number is nobody else's for as long
    // as that lives.
    rustix::process::pidfd_open(parse_child_pid(&text)?, PidfdFlags::empty()).ok()
}

/// Returns the number after `"child-pid":`.
fn parse_child_pid(text: &[u8]) -> Option<Pid> {
    let text = std::str::from_utf8(text).ok()?;
    let (_, rest) = text.split_once("\"child-pid\"")?;
    let digits: String =
        rest.chars().skip_while(|c| matches!(c, ':' | ' ')).take_while(char::is_ascii_digit).collect();
    Pid::from_raw(digits.parse().ok()?)
}

/// Waits for `bwrap`, which waits for pid 1; kills pid 1 when it is asked to end.
fn wait_for_bwrap(
    control: &OwnedFd,
    signals: &OwnedFd,
    bwrap: Pid,
    init: Option<&OwnedFd>,
) -> Result<(), Errno> {
    let mut told = false;
    loop {
        match rustix::process::waitpid(Some(bwrap), WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::CHILD) => return Ok(()),
            Ok(None) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        // After a request to end, the socket's end means nothing more.
        let control_events = if told { None } else { Some(PollFd::new(control, PollFlags::empty())) };
        let mut watched = vec![PollFd::new(signals, PollFlags::IN)];
        watched.extend(control_events);
        match poll(&mut watched, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let gone = watched.get(1).is_some_and(|control| !control.revents().is_empty());
        if !told && (sys::read_signals(signals).contains(&libc::SIGTERM) || gone) {
            told = true;
            kill_init(bwrap, init);
        }
    }
}

/// Kills pid 1, or where that isn't known `bwrap`, which takes it along.
fn kill_init(bwrap: Pid, init: Option<&OwnedFd>) {
    let killed = init.map(|init| rustix::process::pidfd_send_signal(init, Signal::KILL));
    if !matches!(killed, Some(Ok(()) | Err(Errno::SRCH))) {
        rustix::process::kill_process(bwrap, Signal::KILL).ok();
    }
}

/// Forwards the error output of `bwrap` to the standard error that the agent reads.
fn forward_error_output(complaint: &OwnedFd) {
    let mut text = [0; MAX_ERROR_BYTES];
    let count = rustix::io::read(complaint, &mut text).unwrap_or(0);
    if let Some(text) = text.get(..count) {
        rustix::io::write(rustix::stdio::stderr(), text).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_child_is_found_in_what_bwrap_says() {
        let child = |text: &str| parse_child_pid(text.as_bytes()).map(|pid| pid.as_raw_nonzero().get());
        assert_eq!(child("{\n    \"child-pid\": 4711,\n    \"net-namespace\": 12\n}\n"), Some(4711));
        assert_eq!(child("{\"child-pid\":1}"), Some(1));
        assert_eq!(child("{}"), None);
        assert_eq!(child("{\"child-pid\": \"x\"}"), None);
        assert_eq!(child("{\"child-pid\": 99999999999}"), None);
    }
}
