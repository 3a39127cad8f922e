//! A session's state, rebuilt from its log by applying the records in order.
//!
//! The running session applies the same records to its [`State`] when it writes them, so that a
//! restart finds the state as it was.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use journeyman_context::CheckedRound;
use journeyman_context::compaction::{WorkingState, apply_aged, result_as_text};
use journeyman_model::SystemPart;
use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{
    Approval, Block, CallId, CallRecord, CallState, CallStep, CallTransition, GuardViolation, Message, Plan,
    RelPath, Role, RunOutcome, Seq, SessionId, StopReason, Termination, Todo, ToolUse, UnixMillis,
};
use journeyman_store::{Entry, Store, StoreError};
use journeyman_tools::SeenFile;
use serde_json::Value;

use crate::AgentError;
use crate::agents::role::AgentRole;
use crate::transcript::calls_as_text::write_calls_as_text;
use crate::transcript::log_reader::list_compactions;
use crate::transcript::record::{
    Compaction, IMPORTED_KIND, MessageId, QueuedMessage, Record, RecordedSettings, TaskCounters, record_of,
};

/// Entries read at once. A page of small records has some hundred KiB.
const PAGE_ENTRIES: usize = 1_000;

/// A session's state at a position of its log.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct State {
    /// The last entry that was applied.
    pub last: Seq,
    /// The sessions that this one was forked from, the nearest last.
    pub lineage: Vec<SessionId>,
    /// The candidate's number, if the session is a candidate for the task of its parent.
    pub candidate: Option<u32>,
    /// The role of a session that is an agent.
    pub role: Option<Arc<AgentRole>>,
    /// The limit after which the agent has its last turn.
    pub last_turn: Option<Termination>,
    /// The output of an agent that completed its task.
    pub completed: Option<Value>,
    /// The plan of the running or last task.
    pub plan: Option<Box<Plan>>,
    /// The session's settings.
    pub setting: Option<RecordedSettings>,
    /// The system prompt, which begins every request.
    pub system: Vec<SystemPart>,
    /// The transcript for the model: user and model messages alternate, and every call is answered
    /// in the next message, except for those in [`State::calls`].
    pub messages: Vec<Message>,
    /// The last compaction of the transcript.
    pub compaction: Option<LastCompaction>,
    /// The calls of the last reply, until all have results.
    pub calls: Vec<OpenCall>,
    /// The ids of all calls of the session.
    pub call_ids: HashSet<CallId>,
    /// The reason why the model last stopped.
    pub stop: Option<StopReason>,
    /// Queued messages, in order.
    pub queue: VecDeque<QueuedMessage>,
    /// The id of the newest queued message.
    pub newest: MessageId,
    /// The task that is running or was cut off.
    pub task: Option<OpenTask>,
    /// The counters of the running or last task.
    pub counters: TaskCounters,
    /// The outcome of the last task.
    pub outcome: Option<RunOutcome>,
    /// Guard violations in the running or last task.
    pub violations: Vec<GuardViolation>,
    /// The checkpoint since which earlier tasks left unverified changes.
    pub unverified: Option<u64>,
    /// The todo list.
    pub todos: Vec<Todo>,
    /// Rules that a person added, as text of a `policy.toml`.
    pub allowed: Vec<String>,
    /// The versions of files that the session has seen.
    pub seen: HashMap<RelPath, SeenFile>,
    /// Named positions in the log.
    pub snapshots: BTreeMap<String, Seq>,
    /// The last position where every call has its result. Forks begin at such a position.
    pub safe: Seq,
}

/// The result of the last compaction, from which the next one continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastCompaction {
    /// The number of blocks of the first message that begin the conversation.
    pub opening: usize,
    /// The state of the work that was drawn from the messages that are gone.
    pub state: WorkingState,
    /// True if the model's summary was longer than the messages that it replaced.
    pub inflated: bool,
}

/// A call of a reply that has calls without results.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenCall {
    /// The call as the model made it.
    pub call: ToolUse,
    /// The call's state and history.
    pub record: CallRecord,
    /// The result for the model, if there is one yet.
    pub result: Option<Block>,
}

