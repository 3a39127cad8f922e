//! The loop: keys, the session's events, and work of its own lead to another state, which is drawn.

use std::collections::HashMap;
use std::future::pending;
use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use crossterm::event::{Event as TerminalEvent, EventStream, poll, read};
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, SelectAll, select_all};
use futures_util::{FutureExt as _, StreamExt as _};
use journeyman_agent::{AgentError, MessageId};
use journeyman_host::copy_review::{CopyReview, LandingPreview};
use journeyman_host::format::{preview, printable};
use journeyman_host::index::ProjectSymbol;
use journeyman_host::known_models::{KnownModels, ListedModels};
use journeyman_host::{Context as _, HostError};
use journeyman_protocol::{CallId, ContentHash, Envelope, Event, SessionId, Tokens};
use journeyman_terminal::{Style, StyledLine};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::background_query::{BackgroundAnswerFilter, FilterResult};
use crate::completion::{Completion, NamedSession};
use crate::composer::Composer;
use crate::conversation_state::Conversation;
use crate::copy_decision::SettledCopy;
use crate::live_area::{LiveArea, StatusLineContext};
use crate::open_session::{ClosedSession, ConversationSetup, OpenSession};
use crate::plain::PlainMode;
use crate::preferences::Preferences;
use crate::presentation::{FRAME_INTERVAL, Presentation};
use crate::questions::Questions;
use crate::session_watch::SessionWatch;

/// The exit code of a conversation that a signal ended.
const EXIT_TERMINATED: u8 = 130;
/// Maximum events of the session that are taken before keys are looked at again.
const MAX_EVENTS_AT_ONCE: usize = 512;
/// The beginning of a conversation.
#[derive(Debug)]
pub enum ConversationStart {
    /// A new session, with a first message or without.
    New(Option<String>),
    /// An earlier session, with a message for it or without.
    Again(SessionId, Option<String>),
    /// An earlier session that is chosen from a list.
    Choose,
}

/// The result of work that the loop waits for while it goes on.
pub(crate) enum JobResult {
    /// A message was sent, or not.
    Sent { message: String, text: String, sent: Result<MessageId, AgentError> },
    /// A queued message was taken back, or the session has taken it.
    Withdrawn { queued: QueuedText, withdrawn: Result<bool, AgentError> },
    /// The session was asked to stop, with the messages that it hadn't taken.
    Stopped { withdrawn: Vec<QueuedText> },
    /// The conversation was shortened, or not.
    Compacted(Result<(Tokens, Tokens), AgentError>),
    /// A command of the person's ended.
    CommandRan { command: String, output: Result<(String, u8), HostError> },
    /// The project's files, symbols and sessions were listed.
    FilesListed(Vec<String>, Vec<ProjectSymbol>, Vec<NamedSession>),
    /// The server of the session's model has listed its models, or doesn't list them.
    ModelsListed(Option<ListedModels>),
    /// The ways to a model were looked for.
    Explained(Vec<StyledLine>),
    /// The whole results of the session's calls were read.
    ResultsRead(HashMap<CallId, String>),
    /// The person's status command ended.
    StatusRead(Option<String>),
    /// A session is no longer watched: it can be opened, or reading it failed, or nobody looks.
    WatchEnded { session: SessionId, ended: Option<Result<(), HostError>> },
    /// The branch was read.
    BranchRead(Option<String>),
    /// The project's files were looked at: the hash of the tree.
    TreeRead(Option<ContentHash>),
    /// The session's copy was landed or dropped, or not; then it may be under review again.
    CopySettled(Result<SettledCopy, HostError>, Option<Box<(CopyReview, LandingPreview)>>),
}

/// A message that waits for the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueuedText {
    pub(crate) id: Option<MessageId>,
    /// The message as the person wrote it.
    pub(crate) text: String,
    /// True if a run has begun since it was sent.
    pub(crate) is_of_run: bool,
}

