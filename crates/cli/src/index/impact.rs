//! `jm impact`: what a change may matter for, and the tests that show it.

use std::path::PathBuf;

use clap::Args;
use journeyman_host::config::Environment;
use journeyman_host::index::{ChangeSet, CodeGraph};
use journeyman_index::graph::{Reach, Reached};
use journeyman_sandbox::clean;
use serde_json::{Value, json};

use super::open::{at_least_one, open_graph};
use crate::color;
use crate::stdout::say;
use journeyman_host::HostError;

/// Maximum number of files of a dependency path that are shown.
const MAX_SHOWN_STEPS: usize = 6;

#[derive(Debug, Args)]
pub(crate) struct ImpactArgs {
    /// The files that change, or lines of them: PATH, PATH:LINE, PATH:FROM-TO
    #[arg(required_unless_present = "diff", value_name = "PATH")]
    paths: Vec<String>,
    /// The differences of the work tree from the last commit
    #[arg(long)]
    diff: bool,
    /// Steps to go at most; all if it isn't given
    #[arg(long, value_name = "N", default_value_t = u32::MAX, hide_default_value = true, value_parser = clap::value_parser!(u32).range(1..))]
    depth: u32,
    /// Files, at most; tests are all shown
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = at_least_one)]
    limit: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// The project's directory instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    directory: Option<PathBuf>,
}

pub(crate) fn impact(environment: &Environment, args: &ImpactArgs) -> Result<u8, HostError> {
    let mut known = open_graph(environment, args.directory.as_deref())?;
    let directory = args.directory.as_deref();
    let ChangeSet { parts, gone } =
        ChangeSet::collect(environment, directory, &mut known, &args.paths, args.diff)?;
    if args.diff && parts.is_empty() && gone.is_empty() && !args.json {
        tell!("nothing differs from the last commit");
        return Ok(1);
    }
    let mut changed: Vec<u32> = parts.iter().map(|changed| changed.file).collect();
    changed.sort_unstable();
    changed.dedup();
    let reach = known.graph.impact(&known.snapshot, &parts, args.depth);
    let tests = known.graph.tests(&changed, &reach);
    let nothing = reach.files.is_empty() && tests.is_empty();
    let impact = Impact { known: &known, changed: &changed, gone: &gone, reach: &reach, tests: &tests };
    if reach.by_files {
        tell!("note: too much hangs on it to go from symbol to symbol; it is told from file to file");
    }
    if args.json {
        impact.print_json(args.limit);
    } else {
        impact.print(args.limit);
        if nothing {
            tell!("nothing here depends on it");
        }
    }
    Ok(u8::from(nothing))
}

/// The files that a change reaches.
struct Impact<'a> {
    known: &'a CodeGraph,
    changed: &'a [u32],
    /// Files that are gone; they are among the changed ones.
    gone: &'a [String],
    reach: &'a Reach,
    tests: &'a [u32],
}

impl Impact<'_> {
    fn is_gone(&self, path: &str) -> bool {
        self.gone.iter().any(|gone| gone == path)
    }

    fn more(&self, limit: usize) -> usize {
        self.reach.files.len().saturating_sub(limit)
    }

    fn print_json(&self, limit: usize) {
        let graph = &self.known.graph;
        let paths = |files: &[u32]| files.iter().map(|file| graph.path(*file)).collect::<Vec<_>>();
        let mut there = paths(self.changed);
        there.retain(|path| !self.is_gone(path));
        let one = |found: &Reached| {
            let way = paths(&self.reach.way(found.file));
            let test = self.tests.contains(&found.file);
            json!({"path": graph.path(found.file), "distance": found.distance, "way": way, "test": test})
        };
        let affected: Vec<Value> = self.reach.files.iter().take(limit).map(one).collect();
        say!(
            "{}",
            json!({
                "changed": there, "gone": self.gone, "affected": affected, "more": self.more(limit),
                "cut": self.reach.cut, "by_files": self.reach.by_files, "tests": paths(self.tests),
            })
        );
    }

    /// Returns the dependency path by which a change reaches a file, from that file on.
    fn way(&self, file: u32) -> Vec<String> {
        let name = |file: &u32| {
            let gone = if self.is_gone(self.known.graph.path(*file)) { " (gone)" } else { "" };
            format!("{}{gone}", self.known.path(*file))
        };
        self.reach.way(file).iter().rev().map(name).collect()
    }

    fn print(&self, limit: usize) {
        let is_needed = |path: &String| {
            let from = |found: &Reached| self.known.graph.path(found.from) == path;
            self.reach.files.iter().any(from)
        };
        for path in self.gone.iter().filter(|path| !is_needed(path)) {
            tell!("note: {} is gone; nothing here needed it", clean(path.as_bytes()));
        }
        let paint = color::stdout();
        for found in self.reach.files.iter().take(limit) {
            let way = self.way(found.file);
            let short: Vec<&str> = way.iter().skip(1).take(MAX_SHOWN_STEPS).map(String::as_str).collect();
            let dots = if way.len() > MAX_SHOWN_STEPS + 1 { " → …" } else { "" };
            let words = format!("needs {}{dots}", short.join(" → "));
            say!(
                "{:>3}  {}  {}",
                found.distance,
                paint.bold(&self.known.path(found.file)),
                paint.dim(&words)
            );
        }
        let more = self.more(limit);
        if more > 0 || self.reach.cut {
            say!("     {}", paint.dim(&format!("… and {more} more; --limit shows them")));
        }
        if !self.tests.is_empty() {
            say!("tests to run:");
            for test in self.tests {
                say!("  {}", self.known.path(*test));
            }
        }
    }
}
