//! What the log costs on this disk: `cargo run --release -p journeyman-store --example append_cost
//! [DIR]`.
//!
//! Prints one `name value` a line. Times are medians; the two append times are taken in turns, so
//! that both meet the same disk. `DIR` is where the log is made and removed again; the temporary
//! directory if not given.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout
)]

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use journeyman_protocol::{Channel, Seq, SessionId, UnixMillis};
use journeyman_store::{NewEntry, SqliteStore, Store};

#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/suite/support/disk.rs"]
mod disk;

/// Entries of the long session; every tenth is a record.
const LONG: u64 = 100_000;
/// Appends that are timed, of each session.
const TIMED: u64 = 300;
/// Sessions that append at once.
const AT_ONCE: u64 = 200;
const MEGABYTE: usize = 1_000_000;

fn session(number: u64) -> SessionId {
    SessionId::new(UnixMillis(1_700_000_000_000 + number), number)
}

fn entry(number: u64) -> NewEntry {
    let channel = (!number.is_multiple_of(10)).then_some(Channel::Progress);
    NewEntry { channel, kind: "text_delta".into(), at: UnixMillis(number), payload: vec![b'x'; 120] }
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e6
}

/// Bytes that the log takes on the disk.
fn on_disk(path: &Path) -> u64 {
    let files = ["", "-wal", "-shm"].map(|suffix| PathBuf::from(format!("{}{suffix}", path.display())));
    files.iter().filter_map(|file| fs::metadata(file).ok()).map(|found| found.blocks() * 512).sum()
}

async fn create(store: &SqliteStore, number: u64) {
    store.create(&session(number), "/project", "a session", UnixMillis(number)).await.unwrap();
}

async fn appends(path: &Path) {
    let store = SqliteStore::open(path).unwrap();
    create(&store, 1).await;
    create(&store, 2).await;
    let mut last = Seq::START;
    while last.0 < LONG {
        let entries = (last.0 + 1..=last.0 + 1_000).map(entry).collect();
        last = store.append(&session(1), last, entries).await.unwrap();
    }
    drop(store);

    let opening = Instant::now();
    let store = SqliteStore::open(path).unwrap();
    assert_eq!(store.find_sessions(session(1).as_str()).await.unwrap()[0].last, Seq(LONG));
    println!("open_ms {:.3}", opening.elapsed().as_secs_f64() * 1e3);
    let first = Instant::now();
    store.append(&session(1), last, vec![entry(1)]).await.unwrap();
    last = last.next();
    println!("first_append_ms {:.3}", first.elapsed().as_secs_f64() * 1e3);
    let reading = Instant::now();
    let records = store.read_records(&session(1), Seq::START, usize::MAX).await.unwrap().len();
    println!("records {records}");
    println!("read_records_ms {:.3}", reading.elapsed().as_secs_f64() * 1e3);

    let (mut short, mut long) = (Vec::new(), Vec::new());
    for number in 0..TIMED {
        let begin = Instant::now();
        store.append(&session(2), Seq(number), vec![entry(number)]).await.unwrap();
        short.push(begin.elapsed());
        let begin = Instant::now();
        last = store.append(&session(1), last, vec![entry(number)]).await.unwrap();
        long.push(begin.elapsed());
    }
    let (short, long) = (median(short), median(long));
    println!("append_us_at_0 {short:.1}");
    println!("append_us_at_100000 {long:.1}");
    println!("append_ratio {:.3}", long / short);
}

async fn at_once(path: &Path) {
    let store = SqliteStore::open(path).unwrap();
    for number in 0..AT_ONCE {
        create(&store, number).await;
    }
    let mut flushes = 0;
    let mut took = Vec::new();
    for round in 0..20 {
        let before = disk::FLUSHES.load(Ordering::SeqCst);
        let begin = Instant::now();
        let calls: Vec<_> = (0..AT_ONCE)
            .map(|number| store.append(&session(number), Seq(round), vec![entry(number)]))
            .collect();
        for result in join_all(calls).await {
            assert_eq!(result.unwrap(), Seq(round + 1));
        }
        took.push(begin.elapsed());
        flushes = flushes.max(disk::FLUSHES.load(Ordering::SeqCst) - before);
    }
    println!("flushes_of_200_appends_at_once {flushes}");
    println!("us_of_200_appends_at_once {:.1}", median(took));
}

async fn one_megabyte(path: &Path) {
    let store = SqliteStore::open(path).unwrap();
    create(&store, 1).await;
    store.append(&session(1), Seq::START, vec![entry(1)]).await.unwrap();
    let before = on_disk(path);
    let large = NewEntry { payload: vec![b'x'; MEGABYTE], ..entry(10) };
    store.append(&session(1), Seq(1), vec![large]).await.unwrap();
    println!("disk_bytes_of_1_mb_open {}", on_disk(path) - before);
    drop(store);
    println!("disk_bytes_of_1_mb_closed {}", on_disk(path));
}

fn main() {
    disk::install();
    let above = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let home = tempfile::tempdir_in(above).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        appends(&home.path().join("long.db")).await;
        at_once(&home.path().join("many.db")).await;
        one_megabyte(&home.path().join("large.db")).await;
    });
}
