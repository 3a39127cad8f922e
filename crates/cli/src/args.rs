//! The command line's shape.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, Parser, Subcommand};

/// What `jm run --help` adds about its end.
const EXIT_CODES: &str = "\
Exit codes:
    0  verified: the change is in place and every check that ran passed
    1  error
    2  usage: a wrong flag, an unknown model, a missing key, a bad configuration
    3  finished, but checks fail
    4  finished, and nothing verified it (no check was found or could run, or nothing changed)
    5  a limit was reached: turns, time or budget
    6  a permission was needed and there was nobody to ask
  130  interrupted

Examples:
  jm run \"make the date parser accept ISO weeks\"
  jm run --check 'make test' --model openai/gpt-5 \"fix the flaky retry test\"
  jm run --base-url http://127.0.0.1:8080 --wire chat --model local \"explain src/lib.rs\"
  git diff main | jm run --json -

The result goes to stdout, progress to stderr.";

/// A coding agent that lands only verified change.
#[derive(Debug, Parser)]
#[command(name = "jm", version, about, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Take a task to a verified change in this directory
    #[command(after_help = EXIT_CODES)]
    Run(Box<RunArgs>),
    /// Watch the whole way on a small built-in project, offline, with a scripted model
    Demo(DemoArgs),
    /// Say what is installed, what the sandbox enforces here, and which keys are set
    Doctor(DoctorArgs),
    /// List sessions, newest first
    Sessions(SessionsArgs),
    /// Show what happened in a session
    Show(ShowArgs),
    /// Take back what a session changed
    Undo(UndoArgs),
    /// Print the effective configuration and where each value comes from
    Config(ConfigArgs),
    /// Print a completion script for a shell
    Completions {
        /// bash, zsh, fish, elvish or powershell
        shell: clap_complete::Shell,
    },
}

/// Where and with which model: shared by everything that starts a session.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ModelArgs {
    /// The model, as provider/name (anthropic/…, openai/…, gemini/…, ollama/…, …)
    #[arg(long, short, value_name = "PROVIDER/NAME")]
    pub(crate) model: Option<String>,
    /// An endpoint without any configuration; goes with --wire. Its key, if it wants one: $JM_API_KEY
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// The protocol of --base-url: anthropic, responses, chat or gemini
    #[arg(long, value_name = "PROTOCOL")]
    pub(crate) wire: Option<String>,
    /// Write every exchange with the model to this file (keys are never in it)
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Play a recording back instead of asking a model
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The task; `-` reads it from standard input
    #[arg(value_name = "TASK", required_unless_present = "file", conflicts_with = "file")]
    pub(crate) task: Option<String>,
    /// Read the task from a file
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Option<PathBuf>,
    /// Work in this directory instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// What is allowed without asking: plan (read only), ask, edit (files), auto (files and sandboxed commands).
    /// Built-in: edit in a terminal, auto without one
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<String>,
    /// A shell command that verifies the change, in place of the checks found in the project (repeatable)
    #[arg(long, value_name = "CMD", conflicts_with = "no_check")]
    pub(crate) check: Vec<String>,
    /// Verify nothing (the run then ends with code 4)
    #[arg(long)]
    pub(crate) no_check: bool,
    /// Model requests before the run stops [built-in: 100]
    #[arg(long, value_name = "N")]
    pub(crate) max_turns: Option<u32>,
    /// Rounds of failed checks that go back to the model [built-in: 5]
    #[arg(long, value_name = "N")]
    pub(crate) max_iterations: Option<u32>,
    /// Wall time before the run stops, such as 90s, 10m or 2h [built-in: 2h]
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,
    /// US dollars before the run stops; needs a model whose price is known
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<f64>,
    /// Print one JSON object at the end, on stdout
    #[arg(long, conflicts_with = "stream_json")]
    pub(crate) json: bool,
    /// Print one JSON event a line as it happens, on stdout
    #[arg(long)]
    pub(crate) stream_json: bool,
    /// No progress on stderr
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Let the project's own configuration run code and send data, this once
    #[arg(long)]
    pub(crate) trust_project: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Keep the project that the demo works on, and say where it is
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Go on with what can be read of a damaged session log; the damaged one is kept beside it
    #[arg(long, conflicts_with = "json")]
    pub(crate) repair: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    /// Those of every project, not only of this directory
    #[arg(long)]
    pub(crate) all: bool,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The session's id, or its beginning; `last` is this directory's newest
    #[arg(default_value = "last")]
    pub(crate) session: String,
    /// Print every event as one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// The session's id, or its beginning; without one, the newest that changed something here
    pub(crate) session: Option<String>,
    /// Work in this directory instead of the session's own
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// The project's directory instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Every key there is, with what it takes and who may set it
    #[arg(long)]
    pub(crate) keys: bool,
}

/// Prints what clap has to say; a usage error is exit code 2, help and version are 0.
pub(crate) fn explain(error: &clap::Error) -> ExitCode {
    // Nothing can be done about a closed stream here.
    error.print().ok();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Prints a completion script.
pub(crate) fn completions(shell: clap_complete::Shell) {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "jm", &mut script);
    crate::stdout::write(&String::from_utf8_lossy(&script));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
