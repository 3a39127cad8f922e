//! A call before its execution: its effects, policy's verdict, and the question to a person.

use std::time::Duration;

use journeyman_policy::Rules;
use journeyman_protocol::{Effects, Enforcement, Mode, RelPath, ToolUse, Verdict};
use journeyman_workspace::OverlayRun;

use crate::agents::complete_task::COMPLETE_TASK;
use crate::calls::finished_call::FinishedCall;

/// A call that may run.
pub(crate) struct ApprovedCall {
    pub(crate) call: ToolUse,
    pub(crate) effects: Effects,
    pub(crate) read_only: bool,
    /// True if the call may start an agent, which may change files by calls of its own.
    pub(crate) starts_agents: bool,
    /// The time limit.
    pub(crate) time_limit: Duration,
    /// Notes of hooks and people to add to the result.
    pub(crate) context: Vec<String>,
    /// The verdict that applies if an overlay preview shows no destructive changes. `None` for a
    /// call without a preview.
    pub(crate) preview: Option<Box<JudgedCall>>,
    /// The layer of the overlay preview.
    pub(crate) layer: Option<OverlayRun>,
}

impl ApprovedCall {
    /// Returns a copy of the call to ask about.
    pub(crate) fn copy_for_question(&self) -> Self {
        let (call, effects) = (self.call.clone(), self.effects.clone());
        let (read_only, starts_agents, limit) = (self.read_only, self.starts_agents, self.time_limit);
        Self {
            call,
            effects,
            read_only,
            starts_agents,
            time_limit: limit,
            context: Vec::new(),
            preview: None,
            layer: None,
        }
    }

    /// Returns true if the calls must not overlap because one may change files that the other reads
    /// or changes.
    pub(crate) fn conflicts_with(&self, other: &Self) -> bool {
        if self.read_only && other.read_only {
            // The first output of an agent counts, so these run one after the other.
            return self.call.name == COMPLETE_TASK && other.call.name == COMPLETE_TASK;
        }
        let anywhere = |ready: &Self| {
            ready.effects.command.is_some()
                || (ready.effects.writes.is_empty() && ready.effects.reads.is_empty())
        };
        if anywhere(self) || anywhere(other) {
            return true;
        }
        let touches = |ready: &Self, path: &RelPath| {
            ready.effects.reads.contains(path) || ready.effects.writes.contains(path)
        };
        self.effects.writes.iter().any(|path| touches(other, path))
            || other.effects.writes.iter().any(|path| touches(self, path))
    }
}

/// The result of authorizing a call.
pub(crate) enum Authorization {
    /// The call may run.
    Run(ApprovedCall),
    /// A person decides.
    Ask(ApprovedCall, PermissionQuestion),
    /// The call has its result already.
    Done(FinishedCall),
}

/// A call that was refused, by a person or because no one answered.
pub(crate) struct RefusedCall {
    pub(crate) call: ToolUse,
    pub(crate) finished: FinishedCall,
}

/// The verdict of policy on a call, with the inputs of the judgement.
#[derive(Clone)]
pub(crate) struct JudgedCall {
    pub(crate) verdict: Verdict,
    /// The mode in which the call was judged.
    pub(crate) mode: Mode,
    /// The sandbox guarantees for the call, if a sandbox is available.
    pub(crate) sandbox: Option<Enforcement>,
}

/// A question to a person.
pub(crate) struct PermissionQuestion {
    pub(crate) judged: JudgedCall,
    /// The rules that a lasting answer would add; `None` if no lasting answer is offered.
    pub(crate) rules: Option<Rules>,
    /// The changes that the call has made in a layer; `None` if they are to be computed.
    pub(crate) diff: Option<String>,
}
