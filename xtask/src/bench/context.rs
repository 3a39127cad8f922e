//! The cost of the context: counting tokens.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};

/// The parts, in order.
const PARTS: [&str; 1] = ["counting"];

/// Runs all parts, or those that `--only` names. Fails where one of them misses a bound, after all
/// of them.
pub(crate) fn run(options: &[&str]) -> anyhow::Result<()> {
    let parts: Vec<&str> = match options {
        [] => PARTS.to_vec(),
        ["--only", parts] => parts.split(',').collect(),
        _ => bail!("`context` takes `--only PART[,PART]` of {}", PARTS.join(", ")),
    };
    let mut missed = Vec::new();
    for part in parts {
        println!("\n## {part}\n");
        let done = match part {
            "counting" => counting(),
            other => bail!("there is no part `{other}`; there are {}", PARTS.join(", ")),
        };
        if let Err(error) = done {
            println!("{part}: {error:#}");
            missed.push(part);
        }
    }
    ensure!(missed.is_empty(), "bounds were missed in {}", missed.join(", "));
    Ok(())
}

/// Counts the files of this repository (`crates/context/examples/counting.rs`).
fn counting() -> anyhow::Result<()> {
    let example = ["--release", "--locked", "--package", "journeyman-context", "--example", "counting"];
    let words: Vec<&str> = ["build"].into_iter().chain(example).collect();
    crate::cargo(&words, &[])?;
    let root = crate::root();
    let listed =
        Command::new("git").args(["ls-files"]).current_dir(&root).output().context("git ls-files")?;
    ensure!(listed.status.success(), "git ls-files failed");
    let program = super::target().join("release/examples/counting");
    let mut child =
        Command::new(program).current_dir(&root).stdin(Stdio::piped()).spawn().context("counting")?;
    child.stdin.take().context("no input")?.write_all(&listed.stdout)?;
    let status = child.wait()?;
    ensure!(status.success(), "counting a text seen before takes longer than asked");
    Ok(())
}
