//! Lines of a text by their byte offsets, whatever ends them.

use std::ops::Range;

/// The mark that some editors put before a text; it is no part of the first line.
pub(crate) const BYTE_ORDER_MARK: char = '\u{feff}';

/// The byte order mark that may open a file; no line contains it.
const BOM: &str = "\u{feff}";

/// One line of a text. Offsets fit in 32 bits because [`crate::MAX_FILE_BYTES`] does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line {
    start: u32,
    end: u32,
    next: u32,
}

impl Line {
    /// The line without what ends it.
    pub(crate) fn content_range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Returns the offset of the next line.
    pub(crate) fn next_start(self) -> usize {
        self.next as usize
    }
}

/// Splits a text into lines. A text that ends with a line break has no further line after it.
pub(crate) fn lines_of(text: &str) -> Vec<Line> {
    let bom = if text.starts_with(BOM) { BOM.len() } else { 0 };
    let mut start = bom;
    let mut lines = Vec::new();
    for piece in text.get(bom..).unwrap_or_default().split_inclusive('\n') {
        let next = start + piece.len();
        let end = start + strip_line_break(piece).len();
        lines.push(Line { start: start as u32, end: end as u32, next: next as u32 });
        start = next;
    }
    lines
}

/// A line without the line feed, or carriage return and line feed, that ends it.
pub(crate) fn strip_line_break(line: &str) -> &str {
    match line.strip_suffix('\n') {
        Some(line) => line.strip_suffix('\r').unwrap_or(line),
        None => line,
    }
}

/// A text cut at its line feeds, each piece with the line break that ends it. The last piece has
/// none, and is empty where the text ends with a line break: joined, the pieces are the text.
pub(crate) fn split_with_breaks(text: &str) -> Vec<(&str, &str)> {
    let mut pieces = Vec::new();
    for piece in text.split_inclusive('\n') {
        let content = strip_line_break(piece);
        pieces.push((content, piece.get(content.len()..).unwrap_or_default()));
    }
    if pieces.last().is_none_or(|(_, line_break)| !line_break.is_empty()) {
        pieces.push(("", ""));
    }
    pieces
}

/// The 1-based line that holds the byte at `offset`.
pub(crate) fn line_at(text: &str, offset: usize) -> u32 {
    let before = text.as_bytes().get(..offset).unwrap_or_default();
    u32::try_from(memchr::memchr_iter(b'\n', before).count()).unwrap_or(u32::MAX).saturating_add(1)
}

/// The line break a text uses first; a line feed where it uses none.
pub(crate) fn first_line_break(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text.as_bytes().get(..at).is_some_and(|before| before.ends_with(b"\r")) => "\r\n",
        _ => "\n",
    }
}

/// A line's leading blanks and the rest.
pub(crate) fn split_indent(line: &str) -> (&str, &str) {
    let rest = line.trim_start_matches([' ', '\t', '\u{a0}']);
    line.split_at(line.len() - rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_join_to_the_text() {
        let cases: &[(&str, &[(&str, &str)])] = &[
            ("", &[("", "")]),
            ("a", &[("a", "")]),
            ("a\n", &[("a", "\n"), ("", "")]),
            ("a\r\nb\n\r", &[("a", "\r\n"), ("b", "\n"), ("\r", "")]),
        ];
        for (text, expected) in cases {
            assert_eq!(split_with_breaks(text), *expected, "{text:?}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_in_no_line() {
        let text = "\u{feff}a\r\nb";
        let contents: Vec<&str> = lines_of(text).iter().map(|line| &text[line.content_range()]).collect();
        assert_eq!(contents, ["a", "b"]);
    }
}
