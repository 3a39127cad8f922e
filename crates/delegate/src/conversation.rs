//! The events of a CLI's run, and its outcome.

use journeyman_protocol::Usage;

/// Reads the output of one run of a CLI.
pub trait Conversation: Send {
    /// Reads one line of standard output, without the line break. Never fails: an unknown line
    /// becomes [`DelegateEvent::Unknown`].
    fn receive_line(&mut self, line: &[u8]) -> ConversationStep;

    /// Ends the reading. `exit` is the exit code, `None` for a process that was killed; `stderr` is
    /// the end of its standard error.
    fn end(self: Box<Self>, exit: Option<i32>, stderr: &str) -> Outcome;
}

/// The result of reading one line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConversationStep {
    /// The events, in order.
    pub events: Vec<DelegateEvent>,
    /// Bytes to write to the CLI's standard input, for interactive commands.
    pub reply: Vec<u8>,
    /// True if the run is over: standard input may be closed, and a process that doesn't exit may
    /// be ended. [`Conversation::end`] then returns the outcome whatever the exit code is.
    pub finished: bool,
}

/// An event that a CLI reported.
#[derive(Debug, Clone, PartialEq)]
pub enum DelegateEvent {
    /// The id of the CLI's session, for a resume.
    Session(String),
    /// Text of the model; a piece of it if the CLI streams.
    Text(String),
    /// Thinking of the model.
    Thought(String),
    /// The CLI began to use a tool.
    ToolStart {
        /// The id of the use, which its end has, too.
        id: String,
        /// The tool's name in the CLI.
        tool: String,
        /// One line: the command or the path.
        summary: String,
    },
    /// The use of a tool ended.
    ToolEnd {
        /// The id of the use, as at its start.
        id: String,
        /// True if the tool failed.
        failed: bool,
        /// The beginning of the tool's output.
        output: String,
    },
    /// The CLI reports changed files by its own paths. The tree decides what really changed.
    FilesChanged(Vec<String>),
    /// Tokens and cost of the whole run so far.
    Usage {
        /// The tokens.
        usage: Usage,
        /// Cost in US dollars, if the CLI reports it.
        cost: Option<f64>,
    },
    /// A problem after which the CLI goes on.
    Warning(String),
    /// A line that the adapter doesn't understand, cut to a bound.
    Unknown(String),
}

/// The outcome of one run of a CLI, according to its output.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// The CLI's last message.
    pub message: String,
    /// The id of the CLI's session, for a resume.
    pub session: Option<String>,
    /// Tokens of the run.
    pub usage: Usage,
    /// Cost of the run in US dollars, if the CLI reports it.
    pub cost: Option<f64>,
    /// The reason for a failure; `None` for success.
    pub failure: Option<Failure>,
}

/// The failure of a CLI's run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The kind of the failure.
    pub kind: FailureKind,
    /// A sentence for people.
    pub message: String,
}

/// The kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The user is not logged in, or the key is refused.
    NotAuthenticated,
    /// The CLI doesn't know a flag: its version is another one than the adapter was written for.
    UnknownFlag,
    /// The provider refused the request, or could not be reached.
    Provider,
    /// The CLI stopped before it reported the end: it crashed, or its output was cut off.
    CutOff,
    /// Another failure that the CLI reports.
    Reported,
}

impl ConversationStep {
    /// Creates a step with one event.
    pub(crate) fn from_event(event: DelegateEvent) -> Self {
        Self { events: vec![event], ..Self::default() }
    }
}
