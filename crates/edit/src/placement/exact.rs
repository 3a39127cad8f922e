//! The byte-for-byte step.

use std::ops::Range;

use crate::lines::line_at;
use crate::outcome::{MAX_AMBIGUOUS_PLACES, PlacedEdit, Refusal, Strategy};
use crate::placement::hunk::Hunk;
use crate::placement::matches::{Match, Matches};
use crate::placement::occurrences::{find_occurrences, has_blank_lines_at_edges, is_whole_lines};
use crate::placement::replacement_pieces::{
    exclude_edge_breaks, has_mixed_breaks, include_line_break, match_line_breaks, to_placed, with_own_breaks,
};
use crate::placement::tokens::is_word_char;
use crate::placement::{duplicates, explain, indent_depth, normalized_matching, tie_breaking};

/// A line with fewer bytes may be at the end of another by chance.
const MIN_DISTINCTIVE_LINE_BYTES: usize = 4;

/// Returns the places that equal the search text byte for byte.
pub(super) fn locate_exactly<'a>(text: &str, hunk: &Hunk<'a>) -> Option<Matches<'a>> {
    let keep = |start: &usize| {
        !splits_line_break(text, *start, hunk.search)
            && (!hunk.whole_lines || has_blank_lines_at_edges(text, *start, hunk.search))
    };
    let places = find_occurrences(text, hunk.search, hunk.all, keep);
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
    if (places.len() == 1 || hunk.all) && hunk.search.contains('\n') && has_mixed_breaks(text) {
        // Line endings are shown to nobody: what differs in them alone is the same text twice.
        let all = normalized_matching::locate_within_text(text, hunk);
        if all.len() > places.len() {
            return Some(Matches { strategy: Strategy::LineEndings, places: all, hunk: *hunk });
        }
    }
    Some(Matches { strategy: Strategy::Exact, places, hunk: *hunk })
}

/// Resolves exact matches to the pieces that are written.
pub(super) fn resolve_exact(text: &str, places: &[Match], hunk: &Hunk<'_>) -> Result<PlacedEdit, Refusal> {
    let mut spans: Vec<Range<usize>> = places.iter().map(|place| place.span.clone()).collect();
    let mut left = None;
    if !hunk.allow.differences {
        // `timeout = 10` is never meant by `timeout = 100`.
        let whole: Vec<Range<usize>> =
            spans.iter().filter(|span| !splits_number(text, span)).cloned().collect();
        if let (true, Some(span)) = (whole.is_empty(), spans.first()) {
            let difference = "the search text begins or ends inside a longer number of the file".to_owned();
            return Err(Refusal::GuardedMismatch { line: line_at(text, span.start), difference });
        }
        left = (hunk.all && whole.len() < spans.len()).then(|| {
            format!("{} places inside longer numbers were left as they are", spans.len() - whole.len())
        });
        spans = whole;
    }
    if !hunk.all && gives_one_text(text, &spans, hunk.replace) {
        spans.truncate(1);
    }
    let mut spans = tie_breaking::select_spans(text, spans, hunk, Strategy::Exact)?;
    if let (Some(span), false, false) = (spans.first(), hunk.all, hunk.allow.differences) {
        if let Some(difference) = explain_cut_off(text, span, hunk) {
            return Err(Refusal::GuardedMismatch { line: line_at(text, span.start), difference });
        }
        duplicates::refuse_duplicates(text, span, hunk, Strategy::Exact)?;
        if let Some(difference) = explain_lone_tab(text, hunk) {
            return Err(Refusal::GuardedMismatch { line: line_at(text, span.start), difference });
        }
    }
    let (replacement, adapted) = match_line_breaks(text, hunk.replace);
    let mut narrowed = false;
    for span in &mut spans {
        narrowed |= exclude_edge_breaks(text, span, hunk);
    }
    let split = spans.first().and_then(|span| explain::note_split_word(text, span));
    let mut lost = spans.first().and_then(|span| explain::note_lost_indentation(text, span, hunk.replace));
    let mut pieces = Vec::with_capacity(spans.len());
    for span in spans {
        let new = indent_depth::without_doubled_indent(text, &span, hunk.search, &replacement);
        let new = new.unwrap_or(&replacement);
        let piece = indent_depth::align_following_lines(text, &span, hunk.search, new)?;
        if piece.is_some() {
            lost = None;
        }
        let piece = piece.unwrap_or_else(|| new.to_owned());
        let span = indent_depth::without_blanks_before(text, span, &piece);
        pieces.push((include_line_break(text, span, hunk), piece));
    }
    let remarks = [
        narrowed
            .then(|| "kept the line break beside the replaced lines, which the replacement lacks".to_owned()),
        adapted.map(str::to_owned),
        left,
        split,
        lost,
    ];
    let remarks: Vec<String> = remarks.into_iter().flatten().collect();
    let note = (!remarks.is_empty()).then(|| remarks.join("; "));
    to_placed(text, with_own_breaks(text, hunk, pieces), Strategy::Exact, note)
}

