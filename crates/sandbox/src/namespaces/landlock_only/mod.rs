//! Back-end 3: Landlock and a system-call filter, without namespaces.
//!
//! For containers and hardened hosts where no namespace can be made, and only where the user named
//! it, because it gives less
//! ([`SandboxTier::max_needs`](journeyman_protocol::SandboxTier::max_needs)): everything in a
//! writable project can be changed, processes outside can be seen though not touched, and nothing
//! bounds the whole tree. Its guarantees are permanent: only granted files are read and written
//! ([`grants`]), no socket of any kind, no signal to or abstract socket of a process outside, no
//! capability.
//!
//! A helper outside ([`supervisor`]) starts the command and kills what is left of its tree.
//! Protected paths are compared before and after ([`snapshot`]), and their changes are reported as
//! [`DenialKind::Breach`].
//!
//! [`DenialKind::Breach`]: crate::DenialKind::Breach

mod grants;
mod metadata_changes;
mod order;
mod snapshot;
mod supervisor;

use std::ffi::{CString, OsStr};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use journeyman_protocol::{Enforcement, SandboxTier};
use tokio_util::sync::CancellationToken;

pub(super) use supervisor::{
    ChildProcesses, EndReason, kill_descendants, run_supervisor_helper as run_supervisor, wait_for_end,
};

use super::c_string::to_c_string;
use super::helper_arguments::LANDLOCK_ARGUMENT;
use super::job::{HostCache, Job, WatchedProcess, prepare_job};
use super::landlock_rules;
use super::launch::{LaunchedJob, launch_job, launch_unattended};
use super::policy::CanaryTargets;
use super::probe::{self, METADATA_GAP, ProbedBackend};
use super::seccomp_filter::{self, Confinement};
use super::watcher::Watcher;
use crate::backend::{Backend, BackendFuture};
use crate::request::{Request, StdioMode, WriteMode};
use crate::running_command::RunningCommand;
use crate::{Network, ProjectCopy, SandboxError, SandboxSettings};
use order::{HOME_NAME, SupervisorOrder};
use snapshot::ProtectedSnapshot;

/// The version that has scopes (Linux 6.12): before it a command could kill whatever the user runs,
/// what watches it included.
const MIN_LANDLOCK_VERSION: u32 = 6;
/// The parent of private directories: every system has it, and empties it some time.
const PRIVATE_DIRS_PARENT: &str = "/tmp";
/// Variables that name the directory for what is temporary.
const TEMPORARY_VARIABLES: [&str; 3] = ["TMPDIR", "TMP", "TEMP"];

/// The back-end, with what it keeps between commands.
#[derive(Debug)]
pub(crate) struct LandlockOnly {
    settings: SandboxSettings,
    known: HostCache,
}

/// A command to start, and what is compared when it is over.
struct PreparedJob {
    job: Job,
    kept: Vec<PathBuf>,
    root: PathBuf,
}

impl LandlockOnly {
    pub(crate) fn new(settings: SandboxSettings) -> Self {
        Self { settings, known: HostCache::default() }
    }

