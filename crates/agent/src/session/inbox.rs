//! The inbox: stores incoming messages durably before their senders get an answer.

use std::sync::Arc;

use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{Event, MessageKind, ReminderCategory};
use tokio::sync::Mutex;

use crate::AgentError;
use crate::recovery::lease::Lease;
use crate::session::shared_state::SessionShared;
use crate::session::user_message::UserMessage;
use crate::transcript::log::{Log, LogEntry, SessionBeginning};
use crate::transcript::record::{MessageId, QueuedMessage, Record};
use crate::transcript::reminder;

/// Maximum characters of a session's title, which is one line of a list.
const MAX_SESSION_TITLE_CHARS: usize = 120;
/// Maximum bytes of one message: more than any model's context window.
const MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;

/// Maximum bytes of queued messages, as logged. They enter the transcript as one entry, and the
/// store takes entries of up to 16 MiB.
const MAX_WAITING_BYTES: usize = 8 * 1024 * 1024;
/// Maximum number of queued messages. A sender of more is a program in a loop.
const MAX_WAITING_MESSAGES: usize = 10_000;

/// Accepts messages from a session's handles and from its own background work.
pub(crate) struct Inbox {
    log: Log,
    shared: Arc<SessionShared>,
    lease: Arc<Lease>,
    redactor: Arc<Redactor>,
    root: String,
    /// Held while one message is sent, so that the queue has the order of the log. Contains the
    /// records that a new session's first append writes before its first message.
    sending: Mutex<Vec<Record>>,
}

impl Inbox {
    pub(crate) fn new(
        log: Log,
        shared: Arc<SessionShared>,
        lease: Arc<Lease>,
        redactor: Arc<Redactor>,
        root: String,
        first: Vec<Record>,
    ) -> Self {
        Self { log, shared, lease, redactor, root, sending: Mutex::new(first) }
    }

    /// Logs and queues a message; a reminder that waits already isn't queued again. On an error
    /// neither happens, except for [`AgentError::InDoubt`], where the message is queued all the
    /// same. The future must not be dropped halfway.
    pub(crate) async fn accept(
        &self,
        kind: MessageKind,
        category: ReminderCategory,
        message: impl Into<UserMessage>,
    ) -> Result<MessageId, AgentError> {
        self.accept_with_event(kind, category, message.into(), None).await
    }

    /// Logs and queues a message as [`Inbox::accept`] does, together with an event. On an error
    /// neither is written.
    pub(crate) async fn accept_with_event(
        &self,
        kind: MessageKind,
        category: ReminderCategory,
        message: UserMessage,
        event: Option<Event>,
    ) -> Result<MessageId, AgentError> {
        let UserMessage { text, images } = message;
        if text.len() > MAX_MESSAGE_BYTES {
            return Err(AgentError::MessageTooLong { bytes: text.len(), limit: MAX_MESSAGE_BYTES });
        }
        let mut first = self.sending.lock().await;
        if self.shared.closing.is_cancelled() {
            return Err(AgentError::Ended);
        }
        // Redacts before truncating, because a part of a secret would not be recognized.
        let text = self.redactor.redact(&text).into_owned();
        let title: String =
            text.lines().next().unwrap_or_default().chars().take(MAX_SESSION_TITLE_CHARS).collect();
        let text = if kind == MessageKind::Reminder { reminder::wrap_reminder(&text) } else { text };
        if kind == MessageKind::Reminder
            && let Some(waiting) = self.shared.queued_reminder(&text)
        {
            return Ok(waiting);
        }
        let mut queued = QueuedMessage { id: MessageId::default(), kind, category, text, images };
        self.check_capacity(&queued)?;
        let id = self.shared.next_message_id();
        queued.id = id;
        let begins = !self.lease.is_taken();
        if begins {
            let (root, lease) = (self.root.clone(), self.lease.holder_and_duration());
            self.log.set_session_beginning(Some(SessionBeginning { root, title, lease })).await;
        }
        let records = first.iter().cloned().chain([Record::Queued(queued.clone())]);
        let entries = records.map(LogEntry::from).chain(event.map(LogEntry::from));
        let offered = self.log.write_or_remove(entries.collect()).await;
        match offered {
            Err(error) if !matches!(error, AgentError::InDoubt { .. }) => {
                if begins {
                    self.log.set_session_beginning(None).await;
                }
                return Err(error);
            }
            // An entry in doubt will be written, so its message must be answered although its
            // sender gets an error.
            _ => {}
        }
        first.clear();
        self.lease.mark_taken();
        self.shared.add_queued(queued);
        offered.map(|()| id)
    }

    /// Takes a person's message back. Returns false if a task has taken it. The future must not be
    /// dropped halfway.
    pub(crate) async fn withdraw_message(&self, id: MessageId) -> Result<bool, AgentError> {
        let _sending = self.sending.lock().await;
        // Removed first, so that no task takes it while the withdrawal is written.
        let Some(withdrawn) = self.shared.withdraw_message(id) else { return Ok(false) };
        let offered = self.log.write_or_remove(vec![LogEntry::from(Record::Withdrawn { id })]).await;
        match offered {
            Err(error) if !matches!(error, AgentError::InDoubt { .. }) => {
                self.shared.requeue(withdrawn);
                Err(error)
            }
            // An entry in doubt will be written.
            _ => Ok(true),
        }
    }

    /// Refuses a message that would exceed the queue's limits. Callers hold the `sending` lock.
    fn check_capacity(&self, message: &QueuedMessage) -> Result<(), AgentError> {
        let bytes = message.logged_bytes();
        if bytes > MAX_WAITING_BYTES {
            return Err(AgentError::MessageTooLong { bytes, limit: MAX_WAITING_BYTES });
        }
        let (messages, waiting) = self.shared.queue_size();
        if messages >= MAX_WAITING_MESSAGES || waiting.saturating_add(bytes) > MAX_WAITING_BYTES {
            return Err(AgentError::QueueFull { messages, bytes: waiting });
        }
        Ok(())
    }
}
