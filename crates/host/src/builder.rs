//! Builds sessions from their parts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use journeyman_agent::agents::group::MAX_MEMBERS;
use journeyman_agent::agents::{AgentModel, Agents, ModelConnector};
use journeyman_agent::hooks::{Hooks, HooksBuilder};
use journeyman_agent::{
    Approver, ChecksSetting, Clock, CompactionSettings, DEFAULT_TODO_REMINDER_INTERVAL, EventFilter,
    PlanFirst, RunSettings, Since, TestStrengthSettings, TodoSettings,
};
use journeyman_model::Model;
use journeyman_policy::Policy;
use journeyman_protocol::{AcceptedFinding, Mode, RunReport, Tokens};
use journeyman_sandbox::Sandbox;
use journeyman_store::Store;
use journeyman_tools::{Registry, SharedIndex};
use journeyman_workspace::Workspace;
use tokio_util::sync::CancellationToken;

use crate::agents::{AgentTrust, load_agents};
use crate::config::{Config, Environment, load_policy};
use crate::delegates::{check_delegate_names, delegate_secrets, parse_model_name};
use crate::delivery::{Delivery, DeliveryOptions, WorkLocation};
use crate::editing_tools::withheld_tools;
use crate::memory::{NoteFile, load_notes};
use crate::models::{Cassette, ConnectedModel, connect_model, thinking_settings};
use crate::project::{ProjectContext, ProjectParts};
use crate::prompt_files::load_prompts;
use crate::root::project_root;
use crate::session_tools::{ToolParts, session_tools};
use crate::sessions::{holder_name, new_session_id};
use crate::settings::{ADMIN_POLICY, ResolvedSettings, without_secrets};
use crate::skills::Skills;
use crate::state::{StateDirs, now};
use crate::surface::{Surface, watch_session};
use crate::template::{MakeTools, SessionTemplate};
use crate::token_ratios::StoredRatios;
use crate::web::{search_engine, withheld_fetch_tool};
use crate::{HostError, add_configured_hooks, sandboxes};

/// A function that changes the settings after everything else has set them.
type AdjustSettings = Box<dyn FnOnce(&mut RunSettings) + Send>;

/// Puts sessions together from their parts. Every part but the project's directory has a default.
///
/// | part | default |
/// |---|---|
/// | environment | the process's variables, home and current directory |
/// | settings | the built-in configuration; see [`resolve_settings`](crate::resolve_settings) |
/// | state, store | the state directory of the environment, and the session log in it |
/// | model | the model that the settings name |
/// | workspace, sandbox, index | those of the project, as the settings say |
/// | policy, hooks | those of the configuration files |
/// | tools | the built-in ones |
/// | skills | the user's and the project's |
/// | agents | the built-in ones, the user's, and those of the project that the user trusts |
/// | checks | those of the settings, or those found in the project |
/// | approver | nobody: what would ask is refused |
/// | delivery | as the settings say: the project itself, or a copy that is landed if verified |
/// | clock | the system's |
///
/// ```no_run
/// # async fn example() -> Result<(), journeyman_host::HostError> {
/// use journeyman_host::SessionBuilder;
///
/// let builder = SessionBuilder::new("/path/to/project");
/// let report = builder.run("make the failing test pass", &mut |_: &_| ()).await?;
/// println!("{:?}: {}", report.outcome, report.summary);
/// # Ok(()) }
/// ```
pub struct SessionBuilder {
    root: PathBuf,
    environment: Option<Environment>,
    settings: ResolvedSettings,
    state: Option<Arc<StateDirs>>,
    state_dir: Option<PathBuf>,
    connected: Option<ConnectedModel>,
    parts: ProjectParts,
    index: Option<Arc<SharedIndex>>,
    policy: Option<Policy>,
    tools: Option<MakeTools>,
    hooks: Option<Hooks>,
    agents: Option<Agents>,
    skills: Option<Arc<Skills>>,
    checks: Option<ChecksSetting>,
    approver: Approver,
    delivery: Option<Delivery>,
    holder: Option<String>,
    adjust_settings: Option<AdjustSettings>,
}

