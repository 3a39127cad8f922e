//! Parsing the command line, and errors as people and programs read them.

use std::ffi::OsString;

use clap::error::{ContextKind, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _};
use journeyman_host::HostError;
use serde_json::json;

use crate::args::{Cli, build_command};
use crate::color;
use crate::output::{print_json_line, shown_error};

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
    /// Prints the error for people, and for programs as one JSON object if they asked for JSON.
    /// Returns the exit code.
    pub(crate) fn print(&self, is_json: bool) -> u8 {
        let (code, text) = match self {
            Self::CommandLine { error, .. } if !error.use_stderr() => {
                // Help and version are no errors. Nothing can be done about a closed stream here.
                error.print().ok();
                return 0;
            }
            Self::CommandLine { error, advice } => {
                error.print().ok();
                if let Some(advice) = advice {
                    errln!("\n  {} {advice}", color::stderr().green("tip:"));
                }
                let text = error.to_string();
                let first = text.lines().next().unwrap_or_default();
                (EXIT_USAGE, first.trim_start_matches("error: ").to_owned())
            }
            Self::Host(error) => {
                errln!("{}: {}", color::stderr().red("error"), shown_error(error));
                (error.exit_code(), shown_error(error))
            }
        };
        if is_json {
            // The error is on standard error, whatever becomes of the object.
            print_json_line(&json!({ "error": text, "exit_code": code })).ok();
        }
        code
    }
}

/// Parses the command line. A sentence in place of a command is a task.
pub(crate) fn parse_arguments(mut arguments: Vec<OsString>) -> Result<Cli, CommandError> {
    if arguments.get(1).is_some_and(is_sentence) {
        arguments.insert(1, "run".into());
    }
    let matches = build_command().try_get_matches_from(&arguments);
    matches.and_then(|matches| Cli::from_arg_matches(&matches)).map_err(|error| {
        let advice = advise(&error, &arguments);
        CommandError::CommandLine { error: Box::new(error), advice }
    })
}

/// Returns true if the command line asks for output that a program reads.
pub(crate) fn asks_for_json(arguments: &[OsString]) -> bool {
    let flags = arguments.iter().take_while(|argument| *argument != "--");
    flags.skip(1).any(|argument| argument == "--json" || argument == "--stream-json")
}

/// Returns true for words with spaces between them.
fn is_sentence(argument: &OsString) -> bool {
    argument.to_str().is_some_and(|text| !text.starts_with('-') && text.trim().contains(char::is_whitespace))
}

/// Returns advice for a task without quotes, or in place of a command.
fn advise(error: &clap::Error, arguments: &[OsString]) -> Option<String> {
    let words = |from: usize| -> Option<String> {
        let words: Vec<&str> = arguments.get(from..)?.iter().map_while(|word| word.to_str()).collect();
        let words: Vec<&str> = words.into_iter().take_while(|word| !word.starts_with('-')).collect();
        (words.len() > 1).then(|| words.join(" "))
    };
    let first = arguments.get(1)?.to_str()?;
    match error.kind() {
        ErrorKind::InvalidSubcommand
            if error.get(ContextKind::SuggestedSubcommand).is_none() || words(1).is_some() =>
        {
            let task = words(1).unwrap_or_else(|| "TASK".to_owned());
            Some(format!("a task is given in quotes: jm \"{task}\""))
        }
        ErrorKind::UnknownArgument if !is_command(first) => {
            Some("a task is given as: jm run \"TASK\"".to_owned())
        }
        ErrorKind::UnknownArgument | ErrorKind::ValueValidation if SENTENCE_COMMANDS.contains(&first) => {
            Some(format!("quote it, so that it is one argument: jm {first} \"{}\"", words(2)?))
        }
        _ => None,
    }
}

fn is_command(word: &str) -> bool {
    Cli::command().get_subcommands().any(|command| command.get_name() == word)
}