/// The part of a session's past that is shown when it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecalledPart {
    /// The end of the session.
    Tail,
    /// Nothing: the person has it before their eyes.
    Nothing,
}

/// The step after an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoopFlow {
    Continue,
    Quit,
}

/// An event of the session, or its end.
type SessionEvent = Result<Option<std::sync::Arc<Envelope>>, AgentError>;

/// An input of the loop.
enum LoopInput {
    Terminal(Option<io::Result<TerminalEvent>>),
    Session(SessionEvent),
    Watched(Box<Envelope>),
    Job(JobResult),
    Line(Option<String>),
    Frame,
    Signal(SignalKind),
}

/// The signals that ask a program to end. Where keys are read, Ctrl-C is a key and none of them.
struct Signals([Signal; 3]);

impl Signals {
    async fn next(&mut self) -> SignalKind {
        let [terminate, hangup, interrupt] = &mut self.0;
        tokio::select! {
            _ = terminate.recv() => SignalKind::terminate(),
            _ = hangup.recv() => SignalKind::hangup(),
            _ = interrupt.recv() => SignalKind::interrupt(),
        }
    }
}

/// A conversation.
pub(crate) struct App {
    pub(crate) setup: ConversationSetup,
    pub(crate) open_session: Option<OpenSession>,
    pub(crate) conversation: Conversation,
    pub(crate) questions: Questions,
    pub(crate) composer: Composer,
    pub(crate) completion: Option<Completion>,
    /// The project's files, once they are wanted.
    pub(crate) files: Option<Vec<String>>,
    /// The project's symbols, once they are wanted and as far as they are known.
    pub(crate) symbols: Vec<ProjectSymbol>,
    /// Earlier sessions, once they are wanted.
    pub(crate) sessions: Vec<NamedSession>,
    /// Models that the person may choose from.
    pub(crate) models: KnownModels,
    /// Messages that were sent and are not taken yet, with their ids once they are known.
    pub(crate) queued: Vec<QueuedText>,
    /// Outputs of the person's commands, which go with the next message.
    pub(crate) attachments: Vec<String>,
    pub(crate) notice: Option<String>,
    pub(crate) surroundings: StatusLineContext,
    pub(crate) presentation: Presentation,
    pub(crate) jobs: FuturesUnordered<LocalBoxFuture<'static, JobResult>>,
    /// The terminal's events; the set looks at them when they wake it, and not at each look of the
    /// loop, because a look waits for a lock that the reading thread holds.
    pub(crate) keys: Option<SelectAll<EventStream>>,
    pub(crate) escaped_at: Option<Instant>,
    /// The time from which events of the session are taken again.
    next_look: Instant,
    /// The session of another process that is watched.
    pub(crate) watch: Option<SessionWatch>,
    /// The session that the next message opens again.
    pub(crate) closed_session: Option<ClosedSession>,
    /// The copy of the session that rests, while it is reviewed.
    pub(crate) copy_review: Option<CopyReview>,
    /// Stops what is being done to the copy, while it is.
    pub(crate) landing: Option<CancellationToken>,
    /// The number of the person's commands that run, and what stops them.
    pub(crate) running_commands: (usize, CancellationToken),
    /// True while the session shortens its conversation.
    pub(crate) is_compacting: bool,
    /// The person's settings.
    pub(crate) preferences: Preferences,
    /// The conversation as lines, if nothing is drawn.
    pub(crate) plain: Option<PlainMode>,
    ground_answer: BackgroundAnswerFilter,
    exit_code: u8,
}

