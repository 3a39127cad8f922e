//! `jm`: the command line over the Journeyman library. Only flags and rendering are here; a
//! library user needs nothing of it.

#[macro_use]
mod output;

mod agents;
mod apply;
mod args;
mod candidates;
mod chat;
mod check;
mod checkpoints;
mod checks;
mod classify;
mod command_line;
mod compact;
mod config;
mod delegate;
mod demo;
mod display;
mod doctor;
mod exec;
mod export;
mod index;
mod land;
mod man;
mod memory;
mod plan;
mod policy;
mod report;
mod resume;
mod run;
mod runtime;
mod sessions;
mod setup;
mod show;
mod undo;
#[cfg(test)]
#[path = "../tests/unit/mod.rs"]
mod unit;

use std::ffi::OsString;
use std::process::ExitCode;

use journeyman_host::HostError;
use journeyman_host::config::Environment;
use journeyman_terminal::{ColorChoice, choose_color};
use journeyman_tui::is_at_terminal;

use crate::args::{Cli, Command};
use crate::command_line::CommandError;
use crate::runtime::block_on;

fn main() -> ExitCode {
    // Has to come first: a sandboxed command begins as a second run of this program.
    journeyman_sandbox::run_helper_if_asked();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let is_json = command_line::has_json_flag(&arguments);
    let parsed = command_line::parse_arguments(arguments);
    let ended = parsed.and_then(|cli| dispatch(cli).map_err(CommandError::from));
    ExitCode::from(ended.unwrap_or_else(|error| error.print(is_json)))
}

fn dispatch(cli: Cli) -> Result<u8, HostError> {
    let mut environment = Environment::from_process().map_err(HostError::failed)?;
    choose_color(cli.color);
    if cli.color == ColorChoice::Never {
        // For the conversation, and for programs that are started.
        environment.vars.insert("NO_COLOR".into(), "1".into());
    }
    match cli.command {
        Command::Chat(args) => block_on(chat::chat(&environment, *args)),
        Command::Run(args) => block_on(run::run(&environment, *args)),
        Command::Plan(args) => block_on(plan::run_plan_command(&environment, *args)),
        Command::Delegate(args) => block_on(delegate::delegate(&environment, *args)),
        Command::Ask(args) => block_on(run::run(&environment, args.into_run())),
        Command::Resume(args) if args.is_conversation() && is_at_terminal() => {
            block_on(chat::resume(&environment, *args))
        }
        Command::Resume(args) => block_on(resume::resume(&environment, args)),
        Command::Compact(args) => block_on(compact::compact(&environment, args)),
        Command::Agents(args) => block_on(agents::run_agents_command(&environment, *args)),
        Command::Memory(args) => block_on(memory::run_memory_command(&environment, &args)),
        Command::Land(args) => block_on(land::land(&environment, &args)),
        Command::Discard(args) => block_on(land::discard(&environment, &args)),
        Command::Candidates(args) => block_on(candidates::list_candidates(&environment, &args)),
        Command::Fork(args) => block_on(sessions::fork(&environment, &args)),
        Command::Snapshot(args) => block_on(sessions::snapshot(&environment, &args)),
        Command::Export(args) => block_on(export::export(&environment, &args)),
        Command::Import(args) => block_on(sessions::import(&environment, &args)),
        Command::Delete(args) => block_on(sessions::delete(&environment, &args)),
        Command::Apply(args) => apply::apply(&environment, &args),
        Command::Index(args) => index::update_index(&environment, &args),
        Command::Search(args) => index::search(&environment, &args),
        Command::Symbols(args) => index::show_symbols(&environment, &args),
        Command::Refs(args) => index::show_references(&environment, &args),
        Command::Deps(args) => index::show_dependencies(&environment, &args),
        Command::Impact(args) => index::show_impact(&environment, &args),
        Command::Map(args) => index::show_project_map(&environment, &args),
        Command::Context(args) => index::show_context(&environment, &args),
        Command::Why(args) => index::explain_rank(&environment, &args),
        Command::Check(args) => block_on(check::check(&environment, args)),
        Command::Checks(args) => block_on(checks::list_checks(&environment, &args)),
        Command::Setup(args) => block_on(setup::run_setup_command(&environment, &args)),
        Command::Exec(args) => block_on(exec::exec(&environment, args)),
        Command::Demo(args) => block_on(demo::demo(&environment, args)),
        Command::Doctor(args) => block_on(doctor::run_doctor(&environment, &args)),
        Command::Sessions(args) => block_on(sessions::show_sessions(&environment, &args)),
        Command::Show(args) => block_on(show::show_session(&environment, &args)),
        Command::Report(args) => block_on(report::export_report(&environment, &args)),
        Command::Undo(args) => block_on(undo::undo(&environment, &args)),
        Command::Redo(args) => block_on(undo::redo(&environment, &args)),
        Command::Checkpoints(args) => checkpoints::list_checkpoints(&environment, &args),
        Command::Diff(args) => block_on(checkpoints::diff(&environment, &args)),
        Command::Policy(args) => block_on(policy::run_policy_command(&environment, args.command)),
        Command::Classify(args) => block_on(classify::classify(&environment, &args)),
        Command::Config(args) => config::print_config(&environment, &args),
        Command::Completions { shell } => {
            args::print_completions(shell);
            Ok(0)
        }
        Command::Man { command } => man::print_man_page(command.as_deref()),
    }
}
