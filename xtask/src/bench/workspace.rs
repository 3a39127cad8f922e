//! The cost of the workspace compared with git and bare system calls: the figures of
//! `crates/workspace/examples/workspace_cost`.

use std::process::Command;

use anyhow::{Context as _, ensure};

/// The measured cases. Each runs in a process of its own, so that its memory is measured alone.
const CASES: [&str; 4] = ["edit", "look", "copy", "bulk"];

/// Fails where one of them misses a bound, after all of them.
pub(crate) fn run() -> anyhow::Result<()> {
    let example =
        ["--release", "--locked", "--package", "journeyman-workspace", "--example", "workspace_cost"];
    let words: Vec<&str> = ["build"].into_iter().chain(example).collect();
    crate::cargo(&words, &[])?;
    let program = super::target().join("release/examples/workspace_cost");
    println!("workspace: beside git and bare system calls, in turns; in brackets the middle half");
    let mut missed = Vec::new();
    for case in CASES {
        let status = Command::new(&program).arg(case).status().context("workspace_cost")?;
        if !status.success() {
            missed.push(case);
        }
    }
    ensure!(missed.is_empty(), "bounds were missed in {}", missed.join(", "));
    Ok(())
}
