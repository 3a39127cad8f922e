//! Candidates for a place in the context, and what became of them.

use std::ops::Range;

use journeyman_protocol::{ContextCategory, RelPath, Tokens};

/// Some lines of a file that may go into the context.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextCandidate {
    /// The category whose share it takes.
    pub category: ContextCategory,
    /// The file.
    pub path: RelPath,
    /// Its lines, 1-based, the end excluded.
    pub lines: Range<u32>,
    /// The likelihood that the task needs it, 0 to 1, comparable among all candidates.
    pub relevance: f64,
    /// The reason why it is a candidate.
    pub reason: CandidateReason,
}

impl ContextCandidate {
    /// Returns the path with the lines, for people.
    pub(crate) fn location(&self) -> String {
        format!("{}:{}-{}", self.path, self.lines.start, self.lines.end.saturating_sub(1))
    }

    /// Returns the relevance in hundredths.
    #[expect(clippy::cast_sign_loss, reason = "0 to 100")]
    pub(crate) fn percent(&self) -> u8 {
        (self.relevance.clamp(0.0, 1.0) * 100.0).round() as u8
    }
}

/// The reason why lines are a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CandidateReason {
    /// The task names the file.
    Named,
    /// The user has the file open.
    Open,
    /// A search finds it for the task.
    Found,
    /// It defines a name that the task has.
    Defines {
        /// The name.
        name: String,
    },
    /// It uses a name that the task has, or one that such a use defines.
    Uses {
        /// The name.
        name: String,
        /// 1 for a direct use, 2 for a use of the user.
        distance: u32,
    },
    /// It depends on the code that is found, or that code on it.
    Depends {
        /// The file that was found.
        on: RelPath,
    },
    /// It tests the code that is found.
    Tests {
        /// The tested file.
        of: RelPath,
    },
}

impl std::fmt::Display for CandidateReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Named => f.write_str("the task names it"),
            Self::Open => f.write_str("the user has it open"),
            Self::Found => f.write_str("found for the task"),
            Self::Defines { name } => write!(f, "defines {name}"),
            Self::Uses { name, distance: 1 } => write!(f, "uses {name}"),
            Self::Uses { name, .. } => write!(f, "uses what uses {name}"),
            Self::Depends { on } => write!(f, "in the dependencies of {on}"),
            Self::Tests { of } => write!(f, "tests {of}"),
        }
    }
}

/// The decision about a candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct PackingDecision {
    /// Position of the candidate.
    pub candidate: usize,
    /// The outcome.
    pub outcome: PackingOutcome,
    /// Tokens that it added, or would have added; 0 if it wasn't weighed.
    pub tokens: Tokens,
}

/// The outcome of weighing a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackingOutcome {
    /// Its lines are in.
    Included,
    /// Its lines were in already.
    Covered,
    /// Its lines are nearly the same as others that are in.
    Duplicate,
    /// It doesn't fit into what is left.
    NoRoom,
    /// Its lines are too long for a piece of the file that is large enough to be of use.
    TooLittle,
    /// It is too unlikely to be needed.
    Unlikely,
    /// Its file can't be shown or has changed.
    Unreadable,
}

impl PackingOutcome {
    /// Returns true if the lines are in the context.
    #[must_use]
    pub fn is_included(self) -> bool {
        matches!(self, Self::Included | Self::Covered)
    }

    /// Returns its name for programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Included => "included",
            Self::Covered => "covered",
            Self::Duplicate => "duplicate",
            Self::NoRoom => "no_room",
            Self::TooLittle => "too_little",
            Self::Unlikely => "unlikely",
            Self::Unreadable => "unreadable",
        }
    }

    /// Returns it in words.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Included => "in",
            Self::Covered => "in already",
            Self::Duplicate => "like another passage",
            Self::NoRoom => "no room",
            Self::TooLittle => "its lines are too long to be shown",
            Self::Unlikely => "unlikely to be needed",
            Self::Unreadable => "can't be shown",
        }
    }
}
