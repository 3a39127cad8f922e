//! Permissions: levels, modes, the effects of a call and the verdict about it.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::RelPath;

/// The reach of a call, from the weakest to the strongest.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Level 0: reads the project.
    #[default]
    ReadOnly,
    /// Level 1: edits code, runs the project's own checks.
    Edit,
    /// Level 2: runs other commands inside the sandbox: builds, scripts, installs.
    Shell,
    /// Level 3: acts outside the project: system files, the network, pushes, deployments. Never
    /// automatic.
    System,
}

impl Level {
    /// Returns the level as a number, 0 to 3.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self {
            Self::ReadOnly => "read-only",
            Self::Edit => "edit",
            Self::Shell => "shell",
            Self::System => "system",
        };
        write!(f, "{} ({word})", self.number())
    }
}

/// The permission mode: which levels are allowed without asking. Ordered from the narrowest to the
/// widest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Level 0 is allowed; everything else is denied.
    Plan,
    /// Level 0 is allowed; levels 1 and 2 ask.
    Ask,
    /// Levels 0 and 1 are allowed; level 2 asks.
    Edit,
    /// Levels 0 to 2 are allowed while the sandbox meets its needs.
    Auto,
}

impl Mode {
    /// All modes, the narrowest first.
    pub const ALL: [Self; 4] = [Self::Plan, Self::Ask, Self::Edit, Self::Auto];

    /// Returns the mode's name as people type it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Ask => "ask",
            Self::Edit => "edit",
            Self::Auto => "auto",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for a string that is not a [`Mode`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a mode; the modes are plan, ask, edit, auto")]
pub struct ParseModeError {
    /// The string as given.
    pub given: String,
}

impl FromStr for Mode {
    type Err = ParseModeError;

    fn from_str(given: &str) -> Result<Self, ParseModeError> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.name() == given)
            .ok_or_else(|| ParseModeError { given: given.to_owned() })
    }
}

/// The effects of one call, as its tool declares them before it runs. `policy` judges them, not the
/// tool's name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Effects {
    /// Paths that the call reads. If all fields are empty, the call reads the project at large.
    pub reads: Vec<RelPath>,
    /// Paths that the call creates, changes or removes.
    pub writes: Vec<RelPath>,
    /// The shell command that the call runs, if any.
    pub command: Option<String>,
    /// Hosts that the call connects to.
    pub hosts: Vec<String>,
    /// True if the changes go to an overlay or an isolated copy that is reviewed before it lands,
    /// so that running the call destroys nothing of the user's.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub previewed: bool,
}

/// The judgement of a call by the permission policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Allow, ask or deny.
    pub decision: Decision,
    /// The call's reach.
    pub level: Level,
    /// One line for people.
    pub reason: String,
    /// The data that the call would destroy, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destroys: Option<String>,
    /// Names of the rules that decided; empty if the mode alone decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
}

/// Allow, ask or deny. Of two decisions, the greater wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The call runs.
    Allow,
    /// A person decides.
    Ask,
    /// The call does not run; no approval overrides this.
    Deny,
}
