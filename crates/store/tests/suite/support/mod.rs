//! What several test files share.

pub(crate) mod child;
pub(crate) mod disk;

use std::collections::VecDeque;
use std::future::Future;
use std::path::{Path, PathBuf};

use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, unfold};
use journeyman_protocol::{Seq, SessionId, UnixMillis};
use journeyman_store::{Entry, NewEntry, SqliteStore, Store, StoreError};

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

/// A directory in memory where there is such a place, for tests that make many files and no point
/// of when they reach a disk.
pub(crate) fn quick_dir() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Follows a log from the place `after`: waits for entries and reads them in small chunks. The
/// stream ends with the first error.
pub(crate) fn follow<'a>(
    store: &'a dyn Store,
    session: &SessionId,
    after: Seq,
) -> BoxStream<'a, Result<Entry, StoreError>> {
    let start = Some((session.clone(), after, VecDeque::<Entry>::new()));
    unfold(start, move |state| async move {
        let (session, after, mut read) = state?;
        let next = async {
            while read.is_empty() {
                read = store.read_chunk(&session, after, 4 * 1024).await?.into();
                if read.is_empty() {
                    store.wait_for_entry(&session, after).await?;
                }
            }
            Ok(read.pop_front())
        }
        .await;
        match next {
            Ok(entry) => entry.map(|entry| (Ok(entry.clone()), Some((session, entry.seq, read)))),
            Err(error) => Some((Err(error), None)),
        }
    })
    .boxed()
}
