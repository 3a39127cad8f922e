//! The input of the placement: a search and replace with its hints.

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
    /// Lines of the search text that stay lose the blanks at their ends which it hasn't.
    pub trims_kept_lines: bool,
    /// Differences that the caller allows.
    pub allow: AllowedDifferences,
}

/// Differences that may have a meaning and are refused unless the caller allows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AllowedDifferences {
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
            trims_kept_lines: false,
            allow: AllowedDifferences::default(),
        }
    }
}
