//! The calls that change the file, as statements within a transaction that has the file to itself.

use journeyman_protocol::{Seq, SessionId, UnixMillis};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::group_commit::StatementContext;
use super::lease_holder::{Liveness, holder_liveness};
use super::rows::{
    MAX_SEQ, StatementError, channel_code, checksum, from_sql_integer, pack_place, read_head, to_sql_integer,
    unknown_session,
};
use crate::entry::{check_entry_sizes, entry_bytes};
use crate::lease::Lease;
use crate::{NewEntry, NewSession, SESSION_STATUS_READY, SessionOrigin, StoreError};

/// Maximum bytes that a fork copies at once. SQLite holds a copy within one table in memory until
/// it is complete.
const FORK_BATCH_BYTES: usize = 1024 * 1024;
/// Maximum entries that a fork copies at once.
const FORK_BATCH_ENTRIES: i64 = 4096;

pub(super) fn create(
    connection: &Connection,
    id: &SessionId,
    root: &str,
    title: &str,
    now: UnixMillis,
) -> Result<i64, StatementError> {
    connection
        .prepare_cached(
            "INSERT INTO sessions (id, root, title, created, updated, last, status)
             VALUES (?1, ?2, ?3, ?4, ?4, 0, ?5) ON CONFLICT (id) DO NOTHING RETURNING number",
        )?
        .query_row(params![id.as_str(), root, title, to_sql_integer(now.0), SESSION_STATUS_READY], |row| {
            row.get(0)
        })
        .optional()?
        .ok_or_else(|| StatementError::Ours(StoreError::SessionExists { session: id.clone() }))
}

