//! The connection to the open file, and its recovery from failures of the disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

use super::database_file::{self, FileIdentity, PAGE_BYTES, file_identity};
use super::group_commit::{Change, ChangeSize, StatementContext, TransactionError, run_transaction};
use super::rows::StatementError;
use crate::StoreError;
use crate::watchers::Watchers;

/// Number of pages in the write-ahead log from which on it is moved into the main file: 4 MiB,
/// SQLite's own default.
const CHECKPOINT_PAGES: u64 = 1000;
/// Pages that a change writes besides its payload: in the table, in the index, and for the
/// session's row.
const PAGES_PER_CHANGE: u64 = 3;
/// The interval between two checks for changes by other processes while a task waits for one: as
/// short as a person notices. A check takes microseconds.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The connection to the file, which is opened when needed.
pub(super) struct LogConnection {
    context: StatementContext,
    busy: Duration,
    connection: Option<Connection>,
    /// The device and inode of the file that was opened first: the path may lead to another file
    /// later.
    file: Option<FileIdentity>,
    /// Estimated pages that were written since the write-ahead log was last moved.
    pages: u64,
    /// True if the device failed: the content of the write-ahead log may not be on it.
    doubtful: bool,
    watchers: Arc<Watchers>,
    /// SQLite's counter of other processes' changes, and the time of the last check.
    version: Option<i64>,
    polled: Instant,
}

/// The reason why a group of changes was not stored.
struct WriteFailure {
    error: StoreError,
    /// True if each change may be tried by itself.
    try_alone: bool,
}

impl From<StoreError> for WriteFailure {
    fn from(error: StoreError) -> Self {
        Self { error, try_alone: false }
    }
}

