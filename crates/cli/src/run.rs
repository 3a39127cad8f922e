//! `jm run`, and what it shares with other commands that run sessions.

use journeyman_agent::{EventFilter, SessionHandle, Since, Subscription, UserMessage};
use journeyman_host::agents::AgentRun;
use journeyman_host::config::Environment;
use journeyman_host::format::printable;
use journeyman_host::new_task::{PreparedTask, TaskStart};
use journeyman_host::root::project_root;
use journeyman_host::sessions::new_session_id;
use journeyman_host::task_risk::{assess_task, describe_risk};
use journeyman_host::{Confirmations, HostError, PreparedRun, SessionTemplate};
use journeyman_protocol::{Envelope, RunReport, Seq};
use journeyman_terminal::stderr_paint;
use journeyman_tui::line_prompts::TerminalPrompts;
use journeyman_tui::stop_signals::run_until_stopped;
use journeyman_tui::watch_by_lines;
use tokio_util::sync::CancellationToken;

use crate::args::{RunArgs, RunOptions};
use crate::candidates;
use crate::display::{Display, OutputFormat};
use crate::runtime::open_state;

pub(crate) async fn run(environment: &Environment, args: RunArgs) -> Result<u8, HostError> {
    let (display, lands) = (Display::from_options(&args.options.output), args.land);
    let prompts = terminal_confirmations(&args.options);
    let root = project_root(environment, args.options.directory.as_deref())?;
    let dirs = open_state(environment)?;
    let is_delegated = args.with.is_some();
    let task = PreparedTask::new(environment, &dirs, &root, args.into_request(), prompts).await?;
    print_warnings(&task.prepared);
    for note in task.notes.iter().filter(|_| !display.is_quiet()) {
        errln!("{}", stderr_paint().dim(&printable(note)));
    }
    let (template, start) = task.open(environment, &dirs, &root)?;
    if let Some(task) = start.text().filter(|_| is_delegated && !display.is_quiet()) {
        let risk = describe_risk(&assess_task(Some(&root), &root, task, Some(&root)).await?);
        errln!("{}", stderr_paint().dim(&printable(&format_args!("{risk}; confined"))));
    }
    let report = match start {
        TaskStart::Agent(run) => {
            run.left_out.iter().for_each(|warning| print_warning(warning));
            run_agent(template, *run, display).await?
        }
        TaskStart::Message(message) => run_task(template, message, display).await?,
        TaskStart::Candidates(task, models) => {
            return candidates::run_task_candidates(template, &task, &models, lands, display).await;
        }
    };
    display.print_report(&report)
}

/// Returns the prompts of the terminal, if a person is there and the output isn't JSON.
pub(crate) fn terminal_confirmations(options: &RunOptions) -> Option<&'static dyn Confirmations> {
    Display::from_options(&options.output).is_interactive().then_some(&TerminalPrompts as &dyn Confirmations)
}

pub(crate) fn print_warnings(prepared: &PreparedRun) {
    prepared.warnings().iter().for_each(|text| print_warning(text));
}

pub(crate) fn print_warning(text: &str) {
    errln!("{} {}", stderr_paint().yellow("warning:"), printable(&text));
}

/// Runs a task in a new session, shows it until it ends, and delivers its work.
pub(crate) async fn run_task(
    mut template: SessionTemplate,
    task: impl Into<UserMessage>,
    display: Display,
) -> Result<RunReport, HostError> {
    let session = template.start(new_session_id()).await?;
    let events = session.subscribe(EventFilter::all(), Since::Now);
    session.send(task).await?;
    watch_and_deliver(&template, session, events, display).await
}

/// Runs an agent in a session of its own, shows it until it ends, and delivers its work.
async fn run_agent(
    mut template: SessionTemplate,
    run: AgentRun,
    display: Display,
) -> Result<RunReport, HostError> {
    let session = run.start(&mut template, new_session_id()).await?;
    let events = session.subscribe(EventFilter::all(), Since::Seq(Seq::START));
    watch_and_deliver(&template, session, events, display).await
}

/// Shows a session until all of its tasks have ended, closes the session, and delivers its work.
pub(crate) async fn watch_and_deliver(
    template: &SessionTemplate,
    session: SessionHandle,
    events: Subscription,
    display: Display,
) -> Result<RunReport, HostError> {
    let on_event = |envelope: &Envelope| display.stream_event(envelope);
    let report = watch_by_lines(template, session, events, display.detail, on_event).await?;
    let stop = CancellationToken::new();
    let prompts = template.is_attended().then_some(&TerminalPrompts as &dyn Confirmations);
    let delivered = run_until_stopped(template.deliver(&report, prompts, &stop), &stop).await??;
    display.show_late_events(&delivered.events)?;
    if let Some(failure) = delivered.failure.filter(|_| display.output == OutputFormat::StreamJson) {
        let text = printable(&failure);
        errln!("{} not landed: {text}", stderr_paint().red("error:"));
    }
    Ok(delivered.report)
}
