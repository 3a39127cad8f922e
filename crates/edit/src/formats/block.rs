//! One block of a reply: an edit, a call, or the reason why it is neither.

use std::fmt;

use crate::edit::Edit;
use crate::lines::line_at;
use crate::outcome::truncate;

/// Maximum bytes of a path or a tool's name in a problem.
const MAX_SUBJECT_BYTES: usize = 200;

/// The kind of a problem in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The reply ends inside the block.
    Incomplete,
    /// The path is empty, absolute, leaves the project or has control characters.
    Path,
    /// The tags don't make sense together.
    Malformed,
    /// A bound was passed.
    TooMuch,
}

/// A block that is not applied, and why. Its text tells the model what to send instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockProblem {
    /// The kind of fault.
    pub kind: ProblemKind,
    /// The 1-based line of the reply where the block begins.
    pub line: u32,
    /// The file or tool it names, if that could be read.
    pub subject: Option<String>,
    /// The problem and the remedy.
    pub message: String,
}

impl fmt::Display for BlockProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block at line {} of the reply", self.line)?;
        if let Some(subject) = &self.subject {
            write!(f, " ({subject})")?;
        }
        write!(f, ": {}. It was not applied.", self.message)
    }
}

/// A tool call written as text: `<call tool="read_file">{"path": "a.rs"}</call>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextCall {
    /// The tool's name as the model wrote it.
    pub tool: String,
    /// The arguments as the model wrote them, trimmed; `{}` where it wrote none.
    pub input_json: String,
    /// The whole block as it stood in the reply.
    pub raw: String,
    /// Why the arguments are not a JSON object, if they aren't. Such a call must be answered, not
    /// run.
    pub malformed: Option<String>,
}

/// The result of reading at the beginning of a block.
pub(crate) enum ReadBlock {
    /// A whole edit and where it ends.
    Edit(Edit, usize),
    /// A whole call and where it ends.
    Call(TextCall, usize),
    /// Something that began as a block.
    Fault(BlockFault),
}

/// Why a block can't be used.
pub(crate) struct BlockFault {
    pub(crate) kind: ProblemKind,
    pub(crate) subject: Option<String>,
    pub(crate) message: String,
    /// The offset at which reading continues; `None` if the rest of the reply belongs to the block.
    pub(crate) end: Option<usize>,
}

impl BlockFault {
    /// The reply ends inside the block: everything after its beginning belongs to it.
    pub(crate) fn incomplete(subject: Option<String>, missing: &str) -> Self {
        let message = format!("the reply ends before {missing}; send the whole block again");
        Self { kind: ProblemKind::Incomplete, subject, message, end: None }
    }

    pub(crate) fn to_problem(&self, reply: &str, at: usize) -> BlockProblem {
        BlockProblem {
            kind: self.kind,
            line: line_at(reply, at),
            subject: self.subject.as_ref().map(|subject| truncate(subject, MAX_SUBJECT_BYTES).to_owned()),
            message: self.message.clone(),
        }
    }
}
