//! What the log holds beside events: the entries that a session is folded from.
//!
//! A record is a transcript entry: it has no channel, nobody subscribes to it, and everything that
//! a session needs to go on after a restart is in records alone. Events are for people.

use journeyman_model::SystemPart;
use journeyman_protocol::{
    Block, CallId, CallTransition, GuardViolation, Message, MessageKind, Mode, ReminderCategory, RunOutcome,
    Seq, SessionId, StopReason, Todo, ToolUse, Usage,
};
use journeyman_store::{Entry, STATUS_NEW};
use journeyman_tools::SeenFile;
use serde::{Deserialize, Serialize};

use crate::session::settings::Asked;

/// Names a message that waits for a session, unique in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageId(pub u64);

/// A message that waits for the next boundary of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    /// Its name.
    pub id: MessageId,
    /// What kind it is; a person's wakes the session.
    pub kind: MessageKind,
    /// What a reminder is about.
    #[serde(default)]
    pub category: ReminderCategory,
    /// The text as the model is to read it.
    pub text: String,
}

impl Queued {
    /// Returns the bytes of the text as the log has it.
    pub(crate) fn logged_bytes(&self) -> usize {
        logged_bytes(&self.text)
    }
}

/// Returns the bytes of a text as the log has it.
pub(crate) fn logged_bytes(text: &str) -> usize {
    serde_json::to_string(text).map_or(text.len(), |text| text.len())
}

/// How a session is set, written when it begins and whenever something of it changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// The model, as `provider/name`.
    pub model: String,
    /// What is allowed without asking.
    pub mode: Mode,
    /// Whether the model calls tools; without, it speaks the text protocol.
    pub tool_calling: bool,
    /// What it was started with beside the configuration.
    #[serde(default, skip_serializing_if = "Asked::is_nothing")]
    pub asked: Asked,
}

/// Several sessions that do one task side by side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CandidateRun {
    /// The session that was given the task.
    pub parent: SessionId,
    /// The sessions that do it, by their numbers from 1.
    pub sessions: Vec<SessionId>,
    /// Whether the best of them is landed without a question.
    pub land: bool,
}

/// The books of a task that runs, so that a restart goes on counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Books {
    /// How many times the model was asked in this task.
    pub turns: u32,
    /// How often checks failed and were fed back in this task.
    pub iterations: u32,
    /// How often checks were run in this task.
    pub rounds: u32,
    /// Steps of the whole session.
    pub step: u64,
    /// Tokens of this task.
    pub usage: Usage,
}

/// One entry without a channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// The session was made from another one's log up to a place.
    Forked {
        /// The session it was made from.
        parent: SessionId,
        /// The last entry that was taken over.
        at: Seq,
    },
    /// The session's task is done by others, each in a copy of its own. The first entry of the
    /// session that it was given to, and with that of the others, which are forks of it.
    Candidates(CandidateRun),
    /// The session does the task of the one it was made from, beside others that do the same: its
    /// first context is theirs too, byte for byte.
    Candidate {
        /// Which of them it is, from 1.
        number: u32,
    },
    /// How the session is set from here on.
    Setting(Setting),
    /// What every request begins with: kept, so that it is the same, byte for byte, after a
    /// restart.
    Context {
        /// The system prompt in its parts.
        system: Vec<SystemPart>,
    },
    /// A message waits. It is durable before whoever sent it hears so.
    Queued(Queued),
    /// A task begins.
    Began,
    /// A message of the transcript.
    Message {
        /// The message. Neighbours of the user's role are one message to the model.
        message: Message,
        /// The queued messages that are in it: they wait no longer.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        taken: Vec<MessageId>,
        /// Why the model stopped, for a message of the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop: Option<StopReason>,
        /// The calls that the text protocol reads out of it; with tool calling they are blocks.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolUse>,
    },
    /// The transcript starts over, such as in the text protocol.
    Cleared,
    /// A step of a call's life.
    Call(CallTransition),
    /// A call's one result, as the model is given it.
    Result {
        /// The call.
        call: CallId,
        /// A tool result, or text where the model takes no tool results.
        block: Block,
    },
    /// The books as they are now.
    Books(Books),
    /// The tree's state is on record.
    Checkpoint {
        /// Its number within the project.
        id: u64,
        /// The step that it was taken before; absent before the task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<u64>,
    },
    /// Checks run, or have run: what they leave behind when cut off is theirs.
    Checking {
        /// Whether they still do.
        running: bool,
    },
    /// Commands of the task made, changed or deleted what is guarded.
    GuardViolated {
        /// What, and what became of it.
        violations: Vec<GuardViolation>,
    },
    /// The todos as they are now.
    Todos {
        /// All of them.
        todos: Vec<Todo>,
    },
    /// Calls that a person allowed from here on.
    Allowed {
        /// The rules, as text of a `policy.toml`.
        rule: String,
    },
    /// What the session knows of a file.
    Seen(SeenFile),
    /// A place in the log with a name.
    Snapshot {
        /// The name.
        name: String,
        /// The place.
        at: Seq,
    },
    /// The task ended.
    Ended {
        /// How.
        outcome: RunOutcome,
        /// The checkpoint since which files were changed that nothing has verified.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unverified: Option<u64>,
    },
}

impl Record {
    /// The kind that the log's entry has: the `record` field in JSON.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Forked { .. } => "forked",
            Self::Candidates(_) => "candidates",
            Self::Candidate { .. } => "candidate",
            Self::Setting(_) => "setting",
            Self::Context { .. } => "context",
            Self::Queued(_) => "queued",
            Self::Began => "began",
            Self::Message { .. } => "message",
            Self::Cleared => "cleared",
            Self::Call(_) => "call",
            Self::Result { .. } => "result",
            Self::Books(_) => "books",
            Self::Checkpoint { .. } => "checkpoint",
            Self::Checking { .. } => "checking",
            Self::GuardViolated { .. } => "guard_violated",
            Self::Todos { .. } => "todos",
            Self::Allowed { .. } => "allowed",
            Self::Seen(_) => "seen",
            Self::Snapshot { .. } => "snapshot",
            Self::Ended { .. } => "ended",
        }
    }

    /// What lists show of the session from this entry on, where it says anything new.
    #[must_use]
    pub(crate) fn status(&self) -> Option<String> {
        match self {
            Self::Began => Some(STATUS_NEW.to_owned()),
            Self::Ended { outcome, .. } => Some(status_of(*outcome)),
            _ => None,
        }
    }

    /// A message that is nothing but that.
    #[must_use]
    pub fn message(message: Message) -> Self {
        Self::Message { message, taken: Vec::new(), stop: None, calls: Vec::new() }
    }
}

/// Reads an entry back as the record it was, or `None` where it is an event or from a newer
/// version.
#[must_use]
pub fn record_of(entry: &Entry) -> Option<Record> {
    if entry.channel.is_some() {
        return None;
    }
    serde_json::from_slice(&entry.payload).ok()
}

/// What lists show of a session whose last task ended so.
pub(crate) fn status_of(outcome: RunOutcome) -> String {
    let word = serde_json::to_value(outcome).ok();
    word.as_ref().and_then(|word| word.as_str()).unwrap_or_default().to_owned()
}
