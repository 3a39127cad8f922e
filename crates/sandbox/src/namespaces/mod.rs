//! Back-end 1: the program's own namespaces.
//!
//! The agent plans the root ([`plan`]), starts the helper by posix_spawn (never a fork of the
//! agent, which may be large), and watches ([`watch`]). The helper ([`init`]) follows the policy
//! ([`wire`]) and becomes pid 1. [`probe`] runs it once with canaries in place of a command.
//! [`ready`] keeps a helper for the next command.
//!
//! Another helper ([`mounter`]) makes namespaces in which nobody lives and mounts in them what a
//! command is to see at its root ([`mount`] asks for it, [`order`] is what is told to it). The
//! first helper joins them, if there are any, before it makes its own.

mod advice;
mod bounds;
mod bubblewrap;
mod caches;
mod canary;
mod cgroups;
mod filter;
mod hidden;
mod init;
mod landlock_only;
mod mount;
mod mounter;
mod order;
mod outer_helper;
mod overlay;
mod pass;
pub(crate) mod plan;
mod probe;
mod ready;
mod restrict;
mod root;
mod sys;
mod terminal;
mod watch;
mod wire;

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use journeyman_protocol::{Enforcement, SandboxTier};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(crate) use bubblewrap::Bubblewrap;
pub(crate) use landlock_only::LandlockOnly;
pub(crate) use mount::{mount, mount_caches};

use crate::backend::{Backend, Boxed};
use crate::capture::{Collector, OutputChunk};
use crate::network::{PROXY_PORT, Proxy};
use crate::request::{Limits, Live, Request, Spill, Stdin, Streams};
use crate::run::Running;
use crate::spill::Spilling;
use crate::{Mounted, Network, SandboxError, SandboxSettings};
use caches::Caches;
use cgroups::{Cgroups, Lease};
use filter::Confinement;
use hidden::HiddenFiles;
use plan::{Plan, c_string};
use ready::{Helper, ReadyHelper, Waiting};
use rustix::fs::{Mode, OFlags};
use wire::{Canary, Policy};

/// The first argument of a helper. Long enough that no user types it.
const HELPER_ARGUMENT: &str = "__jm-sandbox-helper";
/// The second argument of one that makes what namespaces it can before it knows its command.
const WAIT_ARGUMENT: &str = "wait";
/// The second argument of one that mounts.
const MOUNT_ARGUMENT: &str = "mount";
/// The second argument of one that starts `bwrap`.
const BUBBLEWRAP_ARGUMENT: &str = "bubblewrap";
/// The second argument of one that confines by Landlock alone.
const LANDLOCK_ARGUMENT: &str = "landlock";
/// The second argument of one that `bwrap` starts.
const INSIDE_ARGUMENT: &str = "inside";
/// The least that the kernel takes for a namespace's `pid_max`: one above the numbers it reserves.
const MIN_PID_MAX: u64 = 301;

pub(crate) fn run_helper_if_asked() {
    if is_helper() {
        init::run();
    }
}

fn is_helper() -> bool {
    std::env::args_os().nth(1).is_some_and(|argument| argument == HELPER_ARGUMENT)
}

/// Facts of the host that needn't be looked up for every command.
#[derive(Debug, Default)]
struct HostCache {
    hidden: HiddenFiles,
    groups: Cgroups,
}

/// A command to start, without its processes.
struct Job {
    plan: Plan,
    policy: Vec<u8>,
    candidates: Vec<CString>,
    streams: Streams,
    network: Network,
    live: Live,
    limits: Limits,
    /// Serves the listener that is passed out.
    proxy: Option<Proxy>,
    /// The namespaces to start in; they must last as long.
    joined: Option<Arc<Mounted>>,
    /// The text to type into the command's terminal, where it has one.
    typed: Vec<u8>,
    /// Its control groups, for as long as anything of it lives.
    groups: Lease,
    /// The file that takes all of the output besides.
    spill: Option<Spill>,
    watched_process: WatchedProcess,
    /// The file to keep locked, as the policy names it.
    witness: Option<PathBuf>,
    /// A helper that waits for it.
    waiting: Option<Waiting>,
}

/// The process that the agent watches, kills and reaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WatchedProcess {
    /// Pid 1 of the sandbox, with which the kernel kills all the others. Its helper makes the
    /// namespaces at once, or those that don't depend on the command before it knows that.
    Init { early: bool },
    /// A helper of this kind, outside, which ends all the others and then itself when it is told
    /// to.
    Outside(&'static str),
}

impl WatchedProcess {
    /// Returns the second argument of the helper.
    fn argument(self) -> Option<&'static str> {
        match self {
            Self::Init { early } => early.then_some(WAIT_ARGUMENT),
            Self::Outside(argument) => Some(argument),
        }
    }

    /// Returns the signal that ends the process.
    fn signal(self) -> rustix::process::Signal {
        match self {
            Self::Init { .. } => rustix::process::Signal::KILL,
            Self::Outside(_) => rustix::process::Signal::TERM,
        }
    }
}

