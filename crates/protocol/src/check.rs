//! What a check found, and the proof that it ran.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Enforcement, RelPath};

/// What a check looks at. Ordered as checks run: the quick and certain ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckKind {
    /// Types and syntax.
    Types,
    /// Style and likely mistakes.
    Lint,
    /// Whether it builds.
    Build,
    /// Its tests.
    Test,
    /// Known weaknesses.
    Security,
    /// What the user named with `--check`.
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

/// How bad a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Likely a mistake.
    Warning,
    /// The check fails because of it.
    Error,
}

/// One finding at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnostic {
    /// The file, where the tool named one inside the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<RelPath>,
    /// 1-based line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// 1-based column, in the unit of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// How bad.
    pub severity: Severity,
    /// The tool's code for it, such as `E0308`, or a test's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What it says.
    pub message: String,
}

/// How a check ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CheckOutcome {
    /// Exit code 0.
    Passed,
    /// Another exit code, or ended by a signal or a limit.
    Failed {
        /// The exit code, where there is one.
        exit_code: Option<i32>,
        /// The reason in words, such as «exit code 101» or «timed out after 300 s».
        reason: String,
    },
    /// It could not run (the tool is missing, the sandbox refused); says nothing about the change.
    NotRun {
        /// Why.
        reason: String,
    },
}

impl CheckOutcome {
    /// Whether the check ran and passed.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        matches!(self, Self::Passed)
    }

    /// Whether the check ran and failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        matches!(self, Self::Failed { .. })
    }
}

/// Proof that a check ran: what, where, with what result. Every claim of «done» carries these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// What it looked at.
    pub kind: CheckKind,
    /// The command, as a person would type it.
    pub command: String,
    /// The directory it ran in, relative to the root; `None` is the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<RelPath>,
    /// How it ended.
    pub outcome: CheckOutcome,
    /// How long it took, in milliseconds of wall time.
    pub duration_ms: u64,
    /// What the sandbox enforced while it ran.
    pub enforcement: Enforcement,
    /// What it found, worst first, bounded.
    pub diagnostics: Vec<Diagnostic>,
    /// Head and tail of its output, cleaned and bounded.
    pub output: String,
}