pub(super) fn append(
    connection: &Connection,
    session: &SessionId,
    expected: Seq,
    entries: &[NewEntry],
) -> Result<Seq, StatementError> {
    let head = read_head(connection, session)?;
    if head.last != expected {
        let (session, found) = (session.clone(), head.last);
        return Err(StatementError::Ours(StoreError::Conflict { session, expected, found }));
    }
    check_entry_sizes(entries)?;
    let Some(newest) = entries.iter().map(|entry| entry.at).max() else { return Ok(head.last) };
    let mut insert = connection.prepare_cached(
        "INSERT INTO entries (place, channel, kind, at, payload, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    let (mut last, mut records) = (head.last, 0);
    for entry in entries {
        last = last.next();
        records += u64::from(entry.channel.is_none());
        let channel = entry.channel.map(channel_code);
        let at = to_sql_integer(entry.at.0);
        let sum = checksum(channel, &entry.kind, at, &entry.payload);
        insert.execute(params![
            pack_place(head.number, last),
            channel,
            entry.kind,
            at,
            entry.payload,
            sum
        ])?;
    }
    connection
        .prepare_cached(
            "UPDATE sessions SET last = ?2, updated = max(updated, ?3), records = records + ?4
             WHERE number = ?1",
        )?
        .execute(params![
            head.number,
            to_sql_integer(last.0),
            to_sql_integer(newest.0),
            to_sql_integer(records)
        ])?;
    Ok(last)
}

pub(super) fn fork(
    connection: &Connection,
    context: &StatementContext,
    parent: &SessionId,
    at: Seq,
    child: &SessionId,
    (title, now): (&str, UnixMillis),
) -> Result<(), StatementError> {
    let from = read_head(connection, parent)?;
    if at > from.last {
        let (session, last) = (parent.clone(), from.last);
        return Err(StatementError::Ours(StoreError::NoSuchEntry { session, asked: at, last }));
    }
    let root: String = connection
        .prepare_cached("SELECT root FROM sessions WHERE number = ?1")?
        .query_row([from.number], |row| row.get(0))?;
    let to = create(connection, child, &root, title, now)?;
    let mut ends = connection.prepare_cached(
        "SELECT place, length(CAST(kind AS BLOB)) + length(payload) FROM entries
         WHERE place > ?1 AND place <= ?2 ORDER BY place LIMIT ?3",
    )?;
    let mut copy = connection.prepare_cached(
        "INSERT INTO entries (place, channel, kind, at, payload, sum)
         SELECT place + ?3, channel, kind, at, payload, sum FROM entries WHERE place > ?1 AND place <= ?2",
    )?;
    let (mut done, end) = (pack_place(from.number, Seq::START), pack_place(from.number, at));
    let mut copied = 0;
    loop {
        let mut rows = ends.query(params![done, end, FORK_BATCH_ENTRIES])?;
        let (mut next, mut left) = (done, FORK_BATCH_BYTES);
        while let Some(row) = rows.next()? {
            let bytes = usize::try_from(row.get::<_, i64>(1)?).unwrap_or(usize::MAX);
            if bytes > left && next != done {
                break;
            }
            next = row.get(0)?;
            left = left.saturating_sub(entry_bytes("", &[]).saturating_add(bytes));
        }
        drop(rows);
        if next == done {
            break;
        }
        let distance = pack_place(to, Seq::START) - pack_place(from.number, Seq::START);
        copied += copy.execute([done, next, distance])? as u64;
        done = next;
    }
    if copied != at.0 {
        let detail = format!("session {parent} has {copied} of its first {at} entries");
        return Err(StatementError::Ours(StoreError::Damaged { path: context.path.clone(), detail }));
    }
    connection
        .prepare_cached(
            "UPDATE sessions SET last = ?2,
             updated = max(updated, coalesce((SELECT max(at) FROM entries WHERE place > ?3 AND place <= ?4), 0)),
             records = (SELECT count(*) FROM entries INDEXED BY records
                        WHERE channel IS NULL AND place > ?3 AND place <= ?4)
             WHERE number = ?1",
        )?
        .execute(params![to, to_sql_integer(at.0), pack_place(to, Seq::START), pack_place(to, at)])?;
    Ok(())
}

pub(super) fn create_with_entries(
    connection: &Connection,
    context: &mut StatementContext,
    new: &NewSession,
) -> Result<Seq, StatementError> {
    let NewSession { id, origin, title, now, status, lease: held, entries } = new;
    let expected = match origin {
        SessionOrigin::Root(root) => match create(connection, id, root, title, *now) {
            Ok(_) | Err(StatementError::Ours(StoreError::SessionExists { .. })) => Seq::START,
            Err(stop) => return Err(stop),
        },
        SessionOrigin::Fork { parent, at } => {
            fork(connection, context, parent, *at, id, (title, *now))?;
            *at
        }
    };
    if let Some((holder, ttl_ms)) = held {
        acquire_lease(connection, context, id, holder, (*now, *ttl_ms))??;
    }
    let last = append(connection, id, expected, entries)?;
    if status != SESSION_STATUS_READY {
        set_status(connection, id, status, *now)?;
    }
    Ok(last)
}

pub(super) fn append_and_set_status(
    connection: &Connection,
    session: &SessionId,
    expected: Seq,
    entries: &[NewEntry],
    status: &str,
) -> Result<Seq, StatementError> {
    let last = append(connection, session, expected, entries)?;
    let newest = entries.iter().map(|entry| entry.at).max().unwrap_or_default();
    set_status(connection, session, status, newest)?;
    Ok(last)
}

pub(super) fn set_status(
    connection: &Connection,
    session: &SessionId,
    status: &str,
    now: UnixMillis,
) -> Result<(), StatementError> {
    let changed = connection
        .prepare_cached("UPDATE sessions SET status = ?2, updated = max(updated, ?3) WHERE id = ?1")?
        .execute(params![session.as_str(), status, to_sql_integer(now.0)])?;
    if changed == 0 { Err(unknown_session(session)) } else { Ok(()) }
}

/// Takes a lease, or returns the reason for the refusal. A refusal is no failure of the call: a
/// shortened lease of the other holder is stored.
pub(super) fn acquire_lease(
    connection: &Connection,
    context: &mut StatementContext,
    session: &SessionId,
    holder: &str,
    (now, ttl_ms): (UnixMillis, u64),
) -> Result<Result<(), StoreError>, StatementError> {
    type LeaseColumns = (i64, Option<String>, i64, Option<i64>, Option<String>);
    let (number, other, until, length, file): LeaseColumns = connection
        .prepare_cached(
            "SELECT number, holder, coalesce(held_until, 0), held_for, holder_file
             FROM sessions WHERE id = ?1",
        )?
        .query_row([session.as_str()], |row| row.try_into())
        .optional()?
        .ok_or_else(|| unknown_session(session))?;
    let mine = context.ensure_holder()?.map(str::to_owned);
    if let Some(other) = other {
        let until = UnixMillis(from_sql_integer(until));
        let mut held = Lease { holder: other, until, length: length.map_or(u64::MAX, from_sql_integer) };
        let alive = match &file {
            Some(name) if file == mine || name.is_empty() => Liveness::Unknown,
            Some(name) => holder_liveness(&context.path, name),
            None => Liveness::Unknown,
        };
        // The same description from another live store is another process: process ids repeat.
        let same = held.holder == holder && alive != Liveness::Alive;
        if !same && alive != Liveness::Dead && !held.is_expired(now) {
            if held.shorten(now) {
                connection
                    .prepare_cached("UPDATE sessions SET held_until = ?2 WHERE number = ?1")?
                    .execute([number, to_sql_integer(held.until.0)])?;
            }
            let Lease { holder, until, .. } = held;
            return Ok(Err(StoreError::Leased { session: session.clone(), holder, until }));
        }
    }
    let taken = Lease::new(holder, now, ttl_ms);
    connection
        .prepare_cached(
            "UPDATE sessions SET holder = ?2, held_until = ?3, held_for = ?4, holder_file = ?5
             WHERE number = ?1",
        )?
        .execute(params![
            number,
            taken.holder,
            to_sql_integer(taken.until.0),
            to_sql_integer(taken.length),
            mine
        ])?;
    Ok(Ok(()))
}

pub(super) fn release_lease(
    connection: &Connection,
    context: &StatementContext,
    session: &SessionId,
    holder: &str,
) -> Result<(), StatementError> {
    read_head(connection, session)?;
    // A lease that another store took under the same description stays.
    connection
        .prepare_cached(
            "UPDATE sessions SET holder = NULL, held_until = NULL, held_for = NULL, holder_file = NULL
             WHERE id = ?1 AND holder = ?2 AND (holder_file IS NULL OR holder_file = ?3)",
        )?
        .execute(params![session.as_str(), holder, context.existing_holder()])?;
    Ok(())
}

pub(super) fn delete(connection: &Connection, session: &SessionId) -> Result<(), StatementError> {
    let number: Option<i64> = connection
        .prepare_cached("DELETE FROM sessions WHERE id = ?1 RETURNING number")?
        .query_row([session.as_str()], |row| row.get(0))
        .optional()?;
    if let Some(number) = number {
        connection
            .prepare_cached("DELETE FROM entries WHERE place BETWEEN ?1 AND ?2")?
            .execute([pack_place(number, Seq::START), pack_place(number, Seq(MAX_SEQ))])?;
    }
    Ok(())
}
