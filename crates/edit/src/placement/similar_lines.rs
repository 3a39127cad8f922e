//! Finding a search text whose lines are alike, not equal, to those of one place.
//!
//! The place is found by aligning lines (Needleman and Wunsch, within a band) whose similarity is
//! Levenshtein's. That alone would be a guess; what makes it safe is what must hold besides: the
//! first and the last line are the file's, every line that the edit changes is the file's, no other
//! place is nearly as like, and no word that the file has elsewhere is missing here. The result is
//! transplanted: only changed lines are written.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use memchr::memmem;

use crate::lines::split_with_breaks;
use crate::outcome::{PlacedEdit, Refusal, Strategy};
use crate::placement::hunk::Hunk;
use crate::placement::indexed_text::Haystack;
use crate::placement::matches::{Match, Matches};
use crate::placement::normalize::hash_without_blanks;
use crate::placement::tokens::{LineParts, is_word_char, words};
use crate::placement::{artifacts, resolve, tie_breaking};

/// Fewer lines than this can be like anything.
pub(super) const MIN_SEARCH_LINES: usize = 3;
/// Longer search texts aren't aligned: who quotes that much quotes it right, or has another version
/// of the file.
const MAX_SEARCH_LINES: usize = 400;
/// A place less like the search text than this isn't taken. It is what the alignments of other
/// engines ask of a line or a place (zed 0.8 of the lines, Roo and gemini 0.9 of the characters);
/// the changed lines must be equal in any case.
pub(super) const MIN_SIMILARITY: f32 = 0.8;
/// The next best place must be less like the search text by this.
const MIN_SIMILARITY_LEAD: f32 = 0.1;
/// Lines less alike than this don't stand for each other.
const MIN_LINE_SIMILARITY: f32 = 0.55;
/// Two remarks stand for each other whatever their words.
const COMMENT_SIMILARITY: f32 = 0.7;
/// Two lines that differ in a remark at their end stand for each other at least so well.
const SAME_CODE_SIMILARITY: f32 = 0.9;
/// Maximum number of starts that are aligned.
const MAX_ALIGNED_STARTS: usize = 8;
/// A line that a file has more often than this says little about where a text is.
const MAX_RARE_OCCURRENCES: usize = 32;
/// Maximum weight of a line, in characters.
const MAX_LINE_WEIGHT: usize = 60;
/// Maximum bytes of a line that are compared.
const MAX_MEASURED_LINE_BYTES: usize = 300;
/// Maximum number of compared pairs of bytes in all: some milliseconds. Where that isn't enough
/// nothing is placed, because a better place may be among those that weren't compared.
const MAX_COMPARED_BYTE_PAIRS: usize = 1 << 19;
/// Minimum cost of comparing two lines, in pairs of bytes.
const MIN_BYTE_PAIRS_PER_LINE: usize = 100;
/// A word that the file has at most this often elsewhere tells one place from another.
const MAX_DISTINCTIVE_OCCURRENCES: usize = 5;
/// Maximum number of missing words searched elsewhere.
const MAX_MISSING_WORDS: usize = 16;
/// Maximum number of words searched in the region.
const MAX_REGION_WORDS: usize = 2_000;

