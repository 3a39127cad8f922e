//! Finds the agents that worked when the program ended.

use std::collections::HashMap;

use journeyman_protocol::{CallId, Event, Seq, SessionId, ToolUse};
use journeyman_store::Store;

use crate::AgentError;
use crate::transcript::log::{PAGE_BYTES, envelope_of};

/// An agent that was started and has not ended.
pub(crate) struct UnfinishedAgent {
    pub(crate) session: SessionId,
    pub(crate) name: String,
    /// True if the agent works in the background, so that the call already has its result.
    pub(crate) in_background: bool,
}

/// Returns the agents of a session's newest task that were started and have not ended, by the calls
/// that gave them their tasks.
pub(crate) async fn find_unfinished_agents(
    store: &dyn Store,
    session: &SessionId,
) -> Result<HashMap<CallId, UnfinishedAgent>, AgentError> {
    let mut found = HashMap::new();
    for_each_event(
        store,
        session,
        &["run_started", "agent_started", "agent_finished"],
        |event| match event {
            Event::RunStarted { .. } => found.clear(),
            Event::AgentStarted { call, child, name, background, .. } => {
                let agent = UnfinishedAgent { session: child, name, in_background: background };
                found.insert(call, agent);
            }
            Event::AgentFinished { call, .. } => {
                found.remove(&call);
            }
            _ => {}
        },
    )
    .await?;
    Ok(found)
}

/// Returns these calls of a session in their order, as its log has them.
pub(crate) async fn find_calls(
    store: &dyn Store,
    session: &SessionId,
    ids: &[CallId],
) -> Result<Vec<ToolUse>, AgentError> {
    let mut found = Vec::new();
    if ids.is_empty() {
        return Ok(found);
    }
    for_each_event(store, session, &["tool_start"], |event| {
        if let Event::ToolStart { call: id, tool: name, input, .. } = event
            && ids.contains(&id)
        {
            found.push(ToolUse { id, name, input, malformed: None, signature: None });
        }
    })
    .await?;
    Ok(found)
}

/// Calls `take` for every event of these kinds, in order.
pub(crate) async fn for_each_event(
    store: &dyn Store,
    session: &SessionId,
    kinds: &[&str],
    mut take: impl FnMut(Event),
) -> Result<(), AgentError> {
    let mut after = Seq::START;
    loop {
        let page = store.read_chunk(session, after, PAGE_BYTES).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.seq;
        page.iter()
            .filter(|entry| kinds.contains(&entry.kind.as_str()))
            .filter_map(|entry| envelope_of(session, entry))
            .for_each(|envelope| take(envelope.event));
    }
}
