//! Fences within a block of code, such as those of an example in its documentation.

use journeyman_syntax::language::Language;
use journeyman_syntax::parse::parse;

use super::{FenceLine, is_fence_named};
use crate::formats::{ReplyLine, ReplySource};

/// More fences without a language are not looked at.
const MAX_INNER_FENCES: usize = 16;

/// Returns the index of the fence that ends the block at `at`, of which `first` seems to be the end:
/// a later one where the text up to the first is no code of the file's language, and the text up to
/// that one is.
pub(super) fn end_of_code(
    source: &ReplySource<'_>,
    rows: &[(ReplyLine<'_>, FenceLine<'_>)],
    (at, first): (usize, usize),
    name: Option<&str>,
) -> usize {
    let Some((open, opening)) = rows.get(at) else { return first };
    let is_bare = |index: &usize| {
        rows.get(*index).is_some_and(|(_, fence)| {
            fence.sign == opening.sign && fence.length >= opening.length && fence.info.is_empty()
        }) && !is_fence_named(source, rows, *index)
    };
    // Each inner fence has an end.
    let inner = (first + 1..).take_while(is_bare).take(MAX_INNER_FENCES).count();
    let in_fence = opening.info.split_whitespace().next().and_then(Language::from_name);
    let language = name.and_then(Language::from_path).or(in_fence);
    let Some(language) = language.filter(|_| inner >= 2 && opening.sign != b'<') else { return first };
    let is_code = |end: &usize| {
        let text =
            rows.get(*end).and_then(|(row, _)| source.reply.get(open.start + open.text.len()..row.start));
        text.and_then(|text| parse(language, text).ok()).is_some_and(|tree| !tree.has_error())
    };
    (first..=first + inner).step_by(2).find(is_code).unwrap_or(first)
}
