//! Two last steps by tokens: a search text whose line breaks stand elsewhere than the file's, and
//! one with blanks around a part of a line.

use std::collections::HashSet;
use std::ops::Range;

use memchr::memmem;

use crate::outcome::{MAX_AMBIGUOUS_PLACES, Strategy};
use crate::placement::hunk::Hunk;
use crate::placement::indexed_text::Haystack;
use crate::placement::matches::{Match, Matches};
use crate::placement::normalize::{StringBlanks, squeeze_blanks};
use crate::placement::occurrences::find_occurrences;
use crate::placement::tokens::{is_word_char, words};

/// Shorter texts are found by chance when line breaks don't count.
const MIN_DISTINCTIVE_BYTES: usize = 12;
/// Shorter texts in which blanks between words are missing are found by chance.
const MIN_SQUEEZED_BYTES: usize = 24;
/// A shorter part of a line is found by chance.
const MIN_DISTINCTIVE_PART_CHARS: usize = 3;

/// The places where the tokens are the same, in whole lines; or, for a part of one line, without
/// the blanks around it.
pub(super) fn locate_by_tokens<'a>(haystack: &Haystack<'_>, hunk: &Hunk<'a>) -> Option<Matches<'a>> {
    locate_whole_lines(haystack, hunk)
        .or_else(|| locate_part_of_line(haystack, hunk))
        .or_else(|| locate_without_blanks(haystack, hunk))
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
    for at in memmem::find_iter(hay, &needle).take(MAX_AMBIGUOUS_PLACES) {
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

/// The only place that is the search text when no blank counts, neither between lines nor within
/// words, as of a text that was written without them. It may begin and end within lines.
fn locate_without_blanks<'a>(haystack: &Haystack<'_>, hunk: &Hunk<'a>) -> Option<Matches<'a>> {
    let needle: Vec<u8> = hunk.search.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    if needle.len() < MIN_DISTINCTIVE_BYTES || hunk.all || has_meaningful_line_ends(hunk.search) {
        return None;
    }
    let (hay, starts) = haystack.text_without_blanks();
    let mut found = memmem::find_iter(hay, &needle);
    let at = found.next()?;
    let overlapping = hay.get(at + 1..).is_some_and(|rest| memmem::find(rest, &needle).is_some());
    if overlapping {
        return None;
    }
    // The byte of the text that is the nth which isn't blank.
    let offset = |nth: usize| {
        let line = starts.partition_point(|start| *start <= nth).checked_sub(1)?;
        let from = haystack.lines.get(line)?.content_range().start;
        let bytes = haystack.line_content(line).bytes().enumerate();
        let filled = bytes.filter(|(_, byte)| !byte.is_ascii_whitespace());
        filled.map(|(at, _)| from + at).nth(nth - starts.get(line)?)
    };
    let span = offset(at)?..offset(at + needle.len() - 1)? + 1;
    let text = haystack.text;
    let (before, matched, after) = (text.get(..span.start)?, text.get(span.clone())?, text.get(span.end..)?);
    let splits = |before: &str, after: &str| {
        before.chars().next_back().is_some_and(is_word_char) && after.chars().next().is_some_and(is_word_char)
    };
    if splits(before, matched) || splits(matched, after) || has_meaningful_line_ends(matched) {
        return None;
    }
    let same_tokens =
        squeeze_blanks(matched, StringBlanks::Strict) == squeeze_blanks(hunk.search, StringBlanks::Strict);
    if !same_tokens && (needle.len() < MIN_SQUEEZED_BYTES || has_squeezed_text(hunk, matched)) {
        return None;
    }
    let indent = before.len() - before.rfind('\n').map_or(0, |at| at + 1);
    let blank = before.get(before.len() - indent..).is_some_and(|indent| indent.trim().is_empty());
    let start = if blank { span.start - indent } else { span.start };
    let places = vec![Match { span: start..span.end, pairs: Some(Vec::new()) }];
    let hunk = Hunk { search: hunk.search.trim_end(), replace: hunk.replace.trim_end(), ..*hunk };
    Some(Matches { strategy: Strategy::LineBreaks, places, hunk })
}

/// The runs of lines (of a search text, of its place) with the same text between the same line
/// ends.
/// Lines of the place that are blank belong to the run after them.
pub(super) fn runs_of_same_text(old: &[&str], file: &[&str]) -> Vec<(Range<usize>, Range<usize>)> {
    let filled = |line: &&str| line.bytes().filter(|byte| !byte.is_ascii_whitespace()).count();
    let mut runs = Vec::new();
    let (mut of_old, mut of_file) = (0, 0);
    let (mut begun, mut at) = ((0, 0), (0, 0));
    while let Some(line) = old.get(at.0) {
        let is_blank = |line: Option<&&str>| line.is_some_and(|line| line.trim().is_empty());
        of_old += filled(line);
        at.0 += 1;
        // A blank line between two runs is a run of its own.
        if line.trim().is_empty() && at.0 == begun.0 + 1 && is_blank(file.get(at.1)) {
            at.1 += 1;
        }
        while of_file < of_old
            && let Some(line) = file.get(at.1)
        {
            of_file += filled(line);
            at.1 += 1;
        }
        if of_old == of_file {
            runs.push((begun.0..at.0, begun.1..at.1));
            begun = at;
        }
    }
    runs
}

/// Returns true if the replacement repeats words or strings of the search text that the file has
/// otherwise: they would be written without their blanks.
fn has_squeezed_text(hunk: &Hunk<'_>, matched: &str) -> bool {
    let own: HashSet<&str> = words(matched).collect();
    let searched: HashSet<&str> = words(hunk.search).filter(|word| !own.contains(word)).collect();
    words(hunk.replace).any(|word| searched.contains(word))
}

/// Returns true if where a line ends is more than layout: it ends a comment, or it ends with the
/// carriage return of old.
fn has_meaningful_line_ends(text: &str) -> bool {
    let bytes = text.as_bytes();
    let lone = memchr::memchr_iter(b'\r', bytes).any(|at| bytes.get(at + 1) != Some(&b'\n'));
    lone || ["//", "#", "--", ";;", "%%"].iter().any(|opener| text.contains(opener))
}

/// A part of one line, given with blanks around it that the file doesn't have. With a line break
/// after it, it is the end of a line.
fn locate_part_of_line<'a>(haystack: &Haystack<'_>, hunk: &Hunk<'a>) -> Option<Matches<'a>> {
    let search = hunk.search.trim();
    if search.len() == hunk.search.len()
        || hunk.whole_lines
        || search.contains('\n')
        || search.chars().filter(|c| is_word_char(*c)).count() < MIN_DISTINCTIVE_PART_CHARS
    {
        return None;
    }
    let closes_line = hunk.search.trim_start().contains('\n');
    let bounded = |start: &usize| {
        let word = |c: Option<char>| c.is_some_and(is_word_char);
        let end = start + search.len();
        let rest = haystack.text.get(end..).and_then(|after| after.split('\n').next());
        if closes_line && rest.is_some_and(|rest| !rest.trim().is_empty()) {
            return false;
        }
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
