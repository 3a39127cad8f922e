//! What is asked of the disk, and disks that fail: what is said, what is kept, and how it goes on.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;

use crate::support::disk::{self, FLUSHES, NO_FLUSH, NO_ROOM, READS, most_memory};
use crate::support::{beside, block_on, entry, session};
use futures_util::future::join_all;
use journeyman_protocol::{Channel, Seq, UnixMillis};
use journeyman_store::{NewEntry, SqliteStore, Store, StoreError};
use journeyman_testkit::run_in_own_process;

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
    run_in_own_process!();
    disk::install();
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
        store.acquire_lease(&session(1), "me", UnixMillis(1), 10).await.unwrap();
        store.release_lease(&session(1), "me").await.unwrap();
        store.append(&session(1), Seq(20), vec![]).await.unwrap();
        store.append(&session(1), Seq(7), vec![entry(b"x")]).await.unwrap_err();
        store.read_records(&session(1), Seq::START, 9).await.unwrap();
        assert_eq!(FLUSHES.load(SeqCst), before);
    });
}

#[test]
fn appends_of_many_sessions_that_wait_at_once_share_a_flush() {
    run_in_own_process!();
    disk::install();
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
fn opening_appending_and_resuming_read_no_more_of_a_long_log_than_of_a_short_one() {
    run_in_own_process!();
    disk::install();
    let home = tempfile::tempdir().unwrap();
    let event = NewEntry { channel: Some(Channel::Progress), ..entry(b"a short event") };
    let mut reads = Vec::new();
    for length in [10, 100_000] {
        let path = home.path().join(format!("{length}.db"));
        block_on(async {
            let store = begin(&path, 1).await;
            let mut last = Seq(1);
            while last.0 < length {
                let count = (length - last.0).min(5_000) as usize;
                last = store.append(&session(1), last, vec![event.clone(); count]).await.unwrap();
            }
            last = store.append(&session(1), last, vec![entry(b"last")]).await.unwrap();
            drop(store);
            let before = READS.load(SeqCst);
            let store = SqliteStore::open(&path).unwrap();
            assert_eq!(store.find_sessions(session(1).as_str()).await.unwrap()[0].last, last);
            assert_eq!(store.read_records(&session(1), Seq::START, usize::MAX).await.unwrap().len(), 2);
            store.append(&session(1), last, vec![entry(b"x")]).await.unwrap();
            assert_eq!(store.read(&session(1), last, 9).await.unwrap().len(), 1);
            reads.push(READS.load(SeqCst) - before);
        });
    }
    // A longer log has a deeper tree, and its first and last records are on different pages.
    assert!(reads[1] <= reads[0] + 10, "{reads:?}");
}

#[test]
fn a_fork_takes_little_memory_whatever_it_copies() {
    run_in_own_process!();
    disk::install();
    let home = tempfile::tempdir().unwrap();
    block_on(async {
        let store = begin(&home.path().join("sessions.db"), 1).await;
        let mut last = Seq(1);
        for _ in 0..24 {
            last = store.append(&session(1), last, vec![entry(&[7; 10_000]); 100]).await.unwrap();
        }
        most_memory();
        store.fork(&session(1), last, &session(2), "t", UnixMillis(1)).await.unwrap();
        let most = most_memory();
        assert!(most > 0 && most < 6 << 20, "{most} bytes for 24 MB");
        assert_eq!(payloads(&store, 2).await.len() as u64, last.0);
        // Nor does what it wrote stay in the write-ahead log.
        store.append(&session(2), last, vec![entry(b"x")]).await.unwrap();
        drop(store);
        assert!(!beside(&home.path().join("sessions.db"), "-wal").exists());
    });
}

#[test]
fn a_fork_whose_flush_failed_is_there_whole_or_not_at_all() {
    run_in_own_process!();
    disk::install();
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    block_on(async {
        let store = begin(&path, 2).await;
        let other = SqliteStore::open(&path).unwrap();
        payloads(&other, 1).await;
        // Enough that it is moved to the main file after the answer, which may fail meanwhile.
        let large = vec![entry(&vec![7; 1_000_000]); 5];
        store.append(&session(1), Seq(1), large).await.unwrap();
        NO_FLUSH.store(true, SeqCst);
        store.fork(&session(1), Seq(6), &session(3), "t", UnixMillis(1)).await.unwrap_err();
        NO_FLUSH.store(false, SeqCst);
        assert_eq!(payloads(&store, 1).await.len(), 6);
        match store.fork(&session(1), Seq(6), &session(3), "t", UnixMillis(1)).await {
            Ok(()) | Err(StoreError::SessionExists { .. }) => {}
            Err(other) => panic!("{other:?}"),
        }
        assert_eq!(payloads(&store, 3).await, payloads(&other, 1).await);
    });
}

#[test]
fn after_a_failed_flush_it_is_tried_again_until_the_disk_recovers_and_nothing_is_lost_or_doubled() {
    run_in_own_process!();
    disk::install();
    let home = tempfile::tempdir().unwrap();
    // Another process that has the log open keeps SQLite from tidying up when the connection is
    // closed.
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
                // While the disk is broken nothing is said to be stored, also by those who share a
                // group.
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
    run_in_own_process!();
    disk::install();
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
    run_in_own_process!();
    disk::install();
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
