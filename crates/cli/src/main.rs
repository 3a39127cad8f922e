//! `jm`: the command line over the Journeyman library. Flags and glue only; nothing here is needed
//! by a library user.

#[macro_use]
mod stderr;

mod apply;
mod approvals;
mod args;
mod candidates;
mod checkpoints;
mod color;
mod config;
mod demo;
mod doctor;
mod exec;
mod export;
mod index;
mod land;
mod policy;
mod prompt;
#[cfg(test)]
#[path = "../tests/unit/reference.rs"]
mod reference;
mod render;
mod resume;
mod run;
mod sessions;
mod show;
mod stdout;
mod summary;
mod undo;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use journeyman_host::config::Environment;
use journeyman_host::state::StateDirs;
use journeyman_host::{Context as _, HostError};
use journeyman_policy::secrets::Redactor;
use journeyman_sandbox::Progress;

use crate::args::{Cli, Command};

/// Threads for file work: the tree is walked while the model is asked. More would only cost memory.
const MAX_BLOCKING_THREADS: usize = 3;

fn main() -> ExitCode {
    // Has to come first: a sandboxed command begins as a second run of this program.
    journeyman_sandbox::run_helper_if_asked();
    let cli = match args::parse() {
        Ok(cli) => cli,
        Err(error) => return args::explain(&error),
    };
    match dispatch(cli) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            print_error(&error);
            ExitCode::from(exit_code(&error))
        }
    }
}

/// The exit code of a command that ended without a result of its own.
fn exit_code(error: &HostError) -> u8 {
    match error {
        HostError::Usage(_) => 2,
        HostError::NeedsPerson(_) => 6,
        HostError::Failed { .. } => 1,
    }
}

/// Prints an error to standard error.
fn print_error(error: &HostError) {
    let text = shown_error(error);
    // A closed stream hides nothing: the exit code says as much to a caller that doesn't read.
    writeln!(std::io::stderr(), "{}: {text}", color::stderr().red("error")).ok();
}

/// Returns an error's text without control sequences and secrets: it may quote files and
/// configuration of the project.
fn shown_error(error: &HostError) -> String {
    let text = journeyman_sandbox::clean(error.to_string().as_bytes());
    Redactor::default().redact(&text).into_owned()
}

/// Opens the state directory; images of containers report their progress to standard error.
fn open_state(environment: &Environment) -> Result<Arc<StateDirs>, HostError> {
    let progress = Progress::new(|line| tell!("  {line}"));
    Ok(Arc::new(StateDirs::open(environment)?.with_progress(progress)))
}

/// Runs a command's future on one thread, and does not wait for blocking tasks that it leaves
/// behind.
fn block_on(work: impl Future<Output = Result<u8, HostError>>) -> Result<u8, HostError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .build()
        .context("the runtime could not start")?;
    let result = runtime.block_on(work);
    // A read of the terminal can't be cancelled; the process ends without it.
    runtime.shutdown_background();
    result
}

fn dispatch(cli: Cli) -> Result<u8, HostError> {
    let environment = Environment::from_process().map_err(HostError::failed)?;
    match cli.command {
        Command::Run(args) => block_on(run::run(&environment, args)),
        Command::Resume(args) => block_on(resume::resume(&environment, args)),
        Command::Land(args) => block_on(land::land(&environment, &args)),
        Command::Discard(args) => block_on(land::discard(&environment, &args)),
        Command::Candidates(args) => block_on(candidates::list(&environment, &args)),
        Command::Fork(args) => block_on(sessions::fork(&environment, &args)),
        Command::Snapshot(args) => block_on(sessions::snapshot(&environment, &args)),
        Command::Export(args) => block_on(export::export(&environment, &args)),
        Command::Import(args) => block_on(sessions::import(&environment, &args)),
        Command::Delete(args) => block_on(sessions::delete(&environment, &args)),
        Command::Apply(args) => apply::apply(&environment, &args),
        Command::Index(args) => index::index(&environment, &args),
        Command::Search(args) => index::search(&environment, &args),
        Command::Symbols(args) => index::symbols(&environment, &args),
        Command::Refs(args) => index::refs(&environment, &args),
        Command::Deps(args) => index::deps(&environment, &args),
        Command::Impact(args) => index::impact(&environment, &args),
        Command::Map(args) => index::map(&environment, &args),
        Command::Why(args) => index::why(&environment, &args),
        Command::Exec(args) => block_on(exec::exec(&environment, args)),
        Command::Demo(args) => block_on(demo::demo(&environment, args)),
        Command::Doctor(args) => block_on(doctor::doctor(&environment, &args)),
        Command::Sessions(args) => block_on(sessions::list(&environment, &args)),
        Command::Show(args) => block_on(show::show(&environment, &args)),
        Command::Undo(args) => block_on(undo::undo(&environment, &args)),
        Command::Redo(args) => block_on(undo::redo(&environment, &args)),
        Command::Checkpoints(args) => checkpoints::list(&environment, &args),
        Command::Diff(args) => checkpoints::diff(&environment, &args),
        Command::Policy(args) => block_on(policy::policy(&environment, args.command)),
        Command::Config(args) => config::print(&environment, &args),
        Command::Completions { shell } => {
            args::completions(shell);
            Ok(0)
        }
    }
}
