//! Back-end 2: the distribution's `bwrap` makes the namespaces and mounts.
//!
//! For systems that let no other program make user namespaces, as with Ubuntu's AppArmor profile.
//! The root is the one that back-end 1 would build, from the same plan ([`arguments`] translates
//! it). `bwrap` is started by the helper ([`outer`]) and starts the helper again as pid 1
//! ([`inner`]), which checks the sandbox that it runs in, adds limits, Landlock and the system-call
//! filter, and runs the command as back-end 1 does. All data goes over descriptors, none over a
//! command line.
//!
//! `bwrap` has no layers that take writes: layered directories are read-only, caches of copies are
//! left out, and a copy that is mounted is refused. [`program`] finds the `bwrap` to use.

mod arguments;
mod bwrap_helper;
mod inner_helper;
mod order;
mod program;

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use journeyman_protocol::{Enforcement, SandboxTier};
use tokio_util::sync::CancellationToken;

pub(super) use bwrap_helper::run_bwrap_helper as run_outer;
pub(super) use inner_helper::run_inner_helper as run_inner;

use super::c_string::to_c_string;
use super::helper_arguments::BUBBLEWRAP_ARGUMENT;
use super::job::{HostCache, Job, WatchedProcess, prepare_job};
use super::launch::{LaunchedJob, launch_job, launch_unattended};
use super::messages::SetupStage;
use super::policy::CanaryTargets;
use super::probe::{self, ProbedBackend};
use crate::backend::{Backend, BackendFuture};
use crate::request::{Request, WriteMode};
use crate::running_command::{Outcome, RunningCommand};
use crate::{Network, ProjectCopy, SandboxError, SandboxSettings};
use program::BwrapProgram;

/// The guarantee that it lacks.
const LAYERS_GAP: &str = "layered directories, such as build caches, are read-only";

/// The back-end, with what it keeps between commands.
#[derive(Debug)]
pub(crate) struct BubblewrapBackend {
    settings: SandboxSettings,
    known: HostCache,
}

impl BubblewrapBackend {
    pub(crate) fn new(settings: SandboxSettings) -> Self {
        Self { settings, known: HostCache::default() }
    }

    fn find_program(&self) -> Result<BwrapProgram, SandboxError> {
        program::find_bwrap(&self.settings.programs, rustix::process::geteuid().as_raw())
    }

    fn prepare_job(
        &self,
        request: Request,
        canary: Option<CanaryTargets<CString>>,
    ) -> Result<Job, SandboxError> {
        if let Some(ProjectCopy::Mounted(mounted)) = &request.base {
            return Err(SandboxError::Refused(format!(
                "the copy of `{}` is mounted in namespaces of its own, which bubblewrap can't join; use another kind of \
                 copy",
                mounted.path.display()
            )));
        }
        let bwrap = self.find_program()?;
        let mut writable: Vec<&Path> = request.writable.iter().map(PathBuf::as_path).collect();
        if request.write == WriteMode::Direct {
            writable.push(&request.root);
        }
        let within = bwrap.lies_in(&writable);
        let helper = self.helper_path()?;
        let (own_network, scratch) = (request.network != Network::Host, request.limits.scratch_bytes);
        let mut job = prepare_job(&self.settings, request, None, canary, &self.known)?;
        if within {
            return Err(SandboxError::Refused(format!(
                "`{}` lies where the command may write, so it can't be what confines it",
                bwrap.path.display()
            )));
        }
        let told = arguments::build_arguments(&job.plan.steps, &helper, own_network, scratch)?;
        let mut bytes = order::encode_order(&to_c_string(bwrap.path.as_os_str())?, &told);
        bytes.append(&mut job.policy);
        job.policy = bytes;
        job.watched_process = WatchedProcess::Outside(BUBBLEWRAP_ARGUMENT);
        Ok(job)
    }

    /// Returns the helper's path, because the helper is mounted inside.
    fn helper_path(&self) -> Result<CString, SandboxError> {
        let named = self.settings.helper.clone().unwrap_or_else(|| PathBuf::from("/proc/self/exe"));
        let real = named.canonicalize().map_err(|source| SandboxError::Path {
            what: "the sandbox helper, which must still be where it was started from,",
            path: std::fs::read_link(&named).unwrap_or(named),
            source,
        })?;
        to_c_string(real.as_os_str())
    }

    async fn start(
        &self,
        request: Request,
        enforcement: Enforcement,
        cancel: CancellationToken,
    ) -> Result<RunningCommand, SandboxError> {
        let begun = Instant::now();
        let job = self.prepare_job(request, None)?;
        let LaunchedJob { watcher, live, stop } = launch_job(&self.settings, job, &cancel, begun)?;
        let completed = async move {
            let seen = watcher.run().await?;
            let failed = seen.failure.is_some_and(|(stage, _)| stage == SetupStage::Bubblewrap);
            let said = seen.last_line_with("bwrap: ").filter(|_| failed);
            let mut completed = seen.into_completed(enforcement);
            if let (Outcome::SetupFailed(what), Some(said)) = (&mut completed.outcome, said) {
                what.reason = format!("{what}: {said}");
            }
            Ok(completed)
        };
        Ok(RunningCommand::spawn_watcher(live, stop, completed))
    }
}

impl Backend for BubblewrapBackend {
    fn tier(&self) -> SandboxTier {
        SandboxTier::Bubblewrap
    }

    fn probe(&self) -> BackendFuture<'_, Result<Enforcement, SandboxError>> {
        Box::pin(async {
            let program = Some(self.find_program()?.identity);
            let probed = ProbedBackend {
                tier: SandboxTier::Bubblewrap,
                program,
                gaps: vec![LAYERS_GAP.to_owned()],
                groups: self.known.groups.bounded_resources(),
            };
            let start =
                |request, canary| launch_unattended(&self.settings, self.prepare_job(request, Some(canary))?);
            probe::probe_backend(&self.settings, &probed, start).await
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