impl LogConnection {
    pub(super) fn new(path: PathBuf, busy: Duration, watchers: Arc<Watchers>) -> Self {
        Self {
            context: StatementContext::new(path),
            busy,
            connection: None,
            file: None,
            pages: 0,
            doubtful: false,
            watchers,
            version: None,
            polled: Instant::now(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.context.path
    }

    pub(super) fn is_open(&self) -> bool {
        self.connection.is_some()
    }

    /// Runs statements that only read, opening the file if need be.
    pub(super) fn run_statements<T>(
        &mut self,
        action: &'static str,
        statements: impl FnOnce(&mut Connection) -> Result<T, StatementError>,
    ) -> Result<T, StoreError> {
        match statements(self.open()?.0) {
            Ok(value) => Ok(value),
            Err(StatementError::Ours(error)) => Err(error),
            Err(StatementError::Sqlite(error)) => {
                // SQLite's memory may differ from the disk; the next call reopens the file.
                self.connection = None;
                self.doubtful |= is_device_error(&error);
                Err(database_file::to_store_error(action, self.path(), &error))
            }
        }
    }

    fn open(&mut self) -> Result<(&mut Connection, &mut StatementContext), StoreError> {
        let path = &self.context.path;
        // Entries written into a deleted file would be lost, and a new file lacks the earlier
        // entries.
        if self.file.is_some() && self.file != file_identity(path) {
            return Err(StoreError::Gone { path: path.clone() });
        }
        let connection = match &mut self.connection {
            Some(connection) => connection,
            closed => {
                let (connection, file) = database_file::open(path, self.busy)?;
                self.file = file;
                // Another connection counts from the beginning.
                self.version = None;
                closed.insert(connection)
            }
        };
        Ok((connection, &mut self.context))
    }

    /// Runs changes as one exclusive transaction, so that what they read still holds when they
    /// write, and sends each its result.
    pub(super) fn write(&mut self, mut group: Vec<Box<dyn Change>>) {
        match self.try_write(&mut group) {
            Ok(results) => {
                for (change, result) in group.into_iter().zip(results) {
                    match result {
                        Ok(()) => self.finish_change(change),
                        Err(error) => change.refuse(error),
                    }
                }
            }
            Err(WriteFailure { try_alone: true, .. }) if group.len() > 1 => {
                for change in group {
                    self.write(vec![change]);
                }
            }
            Err(WriteFailure { error, .. }) => {
                for change in group {
                    change.refuse(error.clone_for_call(self.path()));
                }
            }
        }
    }

    fn finish_change(&mut self, change: Box<dyn Change>) {
        let info = change.info();
        self.pages = match info.weight {
            ChangeSize::Payload(bytes) => self.pages.saturating_add(bytes / PAGE_BYTES + PAGES_PER_CHANGE),
            ChangeSize::WholeSession => CHECKPOINT_PAGES,
        };
        if let Some(session) = &info.tell {
            self.watchers.notify_session(session);
        }
        change.deliver_result();
    }

    fn try_write(
        &mut self,
        group: &mut [Box<dyn Change>],
    ) -> Result<Vec<Result<(), StoreError>>, WriteFailure> {
        let action = match group {
            [single] => single.info().action,
            _ => "write to",
        };
        if self.doubtful {
            self.restore_durability()?;
        }
        let (connection, context) = self.open()?;
        let broken = match run_transaction(connection, context, group) {
            Ok(results) => return Ok(results),
            Err(broken) => broken,
        };
        // SQLite's memory may differ from the disk; the next call reopens the file.
        self.connection = None;
        let (TransactionError::Begin(error)
        | TransactionError::Statement(error)
        | TransactionError::Commit(error)) = &broken;
        self.doubtful |= is_device_error(error);
        let known = database_file::to_store_error(action, self.path(), error);
        Err(match broken {
            TransactionError::Begin(_) => WriteFailure { error: known, try_alone: false },
            TransactionError::Statement(_) => WriteFailure { error: known, try_alone: true },
            TransactionError::Commit(error) => match known {
                // SQLite reports a full disk before the commit mark of the transaction is written;
                // a smaller change may fit.
                StoreError::DiskFull { .. } if !is_device_error(&error) => {
                    WriteFailure { error: known, try_alone: true }
                }
                StoreError::Busy { .. } => known.into(),
                _ => {
                    let (path, detail) = (self.path().to_owned(), error.to_string());
                    StoreError::Uncertain { path, detail }.into()
                }
            },
        })
    }

    /// Writes all stored data to the disk again after a failure of the device.
    ///
    /// Linux forgets a failed write: the pages count as clean, and the next `fsync` of the same
    /// file succeeds although they never got there (see
    /// <https://wiki.postgresql.org/wiki/Fsync_Errors>). After a power failure, a write-ahead log
    /// with such a hole would lose everything after it, although each `fsync` succeeded. So its
    /// content is moved into the main file, which is flushed, and the write-ahead log starts over.
    fn restore_durability(&mut self) -> Result<(), StoreError> {
        let busy = self.run_statements("move the newest changes within", |connection| {
            let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
            Ok(connection.query_row(sql, [], |row| row.get::<_, i64>(0))? != 0)
        })?;
        if busy {
            return Err(StoreError::Busy { path: self.path().to_owned() });
        }
        self.doubtful = false;
        Ok(())
    }

    /// Moves the write-ahead log into the main file when it has grown long.
    pub(super) fn checkpoint_long_log(&mut self) {
        if self.pages < CHECKPOINT_PAGES {
            return;
        }
        self.pages = 0;
        // A failure (another process is reading, the disk is full) changes nothing and loses
        // nothing; the next call tries again.
        drop(self.run_statements("settle", |connection| {
            connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
            Ok(())
        }));
    }

    /// Returns true if a task waits for a change, which may come from another process.
    pub(super) fn is_watched(&self) -> bool {
        !self.watchers.is_empty()
    }

    /// Notifies the waiting tasks if another process changed the file. Checks at most every
    /// [`POLL`].
    pub(super) fn poll(&mut self) {
        if self.polled.elapsed() < POLL_INTERVAL || !self.is_watched() {
            return;
        }
        self.polled = Instant::now();
        let version = self.run_statements("watch", |connection| {
            Ok(connection.pragma_query_value(None, "data_version", |row| row.get::<_, i64>(0))?)
        });
        // The waiting tasks see a failure when they read.
        let version = version.ok();
        if version.is_none() || version != self.version {
            self.watchers.notify_all();
        }
        self.version = version;
    }
}

/// Returns true if the device failed, or a layer between the device and this process.
fn is_device_error(error: &rusqlite::Error) -> bool {
    matches!(error, rusqlite::Error::SqliteFailure(code, _) if code.code == ErrorCode::SystemIoFailure)
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::{Seq, SessionId, UnixMillis};

    use super::*;
    use crate::{NewEntry, SqliteStore, Store as _};

    /// Polls whatever the time of the last poll was, and returns true if the waiting task was told.
    fn tells(log: &mut LogConnection, news: &mut tokio::sync::watch::Receiver<()>) -> bool {
        news.mark_unchanged();
        log.polled = Instant::now() - POLL_INTERVAL;
        log.poll();
        news.has_changed().unwrap()
    }

    #[test]
    fn what_another_process_stored_before_the_file_is_opened_anew_is_told() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("sessions.db");
        let session = SessionId::new(UnixMillis(1), 1);
        let other = SqliteStore::open(&path).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(other.create(&session, "/p", "t", UnixMillis(1))).unwrap();
        let watchers = Arc::<Watchers>::default();
        let mut news = watchers.subscribe(&session);
        let mut log = LogConnection::new(path, Duration::ZERO, watchers);
        assert!(tells(&mut log, &mut news), "the first look");
        assert!(!tells(&mut log, &mut news), "nothing has changed since");
        let payload = b"{}".to_vec();
        let entry = NewEntry { channel: None, kind: "note".into(), at: UnixMillis(1), payload };
        runtime.block_on(other.append(&session, Seq::START, vec![entry])).unwrap();
        // As after a failure of the disk, or where the file was busy for too long.
        log.run_statements("fail", |connection| Ok(connection.execute_batch("no statement")?)).unwrap_err();
        assert!(!log.is_open());
        assert!(tells(&mut log, &mut news));
    }
}
