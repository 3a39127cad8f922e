//! The log of a session: entries are queued, written in batches, and shown after they are written.
//!
//! A batch is one transaction and one fsync. Events reach subscribers after they are durable, so a
//! log position that a subscriber holds is never reused. Records are not shown. Live-only events
//! are shown at once and never written.
//!
//! [`Log`] is held by the actor and by every handle. An append runs as a task of its own, so that
//! its outcome is recorded even if the caller's future is dropped. Entries that can't be written
//! stay queued, in order. If it is unknown whether an append was written, the log is read before
//! anything else is written.
//!
//! A [`Subscription`] reads history from the store up to a position taken under the lock of the
//! timeline, and continues live from there. It never slows the writer: a subscriber that falls too
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
use prepared_entry::PreparedEntry;
use queue::{PushTicket, WriterState};
use timeline::Timeline;

mod append;
mod core;
mod entry;
mod prepared_entry;
mod queue;
mod subscription;
#[cfg(test)]
mod tests;
mod text_references;
mod timeline;

pub(crate) use core::{LiveSink, LogEntry, redact_value};
pub use entry::{envelope_of, message_of};
pub(crate) use queue::SessionBeginning;
pub use subscription::{EventFilter, Since, Subscription};
pub(crate) use text_references::PAGE_BYTES;
pub use text_references::{EventPages, load_events};
pub(crate) use timeline::SubscriberBufferLimits;

/// The writing end of a session's log. Cheap to clone. Subscriptions end when the last clone is
/// dropped or [`Log::close`] is called.
#[derive(Clone)]
pub(crate) struct Log {
    shared: Arc<LogCore>,
    /// Counts only the writing ends: subscribers and live sinks share `shared`.
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
        bounds: SubscriberBufferLimits,
    ) -> Self {
        Self::open_for_agent(store, session, Vec::new(), last, clock, redactor, bounds)
    }

    /// Opens the writing end of an agent's session. `agent` is the path of agent names to the
    /// session.
    pub(crate) fn open_for_agent(
        store: Arc<dyn Store>,
        session: SessionId,
        agent: Vec<String>,
        last: Seq,
        clock: Clock,
        redactor: Arc<Redactor>,
        bounds: SubscriberBufferLimits,
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

    /// Queues an event for the next append. A live-only event is shown at once and never written.
    pub(crate) fn emit(&self, event: Event) {
        self.shared.emit(event);
    }

    /// Queues a record for the next append.
    pub(crate) fn push_record(&self, record: Record) {
        self.push(vec![record.into()]);
    }

    /// Queues items that are written in the same append.
    pub(crate) fn push(&self, items: Vec<LogEntry>) {
        self.shared.push(items);
    }

    /// Writes the queued entries durably, in order, as one append, then shows their events.
    ///
    /// # Errors
    /// Errors of the store; the entries stay queued, and a later flush writes them.
    /// [`AgentError::LostSession`] if another process has written to the session: from then on
    /// nothing is written or queued.
    pub(crate) async fn flush(&self) -> Result<(), AgentError> {
        self.append_queued(None).await
    }

    /// Calls [`Log::push`] and [`Log::flush`].
    ///
    /// # Errors
    /// As [`Log::flush`]: the items stay queued.
    #[cfg(test)]
    pub(crate) async fn push_and_flush(&self, items: Vec<LogEntry>) -> Result<(), AgentError> {
        self.push(items);
        self.flush().await
    }

    /// Writes items at once. If they can't be written, removes them from the queue.
    ///
    /// # Errors
    /// As [`Log::flush`]; the items are not written later. Only after [`AgentError::InDoubt`],
    /// where the store may have written the items, they stay queued and are written once.
    pub(crate) async fn write_or_remove(&self, items: Vec<LogEntry>) -> Result<(), AgentError> {
        let prepared = self.shared.prepare_entries(items);
        prepared.iter().try_for_each(PreparedEntry::check_size)?;
        let ticket = self.shared.enqueue(prepared);
        self.append_queued(ticket).await
    }

    /// Makes the next append create the session, atomically with its entries; `None` cancels that.
    pub(crate) async fn set_session_beginning(&self, beginning: Option<SessionBeginning>) {
        self.shared.set_session_beginning(beginning).await;
    }

    /// Returns the number of queued entries that are not durable.
    pub(crate) fn unwritten_count(&self) -> usize {
        lock(&self.shared.queue).len()
    }

    /// Returns the position of the last entry that is durable and shown.
    pub(crate) fn position(&self) -> Seq {
        lock(&self.shared.timeline).position()
    }

    /// Returns a sender of live-only events that doesn't keep the log open, for tools that run in
    /// parallel.
    pub(crate) fn live_sink(&self) -> LiveSink {
        LiveSink { shared: Arc::clone(&self.shared) }
    }

    /// Subscribes to the events that pass `filter`: first those after `since` from the store, then
    /// live events, in order, without gaps or repetitions.
    pub(crate) fn subscribe(&self, filter: EventFilter, since: Since) -> Subscription {
        Subscription::new(Arc::clone(&self.shared), filter, since)
    }

    /// Returns the number of subscribers that have not taken all shown events.
    #[cfg(test)]
    pub(crate) fn count_subscribers_behind(&self) -> usize {
        lock(&self.shared.timeline).count_subscribers_behind()
    }

    /// Frees memory while the session is idle, except for events that subscribers have not taken.
    pub(crate) fn release_memory(&self) {
        lock(&self.shared.timeline).release_memory();
        lock(&self.shared.queue).release_memory();
    }

    /// Ends all subscriptions after the remaining events.
    pub(crate) fn close(&self) {
        self.shared.close();
    }

    /// Waits for the running append and stops all writing, also by other clones, so that another
    /// process can take the session.
    pub(crate) async fn stop_writing(&self) {
        self.shared.stop_writing().await;
        self.close();
    }

    /// Appends the queued entries in a task of its own, so that the outcome is recorded even if
    /// this future is dropped: the store can't cancel an append.
    async fn append_queued(&self, ticket: Option<PushTicket>) -> Result<(), AgentError> {
        if lock(&self.shared.queue).is_settled() {
            return Ok(());
        }
        match tokio::spawn(self.clone().write_owned(ticket)).await {
            Ok(written) => written,
            Err(died) => match ticket {
                // Only this append removes its entries unwritten, so entries that have left the
                // queue were written.
                Some(ticket) if !lock(&self.shared.queue).has_ticket(ticket) => Ok(()),
                Some(_) => Err(AgentError::InDoubt { reason: died.to_string() }),
                None => {
                    Err(AgentError::Background { what: "writing the session log", reason: died.to_string() })
                }
            },
        }
    }

    /// Writes queued entries. Takes the writing end by value, so that subscribers get the events
    /// before the log closes.
    async fn write_owned(self, ticket: Option<PushTicket>) -> Result<(), AgentError> {
        self.shared.write_all(ticket).await
    }
}
