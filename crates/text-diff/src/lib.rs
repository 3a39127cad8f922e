//! Line diffs, unified diffs and three-way merges of texts.
//!
//! [`diff`] aligns two sequences of lines and [`diff_within`] does so in bounded time; every
//! comparison of lines in the workspace goes through these two. [`format_unified_hunks`] renders a
//! difference for people and for `git apply`, and [`count_changed_lines`] only counts. [`merge`]
//! combines what two sides made of one base: [`merge::merge_texts`] gives the merged bytes or the
//! text with conflict markers, [`merge::merge_lines`] the regions alone.
//!
//! ```
//! use journeyman_text_diff::merge::{Merge, merge_texts};
//!
//! let merged = merge_texts(b"one\ntwo\nthree\n", b"ONE\ntwo\nthree\n", b"one\ntwo\nTHREE\n");
//! assert_eq!(merged, Merge::Clean(b"ONE\ntwo\nTHREE\n".to_vec()));
//! ```
//!
//! The crate reads no files, knows no file names and no encodings, and detects no moved lines. All
//! functions are pure and depend on no clock: the same texts always give the same result.

mod diff;
mod edits;
pub mod merge;
mod unified;

pub use diff::{LineCounts, Lines, count_changed_lines, diff, diff_within};
pub use similar::DiffOp;
pub use unified::{UnifiedHunks, format_unified_hunks};