impl App {
    /// Makes a conversation without a session; as lines if `plain` reads them.
    pub(crate) fn new(
        setup: ConversationSetup,
        history: Vec<String>,
        presentation: Presentation,
        preferences: Preferences,
        plain: Option<PlainMode>,
    ) -> Self {
        let mut composer = Composer::new(history);
        if preferences.has_vi_keys {
            composer.use_vi_keys();
        }
        Self {
            setup,
            open_session: None,
            conversation: Conversation::new(Instant::now()),
            questions: Questions::default(),
            composer,
            completion: None,
            files: None,
            symbols: Vec::new(),
            sessions: Vec::new(),
            models: KnownModels::default(),
            queued: Vec::new(),
            attachments: Vec::new(),
            notice: None,
            surroundings: StatusLineContext::default(),
            presentation,
            jobs: FuturesUnordered::new(),
            keys: None,
            escaped_at: None,
            next_look: Instant::now(),
            watch: None,
            closed_session: None,
            copy_review: None,
            landing: None,
            running_commands: (0, CancellationToken::new()),
            is_compacting: false,
            preferences,
            plain,
            ground_answer: BackgroundAnswerFilter::default(),
            exit_code: 0,
        }
    }

    /// Runs the conversation to its end. Returns the exit code.
    pub(crate) async fn run(mut self, beginning: ConversationStart) -> Result<u8, HostError> {
        let listen = |kind| signal(kind).context("listening for signals");
        let mut signals = Signals([
            listen(SignalKind::terminate())?,
            listen(SignalKind::hangup())?,
            listen(SignalKind::interrupt())?,
        ]);
        let lived = self.run_loop(beginning, &mut signals).await;
        // Whatever happened, the terminal is the person's again before anything else is awaited.
        let left = self.presentation.restore_terminal();
        drop(self.keys.take());
        let resumable = self.shown_id();
        let mut text =
            self.leave_session().await.map(|text| text.trim_end().to_owned() + "\n").unwrap_or_default();
        if let Some(id) = resumable {
            text += &format!("to go on with it: jm resume {id} \"MESSAGE\", or jm resume\n");
        }
        io::stderr().write_all(text.as_bytes()).ok();
        lived?;
        left.context("the terminal")?;
        Ok(self.exit_code)
    }

    async fn run_loop(
        &mut self,
        beginning: ConversationStart,
        signals: &mut Signals,
    ) -> Result<(), HostError> {
        if self.plain.is_none() {
            self.keys = Some(open_event_stream());
        }
        self.show_greeting();
        for problem in std::mem::take(&mut self.preferences.problems) {
            self.show_note(Style::Warning, &problem);
        }
        // The first prompt doesn't wait for the project to be opened.
        self.draw_or_write(Instant::now())?;
        self.query_background()?;
        self.open_first_session(beginning).await?;
        while !self.is_input_done() {
            let input = self.next_input(signals).await;
            let flow = match input {
                LoopInput::Terminal(Some(Ok(event))) => self.handle_terminal_events(event).await?,
                // The terminal is gone.
                LoopInput::Terminal(_) => LoopFlow::Quit,
                LoopInput::Session(event) => self.handle_session_events(event),
                LoopInput::Watched(envelope) => {
                    self.show_watched(&envelope);
                    LoopFlow::Continue
                }
                LoopInput::Job(end) => self.finish_job(end)?,
                LoopInput::Frame => {
                    self.draw_or_write(Instant::now())?;
                    LoopFlow::Continue
                }
                LoopInput::Line(line) => {
                    // A question is written before the line that answers it.
                    self.draw_or_write(Instant::now())?;
                    let flow = self.handle_line(line).await?;
                    self.draw_or_write(Instant::now())?;
                    flow
                }
                LoopInput::Signal(signal)
                    if signal == SignalKind::interrupt() && !self.interrupt_or_quit() =>
                {
                    LoopFlow::Continue
                }
                LoopInput::Signal(_) => {
                    self.exit_code = EXIT_TERMINATED;
                    LoopFlow::Quit
                }
            };
            if flow == LoopFlow::Quit {
                return Ok(());
            }
            self.report_panics();
        }
        self.draw_or_write(Instant::now())
    }

    /// Asks the terminal for its ground if the colours depend on it.
    pub(crate) fn query_background(&mut self) -> Result<(), HostError> {
        if self.presentation.theme().needs_background_query() {
            self.presentation.query_background().context("the terminal")?;
            self.ground_answer.arm();
        }
        Ok(())
    }

