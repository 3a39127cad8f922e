//! The steps that overlook how a text is written down: line endings, blanks, typography,
//! indentation, blank lines.

use crate::lines::split_with_breaks;
use crate::outcome::{MAX_AMBIGUOUS_PLACES, Strategy};
use crate::placement::hunk::Hunk;
use crate::placement::indexed_text::Haystack;
use crate::placement::matches::{Match, Matches};
use crate::placement::normalize::{LineReading, MappedText, hash_without_blanks};
use crate::placement::occurrences::{find_occurrences, has_blank_lines_at_edges};

/// Maximum number of line comparisons in overlapping windows; reached only in files that repeat one
/// line.
const MAX_COMPARISONS: usize = 4_000_000;

/// The places that the strictest of these steps finds.
pub(super) fn locate_normalized<'a>(haystack: &Haystack<'_>, hunk: &Hunk<'a>) -> Option<Matches<'a>> {
    let found = |strategy, places: Vec<Match>, hunk: &Hunk<'a>| {
        (!places.is_empty()).then_some(Matches { strategy, places, hunk: *hunk })
    };
    let even = LineWindows::all_lines(haystack, hunk);
    let by_lines = |lines: &LineWindows<'_, '_, 'a>, reading, strategy| {
        found(strategy, lines.matching_places(reading), lines.hunk)
    };
    let edges = strip_blank_edges(hunk.search, hunk.replace);
    let edges = edges.map(|(search, replace)| Hunk { search, replace, ..*hunk });
    let bare = edges.unwrap_or(*hunk);
    let readings = [LineReading::TrailingWhitespace, LineReading::Indentation, LineReading::InnerWhitespace];
    let loose = found(Strategy::LineEndings, locate_in_mapped_text(haystack, hunk, false), hunk)
        .or_else(|| by_lines(&even, LineReading::TrailingWhitespace, Strategy::TrailingWhitespace))
        .or_else(|| found(Strategy::Typography, locate_in_mapped_text(haystack, hunk, true), hunk))
        .or_else(|| by_lines(&even, LineReading::Indentation, Strategy::Indentation))
        .or_else(|| by_lines(&even, LineReading::InnerWhitespace, Strategy::InnerWhitespace))
        .or_else(|| {
            let edges = LineWindows::all_lines(haystack, edges.as_ref()?);
            readings.into_iter().find_map(|reading| by_lines(&edges, reading, Strategy::BlankEdges))
        })
        .or_else(|| {
            let lines = LineWindows::nonblank_lines(haystack, &bare)?;
            readings.into_iter().find_map(|reading| by_lines(&lines, reading, Strategy::BlankLines))
        })?;
    Some(add_places_as_deep(haystack, &bare, loose))
}

/// Adds the places that are indented as the search text is and have blank lines elsewhere, where
/// the others are indented otherwise: either may be meant.
fn add_places_as_deep<'a>(haystack: &Haystack<'_>, hunk: &Hunk<'a>, mut found: Matches<'a>) -> Matches<'a> {
    let overlooks_indentation = matches!(
        found.strategy,
        Strategy::Indentation | Strategy::InnerWhitespace | Strategy::BlankEdges | Strategy::BlankLines
    );
    if !overlooks_indentation || hunk.all {
        return found;
    }
    let as_deep = LineWindows::nonblank_lines(haystack, hunk)
        .map(|lines| lines.matching_places(LineReading::TrailingWhitespace))
        .unwrap_or_default();
    let is_known = |place: &Match| {
        found
            .places
            .iter()
            .any(|known| known.span.start < place.span.end && place.span.start < known.span.end)
    };
    let more: Vec<Match> = as_deep.into_iter().filter(|place| !is_known(place)).collect();
    found.places.extend(more);
    found.places.sort_by_key(|place| place.span.start);
    found
}

/// Looks for the search text anywhere, also within lines, with line endings (and typography)
/// overlooked.
pub(super) fn locate_within_text(text: &str, hunk: &Hunk<'_>) -> Vec<Match> {
    locate_as_read(&MappedText::new(text, false), hunk, false)
}

