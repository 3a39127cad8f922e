//! The size of messages in tokens.

use journeyman_protocol::{Block, Message, ResultPart, TokenCounter, Tokens};

/// Tokens that protocols add around a message: its role and separators.
const PER_MESSAGE: Tokens = Tokens(4);
/// Tokens that protocols add around a call or a result: its id and its kind.
const PER_CALL: Tokens = Tokens(12);
/// Tokens of an image, whatever its size: providers scale images down to about this.
const PER_IMAGE: Tokens = Tokens(1_600);

/// Counts the tokens of a message.
#[must_use]
pub fn count_message(message: &Message, counter: &dyn TokenCounter) -> Tokens {
    PER_MESSAGE + message.content.iter().map(|block| count_block(block, counter)).sum()
}

/// Counts the tokens of messages.
#[must_use]
pub fn count_messages(messages: &[Message], counter: &dyn TokenCounter) -> Tokens {
    messages.iter().map(|message| count_message(message, counter)).sum()
}

/// Counts the tokens of a block.
pub(super) fn count_block(block: &Block, counter: &dyn TokenCounter) -> Tokens {
    match block {
        Block::Text { text } => counter.count(text),
        // A signature is sent back and billed like text.
        Block::Thinking { text, signature } => {
            counter.count(text) + signature.as_deref().map_or(Tokens(0), |it| counter.count(it))
        }
        Block::ToolUse(call) => PER_CALL + counter.count(&call.name) + counter.count(&call.input.to_string()),
        Block::ToolResult { content, .. } => PER_CALL + count_parts(content, counter),
        Block::Image(_) => PER_IMAGE,
    }
}

/// Counts the tokens of a result's parts.
pub(super) fn count_parts(parts: &[ResultPart], counter: &dyn TokenCounter) -> Tokens {
    let part = |part: &ResultPart| match part {
        ResultPart::Text { text } => counter.count(text),
        ResultPart::Image(_) => PER_IMAGE,
    };
    parts.iter().map(part).sum()
}
