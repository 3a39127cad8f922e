//! A task of 30 calls that is cut off anywhere, and the faults of a disk and a clock. A program of its own: the sandbox
//! re-executes it, and so do the cases, to have somebody to kill.
//!
//! `cargo test -p journeyman-agent --test crash [part of a name]`; `JM_CRASH_RUNS=300` and `JM_CRASH_ALL=1` for the full
//! volume, which `cargo xtask soak crash` does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

/// The cases of a module, by name.
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        pub(crate) const CASES: &[crate::harness::Case] =
            &[$((concat!(module_path!(), "::", stringify!($name)), $name)),*];
    };
}

mod checks;
mod child;
mod cuts;
mod faults;
mod flushes;
mod gated;
mod harness;
mod parent;
mod place;
mod task;

fn main() -> std::process::ExitCode {
    journeyman_sandbox::run_helper_if_asked();
    if let Some(code) = child::run_if_asked() {
        return code;
    }
    if !harness::confined() {
        return std::process::ExitCode::SUCCESS;
    }
    let code = harness::run(&[cuts::CASES, faults::CASES]);
    if code == std::process::ExitCode::SUCCESS {
        parent::clean_up();
    }
    code
}
