//! Records: the log entries from which a session's state is rebuilt.
//!
//! A record has no channel, and subscribers don't see it. Records alone hold everything that a
//! session needs after a restart. Events are for people.

use journeyman_context::CheckedRound;
use journeyman_context::compaction::{AgedResult, WorkingState};
use journeyman_model::SystemPart;
use journeyman_protocol::{
    Block, CallId, CallTransition, GuardViolation, ImageData, Message, MessageKind, Mode, Plan,
    ReminderCategory, RunOutcome, Seq, SessionId, StopReason, Termination, Todo, ToolUse, Usage,
};
use journeyman_store::{Entry, SESSION_STATUS_READY};
use journeyman_tools::SeenFile;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agents::role::AgentRole;
use crate::session::settings::StartOptions;

/// The id of a queued message, unique in its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageId(pub u64);

/// A message that waits for the next boundary of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedMessage {
    /// The message's id.
    pub id: MessageId,
    /// The message's kind. A message from a person wakes the session.
    pub kind: MessageKind,
    /// The subject of a reminder.
    #[serde(default)]
    pub category: ReminderCategory,
    /// The text for the model.
    pub text: String,
    /// The images that a person sent with the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageData>,
}

impl QueuedMessage {
    /// Returns the size of the text and the images in the log, in bytes.
    pub(crate) fn logged_bytes(&self) -> usize {
        let text = serde_json::to_string(&self.text).map_or(self.text.len(), |text| text.len());
        text.saturating_add(self.images.iter().map(|image| image.data.len()).sum())
    }
}

/// A session's settings, recorded when it begins and when one of them changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSettings {
    /// The model, as `provider/name`.
    pub model: String,
    /// The permission mode.
    pub mode: Mode,
    /// True if the model takes tool calls; false to use the text protocol.
    pub tool_calling: bool,
    /// Options given when the session was started, beyond the configuration.
    #[serde(default, skip_serializing_if = "StartOptions::is_default")]
    pub asked: StartOptions,
}

/// Several sessions that attempt one task in parallel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CandidateRun {
    /// The session that received the task.
    pub parent: SessionId,
    /// The sessions of the candidates, numbered from 1.
    pub sessions: Vec<SessionId>,
    /// True to land the best candidate without asking.
    pub land: bool,
}

/// Counters of the running task, recorded so that they continue after a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskCounters {
    /// Model requests in this task.
    pub turns: u32,
    /// Rounds of failed checks that were fed back in this task.
    pub iterations: u32,
    /// Rounds of checks in this task.
    pub rounds: u32,
    /// Steps in the whole session.
    pub step: u64,
    /// Token usage of this task.
    pub usage: Usage,
    /// Known cost of the task's agents and of other CLIs, in billionths of a US dollar.
    #[serde(skip_serializing_if = "is_zero")]
    pub delegated: u64,
    /// Token usage of the task's agents and of the agents below them, whose models may have other
    /// prices.
    #[serde(skip_serializing_if = "is_no_usage")]
    pub agents: Usage,
    /// Token usage of other CLIs, whose price isn't the model's.
    #[serde(skip_serializing_if = "is_no_usage")]
    pub foreign: Usage,
    /// True if an agent or a CLI used tokens whose cost isn't known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unpriced: bool,
    /// The outcome of an agent that did not complete its task; of several, the gravest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_agent: Option<RunOutcome>,
}

impl TaskCounters {
    /// Returns the tokens of the model, of agents and of other CLIs together.
    #[must_use]
    pub fn total_usage(&self) -> Usage {
        let mut total = self.usage;
        total += self.agents;
        total += self.foreign;
        total
    }
}

fn is_no_usage(usage: &Usage) -> bool {
    *usage == Usage::default()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A shortened conversation. The messages afterwards are the head, then the tail, or the newest
/// messages as they were.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compaction {
    /// The content of the first message: the beginning of the conversation, then its state.
    pub head: Vec<Block>,
    /// The number of blocks of the head that begin the conversation.
    pub opening: usize,
    /// The number of messages at the end that stay as they are.
    pub kept: usize,
    /// The newest messages, shortened; empty if they stay as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tail: Vec<Message>,
    /// The state from which the next compaction continues.
    pub state: WorkingState,
    /// True if the model's summary was longer than the messages that it replaced. The next
    /// compaction works without the model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inflated: bool,
}

/// The kind of [`Record::Imported`].
pub(crate) const IMPORTED_KIND: &str = "imported";

