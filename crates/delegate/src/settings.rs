//! The CLIs that a session may give tasks to, with the user's settings.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use journeyman_sandbox::{HostEnvironment, Outcome, Request, Sandbox, Toolchains, WriteMode};
use tokio_util::sync::CancellationToken;

use crate::program::{find_program, visible_paths};
use crate::{
    Adapter, Credentials, Installation, Machine, VERSION_ARGUMENT, detect, explain_missing, find_credentials,
};

/// Default time limit of a run in the sandbox: agents think for minutes.
pub const DEFAULT_CONFINED_TIME: Duration = Duration::from_secs(300);
/// Default time limit of a run outside the sandbox, for a task of low risk.
pub const DEFAULT_DIRECT_TIME: Duration = Duration::from_secs(60);

/// Maximum time in which a program prints its version: some load half a gigabyte for it, and all
/// are started at once.
const MAX_VERSION_TIME: Duration = Duration::from_secs(60);

/// A CLI with the user's settings.
#[derive(Clone)]
pub struct DelegateSettings {
    /// The CLI.
    pub adapter: Arc<dyn Adapter>,
    /// The model; the CLI's default if unset.
    pub model: Option<String>,
    /// Further arguments.
    pub arguments: Vec<String>,
    /// The base URL that replaces the provider's own.
    pub base_url: Option<String>,
    /// Further hosts, and addresses such as `127.0.0.1:11434`, that the CLI may reach.
    pub network: Vec<String>,
    /// The time limit of one run; the default if unset.
    pub time_limit: Option<Duration>,
}

impl DelegateSettings {
    /// Returns the default settings of a CLI.
    #[must_use]
    pub fn new(adapter: Arc<dyn Adapter>) -> Self {
        Self {
            adapter,
            model: None,
            arguments: Vec::new(),
            base_url: None,
            network: Vec::new(),
            time_limit: None,
        }
    }
}

/// The configured CLIs in the order of the user's preference, and the environment in which they are
/// looked for.
#[derive(Clone)]
pub struct Delegates {
    all: Vec<DelegateSettings>,
    host: Arc<HostEnvironment>,
    /// The project, whose own programs are never run as a CLI.
    root: Option<PathBuf>,
}

/// The reason why no CLI can take a task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DelegateError {
    /// There is no CLI of this name.
    #[error("there is no CLI `{name}`; there are {}", .known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// The known names.
        known: Vec<String>,
    },
    /// The CLI isn't installed: how to install it, and which others are.
    #[error("{0}")]
    NotInstalled(String),
    /// No CLI is installed.
    #[error("none of {} is installed{}", .known.join(", "), install_advice(.install))]
    NoneInstalled {
        /// The known names.
        known: Vec<String>,
        /// A command that installs the first one; empty if unknown.
        install: String,
    },
}

fn install_advice(command: &str) -> String {
    if command.is_empty() { String::new() } else { format!("; install one, such as by `{command}`") }
}

impl Delegates {
    /// Creates the list for the project at `root`; `all` is in the order of preference.
    #[must_use]
    pub fn new(all: Vec<DelegateSettings>, host: HostEnvironment, root: Option<&Path>) -> Self {
        Self { all, host: Arc::new(host), root: root.map(Path::to_owned) }
    }

    /// Keeps only the CLIs with these names.
    #[must_use]
    pub fn retain_named(mut self, names: &[String]) -> Self {
        self.all.retain(|one| names.iter().any(|name| name == one.adapter.name()));
        self
    }

    /// Sets the model of all CLIs, if there is one.
    #[must_use]
    pub fn with_model(mut self, model: Option<String>) -> Self {
        if model.is_some() {
            self.all.iter_mut().for_each(|one| one.model.clone_from(&model));
        }
        self
    }

    /// Returns all CLIs, in the order of preference.
    #[must_use]
    pub fn all(&self) -> &[DelegateSettings] {
        &self.all
    }

    /// Returns the user's environment.
    #[must_use]
    pub fn host_environment(&self) -> &HostEnvironment {
        &self.host
    }

