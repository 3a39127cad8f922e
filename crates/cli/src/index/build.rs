//! `jm index`: updates the index, and prints a summary.

use std::time::Instant;

use clap::Args;
use journeyman_host::config::Environment;
use journeyman_host::index::{IndexSummary, open_embedded_index, open_index, rebuild_index, refresh_index};
use journeyman_host::{Context as _, HostError};
use journeyman_index::vectors::EmbeddingProgress;
use journeyman_terminal::CountProgress;

use super::follow;
use super::open::print_note;
use crate::args::ProjectArgs;

#[derive(Debug, Args)]
pub(crate) struct IndexArgs {
    #[command(flatten)]
    project: ProjectArgs,
    /// Say what the index has, by language
    #[arg(long)]
    stats: bool,
    /// Delete the index and rebuild it
    #[arg(long)]
    rebuild: bool,
    /// Follow the files: bring up to date what changes, until Ctrl-C
    #[arg(long, conflicts_with = "stats")]
    watch: bool,
    /// Print one JSON object; with --watch one a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn update_index(environment: &Environment, args: &IndexArgs) -> Result<u8, HostError> {
    let project = open_index(environment, args.project.directory.as_deref(), print_note)?;
    if args.rebuild {
        rebuild_index(&project)?;
    }
    if args.watch {
        return follow::follow_project_files(project, args.json);
    }
    let start = Instant::now();
    let line = CountProgress::new("indexing");
    let report = refresh_index(&project, print_note, &|progress| line.update(progress.done, progress.of))?;
    line.clear();
    let took = start.elapsed();
    project.index().verify().context("the index")?;
    let snapshot = project.index().snapshot();
    let summary = IndexSummary::new(&project, &snapshot, report, took);
    let held = open_embedded_index(environment, &project, print_note)?;
    let line = CountProgress::new("embedding");
    let progress = |progress: EmbeddingProgress| line.update(progress.done, progress.of);
    let embedded = held.as_ref().map(|held| held.embed_missing(&project, &snapshot, &progress, print_note));
    line.clear();
    let is_embedded = embedded.transpose()?.unwrap_or(true);
    if args.json {
        outln!("{}", summary.to_json(held.map(|held| held.to_json(&snapshot))));
    } else {
        let vectors = match &held {
            Some(held) => held.describe(&snapshot),
            None => "no vectors (index.vectors)".to_owned(),
        };
        print_summary(&summary, args.stats.then_some(&vectors));
    }
    Ok(u8::from(!is_embedded))
}

/// Prints the result of the update; with `vectors` also the size and the parts of the index.
fn print_summary(summary: &IndexSummary, vectors: Option<&String>) {
    let IndexSummary { totals, report, took, directory, languages } = summary;
    let unreadable = match report.unreadable {
        0 => String::new(),
        count => format!(", {count} can't be read"),
    };
    outln!(
        "{} files, {} symbols; {} read, {} gone{unreadable}, in {:.1} s",
        totals.files,
        totals.symbols,
        report.read,
        report.gone,
        took.as_secs_f64()
    );
    let Some(vectors) = vectors else { return };
    outln!("{} bytes of text in {} chunks", totals.bytes, totals.chunks);
    for (name, files) in languages {
        outln!("  {files:>7}  {name}");
    }
    outln!("signals: words, paths, symbols, mentions, commit history");
    outln!("{vectors}");
    outln!("kept in {}", directory.display());
}
