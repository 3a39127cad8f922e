//! A search text that leaves lines out.

use std::ops::Range;

use crate::lines::segments;
use crate::outcome::{Placed, Refusal, Strategy};
use crate::place::settle::{Writer, write};
use crate::place::{Ground, Hunk, Located, Place, choose, exact, guard, ladder, report};

/// More lines than this aren't meant by three dots: what is left out was shown to the model not
/// long ago.
const MAX_GAP: usize = 200;
/// More parts aren't pieced together.
const MAX_PARTS: usize = 8;

/// A part of the search text with what is put there.
type Part<'a> = (&'a str, &'a str);

/// Finds the parts between the gaps in order, and keeps what the file has in the gaps. `None` where
/// search and replacement don't leave out as many times, or the parts aren't there.
pub(super) fn find(ground: &Ground<'_>, hunk: &Hunk<'_>) -> Option<Result<Placed, Refusal>> {
    let parts = parts(hunk)?;
    let text = ground.text;
    let hunks = parts.iter().map(|part| Hunk {
        search: part.0,
        replace: part.1,
        all: false,
        whole_lines: true,
        ..*hunk
    });
    let hunks: Vec<Hunk<'_>> = hunks.collect();
    let located: Vec<Located<'_>> =
        hunks.iter().map(|part| whole_lines(ground, part)).collect::<Option<_>>()?;
    let (first, more) = located.split_first()?;
    let mut chains: Vec<Vec<&Place>> = Vec::new();
    let mut doubtful = None;
    for start in &first.places {
        match chain(text, start, more) {
            Ok(Some(chain)) => chains.push(chain),
            Ok(None) => {}
            Err(refusal) => doubtful = Some(refusal),
        }
    }
    if let Some(refusal) = doubtful {
        return Some(Err(refusal));
    }
    let spans: Vec<Range<usize>> =
        chains.iter().filter_map(|chain| Some(chain.first()?.span.clone())).collect();
    if spans.is_empty() {
        return None;
    }
    let chosen = match choose::choose(text, spans, hunk, Strategy::Elision) {
        Ok(chosen) => chosen,
        Err(refusal) => return Some(Err(refusal)),
    };
    let chain = chains.into_iter().find(|chain| chain.first().map(|place| &place.span) == chosen.first())?;
    Some(join(text, &located, &chain))
}

/// The parts between the lines that stand for others, if search and replacement have as many.
fn parts<'a>(hunk: &Hunk<'a>) -> Option<Vec<Part<'a>>> {
    if hunk.all || !(hunk.search.contains("...") || hunk.search.contains('…')) {
        return None;
    }
    let (searched, replaced) = (split(hunk.search), split(hunk.replace));
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
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut from, mut at) = (0, 0);
    for (line, line_break) in segments(text) {
        let next = at + line.len() + line_break.len();
        if guard::is_gap(line) {
            parts.push(text.get(from..at).map_or("", |part| part.strip_suffix('\n').unwrap_or(part)));
            from = next;
        }
        at = next;
    }
    parts.push(text.get(from..).unwrap_or_default());
    parts
}

/// The places of a part that are whole lines.
fn whole_lines<'a>(ground: &Ground<'_>, hunk: &Hunk<'a>) -> Option<Located<'a>> {
    let mut exact = exact::locate(ground.text, hunk);
    if let Some(located) = &mut exact {
        located.places.retain(|place| exact::is_whole_lines(ground.text, &place.span));
    }
    exact.filter(|located| !located.places.is_empty()).or_else(|| ladder::locate(ground, hunk))
}

/// The places of the further parts after the first one's, each within reach of the one before.
fn chain<'a>(
    text: &str,
    start: &'a Place,
    more: &'a [Located<'_>],
) -> Result<Option<Vec<&'a Place>>, Refusal> {
    let mut chain = vec![start];
    let mut end = start.span.end;
    for located in more {
        let from = located.places.partition_point(|place| place.span.start < end);
        let near = |place: &&Place| {
            let between = text.get(end..place.span.start).unwrap_or_default();
            memchr::memchr_iter(b'\n', between.as_bytes()).take(MAX_GAP + 2).count() <= MAX_GAP + 1
        };
        let mut within = located.places.iter().skip(from).take_while(near);
        let Some(next) = within.next() else { return Ok(None) };
        if let (true, Some(other)) = (located.hunk.search != located.hunk.replace, within.next()) {
            let spans = [next.span.clone(), other.span.clone()];
            return Err(report::ambiguous(text, &spans, Strategy::Elision));
        }
        chain.push(next);
        end = next.span.end;
    }
    Ok(Some(chain))
}

/// The parts' replacements and what is between the parts, as one piece.
fn join(text: &str, located: &[Located<'_>], chain: &[&Place]) -> Result<Placed, Refusal> {
    let mut joined = String::new();
    let mut whole: Option<Range<usize>> = None;
    let mut notes = Vec::new();
    for (located, place) in located.iter().zip(chain) {
        let (span, piece) = if located.hunk.search == located.hunk.replace {
            (place.span.clone(), text.get(place.span.clone()).unwrap_or_default().to_owned())
        } else {
            let piece = Writer::new(text, located.strategy, &located.hunk).piece(place)?;
            if located.strategy != Strategy::Exact {
                notes.push(piece.note);
            }
            (exact::take_break(text, piece.span, &located.hunk), piece.text)
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
    write(text, vec![(whole, joined)], Strategy::Elision, Some(notes.join("; ")))
}
