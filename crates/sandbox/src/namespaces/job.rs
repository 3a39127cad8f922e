//! A request that is ready to start: the plan of its root, the policy for its helper, and the
//! agent's state for it.

use std::collections::VecDeque;
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

use super::c_string::to_c_string;
use super::cgroups::{CgroupLease, Cgroups};
use super::framing::MAX_BODY_BYTES;
use super::helper_arguments::{IDLE_ARGUMENT, WAIT_ARGUMENT, is_helper};
use super::hidden_files::HiddenFiles;
use super::policy::{CanaryTargets, SandboxPolicy};
use super::ready_helper::{HelperProcess, WaitingHelper};
use super::root_plan::{self, RootPlan};
use super::seccomp_filter::{self, Confinement};
use super::{landlock_rules, terminal};
use crate::network::{Service, create_services};
use crate::request::{Limits, LiveOutputMode, Request, SpillFile, Stdin, StdioMode};
use crate::{MountedTree, Network, SandboxError, SandboxSettings};

/// The least that the kernel takes for a namespace's `pid_max`: one above the numbers it reserves.
const MIN_PID_MAX: u64 = 301;

/// Properties of the host that are cached between commands.
#[derive(Debug, Default)]
pub(super) struct HostCache {
    pub(super) hidden: HiddenFiles,
    pub(super) groups: Cgroups,
}

/// A command to start, without its processes.
pub(super) struct Job {
    pub(super) plan: RootPlan,
    pub(super) policy: Vec<u8>,
    pub(super) candidates: Vec<CString>,
    pub(super) streams: StdioMode,
    pub(super) network: Network,
    pub(super) live: LiveOutputMode,
    pub(super) limits: Limits,
    /// The services of the listeners that are passed out, in their order.
    pub(super) services: VecDeque<Service>,
    /// The namespaces to start in; they must last as long.
    pub(super) joined: Option<Arc<MountedTree>>,
    /// The text to type into the command's terminal, where it has one.
    pub(super) typed: Vec<u8>,
    /// Its control groups, for as long as anything of it lives.
    pub(super) groups: CgroupLease,
    /// The file that additionally takes the whole output.
    pub(super) spill: Option<SpillFile>,
    pub(super) watched_process: WatchedProcess,
    /// The file to keep locked, as the policy names it.
    pub(super) witness: Option<PathBuf>,
    /// A helper that waits for it.
    pub(super) waiting: Option<WaitingHelper>,
}

/// The process that the agent watches, kills and reaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WatchedProcess {
    /// Pid 1 of the sandbox, with which the kernel kills all the others. Its helper makes the
    /// namespaces at once, or those that don't depend on the command before it knows that.
    Init { early: bool },
    /// A helper of this kind, outside, which ends all the others and then itself when it is told
    /// to.
    Outside(&'static str),
}

impl WatchedProcess {
    /// Returns the second argument of the helper.
    pub(super) fn helper_argument(self) -> &'static str {
        match self {
            Self::Init { early: true } => WAIT_ARGUMENT,
            Self::Init { early: false } => IDLE_ARGUMENT,
            Self::Outside(argument) => argument,
        }
    }

    /// Returns the signal that ends the process.
    pub(super) fn end_signal(self) -> rustix::process::Signal {
        match self {
            Self::Init { .. } => rustix::process::Signal::KILL,
            Self::Outside(_) => rustix::process::Signal::TERM,
        }
    }
}

/// Prepares a request for its helper. With a canary, the helper tries to escape in place of the
/// command.
pub(super) fn prepare_job(
    settings: &SandboxSettings,
    request: Request,
    joined: Option<Arc<MountedTree>>,
    canary: Option<CanaryTargets<CString>>,
    known: &HostCache,
) -> Result<Job, SandboxError> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    let plan = root_plan::plan_root(&request, joined.as_deref(), uid.as_raw(), &known.hidden)?;
    let candidates = program_candidates(&request)?;
    let stdin = match &request.stdin {
        Stdin::Null => Vec::new(),
        Stdin::Bytes(bytes) => bytes.clone(),
    };
    let (terminal, stdin, typed) = match request.streams {
        StdioMode::Terminal { columns, rows } => {
            (Some(terminal::TerminalSize { columns, rows }), Vec::new(), terminal::append_end_of_file(stdin))
        }
        StdioMode::Separate | StdioMode::Merged | StdioMode::Exact => (None, stdin, Vec::new()),
    };
    let env = request.env.iter().map(encode_variable).collect::<Result<_, _>>()?;
    let limits = &request.limits;
    let memory = limits.memory.unwrap_or_else(default_memory_bytes);
    let lease = known.groups.lease_groups();
    let services = create_services(&request.network, settings.upstream.as_ref())?;
    let (own_network, early) = (request.network != Network::Host, joined.is_none());
    let pid_max = limits.processes.max(MIN_PID_MAX);
    let policy = SandboxPolicy {
        own_network,
        listen: services.iter().map(Service::port).collect(),
        joins: joined.is_some(),
        uid: uid.as_raw(),
        gid: gid.as_raw(),
        scratch_bytes: limits.scratch_bytes,
        pid_max: if uid.is_root() { u32::try_from(pid_max).unwrap_or(0) } else { 0 },
        limits: resource_limits(limits),
        memory: Some(memory),
        cpu: limits.cpu.map(|cpu| u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX)),
        disk: limits.disk_bytes,
        merged: matches!(request.streams, StdioMode::Merged | StdioMode::Terminal { .. }),
        groups: lease.group_entries()?,
        landlock: landlock_rules::landlock_version(),
        filter: seccomp_filter::build_filter(Confinement::Namespaces).unwrap_or_default(),
        steps: plan.steps.clone(),
        cwd: plan.cwd.clone(),
        candidates: candidates.clone(),
        argv: request.argv.iter().map(|argument| to_c_string(argument)).collect::<Result<_, _>>()?,
        env,
        stdin: (terminal.is_none() && request.stdin != Stdin::Null).then_some(stdin.len() as u64),
        terminal,
        witness: request.witness.as_ref().map(|path| to_c_string(path.as_os_str())).transpose()?,
        canary,
    };
    let mut policy = policy.encode();
    if policy.len() > MAX_BODY_BYTES {
        return Err(SandboxError::Refused("arguments and environment are longer than 16 MiB".to_owned()));
    }
    policy.extend_from_slice(&stdin);
    Ok(Job {
        plan,
        policy,
        candidates,
        streams: request.streams,
        network: request.network,
        live: request.live,
        limits: request.limits,
        services: services.into(),
        joined,
        typed,
        groups: lease,
        spill: request.spill,
        watched_process: WatchedProcess::Init { early: own_network && early },
        witness: request.witness,
        waiting: None,
    })
}

