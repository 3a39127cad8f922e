//! The loop: pack, ask, run what was called, verify when the model stops.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use journeyman_context::{Inputs, first};
use journeyman_model::{Delta, ModelError, ModelRequest, Reply, SystemPart};
use journeyman_policy::Policy;
use journeyman_protocol::{
    Block, CallId, ErrorSeverity, Event, Message, Mode, Outcome, Role, RunReport, SessionId, StopReason,
    ToolSpec, ToolUse, Usage,
};
use journeyman_tools::{Background, Outputs, Registry, Seen};
use journeyman_verify::Check;
use journeyman_workspace::{CheckpointId, ListOptions, Listing};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::apply_edit::{self, ApplyEdit};
use crate::approvals::Shared;
use crate::holdback::{PieceKind, Pieces};
use crate::log::Log;
use crate::record::Record;
use crate::session::Parts;
use crate::settings::{Approver, Checks};
use crate::{AgentError, RunSettings, report, text_calls};

/// Files that the map is drawn from. A path is some 50 bytes; 20,000 keep the walk of a huge tree bounded.
const MAP_FILES: usize = 20_000;
/// Characters of a session's title: a line of a list.
const MAX_TITLE: usize = 120;
/// Questions that may be refused for want of anybody to ask before the run ends: a model that hears no
/// three times has no other way.
const MAX_UNANSWERED: u32 = 3;
/// Replies in a row that the output limit may cut off before the run ends.
const MAX_CUT_OFF: u32 = 3;

/// The session's worker: owns the transcript and the log.
pub(crate) struct Worker {
    pub(crate) parts: Parts,
    pub(crate) registry: Arc<Registry>,
    pub(crate) settings: RunSettings,
    pub(crate) session: SessionId,
    pub(crate) log: Log,
    pub(crate) shared: Arc<Shared>,
    pub(crate) messages: Vec<Message>,
    pub(crate) tally: Tally,
    pub(crate) before: Before,
    pub(crate) seen: Arc<Seen>,
    pub(crate) outputs: Arc<Outputs>,
    pub(crate) background: Arc<Background>,
    pub(crate) allowed: Vec<String>,
    pub(crate) checks: Vec<Check>,
    call_ids: HashSet<CallId>,
    system: Vec<SystemPart>,
    created: bool,
}

/// What a run has used so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) turns: u32,
    pub(crate) iterations: u32,
    pub(crate) rounds: u32,
    pub(crate) unanswered: u32,
    pub(crate) cut_off: u32,
    pub(crate) usage: Usage,
    pub(crate) evidence: Vec<journeyman_protocol::Evidence>,
    pub(crate) edits: Vec<String>,
    pub(crate) last_text: String,
}

/// The tree as it was before the run changed anything.
pub(crate) enum Before {
    /// Nothing has been recorded yet.
    Unrecorded,
    /// It is being recorded in the background.
    Recording(JoinHandle<Result<CheckpointId, journeyman_workspace::WorkspaceError>>),
    /// It is on record.
    Recorded(CheckpointId),
}

/// How a task ended, before it is put in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) outcome: Outcome,
    pub(crate) summary: String,
}

impl End {
    pub(crate) fn new(outcome: Outcome, summary: impl Into<String>) -> Self {
        Self { outcome, summary: summary.into() }
    }
}

impl Worker {
    pub(crate) fn new(
        mut parts: Parts,
        settings: RunSettings,
        session: SessionId,
        log: Log,
        shared: Arc<Shared>,
    ) -> Self {
        let mut registry = std::mem::take(&mut parts.registry);
        registry.add(Box::new(ApplyEdit));
        Self {
            parts,
            registry: Arc::new(registry),
            settings,
            session,
            log,
            shared,
            messages: Vec::new(),
            tally: Tally::default(),
            before: Before::Unrecorded,
            seen: Arc::default(),
            outputs: Arc::default(),
            background: Arc::default(),
            allowed: Vec::new(),
            checks: Vec::new(),
            call_ids: HashSet::new(),
            system: Vec::new(),
            created: false,
        }
    }

