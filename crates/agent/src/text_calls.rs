//! Calls out of the text of a model that has no tool calling, and as text for one.

use journeyman_context::fenced;
use journeyman_edit::{Item, parse_blocks};
use journeyman_protocol::{Block, CallId, Message, ResultPart, ToolUse};
use serde_json::Value;

use crate::apply_edit;

/// Whether a message has calls or results that only a model with tool calling takes.
pub(crate) fn has_calls(message: &Message) -> bool {
    message.content.iter().any(|block| matches!(block, Block::ToolUse(_) | Block::ToolResult { .. }))
}

/// A message as it would stand in the text protocol.
pub(crate) fn in_words(message: &Message) -> Message {
    let content = message.content.iter().map(|block| match block {
        Block::ToolUse(call) => {
            Block::text(format!("<call tool=\"{}\">{}</call>", call.name.escape_default(), call.input))
        }
        Block::ToolResult { content, .. } => {
            let texts: Vec<&str> = content
                .iter()
                .map(|part| match part {
                    ResultPart::Text { text } => text.as_str(),
                    ResultPart::Image(_) => "[image]",
                })
                .collect();
            Block::text(fenced("result", &[], &texts.join("\n")))
        }
        other => other.clone(),
    });
    Message { role: message.role, content: content.collect() }
}

/// Reads the `<edit>` and `<call>` blocks of a reply as calls, in order. A block that can't be read becomes a
/// malformed call, so that the model is told and nothing is guessed.
pub(crate) fn read(text: &str, turn: u32) -> Vec<ToolUse> {
    let blocks = parse_blocks(text);
    let mut calls = Vec::new();
    let mut add = |name: &str, input: Value, malformed: Option<String>| {
        let id = CallId::new(format!("text-{turn}-{}", calls.len()));
        calls.push(ToolUse { id, name: name.to_owned(), input, malformed, signature: None });
    };
    for item in &blocks.items {
        match item {
            Item::Edit(place) => {
                if let Some(edit) = blocks.edits.get(*place) {
                    add(apply_edit::NAME, apply_edit::input(edit), None);
                }
            }
            Item::Call(place) => {
                if let Some(call) = blocks.calls.get(*place) {
                    let raw = || Value::String(call.input_json.clone());
                    let input = serde_json::from_str(&call.input_json).unwrap_or_else(|_| raw());
                    add(&call.tool, input, call.malformed.clone());
                }
            }
        }
    }
    for problem in &blocks.problems {
        add(apply_edit::NAME, Value::Null, Some(problem.to_string()));
    }
    calls
}
