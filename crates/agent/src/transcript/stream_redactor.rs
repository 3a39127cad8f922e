//! Holds back streamed text until no secret can be split across pieces.
//!
//! A secret may arrive in two pieces that look harmless on their own. Tokens and keys consist of
//! ASCII characters without white space, so text is released up to the last character that can't be
//! inside a secret, and is then searched as a whole. Log entries are always searched as a whole.

use std::collections::BTreeMap;

use journeyman_protocol::Event;

/// Maximum bytes held back, so that a stream without white space is still shown. Longer than any
/// key but a private key, which a piece of this size reveals by its shape.
const MAX_HELD_BYTES: usize = 8 * 1024;

/// The held-back tail of a text stream.
#[derive(Debug, Default)]
pub(crate) struct StreamRedactor {
    held: String,
}

impl StreamRedactor {
    /// Adds a piece, and returns the text that may be shown now, if any.
    pub(crate) fn push(&mut self, piece: &str) -> Option<String> {
        self.held.push_str(piece);
        let keep = self.held.rfind(|c: char| c.is_whitespace() || !c.is_ascii()).map_or(0, |place| {
            place + self.held.get(place..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8)
        });
        let keep = if self.held.len() - keep > MAX_HELD_BYTES { self.held.len() } else { keep };
        if keep == 0 {
            return None;
        }
        let tail = self.held.split_off(keep);
        Some(std::mem::replace(&mut self.held, tail))
    }

    /// Ends the stream, and returns the text still held back, if any.
    pub(crate) fn take_rest(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.held);
        (!rest.is_empty()).then_some(rest)
    }
}

/// The blocks of a streamed reply, with the text shown of each so far.
#[derive(Debug, Default)]
pub(crate) struct ReplyRedactor {
    blocks: BTreeMap<u32, BlockRedactor>,
}

#[derive(Debug)]
struct BlockRedactor {
    held: StreamRedactor,
    kind: StreamedBlockKind,
    shown: String,
}

/// The kind of a streamed block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamedBlockKind {
    Text,
    Thinking,
}

impl ReplyRedactor {
    /// Adds a piece of a block, and returns the events to show now.
    pub(crate) fn push(&mut self, block: u32, kind: StreamedBlockKind, text: &str) -> Vec<Event> {
        let mut events = Vec::new();
        let piece = self.blocks.entry(block).or_insert_with(|| {
            events.push(match kind {
                StreamedBlockKind::Text => Event::TextStart { block },
                StreamedBlockKind::Thinking => Event::ThinkingStart { block },
            });
            BlockRedactor { held: StreamRedactor::default(), kind, shown: String::new() }
        });
        if let Some(text) = piece.held.push(text) {
            events.push(piece.delta_event(block, text));
        }
        events
    }

    /// Ends a block, and returns its remaining text and its end event.
    pub(crate) fn end(&mut self, block: u32) -> Vec<Event> {
        let Some(mut piece) = self.blocks.remove(&block) else { return Vec::new() };
        let rest = piece.held.take_rest().map(|text| piece.delta_event(block, text));
        let text = std::mem::take(&mut piece.shown);
        let end = match piece.kind {
            StreamedBlockKind::Text => Event::TextEnd { block, text },
            StreamedBlockKind::Thinking => Event::ThinkingEnd { block, text },
        };
        rest.into_iter().chain([end]).collect()
    }

    /// Ends all blocks of a reply that was cut off, and returns their events. The text held back is
    /// not shown, because it may be half a secret.
    pub(crate) fn end_cut_off_reply(&mut self) -> Vec<Event> {
        self.blocks.values_mut().for_each(|piece| drop(piece.held.take_rest()));
        self.end_all()
    }

    /// Ends all blocks, and returns their events.
    pub(crate) fn end_all(&mut self) -> Vec<Event> {
        let blocks: Vec<u32> = self.blocks.keys().copied().collect();
        blocks.into_iter().flat_map(|block| self.end(block)).collect()
    }
}

impl BlockRedactor {
    fn delta_event(&mut self, block: u32, text: String) -> Event {
        let offset = self.shown.len() as u64;
        self.shown.push_str(&text);
        match self.kind {
            StreamedBlockKind::Text => Event::TextDelta { block, offset, text },
            StreamedBlockKind::Thinking => Event::ThinkingDelta { block, offset, text },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[&str]) -> (Vec<String>, Option<String>) {
        let mut redactor = StreamRedactor::default();
        let shown = pieces.iter().filter_map(|piece| redactor.push(piece)).collect();
        (shown, redactor.take_rest())
    }

    #[test]
    fn words_are_shown_whole() {
        let (pieces, rest) = shown(&["The to", "ken is ghp", "_0123", "456 and", " so on"]);
        assert_eq!(pieces, ["The ", "token is ", "ghp_0123456 ", "and so "]);
        assert_eq!(rest.as_deref(), Some("on"));
    }

    #[test]
    fn text_without_spaces_is_not_held_for_ever() {
        let (pieces, rest) = shown(&["日本", "語"]);
        assert_eq!((pieces.concat().as_str(), rest), ("日本語", None));
        let long = "x".repeat(MAX_HELD_BYTES);
        let (pieces, rest) = shown(&[&long, "y"]);
        assert_eq!((pieces.len(), rest), (1, None));
    }

    #[test]
    fn nothing_is_lost() {
        let text = "a b  c\n\tπ d-e";
        for size in 1..text.len() {
            let chars: Vec<char> = text.chars().collect();
            let pieces: Vec<String> = chars.chunks(size).map(|chunk| chunk.iter().collect()).collect();
            let (shown, rest) = shown(&pieces.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(shown.concat() + &rest.unwrap_or_default(), text);
        }
    }
}
