//! Delegation of tasks to agents: the parts that a session shares with its agents, and the trait
//! that launches them.
//!
//! An agent is a session like any other: the same actor, log, approvals, runner and supervision,
//! with a [role](super::role::AgentRole). The tools know only [`Delegate`]; the
//! [executor](super::executor) behind it starts sessions, which have those tools.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use journeyman_model::{Model, Price};
use journeyman_policy::Policy;
use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{AgentReport, CallId, ModelLimits, SessionId};
use journeyman_sandbox::{Sandbox, Toolchains};
use journeyman_store::Store;
use journeyman_tools::{Registry, SharedIndex, ToolContext};
use journeyman_workspace::Workspace;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::background::BackgroundAgents;
use super::definition::AgentDefinition;
use super::group::Membership;
use super::role::EditScope;
use crate::Clock;
use crate::approval::LastingAnswers;
use crate::hooks::Hooks;
use crate::session::budget::SharedBudget;
use crate::session::inbox::Inbox;
use crate::session::settings::RunSettings;
use crate::session::shared_state::SessionShared;
use crate::transcript::log::LiveSink;

/// Maximum depth of agents below the session that a person started: an agent's agent may have one
/// of its own.
pub const MAX_AGENT_DEPTH: usize = 3;
/// Maximum agents of one session that work at once: as many requests as the smallest plans of
/// providers allow.
pub const MAX_CONCURRENT_AGENTS: usize = 4;
/// Maximum agents of one task, with their own agents. More is a model in a loop.
pub const MAX_AGENTS_PER_TASK: usize = 256;

/// A model that a definition names, connected.
#[derive(Clone)]
pub struct AgentModel {
    /// The client.
    pub model: Arc<dyn Model>,
    /// The price, if known.
    pub price: Option<Price>,
    /// The limits.
    pub limits: ModelLimits,
    /// True if the model takes tool calls.
    pub tool_calling: bool,
}

/// Connects the model of a definition by its name.
pub type ModelConnector = dyn Fn(&str) -> Result<AgentModel, String> + Send + Sync;

/// The kind of tools with which a session's model starts agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AgentToolKind {
    /// One `task` tool, which takes the name of an agent.
    Task,
    /// A tool for each agent.
    Tools,
    /// The tool that starts members of a group.
    Group,
}

/// The agents that a session may give tasks to. [`Agents::new`] makes them.
#[derive(Clone)]
pub struct Agents {
    pub(super) definitions: Arc<Vec<AgentDefinition>>,
    pub(crate) delegate: Arc<dyn AgentLauncher>,
    pub(super) models: Option<Arc<ModelConnector>>,
    /// The model of definitions that name none, where it isn't the session's.
    pub(super) model: Option<AgentModel>,
    pub(super) offered: AgentToolKind,
}

impl Agents {
    /// Connects the models that definitions name. Without this, such an agent can't run.
    #[must_use]
    pub fn with_model_connector(mut self, connect: Arc<ModelConnector>) -> Self {
        self.models = Some(connect);
        self
    }

    /// Offers each agent as a tool of its own, named after the agent and with its inputs as
    /// arguments, in place of the one `task` tool.
    #[must_use]
    pub fn offer_as_tools(mut self) -> Self {
        self.offered = AgentToolKind::Tools;
        self
    }

    /// Lets a [`GroupDirector`](super::group::GroupDirector) start the agents as members of a
    /// group. `model` is that of definitions that name none.
    #[must_use]
    pub fn offer_as_group(mut self, model: AgentModel) -> Self {
        self.offered = AgentToolKind::Group;
        self.model = Some(model);
        self
    }

    /// Returns true if the agents are members of a group.
    pub(crate) fn is_group(&self) -> bool {
        self.offered == AgentToolKind::Group
    }

    /// Returns the definitions, in order.
    #[must_use]
    pub fn definitions(&self) -> &[AgentDefinition] {
        &self.definitions
    }

    /// Returns the definition of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&AgentDefinition> {
        self.definitions.iter().find(|definition| definition.name == name)
    }
}

/// Starts agents and runs them.
pub(crate) trait AgentLauncher: Send + Sync {
    /// Runs an agent to its end. Cancelling the call of `task` stops it.
    ///
    /// # Errors
    /// A sentence for the model if no agent was started.
    fn run<'a>(&'a self, task: DelegatedTask<'a>) -> BoxFuture<'a, Result<AgentEnd, String>>;

