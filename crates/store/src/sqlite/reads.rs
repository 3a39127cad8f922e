//! The calls that only read.

use std::path::Path;

use journeyman_protocol::{Seq, SessionId, UnixMillis};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::lease_holder::{Liveness, holder_liveness};
use super::log_connection::LogConnection;
use super::rows::{
    MAX_SEQ, SELECT_ENTRIES, SELECT_SUMMARIES, SessionHead, StatementError, entry_from_row, from_sql_integer,
    pack_place, read_head, summary_from_row, to_sql_integer, unknown_session,
};
use crate::entry::entry_bytes;
use crate::lease::Lease;
use crate::{Entry, MAX_FOUND_SESSIONS, SessionSummary, StoreError};

/// The part of a log to read.
#[derive(Clone, Copy)]
pub(super) struct ReadLimit {
    pub(super) entries: usize,
    pub(super) bytes: usize,
}

impl LogConnection {
    /// Returns the entries after a sequence number, up to the bound.
    pub(super) fn read(
        &mut self,
        session: &SessionId,
        after: Seq,
        bound: ReadLimit,
    ) -> Result<Vec<Entry>, StoreError> {
        let path = self.path().to_owned();
        let sql = format!("{SELECT_ENTRIES} WHERE place > ?1 AND place <= ?2 ORDER BY place LIMIT ?3");
        self.run_statements("read from", |connection| {
            // One snapshot for both statements, whatever other processes append meanwhile.
            let transaction = connection.transaction()?;
            let head = read_head(&transaction, session)?;
            let mut statement = transaction.prepare_cached(&sql)?;
            let limit = to_sql_integer(bound.entries as u64);
            let (from, to) = (pack_place(head.number, after), pack_place(head.number, Seq(MAX_SEQ)));
            let mut rows = statement.query(params![from, to, limit])?;
            let mut entries: Vec<Entry> = Vec::new();
            let mut previous = after;
            let (mut left, mut enough) = (bound.bytes, false);
            while let Some(row) = rows.next()? {
                let entry = entry_from_row(row, session, &path)?;
                check_entry_within_session(&entry, &head, session, &path)?;
                if entry.seq != previous.next() {
                    break;
                }
                let size = entry_bytes(&entry.kind, &entry.payload);
                if size > left && !entries.is_empty() {
                    enough = true;
                    break;
                }
                left = left.saturating_sub(size);
                previous = entry.seq;
                entries.push(entry);
            }
            let due = head.last.0.saturating_sub(after.0).min(from_sql_integer(limit));
            if !enough && (entries.len() as u64) < due {
                let detail = format!("entry {} of session {session} is missing", previous.next());
                return Err(StatementError::Ours(StoreError::Damaged { path, detail }));
            }
            Ok(entries)
        })
    }

    /// Returns at most `limit` records after a sequence number.
    pub(super) fn read_records(
        &mut self,
        session: &SessionId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let path = self.path().to_owned();
        let sql = format!(
            "{SELECT_ENTRIES} INDEXED BY records WHERE channel IS NULL AND place > ?1 AND place <= ?2
             ORDER BY place LIMIT ?3"
        );
        self.run_statements("read from", |connection| {
            let transaction = connection.transaction()?;
            let head = read_head(&transaction, session)?;
            let mut statement = transaction.prepare_cached(&sql)?;
            let (from, to) = (pack_place(head.number, after), pack_place(head.number, Seq(MAX_SEQ)));
            let mut rows = statement.query(params![from, to, to_sql_integer(limit as u64)])?;
            let mut entries = Vec::new();
            while let Some(row) = rows.next()? {
                let entry = entry_from_row(row, session, &path)?;
                check_entry_within_session(&entry, &head, session, &path)?;
                entries.push(entry);
            }
            // Between records there may be events, so only the count shows a lost record.
            let whole = after == Seq::START && entries.len() < limit;
            if whole && entries.len() as u64 != head.records {
                recount_entries(&transaction, session, &head, entries.len() as u64)?
                    .map_or(Ok(()), |detail| {
                        Err(StatementError::Ours(StoreError::Damaged { path, detail }))
                    })?;
            }
            Ok(entries)
        })
    }

