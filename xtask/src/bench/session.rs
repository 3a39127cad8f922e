//! The cost of a session without its model: the figures of `crates/agent/examples/session_cost.rs`.

use std::process::Command;

use anyhow::{Context as _, ensure};

/// The measured cases. Each runs in a process of its own, so that its memory is measured alone.
const CASES: [&str; 6] = ["turns", "memory", "idle", "many", "open", "streamed"];

pub(crate) fn run() -> anyhow::Result<()> {
    let example = ["--release", "--locked", "--package", "journeyman-agent", "--example", "session_cost"];
    let words: Vec<&str> = ["build"].into_iter().chain(example).collect();
    crate::cargo(&words, &[])?;
    let program = super::target().join("release/examples/session_cost");
    println!("session: a model and a tool that answer at once");
    for case in CASES {
        let status = Command::new(&program).arg(case).status().context("session_cost")?;
        ensure!(status.success(), "session_cost {case} ended with {status}");
    }
    Ok(())
}
