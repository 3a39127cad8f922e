//! All tests of the crate in one program. It has a `main` of its own, because the sandbox executes
//! the program again, and because some promises are about all cases together: every kind of event
//! is emitted by one of them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests"
)]

/// Lists the asynchronous cases of a module as `CASES`.
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        pub(crate) const CASES: &[crate::harness::Case] =
            &[$((concat!(module_path!(), "::", stringify!($name)), || crate::harness::block_on($name()))),*];
    };
}

/// Lists the cases of a module as `CASES`.
macro_rules! blocking_cases {
    ($($name:ident),* $(,)?) => {
        pub(crate) const CASES: &[crate::harness::Case] =
            &[$((concat!(module_path!(), "::", stringify!($name)), $name)),*];
    };
}

mod crash;
mod exercises;
mod harness;
mod random;
mod session;

use std::process::ExitCode;

fn main() -> ExitCode {
    journeyman_sandbox::run_helper_if_asked();
    if let Some(code) = crash::child::run_if_asked() {
        return code;
    }
    let mut cases = session::cases();
    cases.extend(crash::cases());
    cases.extend_from_slice(exercises::CASES);
    cases.extend_from_slice(random::CASES);
    harness::run(cases)
}