    /// Handles an event of the terminal with those that came with it, such as the letters of a
    /// paste, and draws once.
    async fn handle_terminal_events(&mut self, event: TerminalEvent) -> Result<LoopFlow, HostError> {
        let mut next = Some(event);
        while let Some(event) = next {
            let events = match self.ground_answer.filter(event) {
                FilterResult::Held => Vec::new(),
                FilterResult::Passed(events) => events,
                FilterResult::Answered(ground) => {
                    let theme = self.presentation.theme();
                    self.presentation.set_theme(theme.with_background(ground));
                    Vec::new()
                }
            };
            for event in events {
                if self.handle_terminal_event(event).await? == LoopFlow::Quit {
                    return Ok(LoopFlow::Quit);
                }
            }
            // Not by the stream: it would keep the waker of this look, which wakes nobody.
            let is_ready = self.keys.is_some() && poll(Duration::ZERO).context("the terminal")?;
            next = if is_ready { Some(read().context("the terminal")?) } else { None };
        }
        // A key is answered at once, whatever else is drawn and when.
        self.draw(Instant::now()).context("the terminal")?;
        Ok(LoopFlow::Continue)
    }

    async fn next_input(&mut self, signals: &mut Signals) -> LoopInput {
        let now = Instant::now();
        // Nothing runs while nothing changes: there is no clock without work.
        let next_frame = match self.presentation.next_frame_time() {
            Some(frame) => Some(frame),
            None => {
                let waits = [
                    self.conversation.next_activity_change(now),
                    self.questions.time_until_keys_accepted(now),
                ];
                waits.into_iter().flatten().min().map(|wait| now + wait)
            }
        };
        let frame = async {
            match next_frame {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => pending().await,
            }
        };
        let is_busy = self.is_busy();
        let (keys, open, jobs) = (self.keys.as_mut(), self.open_session.as_mut(), &mut self.jobs);
        let (plain, watch, next_look) = (self.plain.as_mut(), self.watch.as_mut(), self.next_look);
        tokio::select! {
            biased;
            signal = signals.next() => LoopInput::Signal(signal),
            event = async { match keys { Some(keys) => keys.next().await, None => pending().await } } => {
                LoopInput::Terminal(event)
            }
            line = async { match plain { Some(plain) => plain.next_line(is_busy).await, None => pending().await } } => {
                LoopInput::Line(line)
            }
            () = frame => LoopInput::Frame,
            envelope = async { match watch { Some(watch) => watch.next_event().await, None => pending().await } } => {
                LoopInput::Watched(Box::new(envelope))
            }
            Some(end) = jobs.next(), if !jobs.is_empty() => LoopInput::Job(end),
            event = async { match open { Some(open) => next_session_event(open, next_look).await, None => pending().await } } => {
                LoopInput::Session(event)
            }
        }
    }

    /// Draws a frame.
    pub(crate) fn draw(&mut self, now: Instant) -> io::Result<()> {
        let queued: Vec<&str> = self.queued.iter().map(|queued| queued.text.as_str()).collect();
        let area = LiveArea {
            conversation: &self.conversation,
            questions: &self.questions,
            composer: &self.composer,
            completion: self.completion.as_ref(),
            queued: &queued,
            notice: self.notice.as_deref(),
            surroundings: &self.surroundings,
            marks: self.presentation.marker_display(),
        };
        self.presentation.draw(self.conversation.entries(), |size| area.render(size, now), now)
    }

    /// Handles an event of the session with those that have arrived already. Further ones are
    /// handled when the next frame may be drawn: nothing shows them before, and a model streams
    /// many a frame.
    fn handle_session_events(&mut self, event: SessionEvent) -> LoopFlow {
        let now = Instant::now();
        self.next_look = now + FRAME_INTERVAL;
        let mut next = Some(event);
        for _ in 0..MAX_EVENTS_AT_ONCE {
            let Some(event) = next else { break };
            self.apply_session_event(event, now);
            next = self.open_session.as_mut().and_then(|open| open.events.next().now_or_never());
        }
        if let Some(event) = next {
            self.apply_session_event(event, now);
        }
        self.presentation.invalidate();
        LoopFlow::Continue
    }

