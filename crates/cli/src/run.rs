//! `jm run`: wiring a session and standing beside it until it ends.

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use journeyman_agent::config::{Config, Environment};
use journeyman_agent::hooks::HooksBuilder;
use journeyman_agent::{
    Approver, Cassette, Checks, Connected, DEFAULT_TODO_INTERVAL, Filter, Parts, RunSettings, SessionHandle,
    Since, Subscription, TodoSettings, connect, providers, start,
};
use journeyman_policy::Policy;
use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{Event, Mode, Needs, RunReport, SessionId, Tokens};
use journeyman_sandbox::{HostEnvironment, clean, toolchains};
use journeyman_store::Store;
use journeyman_tools::Registry;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::{RunArgs, RunOptions};
use crate::edge::{Failure, House, now, root};
use crate::question::Questions;
use crate::render::Renderer;
use crate::sessions::holder;
use crate::settings::{Before, Settled};
use crate::summary::Seen;
use crate::{color, settings, summary};

/// Largest task that is read, in bytes: more than any model's window.
const MAX_TASK: u64 = 4 * 1024 * 1024;

/// How the result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// For people.
    Text,
    /// One object at the end.
    Json,
    /// One event a line.
    StreamJson,
}

/// Whether progress goes to standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Shown,
    Hidden,
}

/// Everything a run needs, wired.
pub(crate) struct Wired {
    pub(crate) parts: Parts,
    pub(crate) settings: RunSettings,
}

pub(crate) async fn run(environment: &Environment, args: Box<RunArgs>) -> Result<u8, Failure> {
    let options = &args.options;
    let root = root(environment, options.directory.as_deref())?;
    // First what can be wrong with the command line alone; the task is read when nothing else can be.
    let (house, prepared) = (House::open(environment)?, Prepared::new(environment, &root, options, None)?);
    let task = task(environment, &args)?;
    let wired = prepared.wire(environment, &house, &root, "run")?;
    let shown = Shown::of(options);
    let report = drive(wired, task, shown.output, options.quiet).await?;
    shown.print(&report)
}

/// What a run is to be like, before anything is opened.
pub(crate) struct Prepared {
    settled: Settled,
    connected: Connected,
    approver: Approver,
}

impl Prepared {
    pub(crate) fn new(
        environment: &Environment,
        root: &Path,
        options: &RunOptions,
        before: Option<&Before>,
    ) -> Result<Self, Failure> {
        let interactive = interactive(options);
        let settled = settings::load(environment, root, options, before, interactive)?;
        let cassette = Cassette {
            record: options.model.record.clone(),
            replay: options.model.replay.clone(),
            day: summary::day(now()),
        };
        let connected = connect(&settled.config, environment, &cassette, Arc::new(now))?;
        let approver = if interactive { Approver::Handle } else { Approver::Nobody };
        Ok(Self { settled, connected, approver })
    }

    /// Puts the rooms together.
    pub(crate) fn wire(
        self,
        environment: &Environment,
        house: &House,
        root: &Path,
        command: &str,
    ) -> Result<Wired, Failure> {
        let Settled { config, asked, warnings } = self.settled;
        for warning in warnings {
            eprintln!("{} {}", color::stderr().yellow("warning:"), clean(warning.as_bytes()));
        }
        let checks = match (&asked.checks, &config.checks) {
            (Some(Checks::Off), _) => Checks::Off,
            (_, Some(commands)) => Checks::Custom(commands.clone()),
            (_, None) => Checks::Found,
        };
        let mut wired = wire(environment, house, root, &config, self.connected, self.approver, checks)?;
        wired.parts.holder = holder(command);
        wired.settings.asked = settings::worth_keeping(&asked);
        Ok(wired)
    }
}

/// What is shown, and where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown {
    pub(crate) output: Output,
    progress: Progress,
}

impl Shown {
    pub(crate) fn of(options: &RunOptions) -> Self {
        let output = match (options.json, options.stream_json) {
            (true, _) => Output::Json,
            (_, true) => Output::StreamJson,
            _ => Output::Text,
        };
        let progress = if options.quiet { Progress::Hidden } else { Progress::Shown };
        Self { output, progress }
    }

    /// Prints the result; gives the exit code.
    pub(crate) fn print(self, report: &RunReport) -> Result<u8, Failure> {
        print(report, self.output, self.progress)?;
        Ok(report.exit_code)
    }
}

