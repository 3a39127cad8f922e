//! A container from its creation to its removal: started, checked, kept for further commands.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use bollard::Docker;
use bollard::container::LogOutput;
use bollard::errors::Error as ApiError;
use bollard::exec::{CreateExecOptions, StartExecResults};
use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, HealthConfig, HostConfig, HostConfigCgroupnsModeEnum,
    HostConfigLogConfig, Mount, MountBindOptions, MountBindOptionsPropagationEnum, MountTmpfsOptions,
    MountType, ResourcesUlimits, RestartPolicy, RestartPolicyNameEnum,
};
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptions, InspectContainerOptions, StartContainerOptions,
    TopOptionsBuilder,
};
use futures_util::{Stream, StreamExt as _};
use tokio::io::AsyncWrite;

use super::cgroup_counters::CgroupCounters;
use super::client::{Daemon, remove_container, setup_error};
use super::image::Image;
use super::owner::{OWNER_LABEL, Owner};
use super::plan::{ContainerMount, ContainerPlan};
use super::seccomp;
use crate::SandboxError;

/// The user and group of the first process. No command runs as this user, so none can end the
/// process.
const KEEPER_USER: &str = "65532:65532";
/// The first process: it waits for the end of its input, which is the end of whoever holds the
/// connection to it, and with it the kernel ends every process of the container.
const KEEPER_SCRIPT: &str = "while read -r _; do :; done";
/// Processes that are there before any command: the keeper, the reaper above it, and what looks the
/// container over.
const OWN_PROCESS_COUNT: u64 = 4;
/// Maximum bytes of the check of a container: names at the top of private directories, and the
/// numbers of mounted files.
const MAX_CHECK_BYTES: usize = 256 * 1024;
/// Checks for processes that are left, with a pause between them.
const MAX_PROCESS_CHECKS: u32 = 8;
const PROCESS_CHECK_PAUSE: Duration = Duration::from_millis(5);
/// Maximum time of the check of a container.
const CHECK_TIMEOUT: Duration = Duration::from_secs(20);
/// Lists what is in the private directories and in shared memory, then which files are mounted.
/// No directory of the project is in its `PATH`.
const CHECK_SCRIPT: &str = r#"export PATH=/usr/bin:/bin LC_ALL=C
n=$1; shift
while [ "$n" -gt 0 ]; do echo "=$1"; ls -A "$1" || exit 1; shift; n=$((n-1)); done
cat /proc/sysvipc/msg /proc/sysvipc/sem /proc/sysvipc/shm || exit 1
echo ==
[ "$#" -eq 0 ] || ls -1di "$@""#;

pub(super) type ExecOutput = Pin<Box<dyn Stream<Item = Result<LogOutput, ApiError>> + Send>>;
pub(super) type ExecInput = Pin<Box<dyn AsyncWrite + Send>>;

/// A running container in which nothing but its first process runs. Dropping it closes the first
/// process's input, which ends the container.
pub(super) struct WarmContainer {
    pub(super) daemon: Daemon,
    pub(super) id: String,
    pub(super) plan: ContainerPlan,
    pub(super) counters: CgroupCounters,
    /// The number of the container's own processes.
    own: u64,
    /// The output of [`CHECK_SCRIPT`] when the container was new.
    fresh: String,
    /// The connection to the first process: to hold it is all it is for, and nobody ever locks it.
    _hold: std::sync::Mutex<(ExecInput, ExecOutput)>,
}

impl fmt::Debug for WarmContainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Warm").field("id", &self.id).finish_non_exhaustive()
    }
}

impl WarmContainer {
    /// Creates a container, and verifies that it has the requested settings.
    pub(super) async fn create(
        daemon: &Daemon,
        image: &Image,
        plan: ContainerPlan,
        cpus: Option<f64>,
    ) -> Result<Self, SandboxError> {
        let docker = &daemon.docker;
        let error = |what: &'static str| move |error: ApiError| setup_error(what, &error);
        let body = create_body(daemon, image, &plan, cpus);
        let made = docker.create_container(None::<CreateContainerOptions>, body).await;
        let id = made.map_err(error("making a container"))?.id;
        let guard = RemoveOnDrop { docker: docker.clone(), id: Some(id.clone()) };
        let options = AttachContainerOptionsBuilder::default().stream(true).stdin(true).stdout(true).build();
        let attached =
            docker.attach_container(&id, Some(options)).await.map_err(error("holding a container"))?;
        docker
            .start_container(&id, None::<StartContainerOptions>)
            .await
            .map_err(error("starting a container"))?;
        let found = docker.inspect_container(&id, None::<InspectContainerOptions>).await;
        let found = found.map_err(error("looking at a container"))?;
        verify_settings(&found, &plan)?;
        let process = found.state.and_then(|state| state.pid).unwrap_or_default();
        let counters = CgroupCounters::for_container(&id, process);
        let mut warm = Self {
            daemon: daemon.clone(),
            id,
            plan,
            counters,
            own: 0,
            fresh: String::new(),
            _hold: std::sync::Mutex::new((attached.input, attached.output)),
        };
        warm.record_baseline().await?;
        warm.own = warm.count_processes().await.map_err(error("counting a container's processes"))?;
        guard.disarm();
        Ok(warm)
    }

