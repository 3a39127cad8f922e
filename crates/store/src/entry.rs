//! The entries of a log, and the trait that every log implements.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_protocol::{Channel, Seq, SessionId, UnixMillis};

use crate::StoreError;

/// The most bytes of one entry, kind and payload together. Larger payloads (files, images) belong
/// in blobs; this keeps one read of a few entries far below the program's memory budget.
pub const MAX_ENTRY_BYTES: usize = 16 * 1024 * 1024;

/// The most sessions one call of [`Store::find`] returns: enough to say "ambiguous" and list some.
pub const MAX_FOUND: usize = 100;

/// The status of a session that was just created.
pub const STATUS_NEW: &str = "ready";

/// An entry to append. The log gives it its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEntry {
    /// The channel of an event; `None` for a transcript entry (a message, a tool record).
    pub channel: Option<Channel>,
    /// The kind of the payload, in the writer's words. The store doesn't read it.
    pub kind: String,
    /// When.
    pub at: UnixMillis,
    /// Opaque bytes.
    pub payload: Vec<u8>,
}

/// An entry of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its place: 1 for the first entry, and no gaps.
    pub seq: Seq,
    /// The channel of an event; `None` for a transcript entry.
    pub channel: Option<Channel>,
    /// The kind of the payload, in the writer's words.
    pub kind: String,
    /// When, as the writer said. Times beyond `i64::MAX` milliseconds come back as that.
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
    /// The newest of: creation, the newest entry's time, the last change of status.
    pub updated: UnixMillis,
    /// Its last entry; [`Seq::START`] while it has none.
    pub last: Seq,
    /// [`STATUS_NEW`], or what [`Store::set_status`] said last.
    pub status: String,
}

/// A session that begins with its first entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// The session.
    pub id: SessionId,
    /// The origin of the session.
    pub origin: Origin,
    /// One line for people.
    pub title: String,
    /// The time of its beginning.
    pub now: UnixMillis,
    /// The status that lists show.
    pub status: String,
    /// The lease from the start, as [`Store::lease`] takes it: the holder's words and milliseconds.
    pub lease: Option<(String, u64)>,
    /// Its first entries, or the first after those of the session that it is a fork of.
    pub entries: Vec<NewEntry>,
}

/// The origin of a new session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// It is the first of its kind, for the project at this root.
    Root(String),
    /// It has the entries of another session up to a place, as [`Store::fork`] makes it.
    Fork {
        /// The other session.
        parent: SessionId,
        /// The last entry that is taken over.
        at: Seq,
    },
}

/// A durable set of append-only logs, one a session. What entries mean is the caller's business.
///
/// Calls take effect in the order in which they are made, not in the order in which the futures are
/// polled. Dropping a future does not take its call back.
pub trait Store: Send + Sync {
    /// Begins a session without entries.
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

    /// Begins a session with the entries of another up to the place `at`, in one step: all of them
    /// or nothing. It has the parent's root, is [`STATUS_NEW`], nobody holds it, and what is
    /// appended to one of the two afterwards is not seen in the other.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`] for the parent; [`StoreError::SessionExists`] for the child;
    /// [`StoreError::NoSuchEntry`] when the parent hasn't got so far; failures of the medium.
    fn fork(
        &self,
        parent: &SessionId,
        at: Seq,
        child: &SessionId,
        title: &str,
        now: UnixMillis,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Appends all entries or none, and returns the place of the last one. When it returns they
    /// survive a power failure. With no entries it only checks `expected`.
    ///
    /// After an error for which [`StoreError::is_uncertain`] holds, nobody knows whether the
    /// entries are stored. Trying again with the same `expected` settles it: either they are stored
    /// now, or there is a [`StoreError::Conflict`], and the entries after `expected` are the
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

    /// Begins a session with its first entries, and returns the place of the last one. A store that
    /// outlives the program does this in one step: a crash leaves the whole session or nothing of
    /// it. A session without a parent that exists already and has no entries is taken for an
    /// earlier attempt of the same call.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the session has entries; as [`Store::fork`], [`Store::lease`]
    /// and [`Store::append`].
    fn begin(&self, new: NewSession) -> BoxFuture<'_, Result<Seq, StoreError>> {
        async move {
            let NewSession { id, origin, title, now, status, lease, entries } = new;
            check_sizes(&entries)?;
            let expected = match &origin {
                Origin::Root(root) => match self.create(&id, root, &title, now).await {
                    Ok(()) | Err(StoreError::SessionExists { .. }) => Seq::START,
                    Err(error) => return Err(error),
                },
                Origin::Fork { parent, at } => {
                    self.fork(parent, *at, &id, &title, now).await?;
                    *at
                }
            };
            if let Some((holder, ttl_ms)) = &lease {
                self.lease(&id, holder, now, *ttl_ms).await?;
            }
            let last = self.append(&id, expected, entries).await?;
            if status != STATUS_NEW {
                self.set_status(&id, &status, now).await?;
            }
            Ok(last)
        }
        .boxed()
    }

