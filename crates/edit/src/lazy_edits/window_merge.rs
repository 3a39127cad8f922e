//! Windows of a file between remarks, each found by its own lines.
//!
//! A model that leaves out what stays shows each change with some lines around it, wherever they
//! begin and end: in the middle of a function, over the end of one and the beginning of the next.
//! Such a window is no thing of the syntax tree. Its first and its last line are the file's, and it
//! is placed where the fewest lines differ, if no other place is nearly as good.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use journeyman_text_diff::{DiffOp, diff};

use super::file_style::reindented_lines;
use super::line_merge::TextLines;
use super::tree_merge::{MAX_UNSHOWN_BESIDE_PLACEHOLDERS, MergedPieces, loses_too_many_lines};
use crate::lines::first_line_break;
use crate::lost_lines::is_distinctive;
use crate::placeholder::{self, Placeholder};

/// Lines of the windows times lines of the file that are compared.
const MAX_CELLS: usize = 8_000_000;
/// The cost of a line that comes or goes, and of a blank one.
const LINE_COST: u32 = 4;
const BLANK_COST: u32 = 1;
/// Any other place has to cost so much more.
const MIN_COST_MARGIN: u32 = 2 * LINE_COST;
/// The same, for a place that begins alike.
const MIN_END_COST_MARGIN: u32 = LINE_COST;
/// Lines of a place that a window may replace wherever they could stay.
const MAX_REPLACED_LINES: usize = 1;
/// Lines of the file that a window may begin with.
const MAX_STARTS: usize = 64;

/// A window: the file's lines that it is for, and its own.
struct Window {
    old: Range<usize>,
    new: Range<usize>,
}

/// The merge of a rewrite whose every part is found beyond doubt; `None` where one isn't.
pub(super) fn merge_by_windows(text: &str, content: &str) -> Option<MergedPieces> {
    if !reindented_lines(content, text).is_empty() {
        return None;
    }
    let (old, new) = (TextLines::new(text), TextLines::new(content));
    let windows = WindowPlacer::new(&old, &new)?.place_windows()?;
    let mut merged = MergedPieces::default();
    for window in &windows {
        merged.known += old.write_window(&new, window, first_line_break(text), &mut merged)?;
    }
    Some(merged)
}

struct WindowPlacer<'t> {
    old: &'t TextLines<'t>,
    new: &'t TextLines<'t>,
    /// The runs of lines without a remark, without blank lines at their edges.
    runs: Vec<Range<usize>>,
    /// True where a remark stands before the first run, and after the last.
    remarked: (bool, bool),
    /// The number of the file's lines that are so.
    counts: BTreeMap<&'t str, usize>,
}