/// A method of the builder that sets one part.
macro_rules! part {
    ($(#[$doc:meta])* $name:ident: $kind:ty => $($field:ident).+) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: $kind) -> Self {
            self.$($field).+ = Some($name);
            self
        }
    };
}

impl SessionBuilder {
    /// Returns a builder of sessions on the project at `root`, with a default for each part.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            environment: None,
            settings: ResolvedSettings::default(),
            state: None,
            state_dir: None,
            connected: None,
            parts: ProjectParts::default(),
            index: None,
            policy: None,
            tools: None,
            hooks: None,
            agents: None,
            skills: None,
            checks: None,
            approver: Approver::Nobody,
            delivery: None,
            holder: None,
            adjust_settings: None,
        }
    }

    part!(
        /// Sets the variables, the home and the current directory.
        environment: Environment => environment);
    part!(
        /// Sets the state that is open already.
        state: Arc<StateDirs> => state);
    part!(
        /// Sets the directory for state; it is made if it isn't there.
        state_dir: PathBuf => state_dir);
    part!(
        /// Sets the session log.
        store: Arc<dyn Store> => parts.store);
    part!(
        /// Sets the model's client, its price and its secrets.
        connected: ConnectedModel => connected);
    part!(
        /// Sets the project's files.
        workspace: Arc<Workspace> => parts.workspace);
    part!(
        /// Sets the sandbox of commands.
        sandbox: Arc<Sandbox> => parts.sandbox);
    part!(
        /// Sets the clock.
        clock: Clock => parts.clock);
    part!(
        /// Sets the index of the project.
        index: Arc<SharedIndex> => index);
    part!(
        /// Sets the rules.
        policy: Policy => policy);
    part!(
        /// Sets the hooks.
        hooks: Hooks => hooks);
    part!(
        /// Sets the agents that the model may give tasks to.
        agents: Agents => agents);
    part!(
        /// Sets the skills that the model may load.
        skills: Arc<Skills> => skills);
    part!(
        /// Sets the checks that verify a change.
        checks: ChecksSetting => checks);
    part!(
        /// Sets the delivery: the session's working tree, and whether its changes are landed or
        /// committed.
        delivery: Delivery => delivery);
    part!(
        /// Sets the name of the session's holder, which other processes show.
        holder: String => holder);

    /// Sets the model. Its price isn't known, so a budget in dollars can't be enforced.
    #[must_use]
    pub fn model(self, model: impl Model + 'static) -> Self {
        let name = model.name();
        self.connected(ConnectedModel::from_model(Arc::new(model), name))
    }

    /// Sets the tools that the model may call; each session gets tools of its own.
    #[must_use]
    pub fn tools(mut self, tools: impl Fn() -> Registry + Send + Sync + 'static) -> Self {
        self.tools = Some(Arc::new(tools));
        self
    }

    /// Sets the configuration and the user's options for the run.
    #[must_use]
    pub fn settings(mut self, settings: ResolvedSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets the approver of tool calls. With [`Approver::Handle`], the session's watcher has to
    /// answer.
    #[must_use]
    pub fn approver(mut self, approver: Approver) -> Self {
        self.approver = approver;
        self
    }

    /// Changes the run's settings after the configuration has set them: limits, mode, the budget of
    /// the first context.
    #[must_use]
    pub fn adjust_settings(
        mut self,
        adjust_settings: impl FnOnce(&mut RunSettings) + Send + 'static,
    ) -> Self {
        self.adjust_settings = Some(Box::new(adjust_settings));
        self
    }

    /// Builds the template, without asking a person, running a command or writing a file.
    ///
    /// # Errors
    /// [`HostError`] naming the part that can't be made, and what to change.
    pub fn build(self) -> Result<SessionTemplate, HostError> {
        let environment = match self.environment {
            Some(environment) => environment,
            None => Environment::from_process().map_err(HostError::usage)?,
        };
        let root = project_root(&environment, Some(&self.root))?;
        let state = open_state(self.state, self.state_dir, &environment)?;
        let config = &self.settings.config;
        let clock = self.parts.clock.clone().unwrap_or_else(|| Clock::new(now));
        let connected = match self.connected {
            Some(connected) => connected,
            None => connect_model(config, &environment, &Cassette::default(), clock)?,
        };
        let checks = self.checks.unwrap_or_else(|| self.settings.checks());
        check_delegate_names(config, &environment).map_err(HostError::usage)?;
        let mut settings = run_settings(config, &connected, self.approver, checks)?;
        settings.prompts = Arc::new(load_prompts(&environment)?);
        settings.asked = without_secrets(&self.settings.asked);
        settings.open_files.clone_from(&self.settings.open_files);
        if let Some(adjust_settings) = self.adjust_settings {
            adjust_settings(&mut settings);
        }
        let delivery = match self.delivery {
            Some(delivery) => delivery,
            None => Delivery::new(&DeliveryOptions::default(), WorkLocation::from_settings(&self.settings))?,
        };
        let policy = match self.policy {
            Some(policy) => policy,
            None => load_default_policy(config, self.tools.as_ref(), &environment, &root)?,
        };
        let hooks = self.hooks.unwrap_or_else(|| {
            add_configured_hooks(HooksBuilder::new(), config, &environment, &root).build()
        });
        let holder = self.holder.unwrap_or_else(|| holder_name("library"));
        let agents = match self.agents {
            Some(agents) => Some(agents),
            // A recording is played back where other agents are defined.
            None if connected.is_recorded => None,
            None => Some(load_agents(&environment, &root, &AgentTrust::default())?.to_agents()),
        };
        let connector = model_connector(config, &environment, self.parts.clock.as_ref());
        let agents = agents.map(|agents| with_agent_connector(agents, connector, connected.member.as_ref()));
        let ConnectedModel { model, name, mut secrets, .. } = connected;
        secrets.extend(delegate_secrets(config, &environment));
        let engine = search_engine(&config.web, &environment)?.map(|(engine, key)| {
            secrets.extend(key);
            engine
        });
        let project = ProjectContext::open_with_parts(
            &environment,
            &state,
            &root,
            config,
            secrets,
            holder,
            self.parts,
        )?;
        settings.notes = load_notes(&state, &root)?;
        settings.token_ratios = StoredRatios::open_for_settings(&settings, &state.dir);
        let project_state = state.project_dir(&root);
        let (memory, redactor) = (NoteFile::in_directory(&project_state), Arc::clone(&project.redactor));
        let skills = self.skills.unwrap_or_else(|| Arc::new(Skills::load(&environment, &root)));
        let parts = ToolParts { root, project_state, memory, redactor, engine, skills };
        let tools = self.tools.unwrap_or_else(|| session_tools(config, &environment, &name, parts));
        let config_dir = environment.config_dir();
        Ok(SessionTemplate {
            project,
            settings,
            delivery,
            no_copy_reason: None,
            config_dir,
            model,
            index: self.index,
            tools,
            hooks,
            policy,
            agents,
        })
    }

    /// Starts a session, and shows it on `surface` until `task` is done and its work is delivered.
    ///
    /// # Errors
    /// [`HostError`] where a part can't be made, or the session or the surface fails.
    pub async fn run(
        self,
        task: impl Into<String>,
        surface: &mut dyn Surface,
    ) -> Result<RunReport, HostError> {
        let (mut template, task) = (self.build()?, task.into());
        template.check_task_size(&task)?;
        let session = template.start(new_session_id()).await?;
        let mut events = session.subscribe(EventFilter::all(), Since::Now);
        session.send(task).await?;
        let report = watch_session(&session, &mut events, surface).await?;
        session.close().await;
        drop(session);
        let delivered = template.deliver(&report, None, &CancellationToken::new()).await?;
        for envelope in &delivered.events {
            surface.show(envelope)?;
        }
        Ok(delivered.report)
    }
}