/// The same in a text that is looked up often.
fn locate_in_mapped_text(haystack: &Haystack<'_>, hunk: &Hunk<'_>, typography: bool) -> Vec<Match> {
    let both = [haystack.text, hunk.search];
    let possible = if typography {
        both.iter().any(|text| !text.is_ascii())
    } else {
        both.iter().any(|text| memchr::memchr(b'\r', text.as_bytes()).is_some())
    };
    if possible { locate_as_read(haystack.mapped_text(typography), hunk, typography) } else { Vec::new() }
}

fn locate_as_read(file: &MappedText<'_>, hunk: &Hunk<'_>, typography: bool) -> Vec<Match> {
    let search = MappedText::new(hunk.search, typography);
    if search.text.trim().is_empty() {
        return Vec::new();
    }
    let keep =
        |start: &usize| !hunk.whole_lines || has_blank_lines_at_edges(&file.text, *start, &search.text);
    let starts = find_occurrences(&file.text, &search.text, hunk.all, keep);
    let ranges = starts.into_iter().map(|start| start..start + search.text.len());
    ranges.filter_map(|range| file.original_range(range)).map(Match::line_by_line).collect()
}

/// Search and replacement without the blank lines that the search text has at its edges, and the
/// replacement without as many; `None` where the search text has none.
fn strip_blank_edges<'a>(search: &'a str, replacement: &'a str) -> Option<(&'a str, &'a str)> {
    let (before, after, inner) = split_blank_edges(search);
    if before + after == 0 {
        return None;
    }
    let mut rest = replacement;
    for _ in 0..before {
        let Some((_, more)) = rest.split_once('\n').filter(|(line, _)| line.trim().is_empty()) else { break };
        rest = more;
    }
    let mut rest = rest.strip_suffix('\n').map_or(rest, |rest| rest.strip_suffix('\r').unwrap_or(rest));
    for _ in 0..after {
        let Some((more, _)) = rest.rsplit_once('\n').filter(|(_, line)| line.trim().is_empty()) else {
            break;
        };
        rest = more.strip_suffix('\r').unwrap_or(more);
    }
    Some((inner, rest))
}

/// Returns the numbers of blank lines at a text's beginning and end, and the text between them
/// without a final line break.
fn split_blank_edges(text: &str) -> (usize, usize, &str) {
    let lead = text.len() - text.trim_start().len();
    let from = text.get(..lead).and_then(|blank| blank.rfind('\n')).map_or(0, |at| at + 1);
    let end = text.trim_end().len();
    let to = text.get(end..).and_then(|blank| blank.find('\n')).map_or(text.len(), |at| end + at).max(from);
    let count = |part: Option<&str>| part.unwrap_or_default().matches('\n').count();
    let after = text.get(to..).unwrap_or_default();
    let after = after.strip_prefix('\n').map_or(0, |rest| rest.split_inclusive('\n').count());
    let inner = text.get(from..to).map_or(text, |inner| inner.strip_suffix('\r').unwrap_or(inner));
    (count(text.get(..from)), after, inner)
}

/// A search text's lines and the lines of the file where they may be.
struct LineWindows<'g, 't, 'a> {
    haystack: &'g Haystack<'t>,
    hunk: &'g Hunk<'a>,
    wanted: Vec<&'a str>,
    /// The file's lines that are looked at; `None` for all of them.
    among: Option<Vec<usize>>,
    /// The candidate starts among those lines, with all blanks and typography ignored: no stricter
    /// comparison can match elsewhere.
    windows: Vec<usize>,
}

impl<'g, 't, 'a> LineWindows<'g, 't, 'a> {
    fn all_lines(haystack: &'g Haystack<'t>, hunk: &'g Hunk<'a>) -> Self {
        let mut wanted: Vec<&str> =
            split_with_breaks(hunk.search).into_iter().map(|(line, _)| line).collect();
        if hunk.search.ends_with('\n') {
            wanted.pop();
        }
        let needle: Vec<u64> = wanted.iter().map(|line| hash_without_blanks(line)).collect();
        let windows = find_subsequences(&haystack.keys, &needle);
        Self { haystack, hunk, wanted, among: None, windows }
    }

