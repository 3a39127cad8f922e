//! Output that is cleaned while it comes.

use crate::clean_output::clean_output;

/// Maximum length of a line that is shown in one piece, in bytes.
const MAX_UNBROKEN_LINE_BYTES: usize = 8 * 1024;
/// Maximum bytes at the end of such a piece that wait for the end of an escape sequence.
const MAX_HELD_BYTES: usize = 1024;

/// Cleans a stream line by line, as [`clean_output()`](crate::clean_output()) does: an escape
/// sequence may come in two pieces.
#[derive(Debug, Default)]
pub struct LineCleaner {
    /// The beginning of a line.
    line: Vec<u8>,
}

impl LineCleaner {
    /// Adds a piece of the stream. Returns the lines that are complete, and a very long one without
    /// its end.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.line.extend_from_slice(bytes);
        let whole = self.line.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let is_too_long = self.line.len() - whole > MAX_UNBROKEN_LINE_BYTES;
        let ready = if is_too_long { self.line.len() - unfinished_bytes(&self.line) } else { whole };
        let lines: Vec<u8> = self.line.drain(..ready).collect();
        clean_output(&lines)
    }

    /// Returns the last line, which has no line feed.
    #[must_use]
    pub fn finish(self) -> String {
        clean_output(&self.line)
    }
}

/// Returns the length of what may go on in the next piece: a text from its last escape sequence on,
/// or the beginning of a character.
fn unfinished_bytes(text: &[u8]) -> usize {
    let end = text.get(text.len().saturating_sub(MAX_HELD_BYTES)..).unwrap_or_default();
    match end.iter().rposition(|byte| *byte == 0x1b) {
        Some(at) => end.len() - at,
        None => end.utf8_chunks().last().map_or(0, |last| last.invalid().len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_in_two_pieces_is_removed() {
        let mut cleaner = LineCleaner::default();
        assert_eq!(cleaner.push(b"one\ntw\x1b[3"), "one\n");
        assert_eq!(cleaner.push(b"1mo\nthree"), "two\n");
        assert_eq!(cleaner.finish(), "three");
    }

    #[test]
    fn a_very_long_line_does_not_wait_for_its_end() {
        let mut cleaner = LineCleaner::default();
        assert_eq!(cleaner.push(&[b'x'; MAX_UNBROKEN_LINE_BYTES]), "");
        assert_eq!(cleaner.push(b"x").len(), MAX_UNBROKEN_LINE_BYTES + 1);
        assert_eq!(cleaner.finish(), "");
    }

    #[test]
    fn a_very_long_line_is_cut_neither_in_a_character_nor_in_a_sequence() {
        for (text, shown) in [("ä", "ä"), ("\x1b[38;5;196mred\x1b[0m", "red"), ("\x1b]8;;http://a\x07b", "b")]
        {
            let line = text.repeat(3 * MAX_UNBROKEN_LINE_BYTES / text.len());
            for piece in [1, 7, 1000] {
                let mut cleaner = LineCleaner::default();
                let mut said: String =
                    line.as_bytes().chunks(piece).map(|piece| cleaner.push(piece)).collect();
                assert!(said.len() > MAX_UNBROKEN_LINE_BYTES / text.len(), "{text:?}");
                said.push_str(&cleaner.finish());
                assert_eq!(said, shown.repeat(3 * MAX_UNBROKEN_LINE_BYTES / text.len()), "{text:?}, {piece}");
            }
        }
    }
}
