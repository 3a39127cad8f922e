//! A file's lines as hunks are compared with them.

use std::cell::OnceCell;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;

use memchr::memmem;

use crate::edit::{LineKind, PatchLine};
use crate::outcome::{MAX_AMBIGUOUS_PLACES, Strategy};
use crate::placement::normalize::plain_chars;

/// Maximum number of line comparisons for one hunk; reached only in files that repeat one line.
const MAX_COMPARISONS: usize = 4_000_000;

/// Minimum number of letters and digits that make lines distinctive: fewer occur everywhere.
const MIN_DISTINCTIVE_CHARS: usize = 10;

/// The differences that a comparison of two lines ignores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineComparison {
    /// Nothing.
    Exact,
    /// Carriage returns before line feeds, and a byte order mark.
    Breaks,
    /// These and blanks at the end.
    Trailing,
    /// These and the typographic form of quotes, dashes and spaces.
    Typography,
}

impl LineComparison {
    /// From the strictest to the loosest.
    pub(crate) const ALL: [Self; 4] = [Self::Exact, Self::Breaks, Self::Trailing, Self::Typography];

    /// Returns true if two lines are the same, but for what is overlooked.
    fn are_equal(self, one: &str, other: &str) -> bool {
        let (one, other) = (self.strip_ignored(one), self.strip_ignored(other));
        one == other
            || (self == Self::Typography
                && !(one.is_ascii() && other.is_ascii())
                && one.chars().flat_map(plain_chars).eq(other.chars().flat_map(plain_chars)))
    }

    pub(crate) fn strategy(self) -> Strategy {
        match self {
            Self::Exact => Strategy::Exact,
            Self::Breaks => Strategy::LineEndings,
            Self::Trailing => Strategy::TrailingWhitespace,
            Self::Typography => Strategy::Typography,
        }
    }

    /// A line, with what is overlooked taken off.
    pub(crate) fn strip_ignored(self, line: &str) -> &str {
        let plain = || line.strip_suffix('\r').unwrap_or(line);
        match self {
            Self::Exact => line,
            Self::Breaks => plain().strip_prefix('\u{feff}').unwrap_or(plain()),
            Self::Trailing | Self::Typography => {
                plain().strip_prefix('\u{feff}').unwrap_or(plain()).trim_end()
            }
        }
    }
}

/// For fewer hunks a text isn't worth a table of its lines.
const MIN_HUNKS_FOR_TABLE: usize = 8;

/// Lines that are the same at any level but [`Level::Typography`] have the same.
fn hash_line(line: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    LineComparison::Trailing.strip_ignored(line).hash(&mut hasher);
    hasher.finish()
}

/// Returns true if lines have enough in them not to be found by accident.
pub(super) fn is_distinctive<'a>(lines: impl Iterator<Item = &'a str>) -> bool {
    lines.flat_map(str::chars).filter(|c| c.is_alphanumeric()).take(MIN_DISTINCTIVE_CHARS).count()
        >= MIN_DISTINCTIVE_CHARS
}

/// A text and where its lines begin.
pub(crate) struct FileLines<'a> {
    pub(crate) text: &'a str,
    starts: Vec<usize>,
    /// The number of hunks to compare.
    hunks: usize,
    /// For many of them: every line with its [`hash_line`], in the order of those and then of the
    /// lines.
    table: OnceCell<Vec<(u64, u32)>>,
}

