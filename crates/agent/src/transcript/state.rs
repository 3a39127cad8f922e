//! A session as its log tells it: one pure fold over the records.
//!
//! The running session keeps the same [`State`] and folds every record into it when it is written,
//! so that what a restart finds is what was there.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use journeyman_model::SystemPart;
use journeyman_protocol::{
    Approval, Block, CallId, CallRecord, CallState, CallStep, CallTransition, GuardViolation, Message,
    RelPath, Role, RunOutcome, Seq, SessionId, StopReason, Todo, ToolUse, UnixMillis,
};
use journeyman_store::{Entry, Store, StoreError};
use journeyman_tools::SeenFile;

use crate::AgentError;
use crate::transcript::record::{Books, MessageId, Queued, Record, Setting, record_of};

/// Entries read at once. A page of small records is some hundred KiB.
const PAGE: usize = 1_000;

/// A session as far as its log goes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct State {
    /// The last entry that was folded in.
    pub last: Seq,
    /// The sessions that this one was forked from, the nearest last.
    pub lineage: Vec<SessionId>,
    /// Which of the sessions it is that were given the task of the newest one in
    /// [`State::lineage`].
    pub candidate: Option<u32>,
    /// How it is set.
    pub setting: Option<Setting>,
    /// What every request begins with.
    pub system: Vec<SystemPart>,
    /// The transcript as the model is given it: user and model by turns, every call answered by the
    /// message after it, but for [`State::calls`].
    pub messages: Vec<Message>,
    /// The calls of the last reply, while one of them has no result.
    pub calls: Vec<OpenCall>,
    /// Every call there ever was, by id.
    pub call_ids: HashSet<CallId>,
    /// Why the model last stopped.
    pub stop: Option<StopReason>,
    /// Messages that wait, in order.
    pub queue: VecDeque<Queued>,
    /// The name of the newest message.
    pub newest: MessageId,
    /// The task that runs, or was cut off.
    pub task: Option<Task>,
    /// The books of the task that runs, or ran last.
    pub books: Books,
    /// How the last task ended.
    pub outcome: Option<RunOutcome>,
    /// What commands of the task that runs, or ran last, did to what is guarded.
    pub violations: Vec<GuardViolation>,
    /// The checkpoint since which earlier tasks changed files that nothing has verified.
    pub unverified: Option<u64>,
    /// What is to be done.
    pub todos: Vec<Todo>,
    /// What a person allowed from then on: rules as text of a `policy.toml`.
    pub allowed: Vec<String>,
    /// What is known of files.
    pub seen: HashMap<RelPath, SeenFile>,
    /// Places with a name.
    pub snapshots: BTreeMap<String, Seq>,
    /// The last place at which nothing was open: every call answered. A fork begins at such a
    /// place.
    pub safe: Seq,
}

/// A call whose reply isn't answered whole yet.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenCall {
    /// What the model asked for.
    pub call: ToolUse,
    /// How far it is.
    pub record: CallRecord,
    /// Its result, as the model is going to be given it.
    pub result: Option<Block>,
}

/// A task that began and has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Task {
    /// The checkpoint of the tree before it, once it was taken.
    pub checkpoint: Option<u64>,
    /// Whether checks were running.
    pub checking: bool,
    /// Whether the messages that it began with are in the transcript.
    pub opened: bool,
}

const BOOKS: &str = "books";
const CALL: &str = "call";
const BEGAN: &str = "began";

/// Records that need not be taken apart: the books but for the last, and the steps of calls that
/// have their results. They are most of a long log.
#[derive(Default)]
struct Later {
    books: Option<Entry>,
    calls: Vec<Entry>,
}

impl Later {
    fn keep(&mut self, entry: Entry) {
        match entry.kind.as_str() {
            BOOKS => self.books = Some(entry),
            _ => self.calls.push(entry),
        }
    }

    /// What is left of them counts.
    fn fold_into(&mut self, state: &mut State, session: &SessionId) -> Result<(), AgentError> {
        let kept = self.books.take().into_iter().chain(self.calls.drain(..));
        let safe = state.safe;
        for entry in kept {
            state.fold(session, &entry)?;
        }
        // They were counted when they came.
        state.safe = safe;
        Ok(())
    }
}

impl State {
    /// Reads a session's state from its log.
    ///
    /// # Errors
    /// The store's; [`AgentError::NewerRecord`] for a log that a newer version wrote.
    pub async fn load(store: &dyn Store, session: &SessionId) -> Result<Self, AgentError> {
        Self::load_until(store, session, Seq(u64::MAX)).await
    }

    /// The state as it was at a place of the log.
    ///
    /// # Errors
    /// As [`State::load`].
    pub async fn load_until(store: &dyn Store, session: &SessionId, until: Seq) -> Result<Self, AgentError> {
        // Looked up first: what comes while the records are read is left out, records and events
        // alike.
        let end = Self::end(store, session).await?.min(until);
        let mut state = Self::default();
        let mut later = Later::default();
        let mut page = store.read_records(session, Seq::START, PAGE).await?;
        while let Some(last) = page.last().map(|entry| entry.seq) {
            // Asked for before this one is folded: a store with a thread of its own reads
            // meanwhile.
            let next = (last < end).then(|| store.read_records(session, last, PAGE));
            for entry in page.into_iter().take_while(|entry| entry.seq <= end) {
                state.fold_or_keep(session, entry, &mut later)?;
            }
            let Some(next) = next else { break };
            page = next.await?;
        }
        later.fold_into(&mut state, session)?;
        // Events after the last record belong to the log as well: the next entry comes behind them.
        state.last = end;
        if state.is_settled() {
            state.safe = end;
        }
        Ok(state)
    }

