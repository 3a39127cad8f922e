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

use crate::watchers::Watchers;
use crate::{Entry, NewEntry, NewSession, SessionOrigin, SessionSummary, Store, StoreError};
use group_commit::{ChangeInfo, ChangeRequest, ChangeSize, StatementContext, SyncMode};
use log_connection::LogConnection;
use owner_thread::{Job, OwnerThread};
use reads::ReadLimit;
use rows::StatementError;

mod check;
mod database_file;
mod group_commit;
mod lease_holder;
mod log_connection;
mod owner_thread;
mod reads;
mod rows;
mod writes;

// For reading a damaged file without SQLite.
pub(crate) use database_file::PAGE_BYTES;
pub(crate) use rows::{
    channel_code, channel_from_code, checksum, from_sql_integer, pack_place, seq_of_place, unpack_place,
};

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
    owner: Mutex<Option<OwnerThread>>,
    watchers: Arc<Watchers>,
}

/// Maximum wait of a call while another process writes. Writes take milliseconds; five
/// seconds bridge a slow disk.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

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
        self.check_with_progress(|_, _| {})
    }

    /// Verifies the file as [`SqliteStore::check`] does, and calls `progress` now and then with the
    /// numbers of verified entries and of all.
    ///
    /// # Errors
    /// As [`SqliteStore::check`].
    pub fn check_with_progress(
        &self,
        progress: impl FnMut(u64, u64) + Send + 'static,
    ) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        let mut progress: check::ProgressCallback = Box::new(progress);
        self.submit_read(move |log| log.check(&mut progress))
    }

    /// Submits a read to the owning thread. Jobs run in the order of their submission.
    fn submit_read<T: Send + 'static>(
        &self,
        action: impl FnOnce(&mut LogConnection) -> Result<T, StoreError> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, StoreError>> {
        let (reply, answer) = oneshot::channel();
        // The caller may be gone.
        let job = Job::Look(Box::new(move |log| drop(reply.send(action(log)))));
        self.submit_and_await(job, answer)
    }

    /// Submits a change to the owning thread, in the same order.
    fn submit_change<T: Send + 'static>(
        &self,
        info: ChangeInfo,
        statements: impl FnMut(&Connection, &mut StatementContext) -> Result<T, StatementError> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, StoreError>> {
        let (reply, answer) = oneshot::channel();
        let job = Job::Change(Box::new(ChangeRequest { info, statements, value: None, reply }));
        self.submit_and_await(job, answer)
    }

    fn submit_and_await<T: Send + 'static>(
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
        let fresh = OwnerThread::start(LogConnection::new(
            self.path.clone(),
            BUSY_TIMEOUT,
            Arc::clone(&self.watchers),
        ))?;
        let handed = fresh.submit(job).map_err(|_| io::Error::other("its thread ended at once"));
        *owner = Some(fresh);
        handed
    }

    fn closed_error(&self, detail: &str) -> StoreError {
        StoreError::Closed { path: self.path.clone(), detail: detail.to_owned() }
    }
}

/// Returns the info of a change without payload and without notification.
fn small_change_info(action: &'static str, sync: SyncMode) -> ChangeInfo {
    ChangeInfo { action, sync, weight: ChangeSize::Payload(0), tell: None }
}

