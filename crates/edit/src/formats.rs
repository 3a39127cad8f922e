//! Reading edits out of a model's reply, in any of the formats models write.

pub(crate) mod blocks;
pub(crate) mod edit_block;
pub(crate) mod hunks;
pub(crate) mod search_replace;
pub(crate) mod tags;
pub(crate) mod tool;
pub(crate) mod udiff;
pub(crate) mod v4a;
pub(crate) mod whole;

use std::fmt;
use std::str::FromStr;

use journeyman_protocol::RelPath;

use crate::change::Edit;
use crate::files::Files;
use blocks::{BlockProblem, parse_blocks};

/// How edits are written down.
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

/// What helps to read a reply.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The reply, whole or as far as it came.
    pub reply: &'a str,
    /// The file that is meant where the reply names none, or names one that isn't there while this one is.
    pub path: Option<&'a RelPath>,
    /// The stream ended as the model meant it to. Where it didn't, a block that isn't closed is never taken.
    pub finished: bool,
    /// The files: which of the ways to write a path is meant shows in which of them there is.
    pub files: &'a dyn Files,
}

/// A reply taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// What it was read as; `None` where it has no edit of any format.
    pub format: Option<Format>,
    /// The edits, in the reply's order. Only whole ones.
    pub edits: Vec<Edit>,
    /// What began as an edit and can't be used.
    pub problems: Vec<BlockProblem>,
    /// The text around the edits.
    pub prose: String,
}

/// Reads a reply in a format, or in the one that it seems to be written in.
#[must_use]
pub fn read(source: &Source<'_>, format: Option<Format>) -> Reading {
    match format.or_else(|| detect(source.reply)) {
        None => Reading { prose: source.reply.trim().to_owned(), ..Reading::default() },
        Some(Format::Edit) => {
            let blocks = parse_blocks(source.reply);
            Reading {
                format: Some(Format::Edit),
                edits: blocks.edits,
                problems: blocks.problems,
                prose: blocks.prose,
            }
        }
        Some(Format::Blocks) => search_replace::read(source),
        Some(Format::Udiff) => udiff::read(source),
        Some(Format::Patch) => v4a::read(source),
        Some(Format::Whole) => whole::read(source, false),
        Some(Format::Lazy) => whole::read(source, true),
        Some(Format::Tool) => tool::read(source),
    }
}

/// The format a reply is written in, from its own marks; `None` where it has none.
#[must_use]
pub fn detect(reply: &str) -> Option<Format> {
    reply.contains("<edit>").then_some(Format::Edit)
}
