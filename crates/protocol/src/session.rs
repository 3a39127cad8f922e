//! What a session is doing, what waits for it, and the list of what it has to do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::UnixMillis;

/// Whether a session works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    /// It waits for a message.
    #[default]
    Ready,
    /// A turn runs.
    Working,
    /// A turn waits for a person's decision.
    Paused,
}

/// Where in a turn a session is. Finer than [`AgentState`]; for people and for telling where a crash struck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TurnPhase {
    /// Between turns.
    #[default]
    Ready,
    /// The request is put together.
    PreModel,
    /// The model answers.
    StreamingModel,
    /// The model has called tools; they are judged.
    ToolPending,
    /// A person has to decide.
    AwaitingApproval,
    /// A call may run and is about to.
    PreTool,
    /// Effects may have begun.
    ToolExecuting,
    /// Results are put together.
    PostTool,
}

/// What kind of message waits for a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// A person's words. Wakes the session.
    User,
    /// A nudge that goes along with the next turn, wrapped so that the model doesn't answer it.
    Reminder,
    /// News of the session's own: a background command ended, another agent spoke. Goes along with the next turn.
    System,
}

/// What a reminder is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReminderCategory {
    /// Files changed outside.
    File,
    /// The list of todos.
    Todo,
    /// The run goes in circles.
    Progress,
    /// Anything else.
    #[default]
    General,
}

/// How far a todo is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Being worked on. At most one is.
    InProgress,
    /// Done.
    Completed,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Todo {
    /// Unique in the list.
    pub id: String,
    /// What is to be done; never blank.
    pub title: String,
    /// How far it is.
    pub status: TodoStatus,
    /// Who does it, where several agents work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// Anything more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// When it was added.
    #[serde(default)]
    pub created: UnixMillis,
    /// When it last changed.
    #[serde(default)]
    pub updated: UnixMillis,
}
