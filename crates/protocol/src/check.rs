//! Checks: their diagnostics, outcome, and the evidence that they ran.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Enforcement, RelPath};

/// The kind of a check. Ordered as checks run: the quick and certain ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckKind {
    /// Types and syntax.
    Types,
    /// Style and likely mistakes.
    Lint,
    /// The build.
    Build,
    /// Tests.
    Test,
    /// Known vulnerabilities.
    Security,
    /// A command that the user named with `--check`.
    Custom,
}

impl fmt::Display for CheckKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Types => "types",
            Self::Lint => "lint",
            Self::Build => "build",
            Self::Test => "tests",
            Self::Security => "security",
            Self::Custom => "check",
        })
    }
}

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Information only.
    Note,
    /// A likely mistake.
    Warning,
    /// An error that makes the check fail.
    Error,
}

/// One finding of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnostic {
    /// The file, if the tool named a file of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<RelPath>,
    /// 1-based line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// 1-based column, in the unit of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The severity.
    pub severity: Severity,
    /// The tool's code for the finding, such as `E0308`, or a test's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The tool's message.
    pub message: String,
}

/// The outcome of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CheckOutcome {
    /// The check exited with code 0.
    Passed,
    /// The check exited with another code, or was ended by a signal or a limit.
    Failed {
        /// The exit code, if there is one.
        exit_code: Option<i32>,
        /// The reason in words, such as "exit code 101" or "timed out after 300 s".
        reason: String,
    },
    /// The check could not run (the tool is missing, the sandbox refused). This says nothing about
    /// the change.
    NotRun {
        /// The reason in words.
        reason: String,
    },
}

impl CheckOutcome {
    /// Returns true if the check ran and passed.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        matches!(self, Self::Passed)
    }

    /// Returns true if the check ran and failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        matches!(self, Self::Failed { .. })
    }
}

/// The record of a check that ran: its command, directory, sandbox and result. A verified run
/// carries such records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The kind of check.
    pub kind: CheckKind,
    /// The command, as a person would type it.
    pub command: String,
    /// The working directory, relative to the root; `None` is the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<RelPath>,
    /// True if the check ran in a copy with the test files as they were before the session changed
    /// them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub original_tests: bool,
    /// The check's outcome.
    pub outcome: CheckOutcome,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
    /// The guarantees of the sandbox in which the check ran.
    pub enforcement: Enforcement,
    /// The findings, the worst first, up to a maximum number.
    pub diagnostics: Vec<Diagnostic>,
    /// Head and tail of the output, without control characters and cut at a maximum length.
    pub output: String,
}