    fn apply_session_event(&mut self, event: SessionEvent, now: Instant) {
        match event {
            Ok(Some(envelope)) => self.apply_event(&envelope, now),
            Ok(None) => {
                self.rest_ended_session(now);
                self.show_note(Style::Warning, "the session has ended; the next message opens it again");
            }
            Err(error) => {
                self.rest_ended_session(now);
                self.show_note(Style::Bad, &format!("the session's log can't be read: {error}"));
            }
        }
    }

    /// Applies an event of the session.
    pub(crate) fn apply_event(&mut self, envelope: &Envelope, now: Instant) {
        match &envelope.event {
            Event::RunStarted { .. } => {
                self.queued.iter_mut().for_each(|queued| queued.is_of_run = true);
                if let Some(open) = &mut self.open_session {
                    open.has_log = true;
                }
            }
            Event::Done { .. } => {
                self.notice = None;
                if let Some(open) = &mut self.open_session {
                    open.has_ended_run = true;
                }
                self.start_reading_branch();
            }
            _ => {}
        }
        self.notify_person(&envelope.event);
        self.conversation.apply(envelope, now);
        self.forget_taken_messages(envelope);
        self.questions.handle_event(envelope, now);
        if let Some(note) = self.questions.take_abandoned_note() {
            self.put_before_message(vec![note]);
        }
        while let Some(refused) = self.questions.refuse_unreadable() {
            self.send_answer(refused);
        }
        if let Event::Done { report } = &envelope.event {
            self.start_status_command();
            self.start_tree_hash();
            if self.is_in_copy() && !report.changes.is_empty() {
                self.show_note(Style::Dim, "  this is in a copy: /diff shows it, lands it or drops it");
            }
        }
    }

    /// Calls a person whose window isn't in front, if the event is one to come back for.
    fn notify_person(&mut self, event: &Event) {
        let text = match event {
            Event::PermissionRequired { summary, .. } => format!("asks: {}", preview(summary)),
            Event::Done { report } => preview(&report.summary),
            _ => return,
        };
        // A semicolon would end the text.
        let bytes = self.preferences.attention.notification_bytes(&text.replace(';', ","));
        // A terminal that is gone is noticed when something is drawn.
        self.presentation.write_notification(&bytes).ok();
    }

    /// Says something below the conversation; it is no part of the session.
    pub(crate) fn show_note(&mut self, style: Style, text: &str) {
        let lines = printable(text).lines().map(|line| StyledLine::new(style, line)).collect();
        self.conversation.push_note(lines);
        self.presentation.invalidate();
    }

    fn report_panics(&mut self) {
        for message in self.presentation.take_panics() {
            self.show_note(Style::Bad, &format!("a bug: {message}"));
        }
    }

    async fn open_first_session(&mut self, beginning: ConversationStart) -> Result<(), HostError> {
        match beginning {
            ConversationStart::New(message) => {
                self.open_new_session().await;
                if let Some(message) = message {
                    self.send_message(message).await;
                }
            }
            ConversationStart::Again(id, message) => {
                self.open_session(&id, RecalledPart::Tail).await;
                if let Some(message) = message {
                    self.send_message(message).await;
                }
            }
            ConversationStart::Choose => self.choose_session().await?,
        }
        self.presentation.invalidate();
        Ok(())
    }
}

/// Begins to read the terminal's events.
pub(crate) fn open_event_stream() -> SelectAll<EventStream> {
    select_all([EventStream::new()])
}

/// Returns the next event of a session, once it is time to look for one.
async fn next_session_event(open: &mut OpenSession, next_look: Instant) -> SessionEvent {
    tokio::time::sleep_until(next_look.into()).await;
    open.events.next().await
}
