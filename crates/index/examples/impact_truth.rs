//! Quality of `jm impact` in finding the tests that run a function: `cargo run --release -p
//! journeyman-index --example impact_truth -- TREE DIRECTORY TRUTH [--missed | --each]`.
//!
//! The truth is a JSON object on each line, for one function of the tree: `path`, `line` (one of
//! its body), and `tests`, the paths of the test files that were seen to run it; `impact_truth.py`
//! converts coverage.py's data. Each function is queried in three ways: by files alone, for a
//! change of the whole file, and for a change of that line. Recall is the found part of the true
//! tests, precision the true part of the found ones; both are means over functions. `--missed`
//! lists the functions with missed tests, `--each` all of them with their figures and the wrongly
//! told tests, the third way alone.
#![allow(clippy::cast_precision_loss)]

use std::collections::BTreeSet;
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use journeyman_index::ProjectIndex;
use journeyman_index::graph::{ChangedPart, ChangedSourceFile, TraversalResult};
use journeyman_index::store::RefreshOptions;
use serde::Deserialize;
use serde_json::json;

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

#[derive(Deserialize)]
struct Row {
    path: String,
    line: u32,
    tests: BTreeSet<String>,
}

/// Sums over functions.
#[derive(Default)]
struct Sums {
    recall: f64,
    precision: f64,
    told: usize,
    /// Functions whose tests were all found.
    whole: usize,
    took: Duration,
}

fn main() -> Fallible<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [tree, directory, truth, rest @ ..] = args.as_slice() else {
        return Err("see the head of crates/index/examples/impact_truth.rs".into());
    };
    let is_asked = |option: &str| rest.first().is_some_and(|arg| arg == option);
    let (is_each, verbose) = (is_asked("--each"), is_asked("--missed"));
    let project = ProjectIndex::open(Path::new(tree), Path::new(directory), 2)?;
    let stop = AtomicBool::new(false);
    let threads = NonZero::new(2).unwrap_or(NonZero::<usize>::MIN);
    project.refresh(RefreshOptions { threads, wait: true, progress: &|_| {}, stop: &stop })?;
    let snapshot = project.index().snapshot();
    let graph = project.graph(&snapshot);
    let mut sums = [Sums::default(), Sums::default(), Sums::default()];
    let (mut count, mut seen) = (0_usize, 0_usize);
    for row in std::fs::read_to_string(truth)?.lines() {
        let row: Row = serde_json::from_str(row)?;
        let Some(file) = graph.find_file(&row.path) else { continue };
        (count, seen) = (count + 1, seen + row.tests.len());
        let part = ChangedPart { lines: vec![row.line..=row.line], gone: Vec::new() };
        let ways: [&dyn Fn() -> TraversalResult; 3] = [
            &|| graph.dependents(&[file], u32::MAX),
            &|| graph.find_impact(&snapshot, &[ChangedSourceFile::from(file)], u32::MAX),
            &|| {
                graph.find_impact(
                    &snapshot,
                    &[ChangedSourceFile { file, part: Some(part.clone()) }],
                    u32::MAX,
                )
            },
        ];
        for (at, (way, sums)) in ways.iter().zip(&mut sums).enumerate().skip(if is_each { 2 } else { 0 }) {
            let begun = Instant::now();
            let reach = way();
            sums.took += begun.elapsed();
            let told: BTreeSet<String> = graph
                .affected_tests(&[file], &reach)
                .into_iter()
                .map(|test| graph.path(test).to_owned())
                .collect();
            let both = told.intersection(&row.tests).count();
            sums.recall += both as f64 / row.tests.len().max(1) as f64;
            sums.precision += both as f64 / told.len().max(1) as f64;
            sums.told += told.len();
            sums.whole += usize::from(both == row.tests.len());
            if is_each {
                let missed: Vec<&String> = row.tests.difference(&told).collect();
                let wrong: Vec<&String> = told.difference(&row.tests).collect();
                println!(
                    "{}",
                    json!({
                        "path": row.path, "line": row.line, "told": told.len(), "seen": row.tests.len(),
                        "true": both, "missed": missed, "wrong": wrong,
                    })
                );
            }
            if verbose && at == 2 && both < row.tests.len() {
                let missed: Vec<&String> = row.tests.difference(&told).take(5).collect();
                println!("{}:{} {} of {}: {missed:?}", row.path, row.line, both, row.tests.len());
            }
        }
    }
    for (name, sums) in ["by files", "whole file", "line"].iter().zip(&sums) {
        let mean = |sum: f64| (sum / count.max(1) as f64 * 1e3).round() / 1e3;
        println!(
            "{}",
            json!({
                "way": name, "functions": count, "recall": mean(sums.recall), "precision": mean(sums.precision),
                "complete": mean(sums.whole as f64), "tests told": mean(sums.told as f64),
                "tests seen": mean(seen as f64), "mean ms": mean(sums.took.as_secs_f64() * 1e3),
            })
        );
    }
    Ok(())
}
