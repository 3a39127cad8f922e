//! The calls, as statements on the open file.

use std::path::PathBuf;
use std::time::Duration;

use journeyman_protocol::{Channel, Seq, SessionId, UnixMillis};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, TransactionBehavior, params};

use super::file::{self, PAGE_BYTES};
use crate::entry::check_sizes;
use crate::{Entry, MAX_FOUND, NewEntry, STATUS_NEW, SessionSummary, StoreError};

/// Bits of a place that hold the seq; the session's number has the 23 above. 2^40 entries at one a
/// millisecond are 34 years.
const SEQ_BITS: u32 = 40;
const MAX_SEQ: u64 = (1 << SEQ_BITS) - 1;
/// Pages of the write-ahead log after which its content is moved into the main file: 4 MiB, SQLite's own
/// default.
const SETTLE_PAGES: u64 = 1000;
/// Pages an append writes beside its payload: its place in the table, and the session's row.
const PAGES_AN_APPEND: u64 = 3;
/// Lines of damage that are told.
const CHECK_LINES: u32 = 10;

const SUMMARY: &str = "SELECT id, root, title, created, updated, last, status FROM sessions";

/// The open file, or the wish to open it.
pub(super) struct Log {
    path: PathBuf,
    busy: Duration,
    connection: Option<Connection>,
    /// Estimated pages that were written since the write-ahead log was last moved.
    pages: u64,
}

/// Whether the end of a call waits for the disk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sync {
    /// It does: what was said to be stored is.
    Full,
    /// It doesn't: the next full one carries it along.
    Relaxed,
}

/// Why a transaction ended without effect.
enum Stop {
    /// By SQLite's decision.
    Sqlite(rusqlite::Error),
    /// By ours.
    Ours(StoreError),
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Ours(error)
    }
}

fn unknown(session: &SessionId) -> Stop {
    Stop::Ours(StoreError::UnknownSession { session: session.clone() })
}

/// A time as SQLite stores it; the year 292 million is close enough to forever.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

fn place(number: i64, seq: Seq) -> i64 {
    (number << SEQ_BITS) | signed(seq.0.min(MAX_SEQ))
}

fn channel_code(channel: Channel) -> i64 {
    match channel {
        Channel::Progress => 0,
        Channel::Control => 1,
        Channel::Monitor => 2,
    }
}

impl Log {
    pub(super) fn new(path: PathBuf, busy: Duration) -> Self {
        Self { path, busy, connection: None, pages: 0 }
    }

    pub(super) fn create(
        &mut self,
        id: &SessionId,
        root: &str,
        title: &str,
        now: UnixMillis,
    ) -> Result<(), StoreError> {
        self.write("create a session", Sync::Relaxed, |transaction| {
            let added = transaction
                .prepare_cached(
                    "INSERT INTO sessions (id, root, title, created, updated, last, status)
                     VALUES (?1, ?2, ?3, ?4, ?4, 0, ?5) ON CONFLICT (id) DO NOTHING",
                )?
                .execute(params![id.as_str(), root, title, signed(now.0), STATUS_NEW])?;
            match added {
                0 => Err(Stop::Ours(StoreError::SessionExists { session: id.clone() })),
                _ => Ok(()),
            }
        })
    }

