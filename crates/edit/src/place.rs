//! Finding the one place that a hunk means.

mod artifacts;
mod blank_edges;
mod duplicates;
mod elision;
pub(crate) mod exact;
pub(crate) mod explain;
pub(crate) mod fit;
pub(crate) mod indent;
mod indent_depth;
mod insert;
mod line_breaks;
pub(crate) mod line_numbers;
pub(crate) mod merge;
pub(crate) mod nearest;
pub(crate) mod normalize;
mod normalized;
pub(crate) mod placeholders;
mod resolve;
mod similar_lines;
mod tie_breaking;
mod tokens;

use std::cell::OnceCell;
use std::ops::Range;

use crate::lines::{Line, line_at, lines_of};
use crate::outcome::{Applied, MAX_FILE_BYTES, MAX_SEARCH_BYTES, Placed, Refusal, Strategy};
use crate::patch::lines::FileLines;
use crate::place::normalize::{Mapped, bare_key};

/// One search and replace, with what helps to place it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hunk<'a> {
    /// The text to find.
    pub search: &'a str,
    /// The text to put there, literally.
    pub replace: &'a str,
    /// Replace every place instead of the only one.
    pub all: bool,
    /// The 1-based line where the search text is believed to begin. It only chooses between equal
    /// matches, and only when one is clearly nearer; it never makes or vetoes a match.
    pub near: Option<u32>,
    /// Search and replacement are lines of a text format, given without the last one's line break:
    /// an empty replacement of whole lines then takes their line break too, and a blank line at an
    /// edge of the search text is a blank line and not the end of the line next to it.
    pub whole_lines: bool,
    /// Lines that stand before the place, in this order, each after the one before. They choose
    /// between matches.
    pub anchors: &'a [String],
    /// The end of the preceding hunk in the text, in bytes: among equal matches the first at or
    /// after it is meant, if the format's hunks come in order.
    pub after: Option<usize>,
    /// The match is said to end where the file ends.
    pub at_end: bool,
    /// The version of the file that the model was shown, if it isn't the present one.
    pub base: Option<&'a str>,
    /// Differences that the caller allows.
    pub allow: Allow,
}

/// Differences that may have a meaning and are refused unless the caller allows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Allow {
    /// A changed line's identifiers, numbers, operators or strings may differ between search text
    /// and file.
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

/// Replaces the only place where `search` occurs in `text` (or, with `all`, every place) by
/// `replacement`, which is taken literally, but for its line endings in a text whose own are all of
/// one kind.
///
/// The strictest [`Strategy`] that finds a place decides. If it finds more than one, no looser one
/// is tried.
///
/// # Errors
/// [`Refusal`] when no place, or more than one, can be meant, when the place differs from the
/// search text in what has a meaning, or when a bound is passed.
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
    find_in(&Indexed::new(text, 1), hunk)
}

/// The same in a text that other hunks are placed in, too.
pub(crate) fn find_in(file: &Indexed<'_>, hunk: &Hunk<'_>) -> Result<Placed, Refusal> {
    let text = file.text;
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
        return insert::find(text, hunk);
    }
    let remark =
        (!hunk.allow.placeholders).then(|| placeholders::placeholder(hunk.search, hunk.replace)).flatten();
    if let Some(remark) = remark {
        return Err(Refusal::Placeholder { remark: remark.to_owned() });
    }
    if let Some(matches) = exact::locate(text, hunk) {
        return resolve::resolve(text, &matches);
    }
    let haystack = file.haystack();
    let merged = || hunk.base.and_then(|base| merge::find(text, base, hunk));
    blank_edges::find_loosely(haystack, hunk)
        .or_else(merged)
        .unwrap_or_else(|| Err(nearest::not_found(haystack, hunk)))
}

/// The steps that overlook something, strictest first.
fn find_loosely(haystack: &Haystack<'_>, hunk: &Hunk<'_>) -> Option<Result<Placed, Refusal>> {
    if hunk.search.trim().is_empty() {
        return None;
    }
    if let Some(matches) = normalized::locate(haystack, hunk).or_else(|| line_breaks::locate(haystack, hunk))
    {
        return Some(resolve::resolve(haystack.text, &matches));
    }
    artifacts::find(haystack, hunk)
        .or_else(|| elision::find(haystack, hunk))
        .or_else(|| similar_lines::find(haystack, hunk))
}

