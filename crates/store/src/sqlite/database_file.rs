//! The database file: created atomically, and checked before it is opened.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use rustix::fs::Access;

use crate::private_directories::{create_private_directory, path_with_suffix, sync_dir};
use crate::{Durability, StoreError};

/// The application id (`PRAGMA application_id`) that identifies our files: "jmlg".
const APPLICATION_ID: i64 = 0x6A6D_6C67;
/// The format that this version reads and writes (`PRAGMA user_version`).
pub(super) const FORMAT_VERSION: i64 = 2;
/// The size of the file's pages: SQLite's default, set by name because [`inspect`] relies on it.
pub(crate) const PAGE_BYTES: u64 = 4096;
/// Maximum number of cached prepared statements: more than there are.
const MAX_CACHED_STATEMENTS: usize = 32;

/// An entry's `place` is its session's number and its seq in one integer, so that the table itself
/// is the index, a session's entries lie together, and an append touches the end of its range only.
/// The index of the records has only their places: events cost nothing there.
const SCHEMA: &str = "
CREATE TABLE sessions (
  number INTEGER PRIMARY KEY CHECK (number BETWEEN 1 AND 8388607),
  id TEXT NOT NULL UNIQUE,
  root TEXT NOT NULL,
  title TEXT NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  last INTEGER NOT NULL,
  status TEXT NOT NULL,
  holder TEXT,
  held_until INTEGER,
  held_for INTEGER,
  holder_file TEXT,
  records INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE entries (
  place INTEGER PRIMARY KEY,
  channel INTEGER,
  kind TEXT NOT NULL,
  at INTEGER NOT NULL,
  payload BLOB NOT NULL,
  sum INTEGER
) STRICT;
CREATE INDEX records ON entries (channel) WHERE channel IS NULL;
";

/// Upgrades from format 1, which had no index of the records, no checksums, and no leases that end
/// with their holder.
const UPGRADE: &str = "
ALTER TABLE sessions ADD COLUMN held_for INTEGER;
ALTER TABLE sessions ADD COLUMN holder_file TEXT;
ALTER TABLE sessions ADD COLUMN records INTEGER NOT NULL DEFAULT 0;
ALTER TABLE entries ADD COLUMN sum INTEGER;
CREATE INDEX records ON entries (channel) WHERE channel IS NULL;
UPDATE sessions SET records = (SELECT count(*) FROM entries INDEXED BY records
  WHERE channel IS NULL AND place > number << 40 AND place < (number + 1) << 40);
PRAGMA user_version = 2;
";

/// Converts an error of SQLite to the variant with the matching advice.
pub(super) fn to_store_error(action: &'static str, path: &Path, error: &rusqlite::Error) -> StoreError {
    let (path, detail) = (path.to_owned(), error.to_string());
    match error {
        rusqlite::Error::SqliteFailure(code, _) => match code.code {
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => StoreError::Damaged { path, detail },
            ErrorCode::DiskFull => StoreError::DiskFull { action, path, detail },
            ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied => {
                StoreError::NoAccess { action, path, detail }
            }
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Busy { path },
            ErrorCode::SystemIoFailure if code.extended_code == rusqlite::ffi::SQLITE_IOERR_SHORT_READ => {
                StoreError::Damaged { path, detail }
            }
            // The index of the write-ahead log found no room to grow in.
            ErrorCode::SystemIoFailure if code.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE => {
                StoreError::DiskFull { action, path, detail }
            }
            _ => StoreError::Database { action, path, detail },
        },
        // The tables or columns aren't those of this format.
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::IntegralValueOutOfRange(..) => StoreError::Damaged { path, detail },
        _ => StoreError::Database { action, path, detail },
    }
}

/// Opens the file, creating it if it is absent, and returns its identity too.
pub(super) fn open(path: &Path, busy: Duration) -> Result<(Connection, Option<FileIdentity>), StoreError> {
    loop {
        match inspect(path)? {
            LogFileState::Absent => create(path)?,
            LogFileState::Present => {}
        }
        let before = file_identity(path);
        let opened = open_existing(path, busy);
        // A repair may have put another file in the place meanwhile, perhaps while this one was
        // waited for: what is written into the old file would be lost.
        if before == file_identity(path) {
            return Ok((opened?, before));
        }
    }
}

/// The device and inode of a file.
pub(super) type FileIdentity = (u64, u64);

/// Returns the identity of the file that the path leads to now.
pub(super) fn file_identity(path: &Path) -> Option<FileIdentity> {
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

fn open_existing(path: &Path, busy: Duration) -> Result<Connection, StoreError> {
    let failed = |error: rusqlite::Error| to_store_error("open the session log", path, &error);
    let mut connection = connect(path, busy).map_err(failed)?;
    if read_pragma(&connection, "application_id").map_err(failed)? != APPLICATION_ID {
        let detail = "it is a SQLite database of another program".to_owned();
        return Err(StoreError::Damaged { path: path.to_owned(), detail });
    }
    let found = read_pragma(&connection, "user_version").map_err(failed)?;
    if found > FORMAT_VERSION {
        return Err(StoreError::NewerFormat { path: path.to_owned(), found, known: FORMAT_VERSION });
    }
    // WAL is a property of the file; this only matters if the file was converted.
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).map_err(failed)?;
    if found < FORMAT_VERSION {
        upgrade(&mut connection).map_err(|error| to_store_error("upgrade", path, &error))?;
    }
    Ok(connection)
}

fn read_pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

/// Upgrades an older file atomically. A process of an older version that has it open may go on: it
/// doesn't use the new columns.
fn upgrade(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    if read_pragma(&transaction, "user_version")? < FORMAT_VERSION {
        transaction.execute_batch(UPGRADE)?;
    }
    transaction.commit()
}

fn connect(path: &Path, busy: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(busy)?;
    connection.set_prepared_statement_cache_capacity(MAX_CACHED_STATEMENTS);
    // cache_size: 1 MiB of pages is plenty for appends. wal_autocheckpoint:
    // `Log::checkpoint_long_log` does it, so that no append pays for it. journal_size_limit: a WAL
    // that once grew is cut back to 16 MiB. secure_delete: a deleted session's text is not to be
    // found in the file.
    connection.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA cache_size = -1024; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY;
         PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = 16777216; PRAGMA secure_delete = ON;",
    )?;
    Ok(connection)
}

