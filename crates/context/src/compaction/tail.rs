//! The newest messages of a shortened conversation.

use journeyman_protocol::{Block, Message, ResultPart, Tokens};
use serde_json::Value;

use super::shorten::{recall_note, shorten};
use super::text_calls::parse_text_result;
use crate::counting::Counter;
use crate::cut::fair_limit;

/// A shorter string of a call's arguments is never shortened, in bytes.
const MIN_SHORTENED_ARGUMENT_BYTES: usize = 200;
/// Attempts at shortening the newest messages, each to a smaller part of it, in hundredths.
const MAX_SHORTENINGS: u32 = 5;
const SHORTENING_PERCENT: u64 = 75;
/// The text in place of an image that there is no room for.
const OMITTED_IMAGE: &str = "[an image, no longer shown]";

/// Parts of a number of tokens, in hundredths.
pub(super) trait PercentOf {
    fn percent(self, hundredths: u64) -> Self;
}

impl PercentOf for Tokens {
    fn percent(self, hundredths: u64) -> Self {
        Self(self.0 * hundredths / 100)
    }
}

/// Returns true for a result, also one that is written as text.
pub(super) fn is_result(block: &Block) -> bool {
    match block {
        Block::ToolResult { .. } => true,
        Block::Text { text } => parse_text_result(text).is_some(),
        _ => false,
    }
}

/// Returns the tokens of some messages.
pub(super) fn count_message_tokens(messages: &[Message], counter: &Counter) -> Tokens {
    messages.iter().map(|message| counter.count_message(message)).sum()
}

/// Returns the index of the first message that stays. Before it every call has its result.
pub(super) fn tail_start(messages: &[Message], room: Tokens, counter: &Counter) -> usize {
    let mut spent = Tokens(0);
    let mut start = None;
    for (at, message) in messages.iter().enumerate().skip(1).rev() {
        spent += counter.count_message(message);
        if spent > room && start.is_some() {
            break;
        }
        if !message.content.iter().any(is_result) {
            start = Some(at);
        }
    }
    start.unwrap_or(messages.len())
}

/// Shortens the newest messages if they don't fit: results first, then long arguments of calls.
pub(super) fn shorten_tail(tail: &[Message], room: Tokens, counter: &Counter) -> Option<Vec<Message>> {
    if count_message_tokens(tail, counter) <= room {
        return None;
    }
    let blocks = tail.iter().flat_map(|message| &message.content);
    let mut part = fair_limit(blocks.map(|block| counter.count_block(block)).collect(), room);
    for _ in 1..MAX_SHORTENINGS {
        let shortened = shorten_pieces(tail, part, counter);
        if count_message_tokens(&shortened, counter) <= room {
            return Some(shortened);
        }
        // Names, ids and notes of what is missing take tokens too.
        part = part.percent(SHORTENING_PERCENT);
    }
    Some(shorten_pieces(tail, part, counter))
}

/// Shortens each text that has more tokens than `part`.
fn shorten_pieces(tail: &[Message], part: Tokens, counter: &Counter) -> Vec<Message> {
    let mut tail = tail.to_vec();
    for block in tail.iter_mut().flat_map(|message| message.content.iter_mut()) {
        match block {
            Block::ToolResult { id, content, .. } => {
                let recall = recall_note(id);
                for part_of in content {
                    match part_of {
                        ResultPart::Text { text } => {
                            if let Some(short) = shorten(text, part, Some(&recall), counter) {
                                *text = short;
                            }
                        }
                        ResultPart::Image(image) if counter.count_image(image) > part => {
                            *part_of = ResultPart::Text { text: OMITTED_IMAGE.to_owned() };
                        }
                        ResultPart::Image(_) => {}
                    }
                }
            }
            Block::ToolUse(call) => shorten_arguments(&mut call.input, part, counter),
            Block::Text { text } => {
                let recall = parse_text_result(text).map(|result| recall_note(&result.call));
                if let Some(short) = shorten(text, part, recall.as_deref(), counter) {
                    *text = short;
                }
            }
            Block::Image(_) => shorten_block(block, part, counter),
            Block::Thinking { .. } => {}
        }
    }
    tail
}

/// Shortens a text, and replaces an image by a line, if it doesn't fit.
pub(super) fn shorten_block(block: &mut Block, room: Tokens, counter: &Counter) {
    match block {
        Block::Text { text } => {
            if let Some(short) = shorten(text, room, None, counter) {
                *text = short;
            }
        }
        Block::Image(image) if counter.count_image(image) > room => *block = Block::text(OMITTED_IMAGE),
        _ => {}
    }
}

/// Shortens the long strings of a call's arguments. The call has run already.
fn shorten_arguments(input: &mut Value, budget: Tokens, counter: &Counter) {
    match input {
        Value::String(text) if text.len() > MIN_SHORTENED_ARGUMENT_BYTES => {
            if let Some(short) = shorten(text, budget, None, counter) {
                *text = short;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| shorten_arguments(item, budget, counter)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| shorten_arguments(field, budget, counter));
        }
        _ => {}
    }
}
