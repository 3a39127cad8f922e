//! Changes of guarded files by commands: files and repositories that programs outside the sandbox
//! obey.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CallId, RelPath};

/// Decides which paths are guarded from commands, because programs outside the sandbox run or obey
/// them.
#[derive(Debug, Clone, Copy)]
pub struct GuardRules {
    /// Returns true for a guarded path; git's own files are among them.
    pub guarded: fn(&RelPath) -> bool,
    /// Returns true for a guarded path that is obeyed as soon as somebody enters a directory above
    /// or beside it.
    pub on_entering: fn(&RelPath) -> bool,
}

/// The way in which a command changed a guarded file or repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GuardViolationKind {
    /// The file is new.
    Made,
    /// The file's content or mode is different, or another file has its name.
    Changed,
    /// The file is gone.
    Deleted,
}

/// A guarded file, directory or repository that a command made, changed or deleted, and how that
/// was handled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GuardViolation {
    /// The path in the project.
    pub path: RelPath,
    /// The way in which the command changed the file.
    pub kind: GuardViolationKind,
    /// True for a repository, whose settings can make version control run programs.
    pub repository: bool,
    /// The path outside the project to which the command's version was moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
    /// True if the state before the command was restored.
    pub put_back: bool,
    /// The reason for which the file could not be moved away or put back. The command's version is
    /// then still in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The call that ran the command; absent for a check and for a command that a person typed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
}

impl fmt::Display for GuardViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.repository { "the repository " } else { "" };
        let done = match self.kind {
            GuardViolationKind::Made => "made",
            GuardViolationKind::Changed => "changed",
            GuardViolationKind::Deleted => "deleted",
        };
        write!(f, "{what}{} was {done}", self.path)?;
        if let Some(problem) = &self.problem {
            let remedy = if self.kind == GuardViolationKind::Made { "moved away" } else { "put back" };
            return write!(f, " and could not be {remedy}: {problem}");
        }
        match (&self.moved_to, self.put_back) {
            (Some(place), true) => write!(f, " and put back; the command's version is in {place}"),
            (Some(place), false) => write!(f, " and moved to {place}"),
            (None, true) => f.write_str(" and put back"),
            (None, false) => Ok(()),
        }
    }
}
