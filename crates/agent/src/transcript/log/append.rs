//! Appending: what is queued is handed to the store, and looked up where the outcome isn't known.

use journeyman_protocol::{Envelope, Event, Seq, UnixMillis};
use journeyman_store::{Entry, NewEntry, NewSession, Origin, STATUS_NEW, StoreError};

use super::core::{LogCore, lock};
use super::queue::{Beginning, Ticket, Writer, after};
use super::timeline::Showing;
use crate::AgentError;

impl LogCore {
    /// Writes everything that is queued. On failure what came under `ticket` is taken out again,
    /// unless the store may have it.
    pub(super) async fn write(&self, ticket: Option<Ticket>) -> Result<(), AgentError> {
        let mut writer = self.writer.lock().await;
        let was_over = writer.lost || writer.ended;
        let Err(error) = self.write_queue(&mut writer).await else { return Ok(()) };
        let mut kept = false;
        if let Some(ticket) = ticket {
            let mut queue = lock(&self.queue);
            let Some(place) = queue.place_of(ticket) else {
                // What failed came behind it, or before it was settled that it had been written.
                return Ok(());
            };
            // What lies behind the entries in doubt was never handed to the store.
            kept = place < writer.in_doubt;
            if !kept {
                queue.take_back(ticket);
            }
        }
        // Of a log that is gone whoever asked for this tells, once: nothing waits for it any more.
        let gone = matches!(error, AgentError::Store(StoreError::Gone { .. }));
        if !was_over && !gone {
            let waiting = lock(&self.queue).len() as u64;
            self.show(Event::StorageFailure { message: error.to_string(), waiting });
        }
        if kept { Err(AgentError::InDoubt { reason: error.to_string() }) } else { Err(error) }
    }

    /// The next append begins the session, if nothing has yet.
    pub(super) async fn begin(&self, beginning: Option<Beginning>) {
        let mut writer = self.writer.lock().await;
        writer.beginning = beginning.filter(|_| writer.last == Seq::START);
    }

    /// Nothing is written after this.
    pub(super) async fn end(&self) {
        self.writer.lock().await.ended = true;
    }

    async fn write_queue(&self, writer: &mut Writer) -> Result<(), AgentError> {
        if writer.ended {
            return Err(AgentError::Ended);
        }
        if writer.lost {
            return Err(self.lost(writer));
        }
        if writer.in_doubt > 0 && !self.nothing_came(writer).await? {
            self.compare(writer).await?;
        }
        loop {
            let (entries, status) = {
                let mut queue = lock(&self.queue);
                (queue.entries(writer.last, &writer.known), queue.status())
            };
            let count = entries.len();
            if count == 0 {
                return Ok(());
            }
            // Whatever happens to this call from here on, a panic included, the next one looks
            // first.
            writer.in_doubt = count;
            let Err(error) = self.hand_over(writer, entries, status).await else {
                self.written(writer, count);
                return Ok(());
            };
            if !matches!(error, StoreError::Conflict { .. }) && self.came_to_nothing(writer, &error).await {
                return Err(error.into());
            }
            match self.compare(writer).await {
                Ok(settled) if settled == count => return Ok(()),
                // An earlier attempt had been written. What came behind it goes now; there is less
                // of it each time.
                Ok(_) => {}
                Err(lost @ AgentError::LostSession { .. }) => return Err(lost),
                // The store can't be read either. Its first words say more.
                Err(_) => return Err(error.into()),
            }
        }
    }

    /// Gives entries to the store: with the session itself where they are its first, and with what
    /// lists show.
    async fn hand_over(
        &self,
        writer: &Writer,
        entries: Vec<NewEntry>,
        status: Option<String>,
    ) -> Result<Seq, StoreError> {
        match (&writer.beginning, status) {
            (Some(Beginning { root, title, lease }), status) => {
                let (id, origin) = (self.session.clone(), Origin::Root(root.clone()));
                let (title, now) = (title.clone(), self.clock.now());
                let status = status.unwrap_or_else(|| STATUS_NEW.to_owned());
                let lease = Some(lease.clone());
                self.store.begin(NewSession { id, origin, title, now, status, lease, entries }).await
            }
            (None, Some(status)) => self.store.append_as(&self.session, writer.last, entries, &status).await,
            (None, None) => self.store.append(&self.session, writer.last, entries).await,
        }
    }

