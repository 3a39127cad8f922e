//! Real repositories, read and committed to with and without the sandbox.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests"
)]

use std::sync::Arc;

use journeyman_protocol::{SandboxNeeds, SandboxTier};
use journeyman_sandbox::{Sandbox, SandboxSettings};
use journeyman_testkit::{has_program_or_skip, skip};
use support::World;

/// Makes a test of each function, once confined and once where no sandbox is allowed.
macro_rules! in_each_tier {
    ($($name:ident),* $(,)?) => {
        mod confined {
            $(#[test] fn $name() { crate::with_tier(journeyman_protocol::SandboxTier::Namespaces, super::$name); })*
        }
        mod unconfined {
            $(#[test] fn $name() { crate::with_tier(journeyman_protocol::SandboxTier::Unconfined, super::$name); })*
        }
    };
}

mod branches;
mod check_out;
mod commit_places;
mod commits;
mod hostile;
mod reads;
mod support;

/// Does the sandbox's work where the sandbox executes this program again, before the test harness
/// reads its arguments.
#[ctor::ctor(unsafe, priority = late)]
fn run_sandbox_helper() {
    journeyman_sandbox::run_helper_if_asked();
}

/// Runs a test with a sandbox of one tier, if the machine has git and that tier.
fn with_tier(tier: SandboxTier, test: fn(&World)) {
    if !has_program_or_skip("git") {
        return;
    }
    let settings = SandboxSettings { allow: vec![tier], allow_root: true, ..SandboxSettings::default() };
    let sandbox = Sandbox::new(settings);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match runtime.block_on(sandbox.enforcement(&SandboxNeeds::ALL)) {
        Ok(_) => test(&World { sandbox: Arc::new(sandbox), tier }),
        Err(error) => skip(error),
    }
}
