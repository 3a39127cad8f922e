//! Logs in memory, for tests and for runs that leave nothing behind.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_protocol::{Seq, SessionId, UnixMillis};

use crate::entry::{check_entry_sizes, entry_bytes};
use crate::lease::{Lease, clamp_to_i64};
use crate::watchers::Watchers;
use crate::{Entry, MAX_FOUND_SESSIONS, NewEntry, SESSION_STATUS_READY, SessionSummary, Store, StoreError};

/// A [`Store`] in memory that behaves as the durable one does, until it is dropped.
#[derive(Debug, Default)]
pub struct MemoryStore {
    logs: Mutex<BTreeMap<SessionId, MemoryLog>>,
    watchers: Watchers,
}

#[derive(Debug)]
struct MemoryLog {
    summary: SessionSummary,
    entries: Vec<Entry>,
    lease: Option<Lease>,
}

impl MemoryLog {
    /// Returns the entries after a sequence number.
    fn entries_after(&self, after: Seq) -> impl Iterator<Item = &Entry> {
        let first = self.entries.partition_point(|entry| entry.seq <= after);
        self.entries.iter().skip(first)
    }
}

impl MemoryStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock_logs(&self) -> MutexGuard<'_, BTreeMap<SessionId, MemoryLog>> {
        // Every change is made after its checks, so a panic can't leave half of a change.
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_log<T>(
        &self,
        session: &SessionId,
        action: impl FnOnce(&mut MemoryLog) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self.lock_logs().get_mut(session) {
            Some(log) => action(log),
            None => Err(StoreError::UnknownSession { session: session.clone() }),
        }
    }

    fn summaries(&self, limit: usize, keep: impl Fn(&SessionSummary) -> bool) -> Vec<SessionSummary> {
        let mut found: Vec<_> = self
            .lock_logs()
            .values()
            .map(|log| &log.summary)
            .filter(|summary| keep(summary))
            .cloned()
            .collect();
        found.sort_by(|a, b| (b.updated, &b.id).cmp(&(a.updated, &a.id)));
        found.truncate(limit);
        found
    }

    fn add(&self, log: MemoryLog) -> Result<(), StoreError> {
        let mut logs = self.lock_logs();
        let id = log.summary.id.clone();
        if logs.contains_key(&id) {
            return Err(StoreError::SessionExists { session: id });
        }
        logs.insert(id, log);
        Ok(())
    }

    fn fork_log(
        &self,
        parent: &SessionId,
        at: Seq,
        child: &SessionId,
        title: &str,
        now: UnixMillis,
    ) -> Result<(), StoreError> {
        let copy = self.with_log(parent, |log| {
            let last = log.summary.last;
            if at > last {
                return Err(StoreError::NoSuchEntry { session: parent.clone(), asked: at, last });
            }
            let entries: Vec<Entry> =
                log.entries.iter().take_while(|entry| entry.seq <= at).cloned().collect();
            let mut summary = new_summary(child, &log.summary.root, title, now);
            summary.last = at;
            summary.updated =
                entries.iter().map(|entry| entry.at).max().unwrap_or_default().max(summary.updated);
            Ok(MemoryLog { summary, entries, lease: None })
        })?;
        self.add(copy)
    }
}

/// Returns the summary of a new session.
fn new_summary(id: &SessionId, root: &str, title: &str, now: UnixMillis) -> SessionSummary {
    let now = clamp_to_i64(now);
    SessionSummary {
        id: id.clone(),
        root: root.to_owned(),
        title: title.to_owned(),
        created: now,
        updated: now,
        last: Seq::START,
        status: SESSION_STATUS_READY.to_owned(),
    }
}

fn append(log: &mut MemoryLog, expected: Seq, entries: Vec<NewEntry>) -> Result<Seq, StoreError> {
    if log.summary.last != expected {
        let session = log.summary.id.clone();
        return Err(StoreError::Conflict { session, expected, found: log.summary.last });
    }
    check_entry_sizes(&entries)?;
    for NewEntry { channel, kind, at, payload } in entries {
        let (seq, at) = (log.summary.last.next(), clamp_to_i64(at));
        log.entries.push(Entry { seq, channel, kind, at, payload });
        log.summary.last = seq;
        log.summary.updated = log.summary.updated.max(at);
    }
    Ok(log.summary.last)
}