/// Returns the info of a change that adds these entries.
fn append_change_info(action: &'static str, session: &SessionId, entries: &[NewEntry]) -> ChangeInfo {
    let bytes = entries.iter().map(|entry| entry.payload.len() as u64).sum();
    ChangeInfo {
        weight: ChangeSize::Payload(bytes),
        tell: Some(session.clone()),
        ..small_change_info(action, SyncMode::Full)
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
        self.submit_change(small_change_info("create a session", SyncMode::Relaxed), move |connection, _| {
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
        let info = ChangeInfo {
            weight: ChangeSize::WholeSession,
            ..small_change_info("fork a session in", SyncMode::Full)
        };
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
        let info = append_change_info("append to", &session, &entries);
        self.submit_change(info, move |connection, _| {
            writes::append(connection, &session, expected, &entries)
        })
    }

    fn create_with_entries(&self, new: NewSession) -> BoxFuture<'_, Result<Seq, StoreError>> {
        let info = append_change_info("begin a session in", &new.id, &new.entries);
        let info = match new.origin {
            SessionOrigin::Root(_) => info,
            SessionOrigin::Fork { .. } => ChangeInfo { weight: ChangeSize::WholeSession, ..info },
        };
        self.submit_change(info, move |connection, context| {
            writes::create_with_entries(connection, context, &new)
        })
    }

    fn append_and_set_status(
        &self,
        session: &SessionId,
        expected: Seq,
        entries: Vec<NewEntry>,
        status: &str,
    ) -> BoxFuture<'_, Result<Seq, StoreError>> {
        let (session, status) = (session.clone(), status.to_owned());
        let info = append_change_info("append to", &session, &entries);
        self.submit_change(info, move |connection, _| {
            writes::append_and_set_status(connection, &session, expected, &entries, &status)
        })
    }

    fn read(
        &self,
        session: &SessionId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>> {
        let session = session.clone();
        self.submit_read(move |log| {
            log.read(&session, after, ReadLimit { entries: limit, bytes: usize::MAX })
        })
    }

    fn read_records(
        &self,
        session: &SessionId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>> {
        let session = session.clone();
        self.submit_read(move |log| log.read_records(&session, after, limit))
    }

    fn read_chunk(
        &self,
        session: &SessionId,
        after: Seq,
        bytes: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>> {
        let session = session.clone();
        self.submit_read(move |log| log.read(&session, after, ReadLimit { entries: usize::MAX, bytes }))
    }

    fn wait_for_entry(&self, session: &SessionId, after: Seq) -> BoxFuture<'_, Result<Seq, StoreError>> {
        let session = session.clone();
        async move {
            // Subscribing comes before reading, so that no entry is missed in between.
            let mut news = self.watchers.subscribe(&session);
            loop {
                let looked_for = session.clone();
                let last = self.submit_read(move |log| log.last_seq(&looked_for)).await?;
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
        self.submit_read(move |log| log.sessions(root.as_deref(), limit))
    }

    fn find_sessions(&self, prefix: &str) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        let prefix = prefix.to_owned();
        self.submit_read(move |log| log.find_sessions(&prefix))
    }

    fn set_status(
        &self,
        session: &SessionId,
        status: &str,
        now: UnixMillis,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let (session, status) = (session.clone(), status.to_owned());
        self.submit_change(
            small_change_info("set a session's status in", SyncMode::Relaxed),
            move |connection, _| writes::set_status(connection, &session, &status, now),
        )
    }

    fn acquire_lease(
        &self,
        session: &SessionId,
        holder: &str,
        now: UnixMillis,
        ttl_ms: u64,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let (session, holder) = (session.clone(), holder.to_owned());
        let taken = self.submit_change(
            small_change_info("take a session in", SyncMode::Relaxed),
            move |connection, context| {
                writes::acquire_lease(connection, context, &session, &holder, (now, ttl_ms))
            },
        );
        async move { taken.await? }.boxed()
    }

    fn release_lease(&self, session: &SessionId, holder: &str) -> BoxFuture<'_, Result<(), StoreError>> {
        let (session, holder) = (session.clone(), holder.to_owned());
        self.submit_change(
            small_change_info("give back a session in", SyncMode::Relaxed),
            move |connection, context| writes::release_lease(connection, context, &session, &holder),
        )
    }

    fn lease_holder(
        &self,
        session: &SessionId,
        now: UnixMillis,
    ) -> BoxFuture<'_, Result<Option<String>, StoreError>> {
        let session = session.clone();
        self.submit_read(move |log| log.lease_holder(&session, now))
    }

    fn delete(&self, session: &SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        let session = session.clone();
        let info = ChangeInfo {
            weight: ChangeSize::WholeSession,
            tell: Some(session.clone()),
            ..small_change_info("delete a session from", SyncMode::Full)
        };
        self.submit_change(info, move |connection, _| writes::delete(connection, &session))
    }
}
