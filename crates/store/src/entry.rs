//! The entries of a log, and the trait that every log implements.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_protocol::{Channel, Seq, SessionId, UnixMillis};

use crate::StoreError;

/// Maximum bytes of one entry, kind and payload together. Larger payloads (files, images) belong in
/// blobs; the bound keeps reads of a few entries far below the program's memory budget.
pub const MAX_ENTRY_BYTES: usize = 16 * 1024 * 1024;

/// Maximum sessions returned by [`Store::find_sessions`]: enough to report an ambiguous prefix and
/// list some.
pub const MAX_FOUND_SESSIONS: usize = 100;

/// The status of a session that was just created.
pub const SESSION_STATUS_READY: &str = "ready";

/// An entry to append. The log assigns its sequence number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEntry {
    /// The channel of an event; `None` for a transcript entry (a message, a tool record).
    pub channel: Option<Channel>,
    /// The kind of the payload, in the writer's words. The store doesn't read it.
    pub kind: String,
    /// Its time.
    pub at: UnixMillis,
    /// Opaque bytes.
    pub payload: Vec<u8>,
}

/// An entry of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its sequence number: 1 for the first entry, without gaps.
    pub seq: Seq,
    /// The channel of an event; `None` for a transcript entry.
    pub channel: Option<Channel>,
    /// The kind of the payload, in the writer's words.
    pub kind: String,
    /// The time given by the writer, at most `i64::MAX` milliseconds.
    pub at: UnixMillis,
    /// Opaque bytes.
    pub payload: Vec<u8>,
}

/// A session's entry in a list of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    /// The session.
    pub id: SessionId,
    /// The project's root, as given at creation.
    pub root: String,
    /// One line for people.
    pub title: String,
    /// The time of its creation.
    pub created: UnixMillis,
    /// The latest of the creation, the newest entry and the last change of status.
    pub updated: UnixMillis,
    /// Its last entry; [`Seq::START`] while it has none.
    pub last: Seq,
    /// [`SESSION_STATUS_READY`], or the last status of [`Store::set_status`].
    pub status: String,
}

/// A session that begins with its first entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// The session.
    pub id: SessionId,
    /// The origin of the session.
    pub origin: SessionOrigin,
    /// One line for people.
    pub title: String,
    /// The time of its beginning.
    pub now: UnixMillis,
    /// The status that lists show.
    pub status: String,
    /// The initial lease, as for [`Store::acquire_lease`]: the holder and the milliseconds.
    pub lease: Option<(String, u64)>,
    /// Its first entries, after those of the forked session if there is one.
    pub entries: Vec<NewEntry>,
}

/// The origin of a new session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionOrigin {
    /// A session without a parent, for the project at this root.
    Root(String),
    /// A copy of another session's first entries, as for [`Store::fork`].
    Fork {
        /// The other session.
        parent: SessionId,
        /// The last entry that is copied.
        at: Seq,
    },
}

/// A durable set of append-only logs, one a session. The store doesn't interpret entries.
///
/// Calls take effect in the order in which they are made, not in the order in which the futures are
/// polled. Dropping a future doesn't cancel its call.
pub trait Store: Send + Sync {
    /// Creates a session without entries.
    ///
    /// # Errors
    /// [`StoreError::SessionExists`]; failures of the medium.
    fn create(
        &self,
        id: &SessionId,
        root: &str,
        title: &str,
        now: UnixMillis,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Creates a session with a copy of the parent's entries up to `at`, atomically. The child has
    /// the parent's root, [`SESSION_STATUS_READY`] and no lease. Later entries of one session don't
    /// appear in the other.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`] for the parent; [`StoreError::SessionExists`] for the child;
    /// [`StoreError::NoSuchEntry`] when the parent has no entry `at`; failures of the medium.
    fn fork(
        &self,
        parent: &SessionId,
        at: Seq,
        child: &SessionId,
        title: &str,
        now: UnixMillis,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Appends all entries or none, and returns the sequence number of the last one. The appended
    /// entries survive a power failure. Without entries only `expected` is checked.
    ///
    /// After an error for which [`StoreError::is_uncertain`] is true, the entries may be stored or
    /// not. A retry with the same `expected` settles this: either the entries are stored now, or
    /// the retry returns a [`StoreError::Conflict`], and the entries after `expected` are the
    /// caller's own, durable by then, or another writer's. After every other error nothing was
    /// stored.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the log's last entry isn't `expected`;
    /// [`StoreError::UnknownSession`]; [`StoreError::EntryTooLarge`]; failures of the medium.
    fn append(
        &self,
        session: &SessionId,
        expected: Seq,
        entries: Vec<NewEntry>,
    ) -> BoxFuture<'_, Result<Seq, StoreError>>;

    /// Creates a session with its first entries, and returns the sequence number of the last one. A
    /// durable store does this atomically: a crash leaves the whole session or nothing. An existing
    /// session without parent and entries counts as an earlier attempt of the same call.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the session has entries; as [`Store::fork`],
    /// [`Store::acquire_lease`] and [`Store::append`].
    fn create_with_entries(&self, new: NewSession) -> BoxFuture<'_, Result<Seq, StoreError>> {
        async move {
            let NewSession { id, origin, title, now, status, lease, entries } = new;
            check_entry_sizes(&entries)?;
            let expected = match &origin {
                SessionOrigin::Root(root) => match self.create(&id, root, &title, now).await {
                    Ok(()) | Err(StoreError::SessionExists { .. }) => Seq::START,
                    Err(error) => return Err(error),
                },
                SessionOrigin::Fork { parent, at } => {
                    self.fork(parent, *at, &id, &title, now).await?;
                    *at
                }
            };
            if let Some((holder, ttl_ms)) = &lease {
                self.acquire_lease(&id, holder, now, *ttl_ms).await?;
            }
            let last = self.append(&id, expected, entries).await?;
            if status != SESSION_STATUS_READY {
                self.set_status(&id, &status, now).await?;
            }
            Ok(last)
        }
        .boxed()
    }

    /// Appends as [`Store::append`] does and sets the status that lists show; a durable store does
    /// both atomically.
    ///
    /// # Errors
    /// As [`Store::append`].
    fn append_and_set_status(
        &self,
        session: &SessionId,
        expected: Seq,
        entries: Vec<NewEntry>,
        status: &str,
    ) -> BoxFuture<'_, Result<Seq, StoreError>> {
        let (session, status) = (session.clone(), status.to_owned());
        async move {
            let newest = entries.iter().map(|entry| entry.at).max().unwrap_or_default();
            let last = self.append(&session, expected, entries).await?;
            self.set_status(&session, &status, newest).await?;
            Ok(last)
        }
        .boxed()
    }

