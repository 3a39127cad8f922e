//! Where messages come in: durable before whoever sent them hears so.

use std::sync::Arc;

use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{MessageKind, ReminderCategory};
use tokio::sync::Mutex;

use crate::AgentError;
use crate::recovery::lease::Lease;
use crate::session::shared::Shared;
use crate::transcript::log::{Beginning, Item, Log};
use crate::transcript::record::{MessageId, Queued, Record, logged_bytes};
use crate::transcript::reminder;

/// Characters of a session's title: a line of a list.
const MAX_TITLE: usize = 120;
/// Bytes of one message: more than any model's window.
const MAX_MESSAGE: usize = 4 * 1024 * 1024;

/// Bytes of messages that may wait, as the log has them: they go into the transcript as one entry, and the store takes
/// none of more than 16 MiB.
const MAX_WAITING_BYTES: usize = 8 * 1024 * 1024;
/// Messages that may wait. Nobody reads more; whoever sends more is a program in a loop.
const MAX_WAITING: usize = 10_000;

/// The way of messages into a session, from its handles and from its own background work.
pub(crate) struct Inbox {
    log: Log,
    shared: Arc<Shared>,
    lease: Arc<Lease>,
    redactor: Arc<Redactor>,
    root: String,
    /// One message at a time, so that the queue has the order of the log. Holds what a new session's first append has
    /// before its first message: how the session is set.
    sending: Mutex<Vec<Record>>,
}

impl Inbox {
    pub(crate) fn new(
        log: Log,
        shared: Arc<Shared>,
        lease: Arc<Lease>,
        redactor: Arc<Redactor>,
        root: String,
        first: Vec<Record>,
    ) -> Self {
        Self { log, shared, lease, redactor, root, sending: Mutex::new(first) }
    }

    /// Takes a message: it is on record and queued afterwards, or neither. Not to be dropped half-way.
    pub(crate) async fn take(
        &self,
        kind: MessageKind,
        category: ReminderCategory,
        text: String,
    ) -> Result<MessageId, AgentError> {
        if text.len() > MAX_MESSAGE {
            return Err(AgentError::MessageTooLong { bytes: text.len(), limit: MAX_MESSAGE });
        }
        let mut first = self.sending.lock().await;
        if self.shared.closing.is_cancelled() {
            return Err(AgentError::Ended);
        }
        // Half a secret is one too: redacted before anything is cut.
        let text = self.redactor.redact(&text).into_owned();
        let title: String = text.lines().next().unwrap_or_default().chars().take(MAX_TITLE).collect();
        let text = if kind == MessageKind::Reminder { reminder::wrapped(&text) } else { text };
        self.check_room(&text)?;
        let id = self.shared.name();
        let queued = Queued { id, kind, category, text };
        let begins = !self.lease.is_taken();
        if begins {
            let (root, lease) = (self.root.clone(), self.lease.terms());
            self.log.begin(Some(Beginning { root, title, lease })).await;
        }
        let records = first.iter().cloned().chain([Record::Queued(queued.clone())]);
        let offered = self.log.offer(records.map(Item::from).collect()).await;
        match offered {
            Err(error) if !matches!(error, AgentError::InDoubt { .. }) => {
                if begins {
                    self.log.begin(None).await;
                }
                return Err(error);
            }
            // One in doubt will be on record: then it has to be answered, although its sender can't be told so.
            _ => {}
        }
        first.clear();
        self.lease.begun();
        self.shared.queue(queued);
        offered.map(|()| id)
    }

    /// Refuses what would make more wait than the log takes at once. Called by one sender at a time.
    fn check_room(&self, text: &str) -> Result<(), AgentError> {
        let bytes = logged_bytes(text);
        if bytes > MAX_WAITING_BYTES {
            return Err(AgentError::MessageTooLong { bytes, limit: MAX_WAITING_BYTES });
        }
        let (messages, waiting) = self.shared.load();
        if messages >= MAX_WAITING || waiting.saturating_add(bytes) > MAX_WAITING_BYTES {
            return Err(AgentError::QueueFull { messages, bytes: waiting });
        }
        Ok(())
    }
}