    /// Returns the sequence number of a session's last entry.
    pub(super) fn last_seq(&mut self, session: &SessionId) -> Result<Seq, StoreError> {
        self.run_statements("read from", |connection| Ok(read_head(connection, session)?.last))
    }

    /// Returns the holder of a session's lease, if the lease is still valid.
    pub(super) fn lease_holder(
        &mut self,
        session: &SessionId,
        now: UnixMillis,
    ) -> Result<Option<String>, StoreError> {
        type HolderColumns = (Option<String>, i64, Option<String>);
        let path = self.path().to_owned();
        self.run_statements("read from", |connection| {
            let (holder, until, file): HolderColumns = connection
                .prepare_cached(
                    "SELECT holder, coalesce(held_until, 0), holder_file FROM sessions WHERE id = ?1",
                )?
                .query_row([session.as_str()], |row| row.try_into())
                .optional()?
                .ok_or_else(|| unknown_session(session))?;
            let Some(holder) = holder else { return Ok(None) };
            let held = Lease { holder, until: UnixMillis(from_sql_integer(until)), length: 0 };
            let gone = file.is_some_and(|name| holder_liveness(&path, &name) == Liveness::Dead);
            Ok((!gone && !held.is_expired(now)).then_some(held.holder))
        })
    }

    pub(super) fn sessions(
        &mut self,
        root: Option<&str>,
        limit: usize,
    ) -> Result<Vec<SessionSummary>, StoreError> {
        let sql = format!(
            "{SELECT_SUMMARIES} WHERE ?1 IS NULL OR root = ?1 ORDER BY updated DESC, id DESC LIMIT ?2"
        );
        self.run_statements("list the sessions in", |connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map(params![root, to_sql_integer(limit as u64)], summary_from_row)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    pub(super) fn find_sessions(&mut self, prefix: &str) -> Result<Vec<SessionSummary>, StoreError> {
        let sql = format!(
            "{SELECT_SUMMARIES} WHERE id >= ?1 AND substr(id, 1, ?2) = ?1 ORDER BY updated DESC, id DESC LIMIT ?3"
        );
        self.run_statements("look for sessions in", |connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let length = to_sql_integer(prefix.chars().count() as u64);
            let rows =
                statement.query_map(params![prefix, length, MAX_FOUND_SESSIONS as i64], summary_from_row)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}

/// Refuses an entry after the last one of the session's row: then the row is damaged, and the log
/// is longer than the row says.
fn check_entry_within_session(
    entry: &Entry,
    head: &SessionHead,
    session: &SessionId,
    path: &Path,
) -> Result<(), StatementError> {
    if entry.seq <= head.last {
        return Ok(());
    }
    let detail = format!("session {session} says that it ends at {}, and has entry {}", head.last, entry.seq);
    Err(StatementError::Ours(StoreError::Damaged { path: path.to_owned(), detail }))
}

/// Counts a session's entries after its number of records didn't match, and describes the fault, if
/// there is one: an older version of this program that is still running doesn't count records.
fn recount_entries(
    connection: &Connection,
    session: &SessionId,
    head: &SessionHead,
    found: u64,
) -> Result<Option<String>, StatementError> {
    let (entries, records): (i64, i64) = connection.query_row(
        "SELECT count(*), count(*) FILTER (WHERE channel IS NULL) FROM entries NOT INDEXED
         WHERE place > ?1 AND place <= ?2",
        [pack_place(head.number, Seq::START), pack_place(head.number, head.last)],
        |row| row.try_into(),
    )?;
    let (entries, records) = (from_sql_integer(entries), from_sql_integer(records));
    debug_assert!(head.last.0 <= MAX_SEQ, "places are made from seqs that fit");
    Ok(if entries != head.last.0 {
        Some(format!("session {session} has {entries} of its {} entries", head.last))
    } else if records != found {
        Some(format!("the index of session {session} has {found} of its {records} records"))
    } else {
        None
    })
}
