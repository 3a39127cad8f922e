//! Telling those who wait for a session's next entry that there may be one.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use journeyman_protocol::SessionId;
use tokio::sync::watch::{Receiver, Sender};

/// The waiters of each session. News carry no content: whoever receives one reads the log.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    sessions: Mutex<HashMap<SessionId, Sender<()>>>,
}

impl Watchers {
    /// A receiver that hears of every later change.
    pub(crate) fn join(&self, session: &SessionId) -> Receiver<()> {
        self.lock().entry(session.clone()).or_insert_with(|| Sender::new(())).subscribe()
    }

    /// The session changed.
    pub(crate) fn tell(&self, session: &SessionId) {
        let mut sessions = self.lock();
        if let Some(sender) = sessions.get(session)
            && sender.send(()).is_err()
        {
            // Nobody waits any more.
            sessions.remove(session);
        }
    }

    /// Any session may have changed.
    pub(crate) fn tell_all(&self) {
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
