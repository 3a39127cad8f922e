//! Calls out of the text of a model that has no tool calling.

use journeyman_edit::{Item, parse_blocks};
use journeyman_protocol::{CallId, ToolUse};
use serde_json::Value;

use crate::apply_edit;

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
