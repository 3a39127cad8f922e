//! A project, with everything that sessions on it are run, verified and landed with.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_agent::isolation::{CheckRunner, Committer, Isolation, LandContext};
use journeyman_agent::verify::ProgramLookup;
use journeyman_agent::{ChecksSetting, Clock};
use journeyman_git::{Git, HookConfinement};
use journeyman_policy::secrets::Redactor;
use journeyman_policy::{Policy, execution_reason, is_guarded, is_secret_name};
use journeyman_protocol::SandboxNeeds;
use journeyman_sandbox::{HostEnvironment, Sandbox, Toolchains, find_toolchains};
use journeyman_store::Store;
use journeyman_tools::{LoadEmbedder, SharedIndex};
use journeyman_workspace::{IsolationTier, Workspace};

use crate::config::{Config, Environment, load_without_project};
use crate::embeddings::load_query_embedder;
use crate::settings::ADMIN_CONFIG;
use crate::state::{StateDirs, now};
use crate::{HostError, models, sandboxes};

/// A project, and what sessions on it are run, verified and landed with.
#[derive(Clone)]
pub struct ProjectContext {
    /// The root of the project.
    pub root: PathBuf,
    /// The session log.
    pub store: Arc<dyn Store>,
    /// The project's files.
    pub workspace: Arc<Workspace>,
    /// Reads of the project's repository.
    pub git: Git,
    /// Commits with the user's git.
    pub committer: Committer,
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) clock: Clock,
    pub(crate) toolchains: Arc<Toolchains>,
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) programs: Arc<ProgramLookup>,
    pub(crate) holder: String,
    tiers: Vec<IsolationTier>,
    pub(crate) needs: SandboxNeeds,
    embedder: Arc<LoadEmbedder>,
}

/// Parts of a [`ProjectContext`] that take the place of the defaults.
#[derive(Default)]
pub(crate) struct ProjectParts {
    pub(crate) store: Option<Arc<dyn Store>>,
    pub(crate) workspace: Option<Arc<Workspace>>,
    pub(crate) sandbox: Option<Arc<Sandbox>>,
    pub(crate) clock: Option<Clock>,
}

impl ProjectContext {
    /// Opens the project at `root`. `secrets` are redacted besides those that the configuration
    /// names, and `holder` is who holds the project's sessions.
    ///
    /// # Errors
    /// [`HostError`] where the project can't be opened, or the configuration names an unknown
    /// sandbox.
    pub fn open(
        environment: &Environment,
        state: &StateDirs,
        root: &Path,
        config: &Config,
        secrets: Vec<String>,
        holder: String,
    ) -> Result<Self, HostError> {
        Self::open_with_parts(environment, state, root, config, secrets, holder, ProjectParts::default())
    }

    pub(crate) fn open_with_parts(
        environment: &Environment,
        state: &StateDirs,
        root: &Path,
        config: &Config,
        mut secrets: Vec<String>,
        holder: String,
        parts: ProjectParts,
    ) -> Result<Self, HostError> {
        let sandbox = match parts.sandbox {
            Some(sandbox) => sandbox,
            None => Arc::new(state.sandbox(config)?),
        };
        let workspace = match parts.workspace {
            Some(workspace) => workspace,
            None => Arc::new(state.open_workspace(root)?),
        };
        secrets.extend(configured_secrets(environment, config));
        let redactor = Arc::new(Redactor::new(secrets));
        let programs = environment.clone();
        let git = Git::new(root, Arc::clone(&sandbox));
        let git = match environment.vars.iter().find(|(name, _)| *name == "PATH") {
            Some((_, path)) => git.with_path(path),
            None => git,
        };
        let host = HostEnvironment { vars: environment.vars.clone(), home: environment.home.clone() };
        let toolchains = Arc::new(find_toolchains(&host, root));
        let needs = sandboxes::required_needs(config)?;
        let commit_hooks = HookConfinement {
            toolchains: Arc::clone(&toolchains),
            env: public_variables(environment, config),
            needs,
            is_guarded,
            runs_code: |path| execution_reason(path).is_some(),
            ..HookConfinement::default()
        };
        let committer = Committer {
            git: git.for_user(environment.vars.clone()).with_confinement(commit_hooks),
            blobs: Arc::clone(&state.blobs),
            scratch: state.project_dir(root).join("branches"),
        };
        Ok(Self {
            root: root.to_owned(),
            store: parts.store.unwrap_or_else(|| Arc::clone(&state.store) as Arc<dyn Store>),
            workspace,
            git,
            committer,
            sandbox,
            clock: parts.clock.unwrap_or_else(|| Clock::new(now)),
            toolchains,
            embedder: configured_embedder(environment, &redactor),
            redactor,
            programs: Arc::new(move |name: &str| programs.find_program(name)),
            tiers: if config.isolation.is_empty() {
                IsolationTier::ALL.to_vec()
            } else {
                config.isolation.clone()
            },
            needs,
            holder,
        })
    }

