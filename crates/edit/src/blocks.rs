//! The text protocol: `<edit>` and `<call>` blocks in a model's reply.

use std::fmt;

use crate::change::Edit;

/// A tool call written as text: `<call tool="read_file">{"path": "a.rs"}</call>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextCall {
    /// The tool's name as the model wrote it.
    pub tool: String,
    /// The arguments as the model wrote them, trimmed; `{}` where it wrote none.
    pub input_json: String,
    /// The whole block as it stood in the reply.
    pub raw: String,
    /// Why the arguments are not a JSON object, if they aren't. Such a call must be answered, not run.
    pub malformed: Option<String>,
}

/// One thing the reply asks for, in the reply's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// An index into [`Blocks::edits`].
    Edit(usize),
    /// An index into [`Blocks::calls`].
    Call(usize),
}

/// What kind of fault a block has.
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
    /// What is wrong and what to do.
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

/// A reply taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Blocks {
    /// The edits, in order. Only whole blocks get here.
    pub edits: Vec<Edit>,
    /// The calls, in order.
    pub calls: Vec<TextCall>,
    /// Both, in the reply's order.
    pub items: Vec<Item>,
    /// The text around the blocks.
    pub prose: String,
    /// The blocks that are not applied.
    pub problems: Vec<BlockProblem>,
}

/// Reads the blocks of a reply. Never fails: what can't be read is a problem, what isn't a block is prose.
#[must_use]
pub fn parse_blocks(reply: &str) -> Blocks {
    Blocks { prose: reply.trim().to_owned(), ..Blocks::default() }
}
