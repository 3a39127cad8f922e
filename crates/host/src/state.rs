//! Opens the state directory that all commands share, with the session log and the blob store.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use journeyman_policy::GUARD_RULES;
use journeyman_protocol::{ContentHash, SandboxTier, UnixMillis};
use journeyman_sandbox::{Progress, Sandbox, SandboxSettings};
use journeyman_store::{Blobs, SqliteStore};
use journeyman_workspace::{Clock, Options, Workspace};

use crate::config::{Config, Environment};
use crate::{Context as _, HostError, sandboxes};

/// Maximum size of all pre-images together, in bytes: 4 GiB over every project.
pub const MAX_BLOB_STORE_BYTES: u64 = 4 * 1024 * 1024 * 1024;
/// The file name of the session log.
pub const SESSION_LOG: &str = "sessions.db";

/// Returns the time of the system's clock.
#[must_use]
pub fn now() -> UnixMillis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMillis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Formats the minute of a time as `2026-01-31 12:34`, in UTC.
#[must_use]
pub fn format_minute(at: UnixMillis) -> String {
    let minutes = at.0 / 60_000 % 1_440;
    format!("{} {:02}:{:02}", at.to_date(), minutes / 60, minutes % 60)
}

/// Returns the home directory if it is missing and would be created for the state directory.
#[must_use]
pub fn find_missing_home(environment: &Environment) -> Option<&Path> {
    let home = environment.home.as_deref()?;
    (environment.state_dir()?.starts_with(home) && !home.exists()).then_some(home)
}

/// Returns the path of the session log if the log, or its write-ahead file alone, exists.
#[must_use]
pub fn find_session_log(state_dir: &Path) -> Option<PathBuf> {
    let log = state_dir.join(SESSION_LOG);
    (log.exists() || log.with_extension("db-wal").exists()).then_some(log)
}

/// Returns the state directory of the project at `root`.
///
/// # Errors
/// [`HostError::Usage`] where the environment has no state directory.
pub fn project_state_dir(environment: &Environment, root: &Path) -> Result<PathBuf, HostError> {
    let state_dir = environment.state_dir();
    let state_dir = state_dir
        .ok_or_else(|| HostError::usage("there is no place for the index: set HOME or XDG_STATE_HOME"))?;
    Ok(project_dir(&state_dir, root))
}

/// Returns the files that standard output and standard error of this program go to.
pub(crate) fn standard_output_files() -> Vec<PathBuf> {
    let file_of = |name: &str| {
        let there = Path::new("/proc/self/fd").join(name);
        std::fs::metadata(&there).ok().filter(std::fs::Metadata::is_file)?;
        std::fs::read_link(there).ok()
    };
    ["1", "2"].into_iter().filter_map(file_of).collect()
}

fn project_dir(state_dir: &Path, root: &Path) -> PathBuf {
    let name = ContentHash::of(root.as_os_str().as_bytes()).to_string();
    state_dir.join("projects").join(name.get(..16).unwrap_or(&name))
}

/// The state directory, with the session log and the blob store open.
pub struct StateDirs {
    /// The state directory.
    pub dir: PathBuf,
    /// The session log.
    pub store: Arc<SqliteStore>,
    /// The pre-images of files.
    pub blobs: Arc<Blobs>,
    /// The value of `DOCKER_HOST`.
    #[cfg_attr(not(feature = "containers"), allow(dead_code))]
    docker_host: Option<OsString>,
    /// Receives the progress of building container images.
    #[cfg_attr(not(feature = "containers"), allow(dead_code))]
    progress: Option<Progress>,
}

impl StateDirs {
    /// Opens the state directory of the environment.
    ///
    /// # Errors
    /// [`HostError`] where there is none, or the log or the blob store can't be opened.
    pub fn open(environment: &Environment) -> Result<Self, HostError> {
        let dir = environment
            .state_dir()
            .ok_or_else(|| HostError::usage("there is no place for sessions: set HOME or XDG_STATE_HOME"))?;
        Self::open_at(dir, environment)
    }

    /// Opens the state directory `dir`.
    ///
    /// # Errors
    /// [`HostError`] where the log or the blob store can't be opened.
    pub fn open_at(dir: PathBuf, environment: &Environment) -> Result<Self, HostError> {
        let store = SqliteStore::open(&dir.join(SESSION_LOG)).context("the session log")?;
        let blobs = Blobs::open(&dir.join("blobs"), MAX_BLOB_STORE_BYTES).context("the stored contents")?;
        let docker_host = environment.vars.get(OsStr::new("DOCKER_HOST")).cloned();
        Ok(Self { dir, store: Arc::new(store), blobs: Arc::new(blobs), docker_host, progress: None })
    }

    /// Sends the progress of building container images to `progress`.
    #[must_use]
    pub fn with_progress(self, progress: Progress) -> Self {
        Self { progress: Some(progress), ..self }
    }

    /// Returns the state directory of the project at `root`.
    #[must_use]
    pub fn project_dir(&self, root: &Path) -> PathBuf {
        project_dir(&self.dir, root)
    }

    /// Opens the project at `root`.
    ///
    /// # Errors
    /// [`HostError::Failed`] where the tree or its journal can't be opened.
    pub fn open_workspace(&self, root: &Path) -> Result<Workspace, HostError> {
        let options = Options {
            own_dir: Some(self.dir.clone()),
            own_files: standard_output_files(),
            clock: Some(Clock::new(now)),
            guarded: Some(GUARD_RULES),
            ..Options::new(self.project_dir(root), Arc::clone(&self.blobs))
        };
        Workspace::open(root, options).context("the project")
    }

    /// Returns the sandbox that the user's configuration allows.
    ///
    /// # Errors
    /// [`HostError::Usage`] where the configuration names no sandbox that there is.
    pub fn sandbox(&self, config: &Config) -> Result<Sandbox, HostError> {
        let tiers = sandboxes::allowed_tiers(config)?;
        Ok(Sandbox::new(self.sandbox_settings(config, tiers, config.sandbox_allow_root)?))
    }

    /// Returns the settings of a sandbox with these tiers.
    ///
    /// # Errors
    /// [`HostError::Usage`] where `DOCKER_HOST` names a socket that can't be used.
    pub fn sandbox_settings(
        &self,
        #[cfg_attr(not(feature = "containers"), allow(unused_variables))] config: &Config,
        allow: Vec<SandboxTier>,
        allow_root: bool,
    ) -> Result<SandboxSettings, HostError> {
        #[cfg(feature = "containers")]
        let container = crate::containers::container_settings(
            config,
            self.docker_host.as_deref(),
            self.progress.clone(),
        )?;
        Ok(SandboxSettings {
            allow,
            cache: Some(self.dir.join("sandbox-probe")),
            allow_root,
            #[cfg(feature = "containers")]
            container,
            ..SandboxSettings::default()
        })
    }
}
