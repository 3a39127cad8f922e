//! How a change is to be committed.

use journeyman_git::HookRun;
use serde::{Deserialize, Serialize};

/// How a change is to be committed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CommitWish {
    /// A new branch for it; without one it goes onto the branch that is checked out.
    pub branch: Option<String>,
    /// The message; without one it is made of the task, the model's closing words and the checks.
    pub message: Option<String>,
    /// The way in which its hooks run.
    pub hooks: HookRun,
}
