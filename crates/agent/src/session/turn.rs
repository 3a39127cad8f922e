//! The loop: ask, run what was called, verify when the model stops.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use journeyman_model::{Delta, ModelError, ModelRequest, Reply};
use journeyman_protocol::{
    AgentState, Block, CallId, ErrorSeverity, Event, Evidence, Message, MessageKind, RelPath, Role,
    RunOutcome, RunReport, SessionId, StopReason, ToolUse, TurnPhase,
};
use journeyman_tools::{Background, Outputs, Registry, Seen};
use journeyman_verify::Check;
use journeyman_workspace::CheckpointId;
use tokio_util::sync::CancellationToken;

use crate::approval::overlay_preview::Layers;
use crate::calls::runner::MAX_CALLS;
use crate::hooks::StartedBy;
use crate::isolation::checkpoints::{Before, Newest};
use crate::request::apply_edit::ApplyEdit;
use crate::request::text_protocol;
use crate::session::actor::SafePlace;
use crate::session::handle::Parts;
use crate::session::inbox::Inbox;
use crate::session::opening::blocks;
use crate::session::report;
use crate::session::settings::Approver;
use crate::session::shared::Shared;
use crate::supervision::schedule::Schedule;
use crate::supervision::stall::{Guard, StepFacts};
use crate::supervision::todos::{Reminders, TodoRead, TodoReminder, TodoWrite, Todos};
use crate::transcript::log::{Item, Log};
use crate::transcript::record::{Books, MessageId, Record};
use crate::transcript::state::State;
use crate::transcript::stream_redactor::{PieceKind, Pieces};
use crate::{AgentError, RunSettings};

/// Questions that may be refused for want of anybody to ask before the run ends: a model that hears no
/// three times has no other way.
const MAX_UNANSWERED: u32 = 3;
/// Replies in a row that the output limit may cut off before the run ends.
const MAX_CUT_OFF: u32 = 3;
/// Bytes of a reply as the log has it: some million tokens. The store takes no entry of more than 16 MiB, and in the
/// text protocol a reply's calls are kept beside it.
const MAX_REPLY: usize = 4 * 1024 * 1024;
/// Bytes of a call's id that are kept as they are. Providers give some 30; the log has each a dozen times.
const MAX_ID: usize = 200;
/// How often a hook may send the model back to work in one task: what still wants more then never has enough.
pub(crate) const MAX_SENT_BACK: u32 = 5;

/// The session's worker: owns the state and folds into it whatever it writes down.
pub(crate) struct Worker {
    pub(crate) parts: Parts,
    pub(crate) registry: Arc<Registry>,
    pub(crate) settings: RunSettings,
    pub(crate) session: SessionId,
    pub(crate) state: State,
    pub(crate) log: Log,
    pub(crate) shared: Arc<Shared>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) safe: Arc<SafePlace>,
    pub(crate) tally: Tally,
    pub(crate) before: Before,
    pub(crate) newest: Newest,
    /// Whether it was told that the session works in a copy.
    pub(crate) copy_told: bool,
    /// Files that the user and the session changed in ways that don't go together, as they were last told of.
    pub(crate) copy_conflicts: Vec<RelPath>,
    /// Whether commands can be tried out in layers over the tree.
    pub(crate) layers: Layers,
    /// True while the workspace keeps what it knows of sealed calls, because the log hasn't got their results yet.
    pub(crate) has_sealed: bool,
    pub(crate) seen: Arc<Seen>,
    pub(crate) outputs: Arc<Outputs>,
    pub(crate) background: Option<Arc<Background>>,
    pub(crate) todos: Arc<Todos>,
    pub(crate) schedule: Arc<Schedule>,
    pub(crate) reminders: Reminders,
    pub(crate) guard: Guard,
    pub(crate) facts: StepFacts,
    /// A reminder that waits for the end of the step.
    pub(crate) emptied: Option<TodoReminder>,
    pub(crate) checks: Vec<Check>,
    /// How the session began, until its hooks have heard of it.
    pub(crate) starting: Option<StartedBy>,
    /// Why a hook wants the task to end.
    pub(crate) stopped_by_hook: Option<String>,
    /// What hooks have for the model, until it is asked next.
    pub(crate) hook_context_waiting: Vec<String>,
    /// The files that a person saw and let hooks run with.
    pub(crate) looked_at: crate::hooks::unseen::ShownFiles,
}