    /// The place of a session's last entry.
    async fn end(store: &dyn Store, session: &SessionId) -> Result<Seq, AgentError> {
        let found = store.find(session.as_str()).await?.into_iter().find(|found| found.id == *session);
        let unknown = || StoreError::UnknownSession { session: session.clone() };
        Ok(found.ok_or_else(unknown)?.last)
    }

    /// Folds a record in, or keeps it for later where it may come to nothing.
    fn fold_or_keep(
        &mut self,
        session: &SessionId,
        entry: Entry,
        later: &mut Later,
    ) -> Result<(), AgentError> {
        match entry.kind.as_str() {
            BOOKS | CALL => {
                if self.is_settled() {
                    self.safe = entry.seq;
                }
                later.keep(entry);
                Ok(())
            }
            BEGAN => {
                later.fold_into(self, session)?;
                self.fold(session, &entry)
            }
            _ => {
                self.fold(session, &entry)?;
                if self.is_settled() {
                    later.calls.clear();
                }
                Ok(())
            }
        }
    }

    fn fold(&mut self, session: &SessionId, entry: &Entry) -> Result<(), AgentError> {
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

    /// The checkpoint since which files may have been changed that nothing has verified.
    #[must_use]
    pub fn unverified_since(&self) -> Option<u64> {
        self.unverified.or_else(|| self.task.as_ref()?.checkpoint)
    }

    /// Returns true if a call of the model waits for its result.
    #[must_use]
    pub fn is_open(&self, call: &CallId) -> bool {
        self.calls.iter().any(|open| open.call.id == *call && open.result.is_none())
    }

    /// Returns false where the model speaks the text protocol.
    #[must_use]
    pub fn tool_calling(&self) -> bool {
        self.setting.as_ref().is_none_or(|setting| setting.tool_calling)
    }

    /// Whether every call has its result.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.calls.is_empty()
    }

    /// Folds one record in.
    pub fn apply(&mut self, record: Record, at: UnixMillis) {
        match record {
            Record::Forked { parent, .. } => self.forked(parent),
            Record::Candidate { number } => {
                self.candidate = Some(number);
                self.task = Some(Task { opened: true, ..Task::default() });
            }
            // Who has to know reads it from the log's beginning.
            Record::Candidates(_) => {}
            Record::Setting(setting) => self.setting = Some(setting),
            Record::Context { system } => self.system = system,
            Record::Queued(queued) => {
                self.newest = self.newest.max(queued.id);
                self.queue.push_back(queued);
            }
            Record::Began => {
                self.task = Some(Task::default());
                self.books = Books { step: self.books.step, ..Books::default() };
                self.outcome = None;
                self.violations.clear();
            }
            Record::Message { message, taken, stop, calls } => self.message(message, &taken, stop, calls, at),
            Record::Cleared => self.messages.clear(),
            Record::Call(transition) => self.step(transition, at),
            Record::Result { call, block } => self.result(&call, block),
            Record::Books(books) => self.books = books,
            Record::Checkpoint { id, step: None } => {
                if let Some(task) = &mut self.task {
                    task.checkpoint = Some(id);
                }
            }
            // For people: what the session goes on with is the one before the task.
            Record::Checkpoint { step: Some(_), .. } => {}
            Record::Checking { running } => {
                if let Some(task) = &mut self.task {
                    task.checking = running;
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

    /// The log up to here is another session's: what was open there isn't open here.
    fn forked(&mut self, parent: SessionId) {
        self.lineage.push(parent);
        self.queue.clear();
        self.task = None;
        self.candidate = None;
        // Who said «from now on» said so of that session.
        self.allowed.clear();
    }

    fn message(
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
                self.say(message.content);
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
            self.add(message);
        }
    }

    /// Adds to the user's side.
    fn say(&mut self, content: Vec<Block>) {
        self.add(Message { role: Role::User, content });
    }

    /// Adds to the transcript. Neighbours of one role become one message, which every provider
    /// takes: of a person who speaks twice, and of a model that paused and goes on.
    fn add(&mut self, mut message: Message) {
        match self.messages.last_mut() {
            Some(last) if last.role == message.role => last.content.append(&mut message.content),
            _ => self.messages.push(message),
        }
    }

    fn step(&mut self, transition: CallTransition, at: UnixMillis) {
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

    fn result(&mut self, call: &CallId, block: Block) {
        if let Some(open) = self.calls.iter_mut().find(|open| open.call.id == *call) {
            // Exactly one result a call: the first one stands.
            open.result.get_or_insert(block);
        }
        if self.calls.iter().all(|open| open.result.is_some()) {
            let results = std::mem::take(&mut self.calls).into_iter().filter_map(|open| open.result);
            let results = results.collect();
            self.say(results);
        }
    }
}
