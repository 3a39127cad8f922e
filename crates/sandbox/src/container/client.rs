//! The connection to a daemon: finding its socket and its kind, and translating its errors.

use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::errors::Error as ApiError;
use bollard::query_parameters::RemoveContainerOptionsBuilder;
use bollard::{API_DEFAULT_VERSION, Docker};

use super::ContainerSettings;
use crate::SandboxError;

/// Maximum seconds until the daemon begins an answer. Starting a container on a busy machine takes
/// seconds.
const MAX_ANSWER_SECONDS: u64 = 60;
/// Bytes of a daemon's message that are shown.
const MAX_MESSAGE_BYTES: usize = 600;
/// Creating and removing a container on a machine under strain.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(60);

/// A daemon that answers, and its properties.
#[derive(Debug, Clone)]
pub(super) struct Daemon {
    pub(super) docker: Docker,
    pub(super) socket: PathBuf,
    /// Podman, which speaks Docker's words with an accent.
    pub(super) podman: bool,
    /// It runs without root's rights: its root is the user who started it.
    pub(super) rootless: bool,
    /// The name that the daemon gives itself.
    pub(super) name: String,
    /// Its cgroups have limits for memory and for processes.
    pub(super) bounds: bool,
}

impl Daemon {
    /// Connects, negotiates the protocol's version, and queries the kind of the daemon.
    pub(super) async fn connect(settings: &ContainerSettings) -> Result<Self, SandboxError> {
        let socket = find_socket(settings)?;
        let Some(path) = socket.to_str() else {
            return Err(SandboxError::Refused(format!(
                "the socket's path `{}` isn't text",
                socket.display()
            )));
        };
        let unavailable = |error: ApiError| unreachable_error(&socket, &error);
        let docker =
            Docker::connect_with_unix(path, MAX_ANSWER_SECONDS, API_DEFAULT_VERSION).map_err(unavailable)?;
        let docker = docker.negotiate_version().await.map_err(unavailable)?;
        let version = docker.version().await.map_err(unavailable)?;
        let info = docker.info().await.map_err(unavailable)?;
        let components = version.components.unwrap_or_default();
        let podman = components.iter().any(|component| component.name.starts_with("Podman"));
        let options = info.security_options.unwrap_or_default();
        let rootless = options.iter().any(|option| option.contains("rootless"));
        let name = if podman { "Podman" } else { "Docker" };
        let name = format!("{name} {}", version.version.unwrap_or_default());
        let bounds = info.memory_limit == Some(true) && info.pids_limit == Some(true);
        Ok(Self { docker, socket, podman, rootless, name: name.trim().to_owned(), bounds })
    }
}

/// Returns the socket that is configured, or the first of the usual ones that is there.
fn find_socket(settings: &ContainerSettings) -> Result<PathBuf, SandboxError> {
    if let Some(socket) = &settings.socket {
        return Ok(socket.clone());
    }
    let user = rustix::process::geteuid().as_raw();
    let mut usual = vec![PathBuf::from("/var/run/docker.sock")];
    // The parent of systemd's directories for logged-in users.
    usual.push(format!("/run/user/{user}/docker.sock").into());
    usual.push(format!("/run/user/{user}/podman/podman.sock").into());
    if user == 0 {
        usual.push("/run/podman/podman.sock".into());
    }
    let is_socket = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if let Some(found) = usual.iter().find(|path| is_socket(path)) {
        return Ok(found.clone());
    }
    let tried: Vec<String> = usual.iter().map(|path| path.display().to_string()).collect();
    Err(SandboxError::Unavailable {
        reason: format!("no Docker or Podman listens at {}", tried.join(" or ")),
        fix: "Start it (for Podman: `systemctl --user start podman.socket`), or name its socket in \
              sandbox.container.socket"
            .to_owned(),
    })
}

fn unreachable_error(socket: &Path, error: &ApiError) -> SandboxError {
    SandboxError::Unavailable {
        reason: format!("the daemon at `{}` doesn't answer: {}", socket.display(), error_text(error)),
        fix: "Start it, or join the group that may use it: that is as good as root's rights on this machine"
            .to_owned(),
    }
}

/// Returns the reason of a failure, shortened and cleaned: a daemon quotes the image and the
/// project.
pub(super) fn error_text(error: &ApiError) -> String {
    let text = match error {
        ApiError::DockerResponseServerError { message, .. } => message.clone(),
        other => {
            let mut text = other.to_string();
            let mut cause = std::error::Error::source(other);
            while let Some(error) = cause {
                text = format!("{text}: {error}");
                cause = error.source();
            }
            text
        }
    };
    to_one_line(&text)
}

/// Returns one cleaned line of foreign text.
pub(super) fn to_one_line(text: &str) -> String {
    let text = crate::clean_output(text.as_bytes()).split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(MAX_MESSAGE_BYTES) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

/// Returns the HTTP status of an error, where it is one of the daemon's.
pub(super) fn http_status(error: &ApiError) -> Option<u16> {
    match error {
        ApiError::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

/// Returns a failure while a command was run.
pub(super) fn supervise_error(what: &'static str) -> impl Fn(ApiError) -> SandboxError {
    move |error| SandboxError::Supervise { what, source: io::Error::other(error_text(&error)) }
}

/// Returns a failure before a command ran.
pub(super) fn setup_error(what: &str, error: &ApiError) -> SandboxError {
    SandboxError::Unavailable {
        reason: format!("{what}: {}", error_text(error)),
        fix: "Look at the daemon's log, or use another back-end".to_owned(),
    }
}

/// Removes a container with all its processes, and waits until it is gone.
pub(super) async fn remove_container(docker: &Docker, id: &str) -> Result<(), ApiError> {
    let begun = tokio::time::Instant::now();
    loop {
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        match docker.remove_container(id, Some(options)).await {
            Ok(()) => return Ok(()),
            Err(error) => match http_status(&error) {
                Some(404) => return Ok(()),
                // It is being removed already; that is done when it isn't found.
                Some(409) if begun.elapsed() < REMOVAL_TIMEOUT => {
                    tokio::time::sleep(Duration::from_millis(10)).await
                }
                _ => return Err(error),
            },
        }
    }
}

/// Returns the error for an image that isn't on the machine, with advice.
pub(super) fn missing_image_error(daemon: &Daemon, name: &str) -> SandboxError {
    let program = if daemon.podman { "podman" } else { "docker" };
    SandboxError::Unavailable {
        reason: format!(
            "the image `{name}` isn't on this machine, and none is fetched without being asked for"
        ),
        fix: format!("Fetch it with `{program} pull {name}`, or name another in sandbox.container.image"),
    }
}
