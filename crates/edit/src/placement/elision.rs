//! A search text that leaves lines out.

use std::borrow::Cow;
use std::ops::Range;

use crate::lines::split_with_breaks;
use crate::outcome::{PlacedEdit, Refusal, Strategy};
use crate::placement::hunk::Hunk;
use crate::placement::indexed_text::Haystack;
use crate::placement::matches::{Match, Matches};
use crate::placement::occurrences::is_whole_lines;
use crate::placement::replacement_pieces::{include_line_break, to_placed};
use crate::placement::resolve::HunkFitter;
use crate::placement::{exact, explain, normalized_matching, placeholders, tie_breaking};

/// More lines than this aren't meant by three dots: what is left out was shown to the model not
/// long ago.
const MAX_GAP_LINES: usize = 200;
/// More parts aren't pieced together.
const MAX_PARTS: usize = 8;
/// More ways to piece the parts together aren't compared.
const MAX_CHAINS: usize = 32;

/// A part of the search text with what is put there.
struct SearchPart<'a> {
    search: Cow<'a, str>,
    replace: Cow<'a, str>,
    /// Both are given with the last line's break: without it a replacement of one blank line would
    /// be none.
    closed: bool,
}

/// Finds the parts between the gaps in order, and keeps what the file has in the gaps. `None` where
/// search and replacement don't leave out as many times, or the parts aren't there.
pub(super) fn find_with_gaps(
    haystack: &Haystack<'_>,
    hunk: &Hunk<'_>,
) -> Option<Result<PlacedEdit, Refusal>> {
    let parts = split_parts(hunk)?;
    let text = haystack.text;
    let hunks = parts.iter().map(|part| Hunk {
        search: &part.search,
        replace: &part.replace,
        all: false,
        whole_lines: !part.closed,
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
    if let Some(same) = common_result(text, &matches, &chains) {
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
fn split_parts<'a>(hunk: &Hunk<'a>) -> Option<Vec<SearchPart<'a>>> {
    if hunk.all || !(hunk.search.contains("...") || hunk.search.contains('…')) {
        return None;
    }
    let (mut searched, mut replaced) = (split_at_gaps(hunk.search), split_at_gaps(hunk.replace));
    if searched.len() != replaced.len() || !(2..=MAX_PARTS).contains(&searched.len()) {
        return None;
    }
    if let (Some(Some(search)), Some(Some(replace))) = (searched.last_mut(), replaced.last_mut())
        && let (Some(one), Some(other)) = (search.strip_suffix('\n'), replace.strip_suffix('\n'))
    {
        // A rest that only one of them has is a blank line.
        (*search, *replace) = (one, other);
    }
    if !hunk.whole_lines && hunk.search.ends_with('\n') {
        // What the replacement ends with is the break of the line that stands for others.
        replaced.last_mut().and_then(|last| last.take_if(|last| last.is_empty()));
    }
    let mut parts: Vec<(Option<&'a str>, Option<&'a str>)> = searched.into_iter().zip(replaced).collect();
    // At the edges nothing is said of where they end.
    let empty = |part: Option<&(Option<&str>, Option<&str>)>| {
        part.is_some_and(|(search, replace)| {
            [search, replace].iter().all(|text| text.unwrap_or_default().is_empty())
        })
    };
    if empty(parts.first()) {
        parts.remove(0);
    }
    if empty(parts.last()) {
        parts.pop();
    }
    let parts: Vec<SearchPart<'a>> =
        parts.into_iter().map(|(search, replace)| Some(to_part(search?, replace))).collect::<Option<_>>()?;
    let whole = parts.iter().all(|part| !part.search.trim().is_empty());
    (whole && !parts.is_empty()).then_some(parts)
}

/// A part of both texts, `None` in the replacement for no line at all.
fn to_part<'a>(search: &'a str, replace: Option<&'a str>) -> SearchPart<'a> {
    match replace {
        Some("") => SearchPart {
            search: Cow::Owned(format!("{search}\n")),
            replace: Cow::Borrowed("\n"),
            closed: true,
        },
        _ => {
            let replace = replace.unwrap_or_default();
            SearchPart { search: Cow::Borrowed(search), replace: Cow::Borrowed(replace), closed: false }
        }
    }
}

/// A text cut at its lines that stand for others, without those and the line breaks around them;
/// what ends the text stays. `None` stands for a part without any line.
fn split_at_gaps(text: &str) -> Vec<Option<&str>> {
    let mut parts = Vec::new();
    let (mut from, mut at) = (0, 0);
    let mut open = false;
    for (line, line_break) in split_with_breaks(text) {
        let next = at + line.len() + line_break.len();
        if placeholders::is_gap_line(line) {
            parts.push(
                text.get(from..at)
                    .filter(|part| !part.is_empty())
                    .map(|part| part.strip_suffix('\n').unwrap_or(part)),
            );
            from = next;
            open = line_break.is_empty();
        }
        at = next;
    }
    parts.push(text.get(from..).filter(|_| !open));
    parts
}

/// The places of a part that are whole lines.
fn locate_whole_lines<'a>(haystack: &Haystack<'_>, hunk: &Hunk<'a>) -> Option<Matches<'a>> {
    let mut exact = exact::locate_exactly(haystack.text, hunk);
    if let Some(matches) = &mut exact {
        let closed = !hunk.whole_lines;
        matches.places.retain(|place| {
            is_whole_lines(haystack.text, &(place.span.start..place.span.end - usize::from(closed)))
        });
    }
    exact
        .filter(|matches| !matches.places.is_empty())
        .or_else(|| normalized_matching::locate_normalized(haystack, hunk))
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
fn common_result(
    text: &str,
    matches: &[Matches<'_>],
    chains: &[Vec<&Match>],
) -> Option<Result<PlacedEdit, Refusal>> {
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
fn join_parts(text: &str, matches: &[Matches<'_>], chain: &[&Match]) -> Result<PlacedEdit, Refusal> {
    let mut joined = String::new();
    let mut whole: Option<Range<usize>> = None;
    let mut notes = Vec::new();
    for (matches, place) in matches.iter().zip(chain) {
        let (span, piece) = if matches.hunk.search == matches.hunk.replace {
            (place.span.clone(), text.get(place.span.clone()).unwrap_or_default().to_owned())
        } else {
            let piece = HunkFitter::new(text, matches.strategy, &matches.hunk).fit_to_place(place)?;
            if matches.strategy != Strategy::Exact {
                notes.push(piece.note);
            }
            (include_line_break(text, piece.span, &matches.hunk), piece.text)
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