/// Returns true if the text comes out the same at whichever of some places the replacement is put:
/// they overlap or touch, such as two lines that are the same, of which one is to go.
fn gives_one_text(text: &str, places: &[Range<usize>], replace: &str) -> bool {
    let is_same = |two: &[Range<usize>]| {
        let [one, other] = two else { return false };
        let (Some(before), Some(after)) = (
            text.get(one.start..other.start),
            text.get(one.end..other.end).filter(|_| other.start <= one.end),
        ) else {
            return false;
        };
        replace.bytes().chain(after.bytes()).eq(before.bytes().chain(replace.bytes()))
    };
    // With as many places as are looked for there may be more.
    places.len() < MAX_AMBIGUOUS_PLACES && places.windows(2).all(is_same)
}

/// Returns true if a place begins or ends between the two characters of one line break: what is
/// written there would leave half of it.
fn splits_line_break(text: &str, start: usize, search: &str) -> bool {
    let bytes = text.as_bytes();
    let at = |index: Option<usize>| index.and_then(|index| bytes.get(index)).copied();
    let opens = search.starts_with('\n') && at(start.checked_sub(1)) == Some(b'\r');
    opens || (search.ends_with('\r') && at(Some(start + search.len())) == Some(b'\n'))
}

/// Says that new lines are indented by tabs beside lines that spaces indent, where no line of the
/// file begins with a tab: how deep they are meant to be can't be told.
fn explain_lone_tab(text: &str, hunk: &Hunk<'_>) -> Option<String> {
    let is_indented = |line: &str, sign: char| line.starts_with(sign) && !line.trim().is_empty();
    let has = |text: &str, sign: char| text.lines().any(|line| is_indented(line, sign));
    let new = hunk.replace.lines().find(|line| is_indented(line, '\t'))?;
    let mixed = has(hunk.replace, ' ') && !has(hunk.search, '\t') && !has(text, '\t');
    mixed.then(|| {
        format!(
            "the new line `{}` is indented by a tab, and the lines beside it and in the file by spaces: indent it by \
             spaces as well, or send a line that has to have a tab in an edit of its own",
            explain::show_blanks(new)
        )
    })
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
fn explain_cut_off(text: &str, span: &Range<usize>, hunk: &Hunk<'_>) -> Option<String> {
    if let Some(difference) = explain_early_end(text, span, hunk) {
        return Some(difference);
    }
    if !hunk.search.trim_matches(['\r', '\n']).contains('\n') || hunk.replace.is_empty() {
        return None;
    }
    let word = |c: Option<char>| c.is_some_and(is_word_char);
    let (before, after) = (text.get(..span.start)?, text.get(span.end..)?);
    let last = hunk.search.chars().next_back();
    let tail: usize = hunk.search.chars().rev().take_while(|c| is_word_char(*c)).map(char::len_utf8).sum();
    let same_tail = hunk.replace.ends_with(hunk.search.get(hunk.search.len() - tail..)?);
    if word(last) && word(after.chars().next()) && !same_tail {
        return Some("the search text ends inside a word of the file, as if it had been cut off".to_owned());
    }
    let head: usize = hunk.search.chars().take_while(|c| is_word_char(*c)).map(char::len_utf8).sum();
    let same_head = hunk.replace.starts_with(hunk.search.get(..head)?);
    if word(hunk.search.chars().next()) && word(before.chars().next_back()) && !same_head {
        return Some(
            "the search text begins inside a word of the file, as if it had been cut off".to_owned(),
        );
    }
    let rest = after.lines().next().unwrap_or_default().trim();
    (rest.len() > 2 && hunk.replace.trim_end().ends_with(rest) && !hunk.search.ends_with('\n'))
        .then(|| ENDS_EARLY_MESSAGE.to_owned())
}

/// Message about a search text that ends within a line whose rest the replacement has.
const ENDS_EARLY_MESSAGE: &str = "the search text ends before its line does, and the replacement has the rest of the line, which would be \
                          doubled";

/// Returns true if a search text ends within a line that is the replacement's last line as a whole.
fn explain_early_end(text: &str, span: &Range<usize>, hunk: &Hunk<'_>) -> Option<String> {
    let (before, after) = (text.get(..span.end)?, text.get(span.end..)?);
    let rest = after.split('\n').next().unwrap_or_default().trim_end();
    let last = hunk.replace.rsplit('\n').next().unwrap_or_default().trim();
    if rest.trim().is_empty() || last.len() < MIN_DISTINCTIVE_LINE_BYTES || hunk.search.ends_with('\n') {
        return None;
    }
    let head = before.rsplit('\n').next().unwrap_or_default();
    let several = hunk.search.contains('\n') || hunk.replace.contains('\n');
    // Without the part before the place, which the replacement needn't have.
    let from = before.get(span.start..)?.rsplit('\n').next().unwrap_or_default();
    let whole = |part: &str| last == format!("{part}{rest}").trim();
    (several && (whole(head) || whole(from))).then(|| ENDS_EARLY_MESSAGE.to_owned())
}
