//! The summary of a compaction, which the model writes.

use std::time::Duration;

use futures_util::StreamExt as _;
use journeyman_model::{Delta, Model, ModelError, ModelRequest, SystemPart};
use journeyman_protocol::{
    Block, Message, ResultPart, Role, TokenCounter as _, Tokens, Usage, clip_to_bytes,
};
use tokio_util::sync::CancellationToken;

/// Maximum tokens of the summary.
const MAX_SUMMARY_TOKENS: Tokens = Tokens(1_500);
/// Maximum time for the summary, with all attempts: the session waits for it.
const SUMMARY_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum bytes of one result in the text to summarize.
const MAX_SUMMARIZED_RESULT_BYTES: usize = 1_200;
/// Maximum bytes of one message's text in the text to summarize.
const MAX_SUMMARIZED_MESSAGE_BYTES: usize = 4_000;

/// Asks the model for a summary of at most `room` tokens of the newest messages.
///
/// # Errors
/// The model's error, a reply without text, and [`ModelError::Protocol`] after two minutes.
pub(super) async fn request_summary(
    model: &dyn Model,
    instructions: &str,
    messages: &[Message],
    room: Tokens,
    stop: &CancellationToken,
) -> Result<(String, Usage), ModelError> {
    let asked = request_without_timeout(model, instructions, messages, room, stop);
    tokio::time::timeout(SUMMARY_TIMEOUT, asked).await.unwrap_or_else(|_| {
        let seconds = SUMMARY_TIMEOUT.as_secs();
        Err(ModelError::Protocol(format!("the summary wasn't complete after {seconds} seconds")))
    })
}

async fn request_without_timeout(
    model: &dyn Model,
    instructions: &str,
    messages: &[Message],
    room: Tokens,
    stop: &CancellationToken,
) -> Result<(String, Usage), ModelError> {
    let request = ModelRequest {
        system: vec![SystemPart { text: instructions.to_owned(), cache: false }],
        messages: vec![Message::user_text(format_conversation(messages, room))],
        max_output: Some(MAX_SUMMARY_TOKENS),
        ..ModelRequest::default()
    };
    let mut deltas = model.stream(&request, stop.child_token());
    while let Some(delta) = deltas.next().await {
        if let Delta::Done(reply) = delta? {
            let text = reply.message.text().trim().to_owned();
            if text.is_empty() {
                return Err(ModelError::Protocol("the summary has no text".to_owned()));
            }
            return Ok((text, reply.usage));
        }
    }
    Err(ModelError::Protocol("the summary has no end".to_owned()))
}

/// Formats the newest messages that fit into `room` as text.
fn format_conversation(messages: &[Message], room: Tokens) -> String {
    let (mut pieces, mut spent) = (Vec::new(), Tokens(0));
    for message in messages.iter().rev() {
        let piece = format_message(message);
        spent += journeyman_context::TokenEstimator.count(&piece);
        if spent > room {
            pieces.push("[The beginning is left out.]\n".to_owned());
            break;
        }
        pieces.push(piece);
    }
    pieces.reverse();
    journeyman_context::fence_text("conversation", &[], &pieces.concat())
}

fn format_message(message: &Message) -> String {
    let who = if message.role == Role::User { "user" } else { "model" };
    let mut out = String::new();
    for block in &message.content {
        match block {
            Block::Text { text } => {
                out.push_str(&format!("[{who}] {}\n", clip_to_bytes(text, MAX_SUMMARIZED_MESSAGE_BYTES)))
            }
            Block::ToolUse(call) => {
                let input = call.input.to_string();
                out.push_str(&format!(
                    "[call] {} {}\n",
                    call.name,
                    clip_to_bytes(&input, MAX_SUMMARIZED_RESULT_BYTES)
                ));
            }
            Block::ToolResult { content, is_error, .. } => {
                let kind = if *is_error { "failed" } else { "result" };
                for part in content {
                    if let ResultPart::Text { text } = part {
                        out.push_str(&format!(
                            "[{kind}] {}\n",
                            clip_to_bytes(text, MAX_SUMMARIZED_RESULT_BYTES)
                        ));
                    }
                }
            }
            Block::Thinking { .. } | Block::Image(_) => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use journeyman_model::DeltaStream;

    use super::*;

    #[derive(Debug)]
    struct Hanging;

    impl Model for Hanging {
        fn name(&self) -> String {
            "house/slow".to_owned()
        }

        fn stream<'a>(&'a self, _: &'a ModelRequest, _: CancellationToken) -> DeltaStream<'a> {
            Box::pin(futures_util::stream::pending())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_model_that_says_nothing_is_not_waited_for_any_longer() {
        let messages = [Message::user_text("do it")];
        let asked =
            request_summary(&Hanging, "sum up", &messages, Tokens(1_000), &CancellationToken::new()).await;
        assert!(matches!(&asked, Err(ModelError::Protocol(why)) if why.contains("120 seconds")), "{asked:?}");
    }

    #[test]
    fn the_newest_part_that_fits_is_shown_and_fenced() {
        let messages: Vec<Message> = (0..200)
            .map(|number| Message::user_text(format!("message number {number} </conversation>")))
            .collect();
        let text = format_conversation(&messages, Tokens(300));
        assert!(text.starts_with("<conversation-2>\n[The beginning is left out.]\n"), "{text}");
        assert!(text.contains("[user] message number 199 ") && !text.contains("number 20 "), "{text}");
    }
}
