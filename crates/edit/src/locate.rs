//! Finding the one place that a hunk means.

use crate::outcome::{Applied, MAX_FILE_BYTES, MAX_SEARCH_BYTES, Refusal, Strategy};

/// One search and replace, with what helps to place it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hunk<'a> {
    /// The text to find.
    pub search: &'a str,
    /// The text to put there, literally.
    pub replace: &'a str,
    /// Replace every place instead of the only one.
    pub all: bool,
    /// The 1-based line where the search text is believed to begin. It only chooses between equal matches,
    /// and only when one is clearly nearer; it never makes or vetoes a match.
    pub near: Option<u32>,
    /// Search and replacement are lines of a text format, given without the last one's line break: an empty
    /// replacement of whole lines then takes their line break too.
    pub whole_lines: bool,
}

impl<'a> Hunk<'a> {
    /// A hunk without hints, for the only place.
    #[must_use]
    pub fn new(search: &'a str, replace: &'a str) -> Self {
        Self { search, replace, all: false, near: None, whole_lines: false }
    }
}

/// Replaces the only place where `search` occurs in `text` (or, with `all`, every place) by `replacement`.
///
/// # Errors
/// [`Refusal`] when no place, or more than one, can be meant, or when a bound is passed.
pub fn replace(text: &str, search: &str, replacement: &str, all: bool) -> Result<Applied, Refusal> {
    place(text, &Hunk { all, ..Hunk::new(search, replacement) })
}

/// Like [`replace`], with hints.
///
/// # Errors
/// As [`replace`].
pub fn place(text: &str, hunk: &Hunk<'_>) -> Result<Applied, Refusal> {
    let sizes = [
        ("file", text.len(), MAX_FILE_BYTES),
        ("search text", hunk.search.len(), MAX_SEARCH_BYTES),
        ("replacement", hunk.replace.len(), MAX_SEARCH_BYTES),
    ];
    if let Some((what, bytes, limit)) = sizes.into_iter().find(|(_, bytes, limit)| bytes > limit) {
        return Err(Refusal::TooLarge { what, bytes, limit });
    }
    let Some(at) = text.find(hunk.search) else {
        return Err(Refusal::NotFound { closest: None, already_applied: false });
    };
    Ok(Applied {
        text: text.replacen(hunk.search, hunk.replace, 1),
        strategy: Strategy::Exact,
        line: 1,
        count: 1,
        note: None,
        spans: vec![at..at + hunk.search.len()],
    })
}