    fn prepare_job(
        &self,
        mut request: Request,
        canary: Option<CanaryTargets<CString>>,
        notify: bool,
    ) -> Result<PreparedJob, SandboxError> {
        if let Some(ProjectCopy::Mounted(mounted)) = &request.base {
            return Err(SandboxError::Refused(format!(
                "the copy of `{}` is mounted in namespaces of its own, which a command without any can't see; use \
                 another kind of copy",
                mounted.path.display()
            )));
        }
        if matches!(request.streams, StdioMode::Terminal { .. }) {
            let reason =
                "without namespaces a command can't be given a terminal of its own; use another back-end";
            return Err(SandboxError::Refused(reason.to_owned()));
        }
        let linked = request.linked.first().filter(|_| request.base.is_none());
        if let Some(linked) = linked.filter(|_| request.write == WriteMode::Direct) {
            return Err(SandboxError::Refused(format!(
                "files in `{linked}` are hard links to files outside of the project, and Landlock alone can't keep a \
                 command from changing them there; use another back-end, or have the package manager copy them (pnpm: \
                 package-import-method=copy, uv: UV_LINK_MODE=copy)"
            )));
        }
        let private = new_private_path();
        for name in TEMPORARY_VARIABLES {
            request.env.insert(name.into(), private.clone().into());
        }
        // Reading the state of a repository needn't write to it.
        request.env.insert("GIT_OPTIONAL_LOCKS".into(), "0".into());
        let internet = request.network == Network::Host;
        let filter =
            seccomp_filter::build_filter(Confinement::Landlock { internet, notify }).ok_or_else(|| {
                SandboxError::Unavailable {
                reason:
                    "there is no system call filter for this processor, and Landlock alone closes no network"
                        .to_owned(),
                fix: "Use a container, or another machine".to_owned(),
            }
            })?;
        let uid = rustix::process::geteuid();
        if !uid.is_root() {
            // The kernel counts all that the user runs.
            request.limits.processes = request.limits.processes.saturating_add(count_tasks(uid.as_raw()));
        }
        // The supervisor's second thread is counted with the command's.
        request.limits.processes = request.limits.processes.saturating_add(u64::from(notify));
        let (writes, protected) = (request.write == WriteMode::Direct, request.protected.clone());
        let root = request.root.clone();
        let mut job = prepare_job(&self.settings, request, None, canary, &self.known)?;
        let granted = grants::grants_for_steps(&job.plan.steps)?;
        let root = granted.to_host_path(&root.canonicalize().unwrap_or(root));
        let mut kept = granted.kept.clone();
        if writes {
            // Also paths that don't exist yet: they mustn't be created.
            kept.extend(protected.iter().map(|path| root.join(path.as_path())));
        }
        kept.sort();
        kept.dedup();
        let cwd = granted.to_host_path(Path::new(OsStr::from_bytes(job.plan.cwd.as_bytes())));
        let mut home = std::ffi::OsString::from("HOME=");
        home.push(private.join(HOME_NAME));
        let order = SupervisorOrder {
            private: to_c_string(private.as_os_str())?,
            home: to_c_string(&home)?,
            cwd: to_c_string(cwd.as_os_str())?,
            grants: grants::encode_grants(&granted.list)?,
            filter,
            notify,
        };
        let mut bytes = order.encode();
        bytes.append(&mut job.policy);
        job.policy = bytes;
        job.watched_process = WatchedProcess::Outside(LANDLOCK_ARGUMENT);
        Ok(PreparedJob { job, kept, root })
    }

    async fn start(
        &self,
        request: Request,
        enforcement: Enforcement,
        cancel: CancellationToken,
    ) -> Result<RunningCommand, SandboxError> {
        let begun = Instant::now();
        let notify = !enforcement.gaps.iter().any(|gap| gap == METADATA_GAP);
        let PreparedJob { job, kept, root } = self.prepare_job(request, None, notify)?;
        let before = take_snapshot(&kept).await?;
        let LaunchedJob { watcher, live, stop } = launch_job(&self.settings, job, &cancel, begun)?;
        let completed = async move {
            let mut completed = watcher.run().await?.into_completed(enforcement);
            completed.denials.extend(before.find_changes(&take_snapshot(&kept).await?, &root));
            Ok(completed)
        };
        Ok(RunningCommand::spawn_watcher(live, stop, completed))
    }

