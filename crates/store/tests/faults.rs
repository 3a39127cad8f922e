//! Disks that fail: what is said, what is kept, and how it goes on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Mutex, MutexGuard, PoisonError};

use disk::{FLUSHES, NO_FLUSH, NO_ROOM};
use futures_util::future::join_all;
use journeyman_protocol::{Seq, UnixMillis};
use journeyman_store::{NewEntry, SqliteStore, Store, StoreError};
use support::{beside, block_on, entry, session};

#[path = "support/disk.rs"]
mod disk;
mod support;

/// The disk for one test at a time, sound at its beginning.
fn disk() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    disk::install();
    NO_FLUSH.store(false, SeqCst);
    NO_ROOM.store(false, SeqCst);
    guard
}

async fn begin(path: &Path, sessions: u64) -> SqliteStore {
    let store = SqliteStore::open(path).unwrap();
    for number in 1..=sessions {
        store.create(&session(number), "/p", "t", UnixMillis(1)).await.unwrap();
    }
    // The first append starts the write-ahead log, which costs a flush of its own.
    store.append(&session(1), Seq::START, vec![entry(b"first")]).await.unwrap();
    store
}

async fn payloads(store: &SqliteStore, number: u64) -> Vec<Vec<u8>> {
    let entries = store.read(&session(number), Seq::START, usize::MAX).await.unwrap();
    entries.into_iter().map(|entry| entry.payload).collect()
}

#[test]
fn an_append_alone_costs_one_flush_and_what_changes_no_entry_costs_none() {
    let _one = disk();
    let home = tempfile::tempdir().unwrap();
    block_on(async {
        let store = begin(&home.path().join("sessions.db"), 1).await;
        for seq in 1..20 {
            let before = FLUSHES.load(SeqCst);
            store.append(&session(1), Seq(seq), vec![entry(b"x"); 1]).await.unwrap();
            assert_eq!(FLUSHES.load(SeqCst) - before, 1);
        }
        let before = FLUSHES.load(SeqCst);
        store.create(&session(2), "/p", "t", UnixMillis(1)).await.unwrap();
        store.set_status(&session(1), "busy", UnixMillis(1)).await.unwrap();
        store.lease(&session(1), "me", UnixMillis(1), 10).await.unwrap();
        store.release(&session(1), "me").await.unwrap();
        store.append(&session(1), Seq(20), vec![]).await.unwrap();
        store.append(&session(1), Seq(7), vec![entry(b"x")]).await.unwrap_err();
        store.read_records(&session(1), Seq::START, 9).await.unwrap();
        assert_eq!(FLUSHES.load(SeqCst), before);
    });
}

#[test]
fn appends_of_many_sessions_that_wait_at_once_share_a_flush() {
    let _one = disk();
    let home = tempfile::tempdir().unwrap();
    block_on(async {
        let store = begin(&home.path().join("sessions.db"), 200).await;
        store.append(&session(1), Seq(1), vec![]).await.unwrap();
        let before = FLUSHES.load(SeqCst);
        // One of them has missed something; that is its own affair.
        let calls = (1..=200).map(|number| {
            let expected = Seq(u64::from(number == 1 || number == 77));
            store.append(&session(number), expected, vec![entry(b"x")])
        });
        let results = join_all(calls.collect::<Vec<_>>()).await;
        let flushes = FLUSHES.load(SeqCst) - before;
        assert!(flushes <= 20, "{flushes} flushes for 200 appends");
        for (number, result) in (1..=200).zip(results) {
            match number {
                77 => assert!(matches!(result, Err(StoreError::Conflict { .. }))),
                1 => assert_eq!(result.unwrap(), Seq(2)),
                _ => assert_eq!(result.unwrap(), Seq(1)),
            }
        }
        assert_eq!(payloads(&store, 77).await, Vec::<Vec<u8>>::new());
        assert_eq!(payloads(&store, 200).await, [b"x"]);
    });
}