/// A log entry without a channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// The session was forked from another session's log.
    Forked {
        /// The parent session.
        parent: SessionId,
        /// The last entry taken from the parent.
        at: Seq,
    },
    /// The session's task is attempted by candidates in isolated copies. This is the first entry of
    /// the session that received the task. The candidates are forks and so have it too.
    Candidates(CandidateRun),
    /// The session is a candidate: it attempts its parent's task in parallel with others, and
    /// shares the parent's first context byte for byte.
    Candidate {
        /// The candidate's number, from 1.
        number: u32,
    },
    /// The session is an agent: its definition with its inputs. This is the first entry.
    Role(Box<AgentRole>),
    /// The agent reached a limit and has one last turn.
    LastTurn {
        /// The limit.
        reason: Termination,
    },
    /// The agent completed its task.
    Completed {
        /// The output, as the role's schema says.
        output: Value,
    },
    /// The plan of the task.
    Planned(Box<Plan>),
    /// The session's settings from here on.
    Setting(RecordedSettings),
    /// The beginning of every request, recorded so that it stays the same, byte for byte, after a
    /// restart.
    Context {
        /// The parts of the system prompt.
        system: Vec<SystemPart>,
    },
    /// A message was queued. It is durable before its sender gets an answer.
    Queued(QueuedMessage),
    /// A queued message was taken back by its sender before any task took it, or a hook refused it.
    Withdrawn {
        /// The message.
        id: MessageId,
    },
    /// A task began.
    Began,
    /// A message of the transcript.
    Message {
        /// The message. Consecutive user messages are one message to the model.
        message: Message,
        /// The queued messages that this message contains.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        taken: Vec<MessageId>,
        /// The reason why the model stopped, for a message of the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop: Option<StopReason>,
        /// The calls read from the text in the text protocol. With tool calling, calls are blocks
        /// of the message.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolUse>,
    },
    /// The calls and results of the transcript were written as text, for the text protocol.
    RewrittenAsText,
    /// Old results were replaced by a line each.
    Aged {
        /// The results.
        results: Vec<AgedResult>,
    },
    /// The transcript was shortened.
    Compacted(Box<Compaction>),
    /// A state transition of a call.
    Call(CallTransition),
    /// The result of a call, as given to the model.
    Result {
        /// The call's id.
        call: CallId,
        /// A tool result, or text if the model takes no tool results.
        block: Block,
    },
    /// The whole output of a command whose result has only its beginning and end.
    Output {
        /// The call's id.
        call: CallId,
        /// The output, or the beginning and the end of a very long one.
        text: String,
    },
    /// The current counters.
    Counters(TaskCounters),
    /// A checkpoint of the tree was recorded.
    Checkpoint {
        /// The checkpoint's number within the project.
        id: u64,
        /// The step that follows the checkpoint; absent for the checkpoint before the task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<u64>,
    },
    /// Checks started or finished. Files left behind by interrupted checks belong to the checks.
    Checking {
        /// True when checks started, false when they finished.
        running: bool,
    },
    /// A call of the task changed files.
    Edited {
        /// The tool, and the files.
        summary: String,
    },
    /// A round of checks failed and went back to the model.
    Failed(CheckedRound),
    /// Commands of the task created, changed or deleted guarded files.
    GuardViolated {
        /// The violations, with what was done about each.
        violations: Vec<GuardViolation>,
    },
    /// The current todos.
    Todos {
        /// All todos.
        todos: Vec<Todo>,
    },
    /// A person allowed calls from here on.
    Allowed {
        /// The rules, as text of a `policy.toml`.
        rule: String,
    },
    /// The version of a file that the session has seen.
    Seen(SeenFile),
    /// The entries before this one come from an import, so the settings, lasting answers, approvals
    /// and checkpoints in them are not those of the user and the project here.
    Imported,
    /// A named position in the log.
    Snapshot {
        /// The snapshot's name.
        name: String,
        /// The position in the log.
        at: Seq,
    },
    /// A compaction is taken back: from here on the transcript is as if it had not been shortened.
    CompactionUndone {
        /// The entry of the compaction.
        at: Seq,
    },
    /// The task ended.
    Ended {
        /// The task's outcome.
        outcome: RunOutcome,
        /// The checkpoint since which files have unverified changes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unverified: Option<u64>,
    },
}

impl Record {
    /// Returns the entry's kind in the log, which is the `record` field in JSON.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Forked { .. } => "forked",
            Self::Candidates(_) => "candidates",
            Self::Candidate { .. } => "candidate",
            Self::Role(_) => "role",
            Self::LastTurn { .. } => "last_turn",
            Self::Completed { .. } => "completed",
            Self::Planned(_) => "planned",
            Self::Setting(_) => "setting",
            Self::Context { .. } => "context",
            Self::Queued(_) => "queued",
            Self::Withdrawn { .. } => "withdrawn",
            Self::Began => "began",
            Self::Message { .. } => "message",
            Self::RewrittenAsText => "rewritten_as_text",
            Self::Aged { .. } => "aged",
            Self::Compacted(_) => "compacted",
            Self::Call(_) => "call",
            Self::Result { .. } => "result",
            Self::Output { .. } => "output",
            Self::Counters(_) => "counters",
            Self::Checkpoint { .. } => "checkpoint",
            Self::Checking { .. } => "checking",
            Self::Edited { .. } => "edited",
            Self::Failed(_) => "failed",
            Self::GuardViolated { .. } => "guard_violated",
            Self::Todos { .. } => "todos",
            Self::Allowed { .. } => "allowed",
            Self::Seen(_) => "seen",
            Self::Imported => IMPORTED_KIND,
            Self::Snapshot { .. } => "snapshot",
            Self::CompactionUndone { .. } => "compaction_undone",
            Self::Ended { .. } => "ended",
        }
    }

    /// Returns the session's status for lists from this entry on, if the entry changes it.
    #[must_use]
    pub(crate) fn status(&self) -> Option<String> {
        match self {
            Self::Began => Some(SESSION_STATUS_READY.to_owned()),
            Self::Ended { outcome, .. } => Some(status_of(*outcome)),
            _ => None,
        }
    }

    /// Creates a message record without further fields.
    #[must_use]
    pub fn message(message: Message) -> Self {
        Self::Message { message, taken: Vec::new(), stop: None, calls: Vec::new() }
    }
}

/// Reads an entry as a record. Returns `None` for an event or an entry of a newer version.
#[must_use]
pub fn record_of(entry: &Entry) -> Option<Record> {
    if entry.channel.is_some() {
        return None;
    }
    serde_json::from_slice(&entry.payload).ok()
}

/// Returns the session's status for lists after a task with this outcome.
pub(crate) fn status_of(outcome: RunOutcome) -> String {
    let word = serde_json::to_value(outcome).ok();
    word.as_ref().and_then(|word| word.as_str()).unwrap_or_default().to_owned()
}