    /// Starts the canaries. What is hidden is beside the project, for in it nothing can be.
    fn launch_canaries(
        &self,
        mut request: Request,
        mut canary: CanaryTargets<CString>,
        notify: bool,
    ) -> Result<Watcher, SandboxError> {
        let listed = request.root.with_file_name("listed");
        let error = |source| SandboxError::Path {
            what: "preparing the sandbox's test in",
            path: listed.clone(),
            source,
        };
        fs::create_dir(&listed).map_err(error)?;
        fs::write(listed.join("masked"), "secret").map_err(error)?;
        fs::write(listed.join("shown"), "shown").map_err(error)?;
        canary.masked = to_c_string(listed.join("masked").as_os_str())?;
        request.masked = vec![listed.join("masked")];
        request.read_only.push(listed);
        request.network = Network::Off;
        launch_unattended(&self.settings, self.prepare_job(request, Some(canary), notify)?.job)
    }
}

async fn take_snapshot(kept: &[PathBuf]) -> Result<ProtectedSnapshot, SandboxError> {
    let kept = kept.to_vec();
    tokio::task::spawn_blocking(move || ProtectedSnapshot::take(&kept))
        .await
        .map_err(|_| SandboxError::Abandoned)
}

/// Returns a new name for the private directory of one command.
fn new_private_path() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let nanoseconds = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic).tv_nsec;
    Path::new(PRIVATE_DIRS_PARENT).join(format!("jm-private-{}-{count}-{nanoseconds:x}", std::process::id()))
}

/// Processes and threads of this user; an estimate, for they come and go.
fn count_tasks(uid: u32) -> u64 {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter(|entry| {
        entry.file_name().as_bytes().first().is_some_and(u8::is_ascii_digit)
            && entry.metadata().is_ok_and(|found| found.uid() == uid)
    });
    processes
        .map(|process| {
            let threads = fs::metadata(process.path().join("task")).map_or(1, |found| found.nlink());
            // Two links are the directory's own.
            threads.saturating_sub(2).max(1)
        })
        .sum()
}

/// The guarantees that it lacks.
const GAPS: [&str; 7] = [
    "not protected: .git and all else in a writable project; what changed there is told afterwards",
    "other processes are visible; they can't be touched",
    "what a command's whole tree writes to disk isn't bounded",
    "whether a file of yours outside the project exists can be seen",
    "no socket can be made, so servers and clients on the loopback don't run",
    "layered directories, such as build caches, are read-only; /tmp is closed, TMPDIR is a private directory",
    "if the process that watches a command is killed from outside, or doesn't end it in time, children and daemons of the command live on",
];

impl Backend for LandlockOnly {
    fn tier(&self) -> SandboxTier {
        SandboxTier::Landlock
    }

    fn probe(&self) -> BackendFuture<'_, Result<Enforcement, SandboxError>> {
        Box::pin(async {
            let version = landlock_rules::landlock_version();
            if version < MIN_LANDLOCK_VERSION {
                return Err(SandboxError::Unavailable {
                    reason: match version {
                        0 => "Landlock isn't on in this kernel".to_owned(),
                        version => {
                            format!(
                                "this kernel has Landlock {version}, and {MIN_LANDLOCK_VERSION} is needed"
                            )
                        }
                    },
                    fix: "Use Linux 6.12 or newer, with `landlock` among its security modules (lsm=…)"
                        .to_owned(),
                });
            }
            let probed = ProbedBackend {
                tier: SandboxTier::Landlock,
                program: None,
                gaps: GAPS.map(str::to_owned).to_vec(),
                groups: self.known.groups.bounded_resources(),
            };
            let notifying = |request, canary| self.launch_canaries(request, canary, true);
            if let Ok(enforcement) = probe::probe_backend(&self.settings, &probed, notifying).await {
                return Ok(enforcement);
            }
            // The kernel has one notifier for a process and its ancestors, or lets nobody read
            // another's memory.
            let plain = |request, canary| self.launch_canaries(request, canary, false);
            probe::probe_backend(&self.settings, &probed, plain).await
        })
    }

    fn spawn(
        &self,
        request: Request,
        enforcement: Enforcement,
        cancel: CancellationToken,
    ) -> BackendFuture<'_, Result<RunningCommand, SandboxError>> {
        Box::pin(self.start(request, enforcement, cancel))
    }
}
