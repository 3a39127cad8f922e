//! Input and output types of hooks.

use std::path::PathBuf;
use std::sync::Arc;

use journeyman_protocol::{Mode, RelPath, ResultPart, SandboxNeeds, SessionId};
use journeyman_sandbox::{ProjectCopy, Sandbox, Toolchains};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// The context in which a hook runs.
#[derive(Debug, Clone)]
pub struct HookContext {
    /// The session.
    pub session: SessionId,
    /// The project's root; commands run there.
    pub root: PathBuf,
    /// The permission mode of the session.
    pub mode: Mode,
    /// A file with the conversation, if there is one.
    pub transcript: Option<PathBuf>,
    /// Cancels running hooks. Hooks at the end of a session need a token of their own.
    pub cancel: CancellationToken,
    /// The sandbox for confined commands. Without it they don't run.
    pub sandbox: Option<HookSandbox>,
    /// The session's changes that nobody has seen.
    pub unseen: UnseenChanges,
}

/// The sandbox for a session's hooks.
#[derive(Debug, Clone)]
pub struct HookSandbox {
    /// The sandbox that runs the hooks.
    pub sandbox: Arc<Sandbox>,
    /// The toolchains that the hooks see.
    pub toolchains: Arc<Toolchains>,
    /// The needs that must be met besides confined reads and writes.
    pub needs: SandboxNeeds,
    /// The copy of the project that is mounted at the root, if there is one.
    pub base: Option<ProjectCopy>,
    /// The tree's place on the host.
    pub reach: PathBuf,
    /// Paths that no hook may change. With `None`, hooks may change nothing in the tree.
    pub protected: Option<Vec<RelPath>>,
}

/// The session's changes that no person has seen. No program outside the sandbox may run or obey
/// them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnseenChanges {
    /// The changed files.
    pub files: Vec<RelPath>,
    /// Directories of programs that commands may have changed, and whose changes nothing compares.
    pub directories: Vec<RelPath>,
    /// The reason why the changes could not be determined.
    pub unknown: Option<String>,
}

/// Messages of hooks besides a decision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookNotes {
    /// Context for the model.
    pub context: Vec<String>,
    /// Warnings for people about failures of a hook.
    pub warnings: Vec<String>,
    /// Messages for people from a hook.
    pub notices: Vec<String>,
    /// The reason why the run must stop here, if a hook stops it.
    pub stop: Option<String>,
}

/// The decision about a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum PreToolDecision {
    /// The policy decides.
    #[default]
    Go,
    /// The hook answers a question that policy would ask below level 3, so no person is asked.
    /// Denials and level 3, which always asks, are unaffected.
    Approve {
        /// The reason.
        reason: String,
    },
    /// A person decides, even if policy would allow the call.
    Ask {
        /// The reason, for the person.
        reason: String,
    },
    /// The call doesn't run.
    Deny {
        /// The reason, for the model.
        reason: String,
    },
    /// The call doesn't run and gets this result. Only closures can return a result.
    Result {
        /// The result's text.
        text: String,
        /// True if the result is a failure.
        is_error: bool,
    },
}

/// A closure's answer before a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PreToolAnswer {
    /// The decision about the call.
    pub decision: PreToolDecision,
    /// The arguments that replace the call's arguments.
    pub input: Option<Value>,
    /// Context for the model.
    pub context: Vec<String>,
}

impl From<PreToolDecision> for PreToolAnswer {
    fn from(decision: PreToolDecision) -> Self {
        Self { decision, ..Self::default() }
    }
}

/// The combined answer of all hooks before a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PreToolResult {
    /// The decision about the call.
    pub decision: PreToolDecision,
    /// Amended arguments in the tool's own names, neither checked against its schema nor authorized
    /// yet.
    pub input: Option<Value>,
    /// The hooks' messages.
    pub notes: HookNotes,
}

/// A closure's answer before an action other than a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateDecision {
    /// The action happens.
    Go {
        /// Context for the model.
        context: Vec<String>,
    },
    /// The action doesn't happen.
    Deny {
        /// The reason.
        reason: String,
    },
}

impl GateDecision {
    /// The action happens, without context for the model.
    pub const GO_WITHOUT_CONTEXT: Self = Self::Go { context: Vec::new() };
}

/// The combined answer of all hooks before an action other than a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GateResult {
    /// The reason why the action is denied, if it is.
    pub denied: Option<String>,
    /// The hooks' messages.
    pub notes: HookNotes,
}

/// The decision at the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TurnEndDecision {
    /// The turn ends.
    #[default]
    Stop,
    /// The model continues to work. The caller limits the number of repetitions.
    GoOn {
        /// The remaining work, for the model.
        reason: String,
    },
}

/// The combined answer of all hooks at the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TurnEndResult {
    /// The decision about the turn.
    pub decision: TurnEndDecision,
    /// The hooks' messages.
    pub notes: HookNotes,
}

/// A call's result, which hooks may change.
#[derive(Debug, Clone, PartialEq)]
pub struct HookCallResult {
    /// The parts of the result, in order.
    pub parts: Vec<ResultPart>,
    /// True if the result is a failure.
    pub is_error: bool,
}

impl HookCallResult {
    /// Returns the text of the result, without images.
    #[must_use]
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self
            .parts
            .iter()
            .filter_map(|part| if let ResultPart::Text { text } = part { Some(text.as_str()) } else { None })
            .collect();
        texts.join("\n")
    }

    /// Replaces the texts of the result with `text`. Images stay.
    pub fn set_text(&mut self, text: impl Into<String>) {
        self.parts.retain(|part| matches!(part, ResultPart::Image(_)));
        self.parts.insert(0, ResultPart::Text { text: text.into() });
    }
}

/// The way in which a session begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionStartKind {
    /// The session is new.
    Startup,
    /// The session continues after a restart, or starts from a fork.
    Resume,
}
