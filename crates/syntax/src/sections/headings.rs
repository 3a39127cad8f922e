//! Sections of a text, and the lines and headings they are made from.

use std::ops::Range;

/// Maximum sections of one document. Documents with more are generated.
pub const MAX_SECTIONS: usize = 20_000;
/// Maximum mentions of one section.
pub const MAX_MENTIONS: usize = 200;
/// Maximum bytes of a line that are searched for names and links. Hand-written lines are shorter.
pub(super) const MAX_LINE_BYTES: usize = 4_000;
/// Maximum bytes of a heading.
const MAX_HEADING_BYTES: usize = 300;

/// A section of a document under its heading, or the doc comment of a symbol.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Section {
    /// The heading's text; for a comment, the path of the documented symbol, or empty for the
    /// file's own comment.
    pub heading: String,
    /// Level of the heading; 1 is the outermost.
    pub level: u8,
    /// The first line, 1-based.
    pub first_line: u32,
    /// Number of lines, with subsections.
    pub lines: u32,
    /// Names that look like code, in the heading and in the section's own text, without its
    /// subsections. The parts of a qualified name are joined by dots, whatever the text has.
    pub mentions: Vec<String>,
}

/// A heading and its position.
pub(super) struct Heading {
    pub(super) level: u8,
    /// Byte range of its text.
    pub(super) words: Range<usize>,
    /// Byte offset of its first line, which may be an overline.
    pub(super) start: usize,
    /// Line of `start`, 0-based.
    pub(super) line: usize,
    /// Line of its text, 0-based.
    pub(super) words_line: usize,
}

/// A line of a document.
#[derive(Clone, Copy)]
pub(super) struct Line<'t> {
    /// Byte offset of its beginning.
    pub(super) start: usize,
    /// Its text without the line break.
    pub(super) text: &'t str,
}

pub(super) fn split_lines(text: &str) -> Vec<Line<'_>> {
    let mut start = 0;
    text.split_inclusive('\n')
        .map(|whole| {
            let line = Line { start, text: whole.trim_end_matches(['\n', '\r']) };
            start += whole.len();
            line
        })
        .collect()
}

/// Result of reading a document format.
pub(super) struct Headings {
    pub(super) headings: Vec<Heading>,
    /// For each line, true if it is code.
    pub(super) code: Vec<bool>,
}

impl Headings {
    pub(super) fn new(lines: usize) -> Self {
        Self { headings: Vec::new(), code: vec![false; lines] }
    }

    pub(super) fn mark_code(&mut self, line: usize) {
        if let Some(code) = self.code.get_mut(line) {
            *code = true;
        }
    }

    /// Adds a heading whose text is a part of a line.
    pub(super) fn add_heading(
        &mut self,
        level: usize,
        lines: &[Line<'_>],
        first: usize,
        words_line: usize,
        words: &str,
    ) {
        let (Some(line), Some(top)) = (lines.get(words_line), lines.get(first)) else { return };
        let words = words.get(..words.floor_char_boundary(MAX_HEADING_BYTES)).unwrap_or(words).trim();
        let Some(lead) = line.text.find(words).filter(|_| !words.is_empty()) else { return };
        if self.headings.len() < MAX_SECTIONS {
            self.headings.push(Heading {
                level: u8::try_from(level).unwrap_or(u8::MAX),
                words: line.start + lead..line.start + lead + words.len(),
                start: top.start,
                line: first,
                words_line,
            });
        }
    }
}
