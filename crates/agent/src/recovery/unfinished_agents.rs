//! Finds the agents that worked when the program ended.

use std::collections::HashMap;

use journeyman_protocol::{CallId, Event, Seq, SessionId};
use journeyman_store::Store;

use crate::AgentError;
use crate::transcript::log::{PAGE_BYTES, envelope_of};

/// Returns the agents of a session's newest task that were started and have not ended, by the calls
/// that gave them their tasks.
pub(crate) async fn unfinished_agents(
    store: &dyn Store,
    session: &SessionId,
) -> Result<HashMap<CallId, SessionId>, AgentError> {
    let (mut found, mut after) = (HashMap::new(), Seq::START);
    loop {
        let page = store.read_chunk(session, after, PAGE_BYTES).await?;
        let Some(last) = page.last() else { return Ok(found) };
        after = last.seq;
        let is_of_agents = |kind: &str| matches!(kind, "run_started" | "agent_started" | "agent_finished");
        for entry in page.iter().filter(|entry| is_of_agents(&entry.kind)) {
            match envelope_of(session, entry).map(|envelope| envelope.event) {
                Some(Event::RunStarted { .. }) => found.clear(),
                Some(Event::AgentStarted { call, child, .. }) => {
                    found.insert(call, child);
                }
                Some(Event::AgentFinished { call, .. }) => {
                    found.remove(&call);
                }
                _ => {}
            }
        }
    }
}
