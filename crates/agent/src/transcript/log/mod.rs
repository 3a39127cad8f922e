//! The session's one log: entries queued, written in batches, and only then shown.
//!
//! A batch is one transaction and one fsync. Events reach subscribers after they are durable, so a bookmark that
//! somebody holds can never be given out twice; records reach nobody. Live-only events go straight through.
//!
//! [`Log`] is held by the actor and by every handle. An append runs as a task of its own: whoever waits for it may
//! go away, and what became of it is known all the same. What can't be written stays queued, in order. When it is
//! not known whether an append was written, the log is looked at before anything else is.
//!
//! A [`Subscription`] reads history from the store up to a cut that is taken under the lock that appends are shown
//! under, and goes on live from there. It never slows the writer: who falls too far behind reads from the store
//! again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{Envelope, Event, Message, Seq, SessionId};
use journeyman_store::{Entry, Store};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

use crate::transcript::record::{Record, record_of};
use crate::{AgentError, Clock};
use prepared::Prepared;
use timeline::Timeline;
use writer::{Queue, Writer};

mod prepared;
mod reference;
mod subscription;
#[cfg(test)]
mod tests;
mod timeline;
mod writer;

pub use reference::events;
pub use subscription::{Filter, Since, Subscription};
pub(crate) use timeline::LogBounds;
pub(crate) use writer::Beginning;

/// What an entry is made of.
#[derive(Debug)]
pub(crate) enum Item {
    /// For people.
    Event(Box<Event>),
    /// For a session that is opened again.
    Record(Box<Record>),
}

impl From<Event> for Item {
    fn from(event: Event) -> Self {
        Self::Event(Box::new(event))
    }
}

impl From<Record> for Item {
    fn from(record: Record) -> Self {
        Self::Record(Box::new(record))
    }
}

/// The writing end. Cheap to clone; when the last one is gone, or at [`Log::close`], subscribers hear the end.
#[derive(Clone)]
pub(crate) struct Log {
    shared: Arc<Shared>,
    /// Counts the writing ends alone: subscribers and live sinks share the rest.
    _open: Arc<Open>,
}

