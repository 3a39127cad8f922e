//! A new session from another one's log.

use journeyman_protocol::{Outcome, Seq, SessionId};
use journeyman_store::{NewEntry, Store};

use crate::record::Record;
use crate::state::State;
use crate::{AgentError, Clock};

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

/// Makes `child` from the log of `parent` up to a place, or to the newest before it at which every call was
/// answered; gives that place. The parent is not touched, and neither is the tree. Open the child with
/// [`resume`](crate::resume).
///
/// # Errors
/// The store's; [`AgentError::UnknownSnapshot`] with the names there are; [`AgentError::NothingToFork`].
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
    let summary = store.find(parent.as_str()).await?.into_iter().find(|found| found.id == *parent);
    let title = summary.map(|summary| summary.title).unwrap_or_default();
    let now = clock.now();
    store.fork(parent, state.safe, child, &title, now).await?;
    let mut records = vec![Record::Forked { parent: parent.clone(), at: state.safe }];
    if state.task.is_some() {
        records.push(Record::Ended { outcome: Outcome::Interrupted });
    }
    let entry = |record: &Record| NewEntry {
        channel: None,
        kind: record.kind().to_owned(),
        at: now,
        payload: serde_json::to_vec(record).unwrap_or_default(),
    };
    store.append(child, state.safe, records.iter().map(entry).collect()).await?;
    Ok(state.safe)
}
