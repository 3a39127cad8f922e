//! State shared by the handle and the actor: queued messages, open questions, and the token that
//! stops a task.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use journeyman_protocol::{AgentState, CallId, FileChange, MessageKind, RunOutcome, Tokens, TurnPhase};
use tokio::sync::{Notify, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::session::budget::Spending;
use crate::transcript::record::{MessageId, QueuedMessage};

/// A person's answer to a permission question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionAnswer {
    /// Allows the call once.
    Allow {
        /// A note for the model.
        note: Option<String>,
    },
    /// Allows the call, and every call that the question's rule covers for the rest of the session.
    AllowRule {
        /// A note for the model.
        note: Option<String>,
    },
    /// Denies the call. The model gets the reason.
    Deny {
        /// A note for the model.
        note: Option<String>,
    },
    /// Answers a question of the model. Any other call is denied, and the model gets the text as
    /// the reason.
    Answer {
        /// The answer.
        text: String,
    },
    /// Denies the call because no answer will come. The result says so.
    NoAnswer {
        /// The reason, such as `end of input`.
        reason: String,
    },
}

impl PermissionAnswer {
    /// Returns an answer that allows the call once.
    #[must_use]
    pub fn allow() -> Self {
        Self::Allow { note: None }
    }

    /// Returns an answer that allows every call that the question's rule covers.
    #[must_use]
    pub fn allow_rule() -> Self {
        Self::AllowRule { note: None }
    }

    /// Returns an answer that denies the call.
    #[must_use]
    pub fn deny() -> Self {
        Self::Deny { note: None }
    }
}

/// An answer with the name of its author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuthoredAnswer {
    pub(crate) answer: PermissionAnswer,
    pub(crate) by: String,
}

/// The treatment of a task that was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CutOffPolicy {
    /// Continue the task.
    #[default]
    Continue,
    /// Close the task as interrupted, and wait for a message.
    Close,
}

/// The status of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionStatus {
    /// The activity: ready, working or paused.
    pub state: AgentState,
    /// The phase of the current turn.
    pub turn_phase: TurnPhase,
    /// Number of steps so far. A step is a model reply with its calls.
    pub step: u64,
    /// Number of queued messages.
    pub queued: usize,
    /// Calls that await a person's decision, in the order of their questions.
    pub asked: Vec<CallId>,
    /// Number of entries that the store has not accepted yet.
    pub unwritten: usize,
}

/// Takes the outcome of a compaction that a person asked for: the tokens of the next request before
/// and after, or the reason why nothing was shortened.
pub(crate) type CompactionAnswer = oneshot::Sender<Result<(Tokens, Tokens), String>>;

/// State shared by the handle and the actor.
pub(crate) struct SessionShared {
    compaction: Mutex<Option<CompactionAnswer>>,
    questions: Mutex<HashMap<CallId, oneshot::Sender<AuthoredAnswer>>>,
    switch: Mutex<StopSwitch>,
    messages: Mutex<MessageQueue>,
    /// Wakes the actor when it has work.
    pub(crate) wake: Notify,
    /// Cancelled to end the session.
    pub(crate) closing: CancellationToken,
    pub(crate) status: watch::Sender<SessionStatus>,
    /// The work of agents that no step has recorded yet.
    pub(crate) delegated: UnrecordedAgentsWork,
}

/// The work of agents that have ended, with that of their own agents.
#[derive(Default)]
pub(crate) struct AgentsWork {
    pub(crate) spending: Spending,
    /// The gravest outcome of those that did not complete their tasks.
    pub(crate) failed: Option<RunOutcome>,
    pub(crate) changes: Vec<FileChange>,
}

/// The work of agents that no step has recorded yet.
#[derive(Default)]
pub(crate) struct UnrecordedAgentsWork(Mutex<AgentsWork>);

