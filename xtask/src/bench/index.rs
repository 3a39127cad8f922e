//! The index compared with its bounds: building, size, opening, queries, updates of one file,
//! memory; on given trees and on one of a Linux kernel's size.
//!
//! `--repos DIR` names a folder of checked-out trees, each measured on its own (without it, this
//! repository's crates are the one tree). `--big` makes a tree of 80,000 files and 1.3 GB out of
//! their real files, with changed names so that no two are alike, in a temporary folder beside the
//! build. `--queries FILE` asks the lines of a file (JSON objects with `query`; `public.jsonl` of
//! `bench recall` is one) instead of names and comments out of the tree. `--only build,query`
//! leaves parts out.
//!
//! Rates are bytes of source a second of processor time, so that what else the machine does matters
//! less; "two cores" is twice that.

mod big;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

const PARTS: [&str; 6] = ["parse", "text", "build", "query", "update", "idle"];
const MB: f64 = 1e6;
/// MB of source a second and core: text alone, and whole.
const TEXT_RATE: f64 = 30.0;
const WHOLE_RATE: f64 = 6.0;
/// Of the source's size.
const SIZE: f64 = 0.6;
/// Files and bytes above which the bounds of a large tree hold.
const LARGE_TREE_FILES: f64 = 20_000.0;
const LARGE_TREE_BYTES: f64 = 200.0 * MB;

/// The parts to run, with their data.
struct IndexOptions {
    parts: Vec<String>,
    repositories: Option<PathBuf>,
    queries: Option<PathBuf>,
    big: bool,
}

/// Fails where a bound is missed, after all trees.
pub(crate) fn run(options: &[&str]) -> anyhow::Result<()> {
    let asked = IndexOptions::parse(options)?;
    let program = example()?;
    let trees = match &asked.repositories {
        Some(folder) => subfolders(folder)?,
        None => vec![crate::root().join("crates")],
    };
    let mut missed = Vec::new();
    for tree in &trees {
        missed.extend(asked.tree(&program, tree)?);
    }
    if asked.big {
        let place = tempfile::tempdir_in(super::target()).context("a temporary folder")?;
        let tree = place.path().join("tree");
        big::make(&trees, &tree)?;
        missed.extend(asked.tree(&program, &tree)?);
    }
    ensure!(missed.is_empty(), "bounds are missed: {}", missed.join("; "));
    Ok(())
}

impl IndexOptions {
    fn parse(options: &[&str]) -> anyhow::Result<Self> {
        let parts = PARTS.map(str::to_owned).to_vec();
        let mut asked = Self { parts, repositories: None, queries: None, big: false };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            if *option == "--big" {
                asked.big = true;
                continue;
            }
            let value = options.next().with_context(|| format!("{option} needs a value"))?;
            match *option {
                "--repos" => asked.repositories = Some(std::path::absolute(value)?),
                "--queries" => asked.queries = Some(std::path::absolute(value)?),
                "--only" => asked.parts = value.split(',').map(str::to_owned).collect(),
                other => {
                    bail!("there is no option {other}; there are --repos, --queries, --only, --big")
                }
            }
        }
        if let Some(part) = asked.parts.iter().find(|part| !PARTS.contains(&part.as_str())) {
            bail!("there is no part `{part}`; there are {}", PARTS.join(", "));
        }
        Ok(asked)
    }

    /// Measures a tree; gives what is missed.
    fn tree(&self, program: &Path, tree: &Path) -> anyhow::Result<Vec<String>> {
        println!("\n## {}\n", tree.display());
        let kept = tempfile::tempdir_in(super::target()).context("a temporary folder")?;
        let directory = kept.path().join("index");
        let queries: Vec<&Path> = self.queries.as_deref().into_iter().collect();
        let wants = |part: &str| self.parts.iter().any(|wanted| wanted == part);
        let mut judge = Judge::default();
        if wants("parse") {
            let found = step(program, "parse", &[tree])?;
            println!("parse: {:.1} MB a core-second, the grammars alone", found.rate());
        }
        if wants("text") {
            judge.text(&step(program, "text", &[tree])?);
        }
        judge.build(&step(program, "build", &[tree, &directory])?, wants("build"));
        if wants("build") {
            judge.scan(&step(program, "scan", &[tree, &directory])?);
        }
        if wants("query") {
            let arguments: Vec<&Path> = [tree, directory.as_path()].into_iter().chain(queries).collect();
            judge.query(&step(program, "query", &arguments)?);
        }
        if wants("idle") {
            judge.idle(&step(program, "idle", &[&directory])?);
        }
        if wants("update") {
            judge.update(&step(program, "update", &[tree, &directory])?);
        }
        let name = tree.file_name().unwrap_or_default().to_string_lossy();
        Ok(judge.missed.into_iter().map(|missed| format!("{name}: {missed}")).collect())
    }
}

/// Prints figures and holds them against the bounds.
#[derive(Default)]
struct Judge {
    missed: Vec<String>,
}

impl Judge {
    fn check(&mut self, what: &str, holds: bool, figure: &str, bound: &str) {
        println!("{what}: {figure} (asked: {bound}){}", if holds { "" } else { ", missed" });
        if !holds {
            self.missed.push(format!("{what} {figure}, not {bound}"));
        }
    }

    fn text(&mut self, found: &Figures) {
        let rate = found.rate();
        let bound = format!("{TEXT_RATE} MB a core-second");
        self.check("text", rate >= TEXT_RATE, &format!("{rate:.1} MB a core-second"), &bound);
    }