impl<'a> FileLines<'a> {
    pub(crate) fn new(text: &'a str, hunks: usize) -> Self {
        let mut starts = Vec::with_capacity(text.len() / 32);
        if !text.is_empty() {
            starts.push(0);
        }
        starts.extend(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1));
        if starts.last() == Some(&text.len()) {
            starts.pop();
        }
        Self { text, starts, hunks, table: OnceCell::new() }
    }

    /// Returns the candidate positions of a line, ignoring trailing blanks.
    fn positions_of(&self, line: &str) -> &[(u64, u32)] {
        let table = self.table.get_or_init(|| {
            let line = |at: usize| hash_line(self.line(at).unwrap_or_default());
            // A file has fewer lines than fit.
            let mut table: Vec<(u64, u32)> = (0..self.len()).map(|at| (line(at), at as u32)).collect();
            table.sort_unstable();
            table
        });
        let wanted = hash_line(line);
        let from = table.partition_point(|(hash, _)| *hash < wanted);
        let rest = table.get(from..).unwrap_or_default();
        rest.get(..rest.partition_point(|(hash, _)| *hash == wanted)).unwrap_or_default()
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// The bytes of some lines, what ends them included.
    pub(crate) fn span(&self, lines: Range<usize>) -> Range<usize> {
        let start = |line: usize| self.starts.get(line).copied().unwrap_or(self.text.len());
        start(lines.start)..start(lines.end).max(start(lines.start))
    }

    /// A line without its line feed.
    pub(crate) fn line(&self, line: usize) -> Option<&'a str> {
        self.starts.get(line)?;
        let whole = self.text.get(self.span(line..line + 1))?;
        Some(whole.strip_suffix('\n').unwrap_or(whole))
    }

    /// Returns the line break of a line; empty at the end of a text without a final line break.
    pub(crate) fn line_break(&self, line: usize) -> &'a str {
        let whole = self.text.get(self.span(line..line + 1)).unwrap_or_default();
        ["\r\n", "\n"].into_iter().find(|line_break| whole.ends_with(line_break)).unwrap_or_default()
    }

    /// The line that begins at or after a byte.
    pub(crate) fn first_line_from(&self, byte: usize) -> usize {
        self.starts.partition_point(|start| *start < byte)
    }

    /// The 1-based line that holds a byte.
    pub(crate) fn line_number_at(&self, byte: usize) -> usize {
        self.starts.partition_point(|start| *start <= byte).max(1)
    }

    /// Returns true if the lines stand here.
    pub(crate) fn has_lines_at(&self, from: usize, wanted: &[&str], level: LineComparison) -> bool {
        self.count_equal_lines(from, wanted, level) == wanted.len()
    }

    /// Returns the number of equal lines from a position.
    fn count_equal_lines(&self, from: usize, wanted: &[&str], level: LineComparison) -> usize {
        let same = |(nth, wanted): &(usize, &&str)| {
            self.line(from + nth).is_some_and(|line| level.are_equal(line, wanted))
        };
        wanted.iter().enumerate().take_while(same).count()
    }

    /// The only line where a hunk's old lines begin if each line of context may lack its first
    /// blank, and some of them do while others don't.
    pub(crate) fn find_mixed_lines(&self, lines: &[PatchLine]) -> Option<usize> {
        let old: Vec<&PatchLine> = lines.iter().filter(|line| line.kind != LineKind::Add).collect();
        let same = |one: &str, other: &str| LineComparison::Trailing.are_equal(one, other);
        // Read as it stands, and without a prefix that it only seems to have.
        let reads = |line: &PatchLine, own: &str| -> (bool, bool) {
            let plain = same(&line.text, own);
            match line.kind {
                LineKind::Context => (plain, own.strip_prefix(' ').is_some_and(|own| same(&line.text, own))),
                LineKind::Bare => (false, plain),
                _ => (plain, plain),
            }
        };
        let (mut found, mut compared) = (None, 0);
        for start in 0..(self.len() + 1).saturating_sub(old.len().max(1)) {
            let (mut prefixed, mut bare) = (false, false);
            let fits = old.iter().enumerate().all(|(nth, line)| {
                compared += 1;
                let reads = self.line(start + nth).map_or((false, false), |own| reads(line, own));
                if line.kind != LineKind::Remove && !line.text.trim().is_empty() {
                    prefixed |= reads.0;
                    bare |= reads.1;
                }
                reads.0 || reads.1
            });
            let again = fits && prefixed && bare && found.replace(start).is_some();
            if again || compared > MAX_COMPARISONS {
                return None;
            }
        }
        found
    }

    /// The lines where `wanted` begins.
    pub(crate) fn find_lines(&self, wanted: &[&str], level: LineComparison) -> Vec<usize> {
        // The longest line is the rarest, most likely.
        let longest = wanted.iter().enumerate().max_by_key(|(_, line)| level.strip_ignored(line).len());
        let Some((nth, rare)) = longest else { return Vec::new() };
        let needle = level.strip_ignored(rare);
        let mut found = Vec::new();
        let mut compared = 0;
        let mut check = |from: usize| {
            if from + wanted.len() <= self.len() {
                let agreeing = self.count_equal_lines(from, wanted, level);
                compared += agreeing + 1;
                if agreeing == wanted.len() {
                    found.push(from);
                }
            }
            compared < MAX_COMPARISONS && found.len() < MAX_AMBIGUOUS_PLACES
        };
        let typographic = level == LineComparison::Typography;
        if typographic && self.text.is_ascii() && wanted.iter().all(|line| line.is_ascii()) {
            return Vec::new();
        }
        if self.hunks >= MIN_HUNKS_FOR_TABLE && !typographic {
            // The line that the file has in the fewest places.
            let places = |(_, line): &(usize, &&str)| self.positions_of(line).len();
            let (offset, rare) = wanted.iter().enumerate().min_by_key(places).unwrap_or((nth, rare));
            let starts =
                self.positions_of(rare).iter().filter_map(|(_, line)| (*line as usize).checked_sub(offset));
            for start in starts {
                if !check(start) {
                    break;
                }
            }
            return found;
        }
        if needle.is_empty() || typographic {
            for start in 0..self.len() {
                if !check(start) {
                    break;
                }
            }
            return found;
        }
        let mut last = None;
        for at in memmem::find_iter(self.text.as_bytes(), needle) {
            let line = self.starts.partition_point(|start| *start <= at).saturating_sub(1);
            if last == Some(line) {
                continue;
            }
            last = Some(line);
            let start = line
                .checked_sub(nth)
                .filter(|_| self.line(line).is_some_and(|line| level.strip_ignored(line) == needle));
            if start.is_some_and(|start| !check(start)) {
                break;
            }
        }
        found
    }
}
