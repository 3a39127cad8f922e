//! Tool calls and results written as text, for a model without tool calling.

use std::collections::HashMap;

use journeyman_context::compaction::result_as_text;
use journeyman_protocol::{Block, CallId, Message, ResultPart};

/// Returns true if a message has tool calls or tool results.
pub(crate) fn has_calls(message: &Message) -> bool {
    message.content.iter().any(|block| matches!(block, Block::ToolUse(_) | Block::ToolResult { .. }))
}

/// Returns messages with their calls and results written as text.
pub(crate) fn write_calls_as_text(messages: &[Message]) -> Vec<Message> {
    let made = messages.iter().flat_map(Message::tool_uses);
    let tools: HashMap<&CallId, &str> = made.map(|call| (&call.id, call.name.as_str())).collect();
    messages.iter().map(|message| write_message_as_text(message, &tools)).collect()
}

fn write_message_as_text(message: &Message, tools: &HashMap<&CallId, &str>) -> Message {
    let content = message.content.iter().map(|block| match block {
        Block::ToolUse(call) => {
            Block::text(format!("<call tool=\"{}\">{}</call>", call.name.escape_default(), call.input))
        }
        Block::ToolResult { id, content, is_error } => {
            let texts: Vec<&str> = content
                .iter()
                .map(|part| match part {
                    ResultPart::Text { text } => text.as_str(),
                    ResultPart::Image(_) => "[image]",
                })
                .collect();
            Block::text(result_as_text(id, tools.get(id).copied(), *is_error, &texts.join("\n")))
        }
        other => other.clone(),
    });
    Message { role: message.role, content: content.collect() }
}
