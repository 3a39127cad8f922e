//! Repetition detector: notices a reply that repeats the same text again and again.
//!
//! A weak model may say one sentence until its output limit or the run's time is used up. The stall
//! detector compares whole steps and so never sees the inside of a reply.
//!
//! The text is divided into units: a sentence, a line, or a piece of a long line. A repetition has
//! a period of up to [`MAX_PERIOD_UNITS`] units, so that a paragraph or a list that comes again is
//! found as a sentence is. For each period the detector counts how many units in a row equal the
//! unit one period before. It compares hashes, of which it keeps [`MAX_PERIOD_UNITS`], so its
//! memory is bounded and its work is a constant number of comparisons for each unit.
//!
//! Code and data repeat themselves for good reasons, and prose doesn't. So there are three
//! [`RepetitionBounds`]:
//!
//! - [`PROSE`]: the same words of prose. Gemini CLI ends a reply at 10 repetitions of 50
//!   characters.
//! - [`NUMBER_VARYING_PROSE_BOUNDS`]: prose that differs only in its numbers, such as a counter.
//!   Lists are written so too, hence the bounds are those of a list that nobody would read.
//! - [`DATA`]: everything else that is the same, character by character. Tables, test data and
//!   generated code within these bounds end no reply.
//!
//! Prose has at least [`MIN_PROSE_WORDS`] words in a period and consists mostly of letters. Fenced
//! and indented code, the edit blocks of the text protocol, rows of tables and lines that begin or
//! end as code does are no prose.

mod unit;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use unit::{TextUnit, UnitSplitter};

/// Maximum number of units in a period: some 60 lines or sentences, which is more than a screen.
const MAX_PERIOD_UNITS: usize = 64;
/// Minimum number of words in a period of prose. Three or fewer are also a cell, a name or a
/// bullet.
const MIN_PROSE_WORDS: u32 = 4;

/// The bounds from which on a repetition ends the reply. Both must be reached.
#[derive(Debug, Clone, Copy)]
struct RepetitionBounds {
    /// Minimum number of repetitions in a row.
    repetitions: usize,
    /// Minimum number of bytes after the second repetition, which are the bytes that are cut away.
    bytes: usize,
}

/// Bounds for prose: some 100 tokens of the same words, a dozen short sentences or six paragraphs.
/// Songs and oaths that repeat a line stay below.
const PROSE_BOUNDS: RepetitionBounds = RepetitionBounds { repetitions: 6, bytes: 400 };
/// Bounds for prose that differs only in its numbers: some 2,000 tokens.
const NUMBER_VARYING_PROSE_BOUNDS: RepetitionBounds = RepetitionBounds { repetitions: 32, bytes: 8 * 1024 };
/// Bounds for all other text: some 8,000 tokens, as much as many models may write in one reply.
const DATA_BOUNDS: RepetitionBounds = RepetitionBounds { repetitions: 64, bytes: 32 * 1024 };

/// Detects that a streamed text repeats itself. One detector reads one block of a reply.
#[derive(Debug)]
pub(crate) struct RepetitionDetector {
    splitter: UnitSplitter,
    /// The last units, the newest at the back.
    units: VecDeque<TextUnit>,
    /// The repetitions of each period, from 1 unit on.
    repeats: Vec<PeriodRepeats>,
}

/// The repetitions of one period that end with the newest unit.
#[derive(Debug, Clone, Copy, Default)]
struct PeriodRepeats {
    /// Units that equal the unit one period before.
    same: RepeatCount,
    /// Units that equal the unit one period before but for numbers.
    same_shape: RepeatCount,
}

#[derive(Debug, Clone, Copy, Default)]
struct RepeatCount {
    /// Number of units in a row that equal the unit one period before.
    units: usize,
    /// The offset where the second repetition ends.
    second_end: usize,
}

impl RepeatCount {
    fn count(&mut self, equal: bool, period: usize, end: usize) {
        self.units = if equal { self.units.saturating_add(1) } else { 0 };
        if self.units == period {
            self.second_end = end;
        }
    }

    fn reaches(&self, bounds: RepetitionBounds, period: usize, end: usize) -> bool {
        // The first repetition has nothing before it to be equal to.
        self.units >= period.saturating_mul(bounds.repetitions.saturating_sub(1))
            && end.saturating_sub(self.second_end) >= bounds.bytes
    }
}

impl Default for RepetitionDetector {
    fn default() -> Self {
        Self {
            splitter: UnitSplitter::default(),
            units: VecDeque::with_capacity(MAX_PERIOD_UNITS),
            repeats: vec![PeriodRepeats::default(); MAX_PERIOD_UNITS],
        }
    }
}

impl RepetitionDetector {
    /// Reads the next piece of the text. Once the text goes in circles, returns the offset in bytes
    /// where its second repetition ends.
    pub(crate) fn push(&mut self, piece: &str) -> Option<usize> {
        for character in piece.chars() {
            if let Some(unit) = self.splitter.push(character)
                && let Some(second_end) = self.observe_unit(unit)
            {
                return Some(second_end);
            }
        }
        None
    }

    fn observe_unit(&mut self, unit: TextUnit) -> Option<usize> {
        let end = unit.end;
        let earlier = self.units.iter().rev();
        for ((place, before), repeats) in earlier.enumerate().zip(&mut self.repeats) {
            let period = place.saturating_add(1);
            repeats.same.count(before.hash == unit.hash, period, end);
            repeats.same_shape.count(before.shape == unit.shape, period, end);
        }
        if self.units.len() >= MAX_PERIOD_UNITS {
            self.units.pop_front();
        }
        self.units.push_back(unit);
        self.find_repetition(end)
    }

    /// Returns the end of the second repetition of the shortest period that repeats often enough.
    fn find_repetition(&self, end: usize) -> Option<usize> {
        // A multiple of a period repeats too, so only the shortest tells whether it is prose.
        let shortest = |repeats_of: fn(&PeriodRepeats) -> RepeatCount, minimum: RepetitionBounds| {
            let all = self
                .repeats
                .iter()
                .enumerate()
                .map(|(place, all)| (place.saturating_add(1), repeats_of(all)));
            let often = RepetitionBounds { bytes: 0, ..minimum };
            all.into_iter().find(|(period, repeats)| repeats.reaches(often, *period, end))
        };
        if let Some((period, repeats)) = shortest(|all| all.same, PROSE_BOUNDS) {
            let bounds = if self.is_prose(period) { PROSE_BOUNDS } else { DATA_BOUNDS };
            if repeats.reaches(bounds, period, end) {
                return Some(repeats.second_end);
            }
        }
        let (period, repeats) = shortest(|all| all.same_shape, NUMBER_VARYING_PROSE_BOUNDS)?;
        (self.is_prose(period) && repeats.reaches(NUMBER_VARYING_PROSE_BOUNDS, period, end))
            .then_some(repeats.second_end)
    }

    /// Returns true if the last units of a period have words, and what is no code consists mostly
    /// of letters.
    fn is_prose(&self, period: usize) -> bool {
        let (mut words, mut letters, mut characters) = (0_u32, 0_u32, 0_u32);
        for unit in self.units.iter().rev().take(period).filter(|unit| !unit.is_code) {
            words = words.saturating_add(unit.words);
            letters = letters.saturating_add(unit.letters);
            characters = characters.saturating_add(unit.characters);
        }
        // Prose has some 95 % letters, and a bullet with a name in it 80 %. Code has about 70 %.
        words >= MIN_PROSE_WORDS && letters.saturating_mul(4) >= characters.saturating_mul(3)
    }
}