/// A task that began and has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OpenTask {
    /// The checkpoint of the tree before the task, if one was recorded.
    pub checkpoint: Option<u64>,
    /// True while checks run.
    pub checking: bool,
    /// True if the task's first messages are in the transcript.
    pub opened: bool,
    /// One line for each call that changed files.
    pub edits: Vec<String>,
    /// The rounds of checks that failed and went back to the model.
    pub rounds: Vec<CheckedRound>,
}

const COUNTERS_KIND: &str = "counters";
const CALL_KIND: &str = "call";
const TASK_BEGAN_KIND: &str = "began";
const RESULTS_AGED_KIND: &str = "aged";
const COMPACTED_KIND: &str = "compacted";
const COMPACTION_UNDONE_KIND: &str = "compaction_undone";
const OUTPUT_KIND: &str = "output";

/// Records whose parsing is deferred because later records often make them irrelevant: counters,
/// and state transitions of calls. They are most of a long log.
#[derive(Default)]
struct DeferredRecords {
    counters: Option<Entry>,
    calls: Vec<Entry>,
    /// True to skip the records that shorten the transcript.
    unshortened: bool,
    /// Compactions that were taken back later, with the position where.
    undone: BTreeMap<Seq, Seq>,
    /// A compaction that was taken back and has been applied all the same, with the position where.
    wrongly_applied: Option<(Seq, Seq)>,
}

impl DeferredRecords {
    fn defer(&mut self, entry: Entry) {
        match entry.kind.as_str() {
            COUNTERS_KIND => self.counters = Some(entry),
            _ => self.calls.push(entry),
        }
    }

    /// Applies the deferred records that are still relevant.
    fn apply_to(&mut self, state: &mut State, session: &SessionId) -> Result<(), AgentError> {
        let kept = self.counters.take().into_iter().chain(self.calls.drain(..));
        let safe = state.safe;
        for entry in kept {
            state.apply_entry(session, &entry)?;
        }
        // `safe` was already updated when the records were read.
        state.safe = safe;
        Ok(())
    }
}

impl State {
    /// Returns true if a call is a block of the last message and so needs a result block. Looks at
    /// the transcript, because the session may have been reopened with a model of the other kind.
    pub(crate) fn needs_result_block(&self, call: &CallId) -> bool {
        self.messages.last().is_some_and(|last| last.tool_uses().any(|made| made.id == *call))
    }

    /// Returns the block that tells the model that a call failed, without secrets.
    pub(crate) fn result_block(&self, redactor: &Redactor, call: &CallId, tool: &str, text: &str) -> Block {
        let text = redactor.redact(text);
        match self.needs_result_block(call) {
            true => Block::result(call.clone(), text, true),
            false => Block::text(result_as_text(call, Some(tool), true, &text)),
        }
    }

    /// Reads a session's state from its log.
    ///
    /// # Errors
    /// Errors of the store; [`AgentError::NewerRecord`] for a log that a newer version wrote.
    pub async fn load(store: &dyn Store, session: &SessionId) -> Result<Self, AgentError> {
        Self::load_until(store, session, Seq(u64::MAX)).await
    }

    /// Returns this state if the log has no newer entries; otherwise reads the state again.
    ///
    /// # Errors
    /// As [`State::load`].
    pub(crate) async fn reload_if_outdated(
        self,
        store: &dyn Store,
        session: &SessionId,
    ) -> Result<Self, AgentError> {
        match Self::last_position(store, session).await? {
            last if last == self.last => Ok(self),
            _ => Self::load(store, session).await,
        }
    }

    /// Reads the state as it was at a position of the log.
    ///
    /// # Errors
    /// As [`State::load`].
    pub async fn load_until(store: &dyn Store, session: &SessionId, until: Seq) -> Result<Self, AgentError> {
        let mut undone = BTreeMap::new();
        loop {
            let later = DeferredRecords { undone: undone.clone(), ..DeferredRecords::default() };
            match Self::fold_records(store, session, until, later).await? {
                // Undone compactions are rare, so other logs aren't read ahead for them.
                (_, Some((compaction, at))) if undone.insert(compaction, at).is_none() => {}
                (state, _) => return Ok(state),
            }
        }
    }

