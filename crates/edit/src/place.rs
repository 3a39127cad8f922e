//! Finding the one place that a hunk means.

pub(crate) mod closest;
pub(crate) mod fit;
pub(crate) mod guard;
pub(crate) mod indent;
pub(crate) mod merge;
pub(crate) mod normal;
pub(crate) mod numbered;
pub(crate) mod report;

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;

use crate::lines::{Line, break_of, line_at, lines_of, segments};
use crate::outcome::{Applied, MAX_FILE_BYTES, MAX_SEARCH_BYTES, Placed, Refusal, Strategy};
use crate::place::fit::Alignment;
use crate::place::indent::{IndentMap, Styles};
use crate::place::normal::{Mapped, Reading, Strings, bare_key, plain, squeeze};

/// How many places an ambiguous match collects; more would tell nothing more.
const MAX_PLACES: usize = 1_000;
/// How many lines are compared in windows that may overlap; reached only in files of one line over and over.
const MAX_COMPARED: usize = 4_000_000;
/// A line hint decides only if the next best place is at least this many times as far from it.
const CLEARLY_NEARER: u32 = 2;

/// One search and replace, with what helps to place it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hunk<'a> {
    /// The text to find.
    pub search: &'a str,
    /// The text to put there, literally.
    pub replace: &'a str,
    /// Replace every place instead of the only one.
    pub all: bool,
    /// The 1-based line where the search text is believed to begin. It only chooses between equal matches,
    /// and only when one is clearly nearer; it never makes or vetoes a match.
    pub near: Option<u32>,
    /// Search and replacement are lines of a text format, given without the last one's line break: an empty
    /// replacement of whole lines then takes their line break too, and a blank line at an edge of the search
    /// text is a blank line and not the end of the line next to it.
    pub whole_lines: bool,
    /// Lines that stand before the place, in this order, each after the one before. They choose between matches.
    pub anchors: &'a [String],
    /// Where the hunk before this one ended in the text, in bytes: among equal matches the first at or after it is
    /// meant, if the format's hunks come in order.
    pub after: Option<usize>,
    /// The match is said to end where the file ends.
    pub at_end: bool,
    /// The version of the file that the model was shown, if it isn't the present one.
    pub base: Option<&'a str>,
    /// What the caller allows to differ.
    pub allow: Allow,
}

/// What a caller may allow by name that is refused otherwise, because it may have a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Allow {
    /// A changed line's identifiers, numbers, operators or strings may differ between search text and file.
    pub differences: bool,
    /// Remarks may stand in for code in the new text.
    pub placeholders: bool,
    /// The replaced region may be far larger than the search text.
    pub spans: bool,
    /// A loosely placed edit may leave a file that doesn't parse where it did before.
    pub broken_syntax: bool,
}

impl<'a> Hunk<'a> {
    /// A hunk without hints, for the only place.
    #[must_use]
    pub fn new(search: &'a str, replace: &'a str) -> Self {
        Self {
            search,
            replace,
            all: false,
            near: None,
            whole_lines: false,
            anchors: &[],
            after: None,
            at_end: false,
            base: None,
            allow: Allow::default(),
        }
    }
}

/// Replaces the only place where `search` occurs in `text` (or, with `all`, every place) by `replacement`,
/// which is taken literally, but for its line endings in a text whose own are all of one kind.
///
/// The strictest [`Strategy`] that finds a place decides. If it finds more than one, no looser one is tried.
///
/// # Errors
/// [`Refusal`] when no place, or more than one, can be meant, when the place differs from the search text in
/// what has a meaning, or when a bound is passed.
pub fn replace(text: &str, search: &str, replacement: &str, all: bool) -> Result<Applied, Refusal> {
    place(text, &Hunk { all, ..Hunk::new(search, replacement) })
}

/// Like [`replace`], with hints.
///
/// # Errors
/// As [`replace`].
pub fn place(text: &str, hunk: &Hunk<'_>) -> Result<Applied, Refusal> {
    find(text, hunk).map(|placed| placed.write(text))
}

