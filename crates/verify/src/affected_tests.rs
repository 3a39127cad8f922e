//! Test commands narrowed to the tests that a change can affect.
//!
//! A command is narrowed by its own words: the runner that it calls and the arguments that this
//! runner accepts. A command that names tests already, or that does more in a shell than start one
//! program, is left unchanged.

mod cargo;
mod command;
mod go;
mod javascript;
mod runner;

use journeyman_protocol::{CheckKind, Diagnostic, Evidence, RelPath, Severity};

use crate::Check;
use crate::baseline::lists_all_failures;
use crate::test_files::is_test_file;
use command::CheckDirectory;
pub use command::ReadProjectFile;
pub(crate) use command::{single_command_words, skip_launcher};
use runner::NamedTestRunner;

/// Returns the check narrowed to some files: tests that a change can affect, and the changed files
/// themselves, since they may have tests in them. `None` if the check runs no tests, if its runner
/// isn't known or takes no names, or if none of the files is a test to it.
#[must_use]
pub fn narrow_to_files(check: &Check, files: &[RelPath], read: &ReadProjectFile<'_>) -> Option<Check> {
    if check.kind != CheckKind::Test && check.kind != CheckKind::Custom {
        return None;
    }
    let place = CheckDirectory { check, read };
    let runner = detect_runner(&place)?;
    // Runners fail where a file that they are told to run is gone.
    let there = files.iter().filter(|path| read(path).is_some());
    let inside: Vec<&str> = there.filter_map(|path| place.relative_path(path)).collect();
    let command = runner.narrow_command(&check.command, &inside, &place)?;
    Some(Check {
        command,
        why: format!("{}; only the tests that the change can affect", check.why),
        affected_only: true,
        ..check.clone()
    })
}

/// Returns the check narrowed to the files of all tests that failed. `None` also where not all
/// failures are known, where one is no test's, or its place is not in a file of tests: a test that
/// fails in the product's code may be in any file.
#[must_use]
pub fn narrow_to_failed_tests(check: &Check, failed: &Evidence, read: &ReadProjectFile<'_>) -> Option<Check> {
    if !lists_all_failures(failed) {
        return None;
    }
    let test_file = |found: &Diagnostic| {
        let is_named = |path: &RelPath| found.test.is_some() && path.as_str().is_some_and(is_test_file);
        let path = found.path.clone().filter(is_named)?;
        narrow_to_files(check, std::slice::from_ref(&path), read).map(|_| path)
    };
    let failures = failed.diagnostics.iter().filter(|found| found.severity == Severity::Error);
    let files: Option<Vec<RelPath>> = failures.map(test_file).collect();
    narrow_to_files(check, &files?, read)
}

/// Returns true if a check runs all tests of a runner that accepts the names of some.
#[must_use]
pub fn accepts_test_names(check: &Check, read: &ReadProjectFile<'_>) -> bool {
    detect_runner(&CheckDirectory { check, read }).is_some()
}

fn detect_runner(place: &CheckDirectory<'_>) -> Option<NamedTestRunner> {
    NamedTestRunner::detect(&single_command_words(&place.check.command)?, place)
}

#[cfg(test)]
mod tests;
