//! Real repositories, read with and without the sandbox. A program of its own, because the sandbox re-executes it.
//!
//! An argument runs only the cases whose name has it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![cfg(target_os = "linux")]

mod branches;
mod check_out;
mod commits;
mod hostile;
mod reads;
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;

use journeyman_protocol::SandboxTier;
use journeyman_sandbox::{Sandbox, SandboxSettings, run_helper_if_asked};
use support::World;

/// A name and what it checks.
type Case = (&'static str, fn(&World));

fn main() -> ExitCode {
    run_helper_if_asked();
    let required = std::env::var_os("JM_REQUIRE_ALL").is_some();
    if support::program("git").is_none() {
        assert!(!required, "git is missing");
        println!("skipped: git is not installed");
        return ExitCode::SUCCESS;
    }
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let cases = [check_out::CASES, reads::CASES, hostile::CASES, commits::CASES, branches::CASES].concat();
    let mut failed = 0;
    for tier in [SandboxTier::Namespaces, SandboxTier::Unconfined] {
        let sandbox = Sandbox::new(SandboxSettings {
            allow: vec![tier],
            allow_root: true,
            ..SandboxSettings::default()
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        if let Err(error) = runtime.block_on(sandbox.enforcement(&journeyman_protocol::SandboxNeeds::ALL)) {
            assert!(!required, "{error}");
            println!("skipped: {error}");
            continue;
        }
        let world = World { sandbox: Arc::new(sandbox), tier };
        for (name, check) in cases.iter().filter(|(name, _)| name.contains(&wanted)) {
            let held = catch_unwind(AssertUnwindSafe(|| check(&world))).is_ok();
            println!("{}: {name} ({tier})", if held { "ok" } else { "FAILED" });
            failed += usize::from(!held);
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
