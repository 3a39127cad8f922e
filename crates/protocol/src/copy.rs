//! What is told of a session's copy of the project, of what becomes of it, and of candidates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{RelPath, RunOutcome, SessionId};

/// Where the work of an isolated session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CopyState {
    /// In the user's tree; the copy is gone.
    Landed,
    /// In its copy, for `jm land` or `jm discard`.
    Kept,
    /// Nowhere: the copy is gone, and nothing of it was landed.
    Discarded,
}

/// A way of copying the project that couldn't be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnavailableTier {
    /// Which one, such as `overlay`.
    pub tier: String,
    /// Why not.
    pub reason: String,
}

/// A file that both sides changed in ways that don't go together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileConflict {
    /// The file.
    pub path: RelPath,
    /// In which way.
    pub reason: String,
}

/// What became of a session's copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CopyReport {
    /// How the copy was made: `overlay`, `reflink`, `worktree` or `copy`.
    pub tier: String,
    /// Where the work is.
    pub state: CopyState,
    /// Files that the user changed too, and that were merged line by line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<RelPath>,
    /// Files that both changed in ways that don't go together. With any, nothing was landed unless the user said how.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<FileConflict>,
}

/// A commit that was made of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommitReport {
    /// Its name.
    pub id: String,
    /// The branch that it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The first line of its message.
    pub subject: String,
}

/// One of several sessions that were given the same task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CandidateReport {
    /// Its number, from 1, as progress lines call it.
    pub number: u32,
    /// Its session.
    pub session: SessionId,
    /// How it ended; absent while it has no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<RunOutcome>,
    /// One line a person understands.
    pub summary: String,
    /// Files that it changed.
    pub files: u64,
    /// Lines that it added.
    pub added: u64,
    /// Lines that it removed.
    pub removed: u64,
    /// How many times the model was asked.
    pub turns: u32,
    /// What it cost in US dollars, where the model's price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Where its work is.
    pub state: CopyState,
}
