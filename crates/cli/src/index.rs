//! `jm index`, `jm search`, `jm symbols`, `jm refs`, `jm deps`, `jm impact`, `jm map` and `jm why`:
//! what the index knows, for people and scripts.

mod deps;
mod follow;
mod impact;
mod map;
mod names;
mod search;
mod why;

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use clap::Args;
use journeyman_host::config::Environment;
use journeyman_host::index::{
    CodeGraph, EmbeddedIndex, count_languages, index_threads, open_embedded, open_index,
};
use journeyman_host::{Context as _, HostError};
use journeyman_index::store::{Options, Progress, Report};
use journeyman_index::{Project, Snapshot};

use crate::stdout::say;

pub(crate) use deps::{DepsArgs, deps};
pub(crate) use impact::{ImpactArgs, impact};
pub(crate) use map::{MapArgs, map};
pub(crate) use names::{RefsArgs, SymbolsArgs, refs, symbols};
pub(crate) use search::{SearchArgs, search};
pub(crate) use why::{WhyArgs, why};

/// Time before progress is shown, in milliseconds.
const PROGRESS_DELAY_MS: u64 = 700;
/// Time between two lines of progress, in milliseconds.
const PROGRESS_INTERVAL_MS: u64 = 200;
/// Maximum size of a query that is read, in bytes; ranking cuts it shorter.
const MAX_QUERY_BYTES: u64 = 1 << 20;

#[derive(Debug, Args)]
pub(crate) struct IndexArgs {
    /// The project's directory instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Say what the index has, by language
    #[arg(long)]
    stats: bool,
    /// Forget what there is, and make it anew
    #[arg(long)]
    rebuild: bool,
    /// Follow the files: bring up to date what changes, until Ctrl-C
    #[arg(long, conflicts_with = "stats")]
    watch: bool,
    /// Print one JSON object; with --watch one a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn index(environment: &Environment, args: &IndexArgs) -> Result<u8, HostError> {
    let project = open_index(environment, args.directory.as_deref(), note)?;
    if args.rebuild {
        project.index().clear().context("the index")?;
        journeyman_index::vectors::Vectors::forget(project.index().directory()).context("the vectors")?;
    }
    if args.watch {
        return follow::follow(project, args.json);
    }
    let start = Instant::now();
    let report = refresh(&project)?;
    let took = start.elapsed().as_secs_f64();
    project.index().verify().context("the index")?;
    let snapshot = project.index().snapshot();
    let held = open_embedded(environment, &project, note)?;
    let embedded = held.as_ref().map_or(Ok(true), |held| embed(held, &project, &snapshot))?;
    let totals = snapshot.totals();
    if args.json {
        let languages: serde_json::Map<_, _> = count_languages(&snapshot)
            .into_iter()
            .map(|(name, files)| (name.to_owned(), files.into()))
            .collect();
        say!(
            "{}",
            serde_json::json!({
                "files": totals.files, "bytes": totals.bytes, "chunks": totals.chunks, "symbols": totals.symbols,
                "read": report.read, "gone": report.gone, "unreadable": report.unreadable, "cut": report.cut,
                "seconds": took, "directory": project.index().directory(), "languages": languages,
                "vectors": held.as_ref().map(|held| held.to_json(&snapshot)),
            })
        );
        return Ok(u8::from(!embedded));
    }
    let unreadable = match report.unreadable {
        0 => String::new(),
        count => format!(", {count} can't be read"),
    };
    say!(
        "{} files, {} symbols; {} read, {} gone{unreadable}, in {took:.1} s",
        totals.files,
        totals.symbols,
        report.read,
        report.gone
    );
    if args.stats {
        say!("{} bytes of text in {} chunks", totals.bytes, totals.chunks);
        for (name, files) in count_languages(&snapshot) {
            say!("  {files:>7}  {name}");
        }
        say!("signals: words, paths, symbols, mentions, commit history");
        match &held {
            Some(held) => say!("{}", held.describe(&snapshot)),
            None => say!("no vectors (index.vectors)"),
        }
        say!("kept in {}", project.index().directory().display());
    }
    Ok(u8::from(!embedded))
}

