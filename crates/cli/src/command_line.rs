//! Parsing the command line, and errors as people and programs read them.

use std::ffi::OsString;

use clap::error::{ContextKind, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _};
use journeyman_host::HostError;
use journeyman_host::format::printable;
use journeyman_host::task_input::has_piped_input;
use journeyman_terminal::{Paint, stderr_paint};
use journeyman_tui::is_at_terminal;
use serde_json::json;

use crate::args::{Cli, Command, command_with_grouped_help, define_command};
use crate::output::{format_error, print_json_line};

/// The exit code of a wrong command line.
const EXIT_USAGE: u8 = 2;
/// The commands whose first argument is a sentence.
const SENTENCE_COMMANDS: [&str; 2] = ["run", "ask"];

/// The failure of a command.
pub(crate) enum CommandError {
    /// The command line can't be parsed, or asks for help. The advice is a line of our own.
    CommandLine { error: Box<clap::Error>, advice: Option<String> },
    /// The command failed.
    Host(HostError),
}

impl From<HostError> for CommandError {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

impl CommandError {
    /// Prints the error, with `is_json` as one JSON object. Returns the exit code.
    pub(crate) fn print(&self, is_json: bool) -> u8 {
        let (code, text) = match self {
            Self::CommandLine { error, .. } if !error.use_stderr() => {
                // Help and version are no errors. Nothing can be done about a closed stream here.
                error.print().ok();
                return 0;
            }
            Self::CommandLine { error, advice } => {
                // Help on nothing given is laid out already.
                if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
                    error.print().ok();
                } else {
                    let rendered = error.render();
                    match stderr_paint() {
                        Paint::COLORED => err!("{}", rendered.ansi()),
                        _ => err!("{rendered}"),
                    }
                }
                if let Some(advice) = advice {
                    errln!("\n  {} {advice}", stderr_paint().green("tip:"));
                }
                let text = error.to_string();
                let said: Vec<&str> =
                    text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
                (EXIT_USAGE, said.join(" ").trim_start_matches("error: ").to_owned())
            }
            Self::Host(error) => {
                errln!("{}: {}", stderr_paint().red("error"), format_error(error));
                (error.exit_code(), format_error(error))
            }
        };
        if is_json {
            // The error is on standard error, even if the object can't be written.
            print_json_line(&json!({ "error": text, "exit_code": code })).ok();
        }
        code
    }
}

/// Parses the command line. A sentence in place of a command is a task, and where a person can see
/// it the first message of a conversation. So is nothing, or flags alone.
pub(crate) fn parse_arguments(mut arguments: Vec<OsString>) -> Result<Cli, CommandError> {
    let typed = arguments.clone();
    let at = command_index(&arguments);
    let first = arguments.get(at);
    let is_task = first.is_some_and(is_sentence) || has_flags_and_sentence(&arguments, at);
    let is_conversation = is_task || first.is_none_or(is_command_flag);
    if is_conversation && !has_run_flag(&arguments) && is_at_terminal() {
        arguments.insert(at, "chat".into());
    } else if is_task || is_conversation && has_piped_input() {
        // Piped data is the task.
        arguments.insert(at, "run".into());
    }
    let matches = define_command().try_get_matches_from(&arguments).or_else(|error| match error.kind() {
        // Only a shown help pays for its layout.
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            command_with_grouped_help().try_get_matches_from(&arguments)
        }
        _ => Err(error),
    });
    let parsed = matches.and_then(|matches| Cli::from_arg_matches(&matches)).map_err(|error| {
        if let Some(unquoted) = unquoted_sentence_error(&error, &typed) {
            return CommandError::Host(unquoted);
        }
        let advice = suggest_quotes(&error, &typed);
        CommandError::CommandLine { error: Box::new(error), advice }
    })?;
    match command_as_task(&parsed).filter(|_| arguments.len() > typed.len()) {
        Some(error) => Err(CommandError::Host(error)),
        None => Ok(parsed),
    }
}

/// Returns the error of a command that stands behind its flags, as in `jm -C DIR undo`: it would be
/// a task for the model.
fn command_as_task(parsed: &Cli) -> Option<HostError> {
    let task = match &parsed.command {
        Command::Chat(args) => args.message.as_deref(),
        Command::Run(args) => args.task.as_deref(),
        _ => None,
    };
    let command = task.filter(|word| is_command(word))?;
    Some(HostError::usage(format_args!(
        "a command comes before its flags: jm {command} …; a task of this one word is given as: jm run {command}"
    )))
}

