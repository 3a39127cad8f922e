//! `jm run`, and what it shares with other commands that run sessions.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;

use journeyman_agent::{Approver, EventFilter, SessionHandle, Since, Subscription, UserMessage, is_question};
use journeyman_context::ReadOnlyGoal;
use journeyman_host::agents::{AgentRun, LoadedAgent, parse_inputs};
use journeyman_host::candidates::{connect_candidates, first_candidate_model};
use journeyman_host::config::Environment;
use journeyman_host::delegates::model_name;
use journeyman_host::format::printable;
use journeyman_host::images::read_image;
use journeyman_host::plans::find_plan;
use journeyman_host::renderer::Renderer;
use journeyman_host::root::{describe_root, project_root};
use journeyman_host::sessions::new_session_id;
use journeyman_host::slash_commands::SlashCommands;
use journeyman_host::task_input::{PipedData, TaskSource, TaskText, read_task};
use journeyman_host::{
    Confirmations, Delivery, HostError, PreparedRun, RunOptions, SessionTemplate, Surface, SurfaceInput,
    WorkLocation, watch_session,
};
use journeyman_protocol::{Envelope, ImageData, Plan, RunReport, Seq};
use tokio_util::sync::CancellationToken;

use crate::approvals::ApprovalPrompter;
use crate::args::{self, CandidateList, RunArgs};
use crate::display::{Display, OutputFormat};
use crate::risk::{assess_risk, describe_risk};
use crate::runtime::{Signals, exit_interrupted, open_state, run_until_stopped};
use crate::terminal_prompts::TerminalPrompts;
use crate::{candidates, color};

pub(crate) async fn run(environment: &Environment, mut args: RunArgs) -> Result<u8, HostError> {
    if let Some(cli) = &args.with {
        let own = args.options.model.model.take();
        args.options.model.model = Some(model_name(cli, own.as_deref()));
    }
    if let Some(CandidateList::Names(names)) = &args.candidates
        && let Some(model) = first_candidate_model(names)
    {
        args.options.model.model = Some(model);
    }
    let options = &args.options;
    let root = project_root(environment, options.directory.as_deref())?;
    // Errors in the command line come first; the task is read when nothing else can be wrong.
    let dirs = open_state(environment)?;
    let prompts = terminal_confirmations(options);
    let run_options = RunOptions {
        agent: args.agent.clone(),
        plans: !args.asks && args.with.is_none(),
        ..options.to_options()
    };
    let mut prepared = PreparedRun::new(environment, &root, &run_options, None, prompts)?;
    if args.candidates.is_some() {
        // Concurrent sessions can't ask.
        prepared.approver = Approver::Nobody;
    }
    if let Some(session) = &args.plan {
        let session = Some(session.as_str()).filter(|session| !session.is_empty());
        prepared.plan =
            Some(find_plan(environment, &dirs, options.directory.as_deref(), session).await?.plan);
    }
    let candidates = match &args.candidates {
        None => None,
        Some(CandidateList::Count(count)) => Some((0..*count).map(|_| None).collect::<Vec<_>>()),
        Some(CandidateList::Names(names)) => {
            Some(connect_candidates(&prepared.settings.config, environment, &root, &dirs, names)?)
        }
    };
    let secrets = candidates.iter().flatten().flatten().flat_map(|candidate| candidate.secrets().to_vec());
    prepared.add_secrets(secrets);
    let workplace = WorkLocation::from_settings(&prepared.settings);
    let delivery = Delivery::new(&options.delivery.to_options(), workplace)?;
    let task = resolve_task_text(environment, &args, prepared.plan.as_ref())?;
    let images = read_images(environment, &args.image)?;
    let display = Display::from_options(&options.output);
    print_warnings(&prepared);
    let notes = describe_root(environment, options.directory.as_deref(), &root).into_iter().chain(task.note);
    notes
        .filter(|_| !display.is_quiet())
        .for_each(|note| errln!("{}", color::stderr_paint().dim(&printable(&note))));
    // A question in plan mode is answered; a task is planned.
    let asks = args.asks || is_question(&task.text);
    if asks {
        prepared.read_only_goal = ReadOnlyGoal::Answer;
    }
    let agent = prepared.agent.take().filter(|_| args.agent.is_some() || !asks);
    let template = prepared.into_template(environment, &dirs, &root, "run", delivery)?;
    if let Some(definition) = agent {
        let task = Some(task.text.as_str()).filter(|task| !task.is_empty());
        let inputs = parse_inputs(&definition, task, &args.input)?;
        let run = AgentRun::new(&definition, &inputs, &template)?;
        run.left_out.iter().for_each(|warning| print_warning(warning));
        return display.print_report(&run_agent(template, run, display).await?);
    }
    let task = SlashCommands::expand_task(environment, &root, task.text)?;
    template.check_task_size(&task)?;
    if args.with.is_some() && !display.is_quiet() {
        let risk = describe_risk(&assess_risk(Some(&root), &task, &root).await?);
        errln!("{}", color::stderr_paint().dim(&printable(&format_args!("{risk}; confined"))));
    }
    if let Some(models) = candidates {
        return candidates::run_task_candidates(template, &task, &models, args.land, display).await;
    }
    let report = run_task(template, UserMessage { text: task, images }, display).await?;
    display.print_report(&report)
}

/// Returns the task's text. An agent may have inputs instead, and a plan has its own task.
fn resolve_task_text(
    environment: &Environment,
    args: &RunArgs,
    plan: Option<&Plan>,
) -> Result<TaskText, HostError> {
    let has_other = args.agent.is_some() || plan.is_some();
    if has_other && args.file.is_none() && args.data.is_none() {
        let own = plan.map(|plan| plan.task.clone());
        return Ok(TaskText { text: args.task.clone().or(own).unwrap_or_default(), note: None });
    }
    let file = args.file.as_ref().map(|path| environment.cwd.join(path));
    let source = match (args.task.as_deref(), file.as_deref()) {
        (Some(task), _) => TaskSource::Argument(task),
        (None, Some(path)) => TaskSource::File(path),
        (None, None) => TaskSource::Unnamed,
    };
    read_task("task", source, if args.data.is_some() { PipedData::Wanted } else { PipedData::IfAny })
}

/// Reads images, whose paths are relative to the current directory.
pub(crate) fn read_images(environment: &Environment, paths: &[PathBuf]) -> Result<Vec<ImageData>, HostError> {
    paths.iter().map(|path| read_image(&environment.cwd.join(path))).collect()
}

/// Returns the prompts of the terminal, if a person is there and the output isn't JSON.
pub(crate) fn terminal_confirmations(options: &args::RunOptions) -> Option<&'static dyn Confirmations> {
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
