//! The edit engine compared with its bounds: public cases, replies made of histories,
//! damaged hunks of real commits, the same
//! hunks through other engines, speed, and the round trip of every format.
//!
//! Data that a clone lacks is named by an option or its variable: the folder of public cases
//! (`--cases`, `JM_EDIT_CASES`), clones of any repositories, of which whole replies are made
//! (`--replies`, `JM_EDIT_REPLIES`), clones of the repositories of the damaged hunks (`--repos`,
//! `JM_EDIT_REPOS`) and the other engines' packages (`--peers`, `JM_EDIT_PEERS`;
//! `crates/edit/examples/peers/README.md`). A part without them is skipped and says so; with
//! `JM_REQUIRE_ALL=1` that fails. Cases and replies are also judged by the build that tests use
//! (`--profile dev`).

mod cases;
mod history;
mod mutations;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};

use super::Profile;

/// Default number of hunks of each repository.
const HUNKS: usize = 300;
/// Changes that the round trip draws.
const ROUND_TRIPS: &str = "100000";
/// Its tests in the edit crate.
const ROUND_TRIP: &str = "round_trip::";
const PARTS: [&str; 6] = ["cases", "replies", "mutations", "peers", "speed", "round-trip"];

/// The parts to run, with their data.
struct EditOptions {
    parts: Vec<String>,
    cases: Option<PathBuf>,
    /// Clones whose histories the replies are made of.
    replies: Option<PathBuf>,
    repositories: Option<PathBuf>,
    peers: Option<PathBuf>,
    hunks: usize,
    /// The build that the cases and the replies are judged by.
    profile: Profile,
    /// Where tasks, answers and wrong writes are kept, to be looked at.
    keep: PathBuf,
}

/// Fails where one of the parts misses a bound, after all of them.
pub(crate) fn run(options: &[&str]) -> anyhow::Result<()> {
    let asked = EditOptions::parse(options)?;
    std::fs::create_dir_all(&asked.keep)?;
    println!("edit: what is kept of this run is in {}", asked.keep.display());
    let mut missed = Vec::new();
    for part in &asked.parts {
        println!("\n## {part}\n");
        let done = match part.as_str() {
            "cases" => part_of("--cases", asked.cases.as_ref(), |folder| {
                cases::run(folder, &asked.keep, asked.profile)
            }),
            "replies" => part_of("--replies", asked.replies.as_ref(), |folder| {
                mutations::replies(folder, asked.hunks, &asked.keep, asked.profile)
            }),
            "mutations" => part_of("--repos", asked.repositories.as_ref(), |folder| {
                mutations::tasks(folder, asked.hunks, &asked.keep)?;
                mutations::ours(&asked.keep)
            }),
            "peers" => {
                part_of("--peers", asked.peers.as_ref(), |folder| mutations::peers(folder, &asked.keep))
            }
            "speed" => speed(),
            _ => round_trip(),
        };
        if let Err(error) = done {
            println!("{part}: {error:#}");
            missed.push(part.as_str());
        }
    }
    ensure!(missed.is_empty(), "bounds were missed in {}", missed.join(", "));
    Ok(())
}

/// A part that needs what a clone doesn't have.
fn part_of(
    option: &str,
    folder: Option<&PathBuf>,
    run: impl FnOnce(&PathBuf) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if let Some(folder) = folder {
        return run(folder);
    }
    ensure!(std::env::var_os("JM_REQUIRE_ALL").is_none_or(|all| all != "1"), "it needs {option} DIR");
    println!("skipped: it needs {option} DIR (see `xtask/src/bench/edit.rs`)");
    Ok(())
}

impl EditOptions {
    fn parse(options: &[&str]) -> anyhow::Result<Self> {
        let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let mut asked = Self {
            parts: PARTS.map(str::to_owned).to_vec(),
            cases: named("JM_EDIT_CASES"),
            replies: named("JM_EDIT_REPLIES"),
            repositories: named("JM_EDIT_REPOS"),
            peers: named("JM_EDIT_PEERS"),
            hunks: HUNKS,
            profile: Profile::Release,
            keep: super::target().join("bench-edit"),
        };
        for pair in options.chunks(2) {
            let [option, value] = pair else { bail!("{} needs a value", pair.join(" ")) };
            // What is built runs in other directories than this one.
            let folder = || std::path::absolute(value).context("the folder");
            match *option {
                "--cases" => asked.cases = Some(folder()?),
                "--replies" => asked.replies = Some(folder()?),
                "--repos" => asked.repositories = Some(folder()?),
                "--peers" => asked.peers = Some(folder()?),
                "--hunks" => {
                    asked.hunks = value.parse().context("--hunks takes a number for each repository")?
                }
                "--profile" => {
                    asked.profile = match *value {
                        "release" => Profile::Release,
                        "dev" => Profile::Dev,
                        other => bail!("there is no profile {other}; there are release, dev"),
                    }
                }
                "--only" => asked.parts = value.split(',').map(str::to_owned).collect(),
                other => {
                    bail!(
                        "there is no option {other}; there are --cases, --replies, --repos, --peers, --hunks, --profile, --only"
                    )
                }
            }
        }
        if let Some(part) = asked.parts.iter().find(|part| !PARTS.contains(&part.as_str())) {
            bail!("there is no part `{part}`; there are {}", PARTS.join(", "));
        }
        Ok(asked)
    }
}

/// A built example of the edit crate.
fn example(profile: Profile, name: &str) -> anyhow::Result<PathBuf> {
    profile.build(&["--package", "journeyman-edit"], &["--example", name], &format!("examples/{name}"))
}

fn speed() -> anyhow::Result<()> {
    let program = example(Profile::Release, "edit_cost")?;
    // Before everything that isn't: other work on the machine is not what is measured.
    let may = Command::new("chrt").args(["-f", "1", "true"]).stderr(Stdio::null()).status();
    let mut command = if may.is_ok_and(|status| status.success()) {
        let mut first = Command::new("chrt");
        first.args(["-f", "1"]).arg(&program);
        first
    } else {
        println!("at normal priority: other work on the machine is in the figures");
        Command::new(&program)
    };
    let status = command.status().context("edit_cost")?;
    ensure!(status.success(), "a bound is missed ({status})");
    Ok(())
}

/// Every format writes any change so that it comes back the same.
fn round_trip() -> anyhow::Result<()> {
    let suite = ["test", "--release", "--locked", "--package", "journeyman-edit", "--test", "suite"];
    crate::cargo(&[suite.as_slice(), &[ROUND_TRIP]].concat(), &[("PROPTEST_CASES", ROUND_TRIPS)])
}