impl UnrecordedAgentsWork {
    /// Adds what an agent used and changed.
    pub(crate) fn add(&self, spending: Spending, changes: &[FileChange]) {
        let mut work = lock(&self.0);
        work.spending += spending;
        work.changes.extend_from_slice(changes);
    }

    /// Adds an agent that did not complete its task.
    pub(crate) fn add_failure(&self, outcome: RunOutcome) {
        let mut work = lock(&self.0);
        work.failed = Some(work.failed.map_or(outcome, |other| worse_outcome(other, outcome)));
    }

    /// Takes the work of all.
    pub(crate) fn take(&self) -> AgentsWork {
        std::mem::take(&mut *lock(&self.0))
    }
}

/// Returns the outcome that says more of what to do about agents that did not complete their tasks:
/// a permission is needed, then an error, then a limit.
pub(crate) fn worse_outcome(one: RunOutcome, other: RunOutcome) -> RunOutcome {
    let rank = |outcome| match outcome {
        RunOutcome::PermissionNeeded => 2,
        RunOutcome::Limit => 0,
        _ => 1,
    };
    if rank(other) > rank(one) { other } else { one }
}

/// The stop token of the running task.
#[derive(Default)]
struct StopSwitch {
    token: CancellationToken,
    running: bool,
    stop_next: bool,
}

/// Messages that are not in the transcript yet.
#[derive(Default)]
struct MessageQueue {
    waiting: VecDeque<QueuedMessage>,
    /// Messages that the actor is about to take, which nobody can withdraw any more.
    held: HashSet<MessageId>,
    /// Bytes of the waiting messages, as logged.
    bytes: usize,
    /// The newest message id that was assigned.
    newest: MessageId,
    /// The newest message from a person that was queued.
    sent: Option<MessageId>,
    /// The newest message from a person that entered the transcript.
    taken: MessageId,
}

impl MessageQueue {
    /// Counts the messages anew, and returns their number. Nobody waits for the answer to a message
    /// that was withdrawn.
    fn recount(&mut self) -> usize {
        let users = self.waiting.iter().filter(|queued| queued.kind == MessageKind::User);
        let newest = users.map(|queued| queued.id).max();
        let taken = Some(self.taken).filter(|taken| *taken > MessageId::default());
        self.sent = newest.max(taken);
        self.bytes = self.waiting.iter().map(|queued| queued.logged_bytes()).sum();
        self.waiting.len()
    }
}

impl SessionShared {
    /// Creates the state with the messages that were queued when the session was last open.
    pub(crate) fn new(waiting: VecDeque<QueuedMessage>, newest: MessageId) -> Self {
        let queued = waiting.len();
        let bytes = waiting.iter().map(|queued| queued.logged_bytes()).sum();
        let queue = MessageQueue { waiting, bytes, newest, ..MessageQueue::default() };
        let status = watch::Sender::new(SessionStatus { queued, ..SessionStatus::default() });
        Self {
            compaction: Mutex::default(),
            questions: Mutex::default(),
            switch: Mutex::default(),
            messages: Mutex::new(queue),
            wake: Notify::new(),
            closing: CancellationToken::new(),
            status,
            delegated: UnrecordedAgentsWork::default(),
        }
    }

    /// Asks the actor to shorten the conversation. A request that waits already is replaced.
    pub(crate) fn request_compaction(&self) -> oneshot::Receiver<Result<(Tokens, Tokens), String>> {
        let (sender, receiver) = oneshot::channel();
        *lock(&self.compaction) = Some(sender);
        self.wake.notify_one();
        receiver
    }

    /// Takes the request to shorten the conversation.
    pub(crate) fn take_compaction_request(&self) -> Option<CompactionAnswer> {
        lock(&self.compaction).take()
    }

    /// Returns true if a request to shorten the conversation waits.
    pub(crate) fn is_compaction_requested(&self) -> bool {
        lock(&self.compaction).is_some()
    }

