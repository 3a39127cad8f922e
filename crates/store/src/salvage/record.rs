//! Parsing the rows of our tables from SQLite's record format.

use journeyman_protocol::{Channel, SessionId, UnixMillis};

use crate::sqlite::{channel_code, channel_from_code, checksum, from_sql_integer};
use crate::{MAX_ENTRY_BYTES, NewEntry};

/// Maximum columns of a record: more than any of our tables has.
const MAX_COLUMNS: usize = 32;

/// The fields of a session's row that are needed to recreate it.
#[derive(Debug, Clone)]
pub(super) struct SessionRow {
    pub(super) id: SessionId,
    pub(super) root: String,
    pub(super) title: String,
    pub(super) created: UnixMillis,
    pub(super) updated: UnixMillis,
    pub(super) last: u64,
    pub(super) status: String,
    /// The number of its entries that are records; unknown in rows of the first format.
    pub(super) records: Option<u64>,
}

/// The value of a column.
#[derive(Debug, Clone, Copy)]
enum Value<'a> {
    Null,
    Number(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    fn number(self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }

    fn text(self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// A column's type with its length in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnType {
    Null,
    /// 0 or 1, which take no bytes.
    Constant(i64),
    Number(usize),
    Text(usize),
    Bytes(usize),
}

impl ColumnType {
    fn from_serial_type(serial: i64) -> Option<Self> {
        let length = |serial: i64| usize::try_from((serial - 12) / 2).ok();
        Some(match serial {
            0 => Self::Null,
            1..=4 => Self::Number(usize::try_from(serial).ok()?),
            5 => Self::Number(6),
            6 => Self::Number(8),
            8 | 9 => Self::Constant(serial - 8),
            12.. if serial % 2 == 0 => Self::Bytes(length(serial)?),
            13.. => Self::Text(length(serial)?),
            _ => return None,
        })
    }

    fn byte_len(self) -> usize {
        match self {
            Self::Null | Self::Constant(_) => 0,
            Self::Number(bytes) | Self::Text(bytes) | Self::Bytes(bytes) => bytes,
        }
    }
}

/// Parses the header of a record of `length` bytes. Returns its columns and the offset of their
/// values; `None` if the header isn't valid.
fn parse_columns(record: &[u8], length: usize) -> Option<(Vec<ColumnType>, usize)> {
    let mut rest = record;
    let header = usize::try_from(varint(&mut rest)?).ok()?;
    let mut types = record.get(record.len() - rest.len()..header)?;
    let mut columns = Vec::new();
    while !types.is_empty() && columns.len() < MAX_COLUMNS {
        columns.push(ColumnType::from_serial_type(varint(&mut types)?)?);
    }
    let total = columns.iter().try_fold(header, |sum, column| sum.checked_add(column.byte_len()))?;
    (total == length && types.is_empty()).then_some((columns, header))
}

fn parse_values(record: &[u8]) -> Option<Vec<Value<'_>>> {
    let (columns, mut at) = parse_columns(record, record.len())?;
    let values = columns.into_iter().map(|column| {
        let bytes = record.get(at..at + column.byte_len())?;
        at += column.byte_len();
        Some(match column {
            ColumnType::Null => Value::Null,
            ColumnType::Constant(number) => Value::Number(number),
            ColumnType::Number(_) => Value::Number(parse_signed(bytes)),
            ColumnType::Text(_) => Value::Text(std::str::from_utf8(bytes).ok()?),
            ColumnType::Bytes(_) => Value::Bytes(bytes),
        })
    });
    values.collect()
}

/// Returns true if a record looks like an entry, from its first bytes alone.
pub(super) fn is_entry(local: &[u8], length: usize) -> bool {
    let Some((columns, _)) = parse_columns(local, length) else { return false };
    // The first format had no sums.
    let count = columns.len();
    (count == 5 || count == 6)
        && length <= MAX_ENTRY_BYTES + 64
        && matches!(
            columns.as_slice(),
            [
                ColumnType::Null,
                ColumnType::Null | ColumnType::Constant(_) | ColumnType::Number(_),
                ColumnType::Text(_),
                ColumnType::Number(_) | ColumnType::Constant(_),
                ColumnType::Bytes(_),
                ..
            ]
        )
}

/// Parses the record of an entry; `None` if it is damaged.
pub(super) fn parse_entry(record: &[u8]) -> Option<NewEntry> {
    let values = parse_values(record)?;
    let [Value::Null, channel, kind, at, Value::Bytes(payload), sum @ ..] = values.as_slice() else {
        return None;
    };
    let channel: Option<Channel> = match channel {
        Value::Null => None,
        code => channel_from_code(Some(code.number()?)).ok()?,
    };
    let (kind, at) = (kind.text()?, at.number()?);
    if let [Value::Number(sum)] = sum
        && *sum != checksum(channel.map(channel_code), kind, at, payload)
    {
        return None;
    }
    Some(NewEntry {
        channel,
        kind: kind.to_owned(),
        at: UnixMillis(from_sql_integer(at)),
        payload: payload.to_vec(),
    })
}

/// Parses the record of a session. Versions differ in the columns after these.
pub(super) fn parse_session(record: &[u8]) -> Option<SessionRow> {
    let values = parse_values(record)?;
    let [Value::Null, id, root, title, created, updated, last, status, _, _, rest @ ..] = values.as_slice()
    else {
        return None;
    };
    Some(SessionRow {
        id: id.text()?.parse().ok()?,
        root: root.text()?.to_owned(),
        title: title.text()?.to_owned(),
        created: UnixMillis(from_sql_integer(created.number()?)),
        updated: UnixMillis(from_sql_integer(updated.number()?)),
        last: from_sql_integer(last.number()?),
        status: status.text()?.to_owned(),
        records: rest.get(2).and_then(|records| records.number()).map(from_sql_integer),
    })
}

/// Parses a record of the index of session ids: the id, and the session's number.
pub(super) fn parse_id_index(record: &[u8]) -> Option<(SessionId, i64)> {
    match parse_values(record)?.as_slice() {
        [Value::Text(id), Value::Number(number)] => Some((id.parse().ok()?, *number)),
        _ => None,
    }
}

/// Parses a record of the index of records: the place of the record.
pub(super) fn parse_record_index(record: &[u8]) -> Option<i64> {
    match parse_values(record)?.as_slice() {
        [Value::Null, Value::Number(place)] => Some(*place),
        _ => None,
    }
}

/// Reads an integer of up to nine bytes in SQLite's encoding.
pub(super) fn varint(bytes: &mut &[u8]) -> Option<i64> {
    let mut value: u64 = 0;
    for index in 0..9 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if index == 8 {
            return Some(((value << 8) | u64::from(byte)).cast_signed());
        }
        value = (value << 7) | u64::from(byte & 0x7F);
        if byte < 0x80 {
            break;
        }
    }
    Some(value.cast_signed())
}

fn parse_signed(bytes: &[u8]) -> i64 {
    let start = match bytes.first() {
        Some(first) if *first >= 0x80 => -1,
        _ => 0,
    };
    bytes.iter().fold(start, |value, byte| (value << 8) | i64::from(*byte))
}

pub(super) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes)
}

pub(super) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_be_bytes)
}
