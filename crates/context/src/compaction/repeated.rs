//! Results that a conversation has already.

use journeyman_protocol::{Block, CallId, Message, ResultPart, ToolUse};

use super::text_calls::{calls_of_text_results, parse_text_result};

/// Returns the first call of the same tool as `call` whose result is `content` and still stands
/// whole in the conversation, be it a block or written as text. A result that was shortened for the
/// window names the handle of its own call.
#[must_use]
pub fn find_same_result(messages: &[Message], call: &ToolUse, content: &[ResultPart]) -> Option<ToolUse> {
    let blocks = || messages.iter().flat_map(|message| &message.content);
    let handle = |id: &CallId| format!("output:{id}");
    let own = handle(&call.id);
    let names_itself =
        content.iter().any(|part| matches!(part, ResultPart::Text { text } if text.contains(&own)));
    let is_same_text = |earlier: &CallId, text: &str, wanted: &str| {
        text == wanted || names_itself && text.replace(&handle(earlier), &own) == wanted
    };
    let is_same_part = |earlier: &CallId, part: &ResultPart, wanted: &ResultPart| match (part, wanted) {
        (ResultPart::Text { text }, ResultPart::Text { text: wanted }) => is_same_text(earlier, text, wanted),
        _ => part == wanted,
    };
    let is_same = |block: &&Block| match block {
        Block::ToolResult { id, content: earlier, .. } => {
            earlier.len() == content.len()
                && earlier.iter().zip(content).all(|(part, wanted)| is_same_part(id, part, wanted))
        }
        Block::Text { text } => parse_text_result(text).is_some_and(|result| match content {
            [ResultPart::Text { text: wanted }] if result.tool == Some(call.name.as_str()) => {
                is_same_text(&result.call, result.content.trim_end(), wanted.trim_end())
            }
            _ => false,
        }),
        _ => false,
    };
    match blocks().find(is_same)? {
        Block::ToolResult { id, .. } => blocks().find_map(|block| match block {
            Block::ToolUse(made) if made.id == *id && made.name == call.name => Some(made.clone()),
            _ => None,
        }),
        Block::Text { text } => calls_of_text_results(messages).remove(&parse_text_result(text)?.call),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::Role;
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
        let made = |name: &str| ToolUse {
            id: CallId::new("c2"),
            name: name.to_owned(),
            input: json!({}),
            malformed: None,
            signature: None,
        };
        for messages in [&in_blocks, &in_text] {
            let found = find_same_result(messages, &made("read_file"), &text(source)).unwrap();
            assert_eq!((&found.id, &found.input), (&id, &input));
            assert_eq!(find_same_result(messages, &made("read_file"), &text("let a = 2;\n")), None);
            assert_eq!(find_same_result(messages, &made("search_text"), &text(source)), None);
        }
        let shortened = |id: &str| format!("let a = 1;\n[shortened; path output:{id} shows the rest]\n");
        let messages = [
            in_blocks[0].clone(),
            Message { role: Role::User, content: vec![Block::result(id.clone(), shortened("c1"), false)] },
        ];
        let found = find_same_result(&messages, &made("read_file"), &text(&shortened("c2")));
        assert_eq!(found.map(|call| call.id), Some(id), "each names its own handle");
        assert_eq!(find_same_result(&messages, &made("read_file"), &text(&shortened("c3"))), None);
        // The user's own words are nobody's result.
        let pasted = [Message::user_text(format!("look:\n{source}"))];
        assert_eq!(find_same_result(&pasted, &made("read_file"), &text(source)), None);
    }
}
