//! Notification of tasks that wait for a session's next entry.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use journeyman_protocol::SessionId;
use tokio::sync::watch::{Receiver, Sender};

/// The waiting tasks of each session. A notification has no content: its receiver reads the log.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    sessions: Mutex<HashMap<SessionId, Sender<()>>>,
}

impl Watchers {
    /// Returns a receiver that is notified of every later change.
    pub(crate) fn subscribe(&self, session: &SessionId) -> Receiver<()> {
        self.lock().entry(session.clone()).or_insert_with(|| Sender::new(())).subscribe()
    }

    /// Notifies the tasks that wait for a session.
    pub(crate) fn notify_session(&self, session: &SessionId) {
        let mut sessions = self.lock();
        if let Some(sender) = sessions.get(session)
            && sender.send(()).is_err()
        {
            // Nobody waits any more.
            sessions.remove(session);
        }
    }

    /// Notifies all tasks, because any session may have changed.
    pub(crate) fn notify_all(&self) {
        self.lock().retain(|_, sender| sender.send(()).is_ok());
    }

    /// Returns true if nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        let mut sessions = self.lock();
        sessions.retain(|_, sender| sender.receiver_count() > 0);
        sessions.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Sender<()>>> {
        // Entries are added and removed whole.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
