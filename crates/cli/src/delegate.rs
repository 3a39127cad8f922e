//! `jm delegate`: a task for another coding CLI.

use std::path::Path;

use journeyman_delegate::{DelegateEvent, Delegates, DirectRun};
use journeyman_host::config::Environment;
use journeyman_host::delegates::{AUTO, ListedCli, find_delegates, list_delegates};
use journeyman_host::format::printable;
use journeyman_host::root::project_root;
use journeyman_host::task_input::{PipedData, TaskSource, read_task};
use journeyman_host::{Context as _, HostError, load_if_trusted, load_trusted, resolve_settings};
use journeyman_policy::Risk;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::args::{DelegateArgs, RunArgs, RunOptions};
use crate::output::print_json_line;
use crate::risk::{assess_risk, describe_risk};
use crate::run::prompts_for;
use crate::runtime::run_until_stopped;
use crate::{color, run};

/// The exit code of a task that needs a sandbox and was to run without one.
const EXIT_HIGH: u8 = 6;

pub(crate) async fn delegate(environment: &Environment, args: DelegateArgs) -> Result<u8, HostError> {
    if args.list {
        return list(environment, &args.options).await;
    }
    if args.direct {
        return run_directly(environment, &args).await;
    }
    let DelegateArgs { task, data, file, to, options, .. } = args;
    let run = RunArgs { data, file, with: Some(to), ..RunArgs::from_task(task, options) };
    run::run(environment, run).await
}

/// Lists the CLIs that there are.
async fn list(environment: &Environment, options: &RunOptions) -> Result<u8, HostError> {
    let root = project_root(environment, options.directory.as_deref())?;
    let (config, is_partial) = match options.trust_project {
        true => (load_trusted(environment, &root)?, false),
        false => load_if_trusted(environment, &root)?,
    };
    if is_partial {
        let note = "note: the project's configuration isn't trusted, so CLIs that it sets up aren't listed";
        errln!("{}", color::stderr().yellow(note));
    }
    let all = list_delegates(&config, environment, &root).await?;
    if options.output.json {
        print_json_line(&all)?;
        return Ok(0);
    }
    let paint = color::stdout();
    for cli in &all {
        let ListedCli { name, program, version, login, hosts, install, problem, .. } = cli;
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
        let login = match login.as_deref() {
            Some(login) => format!("logged in by {login}"),
            None => "no login or key was found".to_owned(),
        };
        outln!("           {}", printable(&login));
        let reach = if hosts.is_empty() { "no host".to_owned() } else { hosts.join(", ") };
        let may = format!("confined: may change a copy of the project, and reach {reach}");
        outln!("           {}", paint.dim(&printable(problem.as_ref().unwrap_or(&may))));
    }
    Ok(0)
}

/// Gives a task of low risk to a CLI that isn't confined.
async fn run_directly(environment: &Environment, args: &DelegateArgs) -> Result<u8, HostError> {
    let options = &args.options;
    let root = project_root(environment, None)?;
    let file = args.file.as_ref().map(|path| environment.cwd.join(path));
    let source = match (args.task.as_deref(), file.as_deref()) {
        (Some(task), _) => TaskSource::Argument(task),
        (None, Some(path)) => TaskSource::File(path),
        (None, None) => TaskSource::Unnamed,
    };
    let data = if args.data.is_some() { PipedData::Wanted } else { PipedData::IfAny };
    let task = read_task("task", source, data)?.text;
    let fresh = options.directory.is_none();
    let directory = match &options.directory {
        Some(directory) => environment.cwd.join(directory).canonicalize().context("opening the directory")?,
        None => std::env::temp_dir().join(format!("jm-delegate-{:x}", fastrand::u64(..))),
    };
    let risk = assess_risk(&root, &task, &directory).await?;
    if risk.risk == Risk::High {
        errln!("{} {}", color::stderr().red("not run:"), printable(&describe_risk(&risk)));
        errln!("leave out --direct to have it done confined, in a copy of the project, and verified");
        return Ok(EXIT_HIGH);
    }
    let trust = journeyman_host::RunOptions { trust_project: options.trust_project, ..Default::default() };
    let config = resolve_settings(environment, &root, &trust, None, prompts_for(options))?.config;
    let delegates = find_delegates(&config, environment, Some(&root)).with_model(options.model.model.clone());
    let name = match args.to.as_str() {
        AUTO => delegates.first_installed().map_err(HostError::usage)?.adapter.name().to_owned(),
        name => name.to_owned(),
    };
    // Before a directory is made for nothing.
    let settings = delegates.find(&name).map_err(HostError::usage)?;
    delegates.find_program(settings).map_err(HostError::usage)?;
    if fresh {
        std::fs::create_dir(&directory).context("making a fresh directory")?;
    }
    if !options.output.quiet {
        errln!(
            "{}",
            color::stderr().dim(&printable(&format!(
                "{name} in {}, {}",
                directory.display(),
                describe_risk(&risk)
            )))
        );
    }
    run_in(&delegates, &name, &task, &directory, fresh, options).await
}

async fn run_in(
    delegates: &Delegates,
    name: &str,
    task: &str,
    directory: &Path,
    is_fresh: bool,
    options: &RunOptions,
) -> Result<u8, HostError> {
    let stop = CancellationToken::new();
    let run = DirectRun { prompt: task, directory, is_fresh };
    let (quiet, stream) = (options.output.quiet, options.output.stream_json);
    let mut watch = |event: &DelegateEvent| show_event(event, quiet || options.output.json, stream);
    let ran = run.run(delegates, name, stop.clone(), &mut watch);
    let end = run_until_stopped(ran, &stop).await?.map_err(HostError::failed)?;
    let failure = end.outcome.failure.as_ref().map(|failure| failure.message.clone());
    let code = u8::from(failure.is_some());
    if options.output.json || stream {
        print_json_line(&json!({
            "success": failure.is_none(),
            "message": end.outcome.message,
            "directory": directory,
            "created": end.created,
            "changed": end.changed,
            "deleted": end.deleted,
            "session": end.outcome.session,
            "usage": end.outcome.usage,
            "cost_usd": end.outcome.cost,
            "error": failure,
        }))?;
        return Ok(code);
    }
    if let Some(failure) = failure {
        errln!("{}: {} failed: {}", color::stderr().red("error"), name, printable(&failure));
    }
    outln!("{}", printable(&end.outcome.message));
    for (word, paths) in [("created", &end.created), ("changed", &end.changed), ("deleted", &end.deleted)] {
        for path in paths {
            outln!("{word} {}", printable(&directory.join(path).display()));
        }
    }
    Ok(code)
}

/// Shows an event as it comes.
fn show_event(event: &DelegateEvent, quiet: bool, stream: bool) {
    match event {
        _ if quiet && !stream => {}
        DelegateEvent::ToolStart { tool, summary, .. } if stream => {
            print_json_line(&json!({ "event": "tool_start", "tool": tool, "summary": summary })).ok();
        }
        DelegateEvent::Text(text) if stream => {
            print_json_line(&json!({ "event": "text", "text": text })).ok();
        }
        DelegateEvent::ToolStart { tool, summary, .. } => {
            errln!("{}", printable(&format_args!("• {tool} {summary}")));
        }
        DelegateEvent::Text(text) => err!("{}", printable(&text)),
        DelegateEvent::Warning(text) => errln!("{}", printable(&format_args!("! {text}"))),
        _ => {}
    }
}
