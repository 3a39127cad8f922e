//! `jm run`: wiring a session and standing beside it until it ends.

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use journeyman_agent::{Approver, Checks, Filter, SessionHandle, Since, Subscription, start};
use journeyman_host::config::Environment;
use journeyman_host::{Cassette, Connected, connect};
use journeyman_protocol::{Event, RunOutcome, RunReport, SessionId};
use journeyman_sandbox::clean;
use journeyman_store::StoreError;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::{RunArgs, RunOptions};
use crate::deliver::{Delivery, Place};
use crate::edge::{Failure, House, now, root};
use crate::question::Questions;
use crate::render::Renderer;
use crate::sessions::holder;
use crate::settings::{Before, Settled};
use crate::summary::Seen;
use crate::wire::{Ground, Wired, wire};
use crate::{candidates, color, settings, summary};

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

pub(crate) async fn run(environment: &Environment, args: Box<RunArgs>) -> Result<u8, Failure> {
    let options = &args.options;
    let root = root(environment, options.directory.as_deref())?;
    // First what can be wrong with the command line alone; the task is read when nothing else can be.
    let (house, mut prepared) =
        (House::open(environment)?, Prepared::new(environment, &root, options, None)?);
    if args.candidates.is_some() {
        // Several at once can't ask.
        prepared.approver = Approver::Nobody;
    }
    let delivery = Delivery::new(&options.delivery, prepared.place())?;
    let task = task(environment, &args)?;
    let shown = Shown::of(options);
    if let Some(count) = args.candidates {
        let wired = prepared.wire(environment, &house, &root, "run")?;
        return candidates::run(wired, &task, count, args.land, &delivery, shown).await;
    }
    let wired = prepared.wire(environment, &house, &root, "run")?;
    let report = drive(&wired, task, delivery, shown).await?;
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
            day: now().to_date(),
        };
        let connected = connect(&settled.config, environment, &cassette, Arc::new(now))?;
        let approver = if interactive { Approver::Handle } else { Approver::Nobody };
        Ok(Self { settled, connected, approver })
    }

    /// Where the session works unless a flag says otherwise.
    pub(crate) fn place(&self) -> Place {
        let isolate = self.settled.asked.isolate.or(self.settled.config.isolate);
        if isolate == Some(true) { Place::Copy } else { Place::Project }
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
            tell!("{} {}", color::stderr().yellow("warning:"), clean(warning.as_bytes()));
        }
        let checks = match (&asked.checks, &config.checks) {
            (Some(Checks::Off), _) => Checks::Off,
            (_, Some(commands)) => Checks::Custom(commands.clone()),
            (_, None) => Checks::Found,
        };
        let mut wired = wire(environment, house, root, &config, self.connected, self.approver, checks)?;
        wired.ground.holder = holder(command);
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

    /// Whether a person may be asked, as far as the output goes.
    pub(crate) fn is_interactive(self) -> bool {
        self.output == Output::Text && !self.is_quiet() && std::io::stderr().is_terminal()
    }

    /// Whether progress isn't shown.
    pub(crate) fn is_quiet(self) -> bool {
        self.progress == Progress::Hidden
    }

    /// Prints the result; gives the exit code.
    pub(crate) fn print(self, report: &RunReport) -> Result<u8, Failure> {
        print(report, self.output, self.progress)?;
        Ok(report.exit_code)
    }
}

/// A person can be asked when they are at the terminal and didn't ask for output that a program reads.
pub(crate) fn interactive(options: &RunOptions) -> bool {
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

/// Starts the session, shows it until it ends, and brings its work to where it is to be.
pub(crate) async fn drive(
    wired: &Wired,
    task: String,
    mut delivery: Delivery,
    shown: Shown,
) -> Result<RunReport, Failure> {
    let id = SessionId::new(now(), fastrand::u64(..));
    let parts = delivery.parts(wired, &id).await?;
    let mut settings = wired.settings.clone();
    delivery.put_on_record(&mut settings.asked);
    let session = start(parts, settings, id);
    let events = session.subscribe(Filter::all(), Since::Now);
    session.send(task).await?;
    let questions = Questions::new(wired.config_dir.clone());
    let report = stand_by(&session, events, questions, &wired.ground, shown).await?;
    drop(session);
    delivery.settle(wired, &report, shown).await
}

/// Shows a session until all that was asked of it is answered, then ends it.
pub(crate) async fn stand_by(
    session: &SessionHandle,
    mut events: Subscription,
    questions: Questions,
    ground: &Ground,
    shown: Shown,
) -> Result<Arc<RunReport>, Failure> {
    let mut renderer = Renderer::new(color::stderr(), shown.is_quiet());
    // First of all: trying the sandbox for the notes may take a moment.
    let mut signals = Signals::listen()?;
    ground.notes().await.iter().for_each(|note| renderer.note(note));
    let watched = watch(session, &mut events, questions, &mut renderer, shown.output, &mut signals).await;
    renderer.end();
    tokio::select! {
        biased;
        // Also after a failure: what runs in the background ends, and others may have the session.
        () = session.close() => {}
        () = signals.heard() => std::process::exit(130),
    }
    let report = watched?;
    // A session whose log is gone can't be gone on with or taken back: that it ended is all there is to say.
    if report.outcome == RunOutcome::Error
        && let Err(StoreError::Gone { .. }) = ground.store.find(report.session.as_str()).await
    {
        return Err(Failure::Error(anyhow::anyhow!("{}", report.summary)));
    }
    Ok(report)
}

/// Ctrl-C, and what asks a program to end.
pub(crate) struct Signals {
    interrupts: Signal,
    terminations: Signal,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self, Failure> {
        let interrupts = signal(SignalKind::interrupt()).context("listening for Ctrl-C")?;
        let terminations = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
        Ok(Self { interrupts, terminations })
    }

    /// The next of them.
    pub(crate) async fn heard(&mut self) {
        tokio::select! {
            _ = self.interrupts.recv() => {}
            _ = self.terminations.recv() => {}
        }
    }
}

/// Shows events, passes questions on, and listens for Ctrl-C. A question is open beside the loop, so that Ctrl-C is
/// heard while it waits. Gives the last report.
async fn watch(
    session: &SessionHandle,
    events: &mut Subscription,
    mut questions: Questions,
    renderer: &mut Renderer,
    output: Output,
    signals: &mut Signals,
) -> Result<Arc<RunReport>, Failure> {
    let mut asked_to_stop = false;
    let mut ending = std::pin::pin!(session.finished());
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

pub(crate) fn line(text: &str) -> Result<(), Failure> {
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
