//! Verification of the whole file.

use std::path::Path;

use journeyman_protocol::Seq;
use rusqlite::Connection;

use super::log_connection::LogConnection;
use super::rows::{
    MAX_SEQ, SELECT_ENTRIES, StatementError, entry_from_row, from_sql_integer, pack_place, seq_of_place,
};
use crate::StoreError;
use crate::private_directories::path_with_suffix;
use crate::salvage::raw_database::count_lost_transactions;

/// Maximum number of lines that a check returns; a repair doesn't get more precise by more of them.
const MAX_FAULT_LINES: usize = 20;
/// Number of entries that are verified between two calls of the progress callback: some
/// milliseconds of work.
const ENTRIES_PER_PROGRESS: u64 = 1000;

/// A callback that gets the numbers of verified entries and of all.
pub(super) type ProgressCallback = Box<dyn FnMut(u64, u64) + Send>;

impl LogConnection {
    /// Verifies the file's structure, the number of every session's entries, and every entry's
    /// checksum.
    pub(super) fn check(&mut self, progress: &mut ProgressCallback) -> Result<Vec<String>, StoreError> {
        let path = self.path().to_owned();
        // Opening the file drops the part of the write-ahead log after a damaged place.
        if !self.is_open() {
            let wal = path_with_suffix(&path, "-wal");
            let lost =
                count_lost_transactions(&wal).map_err(|source| StoreError::io("check", &wal, source))?;
            if lost > 0 {
                let line =
                    "its write-ahead log is damaged, and the newest entries behind that place are lost";
                return Ok(vec![format!("{line} ({lost} of its transactions)")]);
            }
        }
        self.run_statements("check", |connection| {
            let transaction = connection.transaction()?;
            let mut lines = check_structure(&transaction)?;
            // Entries can't be read from damaged pages.
            if lines.is_empty() {
                lines = check_entry_counts(&transaction)?;
                lines.extend(check_entry_checksums(&transaction, &path, progress)?);
            }
            if lines.len() > MAX_FAULT_LINES {
                let more = lines.len() - MAX_FAULT_LINES;
                lines.truncate(MAX_FAULT_LINES);
                lines.push(format!("{more} more sessions are damaged"));
            }
            Ok(lines)
        })
    }
}

/// Returns the faults that SQLite itself finds: pages, cells and indexes that don't fit together.
fn check_structure(connection: &Connection) -> Result<Vec<String>, StatementError> {
    let mut statement = connection.prepare(&format!("PRAGMA integrity_check({MAX_FAULT_LINES})"))?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
    let lines = lines.collect::<Result<Vec<_>, _>>()?;
    if lines == ["ok"] {
        return Ok(Vec::new());
    }
    Ok(lines.into_iter().map(|line| format!("its pages don't fit together ({})", line.trim())).collect())
}

/// Returns a line for each session whose number of entries differs from its row. SQLite's own check
/// doesn't compare these, and ignores surplus rows of a partial index.
fn check_entry_counts(connection: &Connection) -> Result<Vec<String>, StatementError> {
    let mut statement = connection.prepare(
        "SELECT * FROM (
           SELECT id, last,
             (SELECT count(*) FROM entries NOT INDEXED
              WHERE place > number << 40 AND place < (number + 1) << 40) AS found,
             (SELECT count(*) FROM entries NOT INDEXED WHERE channel IS NULL
              AND place > number << 40 AND place <= (number << 40) + last) AS records,
             (SELECT count(*) FROM entries INDEXED BY records WHERE channel IS NULL
              AND place > number << 40 AND place <= (number << 40) + last) AS indexed
           FROM sessions)
         WHERE found <> last OR records <> indexed",
    )?;
    let lines = statement.query_map([], |row| {
        let (id, last, found, records, indexed): (String, i64, i64, i64, i64) = row.try_into()?;
        Ok(format!(
            "session {id} has {found} of its {last} entries, and {records} records, of which its index has {indexed}"
        ))
    })?;
    Ok(lines.collect::<Result<_, _>>()?)
}

/// Returns a line for each session with entries that don't match their checksums.
fn check_entry_checksums(
    connection: &Connection,
    path: &Path,
    progress: &mut ProgressCallback,
) -> Result<Vec<String>, StatementError> {
    let mut lines = Vec::new();
    let total = connection.query_row("SELECT count(*) FROM entries", [], |row| row.get::<_, i64>(0))?;
    let (total, mut done) = (from_sql_integer(total), 0_u64);
    let mut sessions = connection.prepare("SELECT number, id FROM sessions ORDER BY number")?;
    let mut statement =
        connection.prepare(&format!("{SELECT_ENTRIES} WHERE place > ?1 AND place <= ?2 ORDER BY place"))?;
    let mut all = sessions.query([])?;
    while let Some(session) = all.next()? {
        let (number, id): (i64, String) = session.try_into()?;
        let Ok(id) = id.parse() else {
            lines.push(format!("the id of session number {number} is no session's id"));
            continue;
        };
        let mut rows = statement.query([pack_place(number, Seq::START), pack_place(number, Seq(MAX_SEQ))])?;
        let mut damaged = Vec::new();
        while let Some(row) = rows.next()? {
            if entry_from_row(row, &id, path).is_err() {
                damaged.push(seq_of_place(row.get(0)?));
            }
            done += 1;
            if done.is_multiple_of(ENTRIES_PER_PROGRESS) {
                progress(done, total);
            }
        }
        if let Some(first) = damaged.first() {
            let more = match damaged.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            lines.push(format!(
                "session {id}: entry {first}{more} not as written; it can't be shown, exported or gone on with"
            ));
        }
    }
    Ok(lines)
}