    /// Assigns the next message id.
    pub(crate) fn next_message_id(&self) -> MessageId {
        let mut queue = lock(&self.messages);
        queue.newest = MessageId(queue.newest.0.saturating_add(1));
        queue.newest
    }

    /// Queues a message that is already logged, and wakes the actor.
    pub(crate) fn add_queued(&self, queued: QueuedMessage) {
        let mut queue = lock(&self.messages);
        if queued.kind == MessageKind::User {
            queue.sent = queue.sent.max(Some(queued.id));
        }
        queue.bytes = queue.bytes.saturating_add(queued.logged_bytes());
        queue.waiting.push_back(queued);
        let waiting = queue.waiting.len();
        drop(queue);
        self.status.send_modify(|status| status.queued = waiting);
        self.wake.notify_one();
    }

    /// Returns true if a message from a person is queued.
    pub(crate) fn has_work(&self) -> bool {
        lock(&self.messages).waiting.iter().any(|queued| queued.kind == MessageKind::User)
    }

    /// Returns the id of a queued reminder with this text.
    pub(crate) fn queued_reminder(&self, text: &str) -> Option<MessageId> {
        let queue = lock(&self.messages);
        let is_it = |queued: &&QueuedMessage| queued.kind == MessageKind::Reminder && queued.text == text;
        queue.waiting.iter().find(is_it).map(|queued| queued.id)
    }

    /// Returns the number of queued messages and their bytes in the log.
    pub(crate) fn queue_size(&self) -> (usize, usize) {
        let queue = lock(&self.messages);
        (queue.waiting.len(), queue.bytes)
    }

    /// Returns all queued messages in order. They stay queued until [`SessionShared::remove_taken`]
    /// removes them.
    pub(crate) fn queued_messages(&self) -> Vec<QueuedMessage> {
        lock(&self.messages).waiting.iter().cloned().collect()
    }

    /// Returns the queued messages of a person in order.
    pub(crate) fn waiting_messages(&self) -> Vec<MessageId> {
        let queue = lock(&self.messages);
        let users = queue.waiting.iter().filter(|queued| queued.kind == MessageKind::User);
        users.map(|queued| queued.id).collect()
    }

    /// Returns all queued messages as [`Self::queued_messages`] does, and holds them: they can't be
    /// withdrawn until they are removed or released.
    pub(crate) fn hold_queued(&self) -> Vec<QueuedMessage> {
        let mut queue = lock(&self.messages);
        queue.held = queue.waiting.iter().map(|queued| queued.id).collect();
        queue.waiting.iter().cloned().collect()
    }

    /// Allows held messages to be withdrawn again.
    pub(crate) fn release_queued(&self) {
        lock(&self.messages).held.clear();
    }

    /// Removes a person's message that nobody has taken, and returns it with its place.
    pub(crate) fn withdraw_message(&self, id: MessageId) -> Option<(usize, QueuedMessage)> {
        let mut queue = lock(&self.messages);
        if queue.held.contains(&id) {
            return None;
        }
        let is_it = |queued: &QueuedMessage| queued.id == id && queued.kind == MessageKind::User;
        let place = queue.waiting.iter().position(is_it)?;
        let withdrawn = queue.waiting.remove(place)?;
        let waiting = queue.recount();
        drop(queue);
        self.status.send_modify(|status| status.queued = waiting);
        Some((place, withdrawn))
    }

    /// Puts a withdrawn message back.
    pub(crate) fn requeue(&self, (place, queued): (usize, QueuedMessage)) {
        let mut queue = lock(&self.messages);
        let place = place.min(queue.waiting.len());
        queue.waiting.insert(place, queued);
        let waiting = queue.recount();
        drop(queue);
        self.status.send_modify(|status| status.queued = waiting);
        self.wake.notify_one();
    }

