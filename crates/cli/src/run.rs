//! `jm run`, and what it shares with other commands that run sessions.

use std::future::Future;
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use journeyman_agent::{Approver, SessionHandle, Subscription};
use journeyman_host::config::Environment;
use journeyman_host::sessions::holder_name;
use journeyman_host::state::{StateDirs, now, project_root};
use journeyman_host::{
    Cassette, Connected, Context as _, Delivery, EarlierRun, HostError, Input, Prompts, ResolvedSettings,
    SessionBuilder, SessionTemplate, Surface, Workplace, connect, resolve_settings, watch_session,
};
use journeyman_protocol::{Envelope, RunReport, SessionId};
use journeyman_sandbox::clean;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::approvals::Approvals;
use crate::args::{RunArgs, RunOptions};
use crate::prompt::TerminalPrompts;
use crate::render::Renderer;
use crate::summary::Streamed;
use crate::{candidates, color, open_state, summary};

/// Maximum size of a task, in bytes: more than the window of any model.
const MAX_TASK_BYTES: u64 = 4 * 1024 * 1024;
/// The exit code of an interrupted command.
const INTERRUPTED: i32 = 130;

/// The form of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// Text for people.
    Text,
    /// One object at the end.
    Json,
    /// One event a line.
    StreamJson,
}

pub(crate) async fn run(environment: &Environment, args: Box<RunArgs>) -> Result<u8, HostError> {
    let options = &args.options;
    let root = project_root(environment, options.directory.as_deref())?;
    // Errors in the command line come first; the task is read when nothing else can be wrong.
    let dirs = open_state(environment)?;
    let mut prepared = Prepared::new(environment, &root, options, None)?;
    if args.candidates.is_some() {
        // Several sessions at once can't ask.
        prepared.approver = Approver::Nobody;
    }
    let workplace = Workplace::of(&prepared.settings);
    let delivery = Delivery::new(&options.delivery.to_options(), workplace)?;
    let task = read_task(environment, &args)?;
    let display = Display::of(options);
    let template = prepared.into_template(environment, &dirs, &root, "run", delivery)?;
    if let Some(count) = args.candidates {
        return candidates::run(template, &task, count, args.land, display).await;
    }
    let report = run_task(template, task, display).await?;
    display.print_report(&report)
}

/// The settings and the model of a run, before anything is opened.
pub(crate) struct Prepared {
    pub(crate) settings: ResolvedSettings,
    connected: Connected,
    approver: Approver,
}

impl Prepared {
    pub(crate) fn new(
        environment: &Environment,
        root: &Path,
        options: &RunOptions,
        earlier: Option<&EarlierRun>,
    ) -> Result<Self, HostError> {
        let prompts = is_interactive(options).then_some(&TerminalPrompts as &dyn Prompts);
        let settings = resolve_settings(environment, root, &options.to_options(), earlier, prompts)?;
        let cassette = Cassette {
            record: options.model.record.clone(),
            replay: options.model.replay.clone(),
            day: now().to_date(),
        };
        let connected = connect(&settings.config, environment, &cassette, Arc::new(now))?;
        let approver = if prompts.is_some() { Approver::Handle } else { Approver::Nobody };
        Ok(Self { settings, connected, approver })
    }

    /// Opens the project.
    pub(crate) fn into_template(
        self,
        environment: &Environment,
        dirs: &Arc<StateDirs>,
        root: &Path,
        command: &str,
        delivery: Delivery,
    ) -> Result<SessionTemplate, HostError> {
        for warning in &self.settings.warnings {
            tell!("{} {}", color::stderr().yellow("warning:"), clean(warning.as_bytes()));
        }
        SessionBuilder::new(root)
            .environment(environment.clone())
            .state(Arc::clone(dirs))
            .settings(self.settings)
            .connected(self.connected)
            .approver(self.approver)
            .delivery(delivery)
            .holder(holder_name(command))
            .build()
    }
}

/// What is shown, and where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Display {
    pub(crate) output: Output,
    /// No progress on standard error.
    pub(crate) is_quiet: bool,
}

