//! Blank lines at the edges of a search text that a loose step places.

use std::ops::Range;

use crate::lines::line_at;
use crate::outcome::{PlacedEdit, Refusal, Strategy};
use crate::placement::hunk::Hunk;
use crate::placement::indexed_text::Haystack;
use crate::placement::loose_strategies;

/// The loose steps, with blank lines at the edges of both texts taken for lines.
pub(super) fn find_with_blank_edges(
    haystack: &Haystack<'_>,
    hunk: &Hunk<'_>,
) -> Option<Result<PlacedEdit, Refusal>> {
    let blank_last = hunk.search.ends_with('\n') || hunk.replace.ends_with('\n');
    if !hunk.whole_lines || hunk.replace.is_empty() || !blank_last {
        return find_with_checked_edges(haystack, hunk);
    }
    // With the last line's break a blank line at the end is one, and not that break.
    let search = format!("{}\n", hunk.search);
    let replace = format!("{}\n", hunk.replace);
    find_with_checked_edges(haystack, &Hunk { search: &search, replace: &replace, ..*hunk })
}

/// Refuses what would leave a blank line too many or too few: search text and replacement have not
/// as many at an edge, and the step didn't take them for the file's.
fn find_with_checked_edges(haystack: &Haystack<'_>, hunk: &Hunk<'_>) -> Option<Result<PlacedEdit, Refusal>> {
    let found = loose_strategies::find_loosely(haystack, hunk)?;
    let Ok(placed) = &found else { return Some(found) };
    let overlooks = matches!(
        placed.strategy,
        Strategy::BlankEdges | Strategy::BlankLines | Strategy::LineBreaks | Strategy::Similarity
    );
    if !overlooks || hunk.replace.trim().is_empty() || hunk.allow.differences {
        return Some(found);
    }
    let (old, new) = (count_edge_blanks(hunk.search), count_edge_blanks(hunk.replace));
    let unclear = |(span, _): &&(Range<usize>, String)| {
        let before = haystack.text.get(..span.start).unwrap_or_default();
        let after = haystack.text.get(span.end..).unwrap_or_default();
        let text = before.trim_end();
        let breaks = before.get(text.len()..).unwrap_or_default().matches('\n').count();
        let above = breaks > usize::from(!text.is_empty());
        let closed = haystack.text.get(span.clone()).is_some_and(|found| found.ends_with('\n'));
        let next = if closed { after } else { after.split_once('\n').map_or("", |(_, rest)| rest) };
        let below = next.lines().next().is_some_and(|line| line.trim().is_empty());
        (old.0 != new.0 && above) || (old.1 != new.1 && below)
    };
    let Some((span, _)) = placed.pieces.iter().find(unclear) else { return Some(found) };
    let difference = "search text and replacement have not as many blank lines at an edge, and those of the file can't be \
                      told from them; give the text as the file has it"
        .to_owned();
    Some(Err(Refusal::GuardedMismatch { line: line_at(haystack.text, span.start), difference }))
}

/// Returns the numbers of blank lines at a text's beginning and end.
fn count_edge_blanks(text: &str) -> (usize, usize) {
    let lead = text.len() - text.trim_start().len();
    let breaks = |part: Option<&str>| part.unwrap_or_default().matches('\n').count();
    (breaks(text.get(..lead)), breaks(text.get(text.trim_end().len()..)).saturating_sub(1))
}
