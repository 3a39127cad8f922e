//! Candidates for the context from an index: what a search finds for a task, what the task's names
//! define and who uses them, tests, dependencies, documents and commits.
//!
//! Nothing is built or waited for. Texts come through [`ContextSources::read`], which decides what
//! may be shown and refuses files that changed since they were indexed.

mod gather;
mod indexed_files;
mod likelihood;
mod names;
mod sources;
mod task_terms;

pub use gather::{CommitNote, GatheredContext, gather, is_worth_gathering};
pub use sources::ContextSources;
