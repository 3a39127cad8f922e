//! `jm delegate`: a task for another coding CLI.

use std::fmt;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use journeyman_delegate::{DelegateEvent, Delegates, DirectRun, FreshDirectory};
use journeyman_host::config::{Environment, parse_duration};
use journeyman_host::delegates::{
    AUTO_CLI, ListedCli, create_task_directory, find_delegates, list_delegates, remove_abandoned_directories,
};
use journeyman_host::format::{preview, printable};
use journeyman_host::root::find_project;
use journeyman_host::task_input::{PipedData, TaskSource, read_task};
use journeyman_host::{
    Context as _, HostError, load_assuming_trust, load_without_untrusted, resolve_settings,
};
use journeyman_policy::Risk;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::args::{DelegateArgs, OutputArgs, RunArgs, RunOptions};
use crate::output::print_json_line;
use crate::risk::{assess_risk, describe_risk};
use crate::run::terminal_confirmations;
use crate::runtime::run_until_stopped;
use crate::{color, run};

/// The exit code of a task that needs a sandbox and was to run without one.
const EXIT_HIGH_RISK: u8 = 6;

pub(crate) async fn delegate(environment: &Environment, args: DelegateArgs) -> Result<u8, HostError> {
    remove_abandoned_directories(environment);
    if args.list {
        return list_clis(environment, &args.options).await;
    }
    if args.direct {
        return run_directly(environment, &args).await;
    }
    let DelegateArgs { task, data, file, to, options, .. } = args;
    let run = RunArgs { data, file, with: Some(to), ..RunArgs::from_task(task, options) };
    run::run(environment, run).await
}

