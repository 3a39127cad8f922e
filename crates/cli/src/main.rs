//! `jm`: the command line over the Journeyman library. Flags and glue only; nothing here is needed by a
//! library user.

#[macro_use]
mod stderr;

mod apply;
mod args;
mod candidates;
mod carry;
mod checkpoints;
mod color;
mod confinement;
#[cfg(target_os = "linux")]
mod containers;
mod deliver;
mod demo;
mod doctor;
mod edge;
mod exec;
mod export;
mod index;
mod land;
mod policy;
mod prompt;
mod question;
mod render;
mod resume;
mod run;
mod sessions;
mod settings;
mod show;
mod stdout;
mod summary;
mod undo;
mod wire;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use journeyman_policy::secrets::Redactor;

use crate::args::{Cli, Command};
use crate::edge::Failure;

fn main() -> ExitCode {
    // Has to come first: a confined command begins as a second run of this program.
    journeyman_sandbox::run_helper_if_asked();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return args::explain(&error),
    };
    match dispatch(cli) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            complain(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Says on standard error what went wrong.
fn complain(failure: &Failure) {
    let text = words(failure);
    // The exit code says as much to a caller that doesn't read.
    writeln!(std::io::stderr(), "{}: {text}", color::stderr().red("error")).ok();
}

/// A failure as it may be shown.
fn words(failure: &Failure) -> String {
    // It may name files and quote configuration, which are the project's to choose.
    let text = journeyman_sandbox::clean(failure.to_string().as_bytes());
    // An error may quote what it was given, and that may hold a key, with signs in its midst that nobody sees.
    Redactor::default().redact(&text).into_owned()
}

fn dispatch(cli: Cli) -> Result<u8, Failure> {
    let environment = edge::environment()?;
    match cli.command {
        Command::Run(args) => edge::block_on(run::run(&environment, args)),
        Command::Resume(args) => edge::block_on(resume::resume(&environment, args)),
        Command::Land(args) => edge::block_on(land::land(&environment, &args)),
        Command::Discard(args) => edge::block_on(land::discard(&environment, &args)),
        Command::Candidates(args) => edge::block_on(candidates::list(&environment, &args)),
        Command::Fork(args) => edge::block_on(carry::fork(&environment, &args)),
        Command::Snapshot(args) => edge::block_on(carry::snapshot(&environment, &args)),
        Command::Export(args) => edge::block_on(export::export(&environment, &args)),
        Command::Import(args) => edge::block_on(carry::import(&environment, &args)),
        Command::Delete(args) => edge::block_on(carry::delete(&environment, &args)),
        Command::Apply(args) => apply::apply(&environment, &args),
        Command::Index(args) => index::index(&environment, &args),
        Command::Search(args) => index::search(&environment, &args),
        Command::Symbols(args) => index::symbols(&environment, &args),
        Command::Refs(args) => index::refs(&environment, &args),
        Command::Deps(args) => index::deps(&environment, &args),
        Command::Impact(args) => index::impact(&environment, &args),
        Command::Map(args) => index::map(&environment, &args),
        Command::Why(args) => index::why(&environment, &args),
        Command::Exec(args) => edge::block_on(exec::exec(&environment, args)),
        Command::Demo(args) => edge::block_on(demo::demo(&environment, args)),
        Command::Doctor(args) => edge::block_on(doctor::doctor(&environment, &args)),
        Command::Sessions(args) => edge::block_on(sessions::list(&environment, &args)),
        Command::Show(args) => edge::block_on(show::show(&environment, &args)),
        Command::Undo(args) => edge::block_on(undo::undo(&environment, &args)),
        Command::Redo(args) => edge::block_on(undo::redo(&environment, &args)),
        Command::Checkpoints(args) => checkpoints::list(&environment, &args),
        Command::Diff(args) => checkpoints::diff(&environment, &args),
        Command::Policy(args) => edge::block_on(policy::policy(&environment, args.command)),
        Command::Config(args) => settings::print(&environment, &args),
        Command::Completions { shell } => {
            args::completions(shell);
            Ok(0)
        }
    }
}