    /// Remembers what is in the private directories, and sees that what is mounted is what was
    /// meant: between the request and the mount a name may have come to stand for something else.
    async fn record_baseline(&mut self) -> Result<(), SandboxError> {
        let binds: Vec<(&String, u64)> = self
            .plan
            .places
            .iter()
            .filter_map(|(at, place)| match place {
                ContainerMount::Bind { identity, .. } => Some((at, identity.1)),
                ContainerMount::Scratch { .. } | ContainerMount::Hidden => None,
            })
            .collect();
        let mut command = self.check_script_command();
        command.extend(binds.iter().map(|(at, _)| (*at).clone()));
        let said = self.run_script(command).await?;
        let Some((fresh, mounted)) = said.split_once("==\n") else {
            return Err(mismatch_error(&format!(
                "it can't be looked over: {}",
                super::client::to_one_line(&said)
            )));
        };
        let mounted: HashMap<&str, &str> = mounted
            .lines()
            .filter_map(|line| line.trim_start().split_once(' '))
            .map(|(number, at)| (at, number))
            .collect();
        for (at, number) in binds {
            if mounted.get(at.as_str()).copied() != Some(number.to_string().as_str()) {
                return Err(mismatch_error(&format!(
                    "another file than the one that was meant is at `{at}`"
                )));
            }
        }
        self.fresh = fresh.to_owned();
        Ok(())
    }

    fn check_script_command(&self) -> Vec<String> {
        let scratch = self.plan.scratch_entries();
        let mut command = ["/bin/sh", "-c", CHECK_SCRIPT, "look"].map(str::to_owned).to_vec();
        command.push(scratch.len().to_string());
        command.extend(scratch.into_iter().map(str::to_owned));
        command
    }

    /// Returns true if a command left nothing in the private directories and in shared memory, so
    /// that the next one finds them as in a new container.
    pub(super) async fn is_clean(&self) -> bool {
        let said = self.run_script(self.check_script_command()).await;
        said.is_ok_and(|said| said.strip_suffix("==\n") == Some(self.fresh.as_str()))
    }

    /// Runs one of our own scripts as a command's user, and returns what it said on both streams.
    async fn run_script(&self, command: Vec<String>) -> Result<String, SandboxError> {
        let look = async {
            let (_, mut output, _) =
                self.start_command(command, Vec::new(), Some("/".to_owned()), false, false).await?;
            let mut said = Vec::new();
            while let Some(piece) = output.next().await {
                said.extend_from_slice(&piece?.into_bytes());
                if said.len() > MAX_CHECK_BYTES {
                    break;
                }
            }
            Ok::<_, ApiError>(String::from_utf8_lossy(&said).into_owned())
        };
        match tokio::time::timeout(CHECK_TIMEOUT, look).await {
            Ok(said) => said.map_err(|error| setup_error("looking a container over", &error)),
            Err(_) => Err(mismatch_error("it doesn't answer")),
        }
    }

    /// Starts a command in the container, and returns its id, its output and its input.
    pub(super) async fn start_command(
        &self,
        command: Vec<String>,
        env: Vec<String>,
        directory: Option<String>,
        stdin: bool,
        terminal: bool,
    ) -> Result<(String, ExecOutput, ExecInput), ApiError> {
        let (user, group) = self.plan.owner;
        let options = CreateExecOptions {
            attach_stdin: Some(stdin),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            tty: Some(terminal),
            env: Some(env),
            cmd: Some(command),
            user: Some(self.daemon.map_user(user, group)),
            working_dir: directory,
            ..CreateExecOptions::<String>::default()
        };
        let id = self.daemon.docker.create_exec(&self.id, options).await?.id;
        let options = bollard::exec::StartExecOptions {
            detach: false,
            tty: terminal,
            output_capacity: Some(crate::capture::READ_BYTES),
        };
        match self.daemon.docker.start_exec(&id, Some(options)).await? {
            StartExecResults::Attached { output, input } => Ok((id, output, input)),
            StartExecResults::Detached => Err(ApiError::DockerStreamError {
                error: "the command was started without its streams".to_owned(),
            }),
        }
    }