/// Closes the log when it is dropped.
struct Open(Arc<Shared>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// What writing ends, live sinks and subscribers have in common.
///
/// Locks are taken in the order `writer`, `queue`, `timeline`; the latter two are never held across an await.
pub(crate) struct Shared {
    store: Arc<dyn Store>,
    session: SessionId,
    clock: Arc<dyn Clock>,
    redactor: Arc<Redactor>,
    /// Held for as long as an append runs.
    writer: tokio::sync::Mutex<Writer>,
    queue: Mutex<Queue>,
    timeline: Mutex<Timeline>,
    /// Something was shown, or the log is closed.
    changed: Notify,
    tickets: AtomicU64,
}

/// Names what was pushed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticket(u64);

impl Log {
    /// Opens the writing end after the entry `last`.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        session: SessionId,
        last: Seq,
        clock: Arc<dyn Clock>,
        redactor: Arc<Redactor>,
        bounds: LogBounds,
    ) -> Self {
        let shared = Arc::new(Shared {
            store,
            session,
            clock,
            redactor,
            writer: tokio::sync::Mutex::new(Writer::new(last)),
            queue: Mutex::default(),
            timeline: Mutex::new(Timeline::new(last, bounds)),
            changed: Notify::new(),
            tickets: AtomicU64::new(0),
        });
        Self { _open: Arc::new(Open(Arc::clone(&shared))), shared }
    }

    /// Queues an event for the next append; a live-only one is shown at once and never written.
    pub(crate) fn emit(&self, event: Event) {
        self.shared.emit(event);
    }

    /// Queues a record for the next append.
    pub(crate) fn record(&self, record: Record) {
        self.push(vec![record.into()]);
    }

    /// Queues items that belong together: they are never split over two appends.
    pub(crate) fn push(&self, items: Vec<Item>) {
        self.shared.push(items);
    }

    /// Writes what is queued, durably and in order, as one append, then shows its events.
    ///
    /// # Errors
    /// The store's; what was queued then stays queued, and a later flush writes it. [`AgentError::LostSession`] once
    /// somebody else has written the session: from then on nothing is written or queued.
    pub(crate) async fn flush(&self) -> Result<(), AgentError> {
        self.append(None).await
    }

    /// [`Log::push`] and [`Log::flush`].
    ///
    /// # Errors
    /// As [`Log::flush`]: the items stay queued.
    #[cfg(test)]
    pub(crate) async fn commit(&self, items: Vec<Item>) -> Result<(), AgentError> {
        self.push(items);
        self.flush().await
    }

    /// Writes items or refuses them: where they can't be written they are taken out again.
    ///
    /// # Errors
    /// As [`Log::flush`]: the items are not written and won't be. But for one case, [`AgentError::InDoubt`]: the store
    /// failed and does not say either whether it wrote them. Then they stay queued, and are written once.
    pub(crate) async fn offer(&self, items: Vec<Item>) -> Result<(), AgentError> {
        let prepared = self.shared.prepare(items);
        prepared.iter().try_for_each(Prepared::check_size)?;
        let ticket = self.shared.enqueue(prepared);
        self.append(ticket).await
    }

    /// Has the next append begin the session, all of it or nothing; `None` takes that back.
    pub(crate) async fn begin(&self, beginning: Option<Beginning>) {
        self.shared.begin(beginning).await;
    }

    /// Entries that are queued and not durable.
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.shared.queue).len()
    }

    /// The last entry that is durable and shown.
    pub(crate) fn position(&self) -> Seq {
        lock(&self.shared.timeline).position()
    }

    /// A sender of live-only events that keeps nothing open: for tools that run in parallel.
    pub(crate) fn live_sink(&self) -> LiveSink {
        LiveSink { shared: Arc::clone(&self.shared) }
    }

    /// Events that pass `filter`: those after `since` from the store, then live, in order, without a gap and none
    /// twice.
    pub(crate) fn subscribe(&self, filter: Filter, since: Since) -> Subscription {
        Subscription::new(Arc::clone(&self.shared), filter, since)
    }

    /// How many subscribers have not taken everything that was shown.
    #[cfg(test)]
    pub(crate) fn subscribers_behind(&self) -> usize {
        lock(&self.shared.timeline).behind()
    }

    /// The session is idle: nothing is kept in memory but what some subscriber has still to take.
    pub(crate) fn rest(&self) {
        lock(&self.shared.timeline).rest();
        lock(&self.shared.queue).rest();
    }

    /// Nothing more will come: subscribers get what is left, then the end.
    pub(crate) fn close(&self) {
        self.shared.close();
    }

    /// The session is over: waits for what is being written, and from then on nothing is written any more, whoever
    /// still holds an end of this. Whoever takes the session next has the log to themselves.
    pub(crate) async fn end(&self) {
        self.shared.end().await;
        self.close();
    }

    /// Appends what is queued in a task of its own, so that its outcome is accounted for even if this future is
    /// dropped: the store does not take a call back.
    async fn append(&self, ticket: Option<Ticket>) -> Result<(), AgentError> {
        if lock(&self.shared.queue).is_settled() {
            return Ok(());
        }
        match tokio::spawn(self.clone().write(ticket)).await {
            Ok(written) => written,
            Err(died) => match ticket {
                // Only its own append takes entries back: those that don't wait any more were written.
                Some(ticket) if !lock(&self.shared.queue).holds(ticket) => Ok(()),
                Some(_) => Err(AgentError::InDoubt { reason: died.to_string() }),
                None => {
                    Err(AgentError::Background { what: "writing the session log", reason: died.to_string() })
                }
            },
        }
    }

    /// Takes a writing end whole: subscribers hear of what is written before they hear the end.
    async fn write(self, ticket: Option<Ticket>) -> Result<(), AgentError> {
        self.shared.write(ticket).await
    }
}