/// Brings the index up to date, and shows progress if that takes a while.
fn refresh(project: &Project) -> Result<Report, HostError> {
    let line = ProgressLine::new("indexing");
    let progress = |progress: Progress| line.update(progress.done, progress.of);
    let stop = AtomicBool::new(false);
    let options = Options { threads: index_threads(), wait: false, progress: &progress, stop: &stop };
    let report = project.refresh(options).context("the index")?;
    line.clear();
    if report.left_to_another {
        tell!("note: another process is bringing the index up to date; this is what there is so far");
    }
    if report.cut {
        tell!(
            "warning: the project has more files than the index takes; name what isn't needed in .journeymanignore"
        );
    }
    Ok(report)
}

/// Embeds the chunks that have no vector yet, and shows progress if that takes a while.
fn embed(held: &EmbeddedIndex, project: &Project, snapshot: &Snapshot) -> Result<bool, HostError> {
    let line = ProgressLine::new("embedding");
    let progress =
        |progress: journeyman_index::vectors::EmbeddingProgress| line.update(progress.done, progress.of);
    let embedded = held.embed_missing(project, snapshot, &progress, note);
    line.clear();
    embedded
}

/// A line of progress on a terminal, drawn over and over.
struct ProgressLine {
    verb: &'static str,
    start: Instant,
    last_ms: AtomicU64,
    is_terminal: bool,
}

impl ProgressLine {
    fn new(verb: &'static str) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { verb, start: Instant::now(), last_ms: AtomicU64::new(0), is_terminal }
    }

    fn update(&self, done: usize, of: usize) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let before = self.last_ms.load(Ordering::Relaxed);
        if !self.is_terminal || now < PROGRESS_DELAY_MS || now < before + PROGRESS_INTERVAL_MS {
            return;
        }
        if self.last_ms.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            write!(std::io::stderr(), "\r{}: {done} of {of} files\u{1b}[K", self.verb).ok();
        }
    }

    fn clear(&self) {
        if self.last_ms.load(Ordering::Relaxed) > 0 {
            write!(std::io::stderr(), "\r\u{1b}[K").ok();
        }
    }
}

/// Prints a note for people.
fn note(text: &str) {
    tell!("{text}");
}

/// Reads a query; `-` stands for standard input.
fn read_query(argument: &str) -> Result<String, HostError> {
    let text = match argument {
        "-" => std::io::read_to_string(std::io::Read::take(std::io::stdin(), MAX_QUERY_BYTES))
            .context("standard input")?,
        query => query.to_owned(),
    };
    if text.trim().is_empty() {
        return Err(HostError::usage("the query is empty"));
    }
    Ok(text)
}

/// Opens the dependency graph of the project, up to date.
fn open_graph(environment: &Environment, directory: Option<&Path>) -> Result<CodeGraph, HostError> {
    let (project, snapshot) = current(environment, directory)?;
    CodeGraph::new(environment, directory, project, snapshot)
}

/// Parses a number of results, at least one.
fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("0 shows nothing".to_owned()),
        Ok(count) => Ok(count),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the project's index, up to date, and its snapshot.
fn current(
    environment: &Environment,
    directory: Option<&Path>,
) -> Result<(Project, Arc<Snapshot>), HostError> {
    let project = open_index(environment, directory, note)?;
    if let Err(error) = refresh(&project) {
        // An index that can't be updated, such as on a full disk, still answers.
        if project.index().snapshot().totals().files == 0 {
            return Err(error);
        }
        tell!("note: the files may have changed since they were indexed: {error}");
    }
    let snapshot = project.index().snapshot();
    if snapshot.is_partial() {
        tell!("note: not all files are in the index yet");
    }
    Ok((project, snapshot))
}