/// Returns the state directories `state`, or those in `dir`, or the user's.
fn open_state(
    state: Option<Arc<StateDirs>>,
    dir: Option<PathBuf>,
    environment: &Environment,
) -> Result<Arc<StateDirs>, HostError> {
    Ok(match (state, dir) {
        (Some(state), _) => state,
        (None, Some(dir)) => Arc::new(StateDirs::open_at(dir, environment)?),
        (None, None) => Arc::new(StateDirs::open(environment)?),
    })
}

/// Loads the policy of a session that was built without one: the administrator's, the user's and
/// the project's rules, which may name the session's own tools too.
pub(crate) fn load_default_policy(
    config: &Config,
    tools: Option<&MakeTools>,
    environment: &Environment,
    root: &Path,
) -> Result<Policy, HostError> {
    let specs = tools.map(|make| make().specs()).unwrap_or_default();
    let mut registered: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    registered.extend(config.command_tools.iter().map(|tool| tool.name.as_str()));
    Ok(load_policy(environment, root, Some(Path::new(ADMIN_POLICY)), &registered)?.policy)
}

/// Returns `agents` with a function that connects their models. Agents of a group use `member`.
fn with_agent_connector(
    agents: Agents,
    connector: Arc<ModelConnector>,
    member: Option<&AgentModel>,
) -> Agents {
    let agents = agents.with_model_connector(connector);
    match member {
        Some(member) => agents.offer_as_group(member.clone()),
        None => agents,
    }
}