/// A person can be asked when they are at the terminal and didn't ask for output that a program reads.
fn interactive(options: &RunOptions) -> bool {
    let machine = options.json || options.stream_json || options.quiet;
    !machine && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// The task's text. Standard input is only read when the task is `-`.
fn task(environment: &Environment, args: &RunArgs) -> Result<String, Failure> {
    let text = match (&args.task, &args.file) {
        (Some(task), _) => words("task", task)?,
        (None, Some(path)) => {
            let path = environment.cwd.join(path);
            let shown = path.display().to_string();
            let file = std::fs::File::open(&path).map_err(|error| {
                Failure::usage(format_args!("cannot read the task from {shown}: {error}"))
            })?;
            read("task", file, &shown)?
        }
        (None, None) => String::new(),
    };
    if text.trim().is_empty() {
        return Err(Failure::usage("the task is empty; say what to do: jm run \"TASK\""));
    }
    Ok(text)
}

/// What a person says: the argument itself, or standard input where it is `-`.
pub(crate) fn words(what: &str, argument: &str) -> Result<String, Failure> {
    match argument {
        "-" => read(what, std::io::stdin(), "standard input"),
        words => Ok(words.to_owned()),
    }
}

fn read(what: &str, from: impl std::io::Read, place: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    from.take(MAX_TASK + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(format_args!("cannot read the {what} from {place}: {error}")))?;
    if bytes.len() as u64 > MAX_TASK {
        return Err(Failure::usage(format_args!("the {what} from {place} is longer than {MAX_TASK} bytes")));
    }
    String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format_args!("the {what} from {place} is not UTF-8 text")))
}

/// Puts the rooms together. Nothing is asked, run or written yet.
pub(crate) fn wire(
    environment: &Environment,
    house: &House,
    root: &Path,
    config: &Config,
    connected: Connected,
    approver: Approver,
    checks: Checks,
) -> Result<Wired, Failure> {
    let workspace = house.workspace(root)?;
    let sandbox = house.sandbox(&config.sandbox_allow)?;
    let host = HostEnvironment { vars: environment.vars.clone(), home: environment.home.clone() };
    let tools = toolchains(&host, root);
    let default_mode = if approver == Approver::Handle { Mode::Edit } else { Mode::Auto };
    let settings = run_settings(config, &connected, approver, checks, default_mode)?;
    // Keys of providers that this run doesn't ask are nobody's business either.
    let keys = providers(config).into_iter().flat_map(|provider| provider.key_env);
    let mut secrets = connected.secrets;
    secrets.extend(keys.filter_map(|name| environment.var(&name).map(str::to_owned)));
    secrets.extend(config.secrets.iter().filter_map(|name| environment.var(name)).map(str::to_owned));
    let programs = environment.clone();
    let parts = Parts {
        store: Arc::clone(&house.store) as Arc<dyn Store>,
        model: connected.model,
        workspace: Arc::new(workspace),
        copy: None,
        sandbox: Arc::new(sandbox),
        toolchains: Arc::new(tools),
        registry: Registry::rooted(root),
        policy: Policy::default(),
        redactor: Arc::new(Redactor::new(secrets)),
        hooks: HooksBuilder::new().configured(config, environment, root).build(),
        clock: Arc::new(now),
        programs: Arc::new(move |name: &str| programs.has_program(name)),
        holder: holder("run"),
    };
    Ok(Wired { parts, settings })
}

fn run_settings(
    config: &Config,
    connected: &Connected,
    approver: Approver,
    checks: Checks,
    default_mode: Mode,
) -> Result<RunSettings, Failure> {
    if config.budget_usd.is_some() && connected.price.is_none() {
        return Err(Failure::usage(format_args!(
            "--budget needs the price of {name}, which isn't known; set providers.PROVIDER.models.\"NAME\".input and \
             .output (US dollars for a million tokens) in your configuration",
            name = connected.name
        )));
    }
    let unconfined = config.sandbox_allow.iter().any(|name| name == "none");
    let standard = RunSettings::default();
    Ok(RunSettings {
        mode: config.mode_or(default_mode),
        approver,
        approval_timeout: config.approval_timeout,
        concurrency: config
            .tools_concurrency
            .map_or(standard.concurrency, |calls| usize::try_from(calls).unwrap_or(standard.concurrency)),
        tool_timeout: config.tools_timeout.unwrap_or(standard.tool_timeout),
        todos: (config.todos != Some(false)).then(|| TodoSettings {
            remind_every: config.todos_remind_every.unwrap_or(DEFAULT_TODO_INTERVAL),
            ..TodoSettings::default()
        }),
        loop_guard: config.loop_guard.unwrap_or(standard.loop_guard),
        max_turns: config.max_turns.unwrap_or(standard.max_turns),
        max_iterations: config.max_iterations.unwrap_or(standard.max_iterations),
        timeout: config.timeout.unwrap_or(standard.timeout),
        budget_usd: config.budget_usd,
        price: connected.price,
        checks,
        needs: if unconfined { Needs::NONE } else { Needs::ALL },
        instructions: config.instructions.clone(),
        project_instructions: config.project_instructions.clone(),
        tool_calling: connected.tool_calling,
        temperature: config.temperature.map(narrow),
        top_p: config.top_p.map(narrow),
        thinking: journeyman_agent::thinking(config),
        max_output: config.max_output_tokens.map(|tokens| Tokens(u64::from(tokens))),
        asked: standard.asked,
        context_budget: config
            .context_tokens
            .map_or(standard.context_budget, |tokens| Tokens(u64::from(tokens))),
        today: connected.day.clone().unwrap_or_else(|| summary::day(now())),
        platform: standard.platform,
    })
}

