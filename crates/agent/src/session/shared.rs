//! What the handle and the actor share: messages that wait, questions that wait for a person, and the switch that
//! stops a task.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use journeyman_protocol::{AgentState, CallId, MessageKind, TurnPhase};
use tokio::sync::{Notify, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::transcript::record::{MessageId, Queued};

/// What a person says of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It may run, this once.
    Allow {
        /// What the person wants the model to know.
        note: Option<String>,
    },
    /// It may run, and so may all that the question's rule covers, for as long as the session lives.
    AllowRule {
        /// What the person wants the model to know.
        note: Option<String>,
    },
    /// It may not run; the model is told why.
    Deny {
        /// What the person wants the model to know.
        note: Option<String>,
    },
}

impl Answer {
    /// It may run, this once.
    #[must_use]
    pub fn allow() -> Self {
        Self::Allow { note: None }
    }

    /// It may run, and so may all that the question's rule covers.
    #[must_use]
    pub fn allow_rule() -> Self {
        Self::AllowRule { note: None }
    }

    /// It may not run.
    #[must_use]
    pub fn deny() -> Self {
        Self::Deny { note: None }
    }
}

/// An answer and who gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decided {
    pub(crate) answer: Answer,
    pub(crate) by: String,
}

/// What to do with a task that was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CutOff {
    /// Go on with it.
    #[default]
    Continue,
    /// Close it as interrupted, and wait for a message.
    Close,
}

/// Where a session is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// Whether it works.
    pub state: AgentState,
    /// Where in a turn it is.
    pub turn_phase: TurnPhase,
    /// Steps so far: replies of the model with the calls they made.
    pub step: u64,
    /// Messages that wait.
    pub queued: usize,
    /// Calls that wait for a person, in the order they were asked for.
    pub asked: Vec<CallId>,
    /// Entries that the log has not taken yet, because its store fails.
    pub unwritten: usize,
}

/// What the handle and the actor share.
pub(crate) struct Shared {
    waiting: Mutex<HashMap<CallId, oneshot::Sender<Decided>>>,
    switch: Mutex<Switch>,
    queue: Mutex<Queue>,
    /// Wakes the actor when something for it has come.
    pub(crate) wake: Notify,
    /// Ends the session.
    pub(crate) closing: CancellationToken,
    pub(crate) status: watch::Sender<Status>,
}

/// The switch of the task that runs.
#[derive(Default)]
struct Switch {
    token: CancellationToken,
    running: bool,
    stop_next: bool,
}

/// Messages on their way into the transcript.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<Queued>,
    /// Bytes of those that wait, as the log has them.
    bytes: usize,
    /// The name that was given last.
    newest: MessageId,
    /// The newest message of a person that `send` has returned for.
    sent: Option<MessageId>,
    /// The newest message of a person that has gone into the transcript.
    taken: MessageId,
}

impl Shared {
    /// With what waited when the session was last open.
    pub(crate) fn new(waiting: VecDeque<Queued>, newest: MessageId) -> Self {
        let queued = waiting.len();
        let bytes = waiting.iter().map(|queued| queued.logged_bytes()).sum();
        let queue = Queue { waiting, bytes, newest, ..Queue::default() };
        let status = watch::Sender::new(Status { queued, ..Status::default() });
        Self {
            waiting: Mutex::default(),
            switch: Mutex::default(),
            queue: Mutex::new(queue),
            wake: Notify::new(),
            closing: CancellationToken::new(),
            status,
        }
    }

    /// The name of the message after the newest.
    pub(crate) fn name(&self) -> MessageId {
        let mut queue = lock(&self.queue);
        queue.newest = MessageId(queue.newest.0.saturating_add(1));
        queue.newest
    }

    /// Queues a message that is on record, and wakes the actor.
    pub(crate) fn queue(&self, queued: Queued) {
        let mut queue = lock(&self.queue);
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

    /// Whether a person's message waits.
    pub(crate) fn has_work(&self) -> bool {
        lock(&self.queue).waiting.iter().any(|queued| queued.kind == MessageKind::User)
    }

    /// How many messages wait, and how many bytes they have in the log.
    pub(crate) fn load(&self) -> (usize, usize) {
        let queue = lock(&self.queue);
        (queue.waiting.len(), queue.bytes)
    }

    /// All that waits, in order. They are still in the queue: [`Shared::took`] takes them out.
    pub(crate) fn waiting(&self) -> Vec<Queued> {
        lock(&self.queue).waiting.iter().cloned().collect()
    }

    /// Takes messages out that are in the transcript now.
    pub(crate) fn took(&self, taken: &[MessageId]) {
        let mut queue = lock(&self.queue);
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

    /// The newest message of a person that `send` has returned for.
    pub(crate) fn sent(&self) -> Option<MessageId> {
        lock(&self.queue).sent
    }

    /// The newest message of a person that has gone into the transcript.
    pub(crate) fn taken(&self) -> MessageId {
        lock(&self.queue).taken
    }

    /// Opens a question; the receiver gets its answer, or an error if it is withdrawn.
    pub(crate) fn ask(&self, call: &CallId) -> oneshot::Receiver<Decided> {
        let (sender, receiver) = oneshot::channel();
        lock(&self.waiting).insert(call.clone(), sender);
        self.status.send_modify(|status| {
            status.asked.retain(|asked| asked != call);
            status.asked.push(call.clone());
        });
        receiver
    }

    /// Withdraws one open question.
    pub(crate) fn withdraw(&self, call: &CallId) {
        lock(&self.waiting).remove(call);
        self.status.send_modify(|status| status.asked.retain(|asked| asked != call));
    }

    /// Withdraws every open question: a late answer finds nothing.
    pub(crate) fn withdraw_all(&self) {
        lock(&self.waiting).clear();
        self.status.send_modify(|status| status.asked.clear());
    }

    /// Answers a question; false when no such question is open.
    pub(crate) fn answer(&self, call: &CallId, decided: Decided) -> bool {
        let sender = lock(&self.waiting).remove(call);
        self.status.send_modify(|status| status.asked.retain(|asked| asked != call));
        sender.is_some_and(|sender| sender.send(decided).is_ok())
    }

    /// A fresh switch for the task that begins now.
    pub(crate) fn arm(&self) -> CancellationToken {
        let mut switch = lock(&self.switch);
        switch.running = true;
        switch.token = self.closing.child_token();
        if std::mem::take(&mut switch.stop_next) {
            switch.token.cancel();
        }
        switch.token.clone()
    }

    /// The task has ended.
    pub(crate) fn disarm(&self) {
        lock(&self.switch).running = false;
        self.withdraw_all();
    }

    /// The session has ended, perhaps in the middle of its work.
    pub(crate) fn rest(&self) {
        self.disarm();
        self.status.send_modify(|status| {
            (status.state, status.turn_phase) = (AgentState::Ready, TurnPhase::Ready);
        });
    }

    /// Stops the task that runs now, or the one that was sent and has not begun. An answer that comes after
    /// this finds nothing to answer.
    pub(crate) fn interrupt(&self) {
        let waits = self.has_work();
        let mut switch = lock(&self.switch);
        switch.token.cancel();
        switch.stop_next |= !switch.running && waits;
        drop(switch);
        self.withdraw_all();
    }
}

/// A panic while the lock was held leaves what it guards whole: every change is one assignment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
