//! All tests of the crate in one program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests"
)]

mod again;
mod apply;
mod checkpoints;
mod checks;
mod crash;
mod crash_syscalls;
mod hiding;
mod hostile;
mod isolate;
mod land;
mod land_tiers;
mod model;
mod names;
mod quota;
mod read;
mod recover;
mod redo;
mod repository;
mod speed;
mod support;
mod tracer;
mod trees;
mod trial;
mod undo;
mod waits;

/// Does the sandbox's work where the sandbox executes this program again, before the test harness
/// reads its arguments.
#[ctor::ctor(unsafe, priority = late)]
fn run_sandbox_helper() {
    journeyman_sandbox::run_helper_if_asked();
}