/// What a task has come to so far, beside its books.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) unanswered: u32,
    pub(crate) cut_off: u32,
    pub(crate) sent_back: u32,
    pub(crate) evidence: Vec<Evidence>,
    pub(crate) edits: Vec<String>,
    /// The checkpoint that the newest look at the changes compared the tree with.
    pub(crate) compared: Option<CheckpointId>,
    pub(crate) last_text: String,
}

/// What a task begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// The messages that wait.
    Message,
    /// The place where the task was cut off.
    WhereItWas,
}

/// How a task ended, before it is put in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) outcome: RunOutcome,
    pub(crate) summary: String,
}

impl End {
    pub(crate) fn new(outcome: RunOutcome, summary: impl Into<String>) -> Self {
        Self { outcome, summary: summary.into() }
    }
}

impl Worker {
    #[expect(clippy::too_many_arguments, reason = "what the handle shares with it, named at the one call")]
    pub(crate) fn new(
        mut parts: Parts,
        settings: RunSettings,
        session: SessionId,
        state: State,
        log: Log,
        shared: Arc<Shared>,
        inbox: Arc<Inbox>,
        todos: Arc<Todos>,
        schedule: Arc<Schedule>,
        safe: Arc<SafePlace>,
    ) -> Self {
        let mut registry = std::mem::take(&mut parts.registry);
        registry.add(Box::new(ApplyEdit));
        if todos.is_enabled() {
            registry.add(Box::new(TodoRead::new(Arc::clone(&todos))));
            registry.add(Box::new(TodoWrite::new(Arc::clone(&todos))));
        }
        let every = settings.todos.and_then(|todos| NonZeroU32::new(todos.remind_every));
        Self {
            parts,
            registry: Arc::new(registry),
            settings,
            session,
            state,
            log,
            shared,
            inbox,
            safe,
            tally: Tally::default(),
            before: Before::Unrecorded,
            newest: Newest::default(),
            copy_told: false,
            copy_conflicts: Vec::new(),
            layers: Layers::default(),
            has_sealed: false,
            seen: Arc::default(),
            outputs: Arc::default(),
            background: None,
            todos,
            schedule,
            reminders: Reminders::new(every),
            guard: Guard::default(),
            facts: StepFacts::default(),
            emptied: None,
            checks: Vec::new(),
            starting: Some(StartedBy::Startup),
            stopped_by_hook: None,
            hook_context_waiting: Vec::new(),
            looked_at: crate::hooks::unseen::ShownFiles::default(),
        }
    }

    /// Writes a record down and folds it in.
    pub(crate) fn note(&mut self, record: Record) {
        self.state.apply(record.clone(), self.parts.clock.now());
        self.log.record(record);
    }

    /// Writes records down that hold together or not at all, and folds them in.
    pub(crate) fn note_together(&mut self, records: Vec<Record>) {
        let now = self.parts.clock.now();
        for record in &records {
            self.state.apply(record.clone(), now);
        }
        self.log.push(records.into_iter().map(Item::from).collect());
    }

