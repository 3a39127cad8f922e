//! The pieces of text that a placed hunk puts into the file.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;

use crate::lines::{line_at, split_indent, split_with_breaks, strip_line_break};
use crate::outcome::{PlacedEdit, Refusal, Strategy};
use crate::placement::hunk::Hunk;

/// The pieces, if they change anything.
pub(super) fn to_placed(
    text: &str,
    pieces: Vec<(Range<usize>, String)>,
    strategy: Strategy,
    note: Option<String>,
) -> Result<PlacedEdit, Refusal> {
    let mut done = 0;
    let pieces: Vec<(Range<usize>, String)> = pieces
        .into_iter()
        .map(|(span, piece)| {
            // Deleting neighbouring last lines may claim the same line break twice.
            let start = span.start.max(done);
            done = span.end.max(start);
            (start..done, piece)
        })
        .collect();
    if pieces.iter().all(|(span, piece)| text.get(span.clone()) == Some(piece)) {
        return Err(Refusal::NoChange);
    }
    let line = line_at(text, pieces.first().map_or(0, |(span, _)| span.start));
    Ok(PlacedEdit { strategy, line, note, pieces })
}

/// Comparing more pairs of lines than this costs more than it is worth.
const MAX_COMPARED_PAIRS: usize = 1 << 20;

/// Pieces for a text with both kinds of line breaks: lines that stay have their own, those that
/// come have those of the lines that they replace or stand beside. Where the hunk names carriage
/// returns itself, it means them.
pub(super) fn with_own_breaks(
    text: &str,
    hunk: &Hunk<'_>,
    pieces: Vec<(Range<usize>, String)>,
) -> Vec<(Range<usize>, String)> {
    if [hunk.search, hunk.replace].iter().any(|given| given.contains('\r')) || !has_mixed_breaks(text) {
        return pieces;
    }
    let own = |(span, piece): (Range<usize>, String)| {
        let with_own = own_breaks(text, &span, &piece).unwrap_or(piece);
        (span, with_own)
    };
    pieces.into_iter().map(own).collect()
}

fn own_breaks(text: &str, span: &Range<usize>, piece: &str) -> Option<String> {
    let start = text.get(..span.start)?.rfind('\n').map_or(0, |at| at + 1);
    let end = text.get(span.end..)?.find('\n').map_or(text.len(), |at| span.end + at + 1);
    let inside = span.end > span.start && text.get(..span.end)?.ends_with('\n');
    let old = split_with_breaks(text.get(start..if inside { span.end } else { end })?);
    let new = split_with_breaks(piece);
    if !piece.contains('\n') || old.len() * new.len() > MAX_COMPARED_PAIRS {
        return None;
    }
    let same = |one: &str, other: &str| !one.trim().is_empty() && one.trim_end() == other.trim_end();
    let above = text
        .get(..start)?
        .strip_suffix('\n')
        .map(|before| if before.ends_with('\r') { "\r\n" } else { "\n" });
    let mut last = above;
    let mut out = String::with_capacity(piece.len() + new.len());
    let mut at = 0;
    for (nth, (line, given)) in new.iter().enumerate() {
        let kept = (at..old.len()).find(|index| old.get(*index).is_some_and(|(own, _)| same(own, line)));
        let goes = |(own, _): &&(&str, &str)| new.iter().skip(nth + 1).all(|(later, _)| !same(own, later));
        let next = kept.or_else(|| old.get(at).filter(goes).map(|_| at));
        let own = next.and_then(|index| old.get(index)).map(|(_, own)| *own).filter(|own| !own.is_empty());
        at = next.map_or(at, |index| index + 1);
        last = own.or(last).or_else(|| old.first().map(|(_, own)| *own).filter(|own| !own.is_empty()));
        out.push_str(line);
        out.push_str(if given.is_empty() { given } else { last.unwrap_or(given) });
    }
    Some(out)
}

/// Returns true if a text has line feeds with and without carriage returns.
pub(super) fn has_mixed_breaks(text: &str) -> bool {
    if memchr::memchr(b'\r', text.as_bytes()).is_none() {
        return false;
    }
    let crlf = memmem::find_iter(text.as_bytes(), "\r\n").count();
    crlf > 0 && crlf < memchr::memchr_iter(b'\n', text.as_bytes()).count()
}

