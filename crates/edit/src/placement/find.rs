//! Placing a hunk in a file.

use crate::outcome::{AppliedEdit, PlacedEdit, Refusal};
use crate::placement::hunk::Hunk;
use crate::placement::indexed_text::IndexedText;
use crate::placement::{merge, nearest, strategies};

/// Replaces the only place where `search` occurs in `text` (or, with `all`, every place) by
/// `replacement`, which is taken literally, but for its line endings in a text whose own are all of
/// one kind.
///
/// The strictest `Strategy` that finds a place decides. If it finds more than one, no looser one
/// is tried.
///
/// # Errors
/// [`Refusal`] when no place, or more than one, can be meant, when the place differs from the
/// search text in what has a meaning, or when a bound is passed.
pub fn replace(text: &str, search: &str, replacement: &str, all: bool) -> Result<AppliedEdit, Refusal> {
    apply_hunk(text, &Hunk { all, ..Hunk::new(search, replacement) })
}

/// Like [`replace`], with hints.
///
/// # Errors
/// As [`replace`].
pub fn apply_hunk(text: &str, hunk: &Hunk<'_>) -> Result<AppliedEdit, Refusal> {
    find_place(text, hunk).map(|placed| placed.into_applied(text))
}

/// Finds where a hunk goes and what it puts there, without writing.
///
/// # Errors
/// As [`replace`].
pub fn find_place(text: &str, hunk: &Hunk<'_>) -> Result<PlacedEdit, Refusal> {
    find_place_in(&IndexedText::new(text, 1), hunk)
}

/// Finds where a hunk goes in a text that other hunks are placed in, too.
pub(crate) fn find_place_in(file: &IndexedText<'_>, hunk: &Hunk<'_>) -> Result<PlacedEdit, Refusal> {
    let merged = || hunk.base.and_then(|base| merge::find_by_merge(file.text, base, hunk));
    strategies::find_by_strategies(file, hunk)
        .or_else(merged)
        .unwrap_or_else(|| Err(nearest::not_found_refusal(file.haystack(), hunk)))
}