fn acquire_lease(log: &mut MemoryLog, holder: &str, now: UnixMillis, ttl_ms: u64) -> Result<(), StoreError> {
    match &mut log.lease {
        Some(other) if other.holder != holder && !other.is_expired(now) => {
            other.shorten(now);
            let (session, holder, until) = (log.summary.id.clone(), other.holder.clone(), other.until);
            Err(StoreError::Leased { session, holder, until })
        }
        free => {
            *free = Some(Lease::new(holder, now, ttl_ms));
            Ok(())
        }
    }
}

impl Store for MemoryStore {
    fn create(
        &self,
        id: &SessionId,
        root: &str,
        title: &str,
        now: UnixMillis,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let summary = new_summary(id, root, title, now);
        ready(self.add(MemoryLog { summary, entries: Vec::new(), lease: None })).boxed()
    }

    fn fork(
        &self,
        parent: &SessionId,
        at: Seq,
        child: &SessionId,
        title: &str,
        now: UnixMillis,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        ready(self.fork_log(parent, at, child, title, now)).boxed()
    }

    fn append(
        &self,
        session: &SessionId,
        expected: Seq,
        entries: Vec<NewEntry>,
    ) -> BoxFuture<'_, Result<Seq, StoreError>> {
        let appended = self.with_log(session, |log| append(log, expected, entries));
        self.watchers.notify_session(session);
        ready(appended).boxed()
    }

    fn read(
        &self,
        session: &SessionId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>> {
        ready(self.with_log(session, |log| Ok(log.entries_after(after).take(limit).cloned().collect())))
            .boxed()
    }

    fn read_records(
        &self,
        session: &SessionId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>> {
        let records = self.with_log(session, |log| {
            let records = log.entries_after(after).filter(|entry| entry.channel.is_none());
            Ok(records.take(limit).cloned().collect())
        });
        ready(records).boxed()
    }

    fn read_chunk(
        &self,
        session: &SessionId,
        after: Seq,
        bytes: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>> {
        let chunk = self.with_log(session, |log| {
            let mut left = bytes;
            let mut chunk = Vec::new();
            for entry in log.entries_after(after) {
                let size = entry_bytes(&entry.kind, &entry.payload);
                if size > left && !chunk.is_empty() {
                    break;
                }
                left = left.saturating_sub(size);
                chunk.push(entry.clone());
            }
            Ok(chunk)
        });
        ready(chunk).boxed()
    }

    fn wait_for_entry(&self, session: &SessionId, after: Seq) -> BoxFuture<'_, Result<Seq, StoreError>> {
        let session = session.clone();
        async move {
            // Listening comes before looking, so that nothing falls between the two.
            let mut news = self.watchers.subscribe(&session);
            loop {
                let last = self.with_log(&session, |log| Ok(log.summary.last))?;
                if last > after {
                    return Ok(last);
                }
                // The store is borrowed, so the other end is there.
                drop(news.changed().await);
            }
        }
        .boxed()
    }

    fn sessions(
        &self,
        root: Option<&str>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        ready(Ok(self.summaries(limit, |summary| root.is_none_or(|root| summary.root == root)))).boxed()
    }

    fn find_sessions(&self, prefix: &str) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        ready(Ok(self.summaries(MAX_FOUND_SESSIONS, |summary| summary.id.as_str().starts_with(prefix))))
            .boxed()
    }

    fn set_status(
        &self,
        session: &SessionId,
        status: &str,
        now: UnixMillis,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let result = self.with_log(session, |log| {
            log.summary.status = status.to_owned();
            log.summary.updated = log.summary.updated.max(clamp_to_i64(now));
            Ok(())
        });
        ready(result).boxed()
    }

    fn acquire_lease(
        &self,
        session: &SessionId,
        holder: &str,
        now: UnixMillis,
        ttl_ms: u64,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        ready(self.with_log(session, |log| acquire_lease(log, holder, now, ttl_ms))).boxed()
    }

    fn release_lease(&self, session: &SessionId, holder: &str) -> BoxFuture<'_, Result<(), StoreError>> {
        let result = self.with_log(session, |log| {
            log.lease.take_if(|lease| lease.holder == holder);
            Ok(())
        });
        ready(result).boxed()
    }

    fn lease_holder(
        &self,
        session: &SessionId,
        now: UnixMillis,
    ) -> BoxFuture<'_, Result<Option<String>, StoreError>> {
        let held = self.with_log(session, |log| {
            Ok(log.lease.as_ref().filter(|lease| !lease.is_expired(now)).map(|lease| lease.holder.clone()))
        });
        ready(held).boxed()
    }

    fn delete(&self, session: &SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        self.lock_logs().remove(session);
        self.watchers.notify_session(session);
        ready(Ok(())).boxed()
    }
}
