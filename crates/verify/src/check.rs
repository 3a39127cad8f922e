//! A check of the project, and the combined outcome of several checks.

use std::time::Duration;

use journeyman_protocol::{CheckKind, CheckOutcome, Evidence, RelPath};
use journeyman_workspace::WorkspaceError;

use crate::unfailing_checks::cannot_fail;

/// Maximum duration of a check of each kind. Types and lint are what a person waits for; builds and
/// tests of large projects from a cold cache take minutes; a hung test must not hold a session for
/// an hour.
const TYPES_TIMEOUT: Duration = Duration::from_secs(300);
const LINT_TIMEOUT: Duration = Duration::from_secs(300);
const BUILD_TIMEOUT: Duration = Duration::from_secs(600);
const TEST_TIMEOUT: Duration = Duration::from_secs(900);
const SECURITY_TIMEOUT: Duration = Duration::from_secs(300);
const CUSTOM_TIMEOUT: Duration = Duration::from_secs(900);

/// A command that checks the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The kind of check.
    pub kind: CheckKind,
    /// The command, for `sh -c`, as a person would type it.
    pub command: String,
    /// The directory in which the check runs, relative to the root; `None` is the root.
    pub directory: Option<RelPath>,
    /// The ecosystem, such as `cargo`; `custom` for what the user named.
    pub ecosystem: &'static str,
    /// The reason for choosing the check, in a few words that a person understands.
    pub why: String,
    /// The maximum duration.
    pub timeout: Duration,
    /// The reason why the check can't run here, if known beforehand. The check's evidence is then
    /// `not run` with this reason.
    pub blocked: Option<String>,
    /// The reason why the check is listed and runs only if the user requests it by name.
    pub unasked: Option<String>,
    /// The command that repairs what the check finds, in the same directory, if its tool can.
    pub fix: Option<String>,
    /// The package registries, by policy's names, and hosts that the check needs. Empty for a check
    /// that runs offline.
    pub network: &'static [&'static str],
    /// True if the check's purpose is to change files: an undo reverts these changes like those of
    /// a command.
    pub repairs: bool,
    /// True if the check writes the toolchain's own caches outside of the project, as fetching
    /// does.
    pub fills_caches: bool,
    /// True if the check passes whatever the files hold, as far as its text shows.
    pub cannot_fail: bool,
    /// True if the check runs only the tests that a change can affect.
    pub affected_only: bool,
}

impl Check {
    /// Creates a check with the time limit of its kind.
    #[must_use]
    pub fn new(
        kind: CheckKind,
        ecosystem: &'static str,
        command: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            command: command.into(),
            directory: None,
            ecosystem,
            why: why.into(),
            timeout: timeout_of_kind(kind),
            blocked: None,
            unasked: None,
            fix: None,
            network: &[],
            repairs: false,
            fills_caches: false,
            cannot_fail: false,
            affected_only: false,
        }
    }

    /// Sets the directory in which the check runs.
    #[must_use]
    pub fn with_directory(mut self, directory: Option<&RelPath>) -> Self {
        self.directory = directory.cloned();
        self
    }

    /// Marks the check as unable to run, for `reason`.
    #[must_use]
    pub fn with_blocked(mut self, reason: impl Into<String>) -> Self {
        self.blocked = Some(reason.into());
        self
    }

    /// Marks the check as one that runs only if the user requests it, for `reason`.
    #[must_use]
    pub fn with_unasked(mut self, reason: impl Into<String>) -> Self {
        self.unasked.get_or_insert(reason.into());
        self
    }

    /// Sets the command that repairs what the check finds.
    #[must_use]
    pub fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// Returns the command that repairs what this check finds, as a check of its own; `None` if its
    /// tool repairs nothing.
    #[must_use]
    pub fn to_fix_check(&self) -> Option<Self> {
        let command = self.fix.clone()?;
        Some(Self {
            command,
            fix: None,
            repairs: true,
            why: format!("repairs what `{}` finds", self.command),
            ..self.clone()
        })
    }
}

/// Returns the maximum duration of a check of `kind`.
fn timeout_of_kind(kind: CheckKind) -> Duration {
    match kind {
        CheckKind::Types => TYPES_TIMEOUT,
        CheckKind::Lint => LINT_TIMEOUT,
        CheckKind::Build => BUILD_TIMEOUT,
        CheckKind::Test => TEST_TIMEOUT,
        CheckKind::Security => SECURITY_TIMEOUT,
        CheckKind::Custom => CUSTOM_TIMEOUT,
    }
}

