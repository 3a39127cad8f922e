//! Results of placing a hunk: the new text with the matching strategy, or a refusal.

pub(crate) mod messages;

use std::fmt;
use std::ops::Range;

/// Larger files are refused: source files are far smaller, and whatever isn't is generated.
pub const MAX_FILE_BYTES: usize = 8 << 20;
/// A longer search or replacement is refused: no model writes a mebibyte to name a place.
pub const MAX_SEARCH_BYTES: usize = 1 << 20;
/// No refusal's text is longer, in bytes: about 600 tokens, enough to repair a hunk from.
pub const MAX_FEEDBACK_BYTES: usize = 2_400;
/// Maximum number of places that an ambiguous match collects; more would add no information.
pub(crate) const MAX_AMBIGUOUS_PLACES: usize = 1_000;
/// Maximum number of line numbers that a message about an ambiguous match names.
const MAX_LINES_NAMED: usize = 12;

/// A matching strategy. Ordered from the strictest to the loosest; the first that finds a place
/// decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Strategy {
    /// Byte for byte.
    Exact,
    /// Line endings differed.
    LineEndings,
    /// Blanks at ends of lines differed.
    TrailingWhitespace,
    /// Quotes, dashes or spaces differed in their typographic form.
    Typography,
    /// Lines were indented differently; the replacement was re-indented to fit.
    Indentation,
    /// Blanks inside lines differed in number, outside of string literals.
    InnerWhitespace,
    /// The search text had blank lines at its edges that the file doesn't have.
    BlankEdges,
    /// The search text carried line numbers, as a listing shows them.
    LineNumbers,
    /// Blank lines within the search text were more or fewer than the file's.
    BlankLines,
    /// The search text's line breaks stand elsewhere than the file's; token for token it is the
    /// same.
    LineBreaks,
    /// The search text was escaped once too often (`\\n`, `\\"`, `&lt;`).
    Escapes,
    /// The search text carried diff prefixes, or a markdown fence.
    Prefixes,
    /// The search text leaves lines out (`...`).
    Elision,
    /// Lines are alike, not equal; what the edit changes is equal.
    Similarity,
    /// The search text is the older version's that the model was shown; the edit was merged.
    Merge,
    /// A whole file with remarks in place of what stays, merged by the syntax tree.
    Lazy,
    /// By the syntax tree.
    Symbol,
}

impl Strategy {
    /// Returns true if the place is a well-founded guess: what is written there must hold up to a
    /// closer look.
    #[must_use]
    pub fn is_loose(self) -> bool {
        matches!(
            self,
            Self::LineBreaks | Self::Escapes | Self::Elision | Self::Similarity | Self::Merge | Self::Lazy
        )
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exact => "exact",
            Self::LineEndings => "line endings",
            Self::TrailingWhitespace => "trailing whitespace",
            Self::Typography => "typography",
            Self::Indentation => "indentation",
            Self::InnerWhitespace => "whitespace within lines",
            Self::BlankEdges => "blank lines at the edges",
            Self::LineNumbers => "line numbers removed",
            Self::BlankLines => "blank lines",
            Self::LineBreaks => "line breaks",
            Self::Escapes => "escapes undone",
            Self::Prefixes => "prefixes removed",
            Self::Elision => "elision",
            Self::Similarity => "similarity",
            Self::Merge => "three-way merge",
            Self::Lazy => "remarks for what stays",
            Self::Symbol => "symbol",
        })
    }
}

/// A hunk that found its place, not yet written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedEdit {
    /// The strategy that placed the hunk.
    pub strategy: Strategy,
    /// The 1-based line where the first (or only) place begins.
    pub line: u32,
    /// Differences between the search text and the file; `None` if they are equal.
    pub note: Option<String>,
    /// Byte ranges of the text with their replacements, in order and without overlap.
    pub pieces: Vec<(Range<usize>, String)>,
}

impl PlacedEdit {
    /// The text with the pieces in their places.
    #[must_use]
    pub fn apply_to(&self, text: &str) -> String {
        let added: usize = self.pieces.iter().map(|(_, piece)| piece.len()).sum();
        let mut out = String::with_capacity(text.len() + added);
        let mut done = 0;
        for (span, piece) in &self.pieces {
            out.push_str(text.get(done..span.start).unwrap_or_default());
            out.push_str(piece);
            done = span.end;
        }
        out.push_str(text.get(done..).unwrap_or_default());
        out
    }

    /// The same, written.
    #[must_use]
    pub fn into_applied(self, text: &str) -> AppliedEdit {
        AppliedEdit {
            text: self.apply_to(text),
            strategy: self.strategy,
            line: self.line,
            count: u32::try_from(self.pieces.len()).unwrap_or(u32::MAX),
            note: self.note,
            spans: self.pieces.into_iter().map(|(span, _)| span).collect(),
        }
    }
}

/// A hunk that found its place, and the text after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedEdit {
    /// The whole new text.
    pub text: String,
    /// The strategy that placed the hunk.
    pub strategy: Strategy,
    /// The 1-based line where the first (or only) place begins.
    pub line: u32,
    /// The number of replaced places: 1 unless all were requested.
    pub count: u32,
    /// Differences between the search text and the file; `None` if they are equal.
    pub note: Option<String>,
    /// The byte ranges of the old text that were replaced, in order. Bytes outside are as they
    /// were.
    pub spans: Vec<Range<usize>>,
}

