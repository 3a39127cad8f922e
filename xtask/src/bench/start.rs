//! The time until the program is ready to use.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::ensure;

use super::process::children_cpu;
use super::series::{Series, spread};
use super::server::Server;
use super::turns::{git, jm_run};

const RUNS: usize = 20;
const SEARCHES: usize = 60;
const FILES: usize = 5_000;
/// Files a directory holds.
const FAN_OUT: usize = 50;

/// From start to the first request on the wire, in a repository of 5,000 files; the programs take
/// turns.
pub(crate) fn first_request(programs: &[PathBuf]) -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    for number in 0..FILES {
        let directory = place.path().join(format!("src/part{}", number / FAN_OUT));
        std::fs::create_dir_all(&directory)?;
        std::fs::write(directory.join(format!("file{number}.rs")), format!("pub fn f{number}() {{}}\n"))?;
    }
    git(place.path())?;
    // Each program has state of its own: the formats of two versions may differ.
    let states = programs.iter().map(|_| tempfile::tempdir()).collect::<Result<Vec<_>, _>>()?;
    let mut times = Series::new(programs.len());
    for _ in 0..RUNS {
        for (number, (jm, state)) in programs.iter().zip(&states).enumerate() {
            let server = Server::start(Vec::new())?;
            let started = Instant::now();
            let mut child = jm_run(jm, place.path(), state.path(), &server, "--json").spawn()?;
            let arrived = server.arrival()?;
            times.add(number, (arrived - started).as_secs_f64() * 1000.0);
            child.wait()?;
        }
    }
    println!("start: from start to the first request, {FILES} files, {RUNS} runs");
    times.print("ms", "30");
    Ok(())
}

/// `jm --version`, beside the smallest program there is.
pub(crate) fn version(programs: &[PathBuf]) -> anyhow::Result<()> {
    let mut ours = Series::new(programs.len());
    let mut bare = Vec::new();
    for _ in 0..RUNS {
        for (number, jm) in programs.iter().enumerate() {
            ours.add(number, time(Command::new(jm).arg("--version"))?);
        }
        bare.push(time(&mut Command::new("/bin/true"))?);
    }
    println!("version: jm --version, {RUNS} runs");
    ours.print("ms", "5");
    println!("  /bin/true, ms: {}", spread(&mut bare));
    Ok(())
}

/// `jm search` in a tree that didn't change since it was indexed.
pub(crate) fn search(programs: &[PathBuf], tree: &Path, words: &str) -> anyhow::Result<()> {
    let states = programs.iter().map(|_| tempfile::tempdir()).collect::<Result<Vec<_>, _>>()?;
    let (mut by_clock, mut by_processor) = (Series::new(programs.len()), Series::new(programs.len()));
    // The first search of a program makes its index.
    for round in 0..=SEARCHES {
        for (number, (jm, state)) in programs.iter().zip(&states).enumerate() {
            let mut command = Command::new(jm);
            command.args(["search", words]).current_dir(tree).env("XDG_STATE_HOME", state.path());
            let used_before = children_cpu();
            let took = time(&mut command)?;
            if round > 0 {
                by_clock.add(number, took);
                by_processor.add(number, (children_cpu() - used_before).as_secs_f64() * 1000.0);
            }
        }
    }
    println!("search: jm search \"{words}\", {SEARCHES} runs");
    by_clock.print("ms", "25");
    by_processor.print("processor time, ms", "-");
    Ok(())
}

fn time(command: &mut Command) -> anyhow::Result<f64> {
    let started = Instant::now();
    let status = command.stdout(Stdio::null()).status()?;
    ensure!(status.success(), "it ended with {status}");
    Ok(started.elapsed().as_secs_f64() * 1000.0)
}
