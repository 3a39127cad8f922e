//! Forks of sessions, and named snapshots to fork from.

use journeyman_protocol::{ReminderCategory, RunOutcome, Seq, SessionId, UnixMillis};
use journeyman_store::{NewEntry, NewSession, SESSION_STATUS_READY, SessionOrigin, SessionSummary, Store};

use crate::agents::list_descendant_agents;
use crate::transcript::log_reader::{find_import_end, list_compactions};
use crate::transcript::record::{QueuedMessage, Record};
use crate::transcript::state::State;
use crate::{AgentError, Clock};

/// Maximum bytes of a snapshot's name.
const MAX_SNAPSHOT_NAME_BYTES: usize = 100;
/// The status of a forked session that hasn't been opened since.
pub const SESSION_STATUS_FORKED: &str = "forked";
/// The status of a session that was imported and not opened since.
pub const SESSION_STATUS_IMPORTED: &str = "imported";

/// The point in a log where a fork begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForkPoint {
    /// The end of the log.
    End,
    /// A position in the log.
    Seq(Seq),
    /// A named snapshot.
    Snapshot(String),
}

/// Creates `child` from the log of `parent`, up to the newest position at or before `point` where
/// every call has its result. Returns that position. The parent and the tree stay unchanged. Open
/// the child with [`resume`](crate::resume).
///
/// # Errors
/// Errors of the store; [`AgentError::UnknownSnapshot`] with the known names;
/// [`AgentError::NothingToFork`].
pub async fn fork(
    store: &dyn Store,
    parent: &SessionId,
    point: &ForkPoint,
    child: &SessionId,
    clock: &Clock,
) -> Result<Seq, AgentError> {
    let until = match point {
        ForkPoint::End => Seq(u64::MAX),
        ForkPoint::Seq(seq) => *seq,
        ForkPoint::Snapshot(name) => {
            let state = State::load(store, parent).await?;
            let known = || state.snapshots.keys().cloned().collect();
            let unknown = || AgentError::UnknownSnapshot { name: name.clone(), known: known() };
            *state.snapshots.get(name).ok_or_else(unknown)?
        }
    };
    let state = State::load_until(store, parent, until).await?;
    if state.safe == Seq::START || state.messages.is_empty() {
        return Err(AgentError::NothingToFork { session: parent.clone() });
    }
    let mut records = vec![Record::Forked { parent: parent.clone(), at: state.safe }];
    let is_imported = is_imported_at(store, parent, state.safe).await?;
    if is_imported {
        records.push(Record::Imported);
    }
    if state.task.is_some() {
        let unverified = state.unverified_since().filter(|_| !is_imported);
        records.push(Record::Ended { outcome: RunOutcome::Interrupted, unverified });
    }
    // The parent's other messages are for the parent alone.
    let pins = |message: &QueuedMessage| {
        matches!(message.category, ReminderCategory::Pinned | ReminderCategory::Unpinned)
    };
    records.extend(state.queue.into_iter().filter(pins).map(Record::Queued));
    create_fork(store, (parent, state.safe), child, SESSION_STATUS_FORKED, &records, clock.now()).await?;
    Ok(state.safe)
}

/// Returns true if the entries of a session up to `at` come from an import alone.
async fn is_imported_at(store: &dyn Store, session: &SessionId, at: Seq) -> Result<bool, AgentError> {
    let summary = find_summary(store, session).await?;
    let is_unopened = summary.is_some_and(|summary| summary.status == SESSION_STATUS_IMPORTED);
    Ok(is_unopened || find_import_end(store, session).await?.is_some_and(|end| at < end))
}

async fn find_summary(store: &dyn Store, session: &SessionId) -> Result<Option<SessionSummary>, AgentError> {
    Ok(store.find_sessions(session.as_str()).await?.into_iter().find(|found| found.id == *session))
}

/// Marks the end of the entries that come from an import, before an imported session is opened, in
/// its log and in those of its agents, which may go on with it. What was set and allowed in them
/// doesn't hold afterwards, nor in a fork of them. The caller holds the session.
///
/// # Errors
/// Errors of the store.
pub async fn mark_import_end(
    store: &dyn Store,
    session: &SessionId,
    clock: &Clock,
) -> Result<(), AgentError> {
    let mut marked = list_descendant_agents(store, session).await?;
    marked.push(session.clone());
    for session in &marked {
        let last = find_summary(store, session).await?.map(|found| found.last).unwrap_or_default();
        store.append(session, last, vec![entry_from_record(&Record::Imported, clock.now())]).await?;
    }
    Ok(())
}

