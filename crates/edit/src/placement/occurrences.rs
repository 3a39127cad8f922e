//! Occurrences of a text byte for byte, and whether their edges are edges of lines.

use std::ops::Range;

use memchr::memmem;

use crate::outcome::MAX_AMBIGUOUS_PLACES;

/// Returns the offsets of `needle` in `text`. Two overlapping occurrences are two, so that the only
/// one is the only one.
pub(super) fn find_occurrences(
    text: &str,
    needle: &str,
    all: bool,
    keep: impl Fn(&usize) -> bool,
) -> Vec<usize> {
    let limit = if all { usize::MAX } else { MAX_AMBIGUOUS_PLACES };
    let mut places: Vec<usize> =
        memmem::find_iter(text.as_bytes(), needle).filter(|at| keep(at)).take(limit).collect();
    if let (&[only], false) = (places.as_slice(), all) {
        // Only an overlapping one can still be missing; UTF-8 keeps both at borders of characters.
        let end = text.len().min(only + 2 * needle.len());
        let rest = text.as_bytes().get(only + 1..end).unwrap_or_default();
        places.extend(memmem::find(rest, needle.as_bytes()).map(|at| at + only + 1).filter(|at| keep(at)));
    }
    places
}

/// Returns true if a search text that begins or ends with a blank line, as a text format means it,
/// has one there.
pub(super) fn has_blank_lines_at_edges(text: &str, start: usize, search: &str) -> bool {
    let before = text.get(..start).unwrap_or_default();
    let after = text.get(start + search.len()..).unwrap_or_default();
    let opens = !search.starts_with(['\n', '\r']) || before.is_empty() || before.ends_with('\n');
    let closes = !search.ends_with('\n') || after.is_empty() || after.starts_with(['\n', '\r']);
    opens && closes
}

/// Returns true if a place begins where a line begins and ends where a line ends.
pub(crate) fn is_whole_lines(text: &str, place: &Range<usize>) -> bool {
    let before = text.get(..place.start).unwrap_or_default();
    let after = text.get(place.end..).unwrap_or_default();
    (before.is_empty() || before.ends_with('\n')) && (after.is_empty() || after.starts_with(['\n', '\r']))
}
