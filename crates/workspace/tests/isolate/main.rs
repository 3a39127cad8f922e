//! Copies of the tree: made in every way, the same as the original, and nothing of theirs reaches it. A program of its
//! own: the sandbox re-executes it, and so do the cases, to have somebody to kill.
//!
//! `cargo test -p journeyman-workspace --test isolate [part of a name]`
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

/// The cases of a module, by name.
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        pub(crate) const CASES: &[crate::harness::Case] =
            &[$((concat!(module_path!(), "::", stringify!($name)), $name)),*];
    };
}

#[path = "../support/mod.rs"]
mod support;

mod harness;
mod holding;
mod making;
mod refreshing;
mod repositories;
mod trees;

fn main() -> std::process::ExitCode {
    journeyman_sandbox::run_helper_if_asked();
    if let Some(code) = holding::run_if_asked() {
        return code;
    }
    harness::run(&[making::CASES, holding::CASES, repositories::CASES, refreshing::CASES])
}
