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

mod approvals;
mod calls;
mod conformance;
mod copies;
mod events;
mod forks;
mod guard;
mod intent;
mod interrupt;
mod knowing;
mod messages;
mod outcomes;
mod outside;
mod permissions;
mod queue;
mod redaction;
mod resuming;
mod review;
mod stores;
mod support;
mod text_protocol;
mod trying;
mod turn_phases;

fn main() -> std::process::ExitCode {
    journeyman_sandbox::run_helper_if_asked();
    support::harness::run(&[
        approvals::CASES,
        turn_phases::CASES,
        calls::CASES,
        conformance::bookkeeping::CASES,
        conformance::calls::CASES,
        conformance::files::CASES,
        conformance::hooks::CASES,
        conformance::lifecycle::CASES,
        conformance::log::CASES,
        conformance::permission::CASES,
        conformance::pool::CASES,
        conformance::queue::CASES,
        copies::CASES,
        events::CASES,
        forks::CASES,
        guard::CASES,
        intent::CASES,
        interrupt::CASES,
        knowing::CASES,
        messages::CASES,
        outcomes::CASES,
        outside::CASES,
        permissions::CASES,
        queue::CASES,
        redaction::CASES,
        resuming::CASES,
        review::CASES,
        stores::CASES,
        text_protocol::CASES,
        trying::CASES,
    ])
}