    /// Reads the state with the whole transcript: as if nothing had been shortened.
    ///
    /// # Errors
    /// As [`State::load`].
    pub async fn load_unshortened(store: &dyn Store, session: &SessionId) -> Result<Self, AgentError> {
        let whole = DeferredRecords { unshortened: true, ..DeferredRecords::default() };
        Self::fold_records(store, session, Seq(u64::MAX), whole).await.map(|(state, _)| state)
    }

    /// Returns the position of the last compaction that holds, if any.
    ///
    /// # Errors
    /// As [`State::load`].
    pub async fn find_last_compaction(
        store: &dyn Store,
        session: &SessionId,
    ) -> Result<Option<Seq>, AgentError> {
        Ok(list_compactions(store, session).await?.pop())
    }

    async fn fold_records(
        store: &dyn Store,
        session: &SessionId,
        until: Seq,
        mut later: DeferredRecords,
    ) -> Result<(Self, Option<(Seq, Seq)>), AgentError> {
        // Determined first, so that entries appended during the read are left out.
        let end = Self::last_position(store, session).await?.min(until);
        let mut state = Self::default();
        let mut page = store.read_records(session, Seq::START, PAGE_ENTRIES).await?;
        while let Some(last) = page.last().map(|entry| entry.seq) {
            // Requested before this page is applied, so that a store with its own thread reads in
            // parallel.
            let next = (last < end).then(|| store.read_records(session, last, PAGE_ENTRIES));
            for entry in page.into_iter().take_while(|entry| entry.seq <= end) {
                state.apply_or_defer(session, entry, &mut later)?;
            }
            if later.wrongly_applied.is_some() {
                break;
            }
            let Some(next) = next else { break };
            page = next.await?;
        }
        later.apply_to(&mut state, session)?;
        // Events after the last record count too, because the next entry follows them.
        state.last = end;
        if state.is_settled() {
            state.safe = end;
        }
        Ok((state, later.wrongly_applied))
    }

    /// Returns the position of a session's last entry.
    async fn last_position(store: &dyn Store, session: &SessionId) -> Result<Seq, AgentError> {
        let found =
            store.find_sessions(session.as_str()).await?.into_iter().find(|found| found.id == *session);
        let unknown = || StoreError::UnknownSession { session: session.clone() };
        Ok(found.ok_or_else(unknown)?.last)
    }

    /// Applies a record, or defers it if later records may make it irrelevant.
    fn apply_or_defer(
        &mut self,
        session: &SessionId,
        entry: Entry,
        later: &mut DeferredRecords,
    ) -> Result<(), AgentError> {
        match entry.kind.as_str() {
            // Large, and nothing of the state.
            OUTPUT_KIND => Ok(()),
            RESULTS_AGED_KIND | COMPACTED_KIND | COMPACTION_UNDONE_KIND if later.unshortened => Ok(()),
            COMPACTED_KIND if later.undone.contains_key(&entry.seq) => Ok(()),
            // They aged in the room that was too small then, and do so again if it still is.
            RESULTS_AGED_KIND if later.undone.values().any(|at| entry.seq < *at) => Ok(()),
            COMPACTION_UNDONE_KIND => {
                if let Some(Record::CompactionUndone { at }) = record_of(&entry)
                    && !later.undone.contains_key(&at)
                {
                    later.wrongly_applied = Some((at, entry.seq));
                }
                self.apply_entry(session, &entry)
            }
            COUNTERS_KIND | CALL_KIND => {
                if self.is_settled() {
                    self.safe = entry.seq;
                }
                later.defer(entry);
                Ok(())
            }
            TASK_BEGAN_KIND | IMPORTED_KIND => {
                later.apply_to(self, session)?;
                self.apply_entry(session, &entry)
            }
            _ => {
                self.apply_entry(session, &entry)?;
                if self.is_settled() {
                    later.calls.clear();
                }
                Ok(())
            }
        }
    }

