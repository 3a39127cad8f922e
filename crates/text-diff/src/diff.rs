//! Aligns the lines of two texts.

use std::hash::Hash;
use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// A text split into lines, each with its line feed. The last line may lack one.
#[derive(Debug, Clone)]
pub struct Lines<'a> {
    text: &'a [u8],
    lines: Vec<&'a [u8]>,
    /// Where each line begins, and where the last one ends.
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    /// Cuts a text at its line feeds.
    #[must_use]
    pub fn new(text: &'a [u8]) -> Self {
        let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
        let mut end = 0;
        let mut starts = vec![0];
        starts.extend(lines.iter().map(|line| {
            end += line.len();
            end
        }));
        Self { text, lines, starts }
    }

    /// Returns the lines.
    #[must_use]
    pub fn as_slice(&self) -> &[&'a [u8]] {
        &self.lines
    }

    /// Returns the number of lines.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lines.len()
    }

    /// Returns the bytes of consecutive lines, as far as the text has these lines.
    #[must_use]
    pub fn text(&self, lines: Range<usize>) -> &'a [u8] {
        self.text.get(self.line_start(lines.start)..self.line_start(lines.end)).unwrap_or_default()
    }

    /// Returns the offset at which a line begins; the end of the text for every line after the
    /// last.
    #[must_use]
    pub fn line_start(&self, line: usize) -> usize {
        self.starts.get(line).copied().unwrap_or(self.text.len())
    }

    /// Returns the range of lines that a byte span touches; empty for an empty span between two
    /// lines.
    #[must_use]
    pub fn lines_in_span(&self, span: &Range<usize>) -> Range<usize> {
        let starts_up_to = self.starts.partition_point(|start| *start <= span.start);
        let first = starts_up_to.saturating_sub(1).min(self.count());
        let end = self.starts.partition_point(|start| *start < span.end).min(self.count());
        let is_inside = span.start > self.line_start(first);
        first..end.max(if is_inside { first + 1 } else { first }).min(self.count())
    }
}

/// Aligns two sequences of lines by Myers' algorithm, with the bounds that git has: where a
/// difference would take too long to minimise, a longer one is returned.
#[must_use]
pub fn diff<T: Hash + Eq>(old: &[T], new: &[T]) -> Vec<DiffOp> {
    capture_diff_slices(Algorithm::Myers, old, new)
}

/// Aligns two sequences of lines, unless more than `max_changed` lines of both together lie between
/// the first and the last difference: these then count as replaced.
#[must_use]
pub fn diff_within<T: Hash + Eq>(old: &[T], new: &[T], max_changed: usize) -> Vec<DiffOp> {
    let is_same = |(one, other): &(&T, &T)| one == other;
    let head = old.iter().zip(new).take_while(is_same).count();
    let tail = old.iter().skip(head).rev().zip(new.iter().skip(head).rev()).take_while(is_same).count();
    if old.len() + new.len() - 2 * (head + tail) <= max_changed {
        return diff(old, new);
    }
    let (old_len, new_len) = (old.len() - head - tail, new.len() - head - tail);
    vec![
        DiffOp::Equal { old_index: 0, new_index: 0, len: head },
        DiffOp::Replace { old_index: head, old_len, new_index: head, new_len },
        DiffOp::Equal { old_index: head + old_len, new_index: head + new_len, len: tail },
    ]
}

/// Numbers of lines in which two texts differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LineCounts {
    /// Lines that only the new text has.
    pub added: usize,
    /// Lines that only the old text has.
    pub removed: usize,
}

/// Counts the lines in which two texts differ. A line counts with its end, so that a line feed
/// added to the last line removes one line and adds one, as git counts.
#[must_use]
pub fn count_changed_lines(old: &[u8], new: &[u8]) -> LineCounts {
    let (old, new) = (Lines::new(old), Lines::new(new));
    let mut counts = LineCounts::default();
    for op in diff(old.as_slice(), new.as_slice()) {
        if !matches!(op, DiffOp::Equal { .. }) {
            counts.added += op.new_range().len();
            counts.removed += op.old_range().len();
        }
    }
    counts
}
