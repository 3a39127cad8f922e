//! Putting the rooms together. Nothing is asked, run or written here.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_agent::copies::{Committer, Isolation, LandContext, Proof};
use journeyman_agent::hooks::{Hooks, HooksBuilder};
use journeyman_agent::model::Model;
use journeyman_agent::{Approver, Checks, DEFAULT_TODO_INTERVAL, Parts, Programs, RunSettings, TodoSettings};
use journeyman_git::{Confinement, Git};
use journeyman_host::config::{Config, Environment, load_own, load_policy};
use journeyman_host::embeddings::vectorer;
use journeyman_host::{Connected, providers};
use journeyman_policy::secrets::Redactor;
use journeyman_policy::{Policy, is_guarded, is_secret_name, runs_code};
use journeyman_protocol::{Mode, SandboxNeeds, Tokens};
use journeyman_sandbox::{HostEnvironment, Sandbox, Toolchains, toolchains};
use journeyman_store::Store;
use journeyman_tools::{FindVectorer, Registry, SharedIndex};
use journeyman_workspace::{Tier, Workspace};

use crate::confinement;
use crate::edge::{Failure, House, now};
use crate::policy::ADMIN_POLICY;
use crate::sessions::holder;
use crate::settings::ADMIN;

/// A project, and what sessions on it are run, verified and landed with.
#[derive(Clone)]
pub(crate) struct Ground {
    pub(crate) root: PathBuf,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) git: Git,
    pub(crate) committer: Committer,
    sandbox: Arc<Sandbox>,
    toolchains: Arc<Toolchains>,
    redactor: Arc<Redactor>,
    programs: Arc<Programs>,
    tiers: Vec<Tier>,
    needs: SandboxNeeds,
    vectors: Arc<FindVectorer>,
    pub(crate) holder: String,
}

impl Ground {
    /// `secrets` are those that the model's connection knows of.
    pub(crate) fn new(
        environment: &Environment,
        house: &House,
        root: &Path,
        config: &Config,
        secrets: Vec<String>,
        command: &str,
    ) -> Result<Self, Failure> {
        let sandbox = Arc::new(house.sandbox(config)?);
        let host = HostEnvironment { vars: environment.vars.clone(), home: environment.home.clone() };
        let mut secrets = secrets;
        secrets.extend(configured_secrets(environment, config));
        let redactor = Arc::new(Redactor::new(secrets));
        let programs = environment.clone();
        let git = Git::new(root, Arc::clone(&sandbox));
        let git = match environment.vars.iter().find(|(name, _)| *name == "PATH") {
            Some((_, path)) => git.with_path(path),
            None => git,
        };
        let toolchains = Arc::new(toolchains(&host, root));
        let needs = confinement::needs(config)?;
        let hooks = Confinement {
            toolchains: Arc::clone(&toolchains),
            env: shown(environment, config),
            needs,
            is_guarded,
            runs_code: |path| runs_code(path).is_some(),
            ..Confinement::default()
        };
        let committer = Committer {
            git: git.for_user(environment.vars.clone()).confined(hooks),
            blobs: Arc::clone(&house.blobs),
            scratch: house.project_dir(root).join("branches"),
        };
        Ok(Self {
            root: root.to_owned(),
            store: Arc::clone(&house.store) as Arc<dyn Store>,
            workspace: Arc::new(house.workspace(root)?),
            git,
            committer,
            sandbox,
            toolchains,
            vectors: vectors(environment, &redactor),
            redactor,
            programs: Arc::new(move |name: &str| programs.has_program(name)),
            tiers: if config.isolation.is_empty() { Tier::ALL.to_vec() } else { config.isolation.clone() },
            needs,
            holder: holder(command),
        })
    }

    /// What people should know of how commands are confined here.
    pub(crate) async fn notes(&self) -> Vec<String> {
        confinement::notes(&self.sandbox, &self.needs).await
    }

    /// What is known of the whole project.
    fn index(&self) -> SharedIndex {
        let (workspace, redactor) = (Arc::clone(&self.workspace), Arc::clone(&self.redactor));
        let index = SharedIndex::new(workspace, redactor, Some(self.git.clone()));
        index.with_vectors(Arc::clone(&self.vectors))
    }

    /// What copies of the project are made of and with.
    pub(crate) fn isolation(&self) -> Isolation {
        Isolation {
            origin: Arc::clone(&self.workspace),
            sandbox: Arc::clone(&self.sandbox),
            git: Some(self.git.clone()),
            tiers: self.tiers.clone(),
        }
    }

    /// What landing works with; `checks` prove a merged result.
    pub(crate) fn land_context(&self, checks: Checks) -> LandContext {
        LandContext {
            store: Arc::clone(&self.store),
            clock: Arc::new(now),
            redactor: Arc::clone(&self.redactor),
            holder: self.holder.clone(),
            isolation: self.isolation(),
            proof: Proof {
                checks,
                sandbox: Arc::clone(&self.sandbox),
                needs: self.needs,
                toolchains: Arc::clone(&self.toolchains),
                programs: Arc::clone(&self.programs),
            },
            committer: Some(self.committer.clone()),
        }
    }
}

/// The variables that a commit's hooks see: those that nothing calls secret.
fn shown(environment: &Environment, config: &Config) -> BTreeMap<OsString, OsString> {
    let keys = providers(config).into_iter().flat_map(|provider| provider.key_env);
    let hidden: BTreeSet<OsString> = keys.chain(config.redacted().cloned()).map(OsString::from).collect();
    let mut vars = environment.vars.clone();
    vars.retain(|name, _| !hidden.contains(name) && !is_secret_name(&name.to_string_lossy()));
    vars
}