    /// Takes one task to its end, whatever that is.
    pub(crate) async fn task(&mut self, begin: Begin) -> RunReport {
        let started = Instant::now();
        self.tally = Tally::default();
        self.stopped_by_hook = None;
        self.guard = Guard::default();
        self.facts = StepFacts::default();
        let stop = self.shared.arm();
        let deadline = tokio::time::sleep(self.settings.timeout);
        tokio::pin!(deadline);
        let mut out_of_time = false;
        let ended = {
            let work = self.work(begin, &stop);
            tokio::pin!(work);
            loop {
                tokio::select! {
                    ended = &mut work => break ended,
                    () = &mut deadline, if !out_of_time => {
                        out_of_time = true;
                        stop.cancel();
                    }
                }
            }
        };
        let end = match ended {
            Ok(end) if out_of_time && end.outcome == RunOutcome::Interrupted => {
                End::new(RunOutcome::Limit, format!("time ran out after {}", seconds(self.settings.timeout)))
            }
            Ok(end) => end,
            Err(error) => {
                let (severity, phase, message) = (ErrorSeverity::Error, error.phase(), error.to_string());
                self.log.emit(Event::Error { severity, phase, message });
                End::new(RunOutcome::Error, error.to_string())
            }
        };
        self.shared.disarm();
        report::finish(self, end, started.elapsed()).await
    }

    /// The loop itself.
    async fn work(&mut self, begin: Begin, stop: &CancellationToken) -> Result<End, AgentError> {
        match begin {
            Begin::Message => self.open().await?,
            Begin::WhereItWas => {
                self.become_(AgentState::Working);
                if let Some(end) = self.pick_up(stop).await? {
                    return Ok(end);
                }
            }
        }
        loop {
            if stop.is_cancelled() {
                return Ok(interrupted());
            }
            if let Some(end) = self.spent() {
                return Ok(end);
            }
            let step = Instant::now();
            match self.ask(stop).await {
                Ok(reply) => self.accept(&reply).await?,
                Err(AgentError::Model(ModelError::Cancelled)) => return Ok(interrupted()),
                // A hook that was being asked when the user stopped the task said no to nothing.
                Err(AgentError::HookDenied { .. }) if stop.is_cancelled() => return Ok(interrupted()),
                Err(AgentError::Model(ModelError::ToolsUnsupported { .. })) if self.settings.tool_calling => {
                    self.fall_back_to_text();
                    continue;
                }
                Err(error) => return Err(error),
            }
            let end = self.after_reply(stop).await?;
            self.step_done(step.elapsed());
            if let Some(end) = end {
                return Ok(end);
            }
        }
    }

    /// What follows a whole reply: its calls, or the end of the task.
    pub(crate) async fn after_reply(&mut self, stop: &CancellationToken) -> Result<Option<End>, AgentError> {
        if !self.state.is_settled() {
            self.run_calls(stop).await?;
            if stop.is_cancelled() {
                return Ok(Some(interrupted()));
            }
            if self.tally.unanswered >= MAX_UNANSWERED {
                return Ok(Some(permission_needed()));
            }
            let end = self.look_around().await?.or_else(|| self.spent());
            if end.is_none() {
                self.take_messages(Which::All).await;
            }
            return Ok(end);
        }
        if self.goes_on() || (self.spent().is_none() && self.take_messages(Which::IfAnybodySpoke).await) {
            return Ok(None);
        }
        if self.tally.cut_off >= MAX_CUT_OFF {
            let why = "the model's replies were cut off by its output limit again and again";
            return Ok(Some(End::new(RunOutcome::Limit, why)));
        }
        if self.sent_back(stop).await {
            return Ok(None);
        }
        match self.verify(stop).await? {
            None if stop.is_cancelled() => Ok(Some(interrupted())),
            None => Ok(self.mind_progress()),
            end => Ok(end),
        }
    }

    /// Counts a step: a reply with the calls it made.
    fn step_done(&mut self, took: Duration) {
        let books = Books { step: self.state.books.step.saturating_add(1), ..self.state.books };
        self.note(Record::Books(books));
        let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.log.emit(Event::StepComplete { step: books.step, duration_ms });
    }

