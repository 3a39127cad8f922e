//! `jm delegate`: a task for another coding CLI.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use journeyman_delegate::DelegateEvent;
use journeyman_host::HostError;
use journeyman_host::config::{Environment, parse_duration};
use journeyman_host::delegate_lines::DelegateLines;
use journeyman_host::delegates::{
    ListedCli, list_delegates, load_listed_config, remove_abandoned_directories,
};
use journeyman_host::direct_task::{
    DirectResult, DirectTask, DirectTaskOptions, JudgedTask, delegate_event_to_json,
};
use journeyman_host::format::printable;
use journeyman_host::root::find_project;
use journeyman_host::task_input::TaskArguments;
use journeyman_host::task_risk::{describe_risk, risk_exit_code};
use journeyman_terminal::{stderr_paint, stdout_paint};
use journeyman_tui::stop_signals::run_until_stopped;
use tokio_util::sync::CancellationToken;

use crate::args::{DelegateArgs, OutputArgs, RunArgs, RunOptions};
use crate::output::print_json_line;
use crate::run;
use crate::run::terminal_confirmations;

pub(crate) async fn delegate(environment: &Environment, args: DelegateArgs) -> Result<u8, HostError> {
    remove_abandoned_directories(environment);
    if args.list {
        return list_clis(environment, &args.options).await;
    }
    if args.direct {
        return run_directly(environment, &args).await;
    }
    let DelegateArgs { task, data, file, to, options, .. } = args;
    let run = RunArgs { task, data, file, with: Some(to), options, ..RunArgs::default() };
    run::run(environment, run).await
}

/// Prints the known CLIs.
async fn list_clis(environment: &Environment, options: &RunOptions) -> Result<u8, HostError> {
    let root = find_project(environment, options.directory.as_deref())?;
    let (config, is_partial) = load_listed_config(environment, root.as_deref(), options.trust_project)?;
    if is_partial {
        let note = "note: the project's configuration isn't trusted, so CLIs that it sets up aren't listed";
        errln!("{}", stderr_paint().yellow(note));
    }
    if io::stderr().is_terminal() && !options.output.quiet {
        errln!("{}", stderr_paint().dim("asking the CLIs for their versions"));
    }
    let all = list_delegates(&config, environment, root.as_deref()).await?;
    if options.output.json {
        print_json_line(&all)?;
        return Ok(0);
    }
    let paint = stdout_paint();
    for cli in &all {
        let ListedCli { name, program, version, install, .. } = cli;
        let Some(program) = program else {
            outln!("{:10} {}", printable(name), paint.dim(&format!("not installed; {}", printable(install))));
            continue;
        };
        let version = version.as_deref().unwrap_or("of an unknown version");
        outln!(
            "{:10} {} ({})",
            paint.bold(&printable(name)),
            printable(&version),
            printable(&program.display())
        );
        outln!("           {}", printable(&cli.describe_login()));
        outln!("           {}", paint.dim(&printable(&cli.describe_confinement())));
    }
    Ok(0)
}

/// Runs a low-risk task with an unconfined CLI.
async fn run_directly(environment: &Environment, args: &DelegateArgs) -> Result<u8, HostError> {
    let options = &args.options;
    if let Some(flag) = flags_without_effect(options).first() {
        return Err(HostError::usage(format_args!(
            "--direct runs the CLI alone, without a session, so {flag} has no effect; leave out one of them"
        )));
    }
    let time_limit = options.limits.timeout.as_deref().map(parse_time_limit).transpose()?;
    let root = find_project(environment, None)?;
    let wants_data = args.data.is_some();
    let task = TaskArguments { task: args.task.clone(), file: args.file.clone(), wants_data };
    let task = task.read(environment)?.text;
    let direct = DirectTaskOptions {
        cli: args.to.clone(),
        model: options.model.model.clone(),
        directory: options.directory.clone(),
        trust_project: options.trust_project,
    };
    let prompts = terminal_confirmations(options);
    let task = match DirectTask::judge(environment, root.as_deref(), task, direct, prompts).await? {
        JudgedTask::Low(task) => task,
        JudgedTask::High(risk) => {
            errln!("{} {}", stderr_paint().red("not run:"), printable(&describe_risk(&risk)));
            errln!("leave out --direct to have it done confined, in a copy of the project, and verified");
            return Ok(risk_exit_code(risk.risk));
        }
    };
    if !options.output.quiet {
        let text = format!("{} in {}, {}", task.cli, task.directory().display(), describe_risk(&task.risk));
        errln!("{}", stderr_paint().dim(&printable(&text)));
    }
    run_and_show(*task, time_limit, &options.output).await
}