impl<'t> WindowPlacer<'t> {
    fn new(old: &'t TextLines<'t>, new: &'t TextLines<'t>) -> Option<Self> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for at in 0..old.len() {
            *counts.entry(old.line(at).trim_end()).or_default() += 1;
        }
        let known: BTreeSet<&str> = counts.keys().map(|line| line.trim()).collect();
        let remark = |at: usize| {
            placeholder::placeholder_of_rewrite_line(new.line(at))
                .filter(|_| !known.contains(new.line(at).trim()))
        };
        let remarks: Vec<usize> = (0..new.len()).filter(|at| remark(*at).is_some()).collect();
        let within = |at: usize| {
            (placeholder::placeholder_within_line(new.line(at)).is_some() || is_elided_body(new.line(at)))
                && !known.contains(new.line(at).trim())
        };
        if remarks.is_empty()
            || remarks.iter().any(|at| remark(*at) == Some(Placeholder::Remove))
            || (0..new.len()).any(within)
        {
            return None;
        }
        let mut runs = Vec::new();
        let mut from = 0;
        for end in remarks.iter().copied().chain([new.len()]) {
            let filled = |at: &usize| !new.is_blank(*at);
            if let (Some(first), Some(last)) = ((from..end).find(filled), (from..end).rfind(filled)) {
                runs.push(first..last + 1);
            }
            from = end + 1;
        }
        let remarked = (remarks.first()? < &runs.first()?.start, *remarks.last()? >= runs.last()?.end);
        let cells = runs.iter().map(|run| run.len()).sum::<usize>().checked_mul(old.len())?;
        (cells <= MAX_CELLS).then_some(Self { old, new, runs, remarked, counts })
    }

    fn place_windows(&self) -> Option<Vec<Window>> {
        let filled = |at: &usize| !self.old.is_blank(*at);
        let (first, last) = ((0..self.old.len()).find(filled)?, (0..self.old.len()).rfind(filled)?);
        let mut from = first;
        let mut windows = Vec::new();
        for (nth, new) in self.runs.iter().cloned().enumerate() {
            // Ends of what is around a window change nothing, and many lines are so.
            if new.clone().all(|at| is_closing(self.new.line(at))) {
                continue;
            }
            let begins = (nth == 0 && !self.remarked.0).then_some(first);
            let ends = (nth + 1 == self.runs.len() && !self.remarked.1).then_some(last);
            let old = self.place_window(&new, from, begins, ends)?;
            // What stands right above a definition may go with it or be left out for the remark.
            let above = old.start.checked_sub(1).map(|at| self.old.line(at).trim());
            if begins.is_none()
                && above.is_some_and(|line| line.starts_with(['@']) || line.starts_with("#[") || line == ")")
            {
                return None;
            }
            from = old.end;
            windows.push(Window { old, new });
        }
        Some(windows)
    }

    /// The file's lines from `from` on that a window is for: from the line `begins` and to the line
    /// `ends`, where these are given.
    fn place_window(
        &self,
        new: &Range<usize>,
        from: usize,
        begins: Option<usize>,
        ends: Option<usize>,
    ) -> Option<Range<usize>> {
        let places = self.place_costs(new, from, begins);
        let may_end = |end: usize| ends.is_none_or(|last| end == last);
        let best = places.iter().filter(|(_, place)| may_end(place.end - 1)).min_by_key(|(cost, _)| *cost)?;
        let others = places.iter().filter(|other| other.1 != best.1);
        for (cost, other) in others {
            let alike = other.start == best.1.start && (ends.is_some() || other.end > best.1.end);
            let margin = if alike { MIN_END_COST_MARGIN } else { MIN_COST_MARGIN };
            if *cost < best.0 + margin && may_end(other.end - 1) {
                return None;
            }
        }
        let place = best.1.clone();
        // Where all of the file's lines may stay, no place takes some away.
        if self.count_replaced(&place, new) > MAX_REPLACED_LINES {
            let first = self.new.line(new.start).trim_end();
            let starts: Vec<usize> = (from..self.old.len())
                .filter(|at| {
                    begins.is_none_or(|first| first == *at) && self.old.line(*at).trim_end() == first
                })
                .take(MAX_STARTS + 1)
                .collect();
            let ends = places.iter().map(|(_, other)| other.end).filter(|end| may_end(end - 1));
            let mut others = ends.flat_map(|end| starts.iter().map(move |start| *start..end));
            if starts.len() > MAX_STARTS || others.any(|other| self.only_gains_lines(&other, new)) {
                return None;
            }
        }
        // What the file has once tells the place, and tells none that is elsewhere.
        let telling = |at: &usize| {
            let line = self.new.line(*at).trim_end();
            is_distinctive(line) && self.counts.get(line) == Some(&1)
        };
        let told: Vec<&str> = new.clone().filter(telling).map(|at| self.new.line(at).trim_end()).collect();
        let inside = |line: &&str| place.clone().any(|at| self.old.line(at).trim_end() == *line);
        let anchored = begins.is_some() && ends.is_none() && best.0 == 0;
        ((anchored || !told.is_empty()) && told.iter().all(inside)).then_some(place)
    }

    /// The number of a place's lines that aren't in the window.
    fn count_replaced(&self, place: &Range<usize>, new: &Range<usize>) -> usize {
        let own: BTreeSet<&str> = new.clone().map(|at| self.new.line(at).trim_end()).collect();
        let filled = place.clone().filter(|at| !self.old.is_blank(*at));
        filled.filter(|at| !own.contains(self.old.line(*at).trim_end())).count()
    }

    /// Returns true if a window has all lines of a place in their order, and the lines that come
    /// are none that the file has elsewhere.
    fn only_gains_lines(&self, place: &Range<usize>, new: &Range<usize>) -> bool {
        if place.start >= place.end || place.len() > new.len() + MAX_UNSHOWN_BESIDE_PLACEHOLDERS {
            return false;
        }
        let mut own = place.clone().filter(|at| !self.old.is_blank(*at)).peekable();
        let (mut known, mut unknown) = (0, 0);
        for line in new.clone().map(|at| self.new.line(at).trim_end()) {
            if own.next_if(|at| self.old.line(*at).trim_end() == line).is_none() && is_distinctive(line) {
                *(if self.counts.contains_key(line) { &mut known } else { &mut unknown }) += 1;
            }
        }
        own.peek().is_none() && unknown > 0 && unknown * 2 >= known
    }

    /// Each place that begins with the window's first line and ends with its last: its cost and its
    /// lines.
    fn place_costs(
        &self,
        new: &Range<usize>,
        from: usize,
        begins: Option<usize>,
    ) -> Vec<(u32, Range<usize>)> {
        const INFINITE_COST: u32 = u32::MAX / 2;
        let same = |at: usize, line: usize| self.new.line(at).trim_end() == self.old.line(line).trim_end();
        let cost = |blank: bool| if blank { BLANK_COST } else { LINE_COST };
        let count = self.old.len().saturating_sub(from);
        // Of each of the file's lines: the least cost with it as the last one, and the first one
        // then.
        let mut row: Vec<(u32, usize)> = vec![(INFINITE_COST, 0); count];
        let mut found = Vec::new();
        for (nth, at) in new.clone().enumerate() {
            let is_last = nth + 1 == new.len();
            let added = cost(self.new.is_blank(at));
            let mut diagonal = (INFINITE_COST, 0);
            let mut left = (INFINITE_COST, 0);
            for (column, line) in (from..self.old.len()).enumerate() {
                let Some(cell) = row.get_mut(column) else { break };
                let above = *cell;
                let equal = same(at, line);
                let begun = if nth == 0 {
                    let may = equal && begins.is_none_or(|first| first == line);
                    if may { (0, line) } else { (INFINITE_COST, 0) }
                } else if equal {
                    diagonal
                } else {
                    (INFINITE_COST, 0)
                };
                if is_last && begun.0 < INFINITE_COST {
                    found.push((begun.0, begun.1..line + 1));
                }
                let comes = (above.0.saturating_add(added), above.1);
                let goes = (left.0.saturating_add(cost(self.old.is_blank(line))), left.1);
                let best = [begun, comes, goes].into_iter().min_by_key(|(cost, _)| *cost);
                left = best.filter(|(cost, _)| *cost < INFINITE_COST).unwrap_or((INFINITE_COST, 0));
                *cell = left;
                diagonal = above;
            }
        }
        found
    }
}

