//! Results that a conversation has already.

use journeyman_protocol::{Block, Message, ResultPart, ToolUse};

use super::text_calls::{calls_of_text_results, parse_text_result};

/// Returns the first call of `tool` whose result is the very same and still stands whole in the
/// conversation, be it a block or written as text.
#[must_use]
pub fn find_same_result(messages: &[Message], tool: &str, content: &[ResultPart]) -> Option<ToolUse> {
    let blocks = || messages.iter().flat_map(|message| &message.content);
    let has_same_text = |text: &str| match content {
        [ResultPart::Text { text: wanted }] => text.trim_end() == wanted.trim_end(),
        _ => false,
    };
    let is_same = |block: &&Block| match block {
        Block::ToolResult { content: earlier, .. } => earlier == content,
        Block::Text { text } => parse_text_result(text)
            .is_some_and(|result| result.tool == Some(tool) && has_same_text(result.content)),
        _ => false,
    };
    match blocks().find(is_same)? {
        Block::ToolResult { id, .. } => blocks().find_map(|block| match block {
            Block::ToolUse(call) if call.id == *id && call.name == tool => Some(call.clone()),
            _ => None,
        }),
        Block::Text { text } => calls_of_text_results(messages).remove(&parse_text_result(text)?.call),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::{CallId, Role};
    use serde_json::json;

    use super::*;
    use crate::compaction::result_as_text;

    #[test]
    fn a_result_is_found_as_a_block_and_as_text() {
        let text = |text: &str| [ResultPart::Text { text: text.to_owned() }];
        let id = CallId::new("c1");
        let input = json!({ "path": "a.rs" });
        let call = ToolUse {
            id: id.clone(),
            name: "read_file".to_owned(),
            input: input.clone(),
            malformed: None,
            signature: None,
        };
        let with = |reply: Block, result: Block| {
            [
                Message { role: Role::Assistant, content: vec![reply] },
                Message { role: Role::User, content: vec![result] },
            ]
        };
        let source = "let a = 1;\n</result>\n";
        let in_blocks = with(Block::ToolUse(call), Block::result(id.clone(), source, false));
        let written = result_as_text(&id, Some("read_file"), false, source);
        let in_text = with(
            Block::text("I read.\n<call tool=\"read_file\">{\"path\": \"a.rs\"}</call>"),
            Block::text(written.clone()),
        );
        for messages in [&in_blocks, &in_text] {
            let found = find_same_result(messages, "read_file", &text(source)).unwrap();
            assert_eq!((&found.id, &found.input), (&id, &input));
            assert_eq!(find_same_result(messages, "read_file", &text("let a = 2;\n")), None);
            assert_eq!(find_same_result(messages, "search_text", &text(source)), None);
        }
        // The user's own words are nobody's result.
        let pasted = [Message::user_text(format!("look:\n{source}"))];
        assert_eq!(find_same_result(&pasted, "read_file", &text(source)), None);
    }
}
