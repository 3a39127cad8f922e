//! Checks: their diagnostics, outcome, and the evidence that they ran.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ContentHash, Enforcement, RelPath, UnixMillis};

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
    /// The name of the failed test, as its runner names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// The value that the failed assertion expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The value that the failed assertion got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual: Option<String>,
    /// Wall time of the failed test in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The lines of the file around `line`, with their numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// True if the same failure was there before the task.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub before_task: bool,
}

/// The end of the note about findings that aren't listed.
const UNLISTED_NOTE: &str = " more findings are not listed";

impl Diagnostic {
    /// Creates the note that so many findings aren't listed: those of the lowest severity.
    #[must_use]
    pub fn unlisted(count: usize) -> Self {
        Self::new(Severity::Note, format!("{count}{UNLISTED_NOTE}"))
    }

    fn is_unlisted_note(&self) -> bool {
        self.severity == Severity::Note && self.path.is_none() && self.message.ends_with(UNLISTED_NOTE)
    }

    /// Creates a diagnostic without a location and a test.
    #[must_use]
    pub fn new(severity: Severity, message: impl Into<String>) -> Self {
        Self {
            path: None,
            line: None,
            column: None,
            severity,
            code: None,
            message: message.into(),
            test: None,
            expected: None,
            actual: None,
            duration_ms: None,
            source: None,
            before_task: false,
        }
    }
}

/// The number of tests that a check ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestCounts {
    /// The number of tests that passed.
    pub passed: u64,
    /// The number of tests that failed.
    pub failed: u64,
    /// The number of tests that were found and not run.
    pub skipped: u64,
}

/// The failures of a check by name, compared with the tree before the task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Baseline {
    /// The failures that were there before the task.
    pub old: Vec<String>,
    /// Those of them that the change can affect: the task may be to fix them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub affected: Vec<String>,
    /// The failures that were not there before the task.
    pub new: Vec<String>,
    /// The failures from before the task that are gone.
    pub fixed: Vec<String>,
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

/// Names a check for people: packages of one repository have checks with the same command.
#[must_use]
pub fn label_check(command: &str, directory: Option<&RelPath>) -> String {
    match directory {
        Some(directory) => format!("{command} (in {directory})"),
        None => command.to_owned(),
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
    /// The time at which the check started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<UnixMillis>,
    /// The hash of the tree on which the check ran: of the paths, modes and contents of the
    /// project's files. What the check says holds for no other tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<ContentHash>,
    /// The number of tests that ran, if the runner said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestCounts>,
    /// True if the check ran only the tests that the change affects.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub affected_only: bool,
    /// The tests that failed, and passed when they ran again on the same tree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flaky: Vec<String>,
    /// The failures compared with the tree before the task, if that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
}

impl Evidence {
    /// Returns true if there may be errors that aren't listed.
    #[must_use]
    pub fn has_unlisted_errors(&self) -> bool {
        let found = &self.diagnostics;
        found.iter().any(Diagnostic::is_unlisted_note)
            && found.iter().all(|one| one.severity == Severity::Error || one.is_unlisted_note())
    }

    /// Creates the evidence of an unconfined check at the root, with no duration and no output.
    #[must_use]
    pub fn new(kind: CheckKind, command: impl Into<String>, outcome: CheckOutcome) -> Self {
        Self {
            kind,
            command: command.into(),
            directory: None,
            original_tests: false,
            outcome,
            duration_ms: 0,
            enforcement: Enforcement::none(),
            diagnostics: Vec::new(),
            output: String::new(),
            started: None,
            tree: None,
            tests: None,
            affected_only: false,
            flaky: Vec::new(),
            baseline: None,
        }
    }

    /// Returns the command with its directory, as people read it.
    #[must_use]
    pub fn label(&self) -> String {
        label_check(&self.command, self.directory.as_ref())
    }

    /// Returns true if the check failed, unless all failures existed before the task and the change
    /// can't affect them.
    #[must_use]
    pub fn has_relevant_failure(&self) -> bool {
        let is_unrelated = |baseline: &Baseline| baseline.new.is_empty() && baseline.affected.is_empty();
        self.outcome.has_failed() && !self.baseline.as_ref().is_some_and(is_unrelated)
    }

    /// Returns true if the check fails, and all of its failures existed before the task.
    #[must_use]
    pub fn has_only_old_failures(&self) -> bool {
        self.has_relevant_failure() && self.baseline.as_ref().is_some_and(|baseline| baseline.new.is_empty())
    }

    /// Returns true if the check supports the change: it passed, or other tests passed and all
    /// failures existed before the task and can't be affected by the change.
    #[must_use]
    pub fn is_proof(&self) -> bool {
        let has_passed_tests = self.tests.is_some_and(|tests| tests.passed > 0);
        self.outcome.has_passed()
            || self.outcome.has_failed() && !self.has_relevant_failure() && has_passed_tests
    }
}
