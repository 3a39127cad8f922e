//! Texts of files, by lines.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use journeyman_protocol::{RelPath, TokenCounter as _, Tokens, clip_to_bytes};

use crate::TokenEstimator;

/// Maximum bytes of a line that is shown whole: a longer one is data, or minified.
const MAX_SHOWN_LINE_BYTES: usize = 2_000;

/// Texts of files by path.
pub type Texts = BTreeMap<RelPath, FileText>;

/// A text that is addressed by lines, with the places of its definitions.
#[derive(Debug, Clone, Default)]
pub struct FileText {
    text: Arc<str>,
    /// The byte at which each line begins, and the end of the text.
    starts: Vec<usize>,
    /// Names of definitions with the line of each, in text order.
    definitions: Vec<(u32, String)>,
}

impl FileText {
    /// Prepares a text. `definitions` are names with their lines, for what a gap leaves out.
    #[must_use]
    pub fn new(text: impl Into<Arc<str>>, mut definitions: Vec<(u32, String)>) -> Self {
        let text = text.into();
        let mut starts = vec![0];
        starts.extend(text.match_indices('\n').map(|(at, _)| at + 1).filter(|at| *at < text.len()));
        if text.is_empty() {
            starts.clear();
        }
        starts.push(text.len());
        definitions.sort();
        Self { text, starts, definitions }
    }

    /// Returns the number of lines.
    #[must_use]
    pub fn line_count(&self) -> u32 {
        u32::try_from(self.starts.len().saturating_sub(1)).unwrap_or(u32::MAX)
    }

    /// Returns the whole text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns some lines, 1-based, with their line breaks; lines beyond the end are none.
    #[must_use]
    pub fn slice(&self, lines: &Range<u32>) -> &str {
        let at = |line: u32| {
            let line = line.saturating_sub(1) as usize;
            self.starts.get(line).copied().unwrap_or(self.text.len())
        };
        self.text.get(at(lines.start)..at(lines.end.max(lines.start))).unwrap_or_default()
    }

    /// Returns true if one of these lines is too long to be shown whole.
    pub(super) fn has_long_line(&self, lines: &Range<u32>) -> bool {
        let at = |line: u32| (line.saturating_sub(1) as usize).min(self.starts.len());
        let starts = self.starts.get(at(lines.start)..at(lines.end.saturating_add(1))).unwrap_or_default();
        starts.windows(2).any(|pair| matches!(pair, [start, end] if end - start > MAX_SHOWN_LINE_BYTES))
    }

    /// Returns some lines as they are shown: of long ones the beginning.
    pub(super) fn shown_lines(&self, lines: &Range<u32>) -> Cow<'_, str> {
        let text = self.slice(lines);
        if !self.has_long_line(lines) {
            return text.into();
        }
        let mut shown = String::new();
        for line in text.split_inclusive('\n') {
            if line.len() <= MAX_SHOWN_LINE_BYTES {
                shown.push_str(line);
            } else {
                let kept = clip_to_bytes(line, MAX_SHOWN_LINE_BYTES);
                let _infallible = writeln!(shown, "{kept} […{} bytes]", line.len() - kept.len());
            }
        }
        shown.into()
    }

    /// Returns an estimate of the tokens of some lines as they are shown.
    pub(super) fn count_tokens(&self, lines: &Range<u32>) -> Tokens {
        TokenEstimator.count(&self.shown_lines(lines))
    }

    /// Returns the names that are defined in some lines.
    pub(super) fn names_defined_in(&self, lines: &Range<u32>) -> impl Iterator<Item = &str> {
        let begin = self.definitions.partition_point(|(line, _)| *line < lines.start);
        let end = self.definitions.partition_point(|(line, _)| *line < lines.end).max(begin);
        self.definitions.get(begin..end).unwrap_or_default().iter().map(|(_, name)| name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_addressed_from_one() {
        let text = FileText::new("a\nb\nc", vec![(3, "c".to_owned()), (1, "a".to_owned())]);
        assert_eq!(text.line_count(), 3);
        assert_eq!(text.slice(&(1..3)), "a\nb\n");
        assert_eq!((text.slice(&(3..9)), text.slice(&(9..12)), text.slice(&(2..2))), ("c", "", ""));
        assert_eq!(text.names_defined_in(&(2..4)).collect::<Vec<_>>(), ["c"]);
        assert_eq!(FileText::new("", Vec::new()).line_count(), 0);
        assert_eq!(FileText::new("a\n", Vec::new()).line_count(), 1);
    }

    #[test]
    fn of_a_long_line_the_beginning_is_shown() {
        let text = FileText::new(format!("a\n{}\nc\n", "x".repeat(9_000)), Vec::new());
        assert_eq!(text.shown_lines(&(2..4)), format!("{} […7001 bytes]\nc\n", "x".repeat(2_000)));
        for (lines, has) in [(1..2, false), (1..3, true), (2..3, true), (3..4, false), (3..9, false)] {
            assert_eq!(text.has_long_line(&lines), has, "{lines:?}");
        }
        assert!(!FileText::new("", Vec::new()).has_long_line(&(0..u32::MAX)));
    }
}
