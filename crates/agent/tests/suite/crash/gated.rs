//! A store with a gate before and behind everything that it writes.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_protocol::{Seq, SessionId, UnixMillis};
use journeyman_store::{Entry, NewEntry, Store, StoreError};
use journeyman_testkit::forward_store_methods;

/// What is asked of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Create,
    Append,
    SetStatus,
    Lease,
    Release,
    Read,
}

/// Stands before and behind every call.
pub(crate) trait Gate: Send + Sync {
    /// Before the store hears of it. An error is what the caller gets instead.
    fn before(&self, _op: Op, _entries: &[NewEntry]) -> BoxFuture<'_, Result<(), StoreError>> {
        async { Ok(()) }.boxed()
    }

    /// After the store did it. An error is what the caller gets although it is done.
    fn after(&self, _op: Op) -> BoxFuture<'_, Result<(), StoreError>> {
        async { Ok(()) }.boxed()
    }
}

/// A store behind a gate.
pub(crate) struct Gated<G> {
    inner: Arc<dyn Store>,
    pub(crate) gate: G,
}

impl<G: Gate> Gated<G> {
    pub(crate) fn new(inner: Arc<dyn Store>, gate: G) -> Self {
        Self { inner, gate }
    }

    fn pass<'a, T: Send + 'a>(
        &'a self,
        op: Op,
        entries: &[NewEntry],
        call: impl FnOnce(Arc<dyn Store>) -> BoxFuture<'a, Result<T, StoreError>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        let before = self.gate.before(op, entries);
        async move {
            before.await?;
            let done = call(Arc::clone(&self.inner)).await?;
            self.gate.after(op).await?;
            Ok(done)
        }
        .boxed()
    }
}

impl<G: Gate> Store for Gated<G> {
    forward_store_methods!(inner: fork, read_records, read_chunk, wait_for_entry, sessions, find_sessions, delete);

    fn create(
        &self,
        id: &SessionId,
        root: &str,
        title: &str,
        now: UnixMillis,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let (id, root, title) = (id.clone(), root.to_owned(), title.to_owned());
        self.pass(Op::Create, &[], move |store| {
            async move { store.create(&id, &root, &title, now).await }.boxed()
        })
    }

    fn append(
        &self,
        session: &SessionId,
        expected: Seq,
        entries: Vec<NewEntry>,
    ) -> BoxFuture<'_, Result<Seq, StoreError>> {
        let session = session.clone();
        let shown = entries.clone();
        self.pass(Op::Append, &shown, move |store| {
            async move { store.append(&session, expected, entries).await }.boxed()
        })
    }

    fn read(
        &self,
        session: &SessionId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>> {
        let session = session.clone();
        self.pass(Op::Read, &[], move |store| async move { store.read(&session, after, limit).await }.boxed())
    }

    fn set_status(
        &self,
        session: &SessionId,
        status: &str,
        now: UnixMillis,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let (session, status) = (session.clone(), status.to_owned());
        self.pass(Op::SetStatus, &[], move |store| {
            async move { store.set_status(&session, &status, now).await }.boxed()
        })
    }

    fn acquire_lease(
        &self,
        session: &SessionId,
        holder: &str,
        now: UnixMillis,
        ttl_ms: u64,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let (session, holder) = (session.clone(), holder.to_owned());
        self.pass(Op::Lease, &[], move |store| {
            async move { store.acquire_lease(&session, &holder, now, ttl_ms).await }.boxed()
        })
    }

    fn release_lease(&self, session: &SessionId, holder: &str) -> BoxFuture<'_, Result<(), StoreError>> {
        let (session, holder) = (session.clone(), holder.to_owned());
        self.pass(Op::Release, &[], move |store| {
            async move { store.release_lease(&session, &holder).await }.boxed()
        })
    }
}