/// Returns a function that connects the models that agents name, with the user's own settings.
fn model_connector(config: &Config, environment: &Environment, clock: Option<&Clock>) -> Arc<ModelConnector> {
    let (config, environment) = (config.clone(), environment.clone());
    let clock = clock.cloned().unwrap_or_else(|| Clock::new(now));
    Arc::new(move |name: &str| {
        // Another model is at another address.
        let config = Config { model: Some(name.to_owned()), base_url: None, wire: None, ..config.clone() };
        let connected = connect_model(&config, &environment, &Cassette::default(), clock.clone());
        let ConnectedModel { model, price, limits, tool_calling, .. } =
            connected.map_err(|error| error.to_string())?;
        Ok(AgentModel { model, price, limits, tool_calling })
    })
}

/// Reads the findings that the user accepts.
fn accepted_findings(config: &Config) -> Result<Vec<AcceptedFinding>, HostError> {
    let named = config.accept_findings.iter().flatten();
    named
        .map(|text| text.parse().map_err(|error| HostError::usage(format_args!("accept_findings: {error}"))))
        .collect()
}

/// Default time for measuring how many mutations the tests notice, in seconds: enough for a small
/// suite.
const DEFAULT_STRENGTH_SECONDS: f64 = 10.0;

fn strength_settings(config: &Config) -> Result<TestStrengthSettings, HostError> {
    let needs = config.verified_needs.as_deref().map(str::parse).transpose();
    Ok(TestStrengthSettings {
        needs: needs
            .map_err(|error| HostError::usage(format_args!("verified_needs: {error}")))?
            .unwrap_or_default(),
        budget: Duration::try_from_secs_f64(config.notice_budget.unwrap_or(DEFAULT_STRENGTH_SECONDS))
            .map_err(|error| HostError::usage(format_args!("notice_budget: {error}")))?,
    })
}

