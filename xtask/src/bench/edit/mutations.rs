//! Hunks of real commits, damaged in the ways of models, through our engine and others:
//! `crates/edit/examples/mutations`.

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};

use super::{Profile, example, history};

/// At least so many hunks are asked for.
const LEAST: usize = 2_000;
/// An engine that compares every line with every other gets one task in so many.
const FEW: usize = 30;
/// One that takes minutes for a task, of which there may be some, gets fewer still.
const FEWEST: usize = 80;

/// Another engine: its name, the program, what must be there, and what share of the tasks it gets.
struct Peer {
    name: &'static str,
    /// Words of the command; a leading `@` is in the folder of packages, `=` among our examples.
    command: &'static [&'static str],
    one_in: usize,
}

const PEERS: [Peer; 6] = [
    Peer { name: "aider", command: &["@python/bin/python", "=editblock.py"], one_in: 1 },
    Peer { name: "gemini", command: &["node", "=engines.mjs", "gemini", "@node_modules"], one_in: FEWEST },
    Peer { name: "pi", command: &["node", "=engines.mjs", "pi", "@node_modules"], one_in: 1 },
    Peer { name: "roo", command: &["node", "=engines.mjs", "roo", "@node_modules"], one_in: FEW },
    Peer { name: "agents", command: &["node", "=engines.mjs", "agents", "@node_modules"], one_in: 1 },
    Peer {
        name: "codex",
        command: &[
            "python3",
            "=codex.py",
            "@node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
        ],
        one_in: 10,
    },
];

fn kept(keep: &Path) -> PathBuf {
    keep.join("tasks.jsonl")
}

/// Chooses and damages the hunks.
pub(crate) fn tasks(repositories: &Path, hunks: usize, keep: &Path) -> anyhow::Result<()> {
    let program = example(Profile::Release, "mutations")?;
    let mut child = Command::new(program)
        .args(["cases", &hunks.to_string()])
        .stdin(Stdio::piped())
        .stdout(File::create(kept(keep))?)
        .spawn()
        .context("mutations")?;
    let mut pairs = BufWriter::new(child.stdin.take().context("its input")?);
    history::pairs(repositories, hunks, &mut pairs)?;
    pairs.flush()?;
    drop(pairs);
    let status = child.wait()?;
    ensure!(status.success(), "choosing hunks ended with {status}");
    let count = BufReader::new(File::open(kept(keep))?).lines().count();
    println!("{count} hunks (asked: {LEAST}) of {} repositories", history::REPOSITORIES.len());
    ensure!(count >= LEAST, "{count} hunks, asked {LEAST}");
    Ok(())
}

/// Our engine, in every format.
pub(crate) fn ours(keep: &Path) -> anyhow::Result<()> {
    let program = example(Profile::Release, "mutations")?;
    let wrong = keep.join("wrong-jm.jsonl");
    let status = Command::new(program)
        .arg("run")
        .arg(&wrong)
        .stdin(File::open(kept(keep))?)
        .status()
        .context("mutations")?;
    println!("every wrong write: {}", wrong.display());
    ensure!(status.success(), "too many wrong writes, or a panic");
    Ok(())
}

/// Whole replies made of every clone in a folder, at most so many of each.
pub(crate) fn replies(clones: &Path, most: usize, keep: &Path, profile: Profile) -> anyhow::Result<()> {
    let program = example(profile, "mutations")?;
    let kept = keep.join("replies.jsonl");
    let mut child =
        Command::new(program).arg("replies").arg(&kept).stdin(Stdio::piped()).spawn().context("mutations")?;
    let mut pairs = BufWriter::new(child.stdin.take().context("its input")?);
    history::pairs_of_all(clones, most, &mut pairs)?;
    pairs.flush()?;
    drop(pairs);
    println!("what isn't right: {}", kept.display());
    ensure!(child.wait()?.success(), "a bound is missed");
    Ok(())
}

/// The other engines, as far as they are there, on the tasks of this run or the last one.
pub(crate) fn peers(packages: &Path, keep: &Path) -> anyhow::Result<()> {
    let program = example(Profile::Release, "mutations")?;
    let tasks = kept(keep);
    ensure!(tasks.is_file(), "there are no tasks yet: run `mutations` first");
    let (mut ran, mut absent) = (0, Vec::new());
    for peer in PEERS {
        let words = words(&peer, packages);
        if let Some(word) = words.iter().find(|word| word.starts_with('/') && !Path::new(word).exists()) {
            println!("\n{} isn't run: there is no {word}", peer.name);
            absent.push(peer.name);
            continue;
        }
        let given = sample(&tasks, peer.one_in, &keep.join(format!("tasks-{}.jsonl", peer.name)))?;
        println!("\n{}: one in {} of the hunks", peer.name, peer.one_in);
        grade(&program, &peer, &words, &given, keep)?;
        ran += 1;
    }
    ensure!(ran >= 3, "only {ran} other engines could run");
    if std::env::var_os("JM_REQUIRE_ALL").is_some_and(|all| all == "1") && !absent.is_empty() {
        bail!("{} could not run", absent.join(", "));
    }
    Ok(())
}

fn words(peer: &Peer, packages: &Path) -> Vec<String> {
    let ours = crate::root().join("crates/edit/examples/peers");
    let place = |word: &&str| match word.split_at(1) {
        ("@", rest) => packages.join(rest).display().to_string(),
        ("=", rest) => ours.join(rest).display().to_string(),
        _ => (*word).to_owned(),
    };
    peer.command.iter().map(place).collect()
}

/// One in so many of the tasks, as a file.
fn sample(tasks: &Path, one_in: usize, into: &Path) -> anyhow::Result<PathBuf> {
    if one_in == 1 {
        return Ok(tasks.to_owned());
    }
    let mut out = BufWriter::new(File::create(into)?);
    for line in BufReader::new(File::open(tasks)?).lines().step_by(one_in) {
        writeln!(out, "{}", line?)?;
    }
    out.flush()?;
    Ok(into.to_owned())
}

/// Lets another engine answer and holds the answers against the tasks.
fn grade(program: &Path, peer: &Peer, words: &[String], tasks: &Path, keep: &Path) -> anyhow::Result<()> {
    let (first, rest) = words.split_first().context("a command")?;
    let mut engine = Command::new(first)
        .args(rest)
        .stdin(File::open(tasks)?)
        .stdout(Stdio::piped())
        .spawn()
        .context(peer.name)?;
    let answers = engine.stdout.take().context("its output")?;
    let wrong = keep.join(format!("wrong-{}.jsonl", peer.name));
    let graded =
        Command::new(program).args(["grade", peer.name]).arg(tasks).arg(&wrong).stdin(answers).status()?;
    let status = engine.wait()?;
    ensure!(graded.success() && status.success(), "{} ended with {status}", peer.name);
    Ok(())
}
