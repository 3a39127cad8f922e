//! Who may do what.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::RelPath;

/// How far a call reaches, weakest first (row A15 of the requirements).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// 0: reads the project.
    #[default]
    ReadOnly,
    /// 1: edits code, runs the project's own checks.
    Edit,
    /// 2: runs other commands inside the sandbox: builds, scripts, installs.
    Shell,
    /// 3: reaches outside: system files, the network, pushes, deployments. Never automatic.
    System,
}

impl Level {
    /// The level as a number, 0 to 3.
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

/// What is allowed without asking. Ordered from the narrowest to the widest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Level 0 only; everything else is denied.
    Plan,
    /// Levels 1 and 2 ask.
    Ask,
    /// Level 1 is allowed, level 2 asks.
    Edit,
    /// Levels 1 and 2 are allowed while the sandbox meets its needs.
    Auto,
}

impl Mode {
    /// Every mode, narrowest first.
    pub const ALL: [Self; 4] = [Self::Plan, Self::Ask, Self::Edit, Self::Auto];

    /// The mode's name as people type it.
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

/// Why a string is not a [`Mode`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("«{given}» is not a mode; the modes are plan, ask, edit, auto")]
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

/// What one call would do, as its tool says before it runs. `policy` judges this, not the tool's name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Effects {
    /// Paths it reads; empty together with the other fields means it reads the project at large.
    pub reads: Vec<RelPath>,
    /// Paths it creates, changes or removes.
    pub writes: Vec<RelPath>,
    /// The shell command it runs, if any.
    pub command: Option<String>,
    /// Hosts it reaches.
    pub hosts: Vec<String>,
    /// Whether its changes go to a layer that is looked at before it lands: then nothing is lost by running it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub previewed: bool,
}

/// What `policy` says of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Allow, ask or deny.
    pub decision: Decision,
    /// How far the call reaches.
    pub level: Level,
    /// One line a person understands.
    pub reason: String,
    /// What would be lost, when the call destroys something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destroys: Option<String>,
    /// The rules that decided, by name; empty when the mode alone did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
}

/// Allow, ask or deny. Ordered so that the greater one wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It runs.
    Allow,
    /// A person decides.
    Ask,
    /// It doesn't run, whoever says otherwise.
    Deny,
}
