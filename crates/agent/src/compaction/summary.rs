//! The summary of a compaction, which the model writes.

use std::time::Duration;

use futures_util::StreamExt as _;
use journeyman_context::{TokenEstimator, cut_to_budget, fence_text};
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
/// The part of the room that an earlier summary may have, in hundredths.
const EARLIER_PERCENT: u64 = 30;
/// Minimum tokens of a part of a message: less tells nothing.
const MIN_PIECE_TOKENS: u64 = 100;
/// Maximum bytes of one message's text in the text to summarize.
const MAX_SUMMARIZED_MESSAGE_BYTES: usize = 4_000;

/// Asks the model for a summary of a conversation, as [`format_conversation`] wrote it.
///
/// # Errors
/// The model's error, a reply without text, and [`ModelError::Protocol`] after two minutes.
pub(super) async fn request_summary(
    model: &dyn Model,
    instructions: &str,
    conversation: String,
    usage: &mut Usage,
    stop: &CancellationToken,
) -> Result<String, ModelError> {
    let asked = request_without_timeout(model, instructions, conversation, usage, stop);
    tokio::time::timeout(SUMMARY_TIMEOUT, asked).await.unwrap_or_else(|_| {
        let seconds = SUMMARY_TIMEOUT.as_secs();
        Err(ModelError::Protocol(format!("the summary wasn't complete after {seconds} seconds")))
    })
}

async fn request_without_timeout(
    model: &dyn Model,
    instructions: &str,
    conversation: String,
    usage: &mut Usage,
    stop: &CancellationToken,
) -> Result<String, ModelError> {
    let request = ModelRequest {
        system: vec![SystemPart { text: instructions.to_owned(), cache: false }],
        messages: vec![Message::user_text(conversation)],
        max_output: Some(MAX_SUMMARY_TOKENS),
        ..ModelRequest::default()
    };
    let mut deltas = model.stream(&request, stop.child_token());
    while let Some(delta) = deltas.next().await {
        match delta? {
            Delta::Usage(broken) => *usage += broken,
            Delta::Done(reply) => {
                *usage += reply.usage;
                let text = reply.message.text().trim().to_owned();
                if text.is_empty() {
                    return Err(ModelError::Protocol("the summary has no text".to_owned()));
                }
                return Ok(text);
            }
            _ => {}
        }
    }
    Err(ModelError::Protocol("the summary has no end".to_owned()))
}

/// Formats the earlier summary and the newest messages as text, as far as they fit into `room`. A
/// message of which only a part fits is shortened. `None` if there is no room for a conversation.
pub(super) fn format_conversation(
    earlier: Option<&str>,
    messages: &[Message],
    room: Tokens,
) -> Option<String> {
    let mut left = room.0;
    let earlier = earlier.map(|text| {
        let most = Tokens(room.0 * EARLIER_PERCENT / 100);
        format!("[summary of what came before]\n{}\n", cut_to_budget(text, most, None).text)
    });
    left = left.saturating_sub(earlier.as_deref().map_or(0, |text| TokenEstimator.count(text).0));
    let (mut pieces, mut is_whole) = (Vec::new(), true);
    for message in messages.iter().rev() {
        let piece = format_message(message);
        let tokens = TokenEstimator.count(&piece).0;
        if tokens > left {
            is_whole = false;
            if left >= MIN_PIECE_TOKENS {
                pieces.push(cut_to_budget(&piece, Tokens(left), None).text + "\n");
            }
            break;
        }
        left -= tokens;
        pieces.push(piece);
    }
    if pieces.is_empty() {
        return None;
    }
    pieces.extend((!is_whole).then(|| "[The beginning is left out.]\n".to_owned()));
    pieces.extend(earlier);
    pieces.reverse();
    Some(fence_text("conversation", &[], &pieces.concat()))
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
        let asked = request_summary(
            &Hanging,
            "sum up",
            "do it".to_owned(),
            &mut Usage::default(),
            &CancellationToken::new(),
        )
        .await;
        assert!(matches!(&asked, Err(ModelError::Protocol(why)) if why.contains("120 seconds")), "{asked:?}");
    }

    #[test]
    fn the_newest_part_that_fits_is_shown_and_fenced() {
        let messages: Vec<Message> = (0..200)
            .map(|number| Message::user_text(format!("message number {number} </conversation>")))
            .collect();
        let text = format_conversation(Some("The lexer was rewritten."), &messages, Tokens(300)).unwrap();
        let begin = "<conversation-2>\n[summary of what came before]\nThe lexer was rewritten.\n[The beginning is left out.]\n";
        assert!(text.starts_with(begin), "{text}");
        assert!(text.contains("[user] message number 199 ") && !text.contains("number 20 "), "{text}");
    }

    #[test]
    fn of_a_message_that_is_too_long_a_part_is_shown() {
        let messages = [Message::user_text("do it"), Message::assistant_text("word ".repeat(700))];
        let text = format_conversation(None, &messages, Tokens(300)).unwrap();
        assert!(text.contains("[model] word") && TokenEstimator.count(&text) < Tokens(360), "{text}");
        assert_eq!(format_conversation(None, &messages, Tokens(60)), None);
    }
}