    /// Returns the number of processes, as the kernel counts or else the daemon.
    async fn count_processes(&self) -> Result<u64, ApiError> {
        if let Some(count) = self.counters.count_processes() {
            return Ok(count);
        }
        let options = TopOptionsBuilder::default().ps_args("-eo pid").build();
        let found = self.daemon.docker.top_processes(&self.id, Some(options)).await?;
        Ok(found.processes.unwrap_or_default().len() as u64)
    }

    /// Returns true if nothing but the container's own processes is left.
    pub(super) async fn is_idle(&self) -> bool {
        for _ in 0..MAX_PROCESS_CHECKS {
            match self.count_processes().await {
                Ok(count) if count <= self.own => return true,
                // A process that ended is counted until it is reaped.
                Ok(_) => tokio::time::sleep(PROCESS_CHECK_PAUSE).await,
                Err(_) => return false,
            }
        }
        false
    }

    /// Removes the container, and waits until it is gone.
    pub(super) async fn remove(self) -> Result<(), ApiError> {
        remove_container(&self.daemon.docker, &self.id).await
    }
}

impl Daemon {
    /// Returns a host user's number inside. A daemon without root's rights maps its own root to the
    /// user who started it, and nobody else could write that user's files; Podman keeps numbers as
    /// they are.
    pub(super) fn map_user(&self, user: u32, group: u32) -> String {
        if self.rootless && !self.podman { "0:0".to_owned() } else { format!("{user}:{group}") }
    }
}

/// Removes the container if its creation was abandoned.
struct RemoveOnDrop {
    docker: Docker,
    id: Option<String>,
}

impl RemoveOnDrop {
    fn disarm(mut self) {
        self.id = None;
    }
}

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        if let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) {
            let docker = self.docker.clone();
            // A started container also ends by itself; this removes one that wasn't started.
            runtime.spawn(async move { remove_container(&docker, &id).await.ok() });
        }
    }
}

fn create_body(
    daemon: &Daemon,
    image: &Image,
    plan: &ContainerPlan,
    cpus: Option<f64>,
) -> ContainerCreateBody {
    let mut mounts = Vec::with_capacity(plan.places.len());
    let mut tmpfs = HashMap::new();
    let (user, group) = plan.owner;
    for (at, place) in &plan.places {
        match place {
            ContainerMount::Bind { source, read_only, .. } => mounts.push(bind_mount(source, at, *read_only)),
            ContainerMount::Scratch { bytes } => {
                let mode = if at.starts_with("/tmp") || at.starts_with("/var/tmp") { "1777" } else { "0700" };
                // Its group is root's unless said otherwise; builds run programs that they put
                // there.
                let options = format!("rw,exec,nosuid,nodev,size={bytes},mode={mode},uid={user},gid={group}");
                tmpfs.insert(at.clone(), options);
            }
            ContainerMount::Hidden => mounts.push(empty_mount(at)),
        }
    }
    // A volume of the image's would be a directory on disk that commands could fill and leave
    // things in.
    let volumes = image.volumes.iter().filter(|at| !plan.places.contains_key(*at));
    mounts.extend(volumes.map(|at| empty_mount(at)));
    let limits = plan.limits.iter().map(|(name, value)| {
        let value = i64::try_from(*value).unwrap_or(i64::MAX);
        ResourcesUlimits { name: Some((*name).to_owned()), soft: Some(value), hard: Some(value) }
    });
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let host = HostConfig {
        mounts: Some(mounts),
        tmpfs: Some(tmpfs),
        network_mode: Some(network_mode(plan).to_owned()),
        ipc_mode: Some("private".to_owned()),
        cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
        userns_mode: (daemon.podman && daemon.rootless).then(|| "keep-id".to_owned()),
        privileged: Some(false),
        readonly_rootfs: Some(true),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec![
            "no-new-privileges".to_owned(),
            format!("seccomp={}", seccomp::seccomp_profile()),
        ]),
        init: Some(true),
        auto_remove: Some(true),
        restart_policy: Some(RestartPolicy {
            name: Some(RestartPolicyNameEnum::NO),
            maximum_retry_count: None,
        }),
        memory: Some(number(plan.memory)),
        // Both together: no swap besides.
        memory_swap: Some(number(plan.memory)),
        pids_limit: Some(number(plan.processes.saturating_add(OWN_PROCESS_COUNT))),
        // A processor is a thousand million of these.
        #[allow(clippy::cast_possible_truncation)]
        nano_cpus: cpus.map(|cpus| (cpus * 1e9) as i64),
        ulimits: Some(limits.collect()),
        shm_size: Some(number(plan.shared_memory)),
        log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
        ..HostConfig::default()
    };
    let labels = Owner::this_process().map(|owner| HashMap::from([(OWNER_LABEL.to_owned(), owner.label())]));
    ContainerCreateBody {
        image: Some(image.id.clone()),
        hostname: Some("sandbox".to_owned()),
        user: Some(KEEPER_USER.to_owned()),
        entrypoint: Some(["/bin/sh", "-c", KEEPER_SCRIPT].map(str::to_owned).to_vec()),
        cmd: Some(Vec::new()),
        working_dir: Some("/".to_owned()),
        // The image's own check would start processes that are not the command's.
        healthcheck: Some(HealthConfig { test: Some(vec!["NONE".to_owned()]), ..HealthConfig::default() }),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        open_stdin: Some(true),
        stdin_once: Some(true),
        labels,
        host_config: Some(host),
        ..ContainerCreateBody::default()
    }
}

