//! The context: counting tokens, packing, and long sessions.
//!
//! `localisation` needs real issues with the lines that their fixes change: `--data DIR`
//! (`JM_RECALL_DATA`) and `--mirror DIR` (`RB_MIRROR`), as `bench recall`. Without them it is
//! skipped and says so; with `JM_REQUIRE_ALL=1` that fails. `server` needs a server of a small
//! model with a window of 4,096 tokens at `JM_TEST_MODEL_URL`.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};

/// The parts, in order.
const PARTS: [&str; 6] = ["counting", "packing", "localisation", "sessions", "turns", "server"];
/// The sessions of a full measurement, and the turns of the longest one.
const SESSIONS: &str = "300";
const TURNS: &str = "2000";
/// The turns of the task against a real server.
const SERVER_TURNS: &str = "40";

/// Runs all parts, or those that `--only` names. Fails where one of them misses a bound, after all
/// of them.
pub(crate) fn run(options: &[&str]) -> anyhow::Result<()> {
    let mut parts = PARTS.to_vec();
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let (mut data, mut mirror, mut sessions) =
        (named("JM_RECALL_DATA"), named("RB_MIRROR"), SESSIONS.to_owned());
    for pair in options.chunks(2) {
        match *pair {
            ["--only", only] => parts = only.split(',').collect(),
            ["--data", value] => data = Some(std::path::absolute(value)?),
            ["--mirror", value] => mirror = Some(std::path::absolute(value)?),
            ["--sessions", value] => value.clone_into(&mut sessions),
            _ => bail!(
                "`context` takes --only PART[,PART] of {}, --data DIR, --mirror DIR and --sessions N",
                PARTS.join(", ")
            ),
        }
    }
    let mut missed = Vec::new();
    for part in parts {
        println!("\n## {part}\n");
        let done = match part {
            "counting" => counting(),
            "packing" => example("journeyman-context", "packing", &["speed".as_ref()]),
            "localisation" => localisation(data.as_deref(), mirror.as_deref()),
            "sessions" => example("journeyman-host", "long_sessions", &["facts".as_ref(), sessions.as_ref()]),
            "turns" => example("journeyman-host", "long_sessions", &["turns".as_ref(), TURNS.as_ref()]),
            "server" => server(),
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

/// Packs the context for real issues (`crates/context/examples/packing.rs`).
fn localisation(data: Option<&Path>, mirror: Option<&Path>) -> anyhow::Result<()> {
    let (Some(data), Some(mirror)) = (data, mirror) else {
        ensure!(
            std::env::var_os("JM_REQUIRE_ALL").is_none_or(|all| all != "1"),
            "it needs --data DIR and --mirror DIR"
        );
        println!("skipped: it needs --data DIR and --mirror DIR");
        return Ok(());
    };
    let rows = data.join("public.jsonl");
    example("journeyman-context", "packing", &["rows".as_ref(), rows.as_os_str(), mirror.as_os_str()])
}

/// Runs a task against a real model server.
fn server() -> anyhow::Result<()> {
    let Some(url) = std::env::var_os("JM_TEST_MODEL_URL") else {
        println!("skipped: JM_TEST_MODEL_URL names no model server");
        return Ok(());
    };
    example("journeyman-host", "long_sessions", &["server".as_ref(), &url, SERVER_TURNS.as_ref()])
}

/// Builds and runs an example, which fails where a bound is missed.
fn example(package: &str, name: &str, arguments: &[&OsStr]) -> anyhow::Result<()> {
    crate::cargo(&["build", "--release", "--locked", "--package", package, "--example", name], &[])?;
    let program = super::target().join("release/examples").join(name);
    let status = Command::new(program).args(arguments).status().context(name.to_owned())?;
    ensure!(status.success(), "{name} misses a bound");
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