/// Finds where a hunk goes and what it puts there, without writing.
///
/// # Errors
/// As [`replace`].
pub fn find(text: &str, hunk: &Hunk<'_>) -> Result<Placed, Refusal> {
    let sizes = [
        ("file", text.len(), MAX_FILE_BYTES),
        ("search text", hunk.search.len(), MAX_SEARCH_BYTES),
        ("replacement", hunk.replace.len(), MAX_SEARCH_BYTES),
    ];
    if let Some((what, bytes, limit)) = sizes.into_iter().find(|(_, bytes, limit)| bytes > limit) {
        return Err(Refusal::TooLarge { what, bytes, limit });
    }
    if hunk.search == hunk.replace {
        return Err(Refusal::NoChange);
    }
    if hunk.search.is_empty() {
        return fill(text, hunk.replace);
    }
    if let Some(remark) = guard::placeholder(hunk.search, hunk.replace) {
        return Err(Refusal::Placeholder { remark: remark.to_owned() });
    }
    let merged = || hunk.base.and_then(|base| merge::find(text, base, hunk));
    match exact(text, hunk).or_else(|| loosely(text, hunk)).or_else(merged) {
        Some(done) => done,
        None => Err(closest::miss(text, hunk)),
    }
}

/// An empty search text means the whole of an empty file, and nothing else.
fn fill(text: &str, content: &str) -> Result<Placed, Refusal> {
    if !text.is_empty() && text != "\u{feff}" {
        return Err(Refusal::EmptySearch);
    }
    Ok(Placed {
        strategy: Strategy::Exact,
        line: 1,
        note: None,
        pieces: vec![(text.len()..text.len(), content.to_owned())],
    })
}

/// The byte-for-byte step.
fn exact(text: &str, hunk: &Hunk<'_>) -> Option<Result<Placed, Refusal>> {
    let keep = |start: &usize| !hunk.whole_lines || at_line_edges(text, *start, hunk.search);
    let places = occurrences(text, hunk.search, hunk.all, keep);
    if places.is_empty() {
        return None;
    }
    let mut places: Vec<Range<usize>> =
        places.into_iter().map(|start| start..start + hunk.search.len()).collect();
    if hunk.whole_lines && !hunk.all {
        // Lines were asked for: the one place that is whole lines goes before places within lines.
        let whole: Vec<&Range<usize>> = places.iter().filter(|place| is_whole_lines(text, place)).collect();
        if let [only] = whole.as_slice() {
            places = vec![(*only).clone()];
        }
    }
    let spans = match choose(text, places, hunk, Strategy::Exact) {
        Ok(spans) => spans,
        Err(refusal) => return Some(Err(refusal)),
    };
    let (replacement, adapted) = in_breaks_of(text, hunk.replace);
    let remarks = [
        adapted.map(str::to_owned),
        spans.first().and_then(|span| report::splits_word(text, span)),
        spans.first().and_then(|span| report::falls_out(text, span, hunk.replace)),
    ];
    let remarks: Vec<String> = remarks.into_iter().flatten().collect();
    let note = (!remarks.is_empty()).then(|| remarks.join("; "));
    let pieces = spans
        .into_iter()
        .map(|span| (take_break(text, span, hunk), replacement.clone().into_owned()))
        .collect();
    Some(write(text, pieces, Strategy::Exact, note))
}

