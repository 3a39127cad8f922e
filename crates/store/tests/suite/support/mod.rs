//! What several test files share.

pub(crate) mod child;
pub(crate) mod disk;

use std::future::Future;
use std::path::{Path, PathBuf};

use journeyman_protocol::{Seq, SessionId, UnixMillis};
use journeyman_store::{NewEntry, SqliteStore, Store};

/// Runs a future to its end.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// A session's id, by a number.
pub(crate) fn session(number: u64) -> SessionId {
    SessionId::new(UnixMillis(1_700_000_000_000 + number), number)
}

/// A record with this payload.
pub(crate) fn entry(payload: &[u8]) -> NewEntry {
    NewEntry { channel: None, kind: "note".into(), at: UnixMillis(1), payload: payload.to_vec() }
}

/// What entry `seq` of a test log holds: enough that the logs of these tests have many pages.
pub(crate) fn content(seq: u64) -> Vec<u8> {
    format!("{seq}:{}", "abcdefgh".repeat(60)).into_bytes()
}

/// A log of one session with `count` entries, closed.
pub(crate) fn filled(path: &Path, count: u64) {
    let store = SqliteStore::open(path).unwrap();
    let entries = (1..=count).map(|seq| entry(&content(seq))).collect();
    block_on(async {
        store.create(&session(1), "/p", "t", UnixMillis(1)).await.unwrap();
        store.append(&session(1), Seq::START, entries).await.unwrap();
    });
}

/// The file whose name has something more.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

/// A directory in memory where there is such a place, for tests that make many files and no point of when
/// they reach a disk.
pub(crate) fn quick_dir() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}
