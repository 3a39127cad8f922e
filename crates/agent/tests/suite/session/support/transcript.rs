//! What every provider asks of a transcript (invariant 6).

use std::collections::HashSet;

use journeyman_protocol::{Block, CallId, Message, Role};

/// What is wrong with a transcript. The calls of its last message may still wait for their results.
pub(crate) fn problems(messages: &[Message]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut ids = HashSet::new();
    if messages.first().is_some_and(|first| first.role != Role::User) {
        problems.push("it begins with the model".to_owned());
    }
    let mut open: Vec<CallId> = Vec::new();
    let mut before = None;
    for message in messages {
        if before.replace(message.role) == Some(message.role) {
            problems.push(format!("two messages of the {:?} in a row", message.role));
        }
        if message.content.is_empty() {
            problems.push("a message is empty".to_owned());
        }
        let answered = results(message);
        if answered != open {
            problems.push(format!("calls {open:?} are answered by {answered:?}"));
        }
        // Results come before whatever else the message says.
        let first_other = message.content.iter().position(|block| !is_result(block));
        if first_other.is_some_and(|place| message.content[place..].iter().any(is_result)) {
            problems.push("a result comes after text".to_owned());
        }
        open = message.tool_uses().map(|call| call.id.clone()).collect();
        for id in &open {
            if !ids.insert(id.clone()) {
                problems.push(format!("two calls are {id}"));
            }
        }
        if message.role == Role::User && !open.is_empty() {
            problems.push("a user message calls tools".to_owned());
        }
    }
    problems
}

/// Whether every call has its result.
pub(crate) fn is_settled(messages: &[Message]) -> bool {
    messages.last().is_none_or(|last| last.tool_uses().next().is_none())
}

/// The results that a message carries, by call.
pub(crate) fn results(message: &Message) -> Vec<CallId> {
    let id = |block: &Block| match block {
        Block::ToolResult { id, .. } => Some(id.clone()),
        _ => None,
    };
    message.content.iter().filter_map(id).collect()
}

fn is_result(block: &Block) -> bool {
    matches!(block, Block::ToolResult { .. })
}
