//! The state of a session, the messages that wait for it, and its list of todos.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::UnixMillis;

/// The state of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    /// The session waits for a message.
    #[default]
    Ready,
    /// The session runs a turn.
    Working,
    /// The session's turn waits for a person's decision.
    Paused,
}

/// The phase of a session's turn. Finer than [`AgentState`]; shows people where a session is or was
/// cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TurnPhase {
    /// The session is between turns.
    #[default]
    Ready,
    /// The request is built.
    PreModel,
    /// The model's reply is streamed.
    StreamingModel,
    /// The model requested tool calls, which are judged.
    ToolPending,
    /// A person has to decide.
    AwaitingApproval,
    /// A call was allowed and is about to run.
    PreTool,
    /// A call runs; its effects may have begun.
    ToolExecuting,
    /// The results of the calls are collected.
    PostTool,
}

/// The kind of a message that waits for a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// A message of a person, which starts a turn.
    User,
    /// A reminder, sent with the next turn and marked so that the model does not answer it.
    Reminder,
    /// A notice of the session itself, such as the end of a background command. Sent with the next
    /// turn.
    System,
}

/// The subject of a reminder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReminderCategory {
    /// Files that were changed from outside the session.
    File,
    /// The list of todos.
    Todo,
    /// The run makes no progress.
    Progress,
    /// The end of an agent that worked in the background.
    Agent,
    /// A text that the user pinned for the whole session.
    Pinned,
    /// A text that is no longer pinned.
    Unpinned,
    /// Any other subject.
    #[default]
    General,
}

/// The status of a todo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// In progress. At most one todo has this status.
    InProgress,
    /// Done.
    Completed,
}

/// An entry of the session's list of todos.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Todo {
    /// The todo's id, unique in the list.
    pub id: String,
    /// The task; never blank.
    pub title: String,
    /// The todo's status.
    pub status: TodoStatus,
    /// The agent that does it, if several agents work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// Additional notes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// The time at which the todo was added.
    #[serde(default)]
    pub created: UnixMillis,
    /// The time of the last change.
    #[serde(default)]
    pub updated: UnixMillis,
}