impl Display {
    pub(crate) fn of(options: &RunOptions) -> Self {
        let output = match (options.json, options.stream_json) {
            (true, _) => Output::Json,
            (_, true) => Output::StreamJson,
            _ => Output::Text,
        };
        Self { output, is_quiet: options.quiet }
    }

    /// Returns true if the output leaves room for questions to a person.
    pub(crate) fn is_interactive(self) -> bool {
        self.output == Output::Text && !self.is_quiet && std::io::stderr().is_terminal()
    }

    /// Prints the result and returns the exit code.
    pub(crate) fn print_report(self, report: &RunReport) -> Result<u8, HostError> {
        match self.output {
            Output::Text => {
                let both = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
                let streamed = if both && !self.is_quiet { Streamed::Yes } else { Streamed::No };
                write_stdout(&summary::text(report, streamed, color::stdout()))?;
            }
            Output::Json => print_json_line(report)?,
            Output::StreamJson => {}
        }
        Ok(report.exit_code)
    }

    /// Shows events that were written into a session's log after its end.
    pub(crate) fn show_late_events(self, events: &[Envelope]) -> Result<(), HostError> {
        let mut renderer = Renderer::new(color::stderr(), self.is_quiet);
        for envelope in events {
            if self.output == Output::StreamJson {
                print_json_line(envelope)?;
            }
            renderer.show(&envelope.event);
        }
        Ok(())
    }
}