/// The model of vectors that the user's own configuration names, when somebody asks; a repository has no say.
fn vectors(environment: &Environment, redactor: &Arc<Redactor>) -> Arc<FindVectorer> {
    let (environment, redactor) = (environment.clone(), Arc::clone(redactor));
    Arc::new(move || {
        let config = load_own(&environment, Some(Path::new(ADMIN))).map_err(|error| error.to_string())?;
        vectorer(&config, &environment, Arc::clone(&redactor)).map_err(|error| error.to_string())
    })
}

/// Values of variables that hold keys or that the user calls secrets. Keys of providers that a run doesn't ask are nobody's
/// business either.
pub(crate) fn configured_secrets(environment: &Environment, config: &Config) -> Vec<String> {
    let keys = providers(config).into_iter().flat_map(|provider| provider.key_env);
    let names = keys.chain(config.redacted().cloned());
    names.filter_map(|name| environment.var(&name).map(str::to_owned)).collect()
}

/// Everything a run needs, wired.
pub(crate) struct Wired {
    pub(crate) ground: Ground,
    pub(crate) settings: RunSettings,
    model: Arc<dyn Model>,
    hooks: Hooks,
    policy: Policy,
    /// The directory of the user's configuration: what they allow for good is written there.
    pub(crate) config_dir: Option<PathBuf>,
}

impl Wired {
    /// Returns true where a person answers questions.
    pub(crate) fn asks(&self) -> bool {
        self.settings.approver == Approver::Handle
    }

    /// What one session works with, in the project itself.
    pub(crate) fn parts(&self) -> Parts {
        let ground = &self.ground;
        Parts {
            store: Arc::clone(&ground.store),
            model: Arc::clone(&self.model),
            index: Arc::new(ground.index().eager()),
            workspace: Arc::clone(&ground.workspace),
            copy: None,
            sandbox: Arc::clone(&ground.sandbox),
            toolchains: Arc::clone(&ground.toolchains),
            registry: Registry::rooted(&ground.root),
            policy: self.policy.clone(),
            redactor: Arc::clone(&ground.redactor),
            hooks: self.hooks.clone(),
            clock: Arc::new(now),
            programs: Arc::clone(&ground.programs),
            holder: ground.holder.clone(),
        }
    }

    /// What landing works with.
    pub(crate) fn land_context(&self) -> LandContext {
        self.ground.land_context(self.settings.checks.clone())
    }
}

/// Puts the rooms together for a run.
pub(crate) fn wire(
    environment: &Environment,
    house: &House,
    root: &Path,
    config: &Config,
    connected: Connected,
    approver: Approver,
    checks: Checks,
) -> Result<Wired, Failure> {
    let default_mode = if approver == Approver::Handle { Mode::Edit } else { Mode::Auto };
    let settings = run_settings(config, &connected, approver, checks, default_mode)?;
    let ground = Ground::new(environment, house, root, config, connected.secrets, "run")?;
    let hooks = journeyman_host::configured_hooks(HooksBuilder::new(), config, environment, root).build();
    let policy = load_policy(environment, root, Some(Path::new(ADMIN_POLICY)))?.policy;
    let config_dir = environment.config_dir();
    Ok(Wired { ground, settings, model: connected.model, hooks, policy, config_dir })
}

fn run_settings(
    config: &Config,
    connected: &Connected,
    approver: Approver,
    checks: Checks,
    default_mode: Mode,
) -> Result<RunSettings, Failure> {
    if config.budget_usd.is_some() && connected.price.is_none() {
        return Err(Failure::usage(format_args!(
            "--budget needs the price of {name}, which isn't known; set providers.PROVIDER.models.\"NAME\".input and \
             .output (US dollars for a million tokens) in your configuration",
            name = connected.name
        )));
    }
    let standard = RunSettings::default();
    Ok(RunSettings {
        mode: config.mode_or(default_mode),
        approver,
        approval_timeout: config.approval_timeout,
        concurrency: config
            .tools_concurrency
            .map_or(standard.concurrency, |calls| usize::try_from(calls).unwrap_or(standard.concurrency)),
        tool_timeout: config.tools_timeout.unwrap_or(standard.tool_timeout),
        todos: (config.todos != Some(false)).then(|| TodoSettings {
            remind_every: config.todos_remind_every.unwrap_or(DEFAULT_TODO_INTERVAL),
            ..TodoSettings::default()
        }),
        loop_guard: config.loop_guard.unwrap_or(standard.loop_guard),
        max_turns: config.max_turns.unwrap_or(standard.max_turns),
        max_iterations: config.max_iterations.unwrap_or(standard.max_iterations),
        timeout: config.timeout.unwrap_or(standard.timeout),
        budget_usd: config.budget_usd,
        purse: None,
        price: connected.price,
        checks,
        needs: confinement::needs(config)?,
        instructions: config.instructions.clone(),
        project_instructions: config.project_instructions.clone(),
        tool_calling: connected.tool_calling,
        temperature: config.temperature.map(narrow),
        top_p: config.top_p.map(narrow),
        thinking: journeyman_host::thinking(config),
        max_output: config.max_output_tokens.map(|tokens| Tokens(u64::from(tokens))),
        asked: standard.asked,
        index_patience: if connected.taped { None } else { standard.index_patience },
        context_budget: config
            .context_tokens
            .map_or(standard.context_budget, |tokens| Tokens(u64::from(tokens))),
        today: connected.day.clone().unwrap_or_else(|| now().to_date()),
        platform: standard.platform,
    })
}

#[expect(clippy::cast_possible_truncation, reason = "sampling settings have two digits")]
fn narrow(number: f64) -> f32 {
    number as f32
}
