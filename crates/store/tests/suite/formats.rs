//! Logs of older versions.

use std::path::Path;

use journeyman_protocol::{Seq, UnixMillis};
use journeyman_store::{SqliteStore, Store};
use rusqlite::Connection;
use support::{block_on, entry, session};

use crate::support;

/// What format 1 was, with two sessions: every third entry of the first, and all of the second, are
/// records.
fn format_1(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
    connection
        .execute_batch(&format!(
            "CREATE TABLE sessions (
               number INTEGER PRIMARY KEY CHECK (number BETWEEN 1 AND 8388607),
               id TEXT NOT NULL UNIQUE, root TEXT NOT NULL, title TEXT NOT NULL,
               created INTEGER NOT NULL, updated INTEGER NOT NULL, last INTEGER NOT NULL,
               status TEXT NOT NULL, holder TEXT, held_until INTEGER
             ) STRICT;
             CREATE TABLE entries (
               place INTEGER PRIMARY KEY, channel INTEGER, kind TEXT NOT NULL, at INTEGER NOT NULL,
               payload BLOB NOT NULL
             ) STRICT;
             PRAGMA application_id = {}; PRAGMA user_version = 1;
             INSERT INTO sessions VALUES (1, '{}', '/p', 't', 5, 6, 300, 'done', 'pid 1', 100);
             INSERT INTO sessions VALUES (2, '{}', '/p', 't', 5, 6, 10, 'done', NULL, NULL);
             WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 300)
             INSERT INTO entries SELECT (1 << 40) | n, iif(n % 3, 0, NULL), 'k', n, CAST(n AS BLOB) FROM n;
             WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 10)
             INSERT INTO entries SELECT (2 << 40) | n, NULL, 'k', n, CAST(n AS BLOB) FROM n;",
            0x6A6D_6C67,
            session(1),
            session(2),
        ))
        .unwrap();
    connection
}

#[test]
fn a_log_of_the_first_format_is_upgraded_where_it_lies() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    drop(format_1(&path));
    for _ in 0..2 {
        let store = SqliteStore::open(&path).unwrap();
        block_on(async {
            let records = store.read_records(&session(1), Seq::START, usize::MAX).await.unwrap();
            assert!(records.iter().map(|record| record.seq.0).eq((1..=100).map(|number| number * 3)));
            assert_eq!(store.read(&session(1), Seq::START, usize::MAX).await.unwrap().len(), 300);
            assert_eq!(store.read_records(&session(2), Seq::START, usize::MAX).await.unwrap().len(), 10);
            assert!(
                store.acquire_lease(&session(1), "me", UnixMillis(99), 10).await.is_err(),
                "its leases hold"
            );
            assert_eq!(store.find_sessions("").await.unwrap().len(), 2);
            assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
        });
    }
    let store = SqliteStore::open(&path).unwrap();
    block_on(async {
        store.append(&session(2), Seq(10), vec![entry(b"new")]).await.unwrap();
        store.acquire_lease(&session(1), "me", UnixMillis(100), 10).await.unwrap();
        assert_eq!(store.read_records(&session(2), Seq::START, usize::MAX).await.unwrap().len(), 11);
    });
}

#[test]
fn an_older_program_that_still_runs_may_go_on() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    let older = format_1(&path);
    let store = SqliteStore::open(&path).unwrap();
    block_on(async {
        assert_eq!(store.read_records(&session(2), Seq::START, usize::MAX).await.unwrap().len(), 10);
        older
            .execute_batch(
                "BEGIN IMMEDIATE; INSERT INTO entries (place, channel, kind, at, payload)
                 VALUES ((2 << 40) | 11, NULL, 'k', 1, x'00'), ((2 << 40) | 12, 0, 'k', 1, x'00');
                 UPDATE sessions SET last = 12 WHERE number = 2; COMMIT;",
            )
            .unwrap();
        assert_eq!(store.read_records(&session(2), Seq::START, usize::MAX).await.unwrap().len(), 11);
        assert_eq!(store.append(&session(2), Seq(12), vec![entry(b"new")]).await.unwrap(), Seq(13));
        assert_eq!(store.read_records(&session(2), Seq::START, usize::MAX).await.unwrap().len(), 12);
    });
}

#[test]
fn a_record_that_vanished_is_damage_not_a_shorter_list() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    drop(format_1(&path));
    let store = SqliteStore::open(&path).unwrap();
    block_on(store.read_records(&session(1), Seq::START, usize::MAX)).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute("DELETE FROM entries WHERE place = (1 << 40) | 99", []).unwrap();
    let error = block_on(store.read_records(&session(1), Seq::START, usize::MAX)).unwrap_err();
    assert!(error.to_string().contains("299 of its 300 entries"), "{error}");
}

#[test]
fn records_are_found_by_their_index_and_not_by_looking_through_the_events() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    drop(format_1(&path));
    block_on(SqliteStore::open(&path).unwrap().find_sessions("")).unwrap();
    let connection = Connection::open(&path).unwrap();
    let plan: String = connection
        .query_row(
            "EXPLAIN QUERY PLAN SELECT place, channel, kind, at, payload FROM entries INDEXED BY records
             WHERE channel IS NULL AND place > ?1 AND place <= ?2 ORDER BY place LIMIT ?3",
            [1, 2, 3],
            |row| row.get(3),
        )
        .unwrap();
    assert_eq!(plan, "SEARCH entries USING INDEX records (channel=? AND rowid>? AND rowid<?)");
}
