//! Ways out of the sandbox, each tried for real, against every back-end, as root and as an ordinary
//! user; what is expected of each is in `table.rs`.
//!
//! The program is everything at once: the host, which makes a place and looks for traces
//! afterwards; the agent, a process of its own that runs one command; and the command, which
//! attacks. Every attempt is also made without a sandbox by an ordinary user, where it has to work:
//! one that can't work shows nothing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    missing_docs,
    reason = "tests"
)]

mod agent;
mod attempt;
#[allow(dead_code, reason = "the other tests use the rest")]
#[path = "../suite/common/mod.rs"]
mod common;
mod delegated;
mod place;
mod scene;
mod sys;
mod table;
mod trials;

fn main() {
    journeyman_sandbox::run_helper_if_asked();
    match std::env::args().nth(1).as_deref() {
        Some(scene::ATTEMPT) => attempt::make(),
        Some(scene::AGENT) => agent::run(),
        _ => trials::run(),
    }
}
