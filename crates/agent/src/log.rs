//! The session's one log: entries queued, written in batches, and only then shown.
//!
//! A batch is one transaction and one fsync. Events reach subscribers after they are durable, so a
//! bookmark that somebody holds can never be given out twice. Live-only deltas go straight through.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{Envelope, Event, Message, Seq, SessionId, UnixMillis};

use journeyman_store::{Entry, NewEntry, Store};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::broadcast;

use crate::record::{Record, record_of};
use crate::{AgentError, Clock};

/// How many envelopes a slow subscriber may fall behind before it re-reads from the log. A burst of
/// streamed text is some hundreds; 4,096 pointers are 32 KiB.
const LIVE_CAPACITY: usize = 4_096;

/// The writing end. One a session, held by its actor.
pub(crate) struct Log {
    store: Arc<dyn Store>,
    session: SessionId,
    last: Seq,
    pending: Vec<Pending>,
    position: Arc<Position>,
    live: broadcast::Sender<Shown>,
    clock: Arc<dyn Clock>,
    redactor: Arc<Redactor>,
}

/// An envelope on its way to subscribers, and how far the log was then.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) after: Seq,
    pub(crate) envelope: Arc<Envelope>,
}

/// The last entry that was shown, for whoever doesn't hold the log.
#[derive(Debug, Default)]
pub(crate) struct Position(AtomicU64);

impl Position {
    pub(crate) fn get(&self) -> Seq {
        Seq(self.0.load(Ordering::Acquire))
    }

    fn set(&self, seq: Seq) {
        self.0.store(seq.0, Ordering::Release);
    }
}

/// An entry that waits for the next batch.
enum Pending {
    Event(Box<Event>, UnixMillis),
    Record(Box<Record>, UnixMillis),
}

impl Log {
    /// Opens the writing end after `last`.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        session: SessionId,
        last: Seq,
        clock: Arc<dyn Clock>,
        redactor: Arc<Redactor>,
    ) -> Self {
        let (live, _) = broadcast::channel(LIVE_CAPACITY);
        let position = Arc::new(Position::default());
        position.set(last);
        Self { store, session, last, pending: Vec::new(), position, live, clock, redactor }
    }

    /// How far the log is.
    pub(crate) fn position(&self) -> Arc<Position> {
        Arc::clone(&self.position)
    }

    /// Where subscribers listen.
    pub(crate) fn live(&self) -> broadcast::Sender<Shown> {
        self.live.clone()
    }

    /// A sender of live-only events that doesn't borrow the log: for tools that run in parallel.
    pub(crate) fn live_sink(&self) -> LiveSink {
        LiveSink {
            session: self.session.clone(),
            position: Arc::clone(&self.position),
            live: self.live.clone(),
            clock: Arc::clone(&self.clock),
            redactor: Arc::clone(&self.redactor),
        }
    }

    /// Queues an event for the next batch; a live-only one is shown at once and never written.
    pub(crate) fn emit(&mut self, event: Event) {
        if event.is_live_only() {
            self.live_sink().send(event);
        } else {
            self.pending.push(Pending::Event(Box::new(event), self.clock.now()));
        }
    }

    /// Queues a record for the next batch.
    pub(crate) fn record(&mut self, record: Record) {
        self.pending.push(Pending::Record(Box::new(record), self.clock.now()));
    }

    /// Writes what is queued, durably, then shows its events.
    ///
    /// # Errors
    /// The store's. What was queued stays queued, so a later flush writes it in order.
    pub(crate) async fn flush(&mut self) -> Result<(), AgentError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let (entries, cleaned): (Vec<_>, Vec<_>) =
            self.pending.iter().map(|pending| self.entry(pending)).unzip();
        let last = self.store.append(&self.session, self.last, entries).await?;
        let mut seq = self.last;
        for (pending, cleaned) in std::mem::take(&mut self.pending).into_iter().zip(cleaned) {
            seq = seq.next();
            self.position.set(seq);
            if let Pending::Event(event, at) = pending {
                let event = cleaned.unwrap_or(*event);
                let channel = event.channel();
                let envelope = Envelope { session: self.session.clone(), seq: Some(seq), at, channel, event };
                // An error only says that nobody listens.
                self.live.send(Shown { after: seq, envelope: Arc::new(envelope) }).ok();
            }
        }
        self.last = last;
        Ok(())
    }

    /// The stored form of a queued entry, with known secrets taken out, and the event to show where that
    /// made a difference: an entry is searched once for both.
    fn entry(&self, pending: &Pending) -> (NewEntry, Option<Event>) {
        let (channel, kind, at, before) = match pending {
            Pending::Event(event, at) => {
                (Some(event.channel()), event.kind(), *at, serde_json::to_value(event).unwrap_or_default())
            }
            Pending::Record(record, at) => {
                (None, record.kind(), *at, serde_json::to_value(record).unwrap_or_default())
            }
        };
        let mut after = before.clone();
        self.redactor.redact_json(&mut after);
        let entry = NewEntry { channel, kind: kind.to_owned(), at, payload: after.to_string().into_bytes() };
        let cleaned =
            if channel.is_none() || after == before { None } else { serde_json::from_value(after).ok() };
        (entry, cleaned)
    }
}

/// Shows live-only events without going through the log.
#[derive(Clone)]
pub(crate) struct LiveSink {
    session: SessionId,
    position: Arc<Position>,
    live: broadcast::Sender<Shown>,
    clock: Arc<dyn Clock>,
    redactor: Arc<Redactor>,
}

impl LiveSink {
    /// Shows one event now.
    pub(crate) fn send(&self, mut event: Event) {
        redact_event(&self.redactor, &mut event);
        let channel = event.channel();
        let (at, after) = (self.clock.now(), self.position.get());
        let envelope = Envelope { session: self.session.clone(), seq: None, at, channel, event };
        // An error only says that nobody listens.
        self.live.send(Shown { after, envelope: Arc::new(envelope) }).ok();
    }
}

/// Takes known secrets out of whatever text an event carries.
fn redact_event(redactor: &Redactor, event: &mut Event) {
    match event {
        Event::TextDelta { text, .. }
        | Event::ThinkingDelta { text, .. }
        | Event::ToolOutput { text, .. } => {
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

/// Reads an entry back as the event it was, or `None` where it is a transcript entry or from a newer version.
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