/// The back-end, with what it keeps between commands.
#[derive(Debug)]
pub(crate) struct Namespaces {
    settings: SandboxSettings,
    known: HostCache,
    caches: Caches,
    ready: ReadyHelper,
}

impl Namespaces {
    pub(crate) fn new(settings: SandboxSettings) -> Self {
        Self {
            settings,
            known: HostCache::default(),
            caches: Caches::default(),
            ready: ReadyHelper::default(),
        }
    }

    async fn start(
        &self,
        request: Request,
        enforcement: Enforcement,
        cancel: CancellationToken,
    ) -> Result<Running, SandboxError> {
        let begun = Instant::now();
        let joined = self.caches.joined(&self.settings, &request).await?;
        let mut job = prepare(&self.settings, request, joined, None, &self.known)?;
        if job.watched_process == (WatchedProcess::Init { early: true }) {
            job.waiting = self.ready.take();
        }
        let Launched { watcher, live, stop } = launch(&self.settings, job, cancel, begun)?;
        let next = self.ready.next(&self.settings);
        let completed = async move {
            let seen = watcher.run().await;
            next.start();
            seen.map(|seen| seen.completed(enforcement))
        };
        Ok(Running::watch(live, stop, completed))
    }
}

/// A command that was started, and who watches it.
struct Launched {
    watcher: watch::Watcher,
    live: mpsc::Receiver<OutputChunk>,
    /// Cancelled where nobody waits for the command any more.
    stop: CancellationToken,
}

/// Starts a job, its output collected.
fn launch(
    settings: &SandboxSettings,
    job: Job,
    cancel: CancellationToken,
    begun: Instant,
) -> Result<Launched, SandboxError> {
    let (mut collector, live) = Collector::new(&job.limits, job.streams, job.live);
    let stop = CancellationToken::new();
    let ends = watch::StopTokens { cancel, dropped: stop.clone() };
    let spilling = job.spill.as_ref().map(Spilling::begin).transpose()?;
    let mut job = job;
    let started = match start(settings, &mut job) {
        Ok(started) => started,
        Err(error) => {
            spilling.into_iter().for_each(Spilling::abandon);
            return Err(error);
        }
    };
    collector.spill(spilling);
    let watcher = watch::Watcher::new(started, job, collector, ends, begun)?;
    Ok(Launched { watcher, live, stop })
}

impl Backend for Namespaces {
    fn tier(&self) -> SandboxTier {
        SandboxTier::Namespaces
    }

    fn probe(&self) -> Boxed<'_, Result<Enforcement, SandboxError>> {
        let probed = probe::Probed {
            tier: SandboxTier::Namespaces,
            program: None,
            gaps: Vec::new(),
            groups: self.known.groups.bounds(),
        };
        let start = |request, canary| {
            let job = prepare(&self.settings, request, None, Some(canary), &self.known)?;
            probe::watched(&self.settings, job)
        };
        Box::pin(async move { probe::probe(&self.settings, &probed, start).await })
    }

    fn spawn(
        &self,
        request: Request,
        enforcement: Enforcement,
        cancel: CancellationToken,
    ) -> Boxed<'_, Result<Running, SandboxError>> {
        Box::pin(self.start(request, enforcement, cancel))
    }
}

/// Replaces what the descriptor `old` stands for by what `new` stands for, in one step: whoever
/// uses the number `old` at the same time finds the one or the other, never nothing. What it stood
/// for is closed, if no other descriptor stands for it; directories and files that were opened
/// through it stay what they are. `old` is closed on exec from then on.
///
/// # Errors
/// As `dup3`: `EINVAL` when both are the same number.
pub fn replace_descriptor(old: BorrowedFd<'_>, new: BorrowedFd<'_>) -> io::Result<()> {
    sys::replace(old, new).map_err(io::Error::from)
}

