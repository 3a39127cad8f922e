//! Output that is cleaned while it comes.

use crate::clean_output::clean_output;

/// Maximum length of a line that is shown in one piece, in bytes.
const MAX_UNBROKEN_LINE_BYTES: usize = 8 * 1024;

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
        let ready = if is_too_long { self.line.len() } else { whole };
        let lines: Vec<u8> = self.line.drain(..ready).collect();
        clean_output(&lines)
    }

    /// Returns the last line, which has no line feed.
    #[must_use]
    pub fn finish(self) -> String {
        clean_output(&self.line)
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
}
