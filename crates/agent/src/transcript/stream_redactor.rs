//! Streamed text, held back until it can be seen whole.
//!
//! A secret may come in two pieces, each of which shows nothing. Tokens and keys are made of ASCII
//! characters without white space, so text is let go up to the last character that can't be inside
//! one, and searched for secrets as a whole. What an entry of the log says is searched whole
//! anyway.

use std::collections::BTreeMap;

use journeyman_protocol::Event;

/// Bytes that are held back at most: longer than any key but a private one, whose shape a piece of
/// this size shows. A stream without any white space must not wait for ever.
const MOST: usize = 8 * 1024;

/// The held tail of one stream of text.
#[derive(Debug, Default)]
pub(crate) struct Holdback {
    held: String,
}

impl Holdback {
    /// Takes a piece; gives what may be shown now, if anything.
    pub(crate) fn push(&mut self, piece: &str) -> Option<String> {
        self.held.push_str(piece);
        let keep = self.held.rfind(|c: char| c.is_whitespace() || !c.is_ascii()).map_or(0, |place| {
            place + self.held.get(place..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8)
        });
        let keep = if self.held.len() - keep > MOST { self.held.len() } else { keep };
        if keep == 0 {
            return None;
        }
        let tail = self.held.split_off(keep);
        Some(std::mem::replace(&mut self.held, tail))
    }

    /// The stream has ended: what is left.
    pub(crate) fn rest(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.held);
        (!rest.is_empty()).then_some(rest)
    }
}

/// The blocks of a reply as they are streamed: what may be shown of them, with its place.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    blocks: BTreeMap<u32, Piece>,
}

#[derive(Debug)]
struct Piece {
    held: Holdback,
    kind: PieceKind,
    shown: String,
}

/// What a streamed block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PieceKind {
    Text,
    Thinking,
}

impl Pieces {
    /// Takes a piece of a block; gives the events that may be shown now.
    pub(crate) fn push(&mut self, block: u32, kind: PieceKind, text: &str) -> Vec<Event> {
        let mut events = Vec::new();
        let piece = self.blocks.entry(block).or_insert_with(|| {
            events.push(match kind {
                PieceKind::Text => Event::TextStart { block },
                PieceKind::Thinking => Event::ThinkingStart { block },
            });
            Piece { held: Holdback::default(), kind, shown: String::new() }
        });
        if let Some(text) = piece.held.push(text) {
            events.push(piece.delta(block, text));
        }
        events
    }

    /// The block has ended: what was held back of it, and its end.
    pub(crate) fn end(&mut self, block: u32) -> Vec<Event> {
        let Some(mut piece) = self.blocks.remove(&block) else { return Vec::new() };
        let rest = piece.held.rest().map(|text| piece.delta(block, text));
        let text = std::mem::take(&mut piece.shown);
        let end = match piece.kind {
            PieceKind::Text => Event::TextEnd { block, text },
            PieceKind::Thinking => Event::ThinkingEnd { block, text },
        };
        rest.into_iter().chain([end]).collect()
    }

    /// All blocks have ended.
    pub(crate) fn end_all(&mut self) -> Vec<Event> {
        let blocks: Vec<u32> = self.blocks.keys().copied().collect();
        blocks.into_iter().flat_map(|block| self.end(block)).collect()
    }
}

impl Piece {
    fn delta(&mut self, block: u32, text: String) -> Event {
        let offset = self.shown.len() as u64;
        self.shown.push_str(&text);
        match self.kind {
            PieceKind::Text => Event::TextDelta { block, offset, text },
            PieceKind::Thinking => Event::ThinkingDelta { block, offset, text },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[&str]) -> (Vec<String>, Option<String>) {
        let mut holdback = Holdback::default();
        let shown = pieces.iter().filter_map(|piece| holdback.push(piece)).collect();
        (shown, holdback.rest())
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
        let long = "x".repeat(MOST);
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
