//! A region of a file aligned with a search text.

use journeyman_text_diff::{DiffOp, diff};

use crate::outcome::truncate;
use crate::placement::line_profiles::{LineProfile, MAX_COMPARED_LINE_BYTES};

/// A region of the file, aligned with the search text.
pub(super) struct Region {
    /// Its first line, 0-based, and the one after its last.
    pub(super) start: usize,
    pub(super) end: usize,
    /// From the search text's lines to the region's; lines are equal that differ in blanks at their
    /// ends.
    pub(super) ops: Vec<DiffOp>,
    /// From 0 to 1.
    pub(super) similarity: f32,
}

impl Region {
    /// Some lines of the file, of which there is at least one.
    pub(super) fn align(lines: &[&str], wanted: &[&str], start: usize, end: usize) -> Self {
        let end = end.max(start + 1).min(lines.len());
        let window = lines.get(start..end).unwrap_or_default();
        let ops = diff_trimmed_lines(wanted, window);
        let similarity = region_similarity(wanted, window, &ops);
        Self { start, end, ops, similarity }
    }
}

/// From some lines to others; those are equal that differ in blanks at their ends.
pub(super) fn diff_trimmed_lines(wanted: &[&str], lines: &[&str]) -> Vec<DiffOp> {
    let keys = |lines: &[&str]| -> Vec<String> { lines.iter().map(|line| line.trim().to_owned()).collect() };
    diff(&keys(wanted), &keys(lines))
}

/// Returns the similarity of the search text's and the window's lines, each weighed by its length.
fn region_similarity(wanted: &[&str], window: &[&str], ops: &[DiffOp]) -> f32 {
    let weight = |line: &str| line.trim().len().min(MAX_COMPARED_LINE_BYTES) as f32;
    let (mut sum, mut weights) = (0.0, 0.0);
    for op in ops {
        let (old, new) = (op.old_range(), op.new_range());
        for (nth, line) in wanted.get(old.clone()).unwrap_or_default().iter().enumerate() {
            let other = (nth < new.len()).then(|| window.get(new.start + nth)).flatten();
            weights += weight(line);
            sum += weight(line) * other.map_or(0.0, |other| line_similarity(line, other));
        }
        for line in window.get(new).unwrap_or_default().iter().skip(old.len()) {
            weights += weight(line);
        }
    }
    if weights == 0.0 { 0.0 } else { sum / weights }
}

/// Returns the similarity of two lines: by their pieces, or by the beginning and end they share,
/// whichever says more.
fn line_similarity(one: &str, other: &str) -> f32 {
    let (one, other) = (one.trim(), other.trim());
    if one == other {
        return 1.0;
    }
    let (a, b) = (
        truncate(one, MAX_COMPARED_LINE_BYTES).as_bytes(),
        truncate(other, MAX_COMPARED_LINE_BYTES).as_bytes(),
    );
    let head = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let tail = a.iter().skip(head).rev().zip(b.iter().skip(head).rev()).take_while(|(x, y)| x == y).count();
    let shared = 2.0 * (head + tail) as f32 / (a.len() + b.len()).max(1) as f32;
    // Never 1: they are not equal.
    shared.max(LineProfile::new(one).similarity(LineProfile::new(other))).min(0.99)
}
