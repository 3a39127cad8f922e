//! The index of a project, brought up to date before it answers.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use journeyman_host::config::Environment;
use journeyman_host::index::{CodeGraph, index_threads, open_index};
use journeyman_host::{Context as _, HostError};
use journeyman_index::store::{Options, Progress, Report};
use journeyman_index::{Project, Snapshot};

use super::progress::ProgressLine;
use crate::input::read_argument;

/// Brings the index up to date, and shows progress if that takes a while.
pub(super) fn refresh(project: &Project) -> Result<Report, HostError> {
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

/// Prints a note for people.
pub(super) fn note(text: &str) {
    tell!("{text}");
}

/// Reads a query; `-` stands for standard input.
pub(super) fn read_query(argument: &str) -> Result<String, HostError> {
    let text = read_argument("query", argument)?;
    if text.trim().is_empty() {
        return Err(HostError::usage("the query is empty"));
    }
    Ok(text)
}

/// Opens the dependency graph of the project, up to date.
pub(super) fn open_graph(
    environment: &Environment,
    directory: Option<&Path>,
) -> Result<CodeGraph, HostError> {
    let (project, snapshot) = current(environment, directory)?;
    CodeGraph::new(environment, directory, project, snapshot)
}

/// Parses a number of results, at least one.
pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("0 shows nothing".to_owned()),
        Ok(count) => Ok(count),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the project's index, up to date, and its snapshot.
pub(super) fn current(
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