    pub(super) fn append(
        &mut self,
        session: &SessionId,
        expected: Seq,
        entries: &[NewEntry],
    ) -> Result<Seq, StoreError> {
        let last = self.write("append to", Sync::Full, |transaction| {
            let (number, found) = head(transaction, session)?;
            if found != expected {
                let session = session.clone();
                return Err(Stop::Ours(StoreError::Conflict { session, expected, found }));
            }
            check_sizes(entries)?;
            let Some(newest) = entries.iter().map(|entry| entry.at).max() else { return Ok(found) };
            let mut insert = transaction.prepare_cached(
                "INSERT INTO entries (place, channel, kind, at, payload) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?;
            let mut last = found;
            for entry in entries {
                last = last.next();
                let channel = entry.channel.map(channel_code);
                let at = signed(entry.at.0);
                insert.execute(params![place(number, last), channel, entry.kind, at, entry.payload])?;
            }
            transaction
                .prepare_cached(
                    "UPDATE sessions SET last = ?2, updated = max(updated, ?3) WHERE number = ?1",
                )?
                .execute(params![number, signed(last.0), signed(newest.0)])?;
            Ok(last)
        })?;
        let bytes = entries.iter().map(|entry| entry.payload.len() as u64).sum::<u64>();
        self.pages = self.pages.saturating_add(bytes / PAGE_BYTES + PAGES_AN_APPEND);
        Ok(last)
    }

    pub(super) fn read(
        &mut self,
        session: &SessionId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let path = self.path.clone();
        self.run("read from", |connection| {
            // One snapshot for both statements, whatever other processes append meanwhile.
            let transaction = connection.transaction()?;
            let (number, last) = head(&transaction, session)?;
            let mut statement = transaction.prepare_cached(
                "SELECT place, channel, kind, at, payload FROM entries
                 WHERE place > ?1 AND place <= ?2 ORDER BY place LIMIT ?3",
            )?;
            let limit = signed(limit as u64);
            let rows =
                statement.query_map(params![place(number, after), place(number, last), limit], entry)?;
            let mut entries = Vec::new();
            let mut previous = after;
            for row in rows {
                let entry = row?;
                if entry.seq != previous.next() {
                    break;
                }
                previous = entry.seq;
                entries.push(entry);
            }
            let due = last.0.saturating_sub(after.0).min(unsigned(limit));
            if (entries.len() as u64) < due {
                let detail = format!("entry {} of session {session} is missing", previous.next());
                return Err(Stop::Ours(StoreError::Damaged { path, detail }));
            }
            Ok(entries)
        })
    }

    pub(super) fn sessions(
        &mut self,
        root: Option<&str>,
        limit: usize,
    ) -> Result<Vec<SessionSummary>, StoreError> {
        let sql = format!("{SUMMARY} WHERE ?1 IS NULL OR root = ?1 ORDER BY updated DESC, id DESC LIMIT ?2");
        self.run("list the sessions in", |connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map(params![root, signed(limit as u64)], summary)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    pub(super) fn find(&mut self, prefix: &str) -> Result<Vec<SessionSummary>, StoreError> {
        let sql = format!(
            "{SUMMARY} WHERE id >= ?1 AND substr(id, 1, ?2) = ?1 ORDER BY updated DESC, id DESC LIMIT ?3"
        );
        self.run("look for sessions in", |connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let length = signed(prefix.chars().count() as u64);
            let rows = statement.query_map(params![prefix, length, MAX_FOUND as i64], summary)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    pub(super) fn set_status(
        &mut self,
        session: &SessionId,
        status: &str,
        now: UnixMillis,
    ) -> Result<(), StoreError> {
        self.write("set a session's status in", Sync::Relaxed, |transaction| {
            let changed = transaction
                .prepare_cached("UPDATE sessions SET status = ?2, updated = max(updated, ?3) WHERE id = ?1")?
                .execute(params![session.as_str(), status, signed(now.0)])?;
            if changed == 0 { Err(unknown(session)) } else { Ok(()) }
        })
    }

    pub(super) fn lease(
        &mut self,
        session: &SessionId,
        holder: &str,
        now: UnixMillis,
        ttl_ms: u64,
    ) -> Result<(), StoreError> {
        self.write("take a session in", Sync::Relaxed, |transaction| {
            let until = signed(now.0.saturating_add(ttl_ms));
            let taken = transaction
                .prepare_cached(
                    "UPDATE sessions SET holder = ?2, held_until = ?3
                     WHERE id = ?1 AND (holder IS NULL OR holder = ?2 OR held_until <= ?4)",
                )?
                .execute(params![session.as_str(), holder, until, signed(now.0)])?;
            if taken > 0 {
                return Ok(());
            }
            let other = transaction
                .prepare_cached(
                    "SELECT coalesce(holder, ''), coalesce(held_until, 0) FROM sessions WHERE id = ?1",
                )?
                .query_row([session.as_str()], |row| Ok((row.get(0)?, UnixMillis(unsigned(row.get(1)?)))))
                .optional()?;
            match other {
                Some((holder, until)) => {
                    Err(Stop::Ours(StoreError::Leased { session: session.clone(), holder, until }))
                }
                None => Err(unknown(session)),
            }
        })
    }

    pub(super) fn release(&mut self, session: &SessionId, holder: &str) -> Result<(), StoreError> {
        self.write("give back a session in", Sync::Relaxed, |transaction| {
            head(transaction, session)?;
            transaction
                .prepare_cached(
                    "UPDATE sessions SET holder = NULL, held_until = NULL WHERE id = ?1 AND holder = ?2",
                )?
                .execute([session.as_str(), holder])?;
            Ok(())
        })
    }

    pub(super) fn delete(&mut self, session: &SessionId) -> Result<(), StoreError> {
        self.write("delete a session from", Sync::Full, |transaction| {
            let number: Option<i64> = transaction
                .prepare_cached("DELETE FROM sessions WHERE id = ?1 RETURNING number")?
                .query_row([session.as_str()], |row| row.get(0))
                .optional()?;
            if let Some(number) = number {
                transaction
                    .prepare_cached("DELETE FROM entries WHERE place BETWEEN ?1 AND ?2")?
                    .execute([place(number, Seq::START), place(number, Seq(MAX_SEQ))])?;
            }
            Ok(())
        })
    }

    pub(super) fn check(&mut self) -> Result<Vec<String>, StoreError> {
        self.run("check", |connection| {
            let mut statement = connection.prepare(&format!("PRAGMA quick_check({CHECK_LINES})"))?;
            let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
            let lines = lines.collect::<Result<Vec<_>, _>>()?;
            Ok(if lines == ["ok"] { Vec::new() } else { lines })
        })
    }

    /// Moves the write-ahead log into the main file when it has grown long.
    pub(super) fn settle(&mut self) {
        if self.pages < SETTLE_PAGES {
            return;
        }
        self.pages = 0;
        // A failure (another process reads right now, the disk is full) leaves everything where it is, which
        // is just as durable; the next time tries again.
        drop(self.run("settle", |connection| {
            connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
            Ok(())
        }));
    }

    /// Runs statements on the file, opening it if need be.
    fn run<T>(
        &mut self,
        action: &'static str,
        statements: impl FnOnce(&mut Connection) -> Result<T, Stop>,
    ) -> Result<T, StoreError> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            closed => closed.insert(file::open(&self.path, self.busy)?),
        };
        match statements(connection) {
            Ok(value) => Ok(value),
            Err(Stop::Ours(error)) => Err(error),
            Err(Stop::Sqlite(error)) => {
                // What SQLite holds in memory may not be what the disk has; the next call starts afresh.
                self.connection = None;
                Err(file::failure(action, &self.path, &error))
            }
        }
    }

    /// Runs statements as one transaction that has the file to itself, so that what they read still holds
    /// when they write.
    fn write<T>(
        &mut self,
        action: &'static str,
        sync: Sync,
        statements: impl FnOnce(&Transaction<'_>) -> Result<T, Stop>,
    ) -> Result<T, StoreError> {
        let relaxed = sync == Sync::Relaxed;
        let mut restored = true;
        let result = self.run(action, |connection| {
            if relaxed {
                connection.pragma_update(None, "synchronous", "NORMAL")?;
                restored = false;
            }
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let result = statements(&transaction);
            match result {
                Ok(_) => transaction.commit()?,
                // SQLite may have rolled back by itself (the disk is full); what stopped the statements counts.
                Err(_) => drop(transaction.rollback()),
            }
            if relaxed {
                connection.pragma_update(None, "synchronous", "FULL")?;
                restored = true;
            }
            result
        });
        if !restored {
            // Never go on with a connection that doesn't wait for the disk.
            self.connection = None;
        }
        result
    }
}

/// A session's number and its last entry.
fn head(transaction: &Transaction<'_>, session: &SessionId) -> Result<(i64, Seq), Stop> {
    transaction
        .prepare_cached("SELECT number, last FROM sessions WHERE id = ?1")?
        .query_row([session.as_str()], |row| Ok((row.get(0)?, Seq(unsigned(row.get(1)?)))))
        .optional()?
        .ok_or_else(|| unknown(session))
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let place: i64 = row.get(0)?;
    let channel = match row.get::<_, Option<i64>>(1)? {
        None => None,
        Some(0) => Some(Channel::Progress),
        Some(1) => Some(Channel::Control),
        Some(2) => Some(Channel::Monitor),
        Some(other) => return Err(rusqlite::Error::IntegralValueOutOfRange(1, other)),
    };
    Ok(Entry {
        seq: Seq(unsigned(place) & MAX_SEQ),
        channel,
        kind: row.get(2)?,
        at: UnixMillis(unsigned(row.get(3)?)),
        payload: row.get(4)?,
    })
}

fn summary(row: &Row<'_>) -> rusqlite::Result<SessionSummary> {
    let id: String = row.get(0)?;
    let id = id.parse().map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
    })?;
    Ok(SessionSummary {
        id,
        root: row.get(1)?,
        title: row.get(2)?,
        created: UnixMillis(unsigned(row.get(3)?)),
        updated: UnixMillis(unsigned(row.get(4)?)),
        last: Seq(unsigned(row.get(5)?)),
        status: row.get(6)?,
    })
}
