//! Logs in one SQLite file, shared by processes, durable entry by entry.
//!
//! One thread owns the connection. The first call starts it and opens or creates the file, so that
//! creating a store costs nothing. Changes of many sessions that wait for the thread are committed
//! together and cost one wait for the disk.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_protocol::{Seq, SessionId, UnixMillis};
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::watch::Watchers;
use crate::{Entry, NewEntry, NewSession, Origin, SessionSummary, Store, StoreError};
use group::{Call, ChangeInfo, StatementContext, Sync, Weight};
use log::Log;
use owner::{Job, Owner};
use reads::Bound;
use rows::Stop;

mod check;
mod file;
mod group;
mod holder;
mod log;
mod owner;
mod reads;
mod rows;
mod writes;

// For reading a damaged file without SQLite.
pub(crate) use file::PAGE_BYTES;
pub(crate) use rows::{channel_code, channel_of, checksum, place, place_of, seq_of, unsigned};

/// The durable [`Store`]: WAL journal, and an fsync at the end of every [`Store::append`].
///
/// Appends and deletions survive a power failure once they return. A new session without entries, a
/// status and a lease survive a crash of the program; a power failure may undo the newest ones.
///
/// A lease ends when the store through which it was taken is dropped or its process is gone. One
/// small locked file beside the database shows this for all leases of the store.
///
/// When the disk fails during an append ([`StoreError::Uncertain`]), the file is closed and the
/// next call reopens it. The next append first writes the stored entries to disk again, and is
/// refused as long as that fails.
///
/// Dropping the store waits for the pending calls and closes the file, which takes the time of a
/// few fsyncs.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    owner: Mutex<Option<Owner>>,
    watchers: Arc<Watchers>,
}

/// Maximum wait of a call while another process writes. Writes take milliseconds; five
/// seconds bridge a slow disk.
const BUSY: Duration = Duration::from_secs(5);

impl SqliteStore {
    /// Creates a store for the file `path`. The first call opens the file, or creates it with mode
    /// 0600 and its directories with mode 0700.
    ///
    /// # Errors
    /// None today; a file that can't be used is reported by the first call.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { path: path.to_owned(), owner: Mutex::default(), watchers: Arc::default() })
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Verifies the whole file, every entry by its checksum, and returns some twenty lines at most,
    /// one for each fault. Takes time in proportion to the file; meant for `jm doctor`.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the file can't even be opened; failures of the medium.
    pub fn check(&self) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        self.check_with(|_, _| {})
    }

    /// Verifies the file as [`SqliteStore::check`] does, and calls `progress` now and then with the
    /// numbers of verified entries and of all.
    ///
    /// # Errors
    /// As [`SqliteStore::check`].
    pub fn check_with(
        &self,
        progress: impl FnMut(u64, u64) + Send + 'static,
    ) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        let mut progress: check::Progress = Box::new(progress);
        self.call(move |log| log.check(&mut progress))
    }

    /// Submits a read to the owning thread. Jobs run in the order of their submission.
    fn call<T: Send + 'static>(
        &self,
        action: impl FnOnce(&mut Log) -> Result<T, StoreError> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, StoreError>> {
        let (reply, answer) = oneshot::channel();
        // The caller may be gone.
        let job = Job::Look(Box::new(move |log| drop(reply.send(action(log)))));
        self.answer(job, answer)
    }

    /// Submits a change to the owning thread, in the same order.
    fn submit_change<T: Send + 'static>(
        &self,
        info: ChangeInfo,
        statements: impl FnMut(&Connection, &mut StatementContext) -> Result<T, Stop> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, StoreError>> {
        let (reply, answer) = oneshot::channel();
        let job = Job::Change(Box::new(Call { info, statements, value: None, reply }));
        self.answer(job, answer)
    }

    fn answer<T: Send + 'static>(
        &self,
        job: Job,
        answer: oneshot::Receiver<Result<T, StoreError>>,
    ) -> BoxFuture<'_, Result<T, StoreError>> {
        if let Err(source) = self.submit(job) {
            return std::future::ready(Err(self.closed_error(&source.to_string()))).boxed();
        }
        async move { answer.await.unwrap_or_else(|_| Err(self.closed_error("its thread ended"))) }.boxed()
    }

    fn submit(&self, job: Job) -> io::Result<()> {
        // The lock protects a handle that is replaced as a whole.
        let mut owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = match owner.as_ref() {
            Some(owner) => owner.submit(job),
            None => Err(job),
        };
        let Err(job) = refused else { return Ok(()) };
        // The thread isn't started yet, or a panic in a call ended it; that call got its error.
        let fresh = Owner::start(Log::new(self.path.clone(), BUSY, Arc::clone(&self.watchers)))?;
        let handed = fresh.submit(job).map_err(|_| io::Error::other("its thread ended at once"));
        *owner = Some(fresh);
        handed
    }

    fn closed_error(&self, detail: &str) -> StoreError {
        StoreError::Closed { path: self.path.clone(), detail: detail.to_owned() }
    }
}

/// Returns the info of a change without payload and without notification.
fn small_change(action: &'static str, sync: Sync) -> ChangeInfo {
    ChangeInfo { action, sync, weight: Weight::Payload(0), tell: None }
}