/// A text that hunks are placed in, with what is looked up in it: made once for all of them, and
/// only if it is needed.
pub(crate) struct Indexed<'a> {
    text: &'a str,
    /// The number of hunks to place in the text.
    hunks: usize,
    rows: OnceCell<FileLines<'a>>,
    haystack: OnceCell<Haystack<'a>>,
}

impl<'a> Indexed<'a> {
    pub(crate) fn new(text: &'a str, hunks: usize) -> Self {
        Self { text, hunks, rows: OnceCell::new(), haystack: OnceCell::new() }
    }

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// Its lines as patches compare them.
    pub(crate) fn rows(&self) -> &FileLines<'a> {
        self.rows.get_or_init(|| FileLines::new(self.text, self.hunks))
    }

    /// The 1-based line that holds a byte.
    pub(crate) fn line_at(&self, byte: usize) -> u32 {
        match self.hunks {
            // Counting once costs less than finding all lines.
            ..=1 => line_at(self.text, byte),
            _ => u32::try_from(self.rows().line_to(byte)).unwrap_or(u32::MAX),
        }
    }

    fn haystack(&self) -> &Haystack<'a> {
        self.haystack.get_or_init(|| Haystack::new(self.text))
    }
}

/// A file with what the steps that overlook something look up again and again.
struct Haystack<'a> {
    text: &'a str,
    lines: Vec<Line>,
    /// Of each line, [`bare_key`].
    keys: Vec<u64>,
    /// Profiles of the lines, for finding the nearest text.
    line_profiles: OnceCell<nearest::LineProfiles<'a>>,
    /// The text without line endings' difference, and without that of typography.
    read: [OnceCell<Mapped<'a>>; 2],
    /// The text without blanks, and where in it its lines begin.
    bare: OnceCell<(Vec<u8>, Vec<usize>)>,
}

impl<'a> Haystack<'a> {
    fn new(text: &'a str) -> Self {
        let lines = lines_of(text);
        let keys = lines.iter().map(|line| bare_key(text.get(line.content()).unwrap_or_default())).collect();
        Self {
            text,
            lines,
            keys,
            line_profiles: OnceCell::new(),
            read: [OnceCell::new(), OnceCell::new()],
            bare: OnceCell::new(),
        }
    }

    /// The text as [`Mapped`] reads it.
    fn mapped(&self, typography: bool) -> &Mapped<'a> {
        let [breaks, characters] = &self.read;
        if typography { characters } else { breaks }.get_or_init(|| Mapped::new(self.text, typography))
    }

    /// The text without ASCII blanks, and where in it each line begins and the last one ends.
    fn bare(&self) -> &(Vec<u8>, Vec<usize>) {
        self.bare.get_or_init(|| {
            let mut bare = Vec::with_capacity(self.text.len());
            let mut starts = Vec::with_capacity(self.lines.len() + 1);
            for index in 0..self.lines.len() {
                starts.push(bare.len());
                bare.extend(self.line(index).bytes().filter(|byte| !byte.is_ascii_whitespace()));
            }
            starts.push(bare.len());
            (bare, starts)
        })
    }

    /// A line without what ends it.
    fn line(&self, index: usize) -> &'a str {
        self.lines.get(index).and_then(|line| self.text.get(line.content())).unwrap_or_default()
    }

    /// The bytes of some lines, perhaps with what ends the last of them.
    fn span(&self, lines: Range<usize>, closed: bool) -> Range<usize> {
        let start = self.lines.get(lines.start).map_or(self.text.len(), |line| line.content().start);
        let last = lines.end.checked_sub(1).and_then(|last| self.lines.get(last));
        let end = last.map_or(start, |line| if closed { line.next() } else { line.content().end });
        start..end.max(start)
    }
}

/// A place that a step found.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Match {
    /// Its bytes.
    span: Range<usize>,
    /// The line of the match that corresponds to each line of the search text; `None` where each
    /// stands for its own.
    pairs: Option<Vec<Option<usize>>>,
}

impl Match {
    /// A place whose lines stand for the search text's, one for one.
    fn line_by_line(span: Range<usize>) -> Self {
        Self { span, pairs: None }
    }
}

/// All places that the strictest step found that found any.
struct Matches<'a> {
    strategy: Strategy,
    places: Vec<Match>,
    /// The hunk as that step read it.
    hunk: Hunk<'a>,
}