fn network_mode(plan: &ContainerPlan) -> &'static str {
    if plan.network { "bridge" } else { "none" }
}

/// Creates a bind mount, without the host's mounts beneath, which wouldn't be read-only.
fn bind_mount(source: &str, at: &str, read_only: bool) -> Mount {
    Mount {
        typ: Some(MountType::BIND),
        source: Some(source.to_owned()),
        target: Some(at.to_owned()),
        read_only: Some(read_only),
        bind_options: Some(MountBindOptions {
            propagation: Some(MountBindOptionsPropagationEnum::RPRIVATE),
            non_recursive: Some(true),
            ..MountBindOptions::default()
        }),
        ..Mount::default()
    }
}

fn empty_mount(at: &str) -> Mount {
    Mount {
        typ: Some(MountType::TMPFS),
        target: Some(at.to_owned()),
        read_only: Some(true),
        tmpfs_options: Some(MountTmpfsOptions { size_bytes: Some(4096), mode: Some(0o555), options: None }),
        ..Mount::default()
    }
}

/// Checks that the daemon took every setting: some are dropped with nothing but a warning where the
/// kernel lacks them.
fn verify_settings(found: &ContainerInspectResponse, plan: &ContainerPlan) -> Result<(), SandboxError> {
    let host = found.host_config.clone().unwrap_or_default();
    let dropped = host.cap_drop.unwrap_or_default();
    let options = host.security_opt.unwrap_or_default();
    let empty =
        |mode: &Option<String>| mode.as_deref().is_none_or(|mode| mode.is_empty() || mode == "private");
    let none = |list: &Option<Vec<String>>| list.as_ref().is_none_or(Vec::is_empty);
    let memory = host.memory.and_then(|memory| u64::try_from(memory).ok());
    let checks = [
        (host.privileged != Some(true), "it is privileged"),
        (host.readonly_rootfs == Some(true), "its root is writable"),
        // Podman lists every capability that it dropped.
        (!dropped.is_empty() && none(&host.cap_add), "it has capabilities"),
        (
            options.iter().any(|option| option.starts_with("no-new-privileges"))
                && options
                    .iter()
                    .any(|option| option.starts_with("seccomp=") && option != "seccomp=unconfined"),
            "it has no filter of system calls",
        ),
        (
            host.network_mode.as_deref() == Some(network_mode(plan)),
            "it has another network than was asked for",
        ),
        (empty(&host.pid_mode) && empty(&host.uts_mode), "it shares processes or the host's name"),
        (host.ipc_mode.as_deref() == Some("private"), "it shares memory with others"),
        (memory == Some(plan.memory), "its memory isn't bounded"),
        (host.pids_limit.is_some_and(|limit| limit > 0), "the number of its processes isn't bounded"),
        (found.state.as_ref().and_then(|state| state.running) == Some(true), "it doesn't run"),
    ];
    match checks.iter().find(|(holds, _)| !holds) {
        None => Ok(()),
        Some((_, what)) => Err(mismatch_error(what)),
    }
}

fn mismatch_error(what: &str) -> SandboxError {
    SandboxError::Unavailable {
        reason: format!("the container isn't what was asked for: {what}"),
        fix: "An image needs /bin/sh, ls and cat; else look at the daemon's log and its warnings (docker info), or use \
              another back-end"
            .to_owned(),
    }
}