    /// Takes one task to its end, whatever that is.
    pub(crate) async fn task(&mut self, task: String, inbox: &mut mpsc::Receiver<String>) -> RunReport {
        let started = Instant::now();
        self.tally = Tally::default();
        let stop = self.shared.arm();
        let deadline = tokio::time::sleep(self.settings.timeout);
        tokio::pin!(deadline);
        let mut out_of_time = false;
        let ended = {
            let work = self.work(&task, &stop, inbox);
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
            Ok(end) if out_of_time && end.outcome == Outcome::Interrupted => {
                End::new(Outcome::Limit, format!("time ran out after {}", seconds(self.settings.timeout)))
            }
            Ok(end) => end,
            Err(error) => {
                let (severity, phase, message) = (ErrorSeverity::Error, error.phase(), error.to_string());
                self.log.emit(Event::Error { severity, phase, message });
                End::new(Outcome::Error, error.to_string())
            }
        };
        self.shared.disarm();
        report::finish(self, end, started.elapsed()).await
    }

    /// The loop itself.
    async fn work(
        &mut self,
        task: &str,
        stop: &CancellationToken,
        inbox: &mut mpsc::Receiver<String>,
    ) -> Result<End, AgentError> {
        self.open(task).await?;
        loop {
            if stop.is_cancelled() {
                return Ok(interrupted());
            }
            if let Some(end) = self.limit() {
                return Ok(end);
            }
            let reply = match self.ask(stop).await {
                Ok(reply) => reply,
                Err(AgentError::Model(ModelError::Cancelled)) => return Ok(interrupted()),
                Err(AgentError::Model(ModelError::ToolsUnsupported { .. })) if self.settings.tool_calling => {
                    self.fall_back_to_text(task).await?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let calls = self.accept(&reply);
            if !calls.is_empty() {
                self.run_calls(calls, stop).await?;
                if stop.is_cancelled() {
                    return Ok(interrupted());
                }
                if self.tally.unanswered >= MAX_UNANSWERED {
                    return Ok(permission_needed());
                }
                self.take_messages(inbox);
                continue;
            }
            if self.goes_on(&reply) || self.take_messages(inbox) {
                continue;
            }
            if self.tally.cut_off >= MAX_CUT_OFF {
                let why = "the model's replies were cut off by its output limit again and again";
                return Ok(End::new(Outcome::Limit, why));
            }
            match self.verify(stop).await? {
                Some(end) => return Ok(end),
                None if stop.is_cancelled() => return Ok(interrupted()),
                None => {}
            }
        }
    }

    /// Writes the task down and packs the first context.
    async fn open(&mut self, task: &str) -> Result<(), AgentError> {
        let root = self.parts.workspace.root().display().to_string();
        let store = Arc::clone(&self.parts.store);
        // Half a secret is one too: redacted before it is cut.
        let line = self.parts.redactor.redact(task.lines().next().unwrap_or_default());
        let title: String = line.chars().take(MAX_TITLE).collect();
        let session = self.session.clone();
        // The log opens in its own thread while the project is listed.
        let creating = match self.created {
            true => None,
            false => Some(store.create(&session, &root, &title, self.parts.clock.now())),
        };
        self.log.emit(Event::RunStarted {
            task: task.to_owned(),
            root: root.clone(),
            model: self.parts.model.name(),
            mode: self.settings.mode,
            enforcement: None,
        });
        let first_task = self.messages.is_empty();
        let text = if first_task { self.pack(task).await } else { Ok(task.to_owned()) };
        // Also where the task can't be packed: the session exists from here on, and takes another.
        if let Some(creating) = creating {
            creating.await?;
            self.created = true;
        }
        self.push(Message::user_text(text?));
        Ok(())
    }

    /// Packs the first context: the system parts are kept, the first message is returned.
    async fn pack(&mut self, task: &str) -> Result<String, AgentError> {
        let workspace = Arc::clone(&self.parts.workspace);
        let listing = blocking("listing the project", move || {
            workspace.list(ListOptions { limit: MAP_FILES, ..ListOptions::default() })
        })
        .await??;
        self.checks = self.find_checks(&listing);
        let commands: Vec<String> = self.checks.iter().map(|check| check.command.clone()).collect();
        self.parts.policy = Policy::with_checks(commands.clone());
        let tools = self.tools();
        let packed = first(&Inputs {
            task,
            workspace: &self.parts.workspace,
            listing: &listing,
            checks: &commands,
            mode: self.settings.mode,
            user_instructions: self.settings.instructions.as_deref(),
            project_instructions: self.settings.project_instructions.as_deref(),
            text_protocol: !self.settings.tool_calling,
            tools: &tools,
            today: &self.settings.today,
            platform: &self.settings.platform,
            budget: self.settings.context_budget,
        })?;
        let redactor = &self.parts.redactor;
        let part = |part: journeyman_context::SystemText| SystemPart {
            text: redactor.redact(&part.text).into_owned(),
            cache: part.cache,
        };
        self.system = packed.system.into_iter().map(part).collect();
        self.log.emit(Event::ContextPacked {
            tokens: packed.report.tokens,
            files_listed: packed.report.files_listed,
            instructions: packed.report.instructions,
            files: packed.report.files,
        });
        Ok(packed.message)
    }

    fn find_checks(&self, listing: &Listing) -> Vec<Check> {
        match &self.settings.checks {
            Checks::Off => Vec::new(),
            Checks::Custom(commands) => journeyman_verify::custom(commands),
            Checks::Found => journeyman_verify::find(&self.parts.workspace, listing, &*self.parts.programs),
        }
    }

    /// The tools this mode offers: in plan mode those that only write are not even shown.
    fn tools(&self) -> Vec<ToolSpec> {
        let plan = self.settings.mode == Mode::Plan;
        let offered = |name: &str| {
            let reads = || self.registry.get(name).is_ok_and(|tool| tool.is_read_only());
            // A command may well only read; policy judges it by its words.
            name != apply_edit::NAME && (!plan || name == "run_command" || reads())
        };
        let mut specs = self.registry.specs();
        specs.retain(|spec| offered(&spec.name));
        specs
    }

    /// The model takes no tools: the session starts over in the text protocol.
    async fn fall_back_to_text(&mut self, task: &str) -> Result<(), AgentError> {
        self.settings.tool_calling = false;
        let message =
            format!("{} does not take tool calls; going on with the text protocol", self.parts.model.name());
        self.log.emit(Event::Warning { message });
        self.messages.clear();
        let text = self.pack(task).await?;
        self.push(Message::user_text(text));
        Ok(())
    }

    /// Asks the model once, showing its reply as it comes.
    async fn ask(&mut self, stop: &CancellationToken) -> Result<Reply, AgentError> {
        self.tally.turns += 1;
        self.log.emit(Event::TurnStarted { turn: self.tally.turns });
        self.log.flush().await?;
        let request = ModelRequest {
            model: String::new(),
            system: self.system.clone(),
            messages: std::mem::take(&mut self.messages),
            tools: if self.settings.tool_calling { self.tools() } else { Vec::new() },
            max_output: self.settings.max_output,
            temperature: self.settings.temperature,
            top_p: self.settings.top_p,
            thinking: self.settings.thinking,
            session: Some(self.session.to_string()),
        };
        let model = Arc::clone(&self.parts.model);
        let result = self.stream(&*model, &request, stop).await;
        self.messages = request.messages;
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
            let shown = match delta? {
                Delta::Done(reply) => {
                    for event in pieces.end_all() {
                        self.log.emit(event);
                    }
                    return Ok(*reply);
                }
                Delta::Restart { attempt, of, wait_ms, reason } => {
                    pieces = Pieces::default();
                    self.log.emit(Event::Retry { attempt, of, wait_ms, reason });
                    self.log.flush().await?;
                    None
                }
                Delta::Text { block, text } => pieces.push(block, PieceKind::Text, &text),
                Delta::Thinking { block, text } => pieces.push(block, PieceKind::Thinking, &text),
                Delta::BlockEnd { block } => pieces.end(block),
                Delta::CallStart { block, name, .. } => Some(Event::CallDelta { block, tool: name }),
                Delta::MessageStart | Delta::CallArguments { .. } => None,
            };
            if let Some(event) = shown {
                self.log.emit(event);
            }
        }
        Err(ModelError::Protocol("the stream ended without a reply".to_owned()).into())
    }

    /// Takes a whole reply into the transcript and the books; gives the calls it makes.
    fn accept(&mut self, reply: &Reply) -> Vec<ToolUse> {
        let text = reply.message.text();
        self.tally.usage += reply.usage;
        self.tally.cut_off = if reply.stop == StopReason::MaxTokens { self.tally.cut_off + 1 } else { 0 };
        if !text.trim().is_empty() {
            self.tally.last_text = self.parts.redactor.redact(&text).into_owned();
        }
        self.log.emit(Event::TurnFinished {
            turn: self.tally.turns,
            stop: reply.stop.clone(),
            usage: reply.usage,
            text: text.clone(),
            thinking: thinking_of(&reply.message),
        });
        let usd = self.settings.price.as_ref().map(|price| price.cost(&self.tally.usage));
        self.log.emit(Event::Cost { usage: self.tally.usage, usd });
        if reply.message.content.is_empty() {
            // No provider takes an empty assistant message back.
            return Vec::new();
        }
        let mut message = reply.message.clone();
        if self.settings.tool_calling {
            for (place, block) in message.content.iter_mut().enumerate() {
                if let Block::ToolUse(call) = block {
                    self.make_unique(place, call);
                }
            }
            let calls = message.tool_uses().cloned().collect();
            self.push(message);
            return calls;
        }
        let mut calls = text_calls::read(&text, self.tally.turns);
        // Results are text here, so a call that came all the same can't stay in the transcript.
        calls.extend(message.tool_uses().cloned());
        message.content.retain(|block| !matches!(block, Block::ToolUse(_)));
        for (place, call) in calls.iter_mut().enumerate() {
            self.make_unique(place, call);
        }
        if !message.content.is_empty() {
            self.push(message);
        }
        calls
    }

    /// Some servers number their calls anew in every reply; the log and the transcript need names that are
    /// unique in the session. A repeated one gets the turn's number, and one more while that is taken: turns
    /// are counted anew with every task.
    fn make_unique(&mut self, place: usize, call: &mut ToolUse) {
        let mut id = call.id.clone();
        let mut again = 0_u32;
        while !self.call_ids.insert(id.clone()) {
            id = match again {
                0 => CallId::new(format!("{}-t{}-{place}", call.id, self.tally.turns)),
                _ => CallId::new(format!("{}-t{}-{place}-{again}", call.id, self.tally.turns)),
            };
            again += 1;
        }
        call.id = id;
    }

    /// Whether the model has more to say although it called nothing; adds what it has to be told.
    fn goes_on(&mut self, reply: &Reply) -> bool {
        match reply.stop {
            StopReason::Paused => true,
            StopReason::MaxTokens if self.tally.cut_off < MAX_CUT_OFF => {
                let text = "Your reply was cut off by the output limit. Go on from where it stopped, in smaller steps.";
                self.push(Message::user_text(text));
                true
            }
            _ => false,
        }
    }

    /// Takes what the user said meanwhile into the transcript; true when there was anything.
    fn take_messages(&mut self, inbox: &mut mpsc::Receiver<String>) -> bool {
        let mut any = false;
        while let Ok(text) = inbox.try_recv() {
            self.shared.count_taken();
            self.push(Message::user_text(text));
            any = true;
        }
        any
    }

    /// Adds a message to the transcript and the log. Neighbours of one role become one message, which
    /// every provider takes.
    pub(crate) fn push(&mut self, mut message: Message) {
        self.redact(&mut message);
        self.log.record(Record::message(message.clone()));
        match self.messages.last_mut() {
            Some(last) if last.role == message.role && message.role == Role::User => {
                last.content.append(&mut message.content);
            }
            _ => self.messages.push(message),
        }
    }

    fn redact(&self, message: &mut Message) {
        if message.role == Role::Assistant {
            // The model's own words go back as they came: signatures cover them. The log redacts its copy.
            return;
        }
        for block in &mut message.content {
            match block {
                Block::Text { text } => self.redact_text(text),
                Block::ToolResult { content, .. } => {
                    for part in content {
                        if let journeyman_protocol::ResultPart::Text { text } = part {
                            self.redact_text(text);
                        }
                    }
                }
                Block::Thinking { .. } | Block::Image(_) | Block::ToolUse(_) => {}
            }
        }
    }

    fn redact_text(&self, text: &mut String) {
        if let std::borrow::Cow::Owned(clean) = self.parts.redactor.redact(text) {
            *text = clean;
        }
    }

    /// The limit that has been reached, if any.
    fn limit(&self) -> Option<End> {
        if self.tally.turns >= self.settings.max_turns {
            let why = format!("the limit of {} turns was reached (--max-turns)", self.settings.max_turns);
            return Some(End::new(Outcome::Limit, why));
        }
        let spent = self.settings.price.as_ref().map(|price| price.cost(&self.tally.usage))?;
        let budget = self.settings.budget_usd?;
        (spent >= budget).then(|| {
            let why = format!("the budget of ${budget:.2} was spent (${spent:.4}; --budget)");
            End::new(Outcome::Limit, why)
        })
    }

    /// Starts recording the tree in the background, once.
    pub(crate) fn record_before(&mut self) {
        if matches!(self.before, Before::Unrecorded) && self.settings.mode != Mode::Plan {
            let workspace = Arc::clone(&self.parts.workspace);
            let session = self.session.clone();
            self.before = Before::Recording(tokio::task::spawn_blocking(move || {
                workspace.checkpoint(&session, "before the run")
            }));
        }
    }

    /// Waits until the tree is on record; to be called before anything may change it.
    pub(crate) async fn recorded(&mut self) -> Result<CheckpointId, AgentError> {
        self.record_before();
        let id = match std::mem::replace(&mut self.before, Before::Unrecorded) {
            Before::Recorded(id) => id,
            Before::Recording(task) => {
                let id = task.await.map_err(|died| background("recording the tree", &died))??;
                self.log.record(Record::Checkpoint { id: id.0 });
                self.log.emit(Event::Checkpoint { id: id.0, label: "before the run".to_owned() });
                id
            }
            Before::Unrecorded => {
                let workspace = Arc::clone(&self.parts.workspace);
                let session = self.session.clone();
                blocking("recording the tree", move || workspace.checkpoint(&session, "before the run"))
                    .await??
            }
        };
        self.before = Before::Recorded(id);
        Ok(id)
    }

    /// Whether a person can be asked.
    pub(crate) fn can_ask(&self) -> bool {
        self.settings.approver == Approver::Handle
    }
}

/// Runs slow file work off the session's thread.
pub(crate) async fn blocking<T: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, AgentError> {
    tokio::task::spawn_blocking(work).await.map_err(|died| background(what, &died))
}

fn background(what: &'static str, died: &tokio::task::JoinError) -> AgentError {
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

fn interrupted() -> End {
    End::new(Outcome::Interrupted, "interrupted")
}

fn permission_needed() -> End {
    End::new(
        Outcome::PermissionNeeded,
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
