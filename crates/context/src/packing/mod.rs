//! Choice of the passages of files that go into a request, within a budget.
//!
//! [`select`] is pure: the same candidates, texts and budget give the same excerpts. Candidates
//! come from the task's words ([`relevant_parts`]) or from an index
//! ([`gathering`](crate::gathering)).

mod candidate;
mod excerpt;
mod file_parts;
mod file_text;
mod select;

pub use candidate::{CandidateReason, ContextCandidate, PackingDecision, PackingOutcome};
pub use excerpt::{Excerpt, shown_files};
pub use file_parts::relevant_parts;
pub use file_text::{FileText, Texts};
pub use select::{Selection, SelectionBudget, select};