    /// As [`Store::append`], and sets the status that lists show in the same step, where the store
    /// outlives the program.
    ///
    /// # Errors
    /// As [`Store::append`].
    fn append_as(
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

    /// At most `limit` entries after the place `after`, in order.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`]; failures of the medium.
    fn read(
        &self,
        session: &SessionId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>>;

    /// At most `limit` records (entries without a channel) after the place `after`, in order. It
    /// costs what they cost, however many events lie between them.
    ///
    /// # Errors
    /// As [`Store::read`].
    fn read_records(
        &self,
        session: &SessionId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>>;

    /// The entries after the place `after`, in order, as many as `bytes` of kinds and payloads
    /// allow, but at least one if there is one. An empty answer is the end. This is how a long log
    /// is read in little memory.
    ///
    /// # Errors
    /// As [`Store::read`].
    fn read_chunk(
        &self,
        session: &SessionId,
        after: Seq,
        bytes: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>>;

    /// Waits until the session has an entry after the place `after`, and says which is the last.
    /// Entries appended through this store are noticed at once, those of other processes within a
    /// tenth of a second.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], also when it is deleted meanwhile; failures of the medium.
    fn changed(&self, session: &SessionId, after: Seq) -> BoxFuture<'_, Result<Seq, StoreError>>;

    /// At most `limit` sessions, the most recently updated first; those of one root if it is given.
    ///
    /// # Errors
    /// Failures of the medium.
    fn sessions(
        &self,
        root: Option<&str>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>>;

    /// Sessions whose id begins with `prefix`, the most recently updated first, at most
    /// [`MAX_FOUND`].
    ///
    /// # Errors
    /// Failures of the medium.
    fn find(&self, prefix: &str) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>>;

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

    /// Takes or renews the right to write a session, until `now + ttl_ms` milliseconds. `holder`
    /// says who, for people, such as `pid 123`; the same holder may always renew, through the same
    /// store.
    ///
    /// A lease ends when its time is over, when it is given back, and when the store through which
    /// it was taken is dropped or its process is gone, however that ended. A clock that is set back
    /// keeps nobody out for longer than the time that was asked for, counted from the first
    /// refusal.
    ///
    /// The lease is advice between well-behaved writers: what protects the log is `expected` of
    /// [`Store::append`].
    ///
    /// # Errors
    /// [`StoreError::Leased`] while another holder's lease runs; [`StoreError::UnknownSession`];
    /// failures of the medium.
    fn lease(
        &self,
        session: &SessionId,
        holder: &str,
        now: UnixMillis,
        ttl_ms: u64,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Gives the right back. Nothing happens if `holder` doesn't have it.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`]; failures of the medium.
    fn release(&self, session: &SessionId, holder: &str) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Returns the holder that has the right to write a session now, in the words of its lease;
    /// `None` when there is none, also when the holder is gone. A store that keeps no leases
    /// returns `None`.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`]; failures of the medium.
    fn holder(
        &self,
        session: &SessionId,
        now: UnixMillis,
    ) -> BoxFuture<'_, Result<Option<String>, StoreError>> {
        let _nothing_is_kept = (session, now);
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Removes a session with all its entries and its lease. Nothing happens if there is none of
    /// this id.
    ///
    /// # Errors
    /// Failures of the medium.
    fn delete(&self, session: &SessionId) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// Returns the weight of an entry in [`Store::read_chunk`]: its bytes, and something for each of
/// many empty ones.
pub(crate) fn entry_bytes(kind: &str, payload: &[u8]) -> usize {
    /// About what the other fields take.
    const FIELDS: usize = 64;
    FIELDS.saturating_add(kind.len()).saturating_add(payload.len())
}

/// Refuses an append with an entry over [`MAX_ENTRY_BYTES`].
pub(crate) fn check_sizes(entries: &[NewEntry]) -> Result<(), StoreError> {
    /// Characters of a kind that are shown: kinds are short words, and the error is one line.
    const SHOWN: usize = 40;
    for entry in entries {
        let bytes = entry.kind.len().saturating_add(entry.payload.len());
        if bytes > MAX_ENTRY_BYTES {
            return Err(StoreError::EntryTooLarge {
                kind: entry.kind.chars().take(SHOWN).collect(),
                bytes: bytes as u64,
                limit: MAX_ENTRY_BYTES as u64,
            });
        }
    }
    Ok(())
}
