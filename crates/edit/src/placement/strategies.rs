//! The strategies that look in the present text, strictest first.

use crate::outcome::{MAX_FILE_BYTES, MAX_SEARCH_BYTES, PlacedEdit, Refusal};
use crate::placement::hunk::Hunk;
use crate::placement::indexed_text::IndexedText;
use crate::placement::{already_made, blank_edges, exact, insert, placeholders, resolve};

/// Finds where a hunk goes by the strictest strategy that finds a place. `None` if no strategy
/// does.
pub(super) fn find_by_strategies(
    file: &IndexedText<'_>,
    hunk: &Hunk<'_>,
) -> Option<Result<PlacedEdit, Refusal>> {
    let text = file.text;
    let sizes = [
        ("file", text.len(), MAX_FILE_BYTES),
        ("search text", hunk.search.len(), MAX_SEARCH_BYTES),
        ("replacement", hunk.replace.len(), MAX_SEARCH_BYTES),
    ];
    if let Some((what, bytes, limit)) = sizes.into_iter().find(|(_, bytes, limit)| bytes > limit) {
        return Some(Err(Refusal::TooLarge { what, bytes, limit }));
    }
    if hunk.search == hunk.replace {
        return Some(Err(Refusal::NoChange));
    }
    if hunk.search.is_empty() {
        return Some(insert::find_insertion(text, hunk));
    }
    let remark = (!hunk.allow.placeholders)
        .then(|| placeholders::find_placeholder(hunk.search, hunk.replace))
        .flatten();
    if let Some(remark) = remark {
        return Some(Err(Refusal::Placeholder { remark: remark.to_owned() }));
    }
    if let Some(matches) = exact::locate_exactly(text, hunk) {
        return Some(resolve::resolve_matches(text, &matches));
    }
    let found = blank_edges::find_with_blank_edges(file.haystack(), hunk)?;
    Some(match found {
        Ok(placed) => already_made::refuse_made_before(text, hunk, &placed).map(|()| placed),
        Err(refusal) => Err(already_made::explain_refusal(text, hunk, refusal)),
    })
}