    /// Asks the model once, showing its reply as it comes.
    async fn ask(&mut self, stop: &CancellationToken) -> Result<Reply, AgentError> {
        self.at(TurnPhase::PreModel);
        self.put_in_words();
        let turns = self.state.books.turns.saturating_add(1);
        self.note(Record::Books(Books { turns, ..self.state.books }));
        self.log.emit(Event::TurnStarted { turn: turns });
        let mut request = ModelRequest {
            model: String::new(),
            system: self.state.system.clone(),
            messages: std::mem::take(&mut self.state.messages),
            tools: if self.settings.tool_calling { self.tools() } else { Vec::new() },
            max_output: self.settings.max_output,
            temperature: self.settings.temperature,
            top_p: self.settings.top_p,
            thinking: self.settings.thinking,
            // Providers keep prefixes by this name, and a fork's prefix is that of the session it was made from.
            session: Some(self.state.lineage.first().unwrap_or(&self.session).to_string()),
        };
        // A hook changes what the model is sent, not what was said.
        let (said, allowed) = match self.pre_model(&mut request, stop).await {
            Ok(said) => (said, Ok(())),
            Err(denied) => (None, Err(denied)),
        };
        self.at(TurnPhase::StreamingModel);
        let model = Arc::clone(&self.parts.model);
        let written = self.flush().await;
        let result = match allowed.and(written) {
            Ok(()) => self.stream(&*model, &request, stop).await,
            Err(error) => Err(error),
        };
        self.state.messages = said.unwrap_or(request.messages);
        result
    }

    async fn stream(
        &mut self,
        model: &dyn journeyman_model::Model,
        request: &ModelRequest,
        stop: &CancellationToken,
    ) -> Result<Reply, AgentError> {
        let mut deltas = model.stream(request, stop.clone());
        let mut pieces = Pieces::default();
        let cancelled = stop.cancelled();
        tokio::pin!(cancelled);
        loop {
            // A model need not listen while it waits for its provider; dropping the stream ends it.
            let delta = tokio::select! {
                biased;
                () = &mut cancelled => return Err(ModelError::Cancelled.into()),
                delta = deltas.next() => delta,
            };
            let Some(delta) = delta else { break };
            // The request is on its way: time to record the tree, while the model thinks.
            self.record_before();
            self.parts.index.ahead();
            match delta? {
                Delta::Done(reply) => {
                    for event in pieces.end_all() {
                        self.log.emit(event);
                    }
                    return Ok(*reply);
                }
                Delta::Restart { attempt, of, wait_ms, reason } => {
                    pieces = Pieces::default();
                    self.log.emit(Event::Retry { attempt, of, wait_ms, reason });
                    self.flush().await?;
                }
                Delta::Text { block, text } => self.show_all(pieces.push(block, PieceKind::Text, &text)),
                Delta::Thinking { block, text } => {
                    self.show_all(pieces.push(block, PieceKind::Thinking, &text))
                }
                Delta::BlockEnd { block } => self.show_all(pieces.end(block)),
                Delta::CallStart { block, name, .. } => self.log.emit(Event::CallDelta { block, tool: name }),
                Delta::MessageStart | Delta::CallArguments { .. } => {}
            }
        }
        Err(ModelError::Protocol("the stream ended without a reply".to_owned()).into())
    }

