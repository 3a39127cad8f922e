//! Estimates the usage of a reply that was cut off before the provider reported it.

use journeyman_context::Estimate;
use journeyman_model::ModelRequest;
use journeyman_protocol::{Block, Message, ResultPart, TokenCounter as _, Tokens, Usage};

/// Completes the reported usage of a reply that was cut off: most protocols report it only at the
/// end. Images are left out, because their cost differs too much between models.
pub(crate) fn estimate_usage(reported: Usage, request: &ModelRequest, reply: &Message) -> Usage {
    let mut usage = reported;
    if usage.total_input() == Tokens(0) {
        let system: Tokens = request.system.iter().map(|part| Estimate.count(&part.text)).sum();
        let tools: Tokens = request
            .tools
            .iter()
            .map(|tool| Estimate.count(&tool.description) + Estimate.count(&tool.input_schema.to_string()))
            .sum();
        let messages: Tokens = request.messages.iter().map(estimate_message).sum();
        usage.input = system + tools + messages;
        usage.estimated += usage.input;
    }
    // Some protocols report the output of the first piece only.
    let output = estimate_message(reply);
    if output > usage.output {
        usage.output = output;
        usage.estimated += output;
    }
    usage
}

fn estimate_message(message: &Message) -> Tokens {
    message.content.iter().map(estimate_block).sum()
}

fn estimate_block(block: &Block) -> Tokens {
    match block {
        Block::Text { text } | Block::Thinking { text, .. } => Estimate.count(text),
        Block::ToolUse(call) => Estimate.count(&call.name) + Estimate.count(&call.input.to_string()),
        Block::ToolResult { content, .. } => {
            let texts = content.iter().map(|part| match part {
                ResultPart::Text { text } => Estimate.count(text),
                ResultPart::Image(_) => Tokens(0),
            });
            texts.sum()
        }
        Block::Image(_) => Tokens(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_provider_reported_is_not_estimated() {
        let request =
            ModelRequest { messages: vec![Message::user_text("one two three")], ..ModelRequest::default() };
        let reply = Message::assistant_text("four five");
        let estimated = estimate_usage(Usage::default(), &request, &reply);
        assert!(estimated.input.0 >= 3 && estimated.output.0 >= 2, "{estimated:?}");
        assert_eq!(estimated.estimated, estimated.input + estimated.output);
        let reported = Usage { cache_read: Tokens(70), output: Tokens(1), ..Usage::default() };
        let usage = estimate_usage(reported, &request, &reply);
        let expected = Usage { output: estimated.output, estimated: estimated.output, ..reported };
        assert_eq!(usage, expected);
        let whole = Usage { output: Tokens(1_000), ..reported };
        assert_eq!(estimate_usage(whole, &request, &reply), whole);
    }
}