/// Returns true for a line of Python with a body that says nothing.
pub(super) fn is_elided_body(line: &str) -> bool {
    let line = line.trim();
    line.ends_with(": ...")
        || line.strip_prefix("pass ").is_some_and(|rest| rest.trim_start().starts_with('#'))
}

/// Returns true for a line of nothing but brackets, or their word.
fn is_closing(line: &str) -> bool {
    let line = line.trim();
    line == "end" || line.chars().all(|c| !c.is_alphanumeric() && c != '_')
}

impl TextLines<'_> {
    /// Adds what changes in a window; `None` where it leaves out lines that nothing stands for.
    /// Returns the number of lines that are the file's.
    fn write_window(
        &self,
        new: &TextLines<'_>,
        window: &Window,
        line_break: &str,
        merged: &mut MergedPieces,
    ) -> Option<usize> {
        let plain = |text: &TextLines<'_>, range: &Range<usize>| -> Vec<String> {
            range.clone().map(|at| text.line(at).trim_end().to_owned()).collect()
        };
        let mut known = 0;
        for op in diff(&plain(self, &window.old), &plain(new, &window.new)) {
            if let DiffOp::Equal { len, .. } = op {
                known += len;
                continue;
            }
            let (from, to) = (op.old_range(), op.new_range());
            let gone = from.clone().filter(|at| !self.is_blank(window.old.start + at)).count();
            let come = to.clone().filter(|at| !new.is_blank(window.new.start + at)).count();
            // A reply that ends within the file leaves out what is below.
            let ends_file = self.is_wordless_from(window.old.start + from.end);
            let is_left_out = ends_file && gone > MAX_UNSHOWN_BESIDE_PLACEHOLDERS + come;
            if loses_too_many_lines(gone, come) || is_left_out {
                return None;
            }
            // A blank line less is an oversight more often than a change.
            if gone == 0 && to.is_empty() {
                continue;
            }
            let start = self.spans.get(window.old.start + from.start)?.start;
            let end = from.end.checked_sub(1).filter(|last| *last >= from.start);
            let end =
                end.and_then(|last| self.spans.get(window.old.start + last)).map_or(start, |span| span.end);
            let lines = to.map(|at| format!("{}{line_break}", new.line(window.new.start + at)));
            merged.pieces.push((start..end, lines.collect()));
        }
        Some(known)
    }
}
