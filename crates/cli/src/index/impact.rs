//! `jm impact`: what a change may matter for, and the tests that show it.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use journeyman_git::{EntryStatus, Git, StatusChange};
use journeyman_host::Context as _;
use journeyman_host::config::Environment;
use journeyman_index::graph::{Changed, ChangedPart, DeletedFile, Reach, Reached};
use journeyman_sandbox::{Sandbox, SandboxSettings, clean};
use serde_json::{Value, json};

use super::at_least_one;
use super::deps::Known;
use crate::color;
use crate::stdout::say;
use journeyman_host::HostError;
use journeyman_host::state::project_root;

pub(crate) const HELP: &str = "\
Files that depend on the changed ones, nearest first, each with the way by which the change reaches it, and the test \
files among them. A change goes from function to function and from type to type: to what uses the changed one by its name, \
and on from there. Told fewer lines, it tells fewer files; --diff looks at what changed itself, and tells who needed a file \
or a name that is gone, too.

It is told from the files as they are now: what a name means is not type-checked, what is put together at run time is not \
seen, and a test that is written in the changed file itself is not listed.

Exit codes: 0 something is affected, 1 nothing is or an error, 2 usage

Examples:
  jm impact src/shop.py                 what a change of it may break
  jm impact src/shop.py:120             the same for the function at that line
  jm impact --diff                      the same for what differs from the last commit
  jm impact --diff --json | jq -r '.tests[]' | xargs pytest";

/// Files of a way that are shown, at its end.
const WAY_SHOWN: usize = 6;

#[derive(Debug, Args)]
pub(crate) struct ImpactArgs {
    /// The files that change, or lines of them: PATH, PATH:LINE, PATH:FROM-TO
    #[arg(required_unless_present = "diff", value_name = "PATH")]
    paths: Vec<String>,
    /// What differs in the work tree from the last commit
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

/// Bytes of a file's text in the last commit; longer ones are generated.
const MAX_BYTES: usize = 1 << 20;
/// Files of which git is asked for their text in the last commit: each takes some milliseconds.
const MAX_READ: usize = 200;

/// What differs from the last commit.
#[derive(Default)]
struct Differing {
    /// With the text that they had, if they had one.
    there: Vec<(String, Option<String>)>,
    gone: Vec<DeletedFile>,
}

pub(crate) fn impact(environment: &Environment, args: &ImpactArgs) -> Result<u8, HostError> {
    let mut known = Known::open(environment, args.directory.as_deref())?;
    let mut parts = args.paths.iter().map(|path| named(&known, path)).collect::<Result<Vec<_>, _>>()?;
    let mut gone = Vec::new();
    if args.diff {
        let differing = differing(environment, args)?;
        // What is ignored or can't be named isn't in the graph, and nothing there depends on it.
        parts.extend(differing.there.iter().filter_map(|(path, before)| {
            let file = known.graph.find(path)?;
            Some(Changed { file, part: before.as_ref().and_then(|before| part(&known, file, before)) })
        }));
        if !differing.gone.is_empty() {
            let paths: Vec<String> =
                parts.iter().map(|changed| known.graph.path(changed.file).to_owned()).collect();
            known.put_back(&differing.gone);
            gone = differing.gone.into_iter().map(|gone| gone.path).collect();
            // Numbers are others with them.
            let again = |(path, changed): (String, Changed)| {
                Some(Changed { file: known.graph.find(&path)?, part: changed.part })
            };
            parts = paths.into_iter().zip(parts).filter_map(again).collect();
            parts.extend(gone.iter().filter_map(|path| known.graph.find(path)).map(Changed::from));
        }
        if parts.is_empty() && gone.is_empty() && !args.json {
            tell!("nothing differs from the last commit");
            return Ok(1);
        }
    }
    let mut changed: Vec<u32> = parts.iter().map(|changed| changed.file).collect();
    changed.sort_unstable();
    changed.dedup();
    let reach = known.graph.impact(&known.snapshot, &parts, args.depth);
    let tests = known.graph.tests(&changed, &reach);
    let nothing = reach.files.is_empty() && tests.is_empty();
    let told = Told { known: &known, changed: &changed, gone: &gone, reach: &reach, tests: &tests };
    if reach.by_files {
        tell!("note: too much hangs on it to go from symbol to symbol; it is told from file to file");
    }
    if args.json {
        told.object(args.limit);
    } else {
        told.print(args.limit);
        if nothing {
            tell!("nothing here depends on it");
        }
    }
    Ok(u8::from(nothing))
}

/// A file that is named, with the lines that may stand behind it: `src/a.rs`, `src/a.rs:12`, `src/a.rs:12-20`, and as compilers
/// print it, with the column, `src/a.rs:12:5`.
fn named(known: &Known, path: &str) -> Result<Changed, HostError> {
    let lines = |text: &str| -> Option<(u32, u32)> {
        let (from, to) = text.split_once('-').unwrap_or((text, text));
        Some((from.parse().ok()?, to.parse().ok()?))
    };
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let split = |path: &'_ str| -> Option<(String, (u32, u32))> {
        let (path, text) = path.rsplit_once(':')?;
        Some((path.to_owned(), lines(text)?))
    };
    let with_column = path.rsplit_once(':').filter(|(_, column)| number(column));
    let split = with_column.and_then(|(rest, _)| split(rest)).or_else(|| split(path));
    let (Some((bare, (from, to))), None) = (split, known.graph.find(path)) else {
        return Ok(Changed::from(known.file(path)?));
    };
    let file = known.file(&bare)?;
    let count = known.text(file).map_or(0, |text| text.lines().count());
    if from == 0 || from > to || to as usize > count {
        let shown = clean(bare.as_bytes());
        return Err(HostError::usage(format_args!("{shown} has the lines 1 to {count}, not {from} to {to}")));
    }
    Ok(Changed { file, part: Some(ChangedPart { lines: vec![from..=to], gone: Vec::new() }) })
}

