//! The words of a command, and the directory in which the command runs.

use std::collections::BTreeSet;

use journeyman_protocol::RelPath;
use journeyman_syntax::shell::{self, Statement};

use crate::Check;
use crate::check_discovery::quote_word;

/// Maximum number of tests that a command names: more tests are most of a suite, and would make a
/// command line that no person types.
pub(super) const MAX_NAMED_TESTS: usize = 100;

/// Reads a file of the project as text; `None` if the file is missing or isn't text.
pub type ReadProjectFile<'a> = dyn Fn(&RelPath) -> Option<String> + 'a;

/// Returns the words of a command that only starts one program.
pub(crate) fn single_command_words(command: &str) -> Option<Vec<String>> {
    let script = shell::parse(command);
    let [Statement::Simple(simple)] = script.statements.as_slice() else { return None };
    if script.unclear.is_some() || !simple.redirects.is_empty() {
        return None;
    }
    simple.words.iter().map(|word| word.known.then(|| word.text.clone())).collect()
}

/// Words of programs that start the program that follows them.
const PROGRAM_LAUNCHERS: [[&str; 2]; 6] = [
    ["uv", "run"],
    ["poetry", "run"],
    ["pdm", "run"],
    ["hatch", "run"],
    ["pipenv", "run"],
    ["bundle", "exec"],
];

/// Returns the words of the program that such a launcher starts, or all words if there is none.
pub(crate) fn skip_launcher<'w, 's>(words: &'w [&'s str]) -> &'w [&'s str] {
    let started = PROGRAM_LAUNCHERS.iter().find(|starter| words.starts_with(*starter));
    words.get(started.map_or(0, |starter| starter.len())..).unwrap_or_default()
}

/// The directory in which a check runs.
pub(super) struct CheckDirectory<'a> {
    pub(super) check: &'a Check,
    pub(super) read: &'a ReadProjectFile<'a>,
}

impl CheckDirectory<'_> {
    /// Returns a path relative to the check's directory; `None` if the path lies elsewhere.
    pub(super) fn relative_path<'p>(&self, path: &'p RelPath) -> Option<&'p str> {
        let path = path.as_str()?;
        match &self.check.directory {
            None => Some(path),
            Some(directory) => path.strip_prefix(directory.as_str()?)?.strip_prefix('/'),
        }
    }

    /// Reads a file by its path relative to the check's directory.
    pub(super) fn read_file(&self, path: &str) -> Option<String> {
        let path = match &self.check.directory {
            None => RelPath::parse(path).ok()?,
            Some(directory) => directory.join(path).ok()?,
        };
        (self.read)(&path)
    }
}

/// Returns `command` with further words; `None` if there are none or too many.
pub(super) fn append_words<'t>(command: &str, more: impl IntoIterator<Item = &'t str>) -> Option<String> {
    let named: BTreeSet<&str> = more.into_iter().collect();
    if named.is_empty() || named.len() > MAX_NAMED_TESTS {
        return None;
    }
    let words: Vec<String> = named.into_iter().map(quote_word).collect();
    Some(format!("{} {}", command.trim_end(), words.join(" ")))
}