    /// Returns the notes that a person should read about how commands are confined here.
    pub async fn sandbox_notes(&self) -> Vec<String> {
        sandboxes::sandbox_notes(&self.sandbox, &self.needs).await
    }

    /// Returns the index of the whole project, for one session.
    pub(crate) fn index(&self) -> SharedIndex {
        let (workspace, redactor) = (Arc::clone(&self.workspace), Arc::clone(&self.redactor));
        let index = SharedIndex::new(workspace, redactor, Some(self.git.clone()));
        index.with_vectors(Arc::clone(&self.embedder))
    }

    /// Returns the inputs for making isolated copies of the project.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        Isolation {
            origin: Arc::clone(&self.workspace),
            sandbox: Arc::clone(&self.sandbox),
            git: Some(self.git.clone()),
            tiers: self.tiers.clone(),
            max_copied_files: usize::MAX,
        }
    }

    /// Returns the inputs for landing; `checks` that `policy` allows verify a merged result.
    #[must_use]
    pub fn land_context(&self, checks: ChecksSetting, policy: Policy) -> LandContext {
        LandContext {
            store: Arc::clone(&self.store),
            clock: self.clock.clone(),
            redactor: Arc::clone(&self.redactor),
            holder: self.holder.clone(),
            isolation: self.isolation(),
            proof: CheckRunner {
                checks,
                policy,
                sandbox: Arc::clone(&self.sandbox),
                needs: self.needs,
                toolchains: Arc::clone(&self.toolchains),
                programs: Arc::clone(&self.programs),
            },
            committer: Some(self.committer.clone()),
            known_end: None,
        }
    }
}

/// Returns the environment variables for a commit's hooks, without secrets.
fn public_variables(environment: &Environment, config: &Config) -> BTreeMap<OsString, OsString> {
    let keys = models::all_providers(config).into_iter().flat_map(|provider| provider.key_env);
    let hidden: BTreeSet<OsString> =
        keys.chain(config.redacted_variables().cloned()).map(OsString::from).collect();
    let mut vars = environment.vars.clone();
    vars.retain(|name, _| !hidden.contains(name) && !is_secret_name(&name.to_string_lossy()));
    vars
}

/// Returns a loader of the embedding model that the user's own configuration names; a repository
/// can't choose it.
fn configured_embedder(environment: &Environment, redactor: &Arc<Redactor>) -> Arc<LoadEmbedder> {
    let (environment, redactor) = (environment.clone(), Arc::clone(redactor));
    Arc::new(move || {
        let config = load_without_project(&environment, Some(Path::new(ADMIN_CONFIG)))
            .map_err(|error| error.to_string())?;
        load_query_embedder(&config, &environment, Arc::clone(&redactor)).map_err(|error| error.to_string())
    })
}

/// Returns the values of variables that hold keys or that the configuration calls secret, including
/// the keys of providers that the run doesn't use.
#[must_use]
pub fn configured_secrets(environment: &Environment, config: &Config) -> Vec<String> {
    let keys = models::all_providers(config).into_iter().flat_map(|provider| provider.key_env);
    let names = keys.chain(config.redacted_variables().cloned());
    names.filter_map(|name| environment.var(&name).map(str::to_owned)).collect()
}
