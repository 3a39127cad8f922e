//! Copies of the tree: made in every way, the same as the original, and nothing of theirs reaches
//! it.

mod holding;
mod making;
mod refreshing;
mod repositories;
