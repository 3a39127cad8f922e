//! What a command did to files that aren't a command's to make or change.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CallId, RelPath};

/// What a command did to a guarded file or repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GuardViolationKind {
    /// It is new.
    Made,
    /// Its content or mode is different, or another one stands in its place.
    Changed,
    /// It is gone.
    Deleted,
}

/// A guarded file, directory or repository that a command made, changed or deleted, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GuardViolation {
    /// The path in the project.
    pub path: RelPath,
    /// What the command did.
    pub kind: GuardViolationKind,
    /// True for a repository: version control runs what its settings say.
    pub repository: bool,
    /// The place outside of the project where what the command left was moved to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
    /// True if what was there before the command is there again.
    pub put_back: bool,
    /// Why it could not be moved away or put back. Then what the command left is still there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The call whose command did it; absent for a check, and for a command that a person typed.
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