pub(crate) fn run_settings(
    config: &Config,
    connected: &ConnectedModel,
    approver: Approver,
    checks: ChecksSetting,
) -> Result<RunSettings, HostError> {
    check_budget(config, connected)?;
    // Who names a CLI has asked for it to be run.
    let asks = approver == Approver::Handle && parse_model_name(&connected.name).is_none();
    let default_mode = if asks { Mode::Edit } else { Mode::Auto };
    let standard = RunSettings::default();
    Ok(RunSettings {
        mode: config.mode_or(default_mode),
        approver,
        approval_timeout: config.approval_timeout,
        concurrency: match (&connected.member, config.tools_concurrency) {
            (Some(_), _) => MAX_MEMBERS,
            (None, calls) => calls
                .map_or(standard.concurrency, |calls| usize::try_from(calls).unwrap_or(standard.concurrency)),
        },
        tool_timeout: config.tools_timeout.unwrap_or(standard.tool_timeout),
        todos: (config.todos != Some(false)).then(|| TodoSettings {
            remind_every: config.todos_remind_every.unwrap_or(DEFAULT_TODO_REMINDER_INTERVAL),
            ..TodoSettings::default()
        }),
        loop_guard: config.loop_guard.unwrap_or(standard.loop_guard),
        withheld_tools: withheld_tools(&config.editing_tools, &connected.name)?
            .into_iter()
            .chain(withheld_fetch_tool(&config.web, approver))
            .collect(),
        plan_first: match config.plan_first.as_deref() {
            // A CLI plans by itself, and so do the members of a group.
            _ if parse_model_name(&connected.name).is_some() || connected.member.is_some() => {
                PlanFirst::Never
            }
            Some("never") => PlanFirst::Never,
            Some("always") => PlanFirst::Always,
            _ => PlanFirst::WhereNeeded,
        },
        max_turns: config.max_turns.unwrap_or(standard.max_turns),
        max_iterations: config.max_iterations.unwrap_or(standard.max_iterations),
        test_budget: config.test_budget.unwrap_or(standard.test_budget),
        lint_fix: config.lint_fix.unwrap_or(standard.lint_fix),
        timeout: config.timeout.unwrap_or(standard.timeout),
        budget_usd: config.budget_usd,
        price: connected.price,
        limits: connected.limits.clone(),
        checks,
        accepted_findings: accepted_findings(config)?,
        strength: strength_settings(config)?,
        needs: sandboxes::required_needs(config)?,
        instructions: config.instructions.clone(),
        project_instructions: config.project_instructions.clone(),
        tool_calling: connected.tool_calling,
        temperature: config.temperature.map(to_f32),
        top_p: config.top_p.map(to_f32),
        thinking: thinking_settings(config),
        max_output: config.max_output_tokens.map(|tokens| Tokens(u64::from(tokens))),
        index_timeout: if connected.is_recorded { None } else { standard.index_timeout },
        context_budget: config
            .context_tokens
            .map_or(standard.context_budget, |tokens| Tokens(u64::from(tokens))),
        compaction: CompactionSettings {
            threshold: config
                .compaction_threshold
                .map_or(standard.compaction.threshold, |percent| percent.min(100) as u8),
            summarize: config.compaction_summarize.unwrap_or(standard.compaction.summarize)
                && !connected.is_recorded,
        },
        today: connected.day.clone().unwrap_or_else(|| now().to_date()),
        ..standard
    })
}

/// Refuses a budget where the cost of the model can't be known.
fn check_budget(config: &Config, connected: &ConnectedModel) -> Result<(), HostError> {
    // A group's own replies are free.
    let (price, model) = match &connected.member {
        Some(member) => (member.price, member.model.name()),
        None => (connected.price, connected.name.clone()),
    };
    if config.budget_usd.is_some() && price.is_none() {
        return Err(match parse_model_name(&connected.name) {
            Some((cli, _)) => HostError::usage(format_args!(
                "--budget needs the cost, which {cli} doesn't tell; give --timeout in its place, or a CLI that tells it"
            )),
            None => HostError::unknown_price("--budget", &model),
        });
    }
    Ok(())
}

#[expect(clippy::cast_possible_truncation, reason = "sampling settings have two digits")]
fn to_f32(number: f64) -> f32 {
    number as f32
}
