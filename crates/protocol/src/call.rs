//! A tool call's life.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CallId, UnixMillis, Verdict};

/// Where a call is. `Executing` is on disk before the effect begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// The model asked for it.
    Pending,
    /// A person has to decide.
    ApprovalRequired,
    /// A person, a rule or the mode said yes.
    Approved,
    /// A person, a rule, a hook or the mode said no.
    Denied,
    /// Its effect may have begun.
    Executing,
    /// It ended well.
    Completed,
    /// It ended badly; the result says how.
    Failed,
    /// It was cut off (a crash, an interrupt) and closed with an error result.
    Sealed,
}

impl CallState {
    /// Whether nothing can follow.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Denied | Self::Completed | Self::Failed | Self::Sealed)
    }
}

/// One step of a call's life, as the log holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Transition {
    /// The call.
    pub call: CallId,
    /// The tool's name.
    pub tool: String,
    /// The state it enters.
    pub state: CallState,
    /// Why, for approvals, denials and seals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What policy said, on the first step after `Pending`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// What the log knows of a call: the fold over its [`Transition`]s.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallRecord {
    /// The call.
    pub id: CallId,
    /// The tool's name.
    pub tool: String,
    /// The newest state.
    pub state: CallState,
    /// Each state with the time it was entered.
    pub trail: Vec<(CallState, UnixMillis)>,
}
