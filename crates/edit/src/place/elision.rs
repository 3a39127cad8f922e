//! A search text that leaves lines out.

use std::ops::Range;

use crate::lines::split_with_breaks;
use crate::outcome::{Placed, Refusal, Strategy};
use crate::place::hunk::Hunk;
use crate::place::indexed_text::Haystack;
use crate::place::matches::{Match, Matches};
use crate::place::occurrences::is_whole_lines;
use crate::place::resolve::HunkWriter;
use crate::place::write::{take_line_break, to_placed};
use crate::place::{exact, explain, normalized, placeholders, tie_breaking};

/// More lines than this aren't meant by three dots: what is left out was shown to the model not
/// long ago.
const MAX_GAP_LINES: usize = 200;
/// More parts aren't pieced together.
const MAX_PARTS: usize = 8;
/// More ways to piece the parts together aren't compared.
const MAX_CHAINS: usize = 32;

/// A part of the search text with what is put there.
type Part<'a> = (&'a str, &'a str);

/// Finds the parts between the gaps in order, and keeps what the file has in the gaps. `None` where
/// search and replacement don't leave out as many times, or the parts aren't there.
pub(super) fn find_with_gaps(haystack: &Haystack<'_>, hunk: &Hunk<'_>) -> Option<Result<Placed, Refusal>> {
    let parts = split_parts(hunk)?;
    let text = haystack.text;
    let hunks = parts.iter().map(|part| Hunk {
        search: part.0,
        replace: part.1,
        all: false,
        whole_lines: true,
        ..*hunk
    });
    let hunks: Vec<Hunk<'_>> = hunks.collect();
    let matches: Vec<Matches<'_>> =
        hunks.iter().map(|part| locate_whole_lines(haystack, part)).collect::<Option<_>>()?;
    let (first, more) = matches.split_first()?;
    let mut chains: Vec<Vec<&Match>> = Vec::new();
    let mut doubtful = None;
    for start in &first.places {
        let (from, mut fork) = (chains.len(), None);
        extend_chain(text, &mut vec![start], more, &mut chains, &mut fork);
        // A start from which nothing follows says nothing.
        doubtful = doubtful.or(fork.filter(|_| chains.len() > from));
    }
    // Readings that write the same bytes are one: what stays may stand anywhere.
    if let Some(same) = result_of_all(text, &matches, &chains) {
        return Some(same);
    }
    if let Some(spans) = doubtful {
        return Some(Err(explain::ambiguous_refusal(text, &spans, Strategy::Elision)));
    }
    let spans: Vec<Range<usize>> =
        chains.iter().filter_map(|chain| Some(chain.first()?.span.clone())).collect();
    if spans.is_empty() {
        return None;
    }
    let chosen = match tie_breaking::select_spans(text, spans, hunk, Strategy::Elision) {
        Ok(chosen) => chosen,
        Err(refusal) => return Some(Err(refusal)),
    };
    let chain = chains.into_iter().find(|chain| chain.first().map(|place| &place.span) == chosen.first())?;
    Some(join_parts(text, &matches, &chain))
}

/// The parts between the lines that stand for others, if search and replacement have as many.
fn split_parts<'a>(hunk: &Hunk<'a>) -> Option<Vec<Part<'a>>> {
    if hunk.all || !(hunk.search.contains("...") || hunk.search.contains('…')) {
        return None;
    }
    let (searched, replaced) = (split_at_gaps(hunk.search), split_at_gaps(hunk.replace));
    if searched.len() != replaced.len() || !(2..=MAX_PARTS).contains(&searched.len()) {
        return None;
    }
    let mut parts: Vec<Part<'a>> = searched.into_iter().zip(replaced).collect();
    if let Some((search, replace)) = parts.last_mut()
        && let (Some(one), Some(other)) = (search.strip_suffix('\n'), replace.strip_suffix('\n'))
    {
        // A rest that only one of them has is a blank line.
        (*search, *replace) = (one, other);
    }
    // At the edges nothing is said of where they end.
    let empty = |part: Option<&Part<'_>>| {
        part.is_some_and(|(search, replace)| search.is_empty() && replace.is_empty())
    };
    if empty(parts.first()) {
        parts.remove(0);
    }
    if empty(parts.last()) {
        parts.pop();
    }
    let whole = parts.iter().all(|(search, _)| !search.trim().is_empty());
    (whole && !parts.is_empty()).then_some(parts)
}