/// The one place that is like enough, if nothing speaks against it.
pub(super) fn find_similar(haystack: &Haystack<'_>, hunk: &Hunk<'_>) -> Option<Result<PlacedEdit, Refusal>> {
    let wanted = SearchLines::from_hunk(hunk)?;
    let mut places: Vec<AlignedRegion> = Vec::new();
    let mut work = MAX_COMPARED_BYTE_PAIRS;
    for start in wanted.candidate_starts(haystack) {
        places.extend(wanted.align_from(haystack, start, &mut work));
    }
    if work == 0 {
        return None;
    }
    places.sort_by(|one, other| other.score.total_cmp(&one.score));
    let best = places.first().filter(|best| best.score >= MIN_SIMILARITY)?;
    let near: Vec<&AlignedRegion> =
        places.iter().filter(|place| place.score > best.score - MIN_SIMILARITY_LEAD).collect();
    let mut spans: Vec<Range<usize>> = near.iter().map(|place| place.span(haystack, hunk)).collect();
    spans.sort_by_key(|span| span.start);
    let chosen = match tie_breaking::select_spans(haystack.text, spans, hunk, Strategy::Similarity) {
        Ok(chosen) => chosen.into_iter().next()?,
        Err(refusal) => return Some(Err(refusal)),
    };
    let place = near.into_iter().find(|place| place.span(haystack, hunk) == chosen)?;
    if !hunk.allow.differences && wanted.has_word_from_elsewhere(haystack, place) {
        return None;
    }
    if !hunk.allow.differences && wanted.has_extra_escapes(haystack, place) {
        return None;
    }
    let found = Match { span: chosen, pairs: Some(place.pairs.clone()) };
    let matches = Matches { strategy: Strategy::Similarity, places: vec![found], hunk: *hunk };
    match resolve::resolve_matches(haystack.text, &matches) {
        // The nearest region tells more than that it isn't near enough.
        Err(Refusal::GuardedMismatch { .. }) => None,
        resolved => Some(resolved),
    }
}

/// A search text's lines.
struct SearchLines<'a> {
    lines: Vec<&'a str>,
    keys: Vec<u64>,
    weights: Vec<f32>,
    /// True if the edit keeps the line.
    kept: Vec<bool>,
    /// The first and the last line that aren't blank.
    first: usize,
    last: usize,
}

/// A place with its lines paired.
struct AlignedRegion {
    start: usize,
    end: usize,
    score: f32,
    pairs: Vec<Option<usize>>,
}

impl AlignedRegion {
    fn span(&self, haystack: &Haystack<'_>, hunk: &Hunk<'_>) -> Range<usize> {
        haystack.bytes_of_lines(self.start..self.end, hunk.search.ends_with('\n'))
    }
}

impl<'a> SearchLines<'a> {
    fn from_hunk(hunk: &Hunk<'a>) -> Option<Self> {
        let mut lines: Vec<&str> = split_with_breaks(hunk.search).into_iter().map(|(line, _)| line).collect();
        if hunk.search.ends_with('\n') {
            lines.pop();
        }
        let first = lines.iter().position(|line| !line.trim().is_empty())?;
        let last = lines.iter().rposition(|line| !line.trim().is_empty())?;
        let count = lines.iter().filter(|line| !line.trim().is_empty()).count();
        if hunk.all || count < MIN_SEARCH_LINES || lines.len() > MAX_SEARCH_LINES {
            return None;
        }
        let keys = lines.iter().map(|line| hash_without_blanks(line)).collect();
        let weights = lines.iter().map(|line| line_weight(line)).collect();
        let new: HashSet<&str> = hunk.replace.lines().map(str::trim).collect();
        let kept = lines.iter().map(|line| new.contains(line.trim())).collect();
        Some(Self { lines, keys, weights, kept, first, last })
    }

    fn key_of_line(&self, index: usize) -> Option<u64> {
        self.keys.get(index).copied()
    }

    /// Returns the maximum shift of lines against each other.
    fn alignment_band(&self) -> usize {
        (self.lines.len() / 10).clamp(2, 20)
    }

