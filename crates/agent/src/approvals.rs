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
    interrupt: Mutex<CancellationToken>,
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

    /// A fresh switch for the task that begins now.
    pub(crate) fn arm(&self) -> CancellationToken {
        let token = CancellationToken::new();
        *lock(&self.interrupt) = token.clone();
        token
    }

    /// Stops the task that runs now, if any.
    pub(crate) fn interrupt(&self) {
        lock(&self.interrupt).cancel();
    }
}

/// A panic while the lock was held leaves a map or a token, both of which are whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
