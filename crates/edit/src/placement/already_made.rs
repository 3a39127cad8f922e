//! Signs that an edit was made before: its new lines are where it would put them.

use std::collections::HashSet;
use std::ops::Range;

use memchr::memmem;

use crate::lines::line_at;
use crate::outcome::{PlacedEdit, Refusal, Strategy};
use crate::placement::hunk::Hunk;
use crate::placement::occurrences::is_whole_lines;
use crate::placement::tokens::is_word_char;

/// Lines with fewer characters that aren't blank stand anywhere by chance.
const MIN_DISTINCTIVE_CHARS: usize = 8;
/// Maximum number of lines compared on either side of a place.
const MAX_COMPARED_LINES: usize = 400;

/// Returns true if the replacement is the search text with more before or after it, and the file
/// has just that around the place already.
pub(crate) fn stands_around(text: &str, span: &Range<usize>, hunk: &Hunk<'_>, strategy: Strategy) -> bool {
    if strategy == Strategy::Exact && stands_around_bytes(text, span, hunk.search, hunk.replace) {
        return true;
    }
    let (old, new) = (lines_of(hunk, hunk.search), lines_of(hunk, hunk.replace));
    if let ([old], [new]) = (old.as_slice(), new.as_slice()) {
        let found = text.get(span.clone()).unwrap_or_default();
        let start = span.start + (found.len() - found.trim_start().len());
        return stands_around_bytes(text, &(start..start + found.trim().len()), old.trim(), new.trim());
    }
    let found = text.get(span.clone()).unwrap_or_default();
    let more = new.len().checked_sub(old.len()).filter(|more| *more > 0 && new.len() <= MAX_COMPARED_LINES);
    let Some(more) = more.filter(|_| found.lines().count() == old.len()) else { return false };
    let same = |one: &str, other: &str| match strategy {
        Strategy::Exact => one.trim_end() == other.trim_end(),
        _ => one.trim() == other.trim(),
    };
    let brings = |lines: &[&str]| lines.iter().any(|line| is_distinctive(line) && !is_among(&old, line));
    let (head, tail) = (new.get(..more).unwrap_or_default(), new.get(old.len()..).unwrap_or_default());
    let before = text.get(..span.start).unwrap_or_default();
    let above = || {
        let opens = before.is_empty() || before.ends_with('\n');
        let mut lines = before.lines().rev();
        opens && head.iter().rev().all(|line| lines.next().is_some_and(|own| same(own, line)))
    };
    let below = || {
        let after = text.get(span.end..).unwrap_or_default();
        let next = after.strip_prefix("\r\n").or_else(|| after.strip_prefix('\n'));
        let rest = if found.ends_with('\n') { after } else { next.unwrap_or_default() };
        let mut lines = rest.lines();
        tail.iter().all(|line| lines.next().is_some_and(|own| same(own, line)))
    };
    (new.ends_with(&old) && brings(head) && above()) || (new.starts_with(&old) && brings(tail) && below())
}

/// The same byte for byte, for parts of lines too.
fn stands_around_bytes(text: &str, span: &Range<usize>, old: &str, new: &str) -> bool {
    let Some(at) = new.find(old).filter(|_| !old.is_empty() && old.len() < new.len()) else { return false };
    let (head, tail) = (new.get(..at).unwrap_or_default(), new.get(at + old.len()..).unwrap_or_default());
    let before = text.get(..span.start).unwrap_or_default();
    let after = text.get(span.end..).unwrap_or_default();
    let (Some(above), Some(below)) = (before.strip_suffix(head), after.strip_prefix(tail)) else {
        return false;
    };
    // A blank line at an edge is one, and not the end of the line next to it.
    let opens = !head.starts_with('\n') || above.is_empty() || above.ends_with('\n');
    let closes = !tail.ends_with('\n') || old.ends_with('\n') || below.is_empty() || below.starts_with('\n');
    if !opens || !closes {
        return false;
    }
    let alphanumeric = head.chars().chain(tail.chars()).filter(|c| c.is_alphanumeric()).count();
    let is_new = |part: &str| !part.trim().is_empty() && !old.contains(part.trim());
    let mut lines = head.lines().chain(tail.lines());
    let brings = alphanumeric >= MIN_DISTINCTIVE_CHARS && lines.any(is_new);
    // A part of a word that is the longer word already.
    let begins =
        head.chars().next_back().is_some_and(is_word_char) && old.chars().next().is_some_and(is_word_char);
    let ends =
        tail.chars().next().is_some_and(is_word_char) && old.chars().next_back().is_some_and(is_word_char);
    brings || (!new.contains('\n') && (begins || ends))
}

