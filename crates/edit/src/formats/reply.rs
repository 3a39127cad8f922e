//! The formats, a reply to read, and what was read from it.

use std::fmt;
use std::str::FromStr;

use journeyman_protocol::RelPath;

use crate::edit::Edit;
use crate::files::Files;
use crate::formats::block::BlockProblem;

/// A notation of edits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Format {
    /// Our own `<edit>` blocks.
    Edit,
    /// SEARCH/REPLACE blocks between conflict markers, in the dialects of the known agents.
    Blocks,
    /// Unified diffs, as `diff -u` and git write them and as models do.
    Udiff,
    /// The envelope `*** Begin Patch` (V4A), also without its envelope.
    Patch,
    /// Whole files in fenced blocks.
    Whole,
    /// Whole files with remarks in place of what stays as it is.
    Lazy,
    /// The arguments of an edit tool, as JSON.
    Tool,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Edit, Self::Blocks, Self::Udiff, Self::Patch, Self::Whole, Self::Lazy, Self::Tool];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Edit => "edit",
            Self::Blocks => "blocks",
            Self::Udiff => "udiff",
            Self::Patch => "patch",
            Self::Whole => "whole",
            Self::Lazy => "lazy",
            Self::Tool => "tool",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.into_iter().map(Self::name).collect();
            format!("no format `{name}`: there are {}", names.join(", "))
        })
    }
}

/// A reply with the context for reading it.
#[derive(Clone, Copy)]
pub struct ReplySource<'a> {
    /// The reply, whole or as far as it came.
    pub reply: &'a str,
    /// The file that is meant where the reply names none, or names one that isn't there while this
    /// one is.
    pub path: Option<&'a RelPath>,
    /// The stream ended as the model meant it to. Where it didn't, a block that isn't closed is
    /// never taken.
    pub finished: bool,
    /// The files: which of the ways to write a path is meant shows in which of them there is.
    pub files: &'a dyn Files,
}

/// A reply taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParsedReply {
    /// The format that was read; `None` if the reply has no edit in any format.
    pub format: Option<Format>,
    /// The edits, in the reply's order. Only whole ones.
    pub edits: Vec<Edit>,
    /// Unusable beginnings of edits.
    pub problems: Vec<BlockProblem>,
    /// The text around the edits.
    pub prose: String,
}

/// A line of a reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplyLine<'a> {
    /// 1-based.
    pub(crate) number: u32,
    /// The byte offset of its start.
    pub(crate) start: usize,
    /// Its text with what ends it.
    pub(crate) text: &'a str,
}

/// The lines of a reply, in order.
pub(crate) struct ReplyLines<'a> {
    text: &'a str,
    at: usize,
    number: u32,
}

impl<'a> ReplyLines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, number: 0 }
    }
}

impl<'a> Iterator for ReplyLines<'a> {
    type Item = ReplyLine<'a>;

    fn next(&mut self) -> Option<ReplyLine<'a>> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let length = memchr::memchr(b'\n', rest.as_bytes()).map_or(rest.len(), |at| at + 1);
        let row =
            ReplyLine { number: self.number.saturating_add(1), start: self.at, text: rest.get(..length)? };
        self.at += length;
        self.number = row.number;
        Some(row)
    }
}