/// A replacement with the line breaks that all of the text's lines have, and a remark if that
/// changed it. A text with none, or with both kinds, takes the replacement as it is.
pub(super) fn match_line_breaks<'a>(
    text: &str,
    replacement: &'a str,
) -> (Cow<'a, str>, Option<&'static str>) {
    if !replacement.contains('\n') {
        return (Cow::Borrowed(replacement), None);
    }
    let breaks = |text: &str| {
        let cr = memchr::memchr(b'\r', text.as_bytes()).is_some();
        let crlf = if cr { memmem::find_iter(text.as_bytes(), "\r\n").count() } else { 0 };
        (memchr::memchr_iter(b'\n', text.as_bytes()).count(), crlf)
    };
    match (breaks(text), breaks(replacement)) {
        ((all, crlf), (_, 0)) if all == crlf && all > 0 => {
            let own = replacement.replace('\n', "\r\n");
            (Cow::Owned(own), Some("the replacement took the file's CRLF line endings"))
        }
        ((all, 0), (_, crlf)) if all > 0 && crlf > 0 => {
            let own = replacement.replace("\r\n", "\n");
            (Cow::Owned(own), Some("the replacement took the file's LF line endings"))
        }
        _ => (Cow::Borrowed(replacement), None),
    }
}

/// Widens a place whose whole lines are deleted. Where the search text lacks the first line's
/// indentation, that goes too: it would come before the next line. In a text format so does one
/// line break: the one after the place, or the one before where the file ends without.
pub(super) fn include_line_break(text: &str, span: Range<usize>, hunk: &Hunk<'_>) -> Range<usize> {
    let before = text.get(..span.start).unwrap_or_default();
    let after = text.get(span.end..).unwrap_or_default();
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    let opens = text.get(line..span.start).is_some_and(|indent| indent.trim().is_empty());
    if !hunk.replace.is_empty() || !opens || hunk.search.starts_with(['\n', '\r']) {
        return span;
    }
    if !hunk.whole_lines {
        return if hunk.search.ends_with('\n') { line..span.end } else { span };
    }
    let following = ["\r\n", "\n"].into_iter().find(|line_break| after.starts_with(line_break));
    match following {
        Some(line_break) => line..span.end + line_break.len(),
        None if after.is_empty() => strip_line_break(before.get(..line).unwrap_or_default()).len()..span.end,
        None => span,
    }
}

/// Narrows a place by the line breaks at its edges that the replacement lacks, and returns true if
/// it did. Models copy the break beside a line more often than they mean to join two lines; they do
/// mean it where the line beside the break stays as it is but for blanks. A break that is a blank
/// line's goes with it.
pub(super) fn exclude_edge_breaks(text: &str, span: &mut Range<usize>, hunk: &Hunk<'_>) -> bool {
    if hunk.whole_lines || hunk.replace.trim().is_empty() {
        return false;
    }
    let whole = span.clone();
    let before = text.get(..span.start).unwrap_or_default();
    let after = text.get(span.end..).unwrap_or_default();
    let body = strip_line_break(hunk.search);
    let closes = body.len() < hunk.search.len() && !hunk.replace.ends_with(char::is_whitespace);
    if closes && !after.starts_with(['\r', '\n']) {
        let (old, new) = (last_line(body), last_line(hunk.replace));
        if !old.trim().is_empty() && !new.trim_end().ends_with(old.trim()) {
            span.end -= hunk.search.len() - body.len();
        }
    }
    let opening = ["\r\n", "\n"].into_iter().find(|opening| hunk.search.starts_with(opening));
    let ends_lines = hunk.search.ends_with('\n') || after.is_empty() || after.starts_with(['\r', '\n']);
    if let Some(opening) = opening.filter(|_| ends_lines && !before.is_empty() && !before.ends_with('\n')) {
        let old = first_line(hunk.search.get(opening.len()..).unwrap_or_default());
        let (indent, new) = (split_indent(old).0, first_line(hunk.replace));
        // Without an indentation nothing tells a line of its own from the rest of the line before.
        let own_line = !indent.is_empty() && indent == split_indent(new).0;
        if own_line && !old.trim().is_empty() && !new.trim_start().starts_with(old.trim()) {
            span.start += opening.len();
        }
    }
    *span != whole
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn last_line(text: &str) -> &str {
    text.lines().next_back().unwrap_or_default()
}