/// A text cut at its lines that stand for others, without those and the line breaks around them;
/// what ends the text stays.
fn split_at_gaps(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut from, mut at) = (0, 0);
    for (line, line_break) in split_with_breaks(text) {
        let next = at + line.len() + line_break.len();
        if placeholders::is_gap_line(line) {
            parts.push(text.get(from..at).map_or("", |part| part.strip_suffix('\n').unwrap_or(part)));
            from = next;
        }
        at = next;
    }
    parts.push(text.get(from..).unwrap_or_default());
    parts
}

/// The places of a part that are whole lines.
fn locate_whole_lines<'a>(haystack: &Haystack<'_>, hunk: &Hunk<'a>) -> Option<Matches<'a>> {
    let mut exact = exact::locate_exactly(haystack.text, hunk);
    if let Some(matches) = &mut exact {
        matches.places.retain(|place| is_whole_lines(haystack.text, &place.span));
    }
    exact
        .filter(|matches| !matches.places.is_empty())
        .or_else(|| normalized::locate_normalized(haystack, hunk))
}

/// Adds the chains that go on from `chain` with places of the further parts, each within reach of
/// the one before. `fork` gets two places where one changed part may stand in either.
fn extend_chain<'a>(
    text: &str,
    chain: &mut Vec<&'a Match>,
    more: &'a [Matches<'_>],
    chains: &mut Vec<Vec<&'a Match>>,
    fork: &mut Option<[Range<usize>; 2]>,
) {
    let Some((matches, rest)) = more.split_first() else {
        chains.push(chain.clone());
        return;
    };
    let end = chain.last().map_or(0, |place| place.span.end);
    let from = matches.places.partition_point(|place| place.span.start < end);
    let near = |place: &&Match| {
        let between = text.get(end..place.span.start).unwrap_or_default();
        memchr::memchr_iter(b'\n', between.as_bytes()).take(MAX_GAP_LINES + 2).count() <= MAX_GAP_LINES + 1
    };
    let changes = matches.hunk.search != matches.hunk.replace;
    let mut within = matches.places.iter().skip(from).take_while(near).peekable();
    while let Some(next) = within.next() {
        if let (true, Some(other)) = (changes, within.peek()) {
            fork.get_or_insert_with(|| [next.span.clone(), other.span.clone()]);
        }
        chain.push(next);
        extend_chain(text, chain, rest, chains, fork);
        chain.pop();
        if !changes || chains.len() > MAX_CHAINS {
            break;
        }
    }
}

/// The text that all chains come to, where that is one.
fn result_of_all(
    text: &str,
    matches: &[Matches<'_>],
    chains: &[Vec<&Match>],
) -> Option<Result<Placed, Refusal>> {
    if !(2..=MAX_CHAINS).contains(&chains.len()) {
        return None;
    }
    let changed = |chain: &[&Match]| -> Vec<Range<usize>> {
        let parts = matches.iter().zip(chain);
        let changed = parts.filter(|(part, _)| part.hunk.search != part.hunk.replace);
        changed.map(|(_, place)| place.span.clone()).collect()
    };
    // The last chain begins nearest to what changes.
    let last = chains.last()?;
    let done = join_parts(text, matches, last);
    let known = changed(last);
    let written = done.as_ref().ok().map(|placed| placed.apply_to(text));
    let same = |chain: &Vec<&Match>| {
        changed(chain) == known
            || written.is_some()
                && join_parts(text, matches, chain).ok().map(|placed| placed.apply_to(text)) == written
    };
    chains.iter().all(same).then_some(done)
}

/// The parts' replacements and what is between the parts, as one piece.
fn join_parts(text: &str, matches: &[Matches<'_>], chain: &[&Match]) -> Result<Placed, Refusal> {
    let mut joined = String::new();
    let mut whole: Option<Range<usize>> = None;
    let mut notes = Vec::new();
    for (matches, place) in matches.iter().zip(chain) {
        let (span, piece) = if matches.hunk.search == matches.hunk.replace {
            (place.span.clone(), text.get(place.span.clone()).unwrap_or_default().to_owned())
        } else {
            let piece = HunkWriter::new(text, matches.strategy, &matches.hunk).fit_to_place(place)?;
            if matches.strategy != Strategy::Exact {
                notes.push(piece.note);
            }
            (take_line_break(text, piece.span, &matches.hunk), piece.text)
        };
        let start = whole.as_ref().map_or(span.start, |whole| whole.start);
        let done = whole.map_or(span.start, |whole| whole.end);
        joined.push_str(text.get(done..span.start.max(done)).unwrap_or_default());
        joined.push_str(&piece);
        whole = Some(start..span.end.max(done));
    }
    let left_out = "what the search text leaves out was kept as it is in the file";
    notes.insert(0, left_out.to_owned());
    let whole = whole.unwrap_or(0..0);
    to_placed(text, vec![(whole, joined)], Strategy::Elision, Some(notes.join("; ")))
}
