//! Telling agents from sessions that a person started.

use journeyman_protocol::{Seq, SessionId};
use journeyman_store::Store;

use crate::AgentError;
use crate::transcript::record::{Record, record_of};

/// Returns true if a session was started by another one. Its log says so in its first entry.
///
/// # Errors
/// Errors of the store.
pub async fn is_agent(store: &dyn Store, session: &SessionId) -> Result<bool, AgentError> {
    let first = store.read_records(session, Seq::START, 1).await?;
    Ok(match first.first().and_then(record_of) {
        Some(Record::Role(role)) => role.parent.is_some(),
        _ => false,
    })
}