    /// The lines that are the first one, those first around which most of the others are.
    fn candidate_starts(&self, haystack: &Haystack<'_>) -> Vec<usize> {
        let mut at: HashMap<u64, Vec<usize>> = HashMap::new();
        for (index, key) in self.keys.iter().enumerate().take(self.last + 1).skip(self.first) {
            if self.weights.get(index).is_some_and(|weight| *weight > 0.0) {
                at.entry(*key).or_default().push(index - self.first);
            }
        }
        let mut hits: HashMap<u64, Vec<usize>> = HashMap::new();
        let mut starts = Vec::new();
        for (index, key) in haystack.keys.iter().enumerate() {
            if self.key_of_line(self.first) == Some(*key) {
                starts.push(index);
            }
            if at.contains_key(key) {
                let seen = hits.entry(*key).or_default();
                if seen.len() <= MAX_RARE_OCCURRENCES {
                    seen.push(index);
                }
            }
        }
        // Each rare line says where the text would begin.
        let mut votes: Vec<usize> = Vec::new();
        for (key, seen) in hits.iter().filter(|(_, seen)| seen.len() <= MAX_RARE_OCCURRENCES) {
            let offsets = at.get(key).map(Vec::as_slice).unwrap_or_default();
            for (line, offset) in seen
                .iter()
                .flat_map(|line| offsets.iter().take(MAX_RARE_OCCURRENCES).map(move |offset| (line, offset)))
            {
                votes.extend(line.checked_sub(*offset));
            }
        }
        votes.sort_unstable();
        let band = self.alignment_band();
        let around = |start: usize| {
            votes.partition_point(|vote| *vote <= start + band)
                - votes.partition_point(|vote| *vote + band < start)
        };
        let mut ranked: Vec<(usize, usize)> =
            starts.into_iter().map(|start| (around(start), start)).collect();
        if ranked.len() > MAX_ALIGNED_STARTS {
            ranked.retain(|(votes, _)| *votes > 0);
        }
        ranked.sort_by_key(|(votes, start)| (std::cmp::Reverse(*votes), *start));
        ranked.truncate(MAX_ALIGNED_STARTS);
        ranked.into_iter().map(|(_, start)| start).collect()
    }

    /// Aligns the search text with the lines from `start` on; its last line must be one of theirs.
    fn align_from(&self, haystack: &Haystack<'_>, start: usize, work: &mut usize) -> Option<AlignedRegion> {
        let (rows, band) = (self.last - self.first + 1, self.alignment_band());
        let width = 2 * band + 1;
        let total: f32 = self.weights.get(self.first..=self.last)?.iter().sum();
        // Cell (row, column): the best score where `row` wanted lines and `row + column - band` of
        // the file's are used.
        let mut scores = vec![vec![f32::NEG_INFINITY; width]; rows + 1];
        let mut steps = vec![vec![AlignmentStep::Start; width]; rows + 1];
        *scores.first_mut()?.get_mut(band)? = 0.0;
        for row in 0..=rows {
            for column in 0..width {
                let Some(used) = (row + column).checked_sub(band) else { continue };
                let mut best = (f32::NEG_INFINITY, AlignmentStep::Start);
                if row == 0 && used == 0 {
                    continue;
                }
                let get = |row: usize, column: usize| {
                    scores.get(row).and_then(|line| line.get(column)).copied().unwrap_or(f32::NEG_INFINITY)
                };
                let mut offer = |score: f32, step: AlignmentStep| {
                    if score > best.0 {
                        best = (score, step);
                    }
                };
                if row > 0 && used > 0 && get(row - 1, column).is_finite() {
                    let (wanted, own) = (self.first + row - 1, start + used - 1);
                    let like = self.similarity_of_lines(haystack, wanted, own, work);
                    if like >= MIN_LINE_SIMILARITY {
                        let weight = self.weights.get(wanted).copied().unwrap_or_default();
                        offer(get(row - 1, column) + like * weight, AlignmentStep::Pair);
                    }
                }
                // The first and the last line are always paired.
                if row > 1 && row < rows {
                    offer(get(row - 1, column + 1), AlignmentStep::Missing);
                }
                if row > 0 && row < rows && used > 1 && column > 0 {
                    offer(
                        get(row, column - 1) - extra_line_penalty(haystack.line_content(start + used - 1)),
                        AlignmentStep::Extra,
                    );
                }
                if let (Some(score), Some(step)) = (
                    scores.get_mut(row).and_then(|line| line.get_mut(column)),
                    steps.get_mut(row).and_then(|line| line.get_mut(column)),
                ) {
                    (*score, *step) = best;
                }
            }
        }
        let ending = |column: &usize| {
            (rows + column).checked_sub(band + 1).is_some_and(|used| {
                haystack.keys.get(start + used) == self.keys.get(self.last)
                    && start + used < haystack.lines.len()
            })
        };
        let last = scores.last()?;
        let column = (0..width).filter(ending).max_by(|one, other| {
            let score = |column: &usize| last.get(*column).copied().unwrap_or(f32::NEG_INFINITY);
            score(one).total_cmp(&score(other))
        })?;
        let score = last.get(column).copied().filter(|score| score.is_finite())?;
        let pairs = self.trace_pairs(&steps, column, band)?;
        let end = start + (rows + column).checked_sub(band)?;
        Some(AlignedRegion { start, end, score: score / total.max(1.0), pairs })
    }

