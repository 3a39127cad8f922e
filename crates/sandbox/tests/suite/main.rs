//! All tests of the crate in one program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests"
)]

mod attacks_bounds;
mod bubblewrap;
mod builds;
mod choosing;
mod clean;
mod common;
#[cfg(feature = "containers")]
mod container;
mod directories;
mod forwards;
mod git;
mod landlock_only;
mod leftovers;
mod limits;
mod mounts;
mod network;
mod ready;
mod running;
mod streams;
mod toolchains;
