//! Size of the impact of a change: `cargo run --release -p journeyman-index --example impact_size
//! -- TREE DIRECTORY [PATH]`.
//!
//! Builds the index of a tree in a directory, and computes for each of its source files (no tests,
//! no documents) the files that a change of it affects: by files alone, and as `jm impact` does.
//! With a path, prints the differences for that file.
#![allow(clippy::cast_precision_loss)]

use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use journeyman_index::ProjectIndex;
use journeyman_index::graph::{ChangedSourceFile, TraversalResult};
use journeyman_index::store::RefreshOptions;
use serde_json::json;

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Fallible<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (tree, directory, path) = match args.as_slice() {
        [tree, directory] => (tree, directory, None),
        [tree, directory, path] => (tree, directory, Some(path)),
        _ => return Err("see the head of crates/index/examples/impact_size.rs".into()),
    };
    let project = ProjectIndex::open(Path::new(tree), Path::new(directory), 2)?;
    let stop = AtomicBool::new(false);
    let threads = NonZero::new(2).unwrap_or(NonZero::<usize>::MIN);
    project.refresh(RefreshOptions { threads, wait: true, progress: &|_| {}, stop: &stop })?;
    let snapshot = project.index().snapshot();
    let graph = project.graph(&snapshot);
    let names = |reach: &TraversalResult| reach.files.iter().map(|found| found.file).collect::<Vec<_>>();
    if let Some(path) = path {
        let file = graph.find_file(path).ok_or("there is no such file")?;
        let (all, told) = (
            graph.dependents(&[file], u32::MAX),
            graph.find_impact(&snapshot, &[ChangedSourceFile::from(file)], u32::MAX),
        );
        let (all, kept) = (names(&all), names(&told));
        for file in all.iter().filter(|file| !kept.contains(file)) {
            println!("left out  {}", graph.path(*file));
        }
        for file in kept {
            let way: Vec<&str> = told.path_to(file).into_iter().map(|file| graph.path(file)).collect();
            println!("{}  {}", if all.contains(&file) { "affected" } else { "only now" }, way.join(" → "));
        }
        return Ok(());
    }
    let (mut files, mut tests) = ([Vec::new(), Vec::new()], [0_usize, 0]);
    let mut took: Vec<Duration> = Vec::new();
    let is_source = |file: &u32| {
        graph.node(*file).is_some_and(|node| {
            let flags = node.flags;
            node.language.is_some() && !flags.test && !flags.doc && !flags.vendored && !flags.generated
        })
    };
    for file in (0..u32::try_from(graph.len())?).filter(is_source) {
        let all = graph.dependents(&[file], u32::MAX);
        let begun = Instant::now();
        let told = graph.find_impact(&snapshot, &[ChangedSourceFile::from(file)], u32::MAX);
        took.push(begun.elapsed());
        for (at, reach) in [&all, &told].into_iter().enumerate() {
            if let (Some(files), Some(tests)) = (files.get_mut(at), tests.get_mut(at)) {
                files.push(reach.files.len());
                *tests += graph.affected_tests(&[file], reach).len();
            }
        }
    }
    took.sort();
    let [by_files, told] = &mut files;
    let line = |counts: &mut Vec<usize>, tests: usize| {
        counts.sort_unstable();
        let sum: usize = counts.iter().sum();
        json!({
            "mean": sum as f64 / counts.len().max(1) as f64, "median": counts.get(counts.len() / 2),
            "p90": counts.get(counts.len() * 9 / 10), "tests": tests as f64 / counts.len().max(1) as f64,
        })
    };
    let slowest = took.last().map_or(0.0, |took| took.as_secs_f64() * 1e3);
    let middle = took.get(took.len() / 2).map_or(0.0, |took| took.as_secs_f64() * 1e3);
    let count = by_files.len();
    println!(
        "{}",
        json!({
            "files": graph.len(), "asked": count, "by files": line(by_files, tests[0]),
            "told": line(told, tests[1]), "median ms": middle, "slowest ms": slowest,
        })
    );
    Ok(())
}