/// What differs of a file that had another text; nothing where all of it may.
fn part(known: &Known, file: u32, before: &str) -> Option<ChangedPart> {
    let language = known.graph.node(file)?.language?;
    ChangedPart::between(language, before, &known.text(file)?)
}

/// What a change may matter for.
struct Told<'a> {
    known: &'a Known,
    changed: &'a [u32],
    /// Files that are gone; they are among the changed ones.
    gone: &'a [String],
    reach: &'a Reach,
    tests: &'a [u32],
}

impl Told<'_> {
    fn is_gone(&self, path: &str) -> bool {
        self.gone.iter().any(|gone| gone == path)
    }

    fn more(&self, limit: usize) -> usize {
        self.reach.files.len().saturating_sub(limit)
    }

    fn object(&self, limit: usize) {
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

    /// The way by which a change reaches a file, from that file on.
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
            let short: Vec<&str> = way.iter().skip(1).take(WAY_SHOWN).map(String::as_str).collect();
            let dots = if way.len() > WAY_SHOWN + 1 { " → …" } else { "" };
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

fn differing(environment: &Environment, args: &ImpactArgs) -> Result<Differing, HostError> {
    let place = project_root(environment, args.directory.as_deref())?;
    let git = Git::new(&place, Arc::new(Sandbox::new(SandboxSettings::default())));
    let status = Git::blocking(git.status()).context("git can't tell what differs from the last commit")?;
    let (mut differing, mut read) = (Differing::default(), 0);
    for entry in status.entries {
        let gone = match entry.entry {
            EntryStatus::Tracked { staged, unstaged, .. } => {
                unstaged == StatusChange::Deleted
                    || staged == StatusChange::Deleted && unstaged == StatusChange::None
            }
            EntryStatus::Unmerged | EntryStatus::Untracked { .. } => false,
            EntryStatus::Ignored => continue,
        };
        let path = entry.path.to_string();
        let untracked = matches!(entry.entry, EntryStatus::Untracked { .. });
        // Without its text a file that is gone is told by what imports it, and one that is there is changed as a whole.
        let text = if read < MAX_READ && !untracked {
            read += 1;
            Git::blocking(git.show("HEAD", &entry.path, MAX_BYTES)).ok().flatten()
        } else {
            None
        };
        let text = text.and_then(|text| String::from_utf8(text).ok());
        if gone {
            differing.gone.push(DeletedFile { path, text });
        } else {
            differing.there.push((path, text));
        }
    }
    Ok(differing)
}
