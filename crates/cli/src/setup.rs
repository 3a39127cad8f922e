//! `jm setup`: fetches what this project's checks need.

mod args;

use journeyman_agent::verify::SetupPlan;
use journeyman_host::checks::{ProjectCheckRunner, SetupAnswer, describe_setup};
use journeyman_host::config::Environment;
use journeyman_host::{Context as _, HostError, RunOptions};
use journeyman_terminal::stderr_screen;
use journeyman_tui::line_prompts::{TerminalPrompts, confirm, is_attended};
use journeyman_tui::stop_signals::run_until_stopped;
use tokio_util::sync::CancellationToken;

use crate::check::RoundProgress;
use crate::output::{print_json_line, write_screen};
use crate::runtime::open_state;

pub(crate) use args::SetupArgs;

pub(crate) async fn run_setup_command(environment: &Environment, args: &SetupArgs) -> Result<u8, HostError> {
    let state = open_state(environment)?;
    let prompts = TerminalPrompts::if_attended();
    // The person sees each command before it runs; the project's configuration names none.
    let options = RunOptions { trust_project: true, allow_root: args.allow_root, ..RunOptions::default() };
    let directory = args.project.directory.as_deref();
    let project = ProjectCheckRunner::open(environment, &state, directory, &options, prompts)?;
    let plan = project.plan_setup().await?;
    if !args.json {
        write_screen(|screen| describe_setup(&plan).iter().for_each(|line| screen.write_line(line)));
    }
    if plan.steps.is_empty() || args.dry_run {
        if args.json {
            print_json_line(&SetupAnswer::new(&plan, Vec::new()))?;
        }
        return Ok(if plan.lacks.is_empty() { 0 } else { 4 });
    }
    if !args.yes && !confirm_setup(&plan)? {
        errln!("nothing was run");
        return Ok(1);
    }
    let stop = CancellationToken::new();
    let mut progress = RoundProgress::new(!args.json, true);
    let mut observer = |step| progress.observe(step);
    let evidence = run_until_stopped(project.run_setup(&plan, &stop, &mut observer), &stop).await?;
    stderr_screen().clear_progress();
    let answer = SetupAnswer::new(&plan, evidence?);
    if args.json {
        print_json_line(&answer)?;
    } else if answer.done {
        outln!("checks have what they need; run them with: jm check");
    }
    Ok(answer.exit_code(stop.is_cancelled()))
}

/// Asks the person once for all steps.
fn confirm_setup(plan: &SetupPlan) -> Result<bool, HostError> {
    if !is_attended() {
        let hosts = plan.network().join(", ");
        return Err(HostError::needs_person(format_args!(
            "fetching from {hosts} needs a yes, and nobody can be asked; allow it with: jm setup --yes"
        )));
    }
    confirm("Run it? [y/N] ").context("the terminal")
}
