//! The outcome of a run, and its exit code.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The end of a run. Each variant has its own exit code of `jm run`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// Files changed (or none had to) and every check that ran passed, at least one of them.
    Verified,
    /// The run was a question: it answered, in the mode that changes nothing.
    Answered,
    /// The run made a plan, which it does not carry out.
    Planned,
    /// The run could not go on.
    Error,
    /// The run finished, and checks still fail.
    ChecksFail,
    /// The run finished, and no check verified its changes.
    Unverified,
    /// The limit of turns, time or money was reached.
    Limit,
    /// The run needed a permission, and nobody could be asked.
    PermissionNeeded,
    /// The run changed nothing and ended in a question, whose answer it needs.
    NeedsAnswer,
    /// The change is verified and could not land: the user changed the same lines, or the checks
    /// fail on the merge.
    Conflict,
    /// The user stopped the run.
    Interrupted,
}

impl RunOutcome {
    /// Returns the exit code of `jm run`. 2 is a usage error and never an outcome.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Verified | Self::Answered => 0,
            Self::Error => 1,
            Self::ChecksFail => 3,
            Self::Unverified => 4,
            Self::Limit => 5,
            Self::PermissionNeeded => 6,
            Self::Conflict => 9,
            Self::NeedsAnswer => 10,
            Self::Planned => 11,
            Self::Interrupted => 130,
        }
    }
}
