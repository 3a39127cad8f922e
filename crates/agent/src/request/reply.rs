//! The calls in a reply, under names that are unique in the session.

use std::collections::HashSet;

use journeyman_protocol::{Block, CallId, Message, ToolUse};

use super::text_protocol;
use crate::transcript::state::State;

/// Bytes of a call's id that are kept as they are. Providers give some 30; the log has each a dozen times.
const MAX_ID: usize = 200;
/// Calls that are kept of a reply. The model hears of the limit by the first one above what may run.
pub(crate) const MAX_KEPT: usize = crate::calls::runner::MAX_CALLS + 1;

/// Gives calls names that are unique in the session; reads them out of the text where the model takes no tools.
pub(crate) fn calls_of(state: &State, tool_calling: bool, message: &mut Message, text: &str) -> Vec<ToolUse> {
    let turns = state.books.turns;
    let mut given = HashSet::new();
    if tool_calling {
        for (place, block) in message.content.iter_mut().enumerate() {
            if let Block::ToolUse(call) = block {
                call.id = unique(state, &given, place, &call.id);
                given.insert(call.id.clone());
            }
        }
        return Vec::new();
    }
    let mut calls = text_protocol::read(text, turns);
    // Results are text here, so a call that came all the same can't stay in the transcript.
    calls.extend(message.tool_uses().cloned());
    // One more than may run, so that the model hears of the limit. Nobody has to answer the rest.
    calls.truncate(MAX_KEPT);
    message.content.retain(|block| !matches!(block, Block::ToolUse(_)));
    for (place, call) in calls.iter_mut().enumerate() {
        call.id = unique(state, &given, place, &call.id);
        given.insert(call.id.clone());
    }
    calls
}

/// Some servers number their calls anew in every reply; the log and the transcript need names that are
/// unique in the session. A repeated one gets the turn's number, and one more while that is taken: turns
/// are counted anew with every task.
fn unique(state: &State, given: &HashSet<CallId>, place: usize, wanted: &CallId) -> CallId {
    let wanted = if wanted.as_str().len() > MAX_ID { &CallId::new("call") } else { wanted };
    let mut id = wanted.clone();
    let mut again = 0_u32;
    while state.call_ids.contains(&id) || given.contains(&id) {
        let turns = state.books.turns;
        id = match again {
            0 => CallId::new(format!("{wanted}-t{turns}-{place}")),
            _ => CallId::new(format!("{wanted}-t{turns}-{place}-{again}")),
        };
        again += 1;
    }
    id
}

/// Returns the thinking in a message as one text.
pub(crate) fn thinking_of(message: &Message) -> String {
    let thoughts: Vec<&str> = message
        .content
        .iter()
        .filter_map(|block| if let Block::Thinking { text, .. } = block { Some(text.as_str()) } else { None })
        .filter(|text| !text.is_empty())
        .collect();
    thoughts.join("\n")
}
