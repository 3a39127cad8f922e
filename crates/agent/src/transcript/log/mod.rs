//! The session's one log: entries queued, written in batches, and only then shown.
//!
//! A batch is one transaction and one fsync. Events reach subscribers after they are durable, so a
//! bookmark that somebody holds can never be given out twice; records reach nobody. Live-only
//! events go straight through.
//!
//! [`Log`] is held by the actor and by every handle. An append runs as a task of its own: whoever
//! waits for it may go away, and what became of it is known all the same. What can't be written
//! stays queued, in order. When it is not known whether an append was written, the log is looked at
//! before anything else is.
//!
//! A [`Subscription`] reads history from the store up to a cut that is taken under the lock that
//! appends are shown under, and goes on live from there. It never slows the writer: who falls too
//! far behind reads from the store again.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{Event, Seq, SessionId};
use journeyman_store::Store;
use tokio::sync::Notify;

use crate::transcript::record::Record;
use crate::{AgentError, Clock};
use core::{LogCore, lock};
use prepared::PreparedEntry;
use queue::{PushTicket, WriterState};
use timeline::Timeline;

mod append;
mod core;
mod entry;
mod prepared;
mod queue;
mod reference;
mod subscription;
#[cfg(test)]
mod tests;
mod timeline;

pub(crate) use core::{LiveSink, LogEntry, redact_value};
pub use entry::{envelope_of, message_of};
pub(crate) use queue::SessionBeginning;
pub(crate) use reference::PAGE_BYTES;
pub use reference::{EventPages, events};
pub use subscription::{EventFilter, Since, Subscription};
pub(crate) use timeline::LogBounds;

/// The writing end. Cheap to clone; when the last one is gone, or at [`Log::close`], subscribers
/// hear the end.
#[derive(Clone)]
pub(crate) struct Log {
    shared: Arc<LogCore>,
    /// Counts the writing ends alone: subscribers and live sinks share the rest.
    _open: Arc<CloseOnDrop>,
}

/// Closes the log when it is dropped.
struct CloseOnDrop(Arc<LogCore>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Log {
    /// Opens the writing end after the entry `last`.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        session: SessionId,
        last: Seq,
        clock: Clock,
        redactor: Arc<Redactor>,
        bounds: LogBounds,
    ) -> Self {
        Self::of_agent(store, session, Vec::new(), last, clock, redactor, bounds)
    }

    /// Opens the writing end of an agent's session; `agent` has the names down to it.
    pub(crate) fn of_agent(
        store: Arc<dyn Store>,
        session: SessionId,
        agent: Vec<String>,
        last: Seq,
        clock: Clock,
        redactor: Arc<Redactor>,
        bounds: LogBounds,
    ) -> Self {
        let shared = Arc::new(LogCore {
            store,
            session,
            agent,
            clock,
            redactor,
            writer: tokio::sync::Mutex::new(WriterState::new(last)),
            queue: Mutex::default(),
            timeline: Mutex::new(Timeline::new(last, bounds)),
            changed: Notify::new(),
            tickets: AtomicU64::new(0),
        });
        Self { _open: Arc::new(CloseOnDrop(Arc::clone(&shared))), shared }
    }

    /// Returns the store that keeps the log.
    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// Queues an event for the next append; a live-only one is shown at once and never written.
    pub(crate) fn emit(&self, event: Event) {
        self.shared.emit(event);
    }

    /// Queues a record for the next append.
    pub(crate) fn push_record(&self, record: Record) {
        self.push(vec![record.into()]);
    }

    /// Queues items that belong together: they are never split over two appends.
    pub(crate) fn push(&self, items: Vec<LogEntry>) {
        self.shared.push(items);
    }

    /// Writes what is queued, durably and in order, as one append, then shows its events.
    ///
    /// # Errors
    /// The store's; what was queued then stays queued, and a later flush writes it.
    /// [`AgentError::LostSession`] once somebody else has written the session: from then on nothing
    /// is written or queued.
    pub(crate) async fn flush(&self) -> Result<(), AgentError> {
        self.append_queued(None).await
    }

    /// [`Log::push`] and [`Log::flush`].
    ///
    /// # Errors
    /// As [`Log::flush`]: the items stay queued.
    #[cfg(test)]
    pub(crate) async fn push_and_flush(&self, items: Vec<LogEntry>) -> Result<(), AgentError> {
        self.push(items);
        self.flush().await
    }

    /// Writes items or refuses them: where they can't be written they are taken out again.
    ///
    /// # Errors
    /// As [`Log::flush`]: the items are not written and won't be. But for one case,
    /// [`AgentError::InDoubt`]: the store failed and does not say either whether it wrote them.
    /// Then they stay queued, and are written once.
    pub(crate) async fn write_or_remove(&self, items: Vec<LogEntry>) -> Result<(), AgentError> {
        let prepared = self.shared.prepare_entries(items);
        prepared.iter().try_for_each(PreparedEntry::check_size)?;
        let ticket = self.shared.enqueue(prepared);
        self.append_queued(ticket).await
    }

    /// Has the next append begin the session, all of it or nothing; `None` takes that back.
    pub(crate) async fn set_beginning(&self, beginning: Option<SessionBeginning>) {
        self.shared.set_beginning(beginning).await;
    }

    /// Entries that are queued and not durable.
    pub(crate) fn unwritten_count(&self) -> usize {
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

    /// Events that pass `filter`: those after `since` from the store, then live, in order, without
    /// a gap and none twice.
    pub(crate) fn subscribe(&self, filter: EventFilter, since: Since) -> Subscription {
        Subscription::new(Arc::clone(&self.shared), filter, since)
    }

    /// The number of subscribers that have not taken everything that was shown.
    #[cfg(test)]
    pub(crate) fn subscribers_behind(&self) -> usize {
        lock(&self.shared.timeline).subscribers_behind()
    }

    /// The session is idle: nothing is kept in memory but what some subscriber has still to take.
    pub(crate) fn release_memory(&self) {
        lock(&self.shared.timeline).release_memory();
        lock(&self.shared.queue).release_memory();
    }

    /// Nothing more will come: subscribers get what is left, then the end.
    pub(crate) fn close(&self) {
        self.shared.close();
    }

    /// The session is over: waits for what is being written, and from then on nothing is written
    /// any more, whoever still holds an end of this. Whoever takes the session next has the log to
    /// themselves.
    pub(crate) async fn stop_writing(&self) {
        self.shared.stop_writing().await;
        self.close();
    }

    /// Appends what is queued in a task of its own, so that its outcome is accounted for even if
    /// this future is dropped: the store does not take a call back.
    async fn append_queued(&self, ticket: Option<PushTicket>) -> Result<(), AgentError> {
        if lock(&self.shared.queue).is_settled() {
            return Ok(());
        }
        match tokio::spawn(self.clone().write(ticket)).await {
            Ok(written) => written,
            Err(died) => match ticket {
                // Only its own append takes entries back: those that don't wait any more were
                // written.
                Some(ticket) if !lock(&self.shared.queue).has_ticket(ticket) => Ok(()),
                Some(_) => Err(AgentError::InDoubt { reason: died.to_string() }),
                None => {
                    Err(AgentError::Background { what: "writing the session log", reason: died.to_string() })
                }
            },
        }
    }

    /// Takes a writing end whole: subscribers hear of what is written before they hear the end.
    async fn write(self, ticket: Option<PushTicket>) -> Result<(), AgentError> {
        self.shared.write_all(ticket).await
    }
}