enum LogFileState {
    Absent,
    Present,
}

/// Checks the file before SQLite opens it: SQLite would take an empty file for a new database, and
/// so hide a loss.
///
/// The file must not be opened here: closing it would take away the locks that another store in
/// this process holds on it (POSIX locks belong to the process), and with them the file's
/// integrity.
fn inspect(path: &Path) -> Result<LogFileState, StoreError> {
    let damaged = |detail: String| Err(StoreError::Damaged { path: path.to_owned(), detail });
    let wal = path_with_suffix(path, "-wal");
    let has_wal = || fs::metadata(&wal).is_ok_and(|found| found.len() > 0);
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return inspect_missing(path, &wal);
        }
        Err(source) => return Err(StoreError::io("open the session log", path, source)),
    };
    if !metadata.is_file() {
        return damaged("it is not a file".to_owned());
    }
    if metadata.len() == 0 {
        return damaged("it is empty, which it never is by itself".to_owned());
    }
    // SQLite fills a page that was cut off with zeros. With a write-ahead log this may be the
    // result of a crash during a checkpoint, which SQLite then repeats.
    if metadata.len() % PAGE_BYTES != 0 && !has_wal() {
        return damaged(format!("its {} bytes are not a whole number of pages", metadata.len()));
    }
    let access = rustix::fs::access(path, Access::READ_OK | Access::WRITE_OK);
    access.map_err(|error| StoreError::io("open the session log", path, error.into()))?;
    // SQLite creates its other files with the same mode; files left by a crash keep theirs.
    make_private(path)?;
    make_private(&wal)?;
    make_private(&path_with_suffix(path, "-shm"))?;
    Ok(LogFileState::Present)
}