/// Returns the info of a change that adds these entries.
fn append_change(action: &'static str, session: &SessionId, entries: &[NewEntry]) -> ChangeInfo {
    let bytes = entries.iter().map(|entry| entry.payload.len() as u64).sum();
    ChangeInfo {
        weight: Weight::Payload(bytes),
        tell: Some(session.clone()),
        ..small_change(action, Sync::Full)
    }
}

impl Store for SqliteStore {
    fn create(
        &self,
        id: &SessionId,
        root: &str,
        title: &str,
        now: UnixMillis,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let (id, root, title) = (id.clone(), root.to_owned(), title.to_owned());
        self.submit_change(small_change("create a session", Sync::Relaxed), move |connection, _| {
            writes::create(connection, &id, &root, &title, now).map(drop)
        })
    }

    fn fork(
        &self,
        parent: &SessionId,
        at: Seq,
        child: &SessionId,
        title: &str,
        now: UnixMillis,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let (parent, child, title) = (parent.clone(), child.clone(), title.to_owned());
        let info =
            ChangeInfo { weight: Weight::WholeSession, ..small_change("fork a session in", Sync::Full) };
        self.submit_change(info, move |connection, context| {
            writes::fork(connection, context, &parent, at, &child, (&title, now))
        })
    }

    fn append(
        &self,
        session: &SessionId,
        expected: Seq,
        entries: Vec<NewEntry>,
    ) -> BoxFuture<'_, Result<Seq, StoreError>> {
        let session = session.clone();
        let info = append_change("append to", &session, &entries);
        self.submit_change(info, move |connection, _| {
            writes::append(connection, &session, expected, &entries)
        })
    }

    fn begin(&self, new: NewSession) -> BoxFuture<'_, Result<Seq, StoreError>> {
        let info = append_change("begin a session in", &new.id, &new.entries);
        let info = match new.origin {
            Origin::Root(_) => info,
            Origin::Fork { .. } => ChangeInfo { weight: Weight::WholeSession, ..info },
        };
        self.submit_change(info, move |connection, context| writes::begin(connection, context, &new))
    }

    fn append_as(
        &self,
        session: &SessionId,
        expected: Seq,
        entries: Vec<NewEntry>,
        status: &str,
    ) -> BoxFuture<'_, Result<Seq, StoreError>> {
        let (session, status) = (session.clone(), status.to_owned());
        let info = append_change("append to", &session, &entries);
        self.submit_change(info, move |connection, _| {
            writes::append_as(connection, &session, expected, &entries, &status)
        })
    }

    fn read(
        &self,
        session: &SessionId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>> {
        let session = session.clone();
        self.call(move |log| log.read(&session, after, Bound { entries: limit, bytes: usize::MAX }))
    }

    fn read_records(
        &self,
        session: &SessionId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>> {
        let session = session.clone();
        self.call(move |log| log.read_records(&session, after, limit))
    }

    fn read_chunk(
        &self,
        session: &SessionId,
        after: Seq,
        bytes: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>> {
        let session = session.clone();
        self.call(move |log| log.read(&session, after, Bound { entries: usize::MAX, bytes }))
    }

    fn changed(&self, session: &SessionId, after: Seq) -> BoxFuture<'_, Result<Seq, StoreError>> {
        let session = session.clone();
        async move {
            // Subscribing comes before reading, so that no entry is missed in between.
            let mut news = self.watchers.join(&session);
            loop {
                let looked_for = session.clone();
                let last = self.call(move |log| log.last(&looked_for)).await?;
                if last > after {
                    return Ok(last);
                }
                // The store is borrowed, so the sender exists.
                drop(news.changed().await);
            }
        }
        .boxed()
    }

    fn sessions(
        &self,
        root: Option<&str>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        let root = root.map(str::to_owned);
        self.call(move |log| log.sessions(root.as_deref(), limit))
    }

    fn find(&self, prefix: &str) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        let prefix = prefix.to_owned();
        self.call(move |log| log.find(&prefix))
    }

    fn set_status(
        &self,
        session: &SessionId,
        status: &str,
        now: UnixMillis,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let (session, status) = (session.clone(), status.to_owned());
        self.submit_change(small_change("set a session's status in", Sync::Relaxed), move |connection, _| {
            writes::set_status(connection, &session, &status, now)
        })
    }

    fn lease(
        &self,
        session: &SessionId,
        holder: &str,
        now: UnixMillis,
        ttl_ms: u64,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let (session, holder) = (session.clone(), holder.to_owned());
        let taken = self
            .submit_change(small_change("take a session in", Sync::Relaxed), move |connection, context| {
                writes::lease(connection, context, &session, &holder, (now, ttl_ms))
            });
        async move { taken.await? }.boxed()
    }

    fn release(&self, session: &SessionId, holder: &str) -> BoxFuture<'_, Result<(), StoreError>> {
        let (session, holder) = (session.clone(), holder.to_owned());
        self.submit_change(
            small_change("give back a session in", Sync::Relaxed),
            move |connection, context| writes::release(connection, context, &session, &holder),
        )
    }

    fn holder(
        &self,
        session: &SessionId,
        now: UnixMillis,
    ) -> BoxFuture<'_, Result<Option<String>, StoreError>> {
        let session = session.clone();
        self.call(move |log| log.holder(&session, now))
    }

    fn delete(&self, session: &SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        let session = session.clone();
        let info = ChangeInfo {
            weight: Weight::WholeSession,
            tell: Some(session.clone()),
            ..small_change("delete a session from", Sync::Full)
        };
        self.submit_change(info, move |connection, _| writes::delete(connection, &session))
    }
}
