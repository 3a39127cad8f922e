//! The open file: what may be done with it, and what happens when the disk fails.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

use super::file::{self, PAGE_BYTES};
use super::group::{Broken, Change, StatementContext, Weight, transact};
use super::rows::Stop;
use crate::StoreError;
use crate::watch::Watchers;

/// Pages of the write-ahead log after which its content is moved into the main file: 4 MiB,
/// SQLite's own default.
const SETTLE_PAGES: u64 = 1000;
/// Pages a change writes beside its payload: its place in the table and in the index, and the
/// session's row.
const PAGES_A_CHANGE: u64 = 3;
/// The interval between two checks for changes by another process while somebody waits for one: as
/// fast as a person notices. A check costs microseconds.
pub(super) const POLL: Duration = Duration::from_millis(100);

/// The open file, or the wish to open it.
pub(super) struct Log {
    context: StatementContext,
    busy: Duration,
    connection: Option<Connection>,
    /// The device and inode of the file that was opened first: what is at its path later may be
    /// another.
    file: Option<(u64, u64)>,
    /// Estimated pages that were written since the write-ahead log was last moved.
    pages: u64,
    /// The device failed, and what the write-ahead log holds may not be on it.
    doubtful: bool,
    watchers: Arc<Watchers>,
    /// SQLite's mark of other processes' changes, and when it was looked at.
    version: Option<i64>,
    polled: Instant,
}

/// The reason why a group of changes was not stored.
struct Failed {
    error: StoreError,
    /// True if each change may be tried by itself.
    try_alone: bool,
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self { error, try_alone: false }
    }
}

impl Log {
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
    pub(super) fn run<T>(
        &mut self,
        action: &'static str,
        statements: impl FnOnce(&mut Connection) -> Result<T, Stop>,
    ) -> Result<T, StoreError> {
        match statements(self.open()?.0) {
            Ok(value) => Ok(value),
            Err(Stop::Ours(error)) => Err(error),
            Err(Stop::Sqlite(error)) => {
                // What SQLite holds in memory may not be what the disk has; the next call starts
                // afresh.
                self.connection = None;
                self.doubtful |= is_device(&error);
                Err(file::failure(action, self.path(), &error))
            }
        }
    }

    fn open(&mut self) -> Result<(&mut Connection, &mut StatementContext), StoreError> {
        let path = &self.context.path;
        let found = || fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
        // Entries written into a file without a name would be lost with the process, and a new file
        // hasn't the earlier ones.
        if self.file.is_some() && self.file != found() {
            return Err(StoreError::Gone { path: path.clone() });
        }
        let connection = match &mut self.connection {
            Some(connection) => connection,
            closed => {
                let connection = closed.insert(file::open(path, self.busy)?);
                self.file = found();
                connection
            }
        };
        Ok((connection, &mut self.context))
    }

    /// Runs changes as one transaction that has the file to itself, so that what they read still
    /// holds when they write, and answers each.
    pub(super) fn write(&mut self, mut group: Vec<Box<dyn Change>>) {
        match self.attempt(&mut group) {
            Ok(results) => {
                for (change, result) in group.into_iter().zip(results) {
                    match result {
                        Ok(()) => self.finish_change(change),
                        Err(error) => change.refuse(error),
                    }
                }
            }
            Err(Failed { try_alone: true, .. }) if group.len() > 1 => {
                for change in group {
                    self.write(vec![change]);
                }
            }
            Err(Failed { error, .. }) => {
                for change in group {
                    change.refuse(error.for_another_call(self.path()));
                }
            }
        }
    }

    fn finish_change(&mut self, change: Box<dyn Change>) {
        let info = change.info();
        self.pages = match info.weight {
            Weight::Payload(bytes) => self.pages.saturating_add(bytes / PAGE_BYTES + PAGES_A_CHANGE),
            Weight::WholeSession => SETTLE_PAGES,
        };
        if let Some(session) = &info.tell {
            self.watchers.tell(session);
        }
        change.deliver_result();
    }

    fn attempt(&mut self, group: &mut [Box<dyn Change>]) -> Result<Vec<Result<(), StoreError>>, Failed> {
        let action = match group {
            [single] => single.info().action,
            _ => "write to",
        };
        if self.doubtful {
            self.make_sure()?;
        }
        let (connection, context) = self.open()?;
        let broken = match transact(connection, context, group) {
            Ok(results) => return Ok(results),
            Err(broken) => broken,
        };
        // What SQLite holds in memory may not be what the disk has; the next call starts afresh.
        self.connection = None;
        let (Broken::Begin(error) | Broken::Statement(error) | Broken::Commit(error)) = &broken;
        self.doubtful |= is_device(error);
        let known = file::failure(action, self.path(), error);
        Err(match broken {
            Broken::Begin(_) => Failed { error: known, try_alone: false },
            Broken::Statement(_) => Failed { error: known, try_alone: true },
            Broken::Commit(error) => match known {
                // SQLite says so when a write found no room, that is before the mark that makes the
                // whole transaction valid was there; a smaller change may fit.
                StoreError::DiskFull { .. } if !is_device(&error) => Failed { error: known, try_alone: true },
                StoreError::Busy { .. } => known.into(),
                _ => {
                    let (path, detail) = (self.path().to_owned(), error.to_string());
                    StoreError::Uncertain { path, detail }.into()
                }
            },
        })
    }

    /// Brings everything that is stored onto the disk anew after a failure of the device.
    ///
    /// Linux forgets a failed write: the pages count as clean, and the next `fsync` of the same
    /// file succeeds although they never got there (see
    /// <https://wiki.postgresql.org/wiki/Fsync_Errors>). Appending to a write-ahead log with such a
    /// hole would lose, after a power failure, everything behind it, although each `fsync` of that
    /// was good. So what it holds is written into the main file, which is flushed, and the
    /// write-ahead log starts over.
    fn make_sure(&mut self) -> Result<(), StoreError> {
        let busy = self.run("move the newest changes within", |connection| {
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
        if self.pages < SETTLE_PAGES {
            return;
        }
        self.pages = 0;
        // A failure (another process reads right now, the disk is full) leaves everything where it
        // is, which is just as durable; the next time tries again.
        drop(self.run("settle", |connection| {
            connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
            Ok(())
        }));
    }

    /// Returns true if somebody waits for news that may come from another process.
    pub(super) fn is_watched(&self) -> bool {
        !self.watchers.is_empty()
    }

    /// Tells whoever waits if another process changed the file, looking at most every [`POLL`].
    pub(super) fn poll(&mut self) {
        if self.polled.elapsed() < POLL || !self.is_watched() {
            return;
        }
        self.polled = Instant::now();
        let version = self.run("watch", |connection| {
            Ok(connection.pragma_query_value(None, "data_version", |row| row.get::<_, i64>(0))?)
        });
        // Of a failure they hear when they look themselves.
        let version = version.ok();
        if version.is_none() || version != self.version {
            self.watchers.tell_all();
        }
        self.version = version;
    }
}

/// Returns true if the device failed, or a layer between the device and this process.
fn is_device(error: &rusqlite::Error) -> bool {
    matches!(error, rusqlite::Error::SqliteFailure(code, _) if code.code == ErrorCode::SystemIoFailure)
}