    /// Returns the names of the CLIs, in the order of preference.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.all.iter().map(|one| one.adapter.name().to_owned()).collect()
    }

    /// Returns a CLI by its name.
    ///
    /// # Errors
    /// [`DelegateError::Unknown`] if there is none.
    pub fn find(&self, name: &str) -> Result<&DelegateSettings, DelegateError> {
        self.all.iter().find(|one| one.adapter.name() == name).ok_or_else(|| DelegateError::Unknown {
            name: name.chars().take(40).collect(),
            known: self.names(),
        })
    }

    /// Returns the path of a CLI's program.
    ///
    /// # Errors
    /// [`DelegateError::NotInstalled`] with the command that installs it.
    pub fn find_program(&self, one: &DelegateSettings) -> Result<PathBuf, DelegateError> {
        let adapter = &one.adapter;
        self.program_of_adapter(adapter.as_ref()).ok_or_else(|| {
            let installed: Vec<&str> = self.installed().map(|one| one.adapter.name()).collect();
            DelegateError::NotInstalled(explain_missing(adapter.as_ref(), &installed))
        })
    }

    /// Returns the first CLI that is installed and has a login; if none has one, the first that is
    /// installed.
    ///
    /// # Errors
    /// [`DelegateError::NoneInstalled`] if there is none.
    pub fn first_installed(&self) -> Result<&DelegateSettings, DelegateError> {
        let first = self.installed().find(|one| self.has_login(one)).or_else(|| self.installed().next());
        first.ok_or_else(|| {
            let mut hints = self.all.iter().map(|one| one.adapter.install_hint());
            let install = hints.find(|hint| !hint.is_empty()).unwrap_or_default().to_owned();
            DelegateError::NoneInstalled { known: self.names(), install }
        })
    }

    /// Returns false if a CLI has no known login or key, and no settings that may replace one.
    fn has_login(&self, one: &DelegateSettings) -> bool {
        let requirements = one.adapter.requirements().for_model(one.model.as_deref());
        let machine = UserMachine { delegates: self, versions: &BTreeMap::new() };
        one.base_url.is_some()
            || !one.network.is_empty()
            || !one.arguments.is_empty()
            || requirements
                .providers
                .iter()
                .flat_map(|it| &it.base_urls)
                .any(|name| machine.has_variable(name))
            || find_credentials(&requirements, &machine) != Credentials::Missing
    }

    /// Detects a CLI; `None` if it isn't installed. `versions` are the versions that programs
    /// printed.
    #[must_use]
    pub fn detect(
        &self,
        one: &DelegateSettings,
        versions: &BTreeMap<PathBuf, String>,
    ) -> Option<Installation> {
        detect(one.adapter.as_ref(), &UserMachine { delegates: self, versions })
    }

    /// Runs an installed CLI in the sandbox, without a network, to read its version. `None` if it
    /// prints none, or can't be confined.
    pub async fn read_version(
        &self,
        one: &DelegateSettings,
        sandbox: &Sandbox,
        toolchains: &Toolchains,
        root: &Path,
    ) -> Option<(PathBuf, String)> {
        let program = self.program_of_adapter(one.adapter.as_ref())?;
        let argv = vec![program.clone().into_os_string(), VERSION_ARGUMENT.into()];
        let mut request = Request::for_program(root, argv).with_toolchains(toolchains);
        request.read_only.extend(visible_paths(&program, self.host.home.as_deref()));
        request.write = WriteMode::ReadOnly;
        request.limits.wall = MAX_VERSION_TIME;
        let running = sandbox.spawn(request, CancellationToken::new()).await.ok()?;
        let completed = running.wait().await.ok()?;
        Some((program, completed.stdout.text)).filter(|_| completed.outcome == Outcome::Exited(0))
    }

    /// Returns the CLIs that are installed, in the order of preference.
    pub fn installed(&self) -> impl Iterator<Item = &DelegateSettings> {
        self.all.iter().filter(|one| self.program_of_adapter(one.adapter.as_ref()).is_some())
    }

    fn program_of_adapter(&self, adapter: &dyn Adapter) -> Option<PathBuf> {
        find_program(&self.host, adapter.program(), self.root.as_deref())
    }
}

/// The user's machine, for detection.
struct UserMachine<'a> {
    delegates: &'a Delegates,
    versions: &'a BTreeMap<PathBuf, String>,
}

impl Machine for UserMachine<'_> {
    fn has_variable(&self, name: &str) -> bool {
        self.delegates.host.vars.get(OsStr::new(name)).is_some_and(|value| !value.is_empty())
    }

    fn has_in_home(&self, path: &Path) -> bool {
        self.delegates.host.home.as_ref().is_some_and(|home| home.join(path).exists())
    }

    fn find_program(&self, name: &str) -> Option<PathBuf> {
        find_program(&self.delegates.host, name, self.delegates.root.as_deref())
    }

    fn read_version(&self, program: &Path) -> Option<String> {
        self.versions.get(program).cloned()
    }
}
