//! All tests of the crate in one program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests"
)]

mod blobs;
mod conformance;
mod damage;
mod exchange;
mod faults;
mod formats;
mod kernel;
mod processes;
mod sqlite;
mod support;
