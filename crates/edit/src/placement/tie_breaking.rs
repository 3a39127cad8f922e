//! Choosing between places that are equally good, by what the hunk says of where it is.

use std::ops::Range;

use crate::lines::{line_at, lines_of};
use crate::outcome::{Refusal, Strategy};
use crate::placement::explain;
use crate::placement::hunk::Hunk;
use crate::placement::normalize::LineReading;

/// A line hint decides only if the next best place is at least this many times as far from it.
const MIN_DISTANCE_RATIO: u32 = 2;
/// A shorter anchor must be a whole line; a longer one may be the beginning of one, as git cuts
/// them.
const MIN_PREFIX_ANCHOR_BYTES: usize = 6;

/// Keeps all places, or the one that is meant.
pub(super) fn select_spans(
    text: &str,
    places: Vec<Range<usize>>,
    hunk: &Hunk<'_>,
    strategy: Strategy,
) -> Result<Vec<Range<usize>>, Refusal> {
    if hunk.all || places.len() == 1 {
        return Ok(places);
    }
    let mut lines = Vec::with_capacity(places.len());
    let (mut counted, mut line) = (0, 1_u32);
    for place in &places {
        let between = text.get(counted..place.start).unwrap_or_default();
        line = line.saturating_add(line_at(between, between.len()) - 1);
        counted = place.start;
        lines.push(line);
    }
    let first_from = |from: usize| places.iter().find(|place| place.start >= from).cloned();
    let anchor = (!hunk.anchors.is_empty()).then(|| offset_of_last_anchor(text, hunk));
    if let Some(place) = anchor.and_then(|anchor| first_from(anchor.ok()?)) {
        return Ok(vec![place]);
    }
    if let Some(place) = hunk.near.and_then(|near| nearest_place(&places, &lines, near)) {
        return Ok(vec![place]);
    }
    if let (true, Some(last)) = (hunk.at_end, places.last())
        && text.get(last.end..).is_some_and(|rest| rest.trim().is_empty())
    {
        return Ok(vec![last.clone()]);
    }
    if let Some(place) = hunk.after.and_then(first_from) {
        return Ok(vec![place]);
    }
    match anchor {
        Some(Err(missing)) => Err(Refusal::NoAnchor { anchor: missing.to_owned() }),
        _ => Err(explain::ambiguous_refusal(text, &places, strategy)),
    }
}

/// The place that is clearly nearer to a line than any other.
fn nearest_place(places: &[Range<usize>], lines: &[u32], near: u32) -> Option<Range<usize>> {
    let mut by_distance: Vec<(u32, &Range<usize>)> =
        lines.iter().map(|line| line.abs_diff(near)).zip(places).collect();
    by_distance.sort_by_key(|(distance, _)| *distance);
    match by_distance.as_slice() {
        [(best, place), (next, _), ..] if *next >= best.saturating_mul(MIN_DISTANCE_RATIO).max(1) => {
            Some((*place).clone())
        }
        _ => None,
    }
}

/// Returns the offset of a hunk's last anchor, each searched after the one before it; or the
/// missing anchor.
pub(super) fn offset_of_last_anchor<'a>(text: &str, hunk: &Hunk<'a>) -> Result<usize, &'a str> {
    let lines = lines_of(text);
    let own =
        |index: usize| lines.get(index).and_then(|line| text.get(line.content_range())).unwrap_or_default();
    let after = hunk.after.map_or(0, |after| lines.partition_point(|line| line.content_range().end < after));
    let seek = |anchor: &str, from: usize| {
        let short = anchor.trim().len() < MIN_PREFIX_ANCHOR_BYTES;
        let readings =
            [LineReading::TrailingWhitespace, LineReading::Indentation, LineReading::InnerWhitespace];
        readings
            .into_iter()
            .find_map(|reading| {
                let wanted = reading.normalize_line(anchor);
                (from..lines.len()).find(|index| reading.normalize_line(own(*index)) == wanted)
            })
            .or_else(|| {
                (from..lines.len()).find(|index| !short && own(*index).trim().starts_with(anchor.trim()))
            })
    };
    let (mut from, mut found) = (after, None);
    for anchor in hunk.anchors.iter().filter(|anchor| !anchor.trim().is_empty()) {
        let here = seek(anchor, from).or_else(|| seek(anchor, found.map_or(0, |found| found + 1)));
        let Some(here) = here else { return Err(anchor) };
        found = Some(here);
        from = here + 1;
    }
    match found.and_then(|index| lines.get(index)) {
        Some(line) => Ok(line.content_range().start),
        None => Err(""),
    }
}
