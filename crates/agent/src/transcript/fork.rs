//! A new session from another one's log, and names for the places where one may begin.

use journeyman_protocol::{RunOutcome, Seq, SessionId, UnixMillis};
use journeyman_store::{NewEntry, NewSession, Origin, STATUS_NEW, Store};

use crate::transcript::record::Record;
use crate::transcript::state::State;
use crate::{AgentError, Clock};

/// Bytes of a snapshot's name: a line of a list.
const MAX_NAME: usize = 100;
/// The status of a session that was forked and hasn't been opened since.
pub const STATUS_FORKED: &str = "forked";

/// Where a fork begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForkPoint {
    /// At the end of the log.
    End,
    /// At a place of the log.
    Seq(Seq),
    /// At a place that was given a name.
    Snapshot(String),
}

/// Makes `child` from the log of `parent` up to a place, or to the newest before it at which every
/// call was answered; gives that place. The parent is not touched, and neither is the tree. Open
/// the child with [`resume`](crate::resume).
///
/// # Errors
/// The store's; [`AgentError::UnknownSnapshot`] with the names there are;
/// [`AgentError::NothingToFork`].
pub async fn fork(
    store: &dyn Store,
    parent: &SessionId,
    point: &ForkPoint,
    child: &SessionId,
    clock: &dyn Clock,
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
    if state.task.is_some() {
        records
            .push(Record::Ended { outcome: RunOutcome::Interrupted, unverified: state.unverified_since() });
    }
    begin(store, (parent, state.safe), child, STATUS_FORKED, &records, clock.now()).await?;
    Ok(state.safe)
}

/// Makes a session that says in its first own entries what it is: a crash leaves none that looks
/// like its parent.
async fn begin(
    store: &dyn Store,
    (parent, at): (&SessionId, Seq),
    child: &SessionId,
    status: &str,
    records: &[Record],
    now: UnixMillis,
) -> Result<(), AgentError> {
    let summary = store.find(parent.as_str()).await?.into_iter().find(|found| found.id == *parent);
    let new = NewSession {
        id: child.clone(),
        origin: Origin::Fork { parent: parent.clone(), at },
        title: summary.map(|summary| summary.title).unwrap_or_default(),
        now,
        status: status.to_owned(),
        lease: None,
        entries: records.iter().map(|record| entry(record, now)).collect(),
    };
    store.begin(new).await?;
    Ok(())
}

/// Makes `child` from the log of `parent` up to `at`, with the parent's task open: it begins where
/// the model is to be asked.
pub(crate) async fn candidate(
    store: &dyn Store,
    parent: &SessionId,
    at: Seq,
    child: &SessionId,
    number: u32,
    clock: &dyn Clock,
) -> Result<(), AgentError> {
    let records = [Record::Forked { parent: parent.clone(), at }, Record::Candidate { number }];
    begin(store, (parent, at), child, STATUS_NEW, &records, clock.now()).await
}

/// Gives the newest place of a session at which every call was answered a name, for [`fork`]; gives
/// that place. Who has the session open uses
/// [`SessionHandle::snapshot`](crate::SessionHandle::snapshot) instead: the caller makes sure that
/// nobody has.
///
/// # Errors
/// [`AgentError::SnapshotName`]; [`AgentError::NothingToFork`] for a session that has said nothing
/// yet; the store's, also when somebody else writes the session at the same time.
pub async fn snapshot(
    store: &dyn Store,
    session: &SessionId,
    name: &str,
    clock: &dyn Clock,
) -> Result<Seq, AgentError> {
    check_name(name)?;
    let state = State::load(store, session).await?;
    if state.safe == Seq::START {
        return Err(AgentError::NothingToFork { session: session.clone() });
    }
    let found = store.find(session.as_str()).await?;
    let last = found.into_iter().find(|found| found.id == *session).map_or(state.last, |found| found.last);
    let record = Record::Snapshot { name: name.to_owned(), at: state.safe };
    store.append(session, last, vec![entry(&record, clock.now())]).await?;
    Ok(state.safe)
}

/// Refuses a name that is no line of a list.
pub(crate) fn check_name(name: &str) -> Result<(), AgentError> {
    let fits = !name.trim().is_empty() && name.len() <= MAX_NAME && !name.chars().any(char::is_control);
    if fits { Ok(()) } else { Err(AgentError::SnapshotName { name: name.chars().take(MAX_NAME).collect() }) }
}

fn entry(record: &Record, at: UnixMillis) -> NewEntry {
    let payload = serde_json::to_vec(record).unwrap_or_default();
    NewEntry { channel: None, kind: record.kind().to_owned(), at, payload }
}