#[test]
fn after_a_failed_flush_it_is_tried_again_until_the_disk_recovers_and_nothing_is_lost_or_doubled() {
    let _one = disk();
    let home = tempfile::tempdir().unwrap();
    // Another process that has the log open keeps SQLite from tidying up when the connection is closed.
    for other_is_open in [false, true] {
        let path = home.path().join(format!("{other_is_open}.db"));
        block_on(async {
            let store = begin(&path, 2).await;
            let other = SqliteStore::open(&path).unwrap();
            if other_is_open {
                assert_eq!(payloads(&other, 1).await.len(), 1);
            }
            NO_FLUSH.store(true, SeqCst);
            let append = async || store.append(&session(1), Seq(1), vec![entry(b"second")]).await;
            let error = append().await.unwrap_err();
            assert!(error.is_uncertain() && matches!(error, StoreError::Uncertain { .. }), "{error:?}");
            assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
            for _ in 0..3 {
                // While the disk is broken nothing is said to be stored, also by those who share a group.
                let calls = [append().await, store.append(&session(2), Seq(0), vec![entry(b"x")]).await];
                assert!(calls.iter().all(Result::is_err), "{calls:?}");
            }
            // What was stored before can be read.
            assert_eq!(payloads(&store, 1).await[0], b"first");
            NO_FLUSH.store(false, SeqCst);
            match append().await {
                Ok(last) => assert_eq!(last, Seq(2)),
                Err(StoreError::Conflict { found, .. }) => assert_eq!(found, Seq(2)),
                Err(other) => panic!("{other:?}"),
            }
            store.append(&session(1), Seq(2), vec![entry(b"third")]).await.unwrap();
            assert_eq!(payloads(&store, 1).await, [&b"first"[..], b"second", b"third"]);
            assert_eq!(payloads(&other, 1).await.len(), 3);
            assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
        });
    }
}

#[test]
fn after_a_failed_flush_what_is_stored_reaches_the_main_file_before_anything_is_acknowledged() {
    let _one = disk();
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    block_on(async {
        let store = begin(&path, 1).await;
        let _other = SqliteStore::open(&path).unwrap();
        payloads(&_other, 1).await;
        let before = fs::metadata(&path).unwrap().len();
        // Only in the write-ahead log so far.
        let large = NewEntry { payload: vec![7; 100_000], ..entry(b"") };
        store.append(&session(1), Seq(1), vec![large]).await.unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), before);
        NO_FLUSH.store(true, SeqCst);
        store.append(&session(1), Seq(2), vec![entry(b"x")]).await.unwrap_err();
        NO_FLUSH.store(false, SeqCst);
        let wal = fs::metadata(beside(&path, "-wal")).unwrap().len();
        store.append(&session(1), Seq(2), vec![entry(b"x")]).await.unwrap();
        assert!(fs::metadata(&path).unwrap().len() > before + 90_000);
        let fresh = fs::metadata(beside(&path, "-wal")).unwrap().len();
        assert!(fresh < wal, "the write-ahead log starts over: {fresh} after {wal} bytes");
    });
}

#[test]
fn on_a_full_disk_one_that_finds_no_room_takes_nothing_from_those_that_do() {
    let _one = disk();
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    block_on(async {
        let store = begin(&path, 3).await;
        NO_ROOM.store(true, SeqCst);
        let calls = (1..=3).map(|number| {
            store.append(&session(number), Seq(u64::from(number == 1)), vec![entry(&[0; 5_000])])
        });
        for result in join_all(calls.collect::<Vec<_>>()).await {
            let error = result.unwrap_err();
            assert!(matches!(error, StoreError::DiskFull { .. }) && !error.is_uncertain(), "{error:?}");
        }
        NO_ROOM.store(false, SeqCst);
        for number in 1..=3 {
            let expected = Seq(u64::from(number == 1));
            assert_eq!(payloads(&store, number).await.len() as u64, expected.0);
            store.append(&session(number), expected, vec![entry(b"x")]).await.unwrap();
        }
    });
}
