//! `jm check`: the project's own checks, without a model or a key.

mod args;
mod progress;
mod round;

use journeyman_host::HostError;
use journeyman_host::checks::ProjectCheckRunner;
use journeyman_host::config::Environment;
use journeyman_terminal::stderr_paint;
use journeyman_tui::line_prompts::TerminalPrompts;
use journeyman_tui::stop_signals::{StopSignals, run_until_stopped};
use tokio_util::sync::CancellationToken;

use crate::runtime::open_state;

use round::RoundPrinter;

pub(crate) use args::CheckArgs;
pub(crate) use progress::RoundProgress;

pub(crate) async fn check(environment: &Environment, args: Box<CheckArgs>) -> Result<u8, HostError> {
    let state = open_state(environment)?;
    let prompts = TerminalPrompts::if_attended();
    let directory = args.project.directory.as_deref();
    let project = ProjectCheckRunner::open(environment, &state, directory, &args.to_options(), prompts)?;
    if !args.quiet {
        for note in project.sandbox_notes().await {
            errln!("{} {note}", stderr_paint().yellow("jm check:"));
        }
    }
    let stop = CancellationToken::new();
    let selection = args.to_selection();
    let files = project.selected_files(environment, &selection).await?;
    let mut printer = RoundPrinter::new(&args);
    if !args.watch {
        let round = project.run_round_of(&selection, files, &mut printer, &stop);
        return Ok(run_until_stopped(round, &stop).await??.verdict().exit_code());
    }
    let note = |text: &str| errln!("{text}");
    let watching = project.watch(environment, &selection, files, &mut printer, note, &stop);
    let mut watching = std::pin::pin!(watching);
    let mut signals = StopSignals::listen()?;
    loop {
        tokio::select! {
            () = signals.next() => stop.cancel(),
            verdict = &mut watching => return Ok(verdict?.exit_code()),
        }
    }
}
