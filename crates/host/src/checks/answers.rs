//! The JSON of `jm checks`, `jm check` and `jm setup`: `docs/checks.schema.json` is generated from
//! these types.

use journeyman_agent::verify::{Check, OverallOutcome};
use journeyman_protocol::{CheckKind, Evidence, FileChange, RelPath};
use schemars::JsonSchema;
use serde::Serialize;

use super::SelectedChecks;

/// A check that was found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ListedCheck {
    /// The kind.
    pub kind: CheckKind,
    /// The command, for `sh -c`.
    pub command: String,
    /// The directory in which it runs, relative to the root; left out for the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<RelPath>,
    /// The ecosystem, such as `cargo`; `custom` for a check that somebody named.
    pub ecosystem: String,
    /// Why it was found.
    pub why: String,
    /// True if it runs unasked.
    pub runs: bool,
    /// Why it doesn't run, or can't; left out for one that runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
    /// The command that repairs what it finds, if its tool can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// Maximum duration in seconds.
    pub timeout_seconds: u64,
}

impl ListedCheck {
    /// Lists a check; `reason` says why it isn't among those that run.
    #[must_use]
    pub fn new(check: &Check, reason: Option<&str>) -> Self {
        let left_out = reason.map(str::to_owned).or_else(|| check.blocked.clone());
        Self {
            kind: check.kind,
            command: check.command.clone(),
            directory: check.directory.clone(),
            ecosystem: check.ecosystem.to_owned(),
            why: check.why.clone(),
            runs: left_out.is_none(),
            left_out,
            fix: check.fix.clone(),
            timeout_seconds: check.timeout.as_secs(),
        }
    }
}

/// The answer of `jm checks`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ChecksAnswer {
    /// All checks that were found, in the order in which they run; then those that don't.
    pub checks: Vec<ListedCheck>,
}

impl ChecksAnswer {
    /// Lists the checks that run and the others.
    #[must_use]
    pub fn new(selected: &SelectedChecks) -> Self {
        let chosen = selected.chosen.iter().map(|check| ListedCheck::new(check, None));
        let others = selected.left_out.iter().map(|(check, reason)| ListedCheck::new(check, Some(reason)));
        Self { checks: chosen.chain(others).collect() }
    }
}

/// The combined result of checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckVerdict {
    /// Nothing failed, and what proves the project ran and passed.
    Passed,
    /// At least one check failed.
    Failed,
    /// Nothing failed, and nothing that proves the project ran.
    NothingRan,
    /// The user stopped the checks.
    Interrupted,
}

impl CheckVerdict {
    /// Returns the exit code of `jm check`, which has the codes of `jm run`.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::Failed => 3,
            Self::NothingRan => 4,
            Self::Interrupted => 130,
        }
    }
}

impl From<OverallOutcome> for CheckVerdict {
    fn from(verdict: OverallOutcome) -> Self {
        match verdict {
            OverallOutcome::Passed => Self::Passed,
            OverallOutcome::Failed => Self::Failed,
            OverallOutcome::NothingRan => Self::NothingRan,
        }
    }
}

/// The answer of `jm check`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CheckAnswer {
    /// The combined result.
    pub verdict: CheckVerdict,
    /// The exit code: 0 passed, 3 failed, 4 nothing ran, 130 interrupted.
    pub exit_code: u8,
    /// The results, in the order of the checks.
    pub evidence: Vec<Evidence>,
    /// The checks that were found and not run.
    pub left_out: Vec<ListedCheck>,
    /// The commands that repaired something, or were to; none without `--fix`.
    pub fixes: Vec<Evidence>,
    /// The files of the project that checks and repairs changed. `jm undo` takes them back.
    pub changed: Vec<FileChange>,
}
