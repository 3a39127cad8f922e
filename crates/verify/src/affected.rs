//! Test commands narrowed to the tests that a change can affect.
//!
//! A command is narrowed by what its own words say: the runner that it calls and what that runner
//! takes on its command line. A command that names tests already, or that a shell would do more
//! with than start one program, is left alone.

mod cargo;
mod command;
mod javascript;
mod runner;

use journeyman_protocol::{CheckKind, RelPath};

use crate::Check;
use command::CheckDirectory;
pub use command::ReadText;
pub(crate) use command::{started_program, words_of};
use runner::NamedTestRunner;

/// Returns the check narrowed to some files: tests that a change can affect, and the changed files
/// themselves, since they may have tests in them. `None` if the check runs no tests, if its runner
/// isn't known or takes no names, or if none of the files is a test to it.
#[must_use]
pub fn narrow(check: &Check, files: &[RelPath], read: &ReadText<'_>) -> Option<Check> {
    if check.kind != CheckKind::Test && check.kind != CheckKind::Custom {
        return None;
    }
    let words = words_of(&check.command)?;
    let place = CheckDirectory { check, read };
    let inside: Vec<&str> = files.iter().filter_map(|path| place.inside(path)).collect();
    let command = NamedTestRunner::of(&words, &place)?.command_for(&check.command, &inside, &place)?;
    Some(Check {
        command,
        why: format!("{}; only the tests that the change can affect", check.why),
        affected_only: true,
        ..check.clone()
    })
}

/// Returns true if a check runs all tests of a runner that takes the names of some.
#[must_use]
pub fn takes_test_names(check: &Check, read: &ReadText<'_>) -> bool {
    words_of(&check.command)
        .is_some_and(|words| NamedTestRunner::of(&words, &CheckDirectory { check, read }).is_some())
}

#[cfg(test)]
mod tests;
