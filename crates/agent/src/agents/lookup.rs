//! Functions that find the agents and the parent of a session.

use journeyman_protocol::{Event, Seq, SessionId};
use journeyman_store::{Store, StoreError};

use super::role::AgentParent;
use crate::AgentError;
use crate::recovery::unfinished_agents::for_each_event;
use crate::transcript::record::{Record, record_of};

/// Returns true if a session was started by another session.
///
/// # Errors
/// Errors of the store.
pub async fn is_agent(store: &dyn Store, session: &SessionId) -> Result<bool, AgentError> {
    Ok(agent_parent(store, session).await?.is_some())
}

/// Returns the session that started this one as its agent. The first entry of a log says so.
///
/// # Errors
/// Errors of the store.
pub async fn agent_parent(store: &dyn Store, session: &SessionId) -> Result<Option<AgentParent>, AgentError> {
    let first = store.read_records(session, Seq::START, 1).await?;
    Ok(match first.first().and_then(record_of) {
        Some(Record::Role(role)) => role.parent,
        _ => None,
    })
}

/// Returns the stored agents of a session and of its agents, each after the session that started
/// it. Agents of the session that this session was forked from are not included.
///
/// # Errors
/// Errors of the store.
pub async fn list_descendant_agents(
    store: &dyn Store,
    session: &SessionId,
) -> Result<Vec<SessionId>, AgentError> {
    let mut found = vec![session.clone()];
    let mut place = 0;
    while let Some(parent) = found.get(place).cloned() {
        place += 1;
        let mut started = Vec::new();
        for_each_event(store, &parent, &["agent_started"], |event| {
            if let Event::AgentStarted { child, .. } = event {
                started.push(child);
            }
        })
        .await?;
        for child in started {
            if !found.contains(&child) && has_parent(store, &child, &parent).await? {
                found.push(child);
            }
        }
    }
    Ok(found.split_off(1))
}

/// Returns true if the store has this agent of a session.
async fn has_parent(store: &dyn Store, agent: &SessionId, parent: &SessionId) -> Result<bool, AgentError> {
    match agent_parent(store, agent).await {
        Ok(found) => Ok(found.is_some_and(|found| found.session == *parent)),
        // Deleted, or the program ended before it began.
        Err(AgentError::Store(StoreError::UnknownSession { .. })) => Ok(false),
        Err(error) => Err(error),
    }
}
