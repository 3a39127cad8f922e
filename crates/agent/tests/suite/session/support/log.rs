//! A log that is watched at every append, and that can be told to fail.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_agent::{Record, record_of};
use journeyman_protocol::{CallId, CallState, Event, Message, Seq, SessionId, UnixMillis};
use journeyman_store::{Entry, NewEntry, Store, StoreError};
use journeyman_testkit::forward_store_methods;

use super::invariants::Fold;

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

/// Passes everything on, keeps what was appended, and folds it after each append as a restart
/// would: what it finds must be a session that can go on.
pub(crate) struct Watched {
    inner: Arc<dyn Store>,
    failing: Mutex<Failing>,
    appends: AtomicUsize,
    sessions: Mutex<Sessions>,
    problems: Mutex<Vec<String>>,
}

#[derive(Default)]
struct Sessions {
    /// The one that was appended to first.
    first: Option<SessionId>,
    logs: HashMap<SessionId, Watch>,
}

#[derive(Default)]
struct Watch {
    entries: Vec<Entry>,
    fold: Fold,
}

impl Watched {
    pub(crate) fn over(inner: Arc<dyn Store>, failing: Failing) -> Arc<Self> {
        Arc::new(Self {
            inner,
            failing: Mutex::new(failing),
            appends: AtomicUsize::new(0),
            sessions: Mutex::default(),
            problems: Mutex::default(),
        })
    }

    /// What it passes everything on to.
    pub(crate) fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    /// What is in the log of the first session.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let sessions = self.sessions.lock().unwrap();
        let first = sessions.first.as_ref().and_then(|first| sessions.logs.get(first));
        first.map(|watch| watch.entries.clone()).unwrap_or_default()
    }

    /// What is in the log of a session.
    pub(crate) fn entries_of(&self, session: &SessionId) -> Vec<Entry> {
        let sessions = self.sessions.lock().unwrap();
        sessions.logs.get(session).map(|watch| watch.entries.clone()).unwrap_or_default()
    }

    /// How many appends were asked for.
    pub(crate) fn appends(&self) -> usize {
        self.appends.load(Ordering::SeqCst)
    }

    /// Which appends fail from here on; counted from the first of all.
    pub(crate) fn fail(&self, failing: Failing) {
        *self.failing.lock().unwrap() = failing;
    }

    /// The events in the log, in order.
    pub(crate) fn events(&self) -> Vec<Event> {
        let event = |entry: &Entry| {
            entry.channel.map(|_| serde_json::from_slice(&entry.payload).expect("an event of the log"))
        };
        self.entries().iter().filter_map(event).collect()
    }

    /// The records in the log, in order.
    pub(crate) fn records(&self) -> Vec<Record> {
        self.entries().iter().filter_map(record_of).collect()
    }

    /// The transcript as the first session's log has it.
    pub(crate) fn messages(&self) -> Vec<Message> {
        let sessions = self.sessions.lock().unwrap();
        let first = sessions.first.as_ref().and_then(|first| sessions.logs.get(first));
        first.map(|watch| watch.fold.state().messages.clone()).unwrap_or_default()
    }

    /// The states that the log says a call went through.
    pub(crate) fn states(&self, call: &str) -> Vec<CallState> {
        let call = CallId::new(call);
        let mut states = Vec::new();
        for record in self.records() {
            match record {
                Record::Message { message, calls, .. } => {
                    let called = message.tool_uses().chain(&calls).any(|one| one.id == call);
                    states.extend(called.then_some(CallState::Pending));
                }
                Record::Call(transition) if transition.call == call => states.push(transition.state),
                _ => {}
            }
        }
        states
    }

    /// Waits until the log says that a call's effect may have begun.
    pub(crate) async fn executing(&self, call: &str) {
        while !self.states(call).contains(&CallState::Executing) {
            tokio::task::yield_now().await;
        }
    }

    /// Everything that was written down, as text.
    pub(crate) fn text(&self) -> String {
        self.entries()
            .iter()
            .map(|entry| String::from_utf8_lossy(&entry.payload).into_owned() + "\n")
            .collect()
    }

    /// What was wrong with any log after any append.
    pub(crate) fn problems(&self) -> Vec<String> {
        self.problems.lock().unwrap().clone()
    }

    fn fails(&self, number: usize) -> bool {
        match *self.failing.lock().unwrap() {
            Failing::Never => false,
            Failing::Once(one) => number == one,
            Failing::From(first) => number >= first,
        }
    }

    fn took(&self, session: &SessionId, last: Seq, appended: Vec<NewEntry>) {
        let mut sessions = self.sessions.lock().unwrap();
        sessions.first.get_or_insert_with(|| session.clone());
        let watch = sessions.logs.entry(session.clone()).or_default();
        let first = last.0 + 1 - appended.len() as u64;
        for (seq, NewEntry { channel, kind, at, payload }) in (first..).zip(appended) {
            let entry = Entry { seq: Seq(seq), channel, kind, at, payload };
            watch.fold.take(session, &entry);
            watch.entries.push(entry);
        }
        let problems = watch.fold.problems();
        self.problems.lock().unwrap().extend(problems.into_iter().map(|what| format!("{session}: {what}")));
    }

    /// A log that begins with another's entries.
    fn forked(&self, parent: &SessionId, at: Seq, child: &SessionId) {
        let entries = self.entries_of(parent).into_iter().filter(|entry| entry.seq <= at);
        let mut watch = Watch::default();
        for entry in entries {
            watch.fold.take(child, &entry);
            watch.entries.push(entry);
        }
        let mut sessions = self.sessions.lock().unwrap();
        sessions.logs.insert(child.clone(), watch);
    }
}

impl Store for Watched {
    forward_store_methods!(inner: create, read, read_records, read_chunk, wait_for_entry, sessions, find_sessions, set_status, acquire_lease, release_lease, delete);

    fn fork(
        &self,
        parent: &SessionId,
        at: Seq,
        child: &SessionId,
        title: &str,
        now: UnixMillis,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let (from, to) = (parent.clone(), child.clone());
        let forking = self.inner.fork(parent, at, child, title, now);
        async move {
            forking.await?;
            self.forked(&from, at, &to);
            Ok(())
        }
        .boxed()
    }

    fn append(
        &self,
        session: &SessionId,
        expected: Seq,
        entries: Vec<NewEntry>,
    ) -> BoxFuture<'_, Result<Seq, StoreError>> {
        let number = self.appends.fetch_add(1, Ordering::SeqCst) + 1;
        if self.fails(number) {
            let (action, path, detail) = ("append to", "sessions.db".into(), "full".to_owned());
            let failed = StoreError::DiskFull { action, path, detail };
            return std::future::ready(Err(failed)).boxed();
        }
        let (copy, session) = (entries.clone(), session.clone());
        let appending = self.inner.append(&session, expected, entries);
        async move {
            let last = appending.await?;
            self.took(&session, last, copy);
            Ok(last)
        }
        .boxed()
    }
}