    /// The lines that aren't blank; `None` where blank lines within the text make no difference.
    fn nonblank_lines(haystack: &'g Haystack<'t>, hunk: &'g Hunk<'a>) -> Option<Self> {
        let all = Self::all_lines(haystack, hunk);
        let wanted: Vec<&str> = all.wanted.iter().copied().filter(|line| !line.trim().is_empty()).collect();
        if wanted.len() < 2 {
            return None;
        }
        let blank = hash_without_blanks("");
        let among: Vec<usize> =
            (0..haystack.lines.len()).filter(|index| haystack.keys.get(*index) != Some(&blank)).collect();
        let keys: Vec<u64> = among.iter().filter_map(|index| haystack.keys.get(*index).copied()).collect();
        let needle: Vec<u64> = wanted.iter().map(|line| hash_without_blanks(line)).collect();
        let windows = find_subsequences(&keys, &needle);
        Some(Self { wanted, among: Some(among), windows, ..all })
    }

    /// The places where all lines are the same under a reading.
    fn matching_places(&self, reading: LineReading) -> Vec<Match> {
        let closed = self.hunk.search.ends_with('\n');
        let own = |index: usize| match &self.among {
            Some(among) => among.get(index).copied().unwrap_or(usize::MAX),
            None => index,
        };
        let normal: Vec<_> = self.wanted.iter().map(|wanted| reading.normalize_line(wanted)).collect();
        let mut places: Vec<Match> = Vec::new();
        let (mut free_from, mut compared) = (0, 0);
        for start in &self.windows {
            if self.hunk.all && *start < free_from {
                continue;
            }
            let end = start + self.wanted.len();
            let lines = (*start..end).zip(&normal);
            let alike = lines
                .take_while(|(at, wanted)| {
                    reading.normalize_line(self.haystack.line_content(own(*at))) == **wanted
                })
                .count();
            compared += alike + 1;
            if alike == self.wanted.len() {
                free_from = end;
                let span = self.haystack.bytes_of_lines(own(*start)..own(end.saturating_sub(1)) + 1, closed);
                places.push(Match { span, pairs: self.pair_lines(own(*start), &own, *start) });
            }
            if compared > MAX_COMPARISONS || (places.len() >= MAX_AMBIGUOUS_PLACES && !self.hunk.all) {
                break;
            }
        }
        places
    }

    /// Returns the corresponding lines if blank lines are ignored: the nth blank line after a line
    /// for the nth there.
    fn pair_lines(
        &self,
        first: usize,
        own: &impl Fn(usize) -> usize,
        start: usize,
    ) -> Option<Vec<Option<usize>>> {
        self.among.as_ref()?;
        let mut pairs = Vec::new();
        let (mut nth, mut next) = (0, first);
        let mut all = split_with_breaks(self.hunk.search);
        if self.hunk.search.ends_with('\n') {
            all.pop();
        }
        for (line, _) in all {
            if line.trim().is_empty() {
                let is_blank = next < own(start + nth) && nth > 0;
                pairs.push(is_blank.then(|| next - first));
                next += usize::from(is_blank);
            } else {
                let at = own(start + nth);
                pairs.push(Some(at - first));
                next = at + 1;
                nth += 1;
            }
        }
        Some(pairs)
    }
}

/// The start of each occurrence of `needle` in `hay`, in linear time (Knuth, Morris and Pratt).
pub(super) fn find_subsequences(hay: &[u64], needle: &[u64]) -> Vec<usize> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_blank_lines_go_as_the_search_text_has() {
        let cases = [
            ("\na\n", "\nb\n", Some(("a", "b"))),
            ("\na", "\n\nb", Some(("a", "\nb"))),
            ("a\n\n", "b\n\nc\n\n", Some(("a", "b\n\nc"))),
            ("a\n \n", "b", Some(("a", "b"))),
            ("\n\na\n", "b\n", Some(("a", "b"))),
            ("a\n", "\nb\n", None),
        ];
        for (search, replacement, expected) in cases {
            assert_eq!(strip_blank_edges(search, replacement), expected, "{search:?} {replacement:?}");
        }
    }
}
