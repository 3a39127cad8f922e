//! The byte-for-byte step.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;

use crate::lines::line_at;
use crate::outcome::{Placed, Refusal, Strategy};
use crate::place::resolve::write;
use crate::place::tokens::is_word;
use crate::place::{Hunk, Match, Matches, duplicates, explain, indent_depth, normalized, tie_breaking};

/// A line with fewer bytes may be at the end of another by chance.
const LEAST_LINE: usize = 4;
/// Maximum number of places that an ambiguous match collects; more would add no information.
pub(crate) const MAX_PLACES: usize = 1_000;

/// Returns the places that equal the search text byte for byte.
pub(super) fn locate<'a>(text: &str, hunk: &Hunk<'a>) -> Option<Matches<'a>> {
    let keep = |start: &usize| {
        !cuts_break(text, *start, hunk.search)
            && (!hunk.whole_lines || at_line_edges(text, *start, hunk.search))
    };
    let places = occurrences(text, hunk.search, hunk.all, keep);
    if places.is_empty() {
        return None;
    }
    let mut places: Vec<Match> =
        places.into_iter().map(|start| Match::line_by_line(start..start + hunk.search.len())).collect();
    if hunk.whole_lines && !hunk.all && places.len() > 1 {
        // Lines were asked for: the one place that is whole lines goes before places within lines.
        let mut whole = places.iter().filter(|place| is_whole_lines(text, &place.span));
        if let (Some(only), None) = (whole.next(), whole.next()) {
            places = vec![only.clone()];
        }
    }
    if places.len() == 1 && !hunk.all && hunk.search.contains('\n') && is_mixed(text) {
        // Line endings are shown to nobody: what differs in them alone is the same text twice.
        let places = normalized::by_text(text, hunk);
        if places.len() > 1 {
            return Some(Matches { strategy: Strategy::LineEndings, places, hunk: *hunk });
        }
    }
    Some(Matches { strategy: Strategy::Exact, places, hunk: *hunk })
}

/// Resolves exact matches to the pieces that are written.
pub(super) fn resolve(text: &str, places: &[Match], hunk: &Hunk<'_>) -> Result<Placed, Refusal> {
    let mut spans: Vec<Range<usize>> = places.iter().map(|place| place.span.clone()).collect();
    if !hunk.all && !hunk.allow.differences {
        // `timeout = 10` is never meant by `timeout = 100`.
        let whole: Vec<Range<usize>> =
            spans.iter().filter(|span| !splits_number(text, span)).cloned().collect();
        if let (true, Some(span)) = (whole.is_empty(), spans.first()) {
            let difference = "the search text begins or ends inside a longer number of the file".to_owned();
            return Err(Refusal::GuardedMismatch { line: line_at(text, span.start), difference });
        }
        spans = whole;
    }
    let spans = tie_breaking::select_spans(text, spans, hunk, Strategy::Exact)?;
    if let (Some(span), false, false) = (spans.first(), hunk.all, hunk.allow.differences) {
        if let Some(difference) = cut_off(text, span, hunk) {
            return Err(Refusal::GuardedMismatch { line: line_at(text, span.start), difference });
        }
        duplicates::check(text, span, hunk, Strategy::Exact)?;
    }
    let (replacement, adapted) = in_breaks_of(text, hunk.replace);
    let remarks = [
        adapted.map(str::to_owned),
        spans.first().and_then(|span| explain::splits_word(text, span)),
        spans.first().and_then(|span| explain::falls_out(text, span, hunk.replace)),
    ];
    let remarks: Vec<String> = remarks.into_iter().flatten().collect();
    let note = (!remarks.is_empty()).then(|| remarks.join("; "));
    let mut pieces = Vec::with_capacity(spans.len());
    for span in spans {
        let piece = indent_depth::in_line_with(text, &span, hunk.search, &replacement)?;
        let piece = piece.unwrap_or_else(|| replacement.clone().into_owned());
        pieces.push((take_break(text, span, hunk), piece));
    }
    write(text, pieces, Strategy::Exact, note)
}

/// Returns true if a place begins or ends between the two characters of one line break: what is
/// written there would leave half of it.
fn cuts_break(text: &str, start: usize, search: &str) -> bool {
    let bytes = text.as_bytes();
    let at = |index: Option<usize>| index.and_then(|index| bytes.get(index)).copied();
    let opens = search.starts_with('\n') && at(start.checked_sub(1)) == Some(b'\r');
    opens || (search.ends_with('\r') && at(Some(start + search.len())) == Some(b'\n'))
}

/// Returns true if a text has line feeds with and without carriage returns.
fn is_mixed(text: &str) -> bool {
    if memchr::memchr(b'\r', text.as_bytes()).is_none() {
        return false;
    }
    let crlf = memmem::find_iter(text.as_bytes(), "\r\n").count();
    crlf > 0 && crlf < memchr::memchr_iter(b'\n', text.as_bytes()).count()
}

