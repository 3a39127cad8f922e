//! Prepares a run: resolves settings and connects the model before the project is opened.

use std::path::Path;
use std::sync::Arc;

use journeyman_agent::agents::group::Group;
use journeyman_agent::agents::{AgentDefinition, PLANNER};
use journeyman_agent::{Approver, PlanFirst};
use journeyman_context::ReadOnlyGoal;
use journeyman_protocol::{Mode, Plan};

use crate::agents::{AgentTrust, LoadedAgent, LoadedAgents, check_group, load_agents};
use crate::config::Environment;
use crate::models::{Cassette, ConnectedModel, GROUP_PREFIX, connect_model};
use crate::sessions::holder_name;
use crate::settings::{EarlierRun, ResolvedSettings, RunOptions, resolve_settings};
use crate::skills::Skills;
use crate::state::{StateDirs, now};
use crate::{
    Confirmations, Delivery, DeliveryOptions, HostError, SessionBuilder, SessionTemplate, WorkLocation,
};

/// The settings and the model of a run.
pub struct PreparedRun {
    /// The merged configuration.
    pub settings: ResolvedSettings,
    /// The person or program that answers questions about tool calls.
    pub approver: Approver,
    /// The agents, and the files that were left out.
    pub agents: LoadedAgents,
    /// The agent that the run is.
    pub agent: Option<AgentDefinition>,
    /// The plan that the first task is to be carried out by.
    pub plan: Option<Plan>,
    /// The answer that is asked for in mode plan.
    pub read_only_goal: ReadOnlyGoal,
    skills: Arc<Skills>,
    connected: ConnectedModel,
}

impl PreparedRun {
    /// Resolves the settings and connects the model. A person answers questions if there are
    /// `prompts`.
    ///
    /// # Errors
    /// [`HostError::Usage`] for a wrong option or configuration.
    pub fn new(
        environment: &Environment,
        root: &Path,
        options: &RunOptions,
        earlier: Option<&EarlierRun>,
        prompts: Option<&dyn Confirmations>,
    ) -> Result<Self, HostError> {
        let mut settings = resolve_settings(environment, root, options, earlier, prompts)?;
        let skills = Skills::load(environment, root);
        settings.warnings.extend(skills.problems.iter().cloned());
        let trust = AgentTrust { this_run: options.trust_project, prompts };
        let agents = load_agents(environment, root, &trust)?;
        let agent = match &options.agent {
            Some(name) => Some(agents.find(name)?.definition.clone()),
            None if options.plans && settings.config.mode == Some(Mode::Plan) => {
                Some(agents.find(PLANNER)?.definition.clone())
            }
            None => None,
        };
        if let Some(model) = agent.as_ref().and_then(|agent| agent.model.clone())
            && options.model.is_none()
        {
            settings.config.model = Some(model);
        }
        let cassette =
            Cassette { record: options.record.clone(), replay: options.replay.clone(), day: now().to_date() };
        let connected =
            connect_model(&settings.config, environment, &cassette, journeyman_agent::Clock::new(now))?;
        let approver = if prompts.is_some() { Approver::Handle } else { Approver::Nobody };
        let (plan, read_only_goal) = (None, ReadOnlyGoal::default());
        let skills = Arc::new(skills);
        Ok(Self { settings, approver, agents, agent, plan, read_only_goal, skills, connected })
    }

    /// Prepares the run of a group of agents, each a member of one session.
    ///
    /// # Errors
    /// As [`PreparedRun::new`], and [`HostError::Usage`] for a group that can't be run.
    pub fn for_group(
        environment: &Environment,
        root: &Path,
        group: &Group,
        options: RunOptions,
        prompts: Option<&dyn Confirmations>,
    ) -> Result<Self, HostError> {
        let model = format!("{GROUP_PREFIX}{}", options.model.unwrap_or_default());
        let options = RunOptions { model: Some(model), ..options };
        let mut prepared = Self::new(environment, root, &options, None, prompts)?;
        if let Some(mode) = check_group(group, &prepared.agents)? {
            prepared.settings.config.mode.get_or_insert(mode);
        }
        Ok(prepared)
    }

    /// Returns the sentences that a person should read before the run begins.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.settings.warnings.clone();
        warnings.extend(self.agents.problems.iter().cloned());
        let own = self.agent.as_ref().and_then(|agent| self.agents.find(&agent.name).ok());
        match (own.map(LoadedAgent::ignored_fields_notice), self.agents.ignored_fields_notices().count()) {
            (Some(notice), _) => warnings.extend(notice),
            (None, 0) => {}
            (None, 1) => {
                warnings.push("1 agent of another product is used in part, as jm agents says".to_owned())
            }
            (None, count) => {
                warnings.push(format!("{count} agents of other products are used in part, as jm agents says"))
            }
        }
        warnings
    }

    /// Returns the delivery of a new session's work.
    ///
    /// # Errors
    /// [`HostError::Usage`] for options that contradict each other or the configuration.
    pub fn plan_delivery(&self, options: &DeliveryOptions) -> Result<Delivery, HostError> {
        Delivery::new(options, WorkLocation::from_settings(&self.settings))
    }

    /// Adds secrets to redact.
    pub fn add_secrets(&mut self, secrets: impl IntoIterator<Item = String>) {
        self.connected.secrets.extend(secrets);
    }

    /// Opens the project. `command` is part of the holder's name.
    ///
    /// # Errors
    /// [`HostError`] naming the part that can't be made.
    pub fn into_template(
        self,
        environment: &Environment,
        state: &Arc<StateDirs>,
        root: &Path,
        command: &str,
        delivery: Delivery,
    ) -> Result<SessionTemplate, HostError> {
        let (plan, goal) = (self.plan, self.read_only_goal);
        let builder = match self.connected.is_recorded {
            // A recording may be replayed on a machine with other agents.
            true => SessionBuilder::new(root),
            false => SessionBuilder::new(root).agents(self.agents.to_agents()),
        };
        builder
            .adjust_settings(move |settings| {
                settings.read_only_goal = goal;
                if let Some(plan) = plan {
                    settings.plan_first = PlanFirst::Given(Box::new(plan));
                }
            })
            .environment(environment.clone())
            .state(Arc::clone(state))
            .skills(self.skills)
            .settings(self.settings)
            .connected(self.connected)
            .approver(self.approver)
            .delivery(delivery)
            .holder(holder_name(command))
            .build()
    }
}
