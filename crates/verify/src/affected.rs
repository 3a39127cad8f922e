//! Test commands narrowed to the tests that a change can affect.
//!
//! A command is narrowed by what its own words say: the runner that it calls and what that runner
//! takes on its command line. A command that names tests already, or that a shell would do more
//! with than start one program, is left alone.

mod cargo;
mod javascript;
mod runner;

use std::collections::BTreeSet;

use journeyman_protocol::{CheckKind, RelPath};
use journeyman_syntax::shell::{self, Statement};

use crate::Check;
use crate::find::quoted;
use runner::Runner;

/// Maximum number of tests that a command names: more are most of a suite, and a command line of
/// this length is no longer something a person would type.
const MAX_NAMED_TESTS: usize = 100;

/// Reads a file of the project as text; `None` if it isn't there or isn't text.
pub type ReadText<'a> = dyn Fn(&RelPath) -> Option<String> + 'a;

/// Returns the check narrowed to some files: tests that a change can affect, and the changed files
/// themselves, since they may have tests in them. `None` if the check runs no tests, if its runner
/// isn't known or takes no names, or if none of the files is a test to it.
#[must_use]
pub fn narrow(check: &Check, files: &[RelPath], read: &ReadText<'_>) -> Option<Check> {
    if check.kind != CheckKind::Test && check.kind != CheckKind::Custom {
        return None;
    }
    let words = words_of(&check.command)?;
    let place = Place { check, read };
    let inside: Vec<&str> = files.iter().filter_map(|path| place.inside(path)).collect();
    let command = Runner::of(&words, &place)?.command_for(&check.command, &inside, &place)?;
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
    words_of(&check.command).is_some_and(|words| Runner::of(&words, &Place { check, read }).is_some())
}

/// Returns the words of a command that does nothing but start one program.
fn words_of(command: &str) -> Option<Vec<String>> {
    let script = shell::parse(command);
    let [Statement::Simple(simple)] = script.statements.as_slice() else { return None };
    if script.unclear.is_some() || !simple.redirects.is_empty() {
        return None;
    }
    simple.words.iter().map(|word| word.known.then(|| word.text.clone())).collect()
}

/// The directory of a check.
struct Place<'a> {
    check: &'a Check,
    read: &'a ReadText<'a>,
}

impl Place<'_> {
    /// Returns a path as the check's directory has it; `None` if it lies elsewhere.
    fn inside<'p>(&self, path: &'p RelPath) -> Option<&'p str> {
        let path = path.as_str()?;
        match &self.check.directory {
            None => Some(path),
            Some(directory) => path.strip_prefix(directory.as_str()?)?.strip_prefix('/'),
        }
    }

    /// Reads a file by its path from the check's directory.
    fn read(&self, path: &str) -> Option<String> {
        let path = match &self.check.directory {
            None => RelPath::parse(path).ok()?,
            Some(directory) => directory.join(path).ok()?,
        };
        (self.read)(&path)
    }
}

/// Returns `command` with further words; `None` if there are none or too many.
fn append<'t>(command: &str, more: impl IntoIterator<Item = &'t str>) -> Option<String> {
    let named: BTreeSet<&str> = more.into_iter().collect();
    if named.is_empty() || named.len() > MAX_NAMED_TESTS {
        return None;
    }
    let words: Vec<String> = named.into_iter().map(quoted).collect();
    Some(format!("{} {}", command.trim_end(), words.join(" ")))
}

#[cfg(test)]
mod tests;
