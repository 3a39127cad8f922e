//! Options of committing a change.

use journeyman_git::HookRunMode;
use serde::{Deserialize, Serialize};

/// Options of committing a change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CommitOptions {
    /// The new branch for the commit. Without it the commit goes onto the current branch.
    pub branch: Option<String>,
    /// The message. Without it the message is made of the task, the model's closing words and the
    /// checks.
    pub message: Option<String>,
    /// The way in which git hooks run.
    pub hooks: HookRunMode,
}
