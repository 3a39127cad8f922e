//! Back-end 4: a container of Docker or Podman, through the daemon's socket.
//!
//! Used only where the user names it: a process that reaches the socket is as good as root. A
//! command runs in a container that has no privilege, no socket and no network ([`warm`] makes it,
//! from what [`plan`] read out of the request), and runs there alone. When it ended and no process
//! is left, the container waits for the next command of the same kind ([`pool`]); after anything
//! else it is removed with all that is in it ([`watch`]). A container ends with its owner: its
//! first process reads from a connection that the owner holds. [`probe`] runs a container with a
//! script that tries to escape. The image is named, or built by a [`Recipe`] of the project's.

mod archive;
mod build_image;
mod cgroup_counters;
mod client;
mod dockerfile;
mod image;
mod owner;
mod plan;
mod pool;
mod probe;
mod recipe;
mod run_command;
mod seccomp;
mod settings;
mod warm_container;

use std::sync::Arc;
use std::time::Instant;

use journeyman_protocol::{Enforcement, SandboxNeeds, SandboxTier};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

pub use archive::ArchiveError;
pub use recipe::{Recipe, RecipeError, RecipeSource, read_recipe};
pub use settings::{ContainerImage, ContainerSettings};

use crate::backend::{Backend, BackendFuture};
use crate::capture::OutputCollector;
use crate::request::{Request, StdioMode};
use crate::running_command::RunningCommand;
use crate::spill::{SpillWriter, check_spill_hidden};
use crate::{SandboxError, SandboxSettings};
use client::Daemon;
use image::Image;
use plan::{AgentUser, to_utf8};
use pool::Pool;
use probe::EscapeTest;
use warm_container::WarmContainer;

/// The back-end, with what it keeps between commands. Dropped, its containers end.
#[derive(Debug)]
pub(crate) struct ContainerBackend {
    settings: SandboxSettings,
    ready: OnceCell<ReadyDaemon>,
    pool: Arc<Pool>,
}

/// A daemon that answers, with an image that is there.
#[derive(Debug)]
struct ReadyDaemon {
    daemon: Daemon,
    image: Image,
    /// Bytes for a command that names no bound: three quarters of the machine's.
    memory: u64,
}

impl ContainerBackend {
    pub(crate) fn new(settings: SandboxSettings) -> Self {
        Self { settings, ready: OnceCell::new(), pool: Arc::default() }
    }

    async fn ready_daemon(&self) -> Result<&ReadyDaemon, SandboxError> {
        self.ready.get_or_try_init(|| self.prepare()).await
    }

    async fn prepare(&self) -> Result<ReadyDaemon, SandboxError> {
        let settings = self.settings.container.clone().unwrap_or_default();
        // Checked before the socket is used, which must not happen without a request for
        // containers.
        Image::check_configured(&settings)?;
        let daemon = Daemon::connect(&settings).await?;
        // What can't be removed is another's, or goes with the next sweep.
        owner::remove_orphaned_containers(&daemon.docker).await.ok();
        let image = Image::find(&daemon, &settings).await?;
        let info =
            daemon.docker.info().await.map_err(|error| client::setup_error("asking the daemon", &error))?;
        let total = info.mem_total.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(u64::MAX >> 8);
        Ok(ReadyDaemon { daemon, image, memory: total / 4 * 3 })
    }

    async fn start(
        &self,
        request: Request,
        enforcement: Enforcement,
        cancel: CancellationToken,
    ) -> Result<RunningCommand, SandboxError> {
        let begun = Instant::now();
        let ready = self.ready_daemon().await?;
        let agent = AgentUser {
            user: rustix::process::geteuid().as_raw(),
            group: rustix::process::getegid().as_raw(),
        };
        let (plan, cwd) = plan::plan_container(&request, agent, ready.memory)?;
        let argv = command_line(&request)?;
        let env = ready.image.environment(&request)?;
        let witness = request.witness.as_deref().map(lock_liveness_file).transpose()?;
        let cpus = self.settings.container.as_ref().and_then(|settings| settings.cpus);
        let disk = match &request.base {
            Some(crate::ProjectCopy::Directory { path, .. }) => path.clone(),
            _ => request.root.clone(),
        };
        let hidden = |spill| check_spill_hidden(spill, |directory| plan.shows_host(directory));
        request.spill.as_ref().map(hidden).transpose()?;
        let warm = match self.pool.take(&plan).await {
            Some(warm) => warm,
            None => WarmContainer::create(&ready.daemon, &ready.image, plan, cpus).await?,
        };
        let (mut collector, live) = OutputCollector::new(&request.limits, request.streams, request.live);
        collector.spill_to(request.spill.as_ref().map(SpillWriter::create).transpose()?);
        let stop = cancel.child_token();
        let job = run_command::ContainerJob {
            argv,
            env,
            cwd,
            stdin: request.stdin,
            streams: request.streams,
            limits: request.limits,
            enforcement,
            disk,
            begun,
            witness,
        };
        let pool = Arc::clone(&self.pool);
        Ok(RunningCommand::spawn_watcher(
            live,
            stop.clone(),
            run_command::run_in_container(warm, job, collector, stop, pool),
        ))
    }
}

impl Backend for ContainerBackend {
    fn tier(&self) -> SandboxTier {
        SandboxTier::Container
    }

    fn probe(&self) -> BackendFuture<'_, Result<Enforcement, SandboxError>> {
        Box::pin(async move {
            let ready = self.ready_daemon().await?;
            let test = EscapeTest::prepare(&ready.daemon)?;
            let nothing = Enforcement::from_needs(SandboxTier::Container, SandboxNeeds::NONE);
            let running = self.start(test.request()?, nothing, CancellationToken::new()).await?;
            test.judge(&running.wait().await?, &ready.daemon)
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

/// Returns the command to run. A runtime gives each stream a pipe of its own; a shell of the
/// image's makes one of both.
fn command_line(request: &Request) -> Result<Vec<String>, SandboxError> {
    if request.argv.first().is_none_or(|program| program.is_empty()) {
        return Err(SandboxError::Refused("the command is empty".to_owned()));
    }
    let merge = ["/bin/sh", "-c", r#"exec "$@" 2>&1"#, "sh"];
    let mut argv: Vec<String> = match request.streams {
        StdioMode::Merged => merge.map(str::to_owned).to_vec(),
        _ => Vec::new(),
    };
    for argument in &request.argv {
        argv.push(to_utf8("argument", argument)?);
    }
    Ok(argv)
}

/// Locks the file that shows that the command lives. This program holds the lock: if it is killed,
/// the container ends some milliseconds after the lock is free.
fn lock_liveness_file(path: &std::path::Path) -> Result<std::fs::File, SandboxError> {
    let error =
        |source| SandboxError::Path { what: "the command's sign of life", path: path.to_owned(), source };
    let file = std::fs::File::open(path).map_err(error)?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockShared)
        .map_err(|errno| error(errno.into()))?;
    Ok(file)
}
