//! How a task ended, before the report puts it in words.

use journeyman_protocol::RunOutcome;

/// The outcome of a task, with one line for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskEnd {
    pub(crate) outcome: RunOutcome,
    pub(crate) summary: String,
}

impl TaskEnd {
    pub(crate) fn new(outcome: RunOutcome, summary: impl Into<String>) -> Self {
        Self { outcome, summary: summary.into() }
    }

    /// The user stopped the task.
    pub(crate) fn interrupted() -> Self {
        Self::new(RunOutcome::Interrupted, "interrupted")
    }
}