fn prepare(
    settings: &SandboxSettings,
    request: Request,
    joined: Option<Arc<Mounted>>,
    canary: Option<Canary<CString>>,
    known: &HostCache,
) -> Result<Job, SandboxError> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    let plan = plan::plan(&request, joined.as_deref(), uid.as_raw(), &known.hidden)?;
    let candidates = candidates(&request)?;
    let stdin = match &request.stdin {
        Stdin::Null => Vec::new(),
        Stdin::Bytes(bytes) => bytes.clone(),
    };
    let (terminal, stdin, typed) = match request.streams {
        Streams::Terminal { columns, rows } => {
            (Some(terminal::Size { columns, rows }), Vec::new(), terminal::typed(stdin))
        }
        Streams::Separate | Streams::Merged | Streams::Exact => (None, stdin, Vec::new()),
    };
    let env = request.env.iter().map(variable).collect::<Result<_, _>>()?;
    let limits = &request.limits;
    let memory = limits.memory.unwrap_or_else(default_memory);
    let lease = known.groups.lease();
    let (own_network, early) = (request.network != Network::Host, joined.is_none());
    let pid_max = limits.processes.max(MIN_PID_MAX);
    let policy = Policy {
        own_network,
        listen: if matches!(request.network, Network::Filtered(_)) { PROXY_PORT } else { 0 },
        joins: joined.is_some(),
        uid: uid.as_raw(),
        gid: gid.as_raw(),
        scratch_bytes: limits.scratch_bytes,
        pid_max: if uid.is_root() { u32::try_from(pid_max).unwrap_or(0) } else { 0 },
        limits: resources(limits),
        memory: Some(memory),
        cpu: limits.cpu.map(|cpu| u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX)),
        disk: limits.disk_bytes,
        merged: matches!(request.streams, Streams::Merged | Streams::Terminal { .. }),
        groups: lease.ways()?,
        landlock: restrict::supported(),
        filter: filter::build(Confinement::Namespaces).unwrap_or_default(),
        steps: plan.steps.clone(),
        cwd: plan.cwd.clone(),
        candidates: candidates.clone(),
        argv: request.argv.iter().map(|argument| c_string(argument)).collect::<Result<_, _>>()?,
        env,
        stdin: (terminal.is_none() && request.stdin != Stdin::Null).then_some(stdin.len() as u64),
        terminal,
        witness: request.witness.as_ref().map(|path| c_string(path.as_os_str())).transpose()?,
        canary,
    };
    let mut policy = policy.encode();
    if policy.len() > wire::MAX_POLICY {
        return Err(SandboxError::Refused("arguments and environment are longer than 16 MiB".to_owned()));
    }
    policy.extend_from_slice(&stdin);
    let proxy = Proxy::of(&request.network, settings.upstream.as_ref());
    Ok(Job {
        plan,
        policy,
        candidates,
        streams: request.streams,
        network: request.network,
        live: request.live,
        limits: request.limits,
        proxy,
        joined,
        typed,
        groups: lease,
        spill: request.spill,
        watched_process: WatchedProcess::Init { early: own_network && early },
        witness: request.witness,
        waiting: None,
    })
}

/// Returns the limits in the order of [`init::RESOURCES`].
fn resources(limits: &Limits) -> Vec<Option<u64>> {
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
fn variable((name, value): (&OsString, &OsString)) -> Result<CString, SandboxError> {
    if name.is_empty() || name.as_bytes().contains(&b'=') {
        return Err(SandboxError::Refused(format!("`{}` can't name a variable", name.display())));
    }
    c_string(&[name, value].map(OsString::as_os_str).join(OsStr::new("=")))
}

/// Returns three quarters of the machine's memory, so that it stays usable beside a command that
/// takes all it gets.
fn default_memory() -> u64 {
    let found = rustix::system::sysinfo();
    found.totalram.saturating_mul(u64::from(found.mem_unit)) / 4 * 3
}

/// Returns the possible paths of the program inside: as named, or in each directory of `PATH`.
fn candidates(request: &Request) -> Result<Vec<CString>, SandboxError> {
    let Some(program) = request.argv.first().filter(|program| !program.is_empty()) else {
        return Err(SandboxError::Refused("the command is empty".to_owned()));
    };
    if program.as_bytes().contains(&b'/') {
        return Ok(vec![c_string(program)?]);
    }
    let path = request.variable("PATH").unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
    let directories = std::env::split_paths(path).filter(|directory| directory.is_absolute());
    directories.map(|directory| c_string(directory.join(program).as_os_str())).collect()
}

/// A command just started.
struct Started {
    helper: Helper,
    /// The part of the policy and the input that the socket hasn't taken yet.
    unsent: Vec<u8>,
}

fn start(settings: &SandboxSettings, job: &mut Job) -> Result<Started, SandboxError> {
    if is_helper() {
        return Err(SandboxError::InsideHelper);
    }
    let waiting = match job.waiting.take() {
        Some(waiting) => waiting,
        None => Waiting::start(settings, job.watched_process.argument())?,
    };
    // While the helper begins.
    job.groups.make()?;
    job.groups.bound(job.limits.processes, job.limits.memory.unwrap_or_else(default_memory))?;
    // Where it can't be opened here, the helper says so.
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
    let (helper, sent) = waiting.tell(&job.policy, &passed)?;
    let unsent = job.policy.get(sent..).unwrap_or_default().to_vec();
    Ok(Started { helper, unsent })
}

/// Returns a path inside as text for an error.
fn shown(path: &CString) -> String {
    Path::new(&OsString::from_vec(path.as_bytes().to_vec())).display().to_string()
}