/// Returns the index of the command, after the program's name and global flags.
fn command_index(arguments: &[OsString]) -> usize {
    match arguments.get(1).and_then(|argument| argument.to_str()) {
        Some("--color") => arguments.len().min(3),
        Some(argument) if argument.starts_with("--color=") => 2,
        _ => 1,
    }
}

/// Returns true for a flag that isn't global.
fn is_command_flag(argument: &OsString) -> bool {
    const PROGRAM_FLAGS: [&str; 4] = ["-h", "--help", "-V", "--version"];
    argument.to_str().is_some_and(|text| text.starts_with('-') && !PROGRAM_FLAGS.contains(&text))
}

/// Returns true if the command line begins with flags that a task follows.
fn has_flags_and_sentence(arguments: &[OsString], at: usize) -> bool {
    arguments.get(at).is_some_and(is_command_flag) && arguments.iter().skip(at).any(is_sentence)
}

/// Returns true if the command line has a flag of `jm run` that a conversation doesn't have.
fn has_run_flag(arguments: &[OsString]) -> bool {
    const RUN_FLAGS: [&str; 16] = [
        "--json",
        "--stream-json",
        "--quiet",
        "-q",
        "--verbose",
        "-v",
        "--candidates",
        "--file",
        "--land",
        "--agent",
        "--input",
        "--plan",
        "--with",
        "--image",
        "--open",
        "-",
    ];
    let mut flags = arguments.iter().filter_map(|argument| argument.to_str());
    flags.any(|flag| RUN_FLAGS.contains(&flag.split('=').next().unwrap_or_default()))
}

/// Returns true if the command line asks for output that a program reads.
pub(crate) fn has_json_flag(arguments: &[OsString]) -> bool {
    let flags = arguments.iter().take_while(|argument| *argument != "--");
    flags.skip(1).any(|argument| argument == "--json" || argument == "--stream-json")
}

/// Returns true for words with spaces between them.
fn is_sentence(argument: &OsString) -> bool {
    argument.to_str().is_some_and(|text| !text.starts_with('-') && text.trim().contains(char::is_whitespace))
}

/// Joins the words from index `from` up to the first flag; `None` for fewer than two.
fn join_unquoted_words(arguments: &[OsString], from: usize) -> Option<String> {
    let words = arguments.get(from..)?.iter().map_while(|word| word.to_str());
    let words: Vec<&str> = words.take_while(|word| !word.starts_with('-')).collect();
    (words.len() > 1).then(|| words.join(" "))
}

/// Returns the error of a task or question that isn't in quotes.
fn unquoted_sentence_error(error: &clap::Error, arguments: &[OsString]) -> Option<HostError> {
    let command = arguments.get(1)?.to_str().filter(|word| SENTENCE_COMMANDS.contains(word))?;
    let is_extra = matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::ValueValidation);
    let words = join_unquoted_words(arguments, 2).filter(|_| is_extra)?;
    let what = if command == "ask" { "question" } else { "task" };
    Some(HostError::usage(format_args!(
        "the {what} has to be one argument; quote it: jm {command} \"{words}\""
    )))
}

/// Returns advice for a task in place of a command, and for a command behind its flags.
fn suggest_quotes(error: &clap::Error, arguments: &[OsString]) -> Option<String> {
    let first = arguments.get(1)?.to_str()?;
    if let Some(command) = find_command_behind_flags(arguments) {
        return Some(format!("a command comes before its flags: jm {command} …"));
    }
    match error.kind() {
        ErrorKind::InvalidSubcommand
            if error.get(ContextKind::SuggestedSubcommand).is_none()
                || join_unquoted_words(arguments, 1).is_some() =>
        {
            Some(match join_unquoted_words(arguments, 1) {
                Some(task) => format!("a task is given in quotes: jm \"{task}\""),
                // Quotes around one word are gone before a program sees it.
                None => format!("a task of one word is given as: jm run \"{}\"", printable(first)),
            })
        }
        ErrorKind::UnknownArgument if !is_command(first) => {
            Some("a task is given as: jm run \"TASK\"".to_owned())
        }
        _ => None,
    }
}

/// Returns the command of a command line that begins with flags. A word next to a flag may be its
/// value.
fn find_command_behind_flags(arguments: &[OsString]) -> Option<&str> {
    let at = command_index(arguments);
    arguments.get(at).filter(|first| is_command_flag(first))?;
    let words = arguments.iter().skip(at).map_while(|word| word.to_str());
    let mut pairs = words.clone().zip(words.skip(1));
    pairs.find(|(before, word)| !before.starts_with('-') && is_command(word)).map(|(_, command)| command)
}

fn is_command(word: &str) -> bool {
    Cli::command().get_subcommands().any(|command| command.get_name() == word)
}