/// Returns true if a person is at the terminal and didn't ask for output that a program reads.
pub(crate) fn is_interactive(options: &RunOptions) -> bool {
    let for_program = options.json || options.stream_json || options.quiet;
    !for_program && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Reads the task. Standard input is only read for `-`.
fn read_task(environment: &Environment, args: &RunArgs) -> Result<String, HostError> {
    let text = match (&args.task, &args.file) {
        (Some(task), _) => read_argument("task", task)?,
        (None, Some(path)) => {
            let path = environment.cwd.join(path);
            let shown = path.display().to_string();
            let file = std::fs::File::open(&path).map_err(|error| {
                HostError::usage(format_args!("cannot read the task from {shown}: {error}"))
            })?;
            read_text("task", file, &shown)?
        }
        (None, None) => String::new(),
    };
    if text.trim().is_empty() {
        return Err(HostError::usage("the task is empty; say what to do: jm run \"TASK\""));
    }
    Ok(text)
}

/// Returns the argument itself, or standard input for `-`.
pub(crate) fn read_argument(what: &str, argument: &str) -> Result<String, HostError> {
    match argument {
        "-" => read_text(what, std::io::stdin(), "standard input"),
        text => Ok(text.to_owned()),
    }
}

fn read_text(what: &str, from: impl std::io::Read, source: &str) -> Result<String, HostError> {
    let mut bytes = Vec::new();
    from.take(MAX_TASK_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| HostError::usage(format_args!("cannot read the {what} from {source}: {error}")))?;
    if bytes.len() as u64 > MAX_TASK_BYTES {
        return Err(HostError::usage(format_args!(
            "the {what} from {source} is longer than {MAX_TASK_BYTES} bytes"
        )));
    }
    String::from_utf8(bytes)
        .map_err(|_| HostError::usage(format_args!("the {what} from {source} is not UTF-8 text")))
}

/// Runs a task in a new session, shows it until it ends, and delivers its work.
pub(crate) async fn run_task(
    mut template: SessionTemplate,
    task: String,
    display: Display,
) -> Result<RunReport, HostError> {
    let session = template.start(SessionId::new(now(), fastrand::u64(..))).await?;
    let events = session.subscribe(journeyman_agent::Filter::all(), journeyman_agent::Since::Now);
    session.send(task).await?;
    watch_and_deliver(&template, session, events, display).await
}

/// Shows a session until everything that it was asked to do has ended, ends it, and delivers its
/// work.
pub(crate) async fn watch_and_deliver(
    template: &SessionTemplate,
    session: SessionHandle,
    mut events: Subscription,
    display: Display,
) -> Result<RunReport, HostError> {
    let mut terminal = Terminal::new(display, template.config_dir.clone())?;
    // First of all: probing the sandbox for the notes may take a moment.
    template.project.sandbox_notes().await.iter().for_each(|note| terminal.renderer.note(note));
    let watched = watch_session(&session, &mut events, &mut terminal).await;
    terminal.renderer.end();
    tokio::select! {
        biased;
        // Also after a failure: background commands end, and other processes may have the session.
        () = session.close() => {}
        () = terminal.signals.next() => std::process::exit(INTERRUPTED),
    }
    drop(session);
    let stop = CancellationToken::new();
    let prompts = template.is_attended().then_some(&TerminalPrompts as &dyn Prompts);
    let delivered = stoppable(template.deliver(&watched?, prompts, &stop), &stop).await??;
    display.show_late_events(&delivered.events)?;
    if let Some(failure) = delivered.failure.filter(|_| display.output == Output::StreamJson) {
        let text = clean(failure.to_string().as_bytes());
        tell!("{} not landed: {text}", color::stderr().red("error:"));
    }
    Ok(delivered.report)
}

/// The terminal as a surface of a session.
struct Terminal {
    display: Display,
    renderer: Renderer,
    approvals: Approvals,
    signals: Signals,
    is_stopping: bool,
}

impl Terminal {
    fn new(display: Display, config_dir: Option<PathBuf>) -> Result<Self, HostError> {
        Ok(Self {
            display,
            renderer: Renderer::new(color::stderr(), display.is_quiet),
            approvals: Approvals::new(config_dir),
            signals: Signals::listen()?,
            is_stopping: false,
        })
    }
}

impl Surface for Terminal {
    fn show(&mut self, envelope: &Envelope) -> Result<(), HostError> {
        if self.display.output == Output::StreamJson {
            print_json_line(envelope)?;
        }
        self.renderer.show(&envelope.event);
        if self.approvals.handle_event(&envelope.event) {
            self.renderer.end();
        }
        Ok(())
    }

    fn next_input(&mut self) -> Pin<Box<dyn Future<Output = Input> + '_>> {
        Box::pin(async move {
            tokio::select! {
                biased;
                () = self.signals.next() => {
                    // The first stops cleanly, the second at once: the kernel then ends what runs
                    // in the sandbox.
                    if self.is_stopping {
                        std::process::exit(INTERRUPTED);
                    }
                    self.is_stopping = true;
                    self.renderer.note("stopping… (Ctrl-C again stops at once)");
                    Input::Interrupt
                }
                (call, answer) = self.approvals.next_answer() => Input::Answer(call, answer),
            }
        })
    }
}

/// Ctrl-C, and requests of other programs to end.
pub(crate) struct Signals {
    interrupts: Signal,
    terminations: Signal,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self, HostError> {
        let interrupts = signal(SignalKind::interrupt()).context("listening for Ctrl-C")?;
        let terminations = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
        Ok(Self { interrupts, terminations })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupts.recv() => {}
            _ = self.terminations.recv() => {}
        }
    }
}

/// Waits for work that can be stopped: the first Ctrl-C stops cleanly, the second at once.
pub(crate) async fn stoppable<T>(
    work: impl Future<Output = T>,
    stop: &CancellationToken,
) -> Result<T, HostError> {
    let mut signals = Signals::listen()?;
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            biased;
            () = signals.next() => {
                if stop.is_cancelled() {
                    std::process::exit(INTERRUPTED);
                }
                stop.cancel();
            }
            done = &mut work => return Ok(done),
        }
    }
}

/// Prints a value as one line of JSON.
pub(crate) fn print_json_line(value: &impl serde::Serialize) -> Result<(), HostError> {
    let text = serde_json::to_string(value).context("the output")?;
    write_stdout(&format!("{text}\n"))
}

/// Writes to standard output. A reader that went away is no error.
fn write_stdout(text: &str) -> Result<(), HostError> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("standard output"),
    }
}