/// Checks the place of a file that was not there a moment ago.
fn inspect_missing(path: &Path, wal: &Path) -> Result<LogFileState, StoreError> {
    if fs::metadata(wal).is_ok_and(|found| found.len() > 0) {
        // Another process may have made both since: a log is there before its changes are.
        if fs::metadata(path).is_ok() {
            return inspect(path);
        }
        let detail = format!("it is gone, but its newest changes are still in {}", wal.display());
        return Err(StoreError::Damaged { path: path.to_owned(), detail });
    }
    Ok(LogFileState::Absent)
}

fn make_private(path: &Path) -> Result<(), StoreError> {
    match fs::metadata(path) {
        Ok(found) if found.permissions().mode() & 0o077 != 0 => {
            fs::set_permissions(path, Permissions::from_mode(0o600))
                .map_err(|source| StoreError::io("make private the session log", path, source))
        }
        // An unreadable file is reported by the call that needs it.
        _ => Ok(()),
    }
}

/// Creates an empty log beside `path` and links it to `path` when it is complete: a crash leaves
/// nothing or all. Of two processes that do so at once, both use the file of the first.
fn create(path: &Path) -> Result<(), StoreError> {
    let parent = path.parent().unwrap_or(Path::new(""));
    if !parent.as_os_str().is_empty() {
        create_private_directory(parent, Durability::Now)?;
    }
    let temporary =
        path_with_suffix(path, &format!("-new-{}-{:x}", std::process::id(), std::ptr::from_ref(path).addr()));
    let made = initialize_database(&temporary).and_then(|()| match fs::hard_link(&temporary, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(StoreError::io("create the session log", path, error))
        }
        _ => Ok(()),
    });
    // A leftover is harmless: its name is not reused.
    drop(fs::remove_file(&temporary));
    made?;
    sync_dir(parent)
}

fn initialize_database(temporary: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::io("create the session log", temporary, source);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(temporary).map_err(failed)?;
    // No other process uses the file yet, so it needs no journal and only one flush.
    let filled = || -> rusqlite::Result<()> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(temporary, flags)?;
        connection.pragma_update(None, "synchronous", "OFF")?;
        connection.pragma_update(None, "page_size", PAGE_BYTES as i64)?;
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        connection.execute_batch(SCHEMA)?;
        connection.pragma_update(None, "application_id", APPLICATION_ID)?;
        connection.pragma_update(None, "user_version", FORMAT_VERSION)?;
        connection.close().map_err(|(_, error)| error)
    };
    filled().map_err(|error| to_store_error("create the session log", temporary, &error))?;
    File::sync_all(&file).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SqliteStore, Store as _};

    #[test]
    fn a_log_that_another_process_makes_meanwhile_is_not_taken_for_one_that_is_gone() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("sessions.db");
        assert_eq!(fs::metadata(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        let other = SqliteStore::open(&path).unwrap();
        let id = journeyman_protocol::SessionId::new(journeyman_protocol::UnixMillis(1), 1);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(other.create(&id, "/p", "t", journeyman_protocol::UnixMillis(1))).unwrap();
        let wal = path_with_suffix(&path, "-wal");
        assert!(fs::metadata(&wal).unwrap().len() > 0);
        assert!(matches!(inspect_missing(&path, &wal), Ok(LogFileState::Present)));
        drop(other);
        fs::write(&wal, "changes").unwrap();
        fs::remove_file(&path).unwrap();
        assert!(matches!(inspect_missing(&path, &wal), Err(StoreError::Damaged { .. })));
    }
}
