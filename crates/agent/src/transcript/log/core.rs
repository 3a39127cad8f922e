//! The state shared by a log's writers, live sinks and subscribers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{Envelope, Event, SessionId};
use journeyman_store::Store;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

use super::prepared_entry::PreparedEntry;
use super::queue::{EntryQueue, PushTicket, WriterState};
use super::timeline::Timeline;
use crate::Clock;
use crate::transcript::record::Record;

/// The content of a log entry.
#[derive(Debug)]
pub(crate) enum LogEntry {
    /// An event, for people.
    Event(Box<Event>),
    /// A record, for a session that is opened again.
    Record(Box<Record>),
}

impl From<Event> for LogEntry {
    fn from(event: Event) -> Self {
        Self::Event(Box::new(event))
    }
}

impl From<Record> for LogEntry {
    fn from(record: Record) -> Self {
        Self::Record(Box::new(record))
    }
}

/// The state shared by a log's writers, live sinks and subscribers.
///
/// Locks are taken in the order `writer`, `queue`, `timeline`. The latter two are never held across
/// an await.
pub(super) struct LogCore {
    pub(super) store: Arc<dyn Store>,
    pub(super) session: SessionId,
    /// The names of the agents down to the session.
    pub(super) agent: Vec<String>,
    pub(super) clock: Clock,
    pub(super) redactor: Arc<Redactor>,
    /// Locked while an append runs.
    pub(super) writer: tokio::sync::Mutex<WriterState>,
    pub(super) queue: Mutex<EntryQueue>,
    pub(super) timeline: Mutex<Timeline>,
    /// Notified when an event is shown or the log is closed.
    pub(super) changed: Notify,
    pub(super) tickets: AtomicU64,
}

impl LogCore {
    pub(super) fn emit(&self, event: Event) {
        // Streamed pieces are frequent, so they skip the list.
        if event.is_live_only() {
            self.show_event(event);
        } else {
            self.push(vec![event.into()]);
        }
    }

    pub(super) fn push(&self, items: Vec<LogEntry>) {
        let prepared = self.prepare_entries(items);
        self.enqueue(prepared);
    }

    /// Converts items to entries. Live-only events are shown instead.
    pub(super) fn prepare_entries(&self, items: Vec<LogEntry>) -> Vec<PreparedEntry> {
        let at = self.clock.now();
        let entry = |item| match item {
            LogEntry::Event(event) if event.is_live_only() => {
                self.show_event(*event);
                None
            }
            LogEntry::Event(event) => Some(PreparedEntry::from_event(event, at, &self.redactor)),
            LogEntry::Record(record) => Some(PreparedEntry::from_record(&record, at, &self.redactor)),
        };
        items.into_iter().filter_map(entry).collect()
    }

    /// Queues entries together. Returns `None` if there are none, or if the session is lost.
    pub(super) fn enqueue(&self, prepared: Vec<PreparedEntry>) -> Option<PushTicket> {
        if prepared.is_empty() {
            return None;
        }
        let ticket = PushTicket(self.tickets.fetch_add(1, Ordering::Relaxed));
        lock(&self.queue).add(ticket, prepared).then_some(ticket)
    }

    /// Shows a live-only event.
    pub(super) fn show_event(&self, mut event: Event) {
        redact_event(&self.redactor, &mut event);
        let envelope = self.live_envelope(event);
        lock(&self.timeline).show_live(envelope);
        self.changed.notify_waiters();
    }

    pub(super) fn live_envelope(&self, event: Event) -> Envelope {
        let (session, at, channel) = (self.session.clone(), self.clock.now(), event.channel());
        Envelope { session, seq: None, at, channel, agent: self.agent.clone(), event }
    }

    pub(super) fn close(&self) {
        lock(&self.timeline).close();
        self.changed.notify_waiters();
    }
}

/// Shows live-only events without going through the log.
#[derive(Clone)]
pub(crate) struct LiveSink {
    pub(super) shared: Arc<LogCore>,
}

impl LiveSink {
    /// Shows a live-only event now. Any other event is queued for the next append.
    pub(crate) fn send(&self, event: Event) {
        self.shared.emit(event);
    }

    /// Shows an event of another session, whose log has it.
    pub(crate) fn show(&self, envelope: Envelope) {
        lock(&self.shared.timeline).show_live(envelope);
        self.shared.changed.notify_waiters();
    }

    /// Writes the queued entries. The log reports a failure itself, and keeps entries that it could
    /// not write.
    pub(crate) async fn flush(&self) {
        let shared = Arc::clone(&self.shared);
        // A task of its own, because the caller's future may be dropped.
        tokio::spawn(async move { shared.write_all(None).await }).await.ok();
    }
}

/// Locks a mutex despite poisoning: every change under these locks is complete or absent.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Redacts known secrets in a live-only event.
fn redact_event(redactor: &Redactor, event: &mut Event) {
    match event {
        Event::TextDelta { text, .. }
        | Event::TextEnd { text, .. }
        | Event::ThinkingDelta { text, .. }
        | Event::ThinkingEnd { text, .. }
        | Event::ToolOutput { text, .. }
        | Event::CheckOutput { text }
        | Event::StorageFailure { message: text, .. } => {
            if let std::borrow::Cow::Owned(clean) = redactor.redact(text) {
                *text = clean;
            }
        }
        other => {
            if let Some(clean) = redact_value(redactor, &*other) {
                *other = clean;
            }
        }
    }
}

/// Returns a redacted copy of a value, or `None` if the value contains no known secret.
pub(crate) fn redact_value<T: Serialize + DeserializeOwned>(redactor: &Redactor, value: &T) -> Option<T> {
    let before = serde_json::to_value(value).ok()?;
    let mut after = before.clone();
    redactor.redact_json(&mut after);
    if after == before { None } else { serde_json::from_value(after).ok() }
}
