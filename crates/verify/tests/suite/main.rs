//! All tests of the crate in one program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests"
)]

mod confined;
mod diagnostics;
mod honesty;
mod mutation;
mod original_tests;
mod reports;
mod run;

/// Does the sandbox's work where the sandbox executes this program again, before the test harness
/// reads its arguments.
#[ctor::ctor(unsafe, priority = late)]
fn run_sandbox_helper() {
    journeyman_sandbox::run_helper_if_asked();
}
