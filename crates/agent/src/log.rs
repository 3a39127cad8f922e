//! The session's one log: entries queued, written in batches, and only then shown.
//!
//! A batch is one transaction and one fsync. Events reach subscribers after they are durable, so a
//! bookmark that somebody holds can never be given out twice. Live-only deltas go straight through.

use std::sync::Arc;

use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{Envelope, Event, Message, Seq, SessionId, UnixMillis};
use journeyman_store::{Entry, NewEntry, Store};
use tokio::sync::broadcast;

use crate::{AgentError, Clock};

/// The kind of a transcript entry.
pub(crate) const MESSAGE_KIND: &str = "message";

/// How many envelopes a slow subscriber may fall behind before it re-reads from the log. A burst of
/// streamed text is some hundreds; 4,096 pointers are 32 KiB.
const LIVE_CAPACITY: usize = 4_096;

/// The writing end. One a session, held by its actor.
pub(crate) struct Log {
    store: Arc<dyn Store>,
    session: SessionId,
    last: Seq,
    pending: Vec<Pending>,
    live: broadcast::Sender<Arc<Envelope>>,
    clock: Arc<dyn Clock>,
    redactor: Arc<Redactor>,
}

/// An entry that waits for the next batch.
enum Pending {
    Event(Box<Event>, UnixMillis),
    Message(Message, UnixMillis),
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
        Self { store, session, last, pending: Vec::new(), live, clock, redactor }
    }

    /// Where subscribers listen.
    pub(crate) fn live(&self) -> broadcast::Sender<Arc<Envelope>> {
        self.live.clone()
    }

    /// A sender of live-only events that doesn't borrow the log: for tools that run in parallel.
    pub(crate) fn live_sink(&self) -> LiveSink {
        LiveSink {
            session: self.session.clone(),
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

    /// Queues a message of the transcript for the next batch.
    pub(crate) fn message(&mut self, message: &Message) {
        self.pending.push(Pending::Message(message.clone(), self.clock.now()));
    }

    /// Writes what is queued, durably, then shows its events.
    ///
    /// # Errors
    /// The store's. What was queued stays queued, so a later flush writes it in order.
    pub(crate) async fn flush(&mut self) -> Result<(), AgentError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let entries = self.pending.iter().map(|pending| self.entry(pending)).collect();
        let last = self.store.append(&self.session, self.last, entries).await?;
        let mut seq = self.last;
        for pending in std::mem::take(&mut self.pending) {
            seq = seq.next();
            if let Pending::Event(mut event, at) = pending {
                redact_event(&self.redactor, &mut event);
                let channel = event.channel();
                let envelope =
                    Envelope { session: self.session.clone(), seq: Some(seq), at, channel, event: *event };
                // An error only says that nobody listens.
                self.live.send(Arc::new(envelope)).ok();
            }
        }
        self.last = last;
        Ok(())
    }

    /// The stored form of a queued entry, with known secrets taken out.
    fn entry(&self, pending: &Pending) -> NewEntry {
        let (channel, kind, at, mut value) = match pending {
            Pending::Event(event, at) => {
                (Some(event.channel()), event.kind(), *at, serde_json::to_value(event).unwrap_or_default())
            }
            Pending::Message(message, at) => {
                (None, MESSAGE_KIND, *at, serde_json::to_value(message).unwrap_or_default())
            }
        };
        self.redactor.redact_json(&mut value);
        NewEntry { channel, kind: kind.to_owned(), at, payload: value.to_string().into_bytes() }
    }
}

/// Shows live-only events without going through the log.
#[derive(Clone)]
pub(crate) struct LiveSink {
    session: SessionId,
    live: broadcast::Sender<Arc<Envelope>>,
    clock: Arc<dyn Clock>,
    redactor: Arc<Redactor>,
}

impl LiveSink {
    /// Shows one event now.
    pub(crate) fn send(&self, mut event: Event) {
        redact_event(&self.redactor, &mut event);
        let channel = event.channel();
        let at = self.clock.now();
        // An error only says that nobody listens.
        self.live
            .send(Arc::new(Envelope { session: self.session.clone(), seq: None, at, channel, event }))
            .ok();
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
            let Ok(mut value) = serde_json::to_value(&*other) else { return };
            let before = value.clone();
            redactor.redact_json(&mut value);
            if value != before
                && let Ok(clean) = serde_json::from_value(value)
            {
                *other = clean;
            }
        }
    }
}

/// Reads an entry back as the event it was, or `None` where it is a transcript entry or from a newer version.
#[must_use]
pub fn envelope_of(session: &SessionId, entry: &Entry) -> Option<Envelope> {
    let channel = entry.channel?;
    let event = serde_json::from_slice(&entry.payload).ok()?;
    Some(Envelope { session: session.clone(), seq: Some(entry.seq), at: entry.at, channel, event })
}

/// Reads an entry back as the message it was, or `None` where it is an event.
#[must_use]
pub fn message_of(entry: &Entry) -> Option<Message> {
    if entry.channel.is_some() || entry.kind != MESSAGE_KIND {
        return None;
    }
    serde_json::from_slice(&entry.payload).ok()
}