    fn show_all(&self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.log.emit(event);
        }
    }

    /// Takes a whole reply into the transcript and the books.
    async fn accept(&mut self, reply: &Reply) -> Result<(), AgentError> {
        let mut message = reply.message.clone();
        self.post_model(&mut message).await;
        let bytes = serde_json::to_vec(&message).map_or(0, |bytes| bytes.len());
        if bytes > MAX_REPLY {
            let why = format!("the reply has {bytes} bytes; no model's output limit allows that");
            return Err(ModelError::Protocol(why).into());
        }
        let text = message.text();
        let mut books = self.state.books;
        books.usage += reply.usage;
        self.note(Record::Books(books));
        self.tally.cut_off = if reply.stop == StopReason::MaxTokens { self.tally.cut_off + 1 } else { 0 };
        if !text.trim().is_empty() {
            self.tally.last_text = self.parts.redactor.redact(&text).into_owned();
        }
        let calls = self.calls_of(&mut message, &text);
        let thinking = thinking_of(&message);
        // Also an empty one: it says why the model stopped. No provider takes it back, so it is no message then.
        self.note(Record::Message { message, taken: Vec::new(), stop: Some(reply.stop.clone()), calls });
        let turn = books.turns;
        self.log.emit(Event::TurnFinished {
            turn,
            stop: reply.stop.clone(),
            usage: reply.usage,
            text,
            thinking,
        });
        self.log.emit(Event::TokenUsage { turn, usage: reply.usage });
        let usd = self.settings.price.as_ref().map(|price| price.cost(&books.usage));
        if let (Some(purse), Some(price)) = (&self.settings.purse, &self.settings.price) {
            purse.spend(price.cost(&reply.usage));
        }
        self.log.emit(Event::Cost { usage: books.usage, usd });
        let begun: Vec<ToolUse> = self.state.calls.iter().map(|open| open.call.clone()).collect();
        for call in begun {
            let summary = self.summary(&call);
            let ToolUse { id, name: tool, input, .. } = call;
            self.log.emit(Event::ToolStart { call: id, tool, input, summary });
        }
        self.post_append().await;
        Ok(())
    }

    /// Gives calls names that are unique in the session; reads them out of the text where the model takes no tools.
    fn calls_of(&mut self, message: &mut Message, text: &str) -> Vec<ToolUse> {
        let turns = self.state.books.turns;
        let mut given = std::collections::HashSet::new();
        if self.settings.tool_calling {
            for (place, block) in message.content.iter_mut().enumerate() {
                if let Block::ToolUse(call) = block {
                    call.id = self.unique(&given, place, &call.id);
                    given.insert(call.id.clone());
                }
            }
            return Vec::new();
        }
        let mut calls = text_protocol::read(text, turns);
        // Results are text here, so a call that came all the same can't stay in the transcript.
        calls.extend(message.tool_uses().cloned());
        // One more than may run, so that the model hears of the limit. Nobody has to answer the rest.
        calls.truncate(MAX_CALLS + 1);
        message.content.retain(|block| !matches!(block, Block::ToolUse(_)));
        for (place, call) in calls.iter_mut().enumerate() {
            call.id = self.unique(&given, place, &call.id);
            given.insert(call.id.clone());
        }
        calls
    }

    /// Some servers number their calls anew in every reply; the log and the transcript need names that are
    /// unique in the session. A repeated one gets the turn's number, and one more while that is taken: turns
    /// are counted anew with every task.
    fn unique(&self, given: &std::collections::HashSet<CallId>, place: usize, wanted: &CallId) -> CallId {
        let wanted = if wanted.as_str().len() > MAX_ID { &CallId::new("call") } else { wanted };
        let mut id = wanted.clone();
        let mut again = 0_u32;
        while self.state.call_ids.contains(&id) || given.contains(&id) {
            let turns = self.state.books.turns;
            id = match again {
                0 => CallId::new(format!("{wanted}-t{turns}-{place}")),
                _ => CallId::new(format!("{wanted}-t{turns}-{place}-{again}")),
            };
            again += 1;
        }
        id
    }

    /// Whether the model has more to say although it called nothing; adds what it has to be told.
    fn goes_on(&mut self) -> bool {
        match self.state.stop {
            Some(StopReason::Paused) => true,
            Some(StopReason::MaxTokens) if self.tally.cut_off < MAX_CUT_OFF => {
                let text = "Your reply was cut off by the output limit. Go on from where it stopped, in smaller steps.";
                self.say(text);
                true
            }
            _ => false,
        }
    }

    /// Takes what was said meanwhile into the transcript; true when the model has to be asked for it.
    pub(crate) async fn take_messages(&mut self, which: Which) -> bool {
        let waiting = self.shared.waiting();
        let spoke = waiting.iter().any(|queued| queued.kind == MessageKind::User);
        let context = std::mem::take(&mut self.hook_context_waiting);
        if which == Which::IfAnybodySpoke && !spoke {
            self.hook_context_waiting = context;
            return false;
        }
        let taken: Vec<MessageId> = waiting.iter().map(|queued| queued.id).collect();
        for queued in &waiting {
            self.observe_message(queued.kind, &queued.text);
        }
        let (kept, more, _denied) = self.screen(waiting).await;
        let words = kept.into_iter().map(|queued| queued.text).chain(context).chain(more);
        let content = blocks(words);
        let any = !content.is_empty();
        self.take(content, taken);
        any
    }

    /// Writes queued messages into the transcript; they wait no longer.
    pub(crate) fn take(&mut self, content: Vec<Block>, taken: Vec<MessageId>) {
        if content.is_empty() && taken.is_empty() {
            return;
        }
        let message = Message { role: Role::User, content };
        self.note(Record::Message { message, taken: taken.clone(), stop: None, calls: Vec::new() });
        self.shared.took(&taken);
    }

    /// Adds words of the session's own to the user's side.
    pub(crate) fn say(&mut self, text: impl Into<String>) {
        let text = self.parts.redactor.redact(&text.into()).into_owned();
        self.note(Record::message(Message::user_text(text)));
    }

    /// Why the model isn't asked again, if it isn't. What is said from then on is left for the next task: in this
    /// one nobody would answer it.
    fn spent(&self) -> Option<End> {
        self.hooks_end().or_else(|| self.limit())
    }

    /// The limit that has been reached, if any.
    fn limit(&self) -> Option<End> {
        if self.state.books.turns >= self.settings.max_turns {
            let why = format!("the limit of {} turns was reached (--max-turns)", self.settings.max_turns);
            return Some(End::new(RunOutcome::Limit, why));
        }
        let own = self.settings.price.as_ref().map(|price| price.cost(&self.state.books.usage))?;
        let spent = self.settings.purse.as_ref().map_or(own, |purse| purse.spent().max(own));
        let budget = self.settings.budget_usd?;
        (spent >= budget).then(|| {
            let why = format!("the budget of ${budget:.2} was spent (${spent:.4}; --budget)");
            End::new(RunOutcome::Limit, why)
        })
    }

    /// Whether a person can be asked.
    pub(crate) fn can_ask(&self) -> bool {
        self.settings.approver == Approver::Handle
    }
}