/// Prints the known CLIs.
async fn list_clis(environment: &Environment, options: &RunOptions) -> Result<u8, HostError> {
    let root = find_project(environment, options.directory.as_deref())?;
    let configured = root.as_deref().unwrap_or(&environment.cwd);
    let (config, is_partial) = match options.trust_project {
        true => (load_assuming_trust(environment, configured)?, false),
        false => load_without_untrusted(environment, configured)?,
    };
    if is_partial {
        let note = "note: the project's configuration isn't trusted, so CLIs that it sets up aren't listed";
        errln!("{}", color::stderr_paint().yellow(note));
    }
    if io::stderr().is_terminal() && !options.output.quiet {
        errln!("{}", color::stderr_paint().dim("asking the CLIs for their versions"));
    }
    let all = list_delegates(&config, environment, root.as_deref()).await?;
    if options.output.json {
        print_json_line(&all)?;
        return Ok(0);
    }
    let paint = color::stdout_paint();
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
    let file = args.file.as_ref().map(|path| environment.cwd.join(path));
    let source = match (args.task.as_deref(), file.as_deref()) {
        (Some(task), _) => TaskSource::Argument(task),
        (None, Some(path)) => TaskSource::File(path),
        (None, None) => TaskSource::Unnamed,
    };
    let data = if args.data.is_some() { PipedData::Wanted } else { PipedData::IfAny };
    let task = read_task("task", source, data)?.text;
    let workplace = RunDirectory::open(environment, options.directory.as_deref())?;
    let directory = workplace.path();
    let risk = assess_risk(root.as_deref(), &task, directory).await?;
    if risk.risk == Risk::High {
        errln!("{} {}", color::stderr_paint().red("not run:"), printable(&describe_risk(&risk)));
        errln!("leave out --direct to have it done confined, in a copy of the project, and verified");
        return Ok(EXIT_HIGH_RISK);
    }
    let trust = journeyman_host::RunOptions { trust_project: options.trust_project, ..Default::default() };
    let configured = root.as_deref().unwrap_or(directory);
    let config =
        resolve_settings(environment, configured, &trust, None, terminal_confirmations(options))?.config;
    let delegates = find_delegates(&config, environment, root.as_deref());
    let delegates = delegates.with_model(options.model.model.clone());
    let name = match args.to.as_str() {
        AUTO_CLI => delegates.first_installed().map_err(HostError::usage)?.adapter.name().to_owned(),
        name => name.to_owned(),
    };
    let settings = delegates.find(&name).map_err(HostError::usage)?;
    delegates.find_program(settings).map_err(HostError::usage)?;
    if !options.output.quiet {
        let text = format!("{name} in {}, {}", directory.display(), describe_risk(&risk));
        errln!("{}", color::stderr_paint().dim(&printable(&text)));
    }
    run_in_directory(&delegates, &name, &task, workplace, time_limit, &options.output).await
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

/// The directory that a run works in.
enum RunDirectory {
    /// One that the user named.
    Named(PathBuf),
    /// One that was made for the run, and is removed with this value unless it is kept.
    Fresh(FreshDirectory),
}

impl RunDirectory {
    fn open(environment: &Environment, named: Option<&Path>) -> Result<Self, HostError> {
        Ok(match named {
            Some(named) => {
                Self::Named(environment.cwd.join(named).canonicalize().context("opening the directory")?)
            }
            None => Self::Fresh(create_task_directory(environment)?),
        })
    }

    fn path(&self) -> &Path {
        match self {
            Self::Named(path) => path,
            Self::Fresh(directory) => directory.path(),
        }
    }
}

async fn run_in_directory(
    delegates: &Delegates,
    name: &str,
    task: &str,
    mut workplace: RunDirectory,
    time_limit: Option<Duration>,
    output: &OutputArgs,
) -> Result<u8, HostError> {
    let stop = CancellationToken::new();
    let directory = workplace.path().to_owned();
    let is_fresh = matches!(workplace, RunDirectory::Fresh(_));
    let run = DirectRun { prompt: task, directory: &directory, is_fresh, time_limit };
    let mut view = EventView {
        is_quiet: output.quiet || output.json,
        is_stream: output.stream_json,
        ..EventView::default()
    };
    let mut watch = |event: &DelegateEvent| view.show(event);
    let ran = run.run(delegates, name, stop.clone(), &mut watch);
    let end = run_until_stopped(ran, &stop).await?.map_err(HostError::failed)?;
    if let RunDirectory::Fresh(directory) = &mut workplace {
        directory.keep();
    }
    let failure = end.outcome.failure.as_ref().map(|failure| failure.message.clone());
    let code = u8::from(failure.is_some());
    if output.json || output.stream_json {
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
    let was_shown = view.finish(&end.outcome.message);
    if let Some(failure) = failure {
        errln!("{}: {} failed: {}", color::stderr_paint().red("error"), name, printable(&failure));
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

/// Shows the events of a run as they come.
#[derive(Default)]
struct EventView {
    is_quiet: bool,
    is_stream: bool,
    /// The text that was shown since the last line of another kind, without an end of its line.
    text: String,
}

impl EventView {
    fn show(&mut self, event: &DelegateEvent) {
        match event {
            _ if self.is_stream => print_event_json(event),
            _ if self.is_quiet => {}
            DelegateEvent::Text(text) => {
                err!("{}", printable(text));
                self.text.push_str(text);
            }
            DelegateEvent::ToolStart { tool, summary, .. } => {
                self.show_line(format_args!("• {tool} {summary}"));
            }
            DelegateEvent::ToolEnd { failed: true, output, .. } => {
                self.show_line(format_args!("  failed: {}", preview(output.trim_start())));
            }
            DelegateEvent::Warning(text) => self.show_line(format_args!("! {text}")),
            _ => {}
        }
    }

    fn show_line(&mut self, line: fmt::Arguments<'_>) {
        self.end_line();
        self.text.clear();
        errln!("{}", printable(&line));
    }

    fn end_line(&self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            errln!("");
        }
    }

    /// Ends the open line. Returns true if `message` was just shown on a terminal.
    fn finish(&self, message: &str) -> bool {
        self.end_line();
        let message = message.trim();
        let is_read = io::stdout().is_terminal() && io::stderr().is_terminal();
        is_read && !message.is_empty() && self.text.trim_end().ends_with(message)
    }
}

fn print_event_json(event: &DelegateEvent) {
    let told = match event {
        DelegateEvent::ToolStart { id, tool, summary } => {
            json!({ "event": "tool_start", "id": id, "tool": tool, "summary": summary })
        }
        DelegateEvent::ToolEnd { id, failed, output } => {
            json!({ "event": "tool_end", "id": id, "failed": failed, "output": output })
        }
        DelegateEvent::Text(text) => json!({ "event": "text", "text": text }),
        DelegateEvent::Warning(text) => json!({ "event": "warning", "text": text }),
        _ => return,
    };
    // The reader may have closed the pipe; the run continues.
    print_json_line(&told).ok();
}
