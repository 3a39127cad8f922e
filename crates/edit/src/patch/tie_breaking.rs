//! Tie-breaking between several places of a patch's hunk.

use crate::lines::lines_of;
use crate::outcome::{Refusal, Strategy};
use crate::patch::lines::{FileLines, LineComparison};
use crate::placement::explain;

/// A line hint decides only if the next best place is at least this many times as far from it.
const MIN_DISTANCE_RATIO: usize = 2;
/// In how many places one anchor is looked at.
const MAX_ANCHOR_OCCURRENCES: usize = 1_000;

/// The hints of a hunk about its place.
pub(super) struct PlaceHints<'a> {
    pub(super) file: &'a FileLines<'a>,
    pub(super) anchors: &'a [String],
    /// The 1-based line at which the hunk is expected after those before it.
    pub(super) near: Option<u32>,
    /// The 1-based line that its header says.
    pub(super) stated: Option<u32>,
    /// In bytes, where the hunk before it ended.
    pub(super) after: Option<usize>,
    pub(super) at_end: bool,
}

impl PlaceHints<'_> {
    /// The one place that is meant. Hints choose between places; only anchors that are given one
    /// below the other must be there.
    pub(super) fn choose_start(
        &self,
        starts: &[usize],
        lines: usize,
        strategy: Strategy,
    ) -> Result<usize, Refusal> {
        let wanted = self.trimmed_anchors();
        let strict = self.anchors.len() > 1;
        let mut starts = starts.to_vec();
        if strict && !wanted.is_empty() {
            let last = starts.iter().max().copied().unwrap_or_default();
            self.last_anchor_before(&wanted, last + lines)?;
        }
        if starts.len() > 1 && self.at_end {
            let ends = |start: &usize| self.is_blank_from(start + lines);
            retain_if_any(&mut starts, ends);
        }
        if starts.len() > 1 && !wanted.is_empty() {
            self.keep_in_anchor_scope(&wanted, &mut starts, lines);
        }
        if let ([_, _, ..], Some(near)) = (starts.as_slice(), self.expected_start(&starts)) {
            let mut by_distance: Vec<(usize, usize)> =
                starts.iter().map(|start| (start.abs_diff(near), *start)).collect();
            by_distance.sort_unstable();
            if let [(best, start), (next, _), ..] = by_distance.as_slice()
                && *next >= best.saturating_mul(MIN_DISTANCE_RATIO).max(1)
            {
                return Ok(*start);
            }
        }
        if starts.len() > 1
            && let Some(after) = self.after
        {
            let from = self.file.first_line_from(after);
            retain_if_any(&mut starts, |start| *start >= from);
        }
        match starts.as_slice() {
            [only] => Ok(*only),
            several => {
                let spans: Vec<(usize, usize)> =
                    several.iter().map(|start| (*start, start + lines.saturating_sub(1))).collect();
                Err(explain::ambiguous_lines_refusal(
                    self.file.text,
                    &lines_of(self.file.text),
                    &spans,
                    strategy,
                ))
            }
        }
    }

    /// The 0-based line at which the hunk is expected: as the hunks before it were shifted, unless
    /// it can only be taken at its word.
    fn expected_start(&self, starts: &[usize]) -> Option<usize> {
        let [near, stated] = [self.near, self.stated].map(|line| Some(line?.saturating_sub(1) as usize));
        let exact = [near, stated].into_iter().flatten().find(|line| starts.contains(line));
        exact.or(near)
    }

    /// The anchors that say something, without the blanks around them.
    fn trimmed_anchors(&self) -> Vec<&str> {
        self.anchors.iter().map(|anchor| anchor.trim()).filter(|anchor| !anchor.is_empty()).collect()
    }

    fn is_blank_from(&self, line: usize) -> bool {
        (line..self.file.len()).all(|line| self.file.line(line).is_some_and(|line| line.trim().is_empty()))
    }

    /// Returns the lines that equal an anchor. An anchor is a whole line, blanks aside; where none
    /// is, the beginning of one.
    fn lines_equal_to(&self, anchor: &str, from: usize, until: usize) -> Vec<usize> {
        let needle = [anchor];
        let whole: Vec<usize> = (from..until.min(self.file.len()))
            .filter(|line| {
                self.file
                    .line(*line)
                    .is_some_and(|line| LineComparison::Trailing.strip_ignored(line).trim_start() == anchor)
            })
            .take(MAX_ANCHOR_OCCURRENCES)
            .collect();
        if !whole.is_empty() || needle.is_empty() {
            return whole;
        }
        (from..until.min(self.file.len()))
            .filter(|line| {
                self.file.line(*line).is_some_and(|line| begins_with_anchor(line.trim_start(), anchor))
            })
            .take(MAX_ANCHOR_OCCURRENCES)
            .collect()
    }

    /// The line of the last anchor, if all stand in their order before a line.
    fn last_anchor_before(&self, wanted: &[&str], until: usize) -> Result<usize, Refusal> {
        let mut from = 0;
        let mut last = 0;
        for anchor in wanted {
            let Some(line) = self.lines_equal_to(anchor, from, until).first().copied() else {
                return Err(Refusal::NoAnchor { anchor: (*anchor).to_owned() });
            };
            last = line;
            from = line + 1;
        }
        Ok(last)
    }

    /// Keeps the places in what an anchor opens: from it to its next occurrence, as deep as it is
    /// indented.
    fn keep_in_anchor_scope(&self, wanted: &[&str], starts: &mut Vec<usize>, lines: usize) {
        let (Some(last), outer) = (wanted.last(), wanted.get(..wanted.len() - 1).unwrap_or_default()) else {
            return;
        };
        let from = match self.last_anchor_before(outer, self.file.len()) {
            Ok(line) if !outer.is_empty() => line + 1,
            _ => 0,
        };
        let opened = self.lines_equal_to(last, from, self.file.len());
        let opened = if outer.is_empty() { opened.as_slice() } else { opened.get(..1).unwrap_or_default() };
        let mut inside: Vec<usize> = Vec::new();
        for (nth, anchor) in opened.iter().enumerate() {
            let next = opened.get(nth + 1).copied().unwrap_or(self.file.len());
            let end = self.scope_end(*anchor).min(next);
            inside.extend(starts.iter().filter(|start| **start + lines > *anchor && **start < end));
        }
        inside.sort_unstable();
        inside.dedup();
        if let Some(near) = self.expected_start(&inside).filter(|near| inside.contains(near)) {
            inside = vec![near];
        }
        if inside.len() > 1 {
            // A place directly after the anchor precedes places further below.
            let adjacent = |start: &usize| {
                opened.iter().any(|anchor| {
                    *start > *anchor
                        && (anchor + 1..*start)
                            .all(|line| self.file.line(line).is_some_and(|line| line.trim().is_empty()))
                })
            };
            retain_if_any(&mut inside, adjacent);
        }
        if inside.is_empty() {
            // What is not in a line's block may follow it directly all the same.
            inside =
                starts.iter().copied().filter(|start| opened.iter().any(|at| at + 1 == *start)).collect();
        }
        if !inside.is_empty() {
            *starts = inside;
        }
    }

    /// The line after what a line opens: the first that is indented no deeper, but for the bracket
    /// that closes it.
    fn scope_end(&self, line: usize) -> usize {
        let depth = |line: &str| line.len() - line.trim_start().len();
        let Some(own) = self.file.line(line).map(depth) else { return self.file.len() };
        let leaves = |line: &usize| {
            self.file.line(*line).is_some_and(|text| {
                let word = text.trim_start();
                !word.is_empty() && depth(text) <= own && !word.starts_with(['}', ')', ']', '{'])
            })
        };
        (line + 1..self.file.len()).find(leaves).unwrap_or(self.file.len())
    }

    /// The line after the last anchor, where that is the only one.
    pub(super) fn line_after_anchors(&self) -> Result<usize, Refusal> {
        let wanted = self.trimmed_anchors();
        let (Some(last), outer) = (wanted.last(), wanted.get(..wanted.len() - 1).unwrap_or_default()) else {
            return Ok(self.file.len());
        };
        let from = if outer.is_empty() { 0 } else { self.last_anchor_before(outer, self.file.len())? + 1 };
        let places = self.lines_equal_to(last, from, self.file.len());
        match places.as_slice() {
            [] => Err(Refusal::NoAnchor { anchor: (*last).to_owned() }),
            [first, ..] if !outer.is_empty() => Ok(first + 1),
            [only] => Ok(only + 1),
            several => {
                let lines = several.iter().map(|line| u32::try_from(line + 1).unwrap_or(u32::MAX)).collect();
                Err(Refusal::Ambiguous { lines, strategy: Strategy::Exact, spots: Vec::new() })
            }
        }
    }
}

/// Returns true if a line begins with an anchor and goes on with something else than the same word.
fn begins_with_anchor(line: &str, anchor: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.strip_prefix(anchor).is_some_and(|rest| {
        let splits =
            anchor.chars().next_back().is_some_and(is_word) && rest.chars().next().is_some_and(is_word);
        !splits
    })
}

/// Keeps what fits, unless nothing does.
fn retain_if_any(starts: &mut Vec<usize>, fits: impl Fn(&usize) -> bool) {
    if starts.iter().any(&fits) {
        starts.retain(fits);
    }
}
