//! Two last steps by tokens: a search text whose line breaks stand elsewhere than the file's, and
//! one with blanks around a part of a line.

use memchr::memmem;

use crate::outcome::{MAX_PLACES, Strategy};
use crate::place::hunk::Hunk;
use crate::place::indexed_text::Haystack;
use crate::place::matches::{Match, Matches};
use crate::place::normalize::{StringBlanks, squeeze_blanks};
use crate::place::occurrences::find_occurrences;
use crate::place::tokens::is_word;

/// Shorter texts are found by chance when line breaks don't count.
const MIN_DISTINCTIVE_BYTES: usize = 12;
/// A shorter part of a line is found by chance.
const MIN_DISTINCTIVE_PART_CHARS: usize = 3;

/// The places where the tokens are the same, in whole lines; or, for a part of one line, without
/// the blanks around it.
pub(super) fn locate_by_tokens<'a>(haystack: &Haystack<'_>, hunk: &Hunk<'a>) -> Option<Matches<'a>> {
    locate_whole_lines(haystack, hunk).or_else(|| locate_part_of_line(haystack, hunk))
}

/// The search text with its line breaks elsewhere: token for token whole lines of the file.
fn locate_whole_lines<'a>(haystack: &Haystack<'_>, hunk: &Hunk<'a>) -> Option<Matches<'a>> {
    let needle: Vec<u8> = hunk.search.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    if needle.len() < MIN_DISTINCTIVE_BYTES || hunk.all {
        return None;
    }
    if has_meaningful_line_ends(hunk.search) {
        return None;
    }
    let (hay, starts) = haystack.text_without_blanks();
    let wanted = squeeze_blanks(hunk.search, StringBlanks::Strict);
    let mut places = Vec::new();
    for at in memmem::find_iter(hay, &needle).take(MAX_PLACES) {
        // The last line that begins there: those before it are blank.
        let first = starts.partition_point(|start| *start <= at).checked_sub(1)?;
        let end = starts.partition_point(|start| *start < at + needle.len());
        if starts.get(first) != Some(&at) || starts.get(end) != Some(&(at + needle.len())) {
            continue;
        }
        let span = haystack.bytes_of_lines(first..end, false);
        let same = |found: &str| {
            !has_meaningful_line_ends(found) && squeeze_blanks(found, StringBlanks::Strict) == wanted
        };
        if haystack.text.get(span.clone()).is_some_and(same) {
            places.push(Match { span, pairs: Some(Vec::new()) });
        }
    }
    (!places.is_empty()).then_some(Matches { strategy: Strategy::LineBreaks, places, hunk: *hunk })
}

/// Returns true if where a line ends is more than layout: it ends a comment, or it ends with the
/// carriage return of old.
fn has_meaningful_line_ends(text: &str) -> bool {
    let bytes = text.as_bytes();
    let lone = memchr::memchr_iter(b'\r', bytes).any(|at| bytes.get(at + 1) != Some(&b'\n'));
    lone || ["//", "#", "--", ";;", "%%"].iter().any(|opener| text.contains(opener))
}

/// A part of one line, given with blanks around it that the file doesn't have.
fn locate_part_of_line<'a>(haystack: &Haystack<'_>, hunk: &Hunk<'a>) -> Option<Matches<'a>> {
    let search = hunk.search.trim();
    if search.len() == hunk.search.len()
        || hunk.whole_lines
        || search.contains('\n')
        || search.chars().filter(|c| is_word(*c)).count() < MIN_DISTINCTIVE_PART_CHARS
    {
        return None;
    }
    let bounded = |start: &usize| {
        let word = |c: Option<char>| c.is_some_and(is_word);
        let end = start + search.len();
        let before = haystack.text.get(..*start).and_then(|before| before.chars().next_back());
        let after = haystack.text.get(end..).and_then(|after| after.chars().next());
        !(word(before) && word(search.chars().next()) || word(after) && word(search.chars().next_back()))
    };
    let starts = find_occurrences(haystack.text, search, hunk.all, bounded);
    let places: Vec<Match> =
        starts.into_iter().map(|start| Match::line_by_line(start..start + search.len())).collect();
    let hunk = Hunk { search, replace: hunk.replace.trim(), ..*hunk };
    (!places.is_empty() && search != hunk.replace).then_some(Matches {
        strategy: Strategy::BlankEdges,
        places,
        hunk,
    })
}
