//! Tool calls: their states, decisions and audit trail.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CallId, UnixMillis, Verdict};

/// The state of a tool call. `Executing` is on disk before the effect begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// The model requested the call.
    Pending,
    /// A person has to decide.
    ApprovalRequired,
    /// A person, a rule or the mode allowed the call.
    Approved,
    /// A person, a rule, a hook or the mode denied the call.
    Denied,
    /// The call's effect may have begun.
    Executing,
    /// The call succeeded.
    Completed,
    /// The call failed; the result says how.
    Failed,
    /// The call was cut off by a crash or an interrupt, and closed with an error result.
    Interrupted,
}

impl CallState {
    /// Returns true if no other state can follow.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Denied | Self::Completed | Self::Failed | Self::Interrupted)
    }
}

/// A change of a call's state, as the session log records it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallTransition {
    /// The call.
    pub call: CallId,
    /// The tool's name.
    pub tool: String,
    /// The state that the call enters.
    pub state: CallState,
    /// The reason, for approvals, denials and interruptions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The decider, for approvals and denials by anybody but policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The verdict of the permission policy, on the first step after `Pending`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// The decision about a call that somebody was asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    /// True if the call may run; absent while the question is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<bool>,
    /// The decider: `user`, `headless`, `timeout`, `hook`, `interrupt`, or a surface's own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The time of the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<UnixMillis>,
    /// The decider's comment, which the model gets too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A state of a call and the time at which the call entered it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallStep {
    /// The state.
    pub state: CallState,
    /// The time at which the call entered the state.
    pub at: UnixMillis,
    /// The reason, for approvals, denials and interruptions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The record of a call: the fold over its [`CallTransition`]s, with an audit trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallRecord {
    /// The call.
    pub id: CallId,
    /// The tool's name.
    pub tool: String,
    /// The newest state.
    pub state: CallState,
    /// The decision, if anybody was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// All states that the call entered, in order.
    pub trail: Vec<CallStep>,
}

impl CallRecord {
    /// Returns the earliest time at which the call's effect may have begun.
    #[must_use]
    pub fn started_at(&self) -> Option<UnixMillis> {
        self.trail.iter().find(|step| step.state == CallState::Executing).map(|step| step.at)
    }
}
