//! The loose strategies, strictest first.

use crate::outcome::{PlacedEdit, Refusal};
use crate::placement::hunk::Hunk;
use crate::placement::indexed_text::Haystack;
use crate::placement::{
    artifacts, elision, normalized_matching, resolve, similar_lines, slips, token_matching,
};

/// The steps that overlook something, strictest first.
pub(super) fn find_loosely(haystack: &Haystack<'_>, hunk: &Hunk<'_>) -> Option<Result<PlacedEdit, Refusal>> {
    if hunk.search.trim().is_empty() {
        return None;
    }
    if let Some(matches) = normalized_matching::locate_normalized(haystack, hunk)
        .or_else(|| token_matching::locate_by_tokens(haystack, hunk))
    {
        return Some(resolve::resolve_matches(haystack.text, &matches));
    }
    artifacts::find_cleaned(haystack, hunk)
        .or_else(|| elision::find_with_gaps(haystack, hunk))
        .or_else(|| similar_lines::find_similar(haystack, hunk))
        .or_else(|| slips::find_with_one_slip(haystack, hunk))
}
