//! Reads calls from the text of a model without tool calling, and writes calls and results as text.

use std::collections::BTreeMap;

use journeyman_context::fenced;
use journeyman_edit::{Format, Item, Reading, Source, detect, parse_blocks};
use journeyman_protocol::{Block, CallId, Message, RelPath, ResultPart, ToolUse};
use serde_json::Value;

use crate::request::apply_edit;

/// Returns true if a message has tool calls or tool results.
pub(crate) fn has_calls(message: &Message) -> bool {
    message.content.iter().any(|block| matches!(block, Block::ToolUse(_) | Block::ToolResult { .. }))
}

/// Returns a message with its calls and results written as text.
pub(crate) fn write_calls_as_text(message: &Message) -> Message {
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

/// Reads the `<edit>` and `<call>` blocks of a reply as calls, in order. An unreadable block
/// becomes a malformed call, so that the model is told instead of guessed at.
pub(crate) fn read_calls(text: &str, turn: u32) -> Vec<ToolUse> {
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
                    add(apply_edit::TOOL_NAME, apply_edit::call_input(edit), None);
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
        add(apply_edit::TOOL_NAME, Value::Null, Some(problem.to_string()));
    }
    if blocks.items.is_empty() && blocks.problems.is_empty() {
        let habit = read_familiar_formats(text);
        for edit in &habit.edits {
            add(apply_edit::TOOL_NAME, apply_edit::call_input(edit), None);
        }
        for problem in &habit.problems {
            add(apply_edit::TOOL_NAME, Value::Null, Some(problem.to_string()));
        }
    }
    calls
}

/// Reads edits in other formats that models were trained on. Accepts only formats that are always
/// meant to be applied: a diff or a fenced file may be an explanation.
fn read_familiar_formats(text: &str) -> Reading {
    let no_files: BTreeMap<RelPath, String> = BTreeMap::new();
    match detect(text) {
        Some(format @ (Format::Blocks | Format::Patch)) => {
            let source = Source { reply: text, path: None, finished: false, files: &no_files };
            journeyman_edit::read(&source, Some(format))
        }
        _ => Reading::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_in_the_formats_of_habit_are_calls_too() {
        let aider =
            "Like this:\n\nsrc/a.rs\n```rust\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n```\n";
        let patch = "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-old\n+new\n*** End Patch\n";
        for reply in [aider, patch] {
            let calls = read_calls(reply, 1);
            assert_eq!(calls.len(), 1, "{reply}");
            assert_eq!(
                (calls[0].name.as_str(), &calls[0].malformed),
                (apply_edit::TOOL_NAME, &None),
                "{reply}"
            );
            assert_eq!(calls[0].input["path"], "src/a.rs", "{reply}");
        }
    }

    #[test]
    fn what_may_be_an_explanation_is_none() {
        let diff = "I changed this:\n```diff\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n```\n";
        let file = "x.py\n```python\nprint(1)\n```\n";
        for reply in [diff, file, "No change is needed.", ""] {
            assert_eq!(read_calls(reply, 1), [], "{reply}");
        }
    }

    #[test]
    fn a_block_that_is_cut_off_is_no_call_that_runs() {
        let reply = "a.rs\n<<<<<<< SEARCH\nold\n=======\nnew and then the out";
        assert!(read_calls(reply, 1).iter().all(|call| call.malformed.is_some()));
    }
}
