//! `jm run`, and what it shares with other commands that run sessions.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;

use journeyman_agent::{EventFilter, SessionHandle, Since, Subscription, UserMessage};
use journeyman_host::agents::{AgentRun, LoadedAgent};
use journeyman_host::config::Environment;
use journeyman_host::format::printable;
use journeyman_host::new_task::{PreparedTask, TaskStart};
use journeyman_host::renderer::Renderer;
use journeyman_host::root::project_root;
use journeyman_host::sessions::new_session_id;
use journeyman_host::task_risk::{assess_task, describe_risk};
use journeyman_host::{
    Confirmations, HostError, PreparedRun, SessionTemplate, Surface, SurfaceInput, watch_session,
};
use journeyman_protocol::{Envelope, RunReport, Seq};
use journeyman_tui::ApprovalPrompter;
use journeyman_tui::line_prompts::TerminalPrompts;
use tokio_util::sync::CancellationToken;

use crate::args::{RunArgs, RunOptions};
use crate::display::{Display, OutputFormat};
use crate::runtime::{Signals, exit_interrupted, open_state, run_until_stopped};
use crate::{candidates, color};

pub(crate) async fn run(environment: &Environment, args: RunArgs) -> Result<u8, HostError> {
    let (display, lands) = (Display::from_options(&args.options.output), args.land);
    let prompts = terminal_confirmations(&args.options);
    let root = project_root(environment, args.options.directory.as_deref())?;
    let dirs = open_state(environment)?;
    let is_delegated = args.with.is_some();
    let task = PreparedTask::new(environment, &dirs, &root, args.into_request(), prompts).await?;
    print_warnings(&task.prepared);
    for note in task.notes.iter().filter(|_| !display.is_quiet()) {
        errln!("{}", color::stderr_paint().dim(&printable(note)));
    }
    let (template, start) = task.open(environment, &dirs, &root)?;
    if let Some(task) = start.text().filter(|_| is_delegated && !display.is_quiet()) {
        let risk = describe_risk(&assess_task(Some(&root), &root, task, Some(&root)).await?);
        errln!("{}", color::stderr_paint().dim(&printable(&format_args!("{risk}; confined"))));
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
    prepared.settings.warnings.iter().chain(&prepared.agents.problems).for_each(|text| print_warning(text));
    let own = prepared.agent.as_ref().and_then(|agent| prepared.agents.find(&agent.name).ok());
    match (own.map(LoadedAgent::ignored_fields_notice), prepared.agents.ignored_fields_notices().count()) {
        (Some(notice), _) => notice.iter().for_each(|notice| print_warning(notice)),
        (None, 0) => {}
        (None, count) => print_warning(&format!(
            "{} used in part, as jm agents says",
            if count == 1 {
                "1 agent of another product is".to_owned()
            } else {
                format!("{count} agents of other products are")
            }
        )),
    }
}

pub(crate) fn print_warning(text: &str) {
    errln!("{} {}", color::stderr_paint().yellow("warning:"), printable(&text));
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
    mut events: Subscription,
    display: Display,
) -> Result<RunReport, HostError> {
    let mut terminal = TerminalSurface::new(display, template.config_dir.clone())?;
    // First of all: probing the sandbox for the notes may take a moment.
    template.project.sandbox_notes().await.iter().for_each(|note| terminal.renderer.show_note(note));
    if let Some(reason) = &template.no_copy_reason {
        terminal
            .renderer
            .show_note(&format!("works in your files: no copy is cheap here ({})", printable(reason)));
    }
    let watched = watch_session(&session, &mut events, &mut terminal).await;
    terminal.renderer.set_events_held(false);
    terminal.renderer.end_line();
    tokio::select! {
        biased;
        // Also after a failure: background commands end, and other processes may have the session.
        () = session.close() => {}
        () = terminal.signals.next() => exit_interrupted(),
    }
    drop(session);
    let stop = CancellationToken::new();
    let prompts = template.is_attended().then_some(&TerminalPrompts as &dyn Confirmations);
    let delivered = run_until_stopped(template.deliver(&watched?, prompts, &stop), &stop).await??;
    display.show_late_events(&delivered.events)?;
    if let Some(failure) = delivered.failure.filter(|_| display.output == OutputFormat::StreamJson) {
        let text = printable(&failure);
        errln!("{} not landed: {text}", color::stderr_paint().red("error:"));
    }
    Ok(delivered.report)
}

/// The terminal as a surface of a session.
struct TerminalSurface {
    display: Display,
    renderer: Renderer,
    approvals: ApprovalPrompter,
    signals: Signals,
    is_stopping: bool,
}

impl TerminalSurface {
    fn new(display: Display, config_dir: Option<PathBuf>) -> Result<Self, HostError> {
        Ok(Self {
            display,
            renderer: Renderer::new(display.detail),
            approvals: ApprovalPrompter::new(config_dir),
            signals: Signals::listen()?,
            is_stopping: false,
        })
    }
}

impl Surface for TerminalSurface {
    fn show(&mut self, envelope: &Envelope) -> Result<(), HostError> {
        self.display.stream_event(envelope)?;
        self.renderer.show_envelope(envelope);
        self.approvals.handle_event(envelope);
        self.renderer.set_events_held(self.approvals.is_asking());
        Ok(())
    }

    fn next_input(&mut self) -> Pin<Box<dyn Future<Output = SurfaceInput> + '_>> {
        Box::pin(async move {
            loop {
                self.approvals.show_next();
                self.renderer.set_events_held(self.approvals.is_asking());
                tokio::select! {
                    biased;
                    () = self.signals.next() => {
                        // The first signal stops cleanly, the second at once: the kernel then kills
                        // sandboxed processes.
                        if self.is_stopping {
                            exit_interrupted();
                        }
                        self.is_stopping = true;
                        self.renderer.show_note("stopping… (Ctrl-C again stops at once)");
                        return SurfaceInput::Interrupt;
                    }
                    (call, answer) = self.approvals.next_answer() => return SurfaceInput::Answer(call, answer),
                    () = self.renderer.redraw_progress() => {}
                }
            }
        })
    }
}
