//! The part of a streamed reply that has arrived, which is kept if the reply is cut off.

use std::collections::BTreeMap;

use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{Block, Message, Role};

use crate::supervision::repetition::RepetitionDetector;
use crate::transcript::stream_redactor::StreamedBlockKind;

/// Maximum bytes kept of a reply that is cut off: twice the longest output that a provider sells.
const MAX_PARTIAL_BYTES: usize = 2 * 1024 * 1024;
/// Maximum bytes of a last word. A longer one may be half of a token, which only a whole one
/// reveals by its shape.
const MAX_LAST_WORD_BYTES: usize = 16;

/// The texts of a reply that is being streamed. Calls are left out: a call that isn't whole can't
/// be answered, and a transcript with unanswered calls is refused.
#[derive(Debug, Default)]
pub(crate) struct PartialReply {
    blocks: BTreeMap<u32, PartialBlock>,
    /// True once anything has arrived.
    has_begun: bool,
    bytes: usize,
    /// The repetitions that were cut off.
    repeated: String,
    /// The detector of the block that arrives now.
    detector: Option<(u32, RepetitionDetector)>,
}

#[derive(Debug)]
struct PartialBlock {
    kind: StreamedBlockKind,
    text: String,
    has_ended: bool,
}

impl PartialReply {
    /// Returns true once anything of the reply has arrived.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Returns true if no text has arrived.
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Notes that something of the reply has arrived.
    pub(crate) fn begin(&mut self) {
        self.has_begun = true;
    }

    /// Adds a piece of a block. Returns true if the block's text goes in circles; its text is then
    /// cut off after the second repetition.
    pub(crate) fn push(&mut self, block: u32, kind: StreamedBlockKind, piece: &str, detects: bool) -> bool {
        let new = || PartialBlock { kind, text: String::new(), has_ended: false };
        let partial = self.blocks.entry(block).or_insert_with(new);
        self.bytes = self.bytes.saturating_add(piece.len());
        if self.bytes <= MAX_PARTIAL_BYTES {
            partial.text.push_str(piece);
        }
        if !detects {
            return false;
        }
        if self.detector.as_ref().is_none_or(|(of, _)| *of != block) {
            self.detector = Some((block, RepetitionDetector::default()));
        }
        let end = self.detector.as_mut().and_then(|(_, detector)| detector.push(piece));
        let Some(end) = end else { return false };
        if partial.text.is_char_boundary(end) {
            self.repeated = partial.text.split_off(end);
        }
        partial.has_ended = true;
        true
    }

    /// Returns the repetitions that were cut off: they have cost tokens too.
    pub(crate) fn repeated_text(&self) -> &str {
        &self.repeated
    }

    /// Ends a block.
    pub(crate) fn end(&mut self, block: u32) {
        if let Some(partial) = self.blocks.get_mut(&block) {
            partial.has_ended = true;
        }
    }

    /// Returns the message so far. The end of an unfinished block is left out if it may be half a
    /// secret.
    pub(crate) fn into_message(self, redactor: &Redactor) -> Message {
        let blocks = self.blocks.into_values().filter_map(|PartialBlock { kind, mut text, has_ended }| {
            if !has_ended {
                remove_unfinished_secret(&mut text, redactor);
            }
            let block = match kind {
                StreamedBlockKind::Text => Block::Text { text },
                // Without its signature, no provider gets the thinking back.
                StreamedBlockKind::Thinking => Block::Thinking { text, signature: None },
            };
            let (Block::Text { text } | Block::Thinking { text, .. }) = &block else { return None };
            (!text.trim().is_empty()).then_some(block)
        });
        Message { role: Role::Assistant, content: blocks.collect() }
    }
}

fn remove_unfinished_secret(text: &mut String, redactor: &Redactor) {
    let begins = |character: char| character.is_whitespace() || !character.is_ascii();
    let last_word = text.rfind(begins).map_or(0, |place| {
        place + text.get(place..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8)
    });
    if text.len() - last_word > MAX_LAST_WORD_BYTES {
        text.truncate(last_word);
    }
    text.truncate(text.len().saturating_sub(redactor.unfinished_bytes(text)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_context::SECRET;

    fn message(blocks: &[(u32, StreamedBlockKind, &str)]) -> Message {
        let mut partial = PartialReply::default();
        for (block, kind, text) in blocks {
            assert!(!partial.push(*block, *kind, text, true));
        }
        partial.into_message(&Redactor::new([SECRET.to_owned(), "correct horse battery".to_owned()]))
    }

    #[test]
    fn texts_are_kept_in_their_order_and_empty_ones_left_out() {
        let thinks = StreamedBlockKind::Thinking;
        let kept = message(&[
            (0, thinks, "I th"),
            (0, thinks, "ink"),
            (1, StreamedBlockKind::Text, "\n"),
            (2, StreamedBlockKind::Text, "It is 42"),
        ]);
        let thinking = Block::Thinking { text: "I think".to_owned(), signature: None };
        assert_eq!(kept.content, [thinking, Block::text("It is 42")]);
    }

    #[test]
    fn half_a_secret_is_left_out() {
        let token = format!("ghp_{}", "0123456789abcdef".repeat(2));
        let cases = [
            (format!("The key is {}", &SECRET[..12]), "The key is "),
            (format!("KEY={}", &SECRET[..4]), "KEY="),
            (format!("the token {}", &token[..20]), "the token "),
            ("say correct horse".to_owned(), "say "),
            ("I hunt".to_owned(), "I "),
            ("I hun".to_owned(), "I hun"),
        ];
        for (text, kept) in cases {
            assert_eq!(message(&[(0, StreamedBlockKind::Text, &text)]).text(), kept, "{text}");
        }
    }

    #[test]
    fn a_circle_is_cut_after_its_second_repetition() {
        let mut partial = PartialReply::default();
        let circles = (0..100)
            .any(|_| partial.push(0, StreamedBlockKind::Text, "It is the same again and again. ", true));
        assert!(circles);
        assert!(partial.repeated_text().starts_with("It is the same"), "{}", partial.repeated_text());
        let kept = partial.into_message(&Redactor::default()).text();
        assert_eq!(kept, "It is the same again and again. ".repeat(2));
        let mut partial = PartialReply::default();
        assert!(!(0..100).any(|_| partial.push(
            0,
            StreamedBlockKind::Text,
            "It is the same again and again. ",
            false
        )));
    }
}
