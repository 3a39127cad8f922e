//! `jm index`, `jm search`, `jm symbols`, `jm refs`, `jm deps`, `jm impact`, `jm map` and `jm why`: what the index knows, for
//! people and scripts.

mod deps;
mod follow;
mod impact;
mod map;
mod names;
mod place;
mod search;
mod vectors;
mod why;

use journeyman_host::state::project_state_dir;
use std::io::{IsTerminal as _, Write as _};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use clap::Args;
use journeyman_host::Context as _;
use journeyman_host::config::{Environment, load_own};
use journeyman_index::store::{Options, Progress, Report};
use journeyman_index::{Project, Snapshot};
use journeyman_policy::secrets::Redactor;

use crate::stdout::say;
use journeyman_host::HostError;
use journeyman_host::state::project_root;
use journeyman_host::{ADMIN_CONFIG, configured_secrets, load_trusted};

pub(crate) use deps::{DepsArgs, HELP as DEPS_HELP, deps};
pub(crate) use impact::{HELP as IMPACT_HELP, ImpactArgs, impact};
pub(crate) use map::{HELP as MAP_HELP, MapArgs, map};
pub(crate) use names::{REFS_HELP, RefsArgs, SYMBOLS_HELP, SymbolsArgs, refs, symbols};
pub(crate) use search::{HELP as SEARCH_HELP, SearchArgs, search};
pub(crate) use why::{HELP as WHY_HELP, WhyArgs, why};

pub(crate) const HELP: &str = "\
The index is made and brought up to date by whatever asks it; this does it now and says what it has. It lies in the \
state directory, not in your project, and may be deleted at any time.

What .gitignore, .ignore and .journeymanignore leave out isn't in it.

Examples:
  jm index                bring it up to date
  jm index --stats        say what it has
  jm index --watch        follow the files until Ctrl-C
  jm index --rebuild      make it anew";

/// Threads that read files: more than the disk and the parsers keep busy help little.
const MOST_THREADS: usize = 8;
/// Milliseconds after which progress is shown.
const PATIENCE: u64 = 700;
/// Milliseconds between two lines of progress.
const BEAT: u64 = 200;

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
    let project = open(environment, args.directory.as_deref())?;
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
    let held = vectors::held(environment, &project)?;
    let embedded = held.as_ref().map_or(Ok(true), |held| held.follow(&project, &snapshot))?;
    let totals = snapshot.totals();
    if args.json {
        let languages: serde_json::Map<_, _> =
            languages(&snapshot).into_iter().map(|(name, files)| (name.to_owned(), files.into())).collect();
        say!(
            "{}",
            serde_json::json!({
                "files": totals.files, "bytes": totals.bytes, "chunks": totals.chunks, "symbols": totals.symbols,
                "read": report.read, "gone": report.gone, "unreadable": report.unreadable, "cut": report.cut,
                "seconds": took, "directory": project.index().directory(), "languages": languages,
                "vectors": held.as_ref().map(|held| held.object(&snapshot)),
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
        say!("{} bytes of text in {} stretches", totals.bytes, totals.chunks);
        for (name, files) in languages(&snapshot) {
            say!("  {files:>7}  {name}");
        }
        say!("signals: words, paths, symbols, mentions, commit history");
        match &held {
            Some(held) => say!("{}", held.told(&snapshot)),
            None => say!("no vectors (index.vectors)"),
        }
        say!("kept in {}", project.index().directory().display());
    }
    Ok(u8::from(!embedded))
}

/// How many files there are of each language, the most first.
fn languages(snapshot: &Snapshot) -> Vec<(&'static str, usize)> {
    let mut counts = std::collections::BTreeMap::new();
    for (_, file) in snapshot.files() {
        let name = file.record.language.map_or("other", |language| language.name());
        *counts.entry(name).or_insert(0) += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(name, files)| (std::cmp::Reverse(*files), *name));
    counts
}

/// The index of the project here.
fn open(environment: &Environment, directory: Option<&Path>) -> Result<Project, HostError> {
    let place = project_root(environment, directory)?;
    let directory = project_state_dir(environment, &place)?.join("index");
    // What a run keeps out of the index isn't brought in by others. A project that asks for more than it may is told so by
    // what obeys it; here it has no say.
    let config = load_trusted(environment, &place)
        .or_else(|_| load_own(environment, Some(Path::new(ADMIN_CONFIG))))?;
    let redactor = Arc::new(Redactor::new(configured_secrets(environment, &config)));
    let project =
        Project::open_redacting(&place, &directory, threads().get(), redactor).context("the index")?;
    if let Some(why) = project.index().damage_report() {
        tell!("note: {why}");
    }
    Ok(project)
}

fn threads() -> NonZero<usize> {
    let most = NonZero::new(MOST_THREADS).unwrap_or(NonZero::<usize>::MIN);
    std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN).min(most)
}

/// Brings the index up to date, and shows progress where that takes a while.
fn refresh(project: &Project) -> Result<Report, HostError> {
    let (start, last) = (Instant::now(), AtomicU64::new(0));
    let shows = std::io::stderr().is_terminal();
    let progress = |progress: Progress| {
        let now = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let before = last.load(Ordering::Relaxed);
        if !shows || now < PATIENCE || now < before + BEAT {
            return;
        }
        if last.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            let Progress { done, of, .. } = progress;
            write!(std::io::stderr(), "\rindexing: {done} of {of} files\u{1b}[K").ok();
        }
    };
    let stop = AtomicBool::new(false);
    let options = Options { threads: threads(), wait: false, progress: &progress, stop: &stop };
    let report = project.refresh(options).context("the index")?;
    if last.into_inner() > 0 {
        write!(std::io::stderr(), "\r\u{1b}[K").ok();
    }
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

/// How many are shown: none would be no answer.
fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("0 shows nothing".to_owned()),
        Ok(count) => Ok(count),
        Err(error) => Err(error.to_string()),
    }
}

/// The project's index, up to date, and what it has.
fn current(
    environment: &Environment,
    directory: Option<&Path>,
) -> Result<(Project, Arc<Snapshot>), HostError> {
    let project = open(environment, directory)?;
    if let Err(error) = refresh(&project) {
        // What there is answers too, such as where the disk is full or isn't to be written to.
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
