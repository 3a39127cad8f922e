//! All tests of the crate in one program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests"
)]

mod common;
mod docs;
mod follows;
mod graph;
mod impact;
#[cfg(feature = "local-embeddings")]
mod model2vec;
mod patterns;
mod resolve;
mod search;
mod survives;
mod vectors;
mod watched;