/// Creates a session whose first own entries mark it as a fork, atomically: after a crash no
/// unmarked copy of the parent is left.
async fn create_fork(
    store: &dyn Store,
    (parent, at): (&SessionId, Seq),
    child: &SessionId,
    status: &str,
    records: &[Record],
    now: UnixMillis,
) -> Result<(), AgentError> {
    let summary = find_summary(store, parent).await?;
    let new = NewSession {
        id: child.clone(),
        origin: SessionOrigin::Fork { parent: parent.clone(), at },
        title: summary.map(|summary| summary.title).unwrap_or_default(),
        now,
        status: status.to_owned(),
        lease: None,
        entries: records.iter().map(|record| entry_from_record(record, now)).collect(),
    };
    store.create_with_entries(new).await?;
    Ok(())
}

/// Creates `child` from the log of `parent` up to `at`, with the parent's task open. The child
/// starts with a model request.
pub(crate) async fn fork_candidate(
    store: &dyn Store,
    parent: &SessionId,
    at: Seq,
    child: &SessionId,
    number: u32,
    clock: &Clock,
) -> Result<(), AgentError> {
    let records = [Record::Forked { parent: parent.clone(), at }, Record::Candidate { number }];
    create_fork(store, (parent, at), child, SESSION_STATUS_READY, &records, clock.now()).await
}

/// A compaction that was taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UndoneCompaction {
    /// Its position.
    pub at: Seq,
    /// The number of earlier compactions, which still hold.
    pub earlier: usize,
}

/// Takes back the last compaction of a session that nobody works on: from its next task on, the
/// model sees what the compaction left out, and whole results in place of those that aged.
///
/// # Errors
/// [`AgentError::NotShortened`] if no compaction holds, and errors of the store.
pub async fn undo_compaction(
    store: &dyn Store,
    session: &SessionId,
    clock: &Clock,
) -> Result<UndoneCompaction, AgentError> {
    let mut compactions = list_compactions(store, session).await?;
    let Some(at) = compactions.pop() else {
        let reason = "no compaction holds that could be taken back".to_owned();
        return Err(AgentError::NotShortened { reason });
    };
    let last = State::load(store, session).await?.last;
    let record = Record::CompactionUndone { at };
    store.append(session, last, vec![entry_from_record(&record, clock.now())]).await?;
    Ok(UndoneCompaction { at, earlier: compactions.len() })
}

/// Names the newest position of a session where every call has its result, for [`fork`], and
/// returns that position. The caller makes sure that the session is not open; the holder of an open
/// session uses [`SessionHandle::snapshot`](crate::SessionHandle::snapshot).
///
/// # Errors
/// [`AgentError::SnapshotName`]; [`AgentError::NothingToFork`] for an empty session; errors of the
/// store, also if another process writes to the session at the same time.
pub async fn snapshot(
    store: &dyn Store,
    session: &SessionId,
    name: &str,
    clock: &Clock,
) -> Result<Seq, AgentError> {
    check_snapshot_name(name)?;
    let state = State::load(store, session).await?;
    if state.safe == Seq::START {
        return Err(AgentError::NothingToFork { session: session.clone() });
    }
    let last = find_summary(store, session).await?.map_or(state.last, |found| found.last);
    let record = Record::Snapshot { name: name.to_owned(), at: state.safe };
    store.append(session, last, vec![entry_from_record(&record, clock.now())]).await?;
    Ok(state.safe)
}

/// Refuses a name that is blank, too long or contains control characters.
pub(crate) fn check_snapshot_name(name: &str) -> Result<(), AgentError> {
    let fits = !name.trim().is_empty()
        && name.len() <= MAX_SNAPSHOT_NAME_BYTES
        && !name.chars().any(char::is_control);
    if fits {
        Ok(())
    } else {
        Err(AgentError::SnapshotName { name: name.chars().take(MAX_SNAPSHOT_NAME_BYTES).collect() })
    }
}

pub(crate) fn entry_from_record(record: &Record, at: UnixMillis) -> NewEntry {
    let payload = serde_json::to_vec(record).unwrap_or_default();
    NewEntry { channel: None, kind: record.kind().to_owned(), at, payload }
}
