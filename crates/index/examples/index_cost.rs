//! Costs of an index: `cargo run --release -p journeyman-index --example index_cost -- STEP …`.
//!
//! - `parse TREE`: parses a tree's files, which bounds every step with a parser.
//! - `text TREE`, `build TREE DIRECTORY`: builds the index of a tree, without parsing or complete.
//! - `scan TREE DIRECTORY`: opens the index, and refreshes it with nothing changed.
//! - `graph TREE DIRECTORY`: builds the dependency graph, loads the saved one, and queries a file.
//! - `query TREE DIRECTORY [QUERIES]`: searches with the lines of a file (each a JSON object with
//!   `query`), or else with names and sentences of the index itself; with the tree's history, where
//!   it is in a git repository.
//! - `update TREE DIRECTORY`: changes a file, and searches its new text. Nothing in the tree is
//!   written.
//! - `idle DIRECTORY`: opens the index, searches once, and prints the memory use.
//!
//! Prints one JSON object a step. Times are in milliseconds; `cpu_ms` is processor time of the
//! whole process, which gives a rate per core on a busy machine.

use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use journeyman_git::Git;
use journeyman_index::project::ProjectIndex;
use journeyman_index::query::{Query, QueryContext, Searcher};
use journeyman_index::source::{FileSource, Listing, SourceContent, WorkTree};
use journeyman_index::store::{IndexReport, RefreshOptions};
use journeyman_index::tokens::Tokenizer;
use journeyman_index::{Index, IndexError, Snapshot, analysis::FileStamp};
use journeyman_protocol::{RelPath, SandboxTier};
use journeyman_sandbox::{Sandbox, SandboxSettings, run_helper_if_asked};
use serde_json::{Value, json};

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// Maximum queries from the index itself.
const QUERIES: usize = 400;
/// Number of changes of one file.
const UPDATES: usize = 41;
/// Maximum characters of the slowest query in the output.
const SHOWN: usize = 200;
/// Maximum results of a query.
const LIMIT: usize = 20;

fn main() -> Fallible<()> {
    run_helper_if_asked();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let found = match words.as_slice() {
        ["parse", tree] => parse(tree.as_ref()),
        ["text", tree] => text(tree.as_ref()),
        ["build", tree, directory] => build(tree.as_ref(), directory.as_ref()),
        ["scan", tree, directory] => scan(tree.as_ref(), directory.as_ref()),
        ["graph", tree, directory] => graph(tree.as_ref(), directory.as_ref()),
        ["query", tree, directory] => query(tree.as_ref(), directory.as_ref(), None),
        ["query", tree, directory, queries] => {
            query(tree.as_ref(), directory.as_ref(), Some(queries.as_ref()))
        }
        ["update", tree, directory] => update(tree.as_ref(), directory.as_ref()),
        ["idle", directory] => idle(directory.as_ref()),
        _ => Err("see the head of crates/index/examples/index_cost.rs".into()),
    }?;
    println!("{found}");
    Ok(())
}

