//! What confined commands cost beside bare ones: the figures of `crates/sandbox/examples/sandbox_cost.rs`, and what a
//! verdict on a command takes: those of `crates/policy/examples/verdict_cost.rs`.

use std::process::Command;

use anyhow::{Context as _, ensure};

/// Each in a process of its own, so that its memory is.
const CASES: [&str; 4] = ["start", "overlay", "flood", "tiers"];

/// Fails where one of them misses a bound, after all of them.
pub(crate) fn run() -> anyhow::Result<()> {
    let mut missed = Vec::new();
    let program = example("journeyman-sandbox", "sandbox_cost")?;
    for case in CASES {
        let status = Command::new(&program).arg(case).status().context("sandbox_cost")?;
        if !status.success() {
            missed.push(case);
        }
    }
    let verdict = example("journeyman-policy", "verdict_cost")?;
    if !Command::new(verdict).status().context("verdict_cost")?.success() {
        missed.push("verdict");
    }
    ensure!(missed.is_empty(), "bounds were missed in {}", missed.join(", "));
    Ok(())
}

fn example(package: &str, name: &str) -> anyhow::Result<std::path::PathBuf> {
    crate::cargo(&["build", "--release", "--locked", "--package", package, "--example", name], &[])?;
    Ok(super::target().join("release/examples").join(name))
}
