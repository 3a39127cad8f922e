//! 50 turns of one shell call each against a model that answers at once.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::process::{Used, measure};
use super::series::Series;
use super::server::{Call, Server};

const TURNS: usize = 50;
const RUNS: usize = 5;
const MIB: f64 = 1024.0 * 1024.0;

/// Measures each of the programs, in turns, so that both meet the same machine.
pub(crate) fn run(programs: &[PathBuf]) -> anyhow::Result<()> {
    println!("turns: {TURNS} turns of one shell call, sandbox, log and checkpoints on, {RUNS} runs");
    let mut cpu = Series::new(programs.len());
    let mut memory = Series::new(programs.len());
    let mut turn = Series::new(programs.len());
    for _ in 0..RUNS {
        for (number, jm) in programs.iter().enumerate() {
            let (used, a_turn) = once(jm)?;
            cpu.add(number, used.cpu.as_secs_f64());
            #[expect(clippy::cast_precision_loss, reason = "memory sizes are far below 2^52")]
            memory.add(number, used.peak_rss as f64 / MIB);
            turn.add(number, a_turn.as_secs_f64() * 1000.0);
        }
    }
    cpu.print("processor time of the whole tree, s", "0.5");
    memory.print("peak resident set of the whole tree, MiB", "40");
    turn.print("a turn, ms", "20");
    let (spawns, syncs) = baseline()?;
    println!(
        "  baseline of the same run: a bare `sh -c echo` {:.2} ms, a bare write and fsync {:.2} ms",
        spawns.as_secs_f64() * 1000.0,
        syncs.as_secs_f64() * 1000.0
    );
    Ok(())
}

/// A fresh repository of five files.
fn project() -> anyhow::Result<tempfile::TempDir> {
    let place = tempfile::tempdir()?;
    for number in 0..5 {
        std::fs::write(place.path().join(format!("file{number}.txt")), format!("file {number}\n"))?;
    }
    git(place.path())?;
    Ok(place)
}

pub(crate) fn git(place: &Path) -> anyhow::Result<()> {
    for args in [
        &["init", "-q"][..],
        &["add", "-A"],
        &["-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "-qm", "start"],
    ] {
        let status = Command::new("git").args(args).current_dir(place).status().context("git")?;
        ensure!(status.success(), "git {args:?} failed");
    }
    Ok(())
}

fn once(jm: &Path) -> anyhow::Result<(Used, Duration)> {
    let place = project()?;
    let state = tempfile::tempdir()?;
    let server = Server::start(Call::shell(TURNS))?;
    let mut command = jm_run(jm, place.path(), state.path(), &server, "--json");
    let used = measure(&mut command)?;
    // Nothing changed, so nothing was verified: exit code 4.
    ensure!(used.status.code() == Some(4), "jm ended with {}", used.status);
    let first = server.arrival()?;
    let mut last = first;
    for _ in 0..TURNS {
        last = server.arrival()?;
    }
    Ok((used, (last - first) / u32::try_from(TURNS).unwrap_or(u32::MAX)))
}

/// `jm run` against the server, with a home of its own, and with this option for its output.
pub(crate) fn jm_run(jm: &Path, place: &Path, state: &Path, server: &Server, output: &str) -> Command {
    let mut command = Command::new(jm);
    command
        .args(["run", "--model", "bench", "--wire", "chat", "--base-url"])
        .arg(format!("http://{}/v1", server.address))
        .args(["--mode", "auto", output, "--quiet", "echo fifty times"])
        .current_dir(place)
        .env("XDG_STATE_HOME", state)
        .env("XDG_CONFIG_HOME", state)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Measures the machine's own time for a spawn and an fsync, of which each turn has one.
fn baseline() -> anyhow::Result<(Duration, Duration)> {
    let count = u32::try_from(TURNS).unwrap_or(u32::MAX);
    let started = Instant::now();
    for _ in 0..TURNS {
        Command::new("/bin/sh").args(["-c", "echo turn"]).stdout(Stdio::null()).status()?;
    }
    let spawns = started.elapsed() / count;
    let mut file = tempfile::tempfile()?;
    let started = Instant::now();
    for _ in 0..TURNS {
        file.write_all(&[0; 512])?;
        file.sync_data()?;
    }
    Ok((spawns, started.elapsed() / count))
}