/// A replacement with the line breaks that all of the text's lines have, and a remark if that changed it. A text
/// with none, or with both kinds, takes the replacement as it is.
fn in_breaks_of<'a>(text: &str, replacement: &'a str) -> (Cow<'a, str>, Option<&'static str>) {
    if !replacement.contains('\n') {
        return (Cow::Borrowed(replacement), None);
    }
    let breaks = |text: &str| {
        let crlf = if text.contains('\r') { memmem::find_iter(text.as_bytes(), "\r\n").count() } else { 0 };
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

/// Where `needle` begins in `text`. Two overlapping occurrences are two, so that the only one is the only one.
fn occurrences(text: &str, needle: &str, all: bool, keep: impl Fn(&usize) -> bool) -> Vec<usize> {
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

/// Whether a search text that begins or ends with a blank line, as a text format means it, has one there.
fn at_line_edges(text: &str, start: usize, search: &str) -> bool {
    let before = text.get(..start).unwrap_or_default();
    let after = text.get(start + search.len()..).unwrap_or_default();
    let opens = !search.starts_with(['\n', '\r']) || before.is_empty() || before.ends_with('\n');
    let closes = !search.ends_with('\n') || after.is_empty() || after.starts_with(['\n', '\r']);
    opens && closes
}

/// Whether a place begins where a line begins and ends where a line ends.
fn is_whole_lines(text: &str, place: &Range<usize>) -> bool {
    let before = text.get(..place.start).unwrap_or_default();
    let after = text.get(place.end..).unwrap_or_default();
    (before.is_empty() || before.ends_with('\n')) && (after.is_empty() || after.starts_with(['\n', '\r']))
}

/// The steps that overlook something, strictest first.
fn loosely(text: &str, hunk: &Hunk<'_>) -> Option<Result<Placed, Refusal>> {
    if hunk.search.trim().is_empty() {
        return None;
    }
    let lines = lines_of(text);
    let keys: Vec<u64> =
        lines.iter().map(|line| bare_key(text.get(line.content()).unwrap_or_default())).collect();
    let trimmed = without_edges(hunk.search, hunk.replace);
    let edges = trimmed.map(|(search, replace)| Hunk { search, replace, ..*hunk });
    let loose = Loose { text, hunk, lines: &lines, keys: &keys };
    let windows = loose.windows();
    loose
        .by_text(Strategy::LineEndings)
        .or_else(|| loose.by_lines(&windows, Reading::TrailingWhitespace, Strategy::TrailingWhitespace))
        .or_else(|| loose.by_text(Strategy::Typography))
        .or_else(|| loose.by_lines(&windows, Reading::Indentation, Strategy::Indentation))
        .or_else(|| loose.by_lines(&windows, Reading::InnerWhitespace, Strategy::InnerWhitespace))
        .or_else(|| {
            let hunk = edges?;
            let loose = Loose { hunk: &hunk, ..loose };
            let windows = loose.windows();
            [Reading::TrailingWhitespace, Reading::Indentation, Reading::InnerWhitespace]
                .into_iter()
                .find_map(|reading| loose.by_lines(&windows, reading, Strategy::BlankEdges))
        })
        .or_else(|| without_numbers(text, hunk))
}

/// Search and replacement without the blank lines at their edges; `None` where the search text has none.
fn without_edges<'a>(search: &'a str, replacement: &'a str) -> Option<(&'a str, &'a str)> {
    let inner = trim_blank_lines(search);
    (inner.len() < search.trim_end_matches(['\n', '\r']).len()
        || search.ends_with("\n\n")
        || search.ends_with("\n\r\n"))
    .then(|| (inner, trim_blank_lines(replacement)))
}

/// A text from its first line that isn't blank to the end of its last, without that one's line break.
fn trim_blank_lines(text: &str) -> &str {
    let lead = text.len() - text.trim_start().len();
    let from = text.get(..lead).and_then(|blank| blank.rfind('\n')).map_or(0, |at| at + 1);
    let end = text.trim_end().len();
    let line = text.get(end..).and_then(|blank| blank.find('\n')).map_or(text.len(), |at| end + at);
    let line = line.max(from);
    text.get(from..line).map_or(text, |inner| inner.strip_suffix('\r').unwrap_or(inner))
}

/// The step for a search text copied from a numbered listing: without the numbers, everything anew.
fn without_numbers(text: &str, hunk: &Hunk<'_>) -> Option<Result<Placed, Refusal>> {
    let (search, first) = numbered::strip(hunk.search)?;
    // Numbers of empty lines alone: that is found everywhere, also within a character.
    if search.trim().is_empty() {
        return None;
    }
    let replacement = match numbered::strip_replacement(hunk.replace) {
        Some(stripped) => stripped,
        None if numbered::is_partly(hunk.replace) => return None,
        None => hunk.replace.to_owned(),
    };
    let plain = Hunk { search: &search, replace: &replacement, near: hunk.near.or(Some(first)), ..*hunk };
    if search == replacement {
        return Some(Err(Refusal::NoChange));
    }
    let done = exact(text, &plain).or_else(|| loosely(text, &plain))?;
    Some(done.map(|applied| Placed {
        strategy: Strategy::LineNumbers,
        note: Some(report::numbers_removed(applied.strategy, applied.note.as_deref())),
        ..applied
    }))
}

/// What the steps that overlook something work on.
#[derive(Clone, Copy)]
struct Loose<'a> {
    text: &'a str,
    hunk: &'a Hunk<'a>,
    lines: &'a [Line],
    /// Of each line, [`bare_key`].
    keys: &'a [u64],
}

impl Loose<'_> {
    /// Looks for the search text anywhere, also within lines, with line endings (and typography) overlooked.
    fn by_text(&self, strategy: Strategy) -> Option<Result<Placed, Refusal>> {
        let typography = strategy == Strategy::Typography;
        let both = [self.text, self.hunk.search];
        let possible = if typography {
            both.iter().any(|text| !text.is_ascii() && text.contains(|c| plain(c) != c))
        } else {
            both.iter().any(|text| text.contains('\r'))
        };
        if !possible {
            return None;
        }
        let file = Mapped::new(self.text, typography);
        let search = Mapped::new(self.hunk.search, typography);
        let keep = |start: &usize| !self.hunk.whole_lines || at_line_edges(&file.text, *start, &search.text);
        let starts = occurrences(&file.text, &search.text, self.hunk.all, keep);
        let places =
            starts.into_iter().map(|start| file.original(start..start + search.text.len())).collect();
        self.settle(places, strategy)
    }

    /// The search text's lines, without the empty one after a final line break.
    fn wanted(&self) -> Vec<&str> {
        let mut wanted: Vec<&str> = segments(self.hunk.search).into_iter().map(|(line, _)| line).collect();
        if self.hunk.search.ends_with('\n') {
            wanted.pop();
        }
        wanted
    }

    /// The lines where the search text begins if blanks and typography are overlooked altogether: no reading
    /// finds it anywhere else.
    fn windows(&self) -> Vec<usize> {
        let needle: Vec<u64> = self.wanted().into_iter().map(bare_key).collect();
        sequences(self.keys, &needle)
    }

    /// Looks which of the windows have the search text's lines.
    fn by_lines(
        &self,
        windows: &[usize],
        reading: Reading,
        strategy: Strategy,
    ) -> Option<Result<Placed, Refusal>> {
        let closed = self.hunk.search.ends_with('\n');
        let wanted = self.wanted();
        let of = |line: &Line| self.text.get(line.content()).unwrap_or_default();
        let mut places = Vec::new();
        let (mut free_from, mut compared) = (0, 0);
        for start in windows {
            let window = self.lines.get(*start..start + wanted.len()).unwrap_or_default();
            let (Some(first), Some(last)) = (window.first(), window.last()) else { continue };
            if self.hunk.all && *start < free_from {
                continue;
            }
            let same = |(line, wanted): &(&Line, &&str)| reading.normal(of(line)) == reading.normal(wanted);
            let alike = window.iter().zip(&wanted).take_while(same).count();
            compared += alike + 1;
            if alike == wanted.len() {
                free_from = start + wanted.len();
                places.push(first.content().start..if closed { last.next() } else { last.content().end });
            }
            if compared > MAX_COMPARED || (places.len() >= MAX_PLACES && !self.hunk.all) {
                break;
            }
        }
        self.settle(places, strategy)
    }

    /// Decides between the places a step found, and writes.
    fn settle(&self, places: Vec<Range<usize>>, strategy: Strategy) -> Option<Result<Placed, Refusal>> {
        if places.is_empty() {
            return None;
        }
        Some(choose(self.text, places, self.hunk, strategy).and_then(|spans| self.fit(spans, strategy)))
    }

    /// Fits the replacement to each place and writes.
    fn fit(&self, spans: Vec<Range<usize>>, strategy: Strategy) -> Result<Placed, Refusal> {
        let alignment = Alignment::new(self.hunk.search, self.hunk.replace);
        let given = self.hunk.search.lines().chain(self.hunk.replace.lines());
        let styles = Styles::of(given, self.text);
        let line_break = break_of(self.text);
        let mut pieces = Vec::with_capacity(spans.len());
        let mut note = None;
        for span in spans {
            let found = self.text.get(span.clone()).unwrap_or_default();
            let file: Vec<(&str, &str)> = segments(found);
            let line = |index: usize| {
                line_at(self.text, span.start).saturating_add(u32::try_from(index).unwrap_or(u32::MAX))
            };
            for index in alignment.touched() {
                let pair = (alignment.old().get(index), file.get(index));
                let (Some(old), Some((own, _))) = pair else { continue };
                if squeeze(old, Strings::Strict) != squeeze(own, Strings::Strict) {
                    let difference = report::difference(old, own);
                    return Err(Refusal::GuardedMismatch { line: line(index), difference });
                }
            }
            note = note.or_else(|| Some(report::note(strategy, alignment.old(), &file, line(0))));
            let matched = alignment.old().iter().copied().zip(file.iter().map(|(content, _)| *content));
            let indents = IndentMap::learn(matched, styles);
            let fitted = alignment.fit(found, &indents, line_break).map_err(|unfit| {
                let difference = report::unfit_indentation(&unfit.line);
                Refusal::GuardedMismatch { line: line(0), difference }
            })?;
            pieces.push((take_break(self.text, span, self.hunk), fitted));
        }
        write(self.text, pieces, strategy, note)
    }
}

