//! A log that is watched at every append, and that can be told to fail.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_agent::message_of;
use journeyman_protocol::{CallId, CallState, Event, Message, Seq, SessionId, UnixMillis};
use journeyman_store::{Entry, NewEntry, SessionSummary, Store, StoreError};

use super::transcript;

/// Which appends fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failing {
    /// None.
    Never,
    /// This one alone, from 1.
    Once(usize),
    /// This one and every later one.
    From(usize),
}

/// Passes everything on, keeps what was appended, and checks after each append that the transcript in it is
/// one that every provider would take.
pub(crate) struct Watched {
    inner: Arc<dyn Store>,
    failing: Failing,
    appends: AtomicUsize,
    entries: Mutex<Vec<Entry>>,
    problems: Mutex<Vec<String>>,
}

impl Watched {
    pub(crate) fn over(inner: Arc<dyn Store>, failing: Failing) -> Arc<Self> {
        let (entries, problems) = (Mutex::default(), Mutex::default());
        Arc::new(Self { inner, failing, appends: AtomicUsize::new(0), entries, problems })
    }

    /// What is in the log.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.entries.lock().unwrap().clone()
    }

    /// How many appends were asked for.
    pub(crate) fn appends(&self) -> usize {
        self.appends.load(Ordering::SeqCst)
    }

    /// The events in the log, in order.
    pub(crate) fn events(&self) -> Vec<Event> {
        let event = |entry: &Entry| {
            entry.channel.map(|_| serde_json::from_slice(&entry.payload).expect("an event of the log"))
        };
        self.entries().iter().filter_map(event).collect()
    }

    /// The messages in the log, as they were written.
    pub(crate) fn messages(&self) -> Vec<Message> {
        self.entries().iter().filter_map(message_of).collect()
    }

    /// The states that the log says a call went through.
    pub(crate) fn states(&self, call: &str) -> Vec<CallState> {
        let call = CallId::new(call);
        let state = |event| match event {
            Event::CallChanged { transition } if transition.call == call => Some(transition.state),
            _ => None,
        };
        self.events().into_iter().filter_map(state).collect()
    }

    /// Everything that was written down, as text.
    pub(crate) fn text(&self) -> String {
        self.entries()
            .iter()
            .map(|entry| String::from_utf8_lossy(&entry.payload).into_owned() + "\n")
            .collect()
    }

    /// What was wrong with the transcript after any append.
    pub(crate) fn problems(&self) -> Vec<String> {
        self.problems.lock().unwrap().clone()
    }

    fn fails(&self, number: usize) -> bool {
        match self.failing {
            Failing::Never => false,
            Failing::Once(one) => number == one,
            Failing::From(first) => number >= first,
        }
    }

    fn took(&self, last: Seq, appended: Vec<NewEntry>) {
        let mut entries = self.entries.lock().unwrap();
        let first = last.0 + 1 - appended.len() as u64;
        for (seq, NewEntry { channel, kind, at, payload }) in (first..).zip(appended) {
            entries.push(Entry { seq: Seq(seq), channel, kind, at, payload });
        }
        let messages: Vec<Message> = entries.iter().filter_map(message_of).collect();
        self.problems.lock().unwrap().extend(transcript::problems(&messages));
    }
}

impl Store for Watched {
    fn create(
        &self,
        id: &SessionId,
        root: &str,
        title: &str,
        now: UnixMillis,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.create(id, root, title, now)
    }

    fn fork(
        &self,
        parent: &SessionId,
        at: Seq,
        child: &SessionId,
        title: &str,
        now: UnixMillis,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.fork(parent, at, child, title, now)
    }

    fn append(
        &self,
        session: &SessionId,
        expected: Seq,
        entries: Vec<NewEntry>,
    ) -> BoxFuture<'_, Result<Seq, StoreError>> {
        let number = self.appends.fetch_add(1, Ordering::SeqCst) + 1;
        if self.fails(number) {
            let failed = StoreError::UnknownSession { session: session.clone() };
            return std::future::ready(Err(failed)).boxed();
        }
        let copy = entries.clone();
        let appending = self.inner.append(session, expected, entries);
        async move {
            let last = appending.await?;
            self.took(last, copy);
            Ok(last)
        }
        .boxed()
    }

    fn read(
        &self,
        session: &SessionId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>> {
        self.inner.read(session, after, limit)
    }

    fn read_records(
        &self,
        session: &SessionId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>> {
        self.inner.read_records(session, after, limit)
    }

    fn read_chunk(
        &self,
        session: &SessionId,
        after: Seq,
        bytes: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>> {
        self.inner.read_chunk(session, after, bytes)
    }

    fn changed(&self, session: &SessionId, after: Seq) -> BoxFuture<'_, Result<Seq, StoreError>> {
        self.inner.changed(session, after)
    }

    fn sessions(
        &self,
        root: Option<&str>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        self.inner.sessions(root, limit)
    }

    fn find(&self, prefix: &str) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        self.inner.find(prefix)
    }

    fn set_status(
        &self,
        session: &SessionId,
        status: &str,
        now: UnixMillis,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.set_status(session, status, now)
    }

    fn lease(
        &self,
        session: &SessionId,
        holder: &str,
        now: UnixMillis,
        ttl_ms: u64,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.lease(session, holder, now, ttl_ms)
    }

    fn release(&self, session: &SessionId, holder: &str) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.release(session, holder)
    }

    fn delete(&self, session: &SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.delete(session)
    }
}