/// Returns the checks that the user named, in their order, without blank ones.
#[must_use]
pub fn custom_checks(commands: &[String]) -> Vec<Check> {
    commands
        .iter()
        .map(|command| command.trim())
        .filter(|command| !command.is_empty())
        .map(|command| {
            let check = Check::new(CheckKind::Custom, "custom", command, "you named it");
            Check { cannot_fail: cannot_fail(command, &|_| None), ..check }
        })
        .collect()
}

/// The combined result of all evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OverallOutcome {
    /// Nothing failed, and what was meant to prove the change did run and pass.
    Passed,
    /// At least one check ran and failed.
    Failed,
    /// Nothing failed, but no check proves the change either.
    NothingRan,
}

/// Combines the evidence of all checks.
///
/// `Passed` requires more than the absence of failures: a check passed, every check that the user
/// named passed, and if the project has tests, a test command passed. A passing type check doesn't
/// prove a change whose tests could not run. Failures from before the task don't count.
#[must_use]
pub fn overall_outcome(evidence: &[Evidence]) -> OverallOutcome {
    if evidence.iter().any(Evidence::has_relevant_failure) {
        return OverallOutcome::Failed;
    }
    let passed = Evidence::is_proof;
    let proves = |one: &&Evidence| matches!(one.kind, CheckKind::Test | CheckKind::Custom);
    let named_did = evidence.iter().filter(|one| one.kind == CheckKind::Custom).all(passed);
    let has_tests = evidence.iter().any(|one| proves(&one));
    let tests_did = evidence.iter().filter(proves).any(passed);
    if evidence.iter().any(passed) && named_did && (tests_did || !has_tests) {
        OverallOutcome::Passed
    } else {
        OverallOutcome::NothingRan
    }
}

/// The error if no check could run at all. A problem of a single check is evidence, not an error.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The tree could not be compared before and after a check, so what it changes could not be
    /// undone.
    #[error("the project's files can't be tracked around `{command}`: {source}")]
    Workspace {
        /// The check's command.
        command: String,
        /// The cause.
        source: WorkspaceError,
    },
    /// Background work was torn down, as happens when the program is ending.
    #[error("the checks were cut off: {0}")]
    Stopped(String),
}

/// Returns the outcome `not run`.
pub(crate) fn not_run_outcome(reason: impl Into<String>) -> CheckOutcome {
    CheckOutcome::NotRun { reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(kind: CheckKind, outcome: CheckOutcome) -> Evidence {
        Evidence::new(kind, "", outcome)
    }

    #[test]
    fn verdict_table() {
        use CheckKind::{Custom, Lint, Test, Types};
        let pass = || CheckOutcome::Passed;
        let fail = || CheckOutcome::Failed { exit_code: Some(1), reason: "exit code 1".into() };
        let none = || not_run_outcome("no cargo");
        let cases = [
            (vec![], OverallOutcome::NothingRan),
            (vec![(Test, none())], OverallOutcome::NothingRan),
            (vec![(Test, pass())], OverallOutcome::Passed),
            (vec![(Types, pass())], OverallOutcome::Passed),
            (vec![(Types, pass()), (Test, none())], OverallOutcome::NothingRan),
            (vec![(Lint, none()), (Test, pass())], OverallOutcome::Passed),
            (vec![(Test, none()), (Test, pass())], OverallOutcome::Passed),
            (vec![(Test, pass()), (Custom, none())], OverallOutcome::NothingRan),
            (vec![(Types, fail()), (Test, none())], OverallOutcome::Failed),
            (vec![(Test, pass()), (Lint, fail())], OverallOutcome::Failed),
        ];
        for (given, expected) in cases {
            let shown = format!("{given:?}");
            let given: Vec<Evidence> = given.into_iter().map(|(kind, how)| evidence(kind, how)).collect();
            assert_eq!(overall_outcome(&given), expected, "{shown}");
        }
    }

    #[test]
    fn what_the_user_names_is_run_as_named() {
        let checks = custom_checks(&["  make smoke ".into(), " ".into(), "true && false".into()]);
        let commands: Vec<&str> = checks.iter().map(|check| check.command.as_str()).collect();
        assert_eq!(commands, ["make smoke", "true && false"]);
        assert!(checks.iter().all(|check| check.kind == CheckKind::Custom && check.blocked.is_none()));
    }
}
