//! Agents: sessions with a definition, started by a person or by another session.
//!
//! An agent is a session with a [role](AgentRole): a system prompt of its own, a part of its
//! parent's tools, `complete_task`, and limits. Everything else is a session's: the log, approvals,
//! hooks, the runner and supervision. [`AgentDefinition`] describes one, [`Agents`] is the set that
//! a session may delegate to by the `task` tool, and [`start_agent`](crate::start_agent) starts one
//! for a person.

pub(crate) mod background;
pub mod channel;
pub(crate) mod complete_task;
pub(crate) mod definition;
pub(crate) mod delegation;
mod event_forwarder;
pub mod group;
mod input;
mod launcher;
mod lookup;
pub(crate) mod role;
mod schema;
pub mod session_registry;
pub(crate) mod task_tool;
mod template;

pub use definition::{
    AgentDefinition, AgentTools, DefinitionError, MAX_DESCRIPTION_CHARS, PLANNER, TypedAgent,
};
pub use delegation::{
    AgentModel, Agents, MAX_AGENT_DEPTH, MAX_AGENTS_PER_TASK, MAX_CONCURRENT_AGENTS, ModelConnector,
};
pub use input::{AgentInput, InputError, InputKind, UnknownInputKind};
pub use lookup::{agent_parent, is_agent, list_descendant_agents};
pub use role::{
    AgentLimits, AgentOutputSpec, AgentParent, AgentRole, DEFAULT_GRACE_PERIOD, DEFAULT_MAX_AGENT_TIME,
    DEFAULT_MAX_AGENT_TURNS, EditScope,
};
pub use template::TemplateError;
