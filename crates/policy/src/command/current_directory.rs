//! The directory in which a part of a command runs, as far as it is known from `cd` before the
//! command runs.

use journeyman_syntax::shell::Word;

use super::part::{CommandWord, WrittenPath};

/// The current directory, relative to the one in which the command starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CurrentDirectory {
    /// A path: absolute, from the home (`~`), or from the start; empty for the start.
    At(String),
    /// Nothing says where.
    Unknown,
}

impl Default for CurrentDirectory {
    fn default() -> Self {
        Self::At(String::new())
    }
}

impl CurrentDirectory {
    /// Follows `cd`, `pushd` or `popd` with these words.
    pub(super) fn apply_cd(&mut self, words: &[Word]) {
        let name = words.first().map_or("", |word| word.text.as_str());
        let mut operands = words
            .iter()
            .skip(1)
            .skip_while(|word| word.known && word.text.len() > 1 && word.text.starts_with('-'));
        match (name, operands.next()) {
            ("cd", None) => *self = Self::At("~".to_owned()),
            ("cd" | "pushd", Some(word)) if word.text != "-" => self.enter(word),
            _ => *self = Self::Unknown,
        }
    }

    /// Follows a change to a directory.
    pub(super) fn enter(&mut self, directory: &Word) {
        let target = directory.text.as_str();
        let is_known = directory.known && !directory.dialect
            // An unquoted `~` isn't known before it runs, and is none of the project's.
            || target == "~" || target.starts_with("~/");
        *self = match self.resolve_operand(target).filter(|_| is_known) {
            Some(place) => Self::At(place),
            None => Self::Unknown,
        };
    }

    /// Returns the path of an operand; `None` if the directory is unknown. Patterns are not
    /// expanded.
    fn resolve_operand(&self, operand: &str) -> Option<String> {
        if operand.starts_with(['/', '~']) {
            return Some(join_normalized("", operand));
        }
        match self {
            Self::At(directory) => Some(join_normalized(directory, operand)),
            Self::Unknown => None,
        }
    }

    /// Returns a written path from the directory in which the command starts.
    pub(super) fn resolve_written(&self, path: WrittenPath) -> WrittenPath {
        // A variable may hold an absolute path.
        if path.text.starts_with(['$', '`', '"']) {
            return path;
        }
        match self.resolve_operand(&path.text) {
            Some(text) => WrittenPath { text, ..path },
            None => WrittenPath { known: false, ..path },
        }
    }

    /// Returns words, and the values after `=` in them, as paths from the directory in which the
    /// command starts; nothing before a `cd`, or if the directory is unknown.
    pub(super) fn resolve_moved<'w>(&self, words: impl Iterator<Item = &'w CommandWord>) -> Vec<CommandWord> {
        let directory = match self {
            Self::At(directory) if !directory.is_empty() => directory,
            _ => return Vec::new(),
        };
        let texts = words.flat_map(|word| {
            let value = word.text.split_once('=').map(|(_, value)| (value, word.known));
            [Some((word.text.as_str(), word.known)), value]
        });
        // A variable may hold an absolute path.
        let relative = |text: &str| !text.is_empty() && !text.starts_with(['/', '~', '-', '$', '`', '"']);
        let moved = texts.flatten().filter(|(text, _)| relative(text));
        moved.map(|(text, known)| CommandWord { text: join_normalized(directory, text), known }).collect()
    }

    /// Returns the path of a relative operand, if the current directory lies outside of the one in
    /// which the command starts.
    pub(super) fn resolve_outside_operand(&self, operand: &str) -> Option<String> {
        let Self::At(directory) = self else { return None };
        let is_relative = !operand.is_empty() && !operand.starts_with(['/', '~', '-']);
        let is_outside = directory.starts_with(['/', '~']) || directory.split('/').any(|name| name == "..");
        (is_relative && is_outside).then(|| join_normalized(directory, operand))
    }
}

/// Joins a path to a directory, without `.` and with `..` resolved where the name before it is
/// known.
fn join_normalized(directory: &str, path: &str) -> String {
    let is_absolute = directory.starts_with('/') || (directory.is_empty() && path.starts_with('/'));
    let mut names: Vec<&str> = Vec::new();
    for name in directory.split('/').chain(path.split('/')) {
        match (name, names.last().copied()) {
            ("" | ".", _) => {}
            ("..", None) if is_absolute => {}
            ("..", Some(last)) if last != ".." && !last.starts_with('~') => drop(names.pop()),
            (name, _) => names.push(name),
        }
    }
    let joined = names.join("/");
    if is_absolute { format!("/{joined}") } else { joined }
}

#[cfg(test)]
mod tests {
    use journeyman_syntax::shell::{Statement, parse};

    use super::*;

    fn after(commands: &[&str]) -> CurrentDirectory {
        let mut directory = CurrentDirectory::default();
        for command in commands {
            match parse(command).statements.as_slice() {
                [Statement::Simple(simple)] => directory.apply_cd(&simple.words),
                _ => panic!("{command}"),
            }
        }
        directory
    }

    #[test]
    fn literal_operands_are_followed() {
        for (commands, operand, place) in [
            (&["cd /"][..], "./*", Some("/*")),
            (&["cd /"], "*", Some("/*")),
            (&["cd /"], ".", Some("/")),
            (&["cd / "], "../..", Some("/")),
            (&["cd -P -- /etc/ssh"], "../passwd", Some("/etc/passwd")),
            (&["cd /", "cd etc"], "passwd", Some("/etc/passwd")),
            (&["pushd /var"], "x", Some("/var/x")),
            (&["cd"], "*", Some("~/*")),
            (&["cd ~/.ssh"], "id_rsa", Some("~/.ssh/id_rsa")),
            (&["cd .."], "*", Some("../*")),
            (&["cd ../.."], "x/..", Some("../..")),
            (&["cd /", "cd -"], "*", None),
            (&["cd $X"], "*", None),
            (&["cd $X", "cd /"], "*", Some("/*")),
            (&["cd $X", "cd a"], "*", None),
            (&["popd"], "*", None),
            (&["cd src"], "*", None),
            (&["cd src/.."], "*", None),
            (&["cd /"], "/etc", None),
            (&["cd /"], "-rf", None),
        ] {
            assert_eq!(
                after(commands).resolve_outside_operand(operand).as_deref(),
                place,
                "{commands:?} {operand}"
            );
        }
    }
}