/// Returns true if a place begins or ends inside a number: a digit on both sides, or a decimal
/// point and a digit beyond.
fn splits_number(text: &str, span: &Range<usize>) -> bool {
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let point = |at: Option<usize>| at.and_then(|at| bytes.get(at)) == Some(&b'.');
    let found = text.get(span.clone()).unwrap_or_default();
    let decimal = |number: &str| number.contains('.');
    let opening = found.split(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or_default();
    let closing = found.rsplit(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or_default();
    let before = span.start.checked_sub(1);
    let starts = digit(Some(span.start))
        && (digit(before)
            || (point(before) && digit(before.and_then(|at| at.checked_sub(1))) && !decimal(opening)));
    let ends = digit(span.end.checked_sub(1))
        && (digit(Some(span.end))
            || (point(Some(span.end)) && digit(Some(span.end + 1)) && !decimal(closing)));
    starts || ends
}

/// Returns true if a search text of several lines seems to have been cut off: it ends inside a
/// word, or the replacement repeats what follows it in its last line.
fn cut_off(text: &str, span: &Range<usize>, hunk: &Hunk<'_>) -> Option<String> {
    if let Some(difference) = ends_early(text, span, hunk) {
        return Some(difference);
    }
    if !hunk.search.trim_matches(['\r', '\n']).contains('\n') || hunk.replace.is_empty() {
        return None;
    }
    let word = |c: Option<char>| c.is_some_and(is_word);
    let (before, after) = (text.get(..span.start)?, text.get(span.end..)?);
    let last = hunk.search.chars().next_back();
    let tail: usize = hunk.search.chars().rev().take_while(|c| is_word(*c)).map(char::len_utf8).sum();
    let same_tail = hunk.replace.ends_with(hunk.search.get(hunk.search.len() - tail..)?);
    if word(last) && word(after.chars().next()) && !same_tail {
        return Some("the search text ends inside a word of the file, as if it had been cut off".to_owned());
    }
    let head: usize = hunk.search.chars().take_while(|c| is_word(*c)).map(char::len_utf8).sum();
    let same_head = hunk.replace.starts_with(hunk.search.get(..head)?);
    if word(hunk.search.chars().next()) && word(before.chars().next_back()) && !same_head {
        return Some(
            "the search text begins inside a word of the file, as if it had been cut off".to_owned(),
        );
    }
    let rest = after.lines().next().unwrap_or_default().trim();
    (rest.len() > 2 && hunk.replace.trim_end().ends_with(rest) && !hunk.search.ends_with('\n'))
        .then(|| ENDS_EARLY.to_owned())
}

/// Message about a search text that ends within a line whose rest the replacement has.
const ENDS_EARLY: &str = "the search text ends before its line does, and the replacement has the rest of the line, which would be \
                          doubled";

/// Returns true if a search text ends within a line that is the replacement's last line as a whole.
fn ends_early(text: &str, span: &Range<usize>, hunk: &Hunk<'_>) -> Option<String> {
    let (before, after) = (text.get(..span.end)?, text.get(span.end..)?);
    let rest = after.split('\n').next().unwrap_or_default().trim_end();
    let last = hunk.replace.rsplit('\n').next().unwrap_or_default().trim();
    if rest.trim().is_empty() || last.len() < LEAST_LINE || hunk.search.ends_with('\n') {
        return None;
    }
    let head = before.rsplit('\n').next().unwrap_or_default();
    let several = hunk.search.contains('\n') || hunk.replace.contains('\n');
    // Without the part before the place, which the replacement needn't have.
    let from = before.get(span.start..)?.rsplit('\n').next().unwrap_or_default();
    let whole = |part: &str| last == format!("{part}{rest}").trim();
    (several && (whole(head) || whole(from))).then(|| ENDS_EARLY.to_owned())
}

/// A replacement with the line breaks that all of the text's lines have, and a remark if that
/// changed it. A text with none, or with both kinds, takes the replacement as it is.
pub(super) fn in_breaks_of<'a>(text: &str, replacement: &'a str) -> (Cow<'a, str>, Option<&'static str>) {
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

/// Returns the offsets of `needle` in `text`. Two overlapping occurrences are two, so that the only
/// one is the only one.
pub(super) fn occurrences(text: &str, needle: &str, all: bool, keep: impl Fn(&usize) -> bool) -> Vec<usize> {
    let limit = if all { usize::MAX } else { MAX_PLACES };
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
pub(super) fn at_line_edges(text: &str, start: usize, search: &str) -> bool {
    let before = text.get(..start).unwrap_or_default();
    let after = text.get(start + search.len()..).unwrap_or_default();
    let opens = !search.starts_with(['\n', '\r']) || before.is_empty() || before.ends_with('\n');
    let closes = !search.ends_with('\n') || after.is_empty() || after.starts_with(['\n', '\r']);
    opens && closes
}

/// Returns true if a place begins where a line begins and ends where a line ends.
pub(super) fn is_whole_lines(text: &str, place: &Range<usize>) -> bool {
    let before = text.get(..place.start).unwrap_or_default();
    let after = text.get(place.end..).unwrap_or_default();
    (before.is_empty() || before.ends_with('\n')) && (after.is_empty() || after.starts_with(['\n', '\r']))
}

/// Widens a place whose whole lines a text format deletes by one line break: the one after it, or
/// the one before where the file ends without.
pub(super) fn take_break(text: &str, span: Range<usize>, hunk: &Hunk<'_>) -> Range<usize> {
    let before = text.get(..span.start).unwrap_or_default();
    let after = text.get(span.end..).unwrap_or_default();
    let opens = before.is_empty() || before.ends_with('\n');
    if !hunk.whole_lines || !hunk.replace.is_empty() || !opens {
        return span;
    }
    let following = ["\r\n", "\n"].into_iter().find(|line_break| after.starts_with(line_break));
    match following {
        Some(line_break) => span.start..span.end + line_break.len(),
        None if after.is_empty() => crate::lines::without_break(before).len()..span.end,
        None => span,
    }
}
