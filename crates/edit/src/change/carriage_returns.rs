//! Files whose lines all end with a carriage return alone.
//!
//! Such a return reads as a line break when the text isn't found otherwise. It is one byte as a
//! line feed is, so what is found there lies at the same bytes of the file. Where some lines end
//! otherwise, nobody can say how a new one does.

use crate::outcome::{PlacedEdit, Refusal};
use crate::placement::IndexedText;

/// Returns the result of `find` with carriage returns as line breaks; `None` if the file has other
/// line breaks.
pub(super) fn find_with_carriage_returns(
    text: &str,
    find: impl Fn(&IndexedText<'_>) -> Result<PlacedEdit, Refusal>,
) -> Option<PlacedEdit> {
    if text.contains('\n') || !text.contains('\r') {
        return None;
    }
    let lines = text.replace('\r', "\n");
    let placed = find(&IndexedText::new(&lines, 1)).ok()?;
    let pieces =
        placed.pieces.iter().map(|(span, piece)| (span.clone(), piece.replace('\n', "\r"))).collect();
    let told = "this file's lines end with carriage returns alone".to_owned();
    let note = placed.note.into_iter().chain([told]).collect::<Vec<_>>().join("; ");
    Some(PlacedEdit { pieces, note: Some(note), ..placed })
}