    /// Returns the corresponding lines by tracing an alignment back from its end.
    fn trace_pairs(
        &self,
        steps: &[Vec<AlignmentStep>],
        mut column: usize,
        band: usize,
    ) -> Option<Vec<Option<usize>>> {
        let mut pairs = vec![None; self.lines.len()];
        let mut row = steps.len() - 1;
        while row > 0 {
            match steps.get(row)?.get(column)? {
                AlignmentStep::Start => return None,
                AlignmentStep::Pair => {
                    *pairs.get_mut(self.first + row - 1)? = Some((row + column).checked_sub(band + 1)?);
                    row -= 1;
                }
                AlignmentStep::Missing => {
                    row -= 1;
                    column += 1;
                }
                AlignmentStep::Extra => column = column.checked_sub(1)?,
            }
        }
        Some(pairs)
    }

    /// Returns the similarity of a search text's line and a file's line, from 0 to 1.
    fn similarity_of_lines(
        &self,
        haystack: &Haystack<'_>,
        wanted: usize,
        own: usize,
        work: &mut usize,
    ) -> f32 {
        if own >= haystack.lines.len() {
            return 0.0;
        }
        if self.keys.get(wanted) == haystack.keys.get(own) {
            return 1.0;
        }
        if wanted == self.first || wanted == self.last {
            return 0.0;
        }
        let (one, other) =
            (self.lines.get(wanted).map_or("", |line| line.trim()), haystack.line_content(own).trim());
        if one.is_empty() || other.is_empty() {
            return 0.0;
        }
        // Never 1: they are not equal.
        let like = line_similarity(one, other, work).min(0.99);
        if like >= SAME_CODE_SIMILARITY || self.kept.get(wanted) != Some(&true) {
            return like;
        }
        // In a line that stays, what a remark says doesn't tell where it is.
        match (LineParts::split_line(one).code.trim(), LineParts::split_line(other).code.trim()) {
            ("", "") => like.max(COMMENT_SIMILARITY),
            (one, other) if one == other => like.max(SAME_CODE_SIMILARITY),
            _ => like,
        }
    }

    /// Returns true if a line is the file's but for a layer of escapes: then the new lines have
    /// that layer as well.
    fn has_extra_escapes(&self, haystack: &Haystack<'_>, place: &AlignedRegion) -> bool {
        let lines = self.lines.iter().zip(&self.keys).zip(&place.pairs);
        let mut differing = lines.filter_map(|((line, key), at)| {
            let own = haystack.keys.get(place.start + (*at)?)?;
            (own != key).then_some((*line, *own))
        });
        differing.any(|(line, own)| {
            artifacts::unescaped_readings(line).iter().any(|read| hash_without_blanks(read) == own)
        })
    }

