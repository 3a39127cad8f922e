//! All tests of the crate in one program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests"
)]

mod commands;
mod paths;
mod risk;
mod rules;
mod secrets;
mod verdicts;
mod write_rules;