    fn build(&mut self, found: &Figures, judged: bool) {
        let of = |name| found.of(name);
        println!(
            "files {}, {:.1} MB, chunks {}, symbols {}; {:.1} s, {:.1} s of processor time",
            of("files"),
            of("bytes") / MB,
            of("chunks"),
            of("symbols"),
            of("ms") / 1e3,
            of("cpu_ms") / 1e3
        );
        if !judged {
            return;
        }
        let rate = found.rate();
        let bound = format!("{WHOLE_RATE} MB a core-second");
        self.check("build", rate >= WHOLE_RATE, &format!("{rate:.2} MB a core-second"), &bound);
        let size = of("index_bytes") / of("bytes").max(1.0);
        self.check("size", size <= SIZE, &format!("{size:.3} of the source"), &format!("{SIZE}"));
        let parts = found.0.get("parts").and_then(Value::as_object);
        let mut parts: Vec<(&String, f64)> =
            parts.into_iter().flatten().map(|(name, bytes)| (name, bytes.as_f64().unwrap_or(0.0))).collect();
        parts.sort_by(|one, other| other.1.total_cmp(&one.1));
        let shares =
            parts.iter().take(9).map(|(name, part)| format!("{name} {:.3}", part / of("bytes").max(1.0)));
        println!("  of which: {}", shares.collect::<Vec<_>>().join(", "));
        let peak = of("peak_mib");
        self.check("peak memory", peak <= 1536.0, &format!("{peak:.0} MiB"), "1536 MiB");
        if of("bytes") >= LARGE_TREE_BYTES {
            let two = of("cpu_ms") / 2e3;
            let figure = format!("{two:.0} s on two cores, {:.0} s by the clock", of("ms") / 1e3);
            self.check("the whole tree", two < 180.0, &figure, "180 s");
        }
    }

    fn scan(&mut self, found: &Figures) {
        let bound = if found.of("files") >= LARGE_TREE_FILES { 100.0 } else { 10.0 };
        let open = found.of("open_ms");
        self.check("open", open <= bound, &format!("{open:.2} ms"), &format!("{bound} ms"));
        println!("scan, nothing changed: {:.1} ms, {} read", found.of("ms"), found.of("read"));
    }

    fn query(&mut self, found: &Figures) {
        let (p50, p99) = if found.of("bytes") >= LARGE_TREE_BYTES { (15.0, 80.0) } else { (5.0, 25.0) };
        println!(
            "{} queries of {} words on the average, {} answered; processor time p50 {:.2} ms, p99 {:.2} ms, most {:.2} ms",
            found.of("queries"),
            found.of("words"),
            found.of("answered"),
            found.of("cpu_p50_ms"),
            found.of("cpu_p99_ms"),
            found.of("cpu_max_ms")
        );
        for (name, figure, bound) in [("query p50", "p50_ms", p50), ("query p99", "p99_ms", p99)] {
            let figure = found.of(figure);
            self.check(name, figure <= bound, &format!("{figure:.2} ms"), &format!("{bound} ms"));
        }
    }

    fn idle(&mut self, found: &Figures) {
        let bound = 40.0 + 0.05 * found.of("index_bytes") / f64::from(1 << 20);
        let idle = found.of("idle_mib");
        let figure = format!("{idle:.1} MiB, {:.1} of them its own", found.of("own_mib"));
        self.check("idle memory", idle <= bound, &figure, &format!("{bound:.1} MiB"));
    }

    fn update(&mut self, found: &Figures) {
        let bound = if found.of("files") >= LARGE_TREE_FILES { 60.0 } else { 20.0 };
        let ms = found.of("ms");
        let figure = format!(
            "{ms:.1} ms (most {:.1} ms; processor time {:.1} ms)",
            found.of("max_ms"),
            found.of("cpu_ms")
        );
        self.check("update of one file", ms <= bound, &figure, &format!("{bound} ms"));
        println!("tidying afterwards: {:.1} ms, most {:.1} ms", found.of("tidy_ms"), found.of("tidy_max_ms"));
    }
}

/// The figures that a step printed.
struct Figures(Value);

impl Figures {
    fn of(&self, name: &str) -> f64 {
        self.0.get(name).and_then(Value::as_f64).unwrap_or(f64::NAN)
    }

    /// MB of source a second of processor time.
    fn rate(&self) -> f64 {
        self.of("bytes") / MB / (self.of("cpu_ms") / 1e3)
    }
}

fn step(program: &Path, step: &str, arguments: &[&Path]) -> anyhow::Result<Figures> {
    let output = Command::new(program).arg(step).args(arguments).output().context("index_cost")?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "index_cost {step} failed: {error}");
    Ok(Figures(serde_json::from_slice(&output.stdout).context("what index_cost prints")?))
}

fn example() -> anyhow::Result<PathBuf> {
    let package = ["--package", "journeyman-index", "--example", "index_cost"];
    let words: Vec<&str> = ["build", "--release", "--locked"].into_iter().chain(package).collect();
    crate::cargo(&words, &[])?;
    Ok(super::target().join("release/examples/index_cost"))
}

fn subfolders(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut found: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    found.sort();
    ensure!(!found.is_empty(), "{} has no folders", folder.display());
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_held_against_bounds() {
        let found = Figures(serde_json::json!({
            "bytes": 12e6, "cpu_ms": 1e3, "ms": 600, "files": 9, "index_bytes": 9e6, "peak_mib": 90,
        }));
        let mut judge = Judge::default();
        judge.build(&found, true);
        assert_eq!(judge.missed, ["size 0.750 of the source, not 0.6"]);
        judge.text(&found);
        assert_eq!(judge.missed.len(), 2);
        // A figure that isn't there is no figure that holds.
        judge.idle(&found);
        assert_eq!(judge.missed.len(), 3);
    }
}
