//! The calls of a reply, with ids that are unique in the session.

use std::collections::HashSet;
use std::sync::Arc;

use journeyman_edit::blank_thinking;
use journeyman_protocol::{Block, CallId, Message, SessionId, ToolUse};
use journeyman_tools::ProjectFiles;

use super::prose_edits::{AcceptedFormats, ProseRules, read_prose_edits};
use super::text_protocol;
use crate::AgentError;
use crate::blocking::run_blocking;
use crate::session::context::SessionContext;
use crate::transcript::state::State;

/// Maximum bytes of a call id that is kept. Providers use some 30 bytes, and the log repeats each
/// id a dozen times.
const MAX_CALL_ID_BYTES: usize = 200;
/// Maximum calls kept of a text-protocol reply. The one call above the limit is refused, so that
/// the model learns the limit.
pub(crate) const MAX_KEPT_CALLS: usize = crate::calls::runner::MAX_CALLS_PER_REPLY + 1;

/// Tools that change files. In a reply with such a call, the text describes the same change.
const EDITING_TOOLS: [&str; 2] = ["edit_file", "write_file"];

/// Reads the calls in a reply's text. In a reply with tool calls, only marked edits are read,
/// because the text explains the calls. With a call that changes files, no edit is read.
///
/// # Errors
/// [`AgentError::Background`] where reading panicked.
pub(crate) async fn read_calls_in_text(
    cx: &SessionContext,
    tool_calling: bool,
    message: &Message,
    text: &str,
    rules: ProseRules,
) -> Result<Vec<ToolUse>, AgentError> {
    let has_calls = tool_calling && message.tool_uses().next().is_some();
    let edits = || message.tool_uses().any(|call| EDITING_TOOLS.contains(&call.name.as_str()));
    if text.trim().is_empty() || (has_calls && (rules.accepted == AcceptedFormats::None || edits())) {
        return Ok(Vec::new());
    }
    let rules = match has_calls {
        true => ProseRules { accepted: AcceptedFormats::Marked, ..rules },
        false => rules,
    };
    let (text, turn) = (blank_thinking(text).into_owned(), cx.transcript.state().counters.turns);
    let workspace = Arc::clone(&cx.workspace);
    run_blocking("reading the reply", move || {
        let files = ProjectFiles::new(&workspace);
        match tool_calling {
            true if has_calls => text_protocol::edits_to_calls(read_prose_edits(&text, &rules, &files), turn),
            true => text_protocol::read_prose_calls(&text, turn, &rules, &files),
            false => text_protocol::read_calls(&text, turn, &rules, &files),
        }
    })
    .await
}

/// Gives calls ids that are unique in the session. `in_text` are the calls that the reply's text
/// makes; the calls returned are recorded beside the message, because they are no blocks of it.
pub(crate) fn assign_call_ids(
    (state, session): (&State, &SessionId),
    tool_calling: bool,
    message: &mut Message,
    in_text: Vec<ToolUse>,
) -> Vec<ToolUse> {
    let mut given = HashSet::new();
    let mut calls = in_text;
    let prefix = state.role.as_ref().and_then(|role| role.call_id_prefix(session));
    if tool_calling && calls.is_empty() {
        for (place, block) in message.content.iter_mut().enumerate() {
            if let Block::ToolUse(call) = block {
                call.id = unique_call_id((state, prefix), &given, place, &call.id);
                given.insert(call.id.clone());
            }
        }
        return Vec::new();
    }
    // Results are text here, so native calls can't stay in the transcript.
    calls.extend(message.tool_uses().cloned());
    // One call above the limit is kept, so that the model is told of the limit. The rest are
    // dropped.
    calls.truncate(MAX_KEPT_CALLS);
    message.content.retain(|block| !matches!(block, Block::ToolUse(_)));
    for (place, call) in calls.iter_mut().enumerate() {
        call.id = unique_call_id((state, prefix), &given, place, &call.id);
        given.insert(call.id.clone());
    }
    calls
}

/// Returns an id that is unique in the session, and by its prefix among agents that work side by
/// side, because some servers number calls anew in every
/// reply. A repeated id gets the turn's number as a suffix, and a counter if that is taken too,
/// because turns are counted anew in every task.
fn unique_call_id(
    (state, prefix): (&State, Option<&str>),
    given: &HashSet<CallId>,
    place: usize,
    wanted: &CallId,
) -> CallId {
    let wanted = if wanted.as_str().len() > MAX_CALL_ID_BYTES { &CallId::new("call") } else { wanted };
    let wanted = &prefix.map_or_else(|| wanted.clone(), |prefix| CallId::new(format!("{prefix}-{wanted}")));
    let mut id = wanted.clone();
    let mut again = 0_u32;
    while state.call_ids.contains(&id) || given.contains(&id) {
        let turns = state.counters.turns;
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

/// Splits a thought into its heading, which some providers write in bold, and the rest.
pub(crate) fn split_thought(thinking: &str) -> (Option<String>, String) {
    let headed = thinking.trim_start().strip_prefix("**").and_then(|rest| rest.split_once("**"));
    match headed.filter(|(subject, _)| !subject.trim().is_empty() && !subject.contains('\n')) {
        Some((subject, text)) => (Some(subject.trim().to_owned()), text.trim().to_owned()),
        None => (None, thinking.trim().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thought_has_a_heading_where_it_begins_in_bold() {
        for (thinking, subject, text) in [
            ("**Reading the parser**\n\nIt is long.", Some("Reading the parser"), "It is long."),
            ("Just text with **bold** in it", None, "Just text with **bold** in it"),
            ("**never closed", None, "**never closed"),
        ] {
            assert_eq!(split_thought(thinking), (subject.map(str::to_owned), text.to_owned()));
        }
    }
}
