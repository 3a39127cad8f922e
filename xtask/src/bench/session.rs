//! The cost of a session, and of an agent, without their model: the figures of
//! `crates/agent/examples/session_cost.rs` and `agent_cost.rs`.

use std::process::Command;

use anyhow::{Context as _, ensure};

/// The measured cases of a session, and of agents.
const SESSION_CASES: [&str; 6] = ["turns", "memory", "idle", "many", "open", "streamed"];
const AGENT_CASES: [&str; 2] = ["cost", "faults"];

pub(crate) fn run() -> anyhow::Result<()> {
    run_example("session", "session_cost", &SESSION_CASES)
}

pub(crate) fn run_agents() -> anyhow::Result<()> {
    run_example("agents", "agent_cost", &AGENT_CASES)
}

/// Runs each case in a process of its own, so that its memory is measured alone.
fn run_example(name: &str, example: &str, cases: &[&str]) -> anyhow::Result<()> {
    let words = ["build", "--release", "--locked", "--package", "journeyman-agent", "--example", example];
    crate::cargo(&words, &[])?;
    let program = super::target().join("release/examples").join(example);
    println!("{name}: a model and a tool that answer at once");
    for case in cases {
        let status = Command::new(&program).arg(case).status().context(example.to_owned())?;
        ensure!(status.success(), "{example} {case} ended with {status}");
    }
    Ok(())
}
