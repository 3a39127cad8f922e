//! A store in memory that fails as it is told.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use std::future::{pending, ready};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_protocol::{Seq, SessionId, UnixMillis};
use journeyman_store::{Entry, MemoryStore, NewEntry, Store, StoreError};
use journeyman_testkit::forward_store_methods;
use tokio::sync::Semaphore;

/// The fate of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is written.
    None,
    /// It fails, may have been written, and is not.
    Before,
    /// It fails, may have been written, and is.
    After,
    /// It fails in a way that says that nothing was written, and nothing is.
    Failed,
    /// It fails in a way that says that nothing was written, and lies.
    Lied,
    /// It is refused, which says that it is not written.
    Refused,
    /// It panics, and is written.
    Panic,
}

#[derive(Default)]
pub(super) struct Gated {
    pub(super) inner: MemoryStore,
    /// Sets the fate of the next appends; later ones succeed.
    pub(super) faults: Mutex<VecDeque<Fault>>,
    /// So many reads fail.
    pub(super) failing_reads: AtomicUsize,
    /// So many reads never answer.
    pub(super) endless_reads: AtomicUsize,
    /// So many appends of nothing fail.
    pub(super) failing_probes: AtomicUsize,
    /// An append answers after so many turns of whoever waits.
    pub(super) slowness: AtomicUsize,
    /// Calls of `append`.
    pub(super) appends: AtomicUsize,
    /// Calls of `read`.
    pub(super) reads: AtomicUsize,
    /// An append answers when it gets a permit of this, if it is there. What it does is done
    /// before.
    pub(super) gate: Mutex<Option<std::sync::Arc<Semaphore>>>,
}

fn failure() -> StoreError {
    StoreError::Io { action: "write", path: PathBuf::from("log"), source: io::Error::other("EIO") }
}

/// Counts down to zero. Returns true if the count was above zero.
fn one_less(count: &AtomicUsize) -> bool {
    count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

fn uncertain() -> StoreError {
    StoreError::Uncertain { path: PathBuf::from("log"), detail: "EIO".to_owned() }
}

impl Gated {
    pub(super) fn fail(&self, faults: impl IntoIterator<Item = Fault>) {
        self.faults.lock().unwrap().extend(faults);
    }

    pub(super) fn clear_faults(&self) {
        self.faults.lock().unwrap().clear();
        self.failing_reads.store(0, Ordering::SeqCst);
        self.failing_probes.store(0, Ordering::SeqCst);
    }

    /// Somebody else's entry.
    pub(super) async fn intrude(&self, id: &SessionId, kind: &str) {
        let last = self.inner.read(id, Seq::START, usize::MAX).await.unwrap().len() as u64;
        let entry =
            NewEntry { channel: None, kind: kind.to_owned(), at: UnixMillis(9), payload: b"{}".to_vec() };
        self.inner.append(id, Seq(last), vec![entry]).await.unwrap();
    }
}

impl Store for Gated {
    forward_store_methods!(inner: create, read_records, wait_for_entry, fork, sessions, find_sessions, set_status, acquire_lease, release_lease, delete);

    fn append(
        &self,
        session: &SessionId,
        expected: Seq,
        entries: Vec<NewEntry>,
    ) -> BoxFuture<'_, Result<Seq, StoreError>> {
        if entries.is_empty() {
            let fails = one_less(&self.failing_probes);
            return if fails {
                ready(Err(failure())).boxed()
            } else {
                self.inner.append(session, expected, entries)
            };
        }
        self.appends.fetch_add(1, Ordering::SeqCst);
        let fault = self.faults.lock().unwrap().pop_front().unwrap_or(Fault::None);
        let writes = matches!(fault, Fault::None | Fault::After | Fault::Lied | Fault::Panic);
        // A call takes effect when it is made, not when its future is polled.
        let result = if writes {
            self.inner.append(session, expected, entries).now_or_never().unwrap()
        } else {
            Ok(expected)
        };
        let gate = self.gate.lock().unwrap().clone();
        let slowness = self.slowness.load(Ordering::SeqCst);
        async move {
            for _ in 0..slowness {
                tokio::task::yield_now().await;
            }
            if let Some(gate) = gate {
                gate.acquire().await.unwrap().forget();
            }
            match fault {
                Fault::None => result,
                Fault::Refused => Err(StoreError::Busy { path: PathBuf::from("log") }),
                Fault::Panic => panic!("the store panics, as it was told"),
                // What conflicts says so also where it would fail.
                Fault::Before | Fault::After => result.and_then(|_| Err(uncertain())),
                Fault::Failed | Fault::Lied => result.and_then(|_| Err(failure())),
            }
        }
        .boxed()
    }

    fn read(
        &self,
        session: &SessionId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        if one_less(&self.failing_reads) {
            return ready(Err(failure())).boxed();
        }
        if one_less(&self.endless_reads) {
            return pending().boxed();
        }
        self.inner.read(session, after, limit)
    }

    fn read_chunk(
        &self,
        session: &SessionId,
        after: Seq,
        bytes: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        if one_less(&self.failing_reads) {
            return ready(Err(failure())).boxed();
        }
        if one_less(&self.endless_reads) {
            return pending().boxed();
        }
        self.inner.read_chunk(session, after, bytes)
    }
}
