//! Questions that wait for a person, and the switch that stops a turn.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use journeyman_protocol::CallId;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// What a person says of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It may run, this once.
    Allow,
    /// It may run, and so may the same call again in this session.
    AllowForSession,
    /// It may not run; the model is told why.
    Deny {
        /// What the person wants the model to know.
        note: Option<String>,
    },
}

/// What the handle and the actor share.
#[derive(Default)]
pub(crate) struct Shared {
    waiting: Mutex<HashMap<CallId, oneshot::Sender<Answer>>>,
    switch: Mutex<Switch>,
}

/// The switch of the task that runs, and how far the actor is with what it was sent.
#[derive(Default)]
struct Switch {
    token: CancellationToken,
    running: bool,
    sent: u64,
    taken: u64,
    stop_next: bool,
}

impl Shared {
    /// Opens a question; the receiver gets its answer, or an error if it is withdrawn.
    pub(crate) fn ask(&self, call: &CallId) -> oneshot::Receiver<Answer> {
        let (sender, receiver) = oneshot::channel();
        lock(&self.waiting).insert(call.clone(), sender);
        receiver
    }

    /// Withdraws every open question: a late answer finds nothing.
    pub(crate) fn withdraw(&self) {
        lock(&self.waiting).clear();
    }

    /// Answers a question; false when no such question is open.
    pub(crate) fn answer(&self, call: &CallId, answer: Answer) -> bool {
        let sender = lock(&self.waiting).remove(call);
        sender.is_some_and(|sender| sender.send(answer).is_ok())
    }

    /// Counts a message that is on its way to the actor.
    pub(crate) fn count_sent(&self) {
        lock(&self.switch).sent += 1;
    }

    /// Messages that were sent so far.
    pub(crate) fn sent(&self) -> u64 {
        lock(&self.switch).sent
    }

    /// Counts a message that joins the task that runs.
    pub(crate) fn count_taken(&self) {
        lock(&self.switch).taken += 1;
    }

    /// Messages that the actor has taken so far.
    pub(crate) fn taken(&self) -> u64 {
        lock(&self.switch).taken
    }

    /// A fresh switch for the task that begins now with a message.
    pub(crate) fn arm(&self) -> CancellationToken {
        let mut switch = lock(&self.switch);
        switch.taken += 1;
        switch.running = true;
        switch.token = CancellationToken::new();
        if std::mem::take(&mut switch.stop_next) {
            switch.token.cancel();
        }
        switch.token.clone()
    }

    /// The task has ended.
    pub(crate) fn disarm(&self) {
        lock(&self.switch).running = false;
        self.withdraw();
    }

    /// Stops the task that runs now, or the one that was sent and has not begun. An answer that comes after
    /// this finds nothing to answer.
    pub(crate) fn interrupt(&self) {
        let mut switch = lock(&self.switch);
        switch.token.cancel();
        switch.stop_next |= !switch.running && switch.sent > switch.taken;
        drop(switch);
        self.withdraw();
    }
}

/// A panic while the lock was held leaves a map or a token, both of which are whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