    /// Removes messages that have entered the transcript.
    pub(crate) fn remove_taken(&self, taken: &[MessageId]) {
        let mut queue = lock(&self.messages);
        queue.held.clear();
        let users = queue.waiting.iter().filter(|queued| queued.kind == MessageKind::User);
        let newest = users.map(|queued| queued.id).filter(|id| taken.contains(id)).max();
        queue.taken = queue.taken.max(newest.unwrap_or_default());
        let taken: HashSet<&MessageId> = taken.iter().collect();
        queue.waiting.retain(|queued| !taken.contains(&queued.id));
        queue.bytes = queue.waiting.iter().map(|queued| queued.logged_bytes()).sum();
        let waiting = queue.waiting.len();
        drop(queue);
        self.status.send_modify(|status| status.queued = waiting);
    }

    /// Returns the newest message from a person that was queued.
    pub(crate) fn newest_sent_message(&self) -> Option<MessageId> {
        lock(&self.messages).sent
    }

    /// Returns the newest message from a person that entered the transcript.
    pub(crate) fn newest_taken_message(&self) -> MessageId {
        lock(&self.messages).taken
    }

    /// Opens a question. The receiver gets the answer, or an error if the question is withdrawn.
    pub(crate) fn open_question(&self, call: &CallId) -> oneshot::Receiver<AuthoredAnswer> {
        let (sender, receiver) = oneshot::channel();
        lock(&self.questions).insert(call.clone(), sender);
        self.status.send_modify(|status| {
            status.asked.retain(|asked| asked != call);
            status.asked.push(call.clone());
        });
        receiver
    }

    /// Withdraws one open question.
    pub(crate) fn withdraw_question(&self, call: &CallId) {
        lock(&self.questions).remove(call);
        self.status.send_modify(|status| status.asked.retain(|asked| asked != call));
    }

    /// Withdraws every open question. Later answers are ignored.
    pub(crate) fn withdraw_all_questions(&self) {
        lock(&self.questions).clear();
        self.status.send_modify(|status| status.asked.clear());
    }

    /// Answers a question. Returns false if the question is not open.
    pub(crate) fn answer_question(&self, call: &CallId, decided: AuthoredAnswer) -> bool {
        let sender = lock(&self.questions).remove(call);
        self.status.send_modify(|status| status.asked.retain(|asked| asked != call));
        sender.is_some_and(|sender| sender.send(decided).is_ok())
    }
}

/// Beginning and stopping work.
impl SessionShared {
    /// Creates the stop token of a task that begins. It is cancelled already if the task was
    /// interrupted first.
    pub(crate) fn start_task(&self) -> CancellationToken {
        let mut switch = lock(&self.switch);
        switch.running = true;
        switch.token = self.closing.child_token();
        if std::mem::take(&mut switch.stop_next) {
            switch.token.cancel();
        }
        switch.token.clone()
    }

    /// Creates the stop token of work that belongs to no task, such as a compaction.
    pub(crate) fn start_work_between_tasks(&self) -> CancellationToken {
        let mut switch = lock(&self.switch);
        switch.token = self.closing.child_token();
        switch.token.clone()
    }

    /// Marks the running task as ended and withdraws its questions.
    pub(crate) fn end_task(&self) {
        lock(&self.switch).running = false;
        self.withdraw_all_questions();
    }

    /// Resets the status when the session has ended, maybe in the middle of a task.
    pub(crate) fn reset_status(&self) {
        self.end_task();
        self.status.send_modify(|status| {
            (status.state, status.turn_phase) = (AgentState::Ready, TurnPhase::Ready);
        });
    }

    /// Stops the running task, or the one that was sent and has not begun. Withdraws all open
    /// questions.
    pub(crate) fn interrupt(&self) {
        let waits = self.has_work();
        let mut switch = lock(&self.switch);
        switch.token.cancel();
        switch.stop_next |= !switch.running && waits;
        drop(switch);
        self.withdraw_all_questions();
    }
}

/// Locks a mutex despite poisoning: no holder leaves its data half changed when it panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
