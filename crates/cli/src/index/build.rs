//! `jm index`: brings the index up to date, and says what is in it.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use journeyman_host::config::Environment;
use journeyman_host::index::{EmbeddedIndex, count_languages, open_embedded, open_index};
use journeyman_host::{Context as _, HostError};
use journeyman_index::vectors::{EmbeddingProgress, Vectors};
use journeyman_index::{Project, Snapshot};

use super::follow;
use super::open::{note, refresh};
use super::progress::ProgressLine;
use crate::stdout::say;

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
        Vectors::forget(project.index().directory()).context("the vectors")?;
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

/// Embeds the chunks that have no vector yet, and shows progress if that takes a while.
fn embed(held: &EmbeddedIndex, project: &Project, snapshot: &Snapshot) -> Result<bool, HostError> {
    let line = ProgressLine::new("embedding");
    let progress = |progress: EmbeddingProgress| line.update(progress.done, progress.of);
    let embedded = held.embed_missing(project, snapshot, &progress, note);
    line.clear();
    embedded
}
