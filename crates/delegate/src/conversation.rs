//! The words of a CLI while it works, and how it ended.

use journeyman_protocol::Usage;

/// Reads the output of one run of a CLI.
pub trait Conversation: Send {
    /// Takes one line of standard output, without its end. Never fails: what it doesn't know
    /// becomes [`DelegateEvent::Unknown`].
    fn receive(&mut self, line: &[u8]) -> Step;

    /// Ends the reading. `exit` is the exit code, absent for a process that was killed; `stderr` is
    /// the end of what it wrote there.
    fn end(self: Box<Self>, exit: Option<i32>, stderr: &str) -> Outcome;
}

/// The meaning of a line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Step {
    /// The events, in order.
    pub events: Vec<DelegateEvent>,
    /// Bytes to write to its standard input, for interactive commands.
    pub reply: Vec<u8>,
    /// True if the run is over: the standard input may be closed, and a process that stays may be
    /// ended. [`Conversation::end`] knows what came of it whatever the exit code then is.
    pub finished: bool,
}

/// Something that a CLI told of.
#[derive(Debug, Clone, PartialEq)]
pub enum DelegateEvent {
    /// Its session has this id, for a resume.
    Session(String),
    /// Text of its model, a piece of it where it streams.
    Text(String),
    /// Thoughts of its model.
    Thought(String),
    /// It began to use a tool.
    ToolStart {
        /// The id by which its end is told.
        id: String,
        /// The tool's name in the CLI.
        tool: String,
        /// One line: the command, the path.
        summary: String,
    },
    /// It used a tool.
    ToolEnd {
        /// The id of the start.
        id: String,
        /// True if it failed.
        failed: bool,
        /// The beginning of its output.
        output: String,
    },
    /// It says that it changed files, by its own paths. What counts is the tree.
    FilesChanged(Vec<String>),
    /// Tokens and cost so far, of the whole run.
    Usage {
        /// The tokens.
        usage: Usage,
        /// US dollars, where it says so.
        cost: Option<f64>,
    },
    /// A problem that it goes on from.
    Warning(String),
    /// A line that means nothing to the adapter, cut to a bound.
    Unknown(String),
}

/// The end of one run of a CLI, as its output tells it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// Its last message.
    pub message: String,
    /// Its session, for a resume.
    pub session: Option<String>,
    /// Tokens of the run.
    pub usage: Usage,
    /// US dollars of the run, where it says so.
    pub cost: Option<f64>,
    /// The reason why it failed; absent for success.
    pub failure: Option<Failure>,
}

/// Why a run of a CLI failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Its kind.
    pub kind: FailureKind,
    /// A sentence for people.
    pub message: String,
}

/// The kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The user is not logged in, or the key is refused.
    NotAuthenticated,
    /// It doesn't know a flag: another version than the adapter was written for.
    UnknownFlag,
    /// Its provider refused, or could not be reached.
    Provider,
    /// It stopped before it said that it was done: a crash, a stream cut off.
    CutOff,
    /// Anything else that it reports.
    Reported,
}

impl Step {
    /// Returns a step of one event.
    pub(crate) fn of(event: DelegateEvent) -> Self {
        Self { events: vec![event], ..Self::default() }
    }
}