impl Shared {
    fn emit(&self, event: Event) {
        // The many pieces of a stream don't go through a list.
        if event.is_live_only() {
            self.show(event);
        } else {
            self.push(vec![event.into()]);
        }
    }

    fn push(&self, items: Vec<Item>) {
        let prepared = self.prepare(items);
        self.enqueue(prepared);
    }

    /// Makes entries of items; live-only events are shown instead.
    fn prepare(&self, items: Vec<Item>) -> Vec<Prepared> {
        let at = self.clock.now();
        let entry = |item| match item {
            Item::Event(event) if event.is_live_only() => {
                self.show(*event);
                None
            }
            Item::Event(event) => Some(Prepared::event(event, at, &self.redactor)),
            Item::Record(record) => Some(Prepared::record(&record, at, &self.redactor)),
        };
        items.into_iter().filter_map(entry).collect()
    }

    /// Queues entries together; `None` where there are none, or none are taken any more.
    fn enqueue(&self, prepared: Vec<Prepared>) -> Option<Ticket> {
        if prepared.is_empty() {
            return None;
        }
        let ticket = Ticket(self.tickets.fetch_add(1, Ordering::Relaxed));
        lock(&self.queue).add(ticket, prepared).then_some(ticket)
    }

    /// Shows a live-only event now.
    fn show(&self, mut event: Event) {
        redact_event(&self.redactor, &mut event);
        let envelope = self.live_envelope(event);
        lock(&self.timeline).show(envelope);
        self.changed.notify_waiters();
    }

    fn live_envelope(&self, event: Event) -> Envelope {
        let (session, at, channel) = (self.session.clone(), self.clock.now(), event.channel());
        Envelope { session, seq: None, at, channel, event }
    }

    fn close(&self) {
        lock(&self.timeline).close();
        self.changed.notify_waiters();
    }
}

/// Shows live-only events without going through the log.
#[derive(Clone)]
pub(crate) struct LiveSink {
    shared: Arc<Shared>,
}

impl LiveSink {
    /// Shows one event now. One that belongs into the log is queued for the next append instead.
    pub(crate) fn send(&self, event: Event) {
        self.shared.emit(event);
    }
}

/// A lock whose holder panicked is taken all the same: each change under one of ours is made whole or not at all.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes known secrets out of whatever text a live-only event carries.
fn redact_event(redactor: &Redactor, event: &mut Event) {
    match event {
        Event::TextDelta { text, .. }
        | Event::TextEnd { text, .. }
        | Event::ThinkingDelta { text, .. }
        | Event::ThinkingEnd { text, .. }
        | Event::ToolOutput { text, .. }
        | Event::StorageFailure { message: text, .. } => {
            if let std::borrow::Cow::Owned(clean) = redactor.redact(text) {
                *text = clean;
            }
        }
        other => {
            if let Some(clean) = redacted(redactor, &*other) {
                *other = clean;
            }
        }
    }
}

/// The same without known secrets; `None` where there is none in it.
pub(crate) fn redacted<T: Serialize + DeserializeOwned>(redactor: &Redactor, value: &T) -> Option<T> {
    let before = serde_json::to_value(value).ok()?;
    let mut after = before.clone();
    redactor.redact_json(&mut after);
    if after == before { None } else { serde_json::from_value(after).ok() }
}

/// Reads an entry back as the event it was, or `None` where it is a record or from a newer version.
///
/// A long text or input that the log holds once, in the record of its message, is empty in what this gives:
/// [`events`] reads the log with all of it in place.
#[must_use]
pub fn envelope_of(session: &SessionId, entry: &Entry) -> Option<Envelope> {
    let channel = entry.channel?;
    let event = serde_json::from_slice(&entry.payload).ok()?;
    Some(Envelope { session: session.clone(), seq: Some(entry.seq), at: entry.at, channel, event })
}

/// Reads an entry back as the message it was, or `None` where it is anything else.
#[must_use]
pub fn message_of(entry: &Entry) -> Option<Message> {
    match record_of(entry) {
        Some(Record::Message { message, .. }) => Some(message),
        _ => None,
    }
}
