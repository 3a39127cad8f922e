//! The session as a library user drives it. A program of its own, because the sandbox re-executes it:
//! `cargo test -p journeyman-agent --test session [part of a name]`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

/// The cases of a module, by name.
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        pub(crate) const CASES: &[crate::support::harness::Case] =
            &[$((concat!(module_path!(), "::", stringify!($name)), || Box::pin($name()))),*];
    };
}

mod calls;
mod events;
mod intent;
mod interrupt;
mod messages;
mod outcomes;
mod permissions;
mod redaction;
mod review;
mod stores;
mod support;
mod text_protocol;

fn main() -> std::process::ExitCode {
    journeyman_sandbox::run_helper_if_asked();
    support::harness::run(&[
        calls::CASES,
        events::CASES,
        intent::CASES,
        interrupt::CASES,
        messages::CASES,
        outcomes::CASES,
        permissions::CASES,
        redaction::CASES,
        review::CASES,
        stores::CASES,
        text_protocol::CASES,
    ])
}
