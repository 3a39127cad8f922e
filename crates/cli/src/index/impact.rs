//! `jm impact`: what a change may matter for, and the tests that show it.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use journeyman_agent::config::Environment;
use journeyman_git::{Change, Entry, Git};
use journeyman_sandbox::{Sandbox, SandboxSettings};
use serde_json::{Value, json};

use super::deps::Known;
use crate::color;
use crate::edge::{Failure, root};
use crate::stdout::say;

pub(crate) const HELP: &str = "\
Files that depend on the changed ones, nearest first, each with the way by which the change reaches it, and the test \
files among them. It is told from the files as they are now: what a name means is not type-checked, what is put \
together at run time is not seen, and a test that is written in the changed file itself is not listed.

Exit codes: 0 something is affected, 1 nothing is or an error, 2 usage

Examples:
  jm impact src/shop.py                 what a change of it may break
  jm impact --diff                      the same for what differs from the last commit
  jm impact --diff --json | jq -r '.tests[]' | xargs pytest";

/// Files of a way that are shown, at its end.
const WAY_SHOWN: usize = 6;

#[derive(Debug, Args)]
pub(crate) struct ImpactArgs {
    /// The files that change
    #[arg(required_unless_present = "diff")]
    paths: Vec<String>,
    /// The files of the work tree that differ from the last commit
    #[arg(long)]
    diff: bool,
    /// Steps to go at most; all if it isn't given
    #[arg(long, value_name = "N", default_value_t = u32::MAX, hide_default_value = true)]
    depth: u32,
    /// Files, at most; tests are all shown
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// The project's directory instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// What differs from the last commit.
#[derive(Default)]
struct Differing {
    there: Vec<String>,
    gone: Vec<String>,
}

pub(crate) fn impact(environment: &Environment, args: &ImpactArgs) -> Result<u8, Failure> {
    let known = Known::open(environment, args.directory.as_deref())?;
    let mut changed = args.paths.iter().map(|path| known.file(path)).collect::<Result<Vec<_>, _>>()?;
    let mut gone = Vec::new();
    if args.diff {
        let differing = differing(environment, args)?;
        // What is ignored or can't be named isn't in the graph, and nothing there depends on it.
        changed.extend(differing.there.iter().filter_map(|path| known.graph.find(path)));
        gone = differing.gone;
        if changed.is_empty() && gone.is_empty() && !args.json {
            eprintln!("nothing differs from the last commit");
            return Ok(1);
        }
    }
    changed.sort_unstable();
    changed.dedup();
    let reach = known.graph.impact(&changed, args.depth);
    let tests = known.graph.tests(&changed, &reach);
    let shown = reach.files.iter().take(args.limit);
    let more = reach.files.len().saturating_sub(args.limit);
    let nothing = u8::from(reach.files.is_empty() && tests.is_empty());
    let way = |file: u32| reach.way(file).iter().rev().map(|file| known.path(*file)).collect::<Vec<_>>();
    if args.json {
        let paths = |files: &[u32]| files.iter().map(|file| known.graph.path(*file)).collect::<Vec<_>>();
        let affected: Vec<Value> = shown
            .map(|found| {
                let way = paths(&reach.way(found.file));
                let path = known.graph.path(found.file);
                json!({"path": path, "distance": found.distance, "way": way, "test": tests.contains(&found.file)})
            })
            .collect();
        say!(
            "{}",
            json!({
                "changed": paths(&changed), "gone": gone, "affected": affected, "more": more, "cut": reach.cut,
                "tests": paths(&tests),
            })
        );
        return Ok(nothing);
    }
    for path in &gone {
        eprintln!("note: {path} is gone; who needed it can't be told from the files of now");
    }
    let paint = color::stdout();
    for found in shown {
        let way = way(found.file);
        let short: Vec<&str> = way.iter().skip(1).take(WAY_SHOWN).map(String::as_str).collect();
        let dots = if way.len() > WAY_SHOWN + 1 { " → …" } else { "" };
        let words = format!("needs {}{dots}", short.join(" → "));
        say!("{:>3}  {}  {}", found.distance, paint.bold(&known.path(found.file)), paint.dim(&words));
    }
    if more > 0 || reach.cut {
        say!("     {}", paint.dim(&format!("… and {more} more; --limit shows them")));
    }
    if !tests.is_empty() {
        say!("tests to run:");
        for test in &tests {
            say!("  {}", known.path(*test));
        }
    }
    if nothing == 1 {
        eprintln!("nothing here depends on it");
    }
    Ok(nothing)
}

fn differing(environment: &Environment, args: &ImpactArgs) -> Result<Differing, Failure> {
    let place = root(environment, args.directory.as_deref())?;
    let git = Git::new(&place, Arc::new(Sandbox::new(SandboxSettings::default())));
    let status = Git::blocking(git.status()).context("git can't tell what differs from the last commit")?;
    let mut differing = Differing::default();
    for entry in status.entries {
        let gone = match entry.entry {
            Entry::Tracked { staged, unstaged, .. } => {
                unstaged == Change::Deleted || staged == Change::Deleted && unstaged == Change::None
            }
            Entry::Unmerged | Entry::Untracked { .. } => false,
            Entry::Ignored => continue,
        };
        let list = if gone { &mut differing.gone } else { &mut differing.there };
        list.push(entry.path.to_string());
    }
    Ok(differing)
}