#[expect(clippy::cast_possible_truncation, reason = "sampling settings have two digits")]
fn narrow(number: f64) -> f32 {
    number as f32
}

/// Starts the session and shows it until it ends.
pub(crate) async fn drive(
    wired: Wired,
    task: String,
    output: Output,
    quiet: bool,
) -> Result<Arc<RunReport>, Failure> {
    let id = SessionId::new(now(), fastrand::u64(..));
    let session = start(wired.parts, wired.settings, id);
    let events = session.subscribe(Filter::all(), Since::Now);
    session.send(task).await?;
    stand_by(&session, events, output, quiet).await
}

/// Shows a session until all that was asked of it is answered, then ends it.
pub(crate) async fn stand_by(
    session: &SessionHandle,
    mut events: Subscription,
    output: Output,
    quiet: bool,
) -> Result<Arc<RunReport>, Failure> {
    let mut renderer = Renderer::new(color::stderr(), quiet);
    if rustix::process::geteuid().is_root() {
        renderer.note("running as root: commands are confined, but files that only root may read in the project are open to them");
    }
    let mut signals = Signals::listen()?;
    let watched = watch(session, &mut events, &mut renderer, output, &mut signals).await;
    renderer.end();
    tokio::select! {
        biased;
        // Also after a failure: what runs in the background ends, and others may have the session.
        () = session.close() => {}
        () = signals.heard() => std::process::exit(130),
    }
    watched
}

/// Ctrl-C, and what asks a program to end.
struct Signals {
    interrupts: Signal,
    terminations: Signal,
}

impl Signals {
    fn listen() -> Result<Self, Failure> {
        let interrupts = signal(SignalKind::interrupt()).context("listening for Ctrl-C")?;
        let terminations = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
        Ok(Self { interrupts, terminations })
    }

    /// The next of them.
    async fn heard(&mut self) {
        tokio::select! {
            _ = self.interrupts.recv() => {}
            _ = self.terminations.recv() => {}
        }
    }
}

/// Shows events, passes questions on, and listens for Ctrl-C. Gives the last report.
async fn watch(
    session: &SessionHandle,
    events: &mut Subscription,
    renderer: &mut Renderer,
    output: Output,
    signals: &mut Signals,
) -> Result<Arc<RunReport>, Failure> {
    let mut asked_to_stop = false;
    let mut ending = std::pin::pin!(session.finished());
    // A question is open beside the loop, so that Ctrl-C is heard while it waits.
    let mut questions = Questions::default();
    loop {
        tokio::select! {
            biased;
            () = signals.heard() => stop(session, renderer, &mut asked_to_stop),
            event = events.next() => {
                let Some(envelope) = event? else { return Ok(ending.await?) };
                if output == Output::StreamJson {
                    line(&serde_json::to_string(&*envelope).context("an event")?)?;
                }
                renderer.show(&envelope.event);
                if questions.heed(&envelope.event) {
                    renderer.end();
                }
                if let Event::Done { report } = &envelope.event
                    && asked_to_stop
                {
                    // A message that waited behind the task waits on, for whoever opens the session again.
                    return Ok(Arc::new((**report).clone()));
                }
            }
            (call, answer) = questions.answered() => { session.decide(&call, answer); }
            // After the events: each is shown before the report that follows it. A log that refuses its last
            // entries never shows them; the report still comes.
            report = &mut ending => return Ok(report?),
        }
    }
}

/// The first Ctrl-C stops cleanly, the second at once: the kernel then ends what ran in the sandbox.
fn stop(session: &SessionHandle, renderer: &mut Renderer, asked: &mut bool) {
    if *asked {
        std::process::exit(130);
    }
    *asked = true;
    renderer.note("stopping… (Ctrl-C again stops at once)");
    session.interrupt();
}

/// Prints the result.
pub(crate) fn print(report: &RunReport, output: Output, progress: Progress) -> Result<(), Failure> {
    match output {
        Output::Text => {
            let both = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
            let seen = if both && progress == Progress::Shown { Seen::Yes } else { Seen::No };
            let text = summary::text(report, seen, color::stdout());
            write(&text)
        }
        Output::Json => line(&serde_json::to_string(report).context("the report")?),
        Output::StreamJson => Ok(()),
    }
}

fn line(text: &str) -> Result<(), Failure> {
    write(&format!("{text}\n"))
}

/// Writes to standard output; a reader that went away is not an error worth a panic.
fn write(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other.context("standard output")?),
    }
}
