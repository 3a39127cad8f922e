//! Logs in memory, for tests and for runs that shall leave nothing behind.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_protocol::{Seq, SessionId, UnixMillis};

use crate::entry::check_sizes;
use crate::{Entry, MAX_FOUND, NewEntry, STATUS_NEW, SessionSummary, Store, StoreError};

/// A [`Store`] that behaves as the durable one does and forgets everything when dropped.
#[derive(Debug, Default)]
pub struct MemoryStore {
    logs: Mutex<BTreeMap<SessionId, Log>>,
}

#[derive(Debug)]
struct Log {
    summary: SessionSummary,
    entries: Vec<Entry>,
    lease: Option<(String, UnixMillis)>,
}

/// The durable log keeps times as signed 64-bit numbers.
fn storable(time: UnixMillis) -> UnixMillis {
    UnixMillis(time.0.min(i64::MAX as u64))
}

impl MemoryStore {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn logs(&self) -> MutexGuard<'_, BTreeMap<SessionId, Log>> {
        // Every change below is made after its checks, so a panic elsewhere can't leave half of one.
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(
        &self,
        session: &SessionId,
        action: impl FnOnce(&mut Log) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self.logs().get_mut(session) {
            Some(log) => action(log),
            None => Err(StoreError::UnknownSession { session: session.clone() }),
        }
    }

    fn summaries(&self, limit: usize, keep: impl Fn(&SessionSummary) -> bool) -> Vec<SessionSummary> {
        let mut found: Vec<_> =
            self.logs().values().map(|log| &log.summary).filter(|summary| keep(summary)).cloned().collect();
        found.sort_by(|a, b| (b.updated, &b.id).cmp(&(a.updated, &a.id)));
        found.truncate(limit);
        found
    }
}

fn append(log: &mut Log, expected: Seq, entries: Vec<NewEntry>) -> Result<Seq, StoreError> {
    if log.summary.last != expected {
        let session = log.summary.id.clone();
        return Err(StoreError::Conflict { session, expected, found: log.summary.last });
    }
    check_sizes(&entries)?;
    for NewEntry { channel, kind, at, payload } in entries {
        let (seq, at) = (log.summary.last.next(), storable(at));
        log.entries.push(Entry { seq, channel, kind, at, payload });
        log.summary.last = seq;
        log.summary.updated = log.summary.updated.max(at);
    }
    Ok(log.summary.last)
}

impl Store for MemoryStore {
    fn create(
        &self,
        id: &SessionId,
        root: &str,
        title: &str,
        now: UnixMillis,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let mut logs = self.logs();
        if logs.contains_key(id) {
            return ready(Err(StoreError::SessionExists { session: id.clone() })).boxed();
        }
        let now = storable(now);
        let summary = SessionSummary {
            id: id.clone(),
            root: root.to_owned(),
            title: title.to_owned(),
            created: now,
            updated: now,
            last: Seq::START,
            status: STATUS_NEW.to_owned(),
        };
        logs.insert(id.clone(), Log { summary, entries: Vec::new(), lease: None });
        ready(Ok(())).boxed()
    }

    fn append(
        &self,
        session: &SessionId,
        expected: Seq,
        entries: Vec<NewEntry>,
    ) -> BoxFuture<'_, Result<Seq, StoreError>> {
        ready(self.with(session, |log| append(log, expected, entries))).boxed()
    }

    fn read(
        &self,
        session: &SessionId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>> {
        let result = self.with(session, |log| {
            let first = log.entries.partition_point(|entry| entry.seq <= after);
            Ok(log.entries.iter().skip(first).take(limit).cloned().collect())
        });
        ready(result).boxed()
    }

    fn sessions(
        &self,
        root: Option<&str>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        ready(Ok(self.summaries(limit, |summary| root.is_none_or(|root| summary.root == root)))).boxed()
    }

    fn find(&self, prefix: &str) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        ready(Ok(self.summaries(MAX_FOUND, |summary| summary.id.as_str().starts_with(prefix)))).boxed()
    }

    fn set_status(
        &self,
        session: &SessionId,
        status: &str,
        now: UnixMillis,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let result = self.with(session, |log| {
            log.summary.status = status.to_owned();
            log.summary.updated = log.summary.updated.max(storable(now));
            Ok(())
        });
        ready(result).boxed()
    }

    fn lease(
        &self,
        session: &SessionId,
        holder: &str,
        now: UnixMillis,
        ttl_ms: u64,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let result = self.with(session, |log| match &log.lease {
            Some((other, until)) if other != holder && *until > storable(now) => {
                Err(StoreError::Leased { session: session.clone(), holder: other.clone(), until: *until })
            }
            _ => {
                let until = storable(UnixMillis(now.0.saturating_add(ttl_ms)));
                log.lease = Some((holder.to_owned(), until));
                Ok(())
            }
        });
        ready(result).boxed()
    }

    fn release(&self, session: &SessionId, holder: &str) -> BoxFuture<'_, Result<(), StoreError>> {
        let result = self.with(session, |log| {
            log.lease.take_if(|(held_by, _)| held_by == holder);
            Ok(())
        });
        ready(result).boxed()
    }

    fn delete(&self, session: &SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        self.logs().remove(session);
        ready(Ok(())).boxed()
    }
}