/// Returns the limits in the order of [`LIMITED_RESOURCES`](super::init::LIMITED_RESOURCES).
fn resource_limits(limits: &Limits) -> Vec<Option<u64>> {
    vec![
        Some(0),
        Some(limits.processes),
        Some(limits.file_bytes),
        Some(limits.open_files),
        limits.cpu.map(|cpu| cpu.as_secs() + u64::from(cpu.subsec_nanos() > 0)),
        limits.address_space,
    ]
}

/// Returns a variable as programs get it.
fn encode_variable((name, value): (&OsString, &OsString)) -> Result<CString, SandboxError> {
    if name.is_empty() || name.as_bytes().contains(&b'=') {
        return Err(SandboxError::Refused(format!("`{}` can't name a variable", name.display())));
    }
    to_c_string(&[name, value].map(OsString::as_os_str).join(OsStr::new("=")))
}

/// Returns three quarters of the machine's memory, so that it stays usable beside a command that
/// takes all it gets.
fn default_memory_bytes() -> u64 {
    let found = rustix::system::sysinfo();
    found.totalram.saturating_mul(u64::from(found.mem_unit)) / 4 * 3
}

/// Returns the possible paths of the program inside: as named, or in each directory of `PATH`.
fn program_candidates(request: &Request) -> Result<Vec<CString>, SandboxError> {
    let Some(program) = request.argv.first().filter(|program| !program.is_empty()) else {
        return Err(SandboxError::Refused("the command is empty".to_owned()));
    };
    if program.as_bytes().contains(&b'/') {
        return Ok(vec![to_c_string(program)?]);
    }
    let path = request.env_variable("PATH").unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
    let directories = std::env::split_paths(path).filter(|directory| directory.is_absolute());
    directories.map(|directory| to_c_string(directory.join(program).as_os_str())).collect()
}

/// A command just started.
pub(super) struct StartedJob {
    pub(super) helper: HelperProcess,
    /// The part of the policy and the input that the socket hasn't taken yet.
    pub(super) unsent: Vec<u8>,
}

/// Starts the job's helper, or takes the one that waits, and sends the policy.
pub(super) fn start_job(settings: &SandboxSettings, job: &mut Job) -> Result<StartedJob, SandboxError> {
    if is_helper() {
        return Err(SandboxError::InsideHelper);
    }
    let waiting = match job.waiting.take() {
        Some(waiting) => waiting,
        None => WaitingHelper::start(settings, job.watched_process.helper_argument())?,
    };
    // While the helper begins.
    job.groups.create_groups()?;
    job.groups.set_limits(job.limits.processes, job.limits.memory.unwrap_or_else(default_memory_bytes))?;
    // If the file can't be opened here, the helper reports the error.
    let witness =
        job.witness.as_deref().filter(|_| job.watched_process == (WatchedProcess::Init { early: true }));
    let witness = witness.and_then(|path| {
        rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty()).ok()
    });
    let passed: Vec<BorrowedFd<'_>> = match &job.joined {
        Some(base) => vec![base.root.as_fd(), base.user.as_fd(), base.mounts.as_fd(), base.lock.as_fd()],
        None => witness.iter().map(OwnedFd::as_fd).collect(),
    };
    // A fresh socket takes the first bytes at once, and the descriptors with them.
    let (helper, sent) = waiting.send_policy(&job.policy, &passed)?;
    let unsent = job.policy.get(sent..).unwrap_or_default().to_vec();
    Ok(StartedJob { helper, unsent })
}