/// Returns the flags that have no effect in a run without a session.
fn flags_without_effect(options: &RunOptions) -> Vec<&'static str> {
    let RunOptions { check, accept_finding, delivery, limits, model, .. } = options;
    let flags = [
        ("--mode", options.mode.is_some()),
        ("--plan-first", options.plan_first.is_some()),
        ("--check", !check.is_empty()),
        ("--no-check", options.no_check),
        ("--accept-finding", !accept_finding.is_empty()),
        ("--verified-needs", options.verified_needs.is_some()),
        ("--notice", options.notice.is_some()),
        ("--max-iterations", options.max_iterations.is_some()),
        ("--max-turns", limits.max_turns.is_some()),
        ("--budget", limits.budget.is_some()),
        ("--base-url", model.base_url.is_some()),
        ("--wire", model.wire.is_some()),
        ("--max-output-tokens", model.max_output_tokens.is_some()),
        ("--temperature", model.temperature.is_some()),
        ("--record", model.record.is_some()),
        ("--replay", model.replay.is_some()),
        ("--isolate", delivery.isolate),
        ("--in-place", delivery.in_place),
        ("--no-land", delivery.no_land),
        ("--commit", delivery.commit),
        ("--branch", delivery.branch.is_some()),
        ("--message", delivery.commit_message.is_some()),
        ("--no-verify", delivery.no_verify),
    ];
    flags.into_iter().filter_map(|(flag, is_set)| is_set.then_some(flag)).collect()
}

fn parse_time_limit(text: &str) -> Result<Duration, HostError> {
    let problem = || HostError::usage(format_args!("--timeout `{text}` is no time such as 90s, 10m or 2h"));
    parse_duration(text).filter(|time| !time.is_zero()).ok_or_else(problem)
}

async fn run_and_show(
    task: DirectTask,
    time_limit: Option<Duration>,
    output: &OutputArgs,
) -> Result<u8, HostError> {
    let (stop, cli) = (CancellationToken::new(), task.cli.clone());
    let mut lines = DelegateLines::default();
    let mut watch = |event: &DelegateEvent| {
        if output.stream_json {
            // The reader may have closed the pipe; the run continues.
            if let Some(event) = delegate_event_to_json(event) {
                print_json_line(&event).ok();
            }
        } else if !output.quiet && !output.json {
            lines.show_event(event);
        }
    };
    let result = run_until_stopped(task.run(time_limit, &stop, &mut watch), &stop).await??;
    let code = u8::from(result.failure().is_some());
    if output.json || output.stream_json {
        print_json_line(&result.to_json())?;
        return Ok(code);
    }
    let DirectResult { directory, end } = &result;
    let was_shown = lines.finish(&end.outcome.message);
    if let Some(failure) = result.failure() {
        errln!("{}: {cli} failed: {}", stderr_paint().red("error"), printable(&failure));
    }
    if !was_shown {
        outln!("{}", printable(&end.outcome.message));
    }
    for (word, paths) in [("created", &end.created), ("changed", &end.changed), ("deleted", &end.deleted)] {
        for path in paths {
            outln!("{word} {}", printable(&directory.join(path).display()));
        }
    }
    Ok(code)
}