    /// Returns true if the search text has a word that is missing at the place and that the file
    /// has elsewhere, though seldom.
    fn has_word_from_elsewhere(&self, haystack: &Haystack<'_>, place: &AlignedRegion) -> bool {
        let inside =
            haystack.text.get(haystack.bytes_of_lines(place.start..place.end, false)).unwrap_or_default();
        let differing =
            self.lines.iter().zip(&self.keys).zip(&place.pairs).filter(|((_, key), at)| {
                at.is_none_or(|at| haystack.keys.get(place.start + at) != Some(*key))
            });
        let differing = differing
            .map(|((line, _), _)| *line)
            .filter(|line| !LineParts::split_line(line).code.trim().is_empty());
        let missing =
            differing.flat_map(|line| words(LineParts::split_line(line).code)).filter(|word| word.len() > 2);
        missing
            .take(MAX_REGION_WORDS)
            .filter(|word| count_words(inside, word, 1) == 0)
            .take(MAX_MISSING_WORDS)
            .any(|word| {
                (1..=MAX_DISTINCTIVE_OCCURRENCES).contains(&count_words(
                    haystack.text,
                    word,
                    MAX_DISTINCTIVE_OCCURRENCES + 1,
                ))
            })
    }
}

/// The last step of an alignment at a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AlignmentStep {
    Start,
    Pair,
    Missing,
    Extra,
}

/// Returns a line's weight: its characters, up to a bound; blank lines weigh nothing.
fn line_weight(line: &str) -> f32 {
    let len = line.trim().len();
    if len == 0 { 0.0 } else { len.clamp(4, MAX_LINE_WEIGHT) as f32 }
}

/// Returns the penalty for a line that only the file has: a remark, which people add beside the
/// code, less than code.
fn extra_line_penalty(line: &str) -> f32 {
    line_weight(line) / if LineParts::split_line(line).code.trim().is_empty() { 4.0 } else { 2.0 }
}

/// Counts a word's whole occurrences in a text, up to a limit.
fn count_words(text: &str, word: &str, limit: usize) -> usize {
    let bounded = |at: &usize| {
        let before = text.get(..*at).and_then(|before| before.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(is_word_char) && !after.is_some_and(is_word_char)
    };
    memmem::find_iter(text.as_bytes(), word).take(limit * 50).filter(bounded).take(limit).count()
}

/// One minus Levenshtein's distance by the longer line's length, in bytes; 0 where it would be too
/// low to matter, or where the work is used up.
fn line_similarity(one: &str, other: &str, work: &mut usize) -> f32 {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let (one, other) = (
        one.get(..MAX_MEASURED_LINE_BYTES).unwrap_or(one),
        other.get(..MAX_MEASURED_LINE_BYTES).unwrap_or(other),
    );
    *work = work.saturating_sub(MIN_BYTE_PAIRS_PER_LINE);
    let longest = one.len().max(other.len());
    let most = longest - ((longest as f32) * MIN_LINE_SIMILARITY) as usize;
    if one.len().abs_diff(other.len()) > most {
        return 0.0;
    }
    let head = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let (one, other) = (one.get(head..).unwrap_or_default(), other.get(head..).unwrap_or_default());
    let tail = one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other).count();
    let (one, other) = (
        one.get(..one.len() - tail).unwrap_or_default(),
        other.get(..other.len() - tail).unwrap_or_default(),
    );
    let cells = (one.len() + 1) * (other.len() + 1);
    if cells > *work {
        *work = 0;
        return 0.0;
    }
    *work -= cells;
    let distance = strsim::generic_levenshtein(&ByteSequence(one), &ByteSequence(other));
    if distance > most { 0.0 } else { 1.0 - distance as f32 / longest.max(1) as f32 }
}

/// Bytes, as the distance wants them.
struct ByteSequence<'a>(&'a [u8]);

impl<'b> IntoIterator for &ByteSequence<'b> {
    type Item = &'b u8;
    type IntoIter = std::slice::Iter<'b, u8>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
