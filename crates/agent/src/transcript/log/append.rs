//! Appends queued entries to the store, and resolves appends with an unknown outcome.

use journeyman_protocol::{Envelope, Event, Seq, UnixMillis};
use journeyman_store::{Entry, NewEntry, NewSession, SESSION_STATUS_READY, SessionOrigin, StoreError};

use super::core::{LogCore, lock};
use super::queue::{PushTicket, SessionBeginning, WriterState, positions_after};
use super::timeline::ShownEnvelope;
use crate::AgentError;

impl LogCore {
    /// Writes all queued entries. On failure, removes the entries under `ticket` from the queue,
    /// unless the store may have written them.
    pub(super) async fn write_all(&self, ticket: Option<PushTicket>) -> Result<(), AgentError> {
        let mut writer = self.writer.lock().await;
        let was_over = writer.lost || writer.ended;
        let Err(error) = self.write_queue(&mut writer).await else { return Ok(()) };
        let mut kept = false;
        if let Some(ticket) = ticket {
            let mut queue = lock(&self.queue);
            let Some(place) = queue.place_of(ticket) else {
                // The entries were written; later entries caused the error.
                return Ok(());
            };
            // Entries after those in doubt were never given to the store.
            kept = place < writer.in_doubt;
            if !kept {
                queue.remove_unwritten(ticket);
            }
        }
        // If the session is gone, only the caller gets the error: no queued entry can be written
        // later.
        let gone = matches!(error, AgentError::Store(StoreError::Gone { .. }));
        if !was_over && !gone {
            let waiting = lock(&self.queue).len() as u64;
            self.show_event(Event::StorageFailure { message: error.to_string(), waiting });
        }
        if kept { Err(AgentError::InDoubt { reason: error.to_string() }) } else { Err(error) }
    }

    /// Makes the next append create the session, unless it exists already.
    pub(super) async fn set_session_beginning(&self, beginning: Option<SessionBeginning>) {
        let mut writer = self.writer.lock().await;
        writer.beginning = beginning.filter(|_| writer.last == Seq::START);
    }

    /// Stops all writing.
    pub(super) async fn stop_writing(&self) {
        self.writer.lock().await.ended = true;
    }

    async fn write_queue(&self, writer: &mut WriterState) -> Result<(), AgentError> {
        if writer.ended {
            return Err(AgentError::Ended);
        }
        if writer.lost {
            return Err(self.mark_lost(writer));
        }
        if writer.in_doubt > 0 && !self.is_log_unchanged(writer).await? {
            self.count_written(writer).await?;
        }
        loop {
            let (entries, status) = {
                let mut queue = lock(&self.queue);
                (queue.build_entries(writer.last, &writer.known), queue.session_status())
            };
            let count = entries.len();
            if count == 0 {
                return Ok(());
            }
            // Set before the call, so that the next attempt checks the log first, even after a
            // panic.
            writer.in_doubt = count;
            let Err(error) = self.append_to_store(writer, entries, status).await else {
                self.mark_written(writer, count);
                return Ok(());
            };
            if !matches!(error, StoreError::Conflict { .. })
                && self.found_no_new_entries(writer, &error).await
            {
                return Err(error.into());
            }
            match self.count_written(writer).await {
                Ok(settled) if settled == count => return Ok(()),
                // An earlier attempt was written. The remaining entries go next, and their number
                // falls each time.
                Ok(_) => {}
                Err(lost @ AgentError::LostSession { .. }) => return Err(lost),
                // Reading failed as well. The first error says more.
                Err(_) => return Err(error.into()),
            }
        }
    }

    /// Gives entries to the store: creates the session with its first entries, and sets a new
    /// status for lists.
    async fn append_to_store(
        &self,
        writer: &WriterState,
        entries: Vec<NewEntry>,
        status: Option<String>,
    ) -> Result<Seq, StoreError> {
        match (&writer.beginning, status) {
            (Some(SessionBeginning { root, title, lease }), status) => {
                let (id, origin) = (self.session.clone(), SessionOrigin::Root(root.clone()));
                let (title, now) = (title.clone(), self.clock.now());
                let status = status.unwrap_or_else(|| SESSION_STATUS_READY.to_owned());
                let lease = Some(lease.clone());
                self.store
                    .create_with_entries(NewSession { id, origin, title, now, status, lease, entries })
                    .await
            }
            (None, Some(status)) => {
                self.store.append_and_set_status(&self.session, writer.last, entries, &status).await
            }
            (None, None) => self.store.append(&self.session, writer.last, entries).await,
        }
    }

