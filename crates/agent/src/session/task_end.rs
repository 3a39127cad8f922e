//! A task's outcome, before the report is built.

use journeyman_protocol::{RunOutcome, Termination};

use crate::AgentError;

/// The outcome of a task, with one line for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskEnd {
    pub(crate) outcome: RunOutcome,
    pub(crate) summary: String,
    /// True if the request no longer fits the model's context.
    pub(crate) context_exceeded: bool,
    /// The reason for which an agent ends, where the outcome doesn't tell.
    pub(crate) termination: Option<Termination>,
    /// The limit after which an agent completed its task in its last turn.
    pub(crate) recovered: Option<Termination>,
}

impl TaskEnd {
    pub(crate) fn new(outcome: RunOutcome, summary: impl Into<String>) -> Self {
        Self { outcome, summary: summary.into(), context_exceeded: false, termination: None, recovered: None }
    }

    /// Returns the end with the reason for which an agent ends.
    pub(crate) fn with_termination(self, reason: Termination) -> Self {
        Self { termination: Some(reason), ..self }
    }

    /// Returns the end of a task that an error stopped.
    pub(crate) fn failed(error: &AgentError) -> Self {
        let context_exceeded = error.is_context_exceeded();
        let advice = match context_exceeded {
            true => "; begin a new session with less in it, or go on with a model that has a larger context",
            false => "",
        };
        Self { context_exceeded, ..Self::new(RunOutcome::Error, format!("{error}{advice}")) }
    }

    /// Returns the end of a task that the user stopped.
    pub(crate) fn interrupted() -> Self {
        Self::new(RunOutcome::Interrupted, "interrupted")
    }
}