/// The region of the file that is most like the search text.
#[derive(Debug, Clone, PartialEq)]
pub struct NearestRegion {
    /// Its first line, 1-based.
    pub line: u32,
    /// Its text, cut to [`MAX_FEEDBACK_BYTES`].
    pub text: String,
    /// The similarity to the search text, from 0 to 1.
    pub similarity: f32,
    /// The region with its differences from the search text made visible, line by line.
    pub excerpt: String,
}

/// Why some steps did not place a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedAttempt {
    /// The steps, strictest first.
    pub steps: Vec<Strategy>,
    /// The reason why the strategy failed, in a few words.
    pub why: String,
}

/// One of several places where a search text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchOccurrence {
    /// Its first line, 1-based.
    pub first: u32,
    /// Its last line, 1-based.
    pub last: u32,
    /// The line that it is inside of, by indentation: number and text without blanks at its ends.
    pub within: Option<(u32, String)>,
    /// The nearest line that no other of the places has there: with the lines up to it the search
    /// text is unique.
    pub distinctive: Option<(u32, String)>,
}

/// The consequence of a refusal for the other edits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OtherEditsFate {
    /// Nothing is, for this edit or any beside it.
    Nothing,
    /// All but this edit is.
    Others,
}

impl fmt::Display for OtherEditsFate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "Nothing was changed.",
            Self::Others => "This edit was left out.",
        })
    }
}

/// Why a hunk was not placed. Its [`Display`](fmt::Display) tells the model what to do, in at most
/// [`MAX_FEEDBACK_BYTES`].
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The search text is nowhere in the file.
    NotFound {
        /// The nearest region, if any is near enough to be worth showing.
        closest: Option<NearestRegion>,
        /// The replacement is in the file already, exactly once: the edit was most likely made
        /// before.
        already_applied: bool,
        /// Why the steps that come near didn't find it.
        attempts: Vec<FailedAttempt>,
    },
    /// It is there more than once.
    Ambiguous {
        /// The 1-based lines where it begins.
        lines: Vec<u32>,
        /// The strategy that found those places.
        strategy: Strategy,
        /// The first of them, closer looked at.
        spots: Vec<MatchOccurrence>,
    },
    /// The search text is empty and the file is not.
    EmptySearch,
    /// Search and replacement are equal, or the result would be.
    NoChange,
    /// The place was found by a loose reading, and what differs there has a meaning.
    GuardedMismatch {
        /// The 1-based line of the file.
        line: u32,
        /// The difference.
        difference: String,
    },
    /// The replacement would stand in for code with a remark such as `rest unchanged`.
    Placeholder {
        /// The remark.
        remark: String,
    },
    /// Another edit of the same reply changes the same lines.
    Overlap {
        /// The index of the other step, 1-based.
        with: usize,
        /// The 1-based line where they meet.
        line: u32,
    },
    /// A line that is said to stand before the place isn't in the file.
    NoAnchor {
        /// The line.
        anchor: String,
    },
    /// The place is far larger than the search text.
    SpanTooLarge {
        /// Its first line, 1-based.
        line: u32,
        /// Its number of lines.
        lines: usize,
        /// The number of lines of the search text.
        searched: usize,
    },
    /// The lines that the edit changes have changed since the model was shown them.
    Conflict {
        /// The 1-based line of the present file where that begins.
        line: u32,
        /// The present lines.
        theirs: String,
        /// The lines that the edit would have written.
        ours: String,
    },
    /// The file would not parse any more, and the place was found loosely.
    BrokenSyntax {
        /// The 1-based line of the new text.
        line: u32,
        /// The syntax error.
        message: String,
        /// The strategy that found the place.
        strategy: Strategy,
    },
    /// No symbol of that name is in the file, or more than one.
    Symbol {
        /// The symbol as it was named.
        symbol: String,
        /// Similar symbols: paths with their lines.
        candidates: Vec<(String, u32)>,
        /// More than one fits.
        ambiguous: bool,
    },
    /// The edit can't be read as its format wants it.
    Malformed {
        /// The error and the remedy.
        message: String,
    },
    /// A bound was passed.
    TooLarge {
        /// `file`, `search text` or `replacement`.
        what: &'static str,
        /// Its size in bytes.
        bytes: usize,
        /// The bound in bytes.
        limit: usize,
    },
}

impl Refusal {
    /// The edit was made before: its new text is there, and its old text isn't.
    pub(crate) fn for_applied_edit() -> Self {
        Self::NotFound { closest: None, already_applied: true, attempts: Vec::new() }
    }

    /// Returns true if the wished-for text is there already, so that nothing has to be done.
    #[must_use]
    pub fn is_already_applied(&self) -> bool {
        matches!(self, Self::NotFound { already_applied: true, .. })
    }

    /// The refusal's kind as one word, for logs and machine-readable output.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotFound { already_applied: true, .. } => "already_applied",
            Self::NotFound { .. } => "not_found",
            Self::Ambiguous { .. } => "ambiguous",
            Self::EmptySearch => "empty_search",
            Self::NoChange => "no_change",
            Self::GuardedMismatch { .. } => "guarded_mismatch",
            Self::Placeholder { .. } => "placeholder",
            Self::Overlap { .. } => "overlap",
            Self::NoAnchor { .. } => "no_anchor",
            Self::SpanTooLarge { .. } => "span_too_large",
            Self::Conflict { .. } => "conflict",
            Self::BrokenSyntax { .. } => "broken_syntax",
            Self::Symbol { ambiguous: true, .. } => "ambiguous_symbol",
            Self::Symbol { .. } => "no_symbol",
            Self::Malformed { .. } => "malformed",
            Self::TooLarge { .. } => "too_large",
        }
    }
}

/// The longest beginning of `text` of at most `limit` bytes.
pub(crate) fn truncate(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}
