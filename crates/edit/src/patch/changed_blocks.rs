//! The changes of a hunk whose other context isn't the file's.
//!
//! Models leave comments out of the context that they copy, or copy a line as it was before. What a
//! hunk does is told by the lines that go and by those next to a change; the other context only
//! tells where. So each run of changes is looked for by itself, with nothing but comments between
//! it and the lines next to it, and the rest has to be around for the most part.

use std::ops::Range;

use super::lines::{FileLines, LineComparison, is_distinctive};
use crate::edit::{LineKind, PatchLine};

/// Maximum number of lines of the file that may lie between two neighbouring lines of a hunk.
const MAX_SKIPPED_LINES: usize = 8;
/// Maximum number of places of one run that are looked at.
const MAX_PLACES: usize = 64;
/// Beginnings of lines that are comments in most languages.
const COMMENT_STARTS: [&str; 9] = ["# ", "##", "//", "/*", "* ", "*/", "-- ", "<!--", "; "];

/// A part of a hunk that stands whole in the file.
pub(super) struct PlacedBlock<'l> {
    /// The 0-based line of the file at which it begins.
    pub(super) start: usize,
    pub(super) lines: &'l [PatchLine],
}

/// Finds the runs of changes of a hunk. `None` if one is nowhere, if more than one place can be
/// meant, or if too little of the context is around.
pub(super) fn find_blocks<'l>(
    file: &FileLines<'_>,
    lines: &'l [PatchLine],
    level: LineComparison,
) -> Option<Vec<PlacedBlock<'l>>> {
    let runs = runs_of_changes(lines);
    let first = runs.first()?;
    if !is_distinctive(old_lines(lines, &(0..lines.len()))) {
        return None;
    }
    let goes: Vec<&str> = old_lines(lines, first).collect();
    let (wanted, offset) = match goes.is_empty() {
        true => (vec![lines.get(first.start.checked_sub(1)?)?.text.as_str()], 1),
        false => (goes, 0),
    };
    let places = file.find_lines(&wanted, level);
    if places.len() > MAX_PLACES {
        return None;
    }
    let only = places.len() == 1 && is_distinctive(wanted.iter().copied());
    let mut found = places.into_iter().filter_map(|place| {
        let search = BlockSearch { file, lines, level };
        let (blocks, context) = search.place_from(&runs, place + offset)?;
        // Lines that could stand elsewhere are told by all of the context.
        let all = context.found == context.wanted;
        let most = only && context.found * 2 >= context.wanted;
        (all || most).then_some(blocks)
    });
    let blocks = found.next()?;
    found.next().is_none().then_some(blocks)
}

/// Number of lines of context that aren't blank, and how many of them were found.
#[derive(Default)]
struct ContextCount {
    wanted: usize,
    found: usize,
}

struct BlockSearch<'a, 'l> {
    file: &'a FileLines<'a>,
    lines: &'l [PatchLine],
    level: LineComparison,
}

impl<'l> BlockSearch<'_, 'l> {
    /// The blocks with their places, and the context around them, if the first run of changes is at
    /// `start`.
    fn place_from(
        &self,
        runs: &[Range<usize>],
        start: usize,
    ) -> Option<(Vec<PlacedBlock<'l>>, ContextCount)> {
        let mut context = ContextCount::default();
        let above = self.lines.get(..runs.first()?.start)?;
        let mut at = start;
        for (nth, line) in above.iter().rev().enumerate() {
            let near = (at.saturating_sub(1 + MAX_SKIPPED_LINES)..at).rev();
            let found = self.find_context(line, near, &mut context);
            if nth == 0 && !found.is_some_and(|own| self.only_comments(own + 1..at)) {
                return None;
            }
            at = found.unwrap_or(at);
        }
        let mut blocks = Vec::with_capacity(runs.len());
        let mut at = start;
        for (nth, run) in runs.iter().enumerate() {
            let goes: Vec<&str> = old_lines(self.lines, run).collect();
            if nth > 0 && !goes.is_empty() {
                let place = (at..=at + MAX_SKIPPED_LINES)
                    .find(|place| self.file.has_lines_at(*place, &goes, self.level))?;
                if !self.only_comments(at..place) {
                    return None;
                }
                at = place;
            }
            blocks.push(match goes.is_empty() {
                true => PlacedBlock {
                    start: at.checked_sub(1)?,
                    lines: self.lines.get(run.start.checked_sub(1)?..run.end)?,
                },
                false => PlacedBlock { start: at, lines: self.lines.get(run.clone())? },
            });
            at += goes.len();
            let until = runs.get(nth + 1).map_or(self.lines.len(), |next| next.start);
            let below = self.lines.get(run.end..until)?;
            if goes.is_empty() && below.is_empty() {
                return None;
            }
            for (offset, line) in below.iter().enumerate() {
                let found = self.find_context(line, at..=at + MAX_SKIPPED_LINES, &mut context);
                let next_to_change = offset == 0 || (until < self.lines.len() && offset + 1 == below.len());
                match found {
                    Some(own) if offset > 0 || self.only_comments(at..own) => at = own + 1,
                    None if !next_to_change => {}
                    _ => return None,
                }
            }
        }
        Some((blocks, context))
    }

    /// The first of some lines of the file that is a line of context.
    fn find_context(
        &self,
        line: &PatchLine,
        mut near: impl Iterator<Item = usize>,
        context: &mut ContextCount,
    ) -> Option<usize> {
        let found = near.find(|own| self.file.has_lines_at(*own, &[&line.text], self.level));
        if !line.text.trim().is_empty() {
            context.wanted += 1;
            context.found += usize::from(found.is_some());
        }
        found
    }

    fn only_comments(&self, mut lines: Range<usize>) -> bool {
        lines.all(|line| {
            let text = self.file.line(line).unwrap_or_default().trim_start();
            COMMENT_STARTS.iter().any(|start| text.starts_with(start))
        })
    }
}

/// The stretches of lines that go or come.
fn runs_of_changes(lines: &[PatchLine]) -> Vec<Range<usize>> {
    let changes = |line: &PatchLine| matches!(line.kind, LineKind::Add | LineKind::Remove);
    let mut runs: Vec<Range<usize>> = Vec::new();
    for at in (0..lines.len()).filter(|at| lines.get(*at).is_some_and(changes)) {
        match runs.last_mut() {
            Some(last) if last.end == at => last.end = at + 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

fn old_lines<'l>(lines: &'l [PatchLine], range: &Range<usize>) -> impl Iterator<Item = &'l str> {
    let within = lines.get(range.clone()).unwrap_or_default();
    within.iter().filter(|line| line.kind != LineKind::Add).map(|line| line.text.as_str())
}