    /// Whether nothing can be said of a failed append but that it failed: it wrote nothing, or that
    /// can't be told now. Otherwise there are entries to be looked at.
    async fn came_to_nothing(&self, writer: &mut Writer, error: &StoreError) -> bool {
        if was_refused(error) {
            writer.in_doubt = 0;
            return true;
        }
        match self.nothing_came(writer).await {
            Ok(nothing) => nothing,
            Err(_) => {
                // By the store's word an error that is not uncertain has written nothing.
                if !error.is_uncertain() {
                    writer.in_doubt = 0;
                }
                true
            }
        }
    }

    /// Whether the log is where we left it. Asked by way of an append of nothing: where there are
    /// entries in doubt the store then sees to it that they are durable, which a read does not.
    async fn nothing_came(&self, writer: &mut Writer) -> Result<bool, AgentError> {
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

    /// Looks at what came into the log behind our last entry, and gives how many of the entries in
    /// doubt it is. What is not ours is somebody else's.
    async fn compare(&self, writer: &mut Writer) -> Result<usize, AgentError> {
        let tried = writer.in_doubt;
        let found = self.store.read(&self.session, writer.last, tried.saturating_add(1)).await?;
        let ours = {
            let mut queue = lock(&self.queue);
            let entries = queue.entries(writer.last, &writer.known);
            found
                .iter()
                .zip(entries.iter().take(tried))
                .take_while(|(found, tried)| same(found, tried))
                .count()
        };
        self.written(writer, ours);
        // Nothing at all: the log is shorter than it was.
        if ours == 0 || ours < found.len() { Err(self.lost(writer)) } else { Ok(ours) }
    }

    /// The first `count` entries of the queue are durable: shows them, and only then lets go of
    /// them.
    fn written(&self, writer: &mut Writer, count: usize) {
        writer.in_doubt = 0;
        if count == 0 {
            return;
        }
        writer.beginning = None;
        {
            let mut queue = lock(&self.queue);
            let mut shown = Vec::new();
            let count = count.min(queue.items.len());
            for ((_, prepared), seq) in queue.items.drain(..count).zip(after(writer.last)) {
                writer.last = seq;
                writer.known.add(seq, &prepared.pieces);
                let weight = prepared.weight();
                if let Some(event) = prepared.event {
                    shown.push(Showing { envelope: self.envelope(seq, prepared.at, *event).into(), weight });
                }
            }
            lock(&self.timeline).publish(writer.last, shown);
        }
        self.changed.notify_waiters();
    }

    fn envelope(&self, seq: Seq, at: UnixMillis, event: Event) -> Envelope {
        Envelope { session: self.session.clone(), seq: Some(seq), at, channel: event.channel(), event }
    }

    /// From here on nothing is written: what this process would say of the session is not true any
    /// more.
    fn lost(&self, writer: &mut Writer) -> AgentError {
        (writer.lost, writer.in_doubt) = (true, 0);
        lock(&self.queue).lost = true;
        AgentError::LostSession { session: self.session.clone(), last: writer.last }
    }
}

/// Whether the store says that it wrote nothing.
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

/// Whether an entry of the log is the one that was tried, byte for byte.
fn same(found: &Entry, tried: &NewEntry) -> bool {
    // Stores keep times as signed numbers.
    let at = UnixMillis(tried.at.0.min(i64::MAX as u64));
    found.channel == tried.channel
        && found.kind == tried.kind
        && found.at == at
        && found.payload == tried.payload
}
