//! Where the outside comes in: environment, clock, directories, the runtime.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, anyhow};
use journeyman_agent::AgentError;
use journeyman_host::ConfigError;
use journeyman_host::config::{Config, Environment};
use journeyman_protocol::{ContentHash, SandboxTier, UnixMillis};
use journeyman_sandbox::{Sandbox, SandboxSettings};
use journeyman_store::{Blobs, SqliteStore, StoreError};
use journeyman_tools::GUARDS;
use journeyman_workspace::{Clock, Options, Workspace};

use crate::confinement;

/// Bytes of pre-images kept in all (decision 7: 4 GiB over every project).
pub(crate) const BLOB_QUOTA: u64 = 4 * 1024 * 1024 * 1024;
/// Threads for file work: the tree is walked while the model is asked. More would only cost memory.
const BLOCKING_THREADS: usize = 3;
/// The session log's file.
pub(crate) const LOG: &str = "sessions.db";

/// Why a command ended without a result of its own.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The user has to change something: exit code 2.
    Usage(anyhow::Error),
    /// A person has to allow something, and nobody can be asked: exit code 6.
    NeedsPerson(anyhow::Error),
    /// Something failed: exit code 1.
    Error(anyhow::Error),
}

impl Failure {
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::Usage(anyhow!("{message}"))
    }

    pub(crate) fn needs_person(message: impl fmt::Display) -> Self {
        Self::NeedsPerson(anyhow!("{message}"))
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::NeedsPerson(_) => 6,
            Self::Error(_) => 1,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(error) | Self::NeedsPerson(error) | Self::Error(error) => {
                // Some errors say their cause in their own words already.
                let mut said = String::new();
                for cause in error.chain().map(ToString::to_string) {
                    if !said.contains(&cause) {
                        let joint = if said.is_empty() { "" } else { ": " };
                        said = format!("{said}{joint}{cause}");
                    }
                }
                f.write_str(&said)
            }
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Error(error)
    }
}

impl From<AgentError> for Failure {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Store(error @ StoreError::Leased { .. }) => crate::sessions::refused(error),
            other => Self::Error(other.into()),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Usage(error.into())
    }
}

/// Reads the process's surroundings, once.
pub(crate) fn environment() -> Result<Environment, Failure> {
    let cwd = std::env::current_dir().context("the current directory can't be read; was it removed?")?;
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    Ok(Environment { vars: std::env::vars_os().collect(), home, cwd })
}

/// The system's clock.
pub(crate) fn now() -> UnixMillis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMillis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Runs a command's future on one thread, and does not wait for what it leaves behind.
pub(crate) fn block_on(work: impl Future<Output = Result<u8, Failure>>) -> Result<u8, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .build()
        .context("the runtime could not start")?;
    let result = runtime.block_on(work);
    // A terminal read can't be cancelled; the process ends without it.
    runtime.shutdown_background();
    result
}

/// The project's root: the directory given, or the current one, with symlinks resolved.
pub(crate) fn root(environment: &Environment, given: Option<&Path>) -> Result<PathBuf, Failure> {
    let path = given.map_or_else(|| environment.cwd.clone(), |given| environment.cwd.join(given));
    let root = std::fs::canonicalize(&path).map_err(|error| {
        Failure::usage(format_args!(
            "cannot work in {}: {error}; give another directory with -C",
            path.display()
        ))
    })?;
    if root.is_dir() {
        Ok(root)
    } else {
        Err(Failure::usage(format_args!("{} is not a directory", path.display())))
    }
}

/// The session log, where there is one or what is left of one.
pub(crate) fn log_of(state_dir: &Path) -> Option<PathBuf> {
    let log = state_dir.join(LOG);
    (log.exists() || log.with_extension("db-wal").exists()).then_some(log)
}

/// The directories and doors that every command shares.
pub(crate) struct House {
    pub(crate) state_dir: PathBuf,
    /// What `DOCKER_HOST` says.
    docker_host: Option<OsString>,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) blobs: Arc<Blobs>,
}

impl House {
    pub(crate) fn open(environment: &Environment) -> Result<Self, Failure> {
        let state_dir = environment
            .state_dir()
            .ok_or_else(|| Failure::usage("there is no place for sessions: set HOME or XDG_STATE_HOME"))?;
        let store = SqliteStore::open(&state_dir.join(LOG)).context("the session log")?;
        let blobs = Blobs::open(&state_dir.join("blobs"), BLOB_QUOTA).context("the stored contents")?;
        let docker_host = environment.vars.get(OsStr::new("DOCKER_HOST")).cloned();
        Ok(Self { state_dir, docker_host, store: Arc::new(store), blobs: Arc::new(blobs) })
    }

    /// The directory of state of the project at `root`.
    pub(crate) fn project_dir(&self, root: &Path) -> PathBuf {
        project_dir(&self.state_dir, root)
    }

    /// The same for those who need nothing else.
    pub(crate) fn project_of(environment: &Environment, root: &Path) -> Result<PathBuf, Failure> {
        let state_dir = environment
            .state_dir()
            .ok_or_else(|| Failure::usage("there is no place for the index: set HOME or XDG_STATE_HOME"))?;
        Ok(project_dir(&state_dir, root))
    }

    pub(crate) fn workspace(&self, root: &Path) -> Result<Workspace, Failure> {
        let options = Options {
            own_dir: Some(self.state_dir.clone()),
            clock: Some(Clock::new(now)),
            guarded: Some(GUARDS),
            ..Options::new(self.project_dir(root), Arc::clone(&self.blobs))
        };
        Ok(Workspace::open(root, options).context("the project")?)
    }

    /// The sandbox that the user's configuration allows.
    pub(crate) fn sandbox(&self, config: &Config) -> Result<Sandbox, Failure> {
        let tiers = confinement::tiers(config)?;
        Ok(Sandbox::new(self.sandbox_settings(config, tiers, config.sandbox_allow_root)?))
    }

    /// What a sandbox with these tiers is made with.
    pub(crate) fn sandbox_settings(
        &self,
        config: &Config,
        allow: Vec<SandboxTier>,
        allow_root: bool,
    ) -> Result<SandboxSettings, Failure> {
        Ok(SandboxSettings {
            allow,
            cache: Some(self.state_dir.join("sandbox-probe")),
            allow_root,
            #[cfg(target_os = "linux")]
            container: crate::containers::settings(config, self.docker_host.as_deref())?,
            ..SandboxSettings::default()
        })
    }
}

fn project_dir(state_dir: &Path, root: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    let name = ContentHash::of(root.as_os_str().as_bytes()).to_string();
    state_dir.join("projects").join(name.get(..16).unwrap_or(&name))
}