    /// Starts an agent in the background, and returns its session. The agent's result is sent to
    /// the parent as a message.
    ///
    /// # Errors
    /// As for [`Delegate::run`].
    fn start<'a>(
        &'a self,
        parent: &'a Arc<DelegatingSession>,
        task: BackgroundTask,
    ) -> BoxFuture<'a, Result<SessionId, String>>;
}

/// A task for an agent that works in the background.
pub(crate) struct BackgroundTask {
    pub(crate) definition: AgentDefinition,
    pub(crate) inputs: Map<String, Value>,
    pub(crate) context: AgentTaskContext,
}

/// A task for an agent.
pub(crate) struct DelegatedTask<'a> {
    pub(crate) parent: &'a DelegatingSession,
    pub(crate) definition: &'a AgentDefinition,
    pub(crate) inputs: Map<String, Value>,
    pub(crate) context: AgentTaskContext,
    /// The agent's place in a group, if it has one.
    pub(crate) membership: Option<Membership>,
}

/// The environment of an agent, taken from the tool call that gives the task.
pub(crate) struct AgentTaskContext {
    pub(crate) call: CallId,
    pub(crate) cancel: CancellationToken,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) toolchains: Arc<Toolchains>,
}

impl From<&ToolContext> for AgentTaskContext {
    fn from(context: &ToolContext) -> Self {
        Self {
            call: context.call.clone(),
            cancel: context.cancel.clone(),
            workspace: Arc::clone(&context.workspace),
            index: Arc::clone(&context.index),
            sandbox: Arc::clone(&context.sandbox),
            toolchains: Arc::clone(&context.toolchains),
        }
    }
}

/// The end of an agent.
pub(crate) struct AgentEnd {
    pub(crate) session: SessionId,
    pub(crate) report: AgentReport,
    /// One line about the end.
    pub(crate) summary: String,
}

/// The parts of a session that its agents work with. Agents get no more than the session has: its
/// tools, rules, mode, hooks and budget.
pub(crate) struct DelegatingSession {
    pub(crate) session: SessionId,
    /// The session that a person started.
    pub(crate) root: SessionId,
    /// The names of the agents down to the session.
    pub(crate) path: Vec<String>,
    /// The agents that it may give tasks to.
    pub(crate) agents: Agents,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) policy: Policy,
    pub(crate) lasting_answers: LastingAnswers,
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) hooks: Hooks,
    pub(crate) clock: Clock,
    pub(crate) programs: Arc<journeyman_verify::ProgramLookup>,
    pub(crate) holder: String,
    pub(crate) settings: RunSettings,
    /// The session's tools, without those that start agents.
    pub(crate) tools: Registry,
    /// The files that the edit tools of the session and of its agents may change.
    pub(crate) edits: EditScope,
    pub(crate) shared: Arc<SessionShared>,
    pub(crate) live: LiveSink,
    /// Permits of agents that work at once.
    pub(crate) permits: Semaphore,
    /// The agents that work in the background.
    pub(crate) background: BackgroundAgents,
    /// Takes the results of the background agents.
    pub(crate) inbox: Arc<Inbox>,
    /// The cost and the number of agents of the task, with the cost and the agents of its agents.
    pub(crate) budget: Arc<SharedBudget>,
    /// The agents that worked when the program ended, by the calls that gave them their tasks. They
    /// continue when these calls run again.
    pub(crate) unfinished: Mutex<HashMap<CallId, SessionId>>,
}

impl DelegatingSession {
    /// Sets the agents that continue when the calls that gave them their tasks run again.
    pub(crate) fn set_unfinished_agents(&self, unfinished: HashMap<CallId, SessionId>) {
        *self.unfinished.lock().unwrap_or_else(PoisonError::into_inner) = unfinished;
    }

    /// Takes the agent that worked on the task of this call when the program ended.
    pub(crate) fn take_unfinished_agent(&self, call: &CallId) -> Option<SessionId> {
        self.unfinished.lock().unwrap_or_else(PoisonError::into_inner).remove(call)
    }
}

/// The parts that a session shares with its agents. Dropping this value aborts the background
/// agents.
pub(crate) struct DelegationGuard(Arc<DelegatingSession>);

impl DelegationGuard {
    pub(crate) fn new(lent: Arc<DelegatingSession>) -> Self {
        Self(lent)
    }
}

impl std::ops::Deref for DelegationGuard {
    type Target = DelegatingSession;

    fn deref(&self) -> &DelegatingSession {
        &self.0
    }
}

impl Drop for DelegationGuard {
    fn drop(&mut self) {
        self.0.background.abort();
    }
}