/// The start of each occurrence of `needle` in `hay`, in linear time (Knuth, Morris and Pratt).
fn sequences(hay: &[u64], needle: &[u64]) -> Vec<usize> {
    let mut fallback = vec![0_usize; needle.len()];
    let at = |index: usize| needle.get(index).copied();
    let back = |fallback: &[usize], state: usize| {
        state.checked_sub(1).and_then(|last| fallback.get(last)).copied().unwrap_or(0)
    };
    let mut state = 0;
    for index in 1..needle.len() {
        while state > 0 && at(state) != at(index) {
            state = back(&fallback, state);
        }
        state += usize::from(at(state) == at(index));
        if let Some(slot) = fallback.get_mut(index) {
            *slot = state;
        }
    }
    let mut found = Vec::new();
    state = 0;
    for (index, key) in hay.iter().enumerate() {
        while state > 0 && at(state) != Some(*key) {
            state = back(&fallback, state);
        }
        state += usize::from(at(state) == Some(*key));
        if state == needle.len() && state > 0 {
            found.push(index + 1 - state);
            state = back(&fallback, state);
        }
    }
    found
}

/// Keeps all places, or the one that is meant.
fn choose(
    text: &str,
    places: Vec<Range<usize>>,
    hunk: &Hunk<'_>,
    strategy: Strategy,
) -> Result<Vec<Range<usize>>, Refusal> {
    if hunk.all || places.len() == 1 {
        return Ok(places);
    }
    let mut lines = Vec::with_capacity(places.len());
    let (mut counted, mut line) = (0, 1_u32);
    for place in &places {
        let between = text.get(counted..place.start).unwrap_or_default();
        line = line.saturating_add(line_at(between, between.len()) - 1);
        counted = place.start;
        lines.push(line);
    }
    if let Some(near) = hunk.near {
        let mut by_distance: Vec<(u32, &Range<usize>)> =
            lines.iter().map(|line| line.abs_diff(near)).zip(&places).collect();
        by_distance.sort_by_key(|(distance, _)| *distance);
        if let [(best, place), (next, _), ..] = by_distance.as_slice()
            && *next >= best.saturating_mul(CLEARLY_NEARER).max(1)
        {
            return Ok(vec![(*place).clone()]);
        }
    }
    Err(report::ambiguous(text, &places, lines, strategy))
}

/// Widens a place whose whole lines a text format deletes by one line break: the one after it, or the one before
/// where the file ends without.
fn take_break(text: &str, span: Range<usize>, hunk: &Hunk<'_>) -> Range<usize> {
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

/// The pieces, if they change anything.
fn write(
    text: &str,
    pieces: Vec<(Range<usize>, String)>,
    strategy: Strategy,
    note: Option<String>,
) -> Result<Placed, Refusal> {
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
    Ok(Placed { strategy, line, note, pieces })
}
