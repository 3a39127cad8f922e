//! The places that a strategy found, before one of them is chosen.

use std::ops::Range;

use crate::outcome::Strategy;
use crate::placement::hunk::Hunk;

/// A place that a step found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Match {
    /// Its bytes.
    pub(super) span: Range<usize>,
    /// The line of the match that corresponds to each line of the search text; `None` where each
    /// stands for its own.
    pub(super) pairs: Option<Vec<Option<usize>>>,
}

impl Match {
    /// A place whose lines stand for the search text's, one for one.
    pub(super) fn line_by_line(span: Range<usize>) -> Self {
        Self { span, pairs: None }
    }
}

/// All places that the strictest step found that found any.
pub(super) struct Matches<'a> {
    pub(super) strategy: Strategy,
    pub(super) places: Vec<Match>,
    /// The hunk as that step read it.
    pub(super) hunk: Hunk<'a>,
}
