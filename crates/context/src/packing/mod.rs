//! Choice of the passages of files that go into a request, within a budget.
//!
//! [`select`] is pure: the same candidates, texts and budget give the same excerpts. Candidates
//! come from the task's words ([`bodies`]) or from an index
//! ([`gathering`](crate::gathering)).

mod bodies;
mod candidate;
mod excerpt;
mod select;
mod text;

pub use bodies::bodies;
pub use candidate::{Candidate, Decision, Outcome, Reason};
pub use excerpt::Excerpt;
pub use select::{Room, Selection, select};
pub use text::{FileText, Texts};
