//! Conversions between the values of callers and the columns of the tables.

use std::path::Path;

use journeyman_protocol::{Channel, Seq, SessionId, UnixMillis};
use rusqlite::{Connection, OptionalExtension as _, Row};

use crate::{Entry, SessionSummary, StoreError};

/// Bits of a place for the sequence number; the session's number has the 23 bits above. 2^40
/// entries at one a millisecond are 34 years.
const SEQ_BITS: u32 = 40;
/// The greatest sequence number that fits into a place.
pub(super) const MAX_SEQ: u64 = (1 << SEQ_BITS) - 1;

/// The reason why a call ended without effect.
pub(super) enum StatementError {
    /// An error of SQLite.
    Sqlite(rusqlite::Error),
    /// An error of this crate.
    Ours(StoreError),
}

impl From<rusqlite::Error> for StatementError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for StatementError {
    fn from(error: StoreError) -> Self {
        Self::Ours(error)
    }
}

pub(super) fn unknown_session(session: &SessionId) -> StatementError {
    StatementError::Ours(StoreError::UnknownSession { session: session.clone() })
}

/// Converts a number to SQLite's signed integer, limited to its maximum: as a time, the year 292
/// million.
pub(super) fn to_sql_integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn from_sql_integer(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

pub(crate) fn pack_place(number: i64, seq: Seq) -> i64 {
    (number << SEQ_BITS) | to_sql_integer(seq.0.min(MAX_SEQ))
}

/// Returns the session's number and the sequence number of a place.
pub(crate) fn unpack_place(place: i64) -> (i64, Seq) {
    (place >> SEQ_BITS, seq_of_place(place))
}

pub(crate) fn seq_of_place(place: i64) -> Seq {
    Seq(from_sql_integer(place) & MAX_SEQ)
}

pub(crate) fn channel_code(channel: Channel) -> i64 {
    match channel {
        Channel::Progress => 0,
        Channel::Control => 1,
        Channel::Monitor => 2,
    }
}

/// Returns the channel of a code; an unknown code is the error.
pub(crate) fn channel_from_code(code: Option<i64>) -> Result<Option<Channel>, i64> {
    match code {
        None => Ok(None),
        Some(0) => Ok(Some(Channel::Progress)),
        Some(1) => Ok(Some(Channel::Control)),
        Some(2) => Ok(Some(Channel::Monitor)),
        Some(other) => Err(other),
    }
}

/// The fields of a session's row that concern its entries.
pub(super) struct SessionHead {
    pub(super) number: i64,
    pub(super) last: Seq,
    /// The counted number of its records.
    pub(super) records: u64,
}

pub(super) fn read_head(connection: &Connection, session: &SessionId) -> Result<SessionHead, StatementError> {
    connection
        .prepare_cached("SELECT number, last, records FROM sessions WHERE id = ?1")?
        .query_row([session.as_str()], |row| {
            let (number, last, records): (_, i64, i64) = row.try_into()?;
            Ok(SessionHead { number, last: Seq(from_sql_integer(last)), records: from_sql_integer(records) })
        })
        .optional()?
        .ok_or_else(|| unknown_session(session))
}

/// The query whose rows [`entry`] reads.
pub(super) const SELECT_ENTRIES: &str = "SELECT place, channel, kind, at, payload, sum FROM entries";

/// Reads an entry from a row, and checks its checksum.
pub(super) fn entry_from_row(
    row: &Row<'_>,
    session: &SessionId,
    path: &Path,
) -> Result<Entry, StatementError> {
    let (seq, code, at) = (seq_of_place(row.get(0)?), row.get(1)?, row.get(3)?);
    let channel =
        channel_from_code(code).map_err(|code| rusqlite::Error::IntegralValueOutOfRange(1, code))?;
    let (kind, payload): (String, Vec<u8>) = (row.get(2)?, row.get(4)?);
    match row.get::<_, Option<i64>>(5)? {
        Some(sum) if sum != checksum(code, &kind, at, &payload) => {
            let detail = format!("entry {seq} of session {session} is not as it was written");
            Err(StatementError::Ours(StoreError::Damaged { path: path.to_owned(), detail }))
        }
        // Entries of the first format have no sum.
        _ => Ok(Entry { seq, channel, kind, at: UnixMillis(from_sql_integer(at)), payload }),
    }
}

/// Returns the checksum of an entry's columns. SQLite notices invalid pages, but not changed bytes
/// of a payload. The place isn't part of the sum: gaps are noticed anyway, and a fork copies rows
/// unchanged.
pub(crate) fn checksum(channel: Option<i64>, kind: &str, at: i64, payload: &[u8]) -> i64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&channel.unwrap_or(-1).to_le_bytes()).update(&at.to_le_bytes());
    hasher.update(&(kind.len() as u64).to_le_bytes()).update(kind.as_bytes()).update(payload);
    let mut sum = [0; 8];
    hasher.finalize_xof().fill(&mut sum);
    i64::from_le_bytes(sum)
}

/// The query whose rows [`summary`] reads.
pub(super) const SELECT_SUMMARIES: &str =
    "SELECT id, root, title, created, updated, last, status FROM sessions";

pub(super) fn summary_from_row(row: &Row<'_>) -> rusqlite::Result<SessionSummary> {
    let id: String = row.get(0)?;
    let id = id.parse().map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
    })?;
    Ok(SessionSummary {
        id,
        root: row.get(1)?,
        title: row.get(2)?,
        created: UnixMillis(from_sql_integer(row.get(3)?)),
        updated: UnixMillis(from_sql_integer(row.get(4)?)),
        last: Seq(from_sql_integer(row.get(5)?)),
        status: row.get(6)?,
    })
}