    fn apply_entry(&mut self, session: &SessionId, entry: &Entry) -> Result<(), AgentError> {
        let Some(record) = record_of(entry) else {
            let (session, kind) = (session.clone(), entry.kind.clone());
            return Err(AgentError::NewerRecord { session, seq: entry.seq, kind });
        };
        self.last = entry.seq;
        self.apply(record, entry.at);
        if self.is_settled() {
            self.safe = entry.seq;
        }
        Ok(())
    }

    /// Returns the checkpoint since which files may have unverified changes.
    #[must_use]
    pub fn unverified_since(&self) -> Option<u64> {
        self.unverified.or_else(|| self.task.as_ref()?.checkpoint)
    }

    /// Returns true if a call of the model has no result yet.
    #[must_use]
    pub fn is_open(&self, call: &CallId) -> bool {
        self.calls.iter().any(|open| open.call.id == *call && open.result.is_none())
    }

    /// Returns false if the model uses the text protocol.
    #[must_use]
    pub fn tool_calling(&self) -> bool {
        self.setting.as_ref().is_none_or(|setting| setting.tool_calling)
    }

    /// Returns true if every call has its result.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.calls.is_empty()
    }

    /// Applies a record.
    pub fn apply(&mut self, record: Record, at: UnixMillis) {
        match record {
            Record::Forked { parent, .. } => self.apply_fork(parent),
            Record::Candidate { number } => {
                self.candidate = Some(number);
                self.task = Some(OpenTask { opened: true, ..OpenTask::default() });
            }
            // Read directly from the log where needed.
            Record::Candidates(_) | Record::Output { .. } | Record::CompactionUndone { .. } => {}
            Record::Role(role) => self.role = Some(Arc::from(role)),
            Record::LastTurn { reason } => self.last_turn = Some(reason),
            // The first output stands.
            Record::Completed { output } => {
                self.completed.get_or_insert(output);
            }
            Record::Planned(plan) => self.plan = Some(plan),
            Record::Setting(setting) => self.setting = Some(setting),
            Record::Imported => self.apply_import(),
            Record::Context { system } => self.system = system,
            Record::Queued(queued) => {
                self.newest = self.newest.max(queued.id);
                self.queue.push_back(queued);
            }
            Record::Withdrawn { id } => self.queue.retain(|queued| queued.id != id),
            Record::Began => {
                self.task = Some(OpenTask::default());
                (self.last_turn, self.completed) = (None, None);
                self.counters = TaskCounters { step: self.counters.step, ..TaskCounters::default() };
                (self.outcome, self.plan) = (None, None);
                self.violations.clear();
            }
            Record::Message { message, taken, stop, calls } => {
                self.apply_message(message, &taken, stop, calls, at)
            }
            Record::RewrittenAsText => {
                self.messages = write_calls_as_text(&self.messages);
            }
            Record::Aged { results } => apply_aged(&mut self.messages, &results),
            Record::Compacted(compaction) => self.apply_compaction(*compaction),
            Record::Call(transition) => self.apply_transition(transition, at),
            Record::Result { call, block } => self.apply_result(&call, block),
            Record::Counters(counters) => self.counters = counters,
            Record::Checkpoint { id, step: None } => {
                if let Some(task) = &mut self.task {
                    task.checkpoint = Some(id);
                }
            }
            // Only the checkpoint before the task matters for the session.
            Record::Checkpoint { step: Some(_), .. } => {}
            Record::Checking { running } => {
                if let Some(task) = &mut self.task {
                    task.checking = running;
                }
            }
            Record::Edited { summary } => {
                if let Some(task) = &mut self.task {
                    task.edits.push(summary);
                }
            }
            Record::Failed(round) => {
                if let Some(task) = &mut self.task {
                    task.rounds.push(round);
                }
            }
            Record::GuardViolated { violations } => self.violations.extend(violations),
            Record::Todos { todos } => self.todos = todos,
            Record::Allowed { rule } => self.allowed.push(rule),
            Record::Seen(file) => {
                self.seen.insert(file.path.clone(), file);
            }
            Record::Snapshot { name, at } => {
                self.snapshots.insert(name, at);
            }
            Record::Ended { outcome, unverified } => {
                self.task = None;
                self.unverified = unverified;
                self.outcome = Some(outcome);
            }
        }
    }

    /// Resets what does not carry over from the parent session to a fork.
    fn apply_fork(&mut self, parent: SessionId) {
        self.lineage.push(parent);
        self.queue.clear();
        self.task = None;
        self.candidate = None;
        // A lasting answer holds only for the session in which it was given.
        self.allowed.clear();
    }

    /// Resets what was decided elsewhere, and what names places in another journal.
    fn apply_import(&mut self) {
        self.setting = None;
        self.allowed.clear();
        for open in &mut self.calls {
            open.record.approval = None;
            if matches!(open.record.state, CallState::ApprovalRequired | CallState::Approved) {
                open.record.state = CallState::Pending;
            }
        }
        self.unverified = None;
        if let Some(task) = &mut self.task {
            task.checkpoint = None;
        }
    }

    fn apply_message(
        &mut self,
        message: Message,
        taken: &[MessageId],
        stop: Option<StopReason>,
        calls: Vec<ToolUse>,
        at: UnixMillis,
    ) {
        if !taken.is_empty() {
            let taken: HashSet<&MessageId> = taken.iter().collect();
            self.queue.retain(|queued| !taken.contains(&queued.id));
        }
        if message.role == Role::User {
            if let Some(task) = &mut self.task {
                task.opened = true;
            }
            if !message.content.is_empty() {
                self.add_user_content(message.content);
            }
            return;
        }
        self.stop = stop;
        let called = if calls.is_empty() { message.tool_uses().cloned().collect() } else { calls };
        self.calls = called
            .into_iter()
            .map(|call| {
                self.call_ids.insert(call.id.clone());
                let step = CallStep { state: CallState::Pending, at, note: None };
                let record = CallRecord {
                    id: call.id.clone(),
                    tool: call.name.clone(),
                    state: CallState::Pending,
                    approval: None,
                    trail: vec![step],
                };
                OpenCall { call, record, result: None }
            })
            .collect();
        if !message.content.is_empty() {
            self.add_message(message);
        }
    }

    /// Replaces all but the newest messages.
    fn apply_compaction(&mut self, compaction: Compaction) {
        let Compaction { head, opening, kept, tail, state, inflated } = compaction;
        self.compaction = Some(LastCompaction { opening, state, inflated });
        let begin = self.messages.len().saturating_sub(kept);
        let newest = self.messages.split_off(begin);
        self.messages = vec![Message { role: Role::User, content: head }];
        for message in newest.into_iter().chain(tail) {
            self.add_message(message);
        }
    }

    /// Adds to the last user message, or begins a new one.
    fn add_user_content(&mut self, content: Vec<Block>) {
        self.add_message(Message { role: Role::User, content });
    }

    /// Adds a message. Consecutive messages of one role are merged, because some providers require
    /// alternating roles.
    fn add_message(&mut self, mut message: Message) {
        match self.messages.last_mut() {
            Some(last) if last.role == message.role => last.content.append(&mut message.content),
            _ => self.messages.push(message),
        }
    }

    fn apply_transition(&mut self, transition: CallTransition, at: UnixMillis) {
        let Some(open) = self.calls.iter_mut().find(|open| open.call.id == transition.call) else { return };
        let CallTransition { state, note, by, .. } = transition;
        let record = &mut open.record;
        match state {
            CallState::ApprovalRequired => {
                record.approval = Some(Approval { allowed: None, by: None, at: None, note: None });
            }
            CallState::Approved | CallState::Denied => {
                if let Some(by) = by {
                    let allowed = Some(state == CallState::Approved);
                    record.approval =
                        Some(Approval { allowed, by: Some(by), at: Some(at), note: note.clone() });
                }
            }
            _ => {}
        }
        record.state = state;
        record.trail.push(CallStep { state, at, note });
    }

    fn apply_result(&mut self, call: &CallId, block: Block) {
        if let Some(open) = self.calls.iter_mut().find(|open| open.call.id == *call) {
            // The first result stands.
            open.result.get_or_insert(block);
        }
        if self.calls.iter().all(|open| open.result.is_some()) {
            let results = std::mem::take(&mut self.calls).into_iter().filter_map(|open| open.result);
            let results = results.collect();
            self.add_user_content(results);
        }
    }
}
