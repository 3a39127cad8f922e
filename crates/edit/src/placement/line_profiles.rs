//! Profiles of lines: sets of their three-byte pieces, for a quick estimate of similarity.

use crate::lines::Line;
use crate::outcome::truncate;

/// Only this many lines of a file are searched for similarity: time and memory stay small in
/// generated files.
pub(super) const MAX_PROFILED_LINES: usize = 200_000;
/// Maximum bytes of a line that are compared.
pub(super) const MAX_COMPARED_LINE_BYTES: usize = 400;
/// Lines are told of by their beginning, in bytes: what is said of one is shorter by far.
pub(super) const MAX_KEPT_LINE_BYTES: usize = 4 << 10;
/// Lines less alike than this don't vote.
pub(super) const MIN_VOTE_SIMILARITY: f32 = 0.5;

/// Profiles of a file's lines, for measuring similarity to search texts.
pub(super) struct LineProfiles<'a> {
    /// Its lines, as far as they are looked at.
    pub(super) lines: Vec<&'a str>,
    /// The profile of each line.
    pub(super) profiles: Vec<LineProfile>,
}

impl<'a> LineProfiles<'a> {
    pub(super) fn new(text: &'a str, lines: &[Line]) -> Self {
        let own =
            |line: &Line| truncate(text.get(line.content_range()).unwrap_or_default(), MAX_KEPT_LINE_BYTES);
        let lines: Vec<&str> = lines.iter().map(own).collect();
        let profiles = lines.iter().take(MAX_PROFILED_LINES).map(|line| LineProfile::new(line)).collect();
        Self { lines, profiles }
    }
}

/// A line boiled down to the set of its three-byte pieces, hashed into 128 bits.
fn trigram_signature(line: &str) -> u128 {
    let line = line.trim();
    let bytes = line.as_bytes();
    let bytes = bytes.get(..MAX_COMPARED_LINE_BYTES).unwrap_or(bytes);
    let bit = |hash: u32| 1_u128 << (hash.wrapping_mul(0x9e37_79b1) >> 25);
    if bytes.len() < 3 {
        return bytes.iter().fold(0, |set, byte| set | bit(u32::from(*byte)));
    }
    bytes
        .windows(3)
        .fold(0, |set, window| set | bit(window.iter().fold(0, |hash, byte| hash << 8 | u32::from(*byte))))
}

/// A signature with the number of its pieces, counted once.
#[derive(Clone, Copy)]
pub(super) struct LineProfile {
    set: u128,
    count: u32,
}

impl LineProfile {
    pub(super) fn new(line: &str) -> Self {
        let set = trigram_signature(line);
        Self { set, count: set.count_ones() }
    }

    /// Returns the similarity of two lines: Dice's coefficient.
    pub(super) fn similarity(self, other: Self) -> f32 {
        let both = self.count + other.count;
        if both == 0 { 1.0 } else { 2.0 * (self.set & other.set).count_ones() as f32 / both as f32 }
    }

    /// Returns true if the two can be alike enough to vote, by their numbers alone.
    pub(super) fn is_comparable(self, other: Self) -> bool {
        let (few, many) = (self.count.min(other.count), self.count.max(other.count));
        2.0 * few as f32 >= MIN_VOTE_SIMILARITY * (few + many) as f32
    }
}