    /// Returns true if a failed append wrote nothing, or if that can't be determined now. Returns
    /// false if the log has new entries to compare.
    async fn found_no_new_entries(&self, writer: &mut WriterState, error: &StoreError) -> bool {
        if was_refused(error) {
            writer.in_doubt = 0;
            return true;
        }
        match self.is_log_unchanged(writer).await {
            Ok(nothing) => nothing,
            Err(_) => {
                // The store guarantees that only uncertain errors may have written entries.
                if !error.is_uncertain() {
                    writer.in_doubt = 0;
                }
                true
            }
        }
    }

    /// Returns true if the log still ends at our last entry. Tests this with an empty append, which
    /// also makes entries in doubt durable; a read would not.
    async fn is_log_unchanged(&self, writer: &mut WriterState) -> Result<bool, AgentError> {
        match self.store.append(&self.session, writer.last, Vec::new()).await {
            Ok(_) => {
                writer.in_doubt = 0;
                Ok(true)
            }
            Err(StoreError::Conflict { .. }) => Ok(false),
            Err(StoreError::UnknownSession { .. }) if writer.beginning.is_some() => {
                writer.in_doubt = 0;
                Ok(true)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Compares new entries of the log with the entries in doubt, and returns how many of those
    /// were written. Any other new entry means that another process wrote to the session.
    async fn count_written(&self, writer: &mut WriterState) -> Result<usize, AgentError> {
        let tried = writer.in_doubt;
        let found = self.store.read(&self.session, writer.last, tried.saturating_add(1)).await?;
        let ours = {
            let mut queue = lock(&self.queue);
            let entries = queue.build_entries(writer.last, &writer.known);
            found
                .iter()
                .zip(entries.iter().take(tried))
                .take_while(|(found, tried)| is_same_entry(found, tried))
                .count()
        };
        self.mark_written(writer, ours);
        // No new entry at all means that the log became shorter.
        if ours == 0 || ours < found.len() { Err(self.mark_lost(writer)) } else { Ok(ours) }
    }

    /// Marks the first `count` queued entries as durable: publishes their events and removes them
    /// from the queue.
    fn mark_written(&self, writer: &mut WriterState, count: usize) {
        writer.in_doubt = 0;
        if count == 0 {
            return;
        }
        writer.beginning = None;
        {
            let mut queue = lock(&self.queue);
            let mut shown = Vec::new();
            let count = count.min(queue.items.len());
            for ((_, prepared), seq) in queue.items.drain(..count).zip(positions_after(writer.last)) {
                writer.last = seq;
                writer.known.add(seq, &prepared.pieces);
                let weight = prepared.approximate_bytes();
                if let Some(event) = prepared.event {
                    shown.push(ShownEnvelope {
                        envelope: self.envelope_at(seq, prepared.at, *event).into(),
                        weight,
                    });
                }
            }
            lock(&self.timeline).publish(writer.last, shown);
        }
        self.changed.notify_waiters();
    }

    fn envelope_at(&self, seq: Seq, at: UnixMillis, event: Event) -> Envelope {
        let (session, agent) = (self.session.clone(), self.agent.clone());
        Envelope { session, seq: Some(seq), at, channel: event.channel(), agent, event }
    }

    /// Marks the session as lost and stops all writing, because this process no longer knows the
    /// log's state.
    fn mark_lost(&self, writer: &mut WriterState) -> AgentError {
        (writer.lost, writer.in_doubt) = (true, 0);
        lock(&self.queue).lost = true;
        AgentError::LostSession { session: self.session.clone(), last: writer.last }
    }
}

/// Returns true if the error guarantees that nothing was written.
fn was_refused(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::UnknownSession { .. }
            | StoreError::Gone { .. }
            | StoreError::EntryTooLarge { .. }
            | StoreError::Leased { .. }
            | StoreError::NewerFormat { .. }
            | StoreError::Busy { .. }
            | StoreError::NoAccess { .. }
    )
}

/// Returns true if a stored entry is the one we tried to write, byte for byte.
fn is_same_entry(found: &Entry, tried: &NewEntry) -> bool {
    // Stores keep times as signed numbers.
    let at = UnixMillis(tried.at.0.min(i64::MAX as u64));
    found.channel == tried.channel
        && found.kind == tried.kind
        && found.at == at
        && found.payload == tried.payload
}
