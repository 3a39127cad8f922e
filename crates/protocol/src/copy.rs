//! Reports on a session's copy of the project, on commits and on candidate runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{RelPath, RunOutcome, SessionId};

/// The state of the changes that a session made in its copy of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CopyState {
    /// The changes are in the user's tree; the copy was removed.
    Landed,
    /// The changes are in the copy, for `jm land` or `jm discard`.
    Kept,
    /// The copy was removed, and none of its changes landed.
    Discarded,
}

/// A preferred kind of copy that was not available.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnavailableTier {
    /// The kind of copy, such as `overlay`.
    pub tier: String,
    /// The reason for which it was not available.
    pub reason: String,
}

/// A file with conflicting changes of the session and the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileConflict {
    /// The file.
    pub path: RelPath,
    /// The kind of conflict, for people.
    pub reason: String,
}

/// The report on a session's copy of the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CopyReport {
    /// The kind of copy: `overlay`, `reflink`, `worktree` or `copy`.
    pub tier: String,
    /// The state of the copy's changes.
    pub state: CopyState,
    /// Files that the user changed too, and that were merged line by line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<RelPath>,
    /// Files with conflicting changes. If there are any, nothing landed unless the user chose how
    /// to resolve them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<FileConflict>,
}

/// A commit of the changes of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommitReport {
    /// The commit's hash.
    pub id: String,
    /// The branch of the commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The first line of the commit message.
    pub subject: String,
}

/// The report on a candidate run: one of several attempts at the same task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CandidateReport {
    /// The candidate's number, from 1.
    pub number: u32,
    /// The candidate's session.
    pub session: SessionId,
    /// The run's outcome; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<RunOutcome>,
    /// One line for people.
    pub summary: String,
    /// Number of changed files.
    pub files: u64,
    /// Number of added lines.
    pub added: u64,
    /// Number of removed lines.
    pub removed: u64,
    /// Number of requests to the model.
    pub turns: u32,
    /// Cost in US dollars; absent if the model's price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The state of the candidate's changes.
    pub state: CopyState,
}
