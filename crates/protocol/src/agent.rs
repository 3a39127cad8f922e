//! Reports on agents that ended: sessions with a definition, such as a reviewer.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The reason for which an agent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Termination {
    /// The agent called `complete_task` with valid output.
    Goal,
    /// The time of its definition was over.
    Timeout,
    /// The model requests of its definition were used up.
    MaxTurns,
    /// A person, or the session that started the agent, stopped it.
    Aborted,
    /// The agent could not go on: an error, a budget, or no progress.
    Error,
    /// The model stopped calling tools and never called `complete_task`.
    #[serde(rename = "ERROR_NO_COMPLETE_TASK_CALL")]
    NoCompleteTaskCall,
}

impl Termination {
    /// Returns the name of the reason, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Goal => "GOAL",
            Self::Timeout => "TIMEOUT",
            Self::MaxTurns => "MAX_TURNS",
            Self::Aborted => "ABORTED",
            Self::Error => "ERROR",
            Self::NoCompleteTaskCall => "ERROR_NO_COMPLETE_TASK_CALL",
        }
    }

    /// Returns true if the agent gets one last turn before it ends for this reason.
    #[must_use]
    pub fn is_recoverable(self) -> bool {
        matches!(self, Self::Timeout | Self::MaxTurns | Self::NoCompleteTaskCall)
    }
}

impl fmt::Display for Termination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The end of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentReport {
    /// The name of the agent's definition.
    pub name: String,
    /// The reason for which the agent ended.
    pub termination: Termination,
    /// The limit that the agent had reached before it completed its task in its last turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered: Option<Termination>,
    /// The output, as the definition's schema says; absent unless the agent reached its goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}
