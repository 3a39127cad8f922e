//! Copies landed in a tree that the user went on working in.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod copied;
mod crash;
mod exact;
mod pairs;
mod random;
mod rough;
mod shown;
#[path = "../support/mod.rs"]
mod support;
