//! What hooks are told, and what they may answer.

use std::path::PathBuf;
use std::sync::Arc;

use journeyman_protocol::{Mode, RelPath, ResultPart, SandboxNeeds, SessionId};
use journeyman_sandbox::{Base, Sandbox, Toolchains};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Where a hook runs.
#[derive(Debug, Clone)]
pub struct HookContext {
    /// The session.
    pub session: SessionId,
    /// The project's root; commands run there.
    pub root: PathBuf,
    /// What is allowed without asking.
    pub mode: Mode,
    /// A file with the conversation, where there is one.
    pub transcript: Option<PathBuf>,
    /// Stops what runs. The end of a session needs one of its own.
    pub cancel: CancellationToken,
    /// Where confined commands run; without it they don't.
    pub sandbox: Option<HookSandbox>,
    /// The session's changes that nobody has seen.
    pub unseen: Unseen,
}

/// The sandbox for a session's hooks.
#[derive(Debug, Clone)]
pub struct HookSandbox {
    /// It runs them.
    pub sandbox: Arc<Sandbox>,
    /// The toolchains that they see.
    pub toolchains: Arc<Toolchains>,
    /// The needs that must be met besides confined reads and writes.
    pub needs: SandboxNeeds,
    /// The copy of the project that stands at the root, where there is one.
    pub base: Option<Base>,
    /// The tree's place on the host.
    pub reach: PathBuf,
    /// Paths that no hook may change; `None` where hooks may change nothing of the tree.
    pub protected: Option<Vec<RelPath>>,
}

/// The session's changes that no person has seen: no program outside of the sandbox may run or obey it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unseen {
    /// Files.
    pub files: Vec<RelPath>,
    /// Directories with programs whose changes nobody compares, and which commands may have changed.
    pub directories: Vec<RelPath>,
    /// The reason where it couldn't be told what changed.
    pub unknown: Option<String>,
}

/// What hooks say beside a decision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookNotes {
    /// For the model.
    pub context: Vec<String>,
    /// For people: what went wrong with a hook.
    pub warnings: Vec<String>,
    /// For people: what a hook wants them to read.
    pub notices: Vec<String>,
    /// Why the run is to stop here, if a hook says so.
    pub stop: Option<String>,
}

/// What is to become of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum PreTool {
    /// What policy says.
    #[default]
    Go,
    /// A question that policy would ask below level 3 needs no person: the hook says yes. It changes nothing about
    /// a denial or about level 3, which always asks.
    Approve {
        /// Why.
        reason: String,
    },
    /// A person decides, even where policy would allow it.
    Ask {
        /// Why; the person reads it.
        reason: String,
    },
    /// It doesn't run.
    Deny {
        /// Why; the model reads it.
        reason: String,
    },
    /// It doesn't run, and this is its result. Only closures give one.
    Result {
        /// The result's text.
        text: String,
        /// Whether it is a failure.
        is_error: bool,
    },
}

/// What a closure says before a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PreToolAnswer {
    /// What is to become of the call.
    pub decision: PreTool,
    /// Its arguments, in place of those it has.
    pub input: Option<Value>,
    /// For the model.
    pub context: Vec<String>,
}

impl From<PreTool> for PreToolAnswer {
    fn from(decision: PreTool) -> Self {
        Self { decision, ..Self::default() }
    }
}

/// What all hooks together say before a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PreToolSaid {
    /// What is to become of the call.
    pub decision: PreTool,
    /// Amended arguments in the tool's own names: not yet checked against its schema, nor judged.
    pub input: Option<Value>,
    /// What else they say.
    pub notes: HookNotes,
}

/// What a closure says before something other than a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gate {
    /// It happens.
    Go {
        /// For the model.
        context: Vec<String>,
    },
    /// It doesn't.
    Deny {
        /// Why.
        reason: String,
    },
}

impl Gate {
    /// It happens, and there is nothing to say.
    pub const GO: Self = Self::Go { context: Vec::new() };
}

/// What all hooks together say before something other than a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GateSaid {
    /// Why it must not happen, if it must not.
    pub denied: Option<String>,
    /// What else they say.
    pub notes: HookNotes,
}

/// Whether a turn ends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TurnEnd {
    /// It does.
    #[default]
    Stop,
    /// The model goes on working. Whoever called bounds how often.
    GoOn {
        /// What is left to do; the model reads it.
        reason: String,
    },
}

/// What all hooks together say at the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TurnEndSaid {
    /// Whether it ends.
    pub decision: TurnEnd,
    /// What else they say.
    pub notes: HookNotes,
}

/// A call's result, which hooks may change.
#[derive(Debug, Clone, PartialEq)]
pub struct HookResult {
    /// Its parts, in order.
    pub parts: Vec<ResultPart>,
    /// Whether it is a failure.
    pub is_error: bool,
}

impl HookResult {
    /// Its text, without images.
    #[must_use]
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self
            .parts
            .iter()
            .filter_map(|part| if let ResultPart::Text { text } = part { Some(text.as_str()) } else { None })
            .collect();
        texts.join("\n")
    }

    /// Puts a text in place of its texts; images stay.
    pub fn set_text(&mut self, text: impl Into<String>) {
        self.parts.retain(|part| matches!(part, ResultPart::Image(_)));
        self.parts.insert(0, ResultPart::Text { text: text.into() });
    }
}

/// How a session begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartedBy {
    /// It is new.
    Startup,
    /// It goes on after a restart, or from a fork.
    Resume,
}
