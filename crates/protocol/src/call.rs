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
    Interrupted,
}

impl CallState {
    /// Whether nothing can follow.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Denied | Self::Completed | Self::Failed | Self::Interrupted)
    }
}

/// One step of a call's life, as the log holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallTransition {
    /// The call.
    pub call: CallId,
    /// The tool's name.
    pub tool: String,
    /// The state it enters.
    pub state: CallState,
    /// Why, for approvals, denials and seals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Who decided, for approvals and denials by anybody but policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What policy said, on the first step after `Pending`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// Who decided about a call, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    /// Whether it may run; absent while the question is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<bool>,
    /// Who decided: `user`, `headless`, `timeout`, `hook`, `interrupt`, or a surface's own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<UnixMillis>,
    /// What they said; the model is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A state of a call and when it was entered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallStep {
    /// The state.
    pub state: CallState,
    /// When.
    pub at: UnixMillis,
    /// Why, for approvals, denials and seals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What the log knows of a call: the fold over its [`CallTransition`]s, with its audit trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallRecord {
    /// The call.
    pub id: CallId,
    /// The tool's name.
    pub tool: String,
    /// The newest state.
    pub state: CallState,
    /// Who was asked, where anybody was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// Each state with the time it was entered.
    pub trail: Vec<CallStep>,
}

impl CallRecord {
    /// When its effect may have begun.
    #[must_use]
    pub fn started_at(&self) -> Option<UnixMillis> {
        self.entered(CallState::Executing)
    }

    /// When it ended.
    #[must_use]
    pub fn ended(&self) -> Option<UnixMillis> {
        self.trail.last().filter(|step| step.state.is_final()).map(|step| step.at)
    }

    fn entered(&self, state: CallState) -> Option<UnixMillis> {
        self.trail.iter().find(|step| step.state == state).map(|step| step.at)
    }
}
