//! The programs of a shell command, and how commands appear in reasons.

use journeyman_protocol::Level;

/// Maximum number of characters of a command in a reason.
const MAX_COMMAND_SHOWN: usize = 80;

/// A program that a shell command would run, with its arguments: `sudo -n env A=1 rm x | tee y` has
/// the parts `sudo -n env A=1 rm x`, `env A=1 rm x`, `rm x` and `tee y`. Rules are matched against
/// each part.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandPart {
    /// The program and its arguments, without quotes and escapes.
    pub words: Vec<CommandWord>,
    /// The level of this part by itself.
    pub level: Level,
    /// True if it is level 1 because it builds, checks or tests the project with a known tool.
    pub builds: bool,
    /// One line for people.
    pub reason: String,
    /// The data that the part would destroy, if any.
    pub destroys: Option<String>,
    /// Files that redirections of the part write, as written.
    pub writes: Vec<CommandWord>,
    /// Paths that the part writes, creates, moves or removes, as far as its words and redirections
    /// name them: from the directory in which the command starts. A path beneath an unknown
    /// directory is not known.
    pub written: Vec<WrittenPath>,
    /// Words of inline code for an interpreter, such as of `python -c`: it may use the files that
    /// they name.
    pub code_words: Vec<String>,
    /// True if that code may write files.
    pub code_writes: bool,
    /// Files that redirections of the part read, as written, and the words of a loop. After a `cd`
    /// also what the part's words and redirections name, from the directory in which the command
    /// starts.
    pub reads: Vec<CommandWord>,
    /// Hosts in the part's arguments.
    pub hosts: Vec<String>,
}

/// A word of a [`CommandPart`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandWord {
    /// The word's value; if the value is not known before the command runs, the word as written.
    pub text: String,
    /// True if the value is known: the word has no variable, substitution or pattern.
    pub known: bool,
}

/// A path that a [`CommandPart`] writes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WrittenPath {
    /// The path; if it is not known before the command runs, as written.
    pub text: String,
    /// True if the path is known.
    pub known: bool,
    /// True if everything beneath a directory is changed with it.
    pub tree: bool,
}

/// Shortens a command or a part of one for a reason.
pub(super) fn shorten_command(command: &str) -> String {
    let mut text: String = command
        .chars()
        .take(MAX_COMMAND_SHOWN)
        .map(|character| if character.is_control() { ' ' } else { character })
        .collect();
    if command.chars().nth(MAX_COMMAND_SHOWN).is_some() {
        text.push('…');
    }
    text
}
