//! A task's outcome, before the report is built.

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

    /// Returns the end of a task that the user stopped.
    pub(crate) fn interrupted() -> Self {
        Self::new(RunOutcome::Interrupted, "interrupted")
    }
}