    /// Returns at most `limit` entries after `after`, in order.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`]; failures of the medium.
    fn read(
        &self,
        session: &SessionId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>>;

    /// Returns at most `limit` records (entries without a channel) after `after`, in order. Events
    /// between the records cost no time.
    ///
    /// # Errors
    /// As [`Store::read`].
    fn read_records(
        &self,
        session: &SessionId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>>;

    /// Returns entries after `after`, in order, up to `bytes` of kinds and payloads, but at least
    /// one if there is one. An empty result marks the end. Serves to read a long log in little
    /// memory.
    ///
    /// # Errors
    /// As [`Store::read`].
    fn read_chunk(
        &self,
        session: &SessionId,
        after: Seq,
        bytes: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>>;

    /// Waits until the session has an entry after `after`, and returns the last entry's sequence
    /// number. Entries appended through this store are noticed at once, those of other processes
    /// within a tenth of a second.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], also when it is deleted meanwhile; failures of the medium.
    fn wait_for_entry(&self, session: &SessionId, after: Seq) -> BoxFuture<'_, Result<Seq, StoreError>>;

    /// Returns at most `limit` sessions, the most recently updated first; only those of `root`, if
    /// given.
    ///
    /// # Errors
    /// Failures of the medium.
    fn sessions(
        &self,
        root: Option<&str>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>>;

    /// Returns the sessions whose id begins with `prefix`, the most recently updated first, at most
    /// [`MAX_FOUND_SESSIONS`].
    ///
    /// # Errors
    /// Failures of the medium.
    fn find_sessions(&self, prefix: &str) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>>;

    /// Sets the status that lists show.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`]; failures of the medium.
    fn set_status(
        &self,
        session: &SessionId,
        status: &str,
        now: UnixMillis,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Takes or renews the lease to write a session, until `now + ttl_ms` milliseconds. `holder` is
    /// a description for people, such as `pid 123`. The same holder may always renew through the
    /// same store.
    ///
    /// A lease ends when its time is over, when it is released, and when the store through which it
    /// was taken is dropped or its process is gone. After the clock is set back, a lease excludes
    /// others no longer than its `ttl_ms`, counted from the first refusal.
    ///
    /// Leases are advisory: `expected` of [`Store::append`] protects the log.
    ///
    /// # Errors
    /// [`StoreError::Leased`] while another holder's lease runs; [`StoreError::UnknownSession`];
    /// failures of the medium.
    fn acquire_lease(
        &self,
        session: &SessionId,
        holder: &str,
        now: UnixMillis,
        ttl_ms: u64,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Releases a lease. Does nothing if `holder` doesn't have it.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`]; failures of the medium.
    fn release_lease(&self, session: &SessionId, holder: &str) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Returns the holder of the session's current lease, as given with the lease; `None` if there
    /// is none, if the holder is gone, or if the store has no leases.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`]; failures of the medium.
    fn lease_holder(
        &self,
        session: &SessionId,
        now: UnixMillis,
    ) -> BoxFuture<'_, Result<Option<String>, StoreError>> {
        let _nothing_is_kept = (session, now);
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Removes a session with its entries and its lease. Does nothing if it doesn't exist.
    ///
    /// # Errors
    /// Failures of the medium.
    fn delete(&self, session: &SessionId) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// Returns the size of an entry for [`Store::read_chunk`]: its bytes, and an estimate of its other
/// fields, so that many empty entries have a size too.
pub(crate) fn entry_bytes(kind: &str, payload: &[u8]) -> usize {
    /// Estimated bytes of the other fields.
    const OTHER_FIELDS_BYTES: usize = 64;
    OTHER_FIELDS_BYTES.saturating_add(kind.len()).saturating_add(payload.len())
}

/// Refuses an append with an entry over [`MAX_ENTRY_BYTES`].
pub(crate) fn check_entry_sizes(entries: &[NewEntry]) -> Result<(), StoreError> {
    /// Maximum characters of a kind in the error: kinds are short words, and the error is one line.
    const MAX_SHOWN_KIND_CHARS: usize = 40;
    for entry in entries {
        let bytes = entry.kind.len().saturating_add(entry.payload.len());
        if bytes > MAX_ENTRY_BYTES {
            return Err(StoreError::EntryTooLarge {
                kind: entry.kind.chars().take(MAX_SHOWN_KIND_CHARS).collect(),
                bytes: bytes as u64,
                limit: MAX_ENTRY_BYTES as u64,
            });
        }
    }
    Ok(())
}