/// Refuses a place that was found loosely where the file has the replacement byte for byte: the
/// edit was made before, or nobody can tell which of the two places is meant.
pub(crate) fn refuse_made_before(text: &str, hunk: &Hunk<'_>, placed: &PlacedEdit) -> Result<(), Refusal> {
    // What only ends its lines otherwise is the text itself, and a text that was cleaned first
    // can't be compared with the file's as it stands.
    let is_comparable = matches!(
        placed.strategy,
        Strategy::Indentation
            | Strategy::InnerWhitespace
            | Strategy::BlankEdges
            | Strategy::BlankLines
            | Strategy::LineBreaks
            | Strategy::Similarity
    );
    if hunk.all || hunk.allow.differences || !is_comparable {
        return Ok(());
    }
    let Some((there, made)) = only_whole_occurrence(text, hunk) else { return Ok(()) };
    if made && placed.pieces.iter().any(|(span, _)| span.start <= there.end && there.start <= span.end) {
        return Err(Refusal::for_applied_edit());
    }
    let difference = format!(
        "the replacement is in the file already, from line {}, and here the search text is only nearly so; if this place is \
         meant, copy its lines as they are",
        line_at(text, there.start)
    );
    Err(Refusal::GuardedMismatch { line: placed.line, difference })
}

/// A refusal of a loose reading, or that the edit was made before, where it is the replacement
/// itself that was nearly found.
pub(super) fn explain_refusal(text: &str, hunk: &Hunk<'_>, refusal: Refusal) -> Refusal {
    let lines = match &refusal {
        Refusal::GuardedMismatch { line, .. } => vec![*line],
        Refusal::Ambiguous { lines, strategy: Strategy::Similarity, .. } => lines.clone(),
        _ => return refusal,
    };
    let Some((there, true)) = only_whole_occurrence(text, hunk).filter(|_| !hunk.all) else { return refusal };
    let there = line_at(text, there.start)..=line_at(text, there.end);
    if lines.iter().any(|line| there.contains(line)) { Refusal::for_applied_edit() } else { refusal }
}

/// The only place where the replacement stands as whole lines, if it brings a line that the search
/// text hasn't, and true if what it takes away is gone there.
fn only_whole_occurrence(text: &str, hunk: &Hunk<'_>) -> Option<(Range<usize>, bool)> {
    let new = hunk.replace.strip_suffix('\n').unwrap_or(hunk.replace);
    let old: Vec<&str> = hunk.search.lines().collect();
    if !new.lines().any(|line| is_distinctive(line) && !is_among(&old, line)) {
        return None;
    }
    let places = memmem::find_iter(text.as_bytes(), new).map(|at| at..at + new.len());
    let mut whole = places.filter(|span| is_whole_lines(text, span));
    let (only, None) = (whole.next()?, whole.next()) else { return None };
    let around = old.len().min(MAX_COMPARED_LINES);
    let before = text.get(..only.start)?.lines().rev().take(around);
    let after = text.get(only.end..)?.lines().skip(1).take(around);
    let made = !has_removed_lines(hunk, before.chain(after));
    Some((only, made))
}

/// Returns true if lines beside the replacement are such as the edit takes away: then it was not
/// made, or only half of it. The search text's lines may have more in front, such as a number.
pub(super) fn has_removed_lines<'t>(hunk: &Hunk<'_>, mut beside: impl Iterator<Item = &'t str>) -> bool {
    let kept: HashSet<&str> = hunk.replace.lines().map(str::trim).collect();
    let gone: Vec<&str> = hunk.search.lines().map(str::trim).filter(|line| !kept.contains(line)).collect();
    beside.any(|line| {
        let line = line.trim();
        !kept.contains(line)
            && line.contains(char::is_alphanumeric)
            && gone.iter().take(MAX_COMPARED_LINES).any(|gone| gone.ends_with(line))
    })
}

/// Returns true if the text's first lines are the replacement's, but for blanks at their ends.
pub(super) fn begins_with_replacement(text: &str, hunk: &Hunk<'_>) -> bool {
    let mut own = text.split('\n');
    lines_of(hunk, hunk.replace)
        .iter()
        .all(|line| own.next().is_some_and(|own| own.trim_end() == line.trim_end()))
}

/// Returns true if the text's last lines are the replacement's, but for blanks at their ends.
pub(super) fn ends_with_replacement(text: &str, hunk: &Hunk<'_>) -> bool {
    let mut own = text.lines().rev();
    let lines = lines_of(hunk, hunk.replace);
    lines.iter().rev().all(|line| own.next().is_some_and(|own| own.trim_end() == line.trim_end()))
}

/// The lines of the search text or of the replacement: a last one that is blank counts, unless both
/// end with a line break that is the last line's.
fn lines_of<'a>(hunk: &Hunk<'_>, text: &'a str) -> Vec<&'a str> {
    let mut lines: Vec<&str> = text.split('\n').collect();
    if !hunk.whole_lines && hunk.search.ends_with('\n') && hunk.replace.ends_with('\n') {
        lines.pop();
    }
    lines
}

/// Returns true if a line is one of these, or the end of one, as after a number.
fn is_among(lines: &[&str], line: &str) -> bool {
    lines.iter().any(|one| one.trim_end().ends_with(line.trim()))
}

fn is_distinctive(line: &str) -> bool {
    line.chars().filter(|c| !c.is_whitespace()).take(MIN_DISTINCTIVE_CHARS).count() == MIN_DISTINCTIVE_CHARS
}
