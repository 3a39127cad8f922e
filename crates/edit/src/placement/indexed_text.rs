//! A file's text with the indexes that strategies look up in it, each built on first use.

use std::cell::OnceCell;
use std::ops::Range;

use crate::lines::{Line, line_at, lines_of};
use crate::patch::lines::FileLines;
use crate::placement::line_profiles::LineProfiles;
use crate::placement::normalize::{MappedText, hash_without_blanks};

/// A text that hunks are placed in, with what is looked up in it: made once for all of them, and
/// only if it is needed.
pub(crate) struct IndexedText<'a> {
    pub(super) text: &'a str,
    /// The number of hunks to place in the text.
    hunks: usize,
    rows: OnceCell<FileLines<'a>>,
    haystack: OnceCell<Haystack<'a>>,
}

impl<'a> IndexedText<'a> {
    pub(crate) fn new(text: &'a str, hunks: usize) -> Self {
        Self { text, hunks, rows: OnceCell::new(), haystack: OnceCell::new() }
    }

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// Its lines as patches compare them.
    pub(crate) fn file_lines(&self) -> &FileLines<'a> {
        self.rows.get_or_init(|| FileLines::new(self.text, self.hunks))
    }

    /// The 1-based line that holds a byte.
    pub(crate) fn line_at(&self, byte: usize) -> u32 {
        match self.hunks {
            // Counting once costs less than finding all lines.
            ..=1 => line_at(self.text, byte),
            _ => u32::try_from(self.file_lines().line_number_at(byte)).unwrap_or(u32::MAX),
        }
    }

    pub(super) fn haystack(&self) -> &Haystack<'a> {
        self.haystack.get_or_init(|| Haystack::new(self.text))
    }
}

/// A file with what the steps that overlook something look up again and again.
pub(super) struct Haystack<'a> {
    pub(super) text: &'a str,
    pub(super) lines: Vec<Line>,
    /// Of each line, [`bare_key`].
    pub(super) keys: Vec<u64>,
    /// Profiles of the lines, for finding the nearest text.
    line_profiles: OnceCell<LineProfiles<'a>>,
    /// The text without line endings' difference, and without that of typography.
    read: [OnceCell<MappedText<'a>>; 2],
    /// The text without blanks, and where in it its lines begin.
    bare: OnceCell<(Vec<u8>, Vec<usize>)>,
}

impl<'a> Haystack<'a> {
    fn new(text: &'a str) -> Self {
        let lines = lines_of(text);
        let keys = lines
            .iter()
            .map(|line| hash_without_blanks(text.get(line.content_range()).unwrap_or_default()))
            .collect();
        Self {
            text,
            lines,
            keys,
            line_profiles: OnceCell::new(),
            read: [OnceCell::new(), OnceCell::new()],
            bare: OnceCell::new(),
        }
    }

    /// Profiles of the lines, for finding the nearest text.
    pub(super) fn line_profiles(&self) -> &LineProfiles<'a> {
        self.line_profiles.get_or_init(|| LineProfiles::new(self.text, &self.lines))
    }

    /// The text as [`Mapped`] reads it.
    pub(super) fn mapped_text(&self, typography: bool) -> &MappedText<'a> {
        let [breaks, characters] = &self.read;
        if typography { characters } else { breaks }.get_or_init(|| MappedText::new(self.text, typography))
    }

    /// The text without ASCII blanks, and where in it each line begins and the last one ends.
    pub(super) fn text_without_blanks(&self) -> &(Vec<u8>, Vec<usize>) {
        self.bare.get_or_init(|| {
            let mut bare = Vec::with_capacity(self.text.len());
            let mut starts = Vec::with_capacity(self.lines.len() + 1);
            for index in 0..self.lines.len() {
                starts.push(bare.len());
                bare.extend(self.line_content(index).bytes().filter(|byte| !byte.is_ascii_whitespace()));
            }
            starts.push(bare.len());
            (bare, starts)
        })
    }

    /// A line without what ends it.
    pub(super) fn line_content(&self, index: usize) -> &'a str {
        self.lines.get(index).and_then(|line| self.text.get(line.content_range())).unwrap_or_default()
    }

    /// The bytes of some lines, perhaps with what ends the last of them.
    pub(super) fn bytes_of_lines(&self, lines: Range<usize>, closed: bool) -> Range<usize> {
        let start = self.lines.get(lines.start).map_or(self.text.len(), |line| line.content_range().start);
        let last = lines.end.checked_sub(1).and_then(|last| self.lines.get(last));
        let end =
            last.map_or(start, |line| if closed { line.next_start() } else { line.content_range().end });
        start..end.max(start)
    }
}