/// Which of the messages that wait are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// All of them: the model is asked next anyway.
    All,
    /// All of them if a person spoke; otherwise they wait for the next turn.
    IfAnybodySpoke,
}

/// Runs slow file work off the session's thread.
pub(crate) async fn blocking<T: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, AgentError> {
    tokio::task::spawn_blocking(work).await.map_err(|died| background(what, &died))
}

pub(crate) fn background(what: &'static str, died: &tokio::task::JoinError) -> AgentError {
    AgentError::Background { what, reason: died.to_string() }
}

fn thinking_of(message: &Message) -> String {
    let thoughts: Vec<&str> = message
        .content
        .iter()
        .filter_map(|block| if let Block::Thinking { text, .. } = block { Some(text.as_str()) } else { None })
        .filter(|text| !text.is_empty())
        .collect();
    thoughts.join("\n")
}

pub(crate) fn interrupted() -> End {
    End::new(RunOutcome::Interrupted, "interrupted")
}

fn permission_needed() -> End {
    End::new(
        RunOutcome::PermissionNeeded,
        "a permission was needed and there was nobody to ask; run it in a terminal, or with a wider --mode",
    )
}

/// A duration for people: whole seconds, or milliseconds where those would hide it.
pub(crate) fn seconds(duration: Duration) -> String {
    if duration < Duration::from_secs(10) {
        format!("{} ms", duration.as_millis())
    } else {
        format!("{} s", duration.as_secs())
    }
}
