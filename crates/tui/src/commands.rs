//! The commands that a message beginning with `/` names.

use journeyman_protocol::Mode;

use crate::copy_decision::LAND_WORDS;
use crate::theme::ThemeChoice;

/// A command of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    /// Shows keys and commands.
    Help,
    /// Goes on with another model.
    Model,
    /// Goes on in another mode.
    Mode,
    /// Begins a new session.
    New,
    /// Goes on with an earlier session.
    Resume,
    /// Goes on in a copy of this session.
    Fork,
    /// Goes back to an earlier message.
    Back,
    /// Shows what changed.
    Diff,
    /// Brings the changes of the session's copy into the project.
    Land,
    /// Drops the changes of the session's copy.
    Discard,
    /// Takes the session's changes back.
    Undo,
    /// Makes the changes again.
    Redo,
    /// Lists the checkpoints.
    Checkpoints,
    /// Shows the use of the model's window.
    Context,
    /// Shows tokens and cost.
    Cost,
    /// Shortens the conversation.
    Compact,
    /// Keeps a text whole when the conversation is shortened.
    Pin,
    /// No longer keeps one.
    Unpin,
    /// Shows what is allowed.
    Permissions,
    /// Lists the agents that tasks may be given to.
    Agents,
    /// Shows the plan of the session.
    Plan,
    /// Works in a copy, or in the project.
    Isolate,
    /// Lets an image go with the message.
    Image,
    /// Sets other colours.
    Theme,
    /// Writes the session into a file.
    Export,
    /// Ends the program.
    Quit,
}

/// A command's name, its argument, and its line of help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommandInfo {
    /// The command.
    pub(crate) command: Command,
    /// The name behind the slash.
    pub(crate) name: &'static str,
    /// The argument, empty if it takes none.
    pub(crate) argument: &'static str,
    /// The line of help.
    pub(crate) help: &'static str,
}

const fn command_info(
    command: Command,
    name: &'static str,
    argument: &'static str,
    help: &'static str,
) -> CommandInfo {
    CommandInfo { command, name, argument, help }
}

/// All commands, in the order in which they are listed.
pub(crate) const COMMANDS: &[CommandInfo] = &[
    command_info(Command::Help, "help", "", "keys and commands"),
    command_info(Command::Model, "model", "PROVIDER/NAME", "go on with another model"),
    command_info(Command::Mode, "mode", "MODE", "go on in mode plan, ask, edit or auto"),
    command_info(Command::New, "new", "", "begin a new session"),
    command_info(Command::Resume, "resume", "", "go on with an earlier session"),
    command_info(Command::Fork, "fork", "", "go on in a copy of this session"),
    command_info(Command::Back, "back", "", "go back to an earlier message (Esc Esc)"),
    command_info(Command::Diff, "diff", "", "review what changed since the newest run began"),
    command_info(Command::Land, "land", "HOW", "bring what the copy has into your files (also in /diff)"),
    command_info(Command::Discard, "discard", "all", "drop what the copy has for good (also in /diff)"),
    command_info(Command::Undo, "undo", "", "take back what this session changed"),
    command_info(Command::Redo, "redo", "", "do again what the newest undo took back"),
    command_info(Command::Checkpoints, "checkpoints", "", "states of the files to go back to"),
    command_info(Command::Context, "context", "", "what the model's window is used for"),
    command_info(Command::Cost, "cost", "", "tokens and cost of this session"),
    command_info(Command::Compact, "compact", "", "shorten the conversation"),
    command_info(
        Command::Pin,
        "pin",
        "TEXT",
        "keep this whole, however long it gets; alone, list what is pinned",
    ),
    command_info(Command::Unpin, "unpin", "N", "no longer keep the pinned text of this number"),
    command_info(Command::Permissions, "permissions", "", "what is allowed, asked about and denied"),
    command_info(Command::Agents, "agents", "", "the agents that tasks may be given to"),
    command_info(Command::Plan, "plan", "", "the plan of the newest task, if it has one"),
    command_info(Command::Isolate, "isolate", "on|off", "work in a copy of the project, or in your files"),
    command_info(Command::Image, "image", "FILE", "let an image go with your message (or paste its path)"),
    command_info(Command::Theme, "theme", "NAME", "other colours: auto, dark, light or none"),
    command_info(Command::Export, "export", "FILE", "write the conversation into a file, as Markdown"),
    command_info(Command::Quit, "quit", "", "end (Ctrl-D)"),
];

/// A message that is a command, or would be one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ParsedCommand {
    /// A command with its argument.
    Known(Command, String),
    /// A command that takes no argument, by its name, with one: it may be meant as a message, and
    /// would do more than it says.
    Excess(&'static str),
    /// No command: the name as typed, and the nearest one.
    Unknown(String, Option<&'static str>),
}

/// Parses a message. Returns `None` for one that is no command; a path is none.
#[must_use]
pub(crate) fn parse_command(message: &str) -> Option<ParsedCommand> {
    let (name, argument) = match message.trim().strip_prefix('/')?.split_once(char::is_whitespace) {
        Some((name, argument)) => (name, argument.trim()),
        None => (message.trim().strip_prefix('/')?, ""),
    };
    if name.is_empty() || !name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-') {
        return None;
    }
    let usual = match name {
        "exit" | "q" => "quit",
        "clear" => "new",
        "rewind" => "back",
        other => other,
    };
    Some(match COMMANDS.iter().find(|info| info.name == usual) {
        Some(found) if found.argument.is_empty() && !argument.is_empty() => ParsedCommand::Excess(found.name),
        Some(found) => ParsedCommand::Known(found.command, argument.to_owned()),
        None => ParsedCommand::Unknown(name.to_owned(), nearest_command(name)),
    })
}

/// Returns the command whose name is most like a word.
fn nearest_command(name: &str) -> Option<&'static str> {
    /// Maximum letters that a slip of the finger changes.
    const MAX_DISTANCE: usize = 2;
    let scored = COMMANDS.iter().map(|info| {
        let distance = strsim::damerau_levenshtein(name, info.name);
        // Of two that are as near, two letters were swapped rather than one forgotten.
        (distance, name.len().abs_diff(info.name.len()), info.name)
    });
    scored.filter(|(distance, ..)| *distance <= MAX_DISTANCE).min().map(|(.., name)| name)
}

/// Returns the values that a command's argument may have, where there are few.
#[must_use]
pub(crate) fn argument_values(name: &str) -> Vec<&'static str> {
    match name {
        "mode" => Mode::ALL.iter().map(|mode| mode.name()).collect(),
        "isolate" => vec!["on", "off"],
        "land" => LAND_WORDS.to_vec(),
        "discard" => vec!["all"],
        "theme" => ThemeChoice::NAMES.to_vec(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_from_commands() {
        let known = |command, argument: &str| Some(ParsedCommand::Known(command, argument.to_owned()));
        let unknown = |name: &str, nearest| Some(ParsedCommand::Unknown(name.to_owned(), nearest));
        for (message, expected) in [
            ("/help", known(Command::Help, "")),
            (" /mode  auto ", known(Command::Mode, "auto")),
            ("/exit", known(Command::Quit, "")),
            ("/undo only a.rs", Some(ParsedCommand::Excess("undo"))),
            ("/clear\nthe cache", Some(ParsedCommand::Excess("new"))),
            ("/modle x", unknown("modle", Some("model"))),
            ("/zzz", unknown("zzz", None)),
            ("/usr/bin/env is a path", None),
            ("/", None),
            ("fix /help", None),
        ] {
            assert_eq!(parse_command(message), expected, "{message:?}");
        }
    }
}
