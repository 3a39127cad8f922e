//! Test commands narrowed to the tests that a change can affect.
//!
//! A command is narrowed by its own words: the runner that it calls and the arguments that this
//! runner accepts. A command that names tests already, or that does more in a shell than start one
//! program, is left unchanged.

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
    let place = CheckDirectory { check, read };
    let runner = runner_of(&place)?;
    let inside: Vec<&str> = files.iter().filter_map(|path| place.inside(path)).collect();
    let command = runner.command_for(&check.command, &inside, &place)?;
    Some(Check {
        command,
        why: format!("{}; only the tests that the change can affect", check.why),
        affected_only: true,
        ..check.clone()
    })
}

/// Returns true if a check runs all tests of a runner that accepts the names of some.
#[must_use]
pub fn takes_test_names(check: &Check, read: &ReadText<'_>) -> bool {
    runner_of(&CheckDirectory { check, read }).is_some()
}

fn runner_of(place: &CheckDirectory<'_>) -> Option<NamedTestRunner> {
    NamedTestRunner::of(&words_of(&place.check.command)?, place)
}

#[cfg(test)]
mod tests;
