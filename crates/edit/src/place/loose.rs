//! The loose strategies, strictest first.

use crate::outcome::{Placed, Refusal};
use crate::place::hunk::Hunk;
use crate::place::indexed_text::Haystack;
use crate::place::{artifacts, elision, line_breaks, normalized, resolve, similar_lines};

/// The steps that overlook something, strictest first.
pub(super) fn find_loosely(haystack: &Haystack<'_>, hunk: &Hunk<'_>) -> Option<Result<Placed, Refusal>> {
    if hunk.search.trim().is_empty() {
        return None;
    }
    if let Some(matches) = normalized::locate(haystack, hunk).or_else(|| line_breaks::locate(haystack, hunk))
    {
        return Some(resolve::resolve(haystack.text, &matches));
    }
    artifacts::find(haystack, hunk)
        .or_else(|| elision::find(haystack, hunk))
        .or_else(|| similar_lines::find(haystack, hunk))
}