/// Parses every file that the index would parse, on two threads, and drops the trees.
fn parse(tree: &Path) -> Fallible<Value> {
    use journeyman_syntax::language::Language;
    let source = WorkTree::new(tree, 2);
    let listing = source.list()?;
    let (next, bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let start = Clock::start();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(listed) = listing.files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let Ok((SourceContent::Whole(read), _)) = source.read(&listed.path) else { continue };
                    let Ok(text) = String::from_utf8(read) else { continue };
                    let Some(language) = Language::detect(&listed.path.to_string(), &text) else { continue };
                    if text.len() <= journeyman_index::analyser::MAX_PARSED_BYTES
                        && journeyman_syntax::parse::parse(language, &text).is_ok()
                    {
                        bytes.fetch_add(text.len(), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let (wall, cpu) = start.passed();
    Ok(json!({ "step": "parse", "bytes": bytes.into_inner(), "ms": wall, "cpu_ms": cpu }))
}

fn text(tree: &Path) -> Fallible<Value> {
    let kept = tempfile::tempdir()?;
    made(tree, &kept.path().join("index"), "text", Index::refresh_without_parsing)
}

fn build(tree: &Path, directory: &Path) -> Fallible<Value> {
    made(tree, directory, "build", Index::refresh)
}

type Refresh = fn(&Index, &dyn FileSource, RefreshOptions<'_>) -> Result<IndexReport, IndexError>;

fn made(tree: &Path, directory: &Path, step: &str, refresh: Refresh) -> Fallible<Value> {
    let source = WorkTree::new(tree, 2);
    let start = Clock::start();
    let index = Index::open(directory)?;
    let report = with_options(|options| refresh(&index, &source, options))?;
    let (wall, cpu) = start.passed();
    let totals = index.snapshot().totals();
    let size = size(directory)?;
    Ok(json!({
        "step": step, "files": report.read, "bytes": report.bytes, "ms": wall, "cpu_ms": cpu,
        "chunks": totals.chunks, "symbols": totals.symbols, "index_bytes": size,
        "parts": index.snapshot().section_sizes(), "peak_mib": memory("VmHWM:"), "left_mib": memory("RssAnon:"),
    }))
}

fn scan(tree: &Path, directory: &Path) -> Fallible<Value> {
    let source = WorkTree::new(tree, 2);
    let mut opening = Vec::new();
    for _ in 0..11 {
        let start = Clock::start();
        drop(Index::open(directory)?);
        opening.push(start.passed().0);
    }
    let index = Index::open(directory)?;
    let start = Clock::start();
    let report = with_options(|options| index.refresh(&source, options))?;
    let (wall, cpu) = start.passed();
    Ok(json!({
        "step": "scan", "open_ms": at(&mut opening, 0.5), "ms": wall, "cpu_ms": cpu,
        "read": report.read + report.same, "files": index.snapshot().totals().files,
    }))
}

fn graph(tree: &Path, directory: &Path) -> Fallible<Value> {
    let mut figures = Vec::new();
    let (mut files, mut edges, mut resolved) = (0, 0, Vec::new());
    for made in [true, false] {
        if made {
            // The graph of an earlier run.
            std::fs::remove_file(directory.join("graph")).or_else(|error| {
                if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
            })?;
        }
        let project = ProjectIndex::open(tree, directory, 2)?;
        let snapshot = project.index().snapshot();
        let start = Clock::start();
        let graph = project.graph(&snapshot);
        figures.push(start.passed());
        resolved.push(graph.last_update_stats().resolved);
        files = graph.len();
        edges = (0..files as u32).map(|file| graph.edges(file).len()).sum();
    }
    let [(wall, cpu), (again, again_cpu)] = figures.as_slice() else { return Err("two rounds".into()) };
    Ok(json!({
        "step": "graph", "files": files, "edges": edges, "resolved": resolved, "ms": wall, "cpu_ms": cpu, "again_ms": again,
        "again_cpu_ms": again_cpu, "peak_mib": memory("VmHWM:"),
    }))
}

fn query(tree: &Path, directory: &Path, queries: Option<&Path>) -> Fallible<Value> {
    let project = ProjectIndex::open(tree, directory, 2)?;
    let snapshot = project.index().snapshot();
    let settings = SandboxSettings {
        allow: vec![SandboxTier::Namespaces, SandboxTier::Unconfined],
        allow_root: true,
        ..Default::default()
    };
    let git = Git::new(tree, Arc::new(Sandbox::new(settings)));
    let history = Git::run_blocking(project.load_history(&git))?;
    let texts = match queries {
        Some(path) => read_queries(path)?,
        None => own_queries(&snapshot),
    };
    let (mut searcher, mut tokenizer) = (Searcher::new(), Tokenizer::new());
    let (mut walls, mut cpus, mut found, mut slowest) = (Vec::new(), Vec::new(), 0, (0.0, ""));
    // Reads all of it once, so that everything is in memory.
    for measured in [false, true] {
        for text in &texts {
            let start = Clock::start();
            let query = Query::new(text, &mut tokenizer);
            let answer =
                searcher.search(&*snapshot, history.as_ref(), &query, QueryContext::default(), LIMIT);
            let (wall, cpu) = start.passed();
            if measured {
                found += usize::from(!answer.files.is_empty());
                if cpu > slowest.0 {
                    slowest = (cpu, text);
                }
                walls.push(wall);
                cpus.push(cpu);
            }
        }
    }
    let words: usize = texts.iter().map(|text| text.split_whitespace().count()).sum();
    Ok(json!({
        "step": "query", "queries": texts.len(), "answered": found, "words": words / texts.len().max(1),
        "p50_ms": at(&mut walls, 0.5), "p99_ms": at(&mut walls, 0.99),
        "cpu_p50_ms": at(&mut cpus, 0.5), "cpu_p99_ms": at(&mut cpus, 0.99), "cpu_max_ms": at(&mut cpus, 1.0),
        "commits": history.as_ref().map_or(0, |history| history.commits().len()),
        "bytes": snapshot.totals().bytes, "slowest": slowest.1.chars().take(SHOWN).collect::<String>(),
    }))
}

fn read_queries(path: &Path) -> Fallible<Vec<String>> {
    let mut texts = Vec::new();
    for line in std::fs::read_to_string(path)?.lines() {
        let row: Value = serde_json::from_str(line)?;
        texts.push(row.get("query").and_then(Value::as_str).ok_or("a line without `query`")?.to_owned());
    }
    Ok(texts)
}

/// Names that the tree defines, and sentences of their comments, spread over all of it.
fn own_queries(snapshot: &Snapshot) -> Vec<String> {
    let all = usize::try_from(snapshot.totals().symbols).unwrap_or(0);
    let step = (all * 2 / QUERIES).max(1);
    let mut texts = Vec::new();
    for number in (0..u32::MAX).step_by(step) {
        let Some((_, symbol)) = snapshot.symbol(number) else { break };
        texts.push(symbol.name.clone());
        texts.push(format!("{} {}\n{}", symbol.name, symbol.doc, symbol.signature));
    }
    texts
}

/// A tree in which one file has another content than on disk.
struct Changed<'a> {
    tree: &'a WorkTree,
    path: RelPath,
    bytes: Vec<u8>,
    time: i64,
}

impl FileSource for Changed<'_> {
    fn list(&self) -> Result<Listing, IndexError> {
        self.tree.list()
    }

    fn stamp(&self, path: &RelPath) -> Option<FileStamp> {
        let stamp = self.tree.stamp(path)?;
        let size = self.bytes.len() as u64;
        Some(if *path == self.path { FileStamp { size, modified: self.time, ..stamp } } else { stamp })
    }

    fn read(&self, path: &RelPath) -> std::io::Result<(SourceContent, FileStamp)> {
        let (read, stamp) = self.tree.read(path)?;
        if *path != self.path {
            return Ok((read, stamp));
        }
        Ok((SourceContent::Whole(self.bytes.clone()), self.stamp(path).unwrap_or(stamp)))
    }
}

fn update(tree: &Path, directory: &Path) -> Fallible<Value> {
    let work_tree = WorkTree::new(tree, 2);
    let index = Index::open(directory)?;
    let path = usual_file(&index.snapshot())?;
    let (SourceContent::Whole(before), _) = work_tree.read(&path)? else {
        return Err("the file has gone".into());
    };
    let mut source = Changed { tree: &work_tree, path: path.clone(), bytes: Vec::new(), time: 0 };
    let (mut walls, mut cpus, mut tidying) = (Vec::new(), Vec::new(), Vec::new());
    let (mut searcher, mut tokenizer) = (Searcher::new(), Tokenizer::new());
    for round in 0..UPDATES {
        // A word that occurs nowhere else, without parts.
        let letter = |number: usize| char::from(b'a' + (number % 26) as u8);
        let word = format!("zquuxw{}{}qz", letter(round / 26), letter(round));
        source.bytes = [before.as_slice(), format!("\n# {word}\n").as_bytes()].concat();
        source.time += 1_000_000;
        let start = Clock::start();
        let report =
            with_options(|options| index.update_files(&source, std::slice::from_ref(&path), options))?;
        let snapshot = index.snapshot();
        let query = Query::new(&word, &mut tokenizer);
        let answer = searcher.search(&*snapshot, None, &query, QueryContext::default(), LIMIT);
        let (wall, cpu) = start.passed();
        let found = answer.files.first().is_some_and(|hit| hit.path == path.as_bytes());
        if report.read != 1 || !found {
            return Err(format!("{path} was changed and not found: {report:?}").into());
        }
        walls.push(wall);
        cpus.push(cpu);
        let start = Clock::start();
        index.merge_small_segments()?;
        tidying.push(start.passed().0);
    }
    source.bytes = before;
    source.time += 1_000_000;
    with_options(|options| index.update_files(&source, std::slice::from_ref(&path), options))?;
    Ok(json!({
        "step": "update", "file": path.to_string(), "size": source.bytes.len(),
        "files": index.snapshot().totals().files,
        "ms": at(&mut walls, 0.5), "max_ms": at(&mut walls, 1.0), "cpu_ms": at(&mut cpus, 0.5),
        "tidy_ms": at(&mut tidying, 0.5), "tidy_max_ms": at(&mut tidying, 1.0),
    }))
}

/// A source file of medium size.
fn usual_file(snapshot: &Snapshot) -> Fallible<RelPath> {
    let is_usual = |(_, file): &(u32, journeyman_index::snapshot::FileView<'_>)| {
        file.record.language.is_some() && file.record.symbols > 3
    };
    let mut files: Vec<_> =
        snapshot.files().filter(is_usual).map(|(_, file)| (file.record.stamp.size, file.path())).collect();
    files.sort();
    let middle = files.len() / 2;
    Ok(files.get(middle).and_then(|(_, path)| path.clone()).ok_or("the tree has no source")?)
}

fn idle(directory: &Path) -> Fallible<Value> {
    let bare = memory("VmRSS:");
    let index = Index::open(directory)?;
    let snapshot = index.snapshot();
    let opened = memory("VmRSS:");
    {
        let query = Query::new("open a file and read lines", &mut Tokenizer::new());
        Searcher::new().search(&*snapshot, None, &query, QueryContext::default(), LIMIT);
    }
    let asked = memory("VmRSS:");
    // The idle work of a process that follows a tree.
    index.merge_small_segments()?;
    Ok(json!({
        "step": "idle", "index_bytes": size(directory)?, "bare_mib": bare, "opened_mib": opened,
        "asked_mib": asked,
        "idle_mib": memory("VmRSS:"), "own_mib": memory("RssAnon:"),
    }))
}

fn with_options<T>(run: impl FnOnce(RefreshOptions<'_>) -> Result<T, IndexError>) -> Fallible<T> {
    let stop = AtomicBool::new(false);
    let threads = NonZero::new(2).ok_or("two")?;
    Ok(run(RefreshOptions { threads, wait: true, progress: &|_| {}, stop: &stop })?)
}

fn size(directory: &Path) -> std::io::Result<u64> {
    std::fs::read_dir(directory)?.map(|entry| Ok(entry?.metadata()?.len())).sum()
}

/// Returns a part of the process's memory, in MiB.
fn memory(which: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(which));
    let kib: Option<f64> = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    kib.unwrap_or_default() / 1024.0
}

/// Returns a percentile.
fn at(figures: &mut [f64], part: f64) -> f64 {
    figures.sort_by(f64::total_cmp);
    let last = figures.len().saturating_sub(1);
    figures.get(((figures.len() as f64 * part) as usize).min(last)).copied().unwrap_or_default()
}

struct Clock {
    wall: Instant,
    cpu: f64,
}

impl Clock {
    fn start() -> Self {
        Self { wall: Instant::now(), cpu: cpu() }
    }

    fn passed(&self) -> (f64, f64) {
        (self.wall.elapsed().as_secs_f64() * 1e3, cpu() - self.cpu)
    }
}

fn cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}
