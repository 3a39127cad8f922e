//! `jm check`: the project's own checks, without a model or a key.

mod args;
mod progress;
mod round;
mod watch;

use journeyman_host::HostError;
use journeyman_host::checks::ProjectCheckRunner;
use journeyman_host::config::Environment;
use journeyman_tui::line_prompts::TerminalPrompts;
use tokio_util::sync::CancellationToken;

use crate::color;
use crate::output::print_json_line;
use crate::runtime::{open_state, run_until_stopped};

use round::CheckRound;

pub(crate) use args::CheckArgs;
pub(crate) use progress::RoundProgress;

pub(crate) async fn check(environment: &Environment, args: Box<CheckArgs>) -> Result<u8, HostError> {
    let state = open_state(environment)?;
    let prompts = TerminalPrompts::if_attended();
    let directory = args.project.directory.as_deref();
    let project = ProjectCheckRunner::open(environment, &state, directory, &args.to_options(), prompts)?;
    let round = CheckRound { environment, args: &args, project: &project };
    if !args.quiet {
        for note in project.sandbox_notes().await {
            errln!("{} {note}", color::stderr_paint().yellow("jm check:"));
        }
    }
    let stop = CancellationToken::new();
    let files = project.selected_files(environment, &args.to_selection()).await?;
    if args.watch {
        return watch::watch(&round, files).await;
    }
    let (result, selected) = run_until_stopped(round.run(files, &stop), &stop).await??;
    if args.json {
        print_json_line(&result.to_answer(&selected))?;
    }
    Ok(result.overall_result().exit_code())
}
