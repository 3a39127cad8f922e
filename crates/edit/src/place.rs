//! Finding the one place that a hunk means.

mod artifacts;
mod attempts;
mod blank_edges;
mod duplicates;
mod elision;
mod exact;
pub(crate) mod explain;
mod find;
pub(crate) mod fit;
mod hunk;
pub(crate) mod indent;
mod indent_depth;
mod indexed_text;
mod insert;
mod line_breaks;
pub(crate) mod line_numbers;
mod line_profiles;
mod loose_strategies;
mod matches;
mod merge;
mod nearest;
pub(crate) mod normalize;
mod normalized;
mod occurrences;
pub(crate) mod placeholders;
mod region;
mod resolve;
mod similar_lines;
mod strategies;
mod tie_breaking;
mod tokens;
mod write;

pub(crate) use find::find_in;
pub use find::{find, place, replace};
pub use hunk::{Allow, Hunk};
pub(crate) use indexed_text::IndexedText;
