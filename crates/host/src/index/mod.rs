//! Questions to the index of a project, for people and programs.

mod dependencies;
mod embedded;
mod explain;
mod follow;
mod graph;
mod impact;
mod map;
mod path;
mod search;
mod symbols;

use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;

use journeyman_git::Git;
use journeyman_index::history::History;
use journeyman_index::query::{Answer, Definition, FileHit, Passage, full_name};
use journeyman_index::{Project, Snapshot};
use journeyman_policy::secrets::Redactor;
use journeyman_sandbox::{Sandbox, SandboxSettings};
use serde_json::{Value, json};

use crate::config::{Environment, load_own};
use crate::state::{project_root, project_state_dir};
use crate::{ADMIN_CONFIG, Context as _, HostError, configured_secrets, load_trusted};

pub use dependencies::{Dependencies, DependencyPath, cycles_to_json, find_cycles};
pub use embedded::{EmbeddedIndex, find_similar, open_embedded};
pub use explain::{Explanation, SignalStrength};
pub use follow::watch_event_to_json;
pub use graph::{ChangeSet, CodeGraph, find_near};
pub use impact::Impact;
pub use map::ProjectMap;
pub use path::PathResolver;
pub use search::{SearchKind, SearchOptions, SearchResults};
pub use symbols::{
    FileSymbol, FileSymbols, References, SymbolLink, find_indexed_file, no_symbols_reason, shown_path,
};

/// Maximum number of threads that read files; more help little.
const MAX_THREADS: usize = 8;

/// Opens the index of the project in `directory`. `note` gets what people should know.
///
/// # Errors
/// [`HostError`] where the project or its index can't be opened.
pub fn open_index(
    environment: &Environment,
    directory: Option<&Path>,
    note: fn(&str),
) -> Result<Project, HostError> {
    let place = project_root(environment, directory)?;
    let directory = project_state_dir(environment, &place)?.join("index");
    // The secrets that a run keeps out of the index stay out here too. A wrong configuration of the
    // project is reported by the commands that use it.
    let config = load_trusted(environment, &place)
        .or_else(|_| load_own(environment, Some(Path::new(ADMIN_CONFIG))))?;
    let redactor = Arc::new(Redactor::new(configured_secrets(environment, &config)));
    let project =
        Project::open_redacting(&place, &directory, index_threads().get(), redactor).context("the index")?;
    if let Some(why) = project.index().damage_report() {
        note(&format!("note: {why}"));
    }
    Ok(project)
}

/// Returns the number of threads for reading files.
#[must_use]
pub fn index_threads() -> NonZero<usize> {
    let max = NonZero::new(MAX_THREADS).unwrap_or(NonZero::<usize>::MIN);
    std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN).min(max)
}

/// Returns the number of files of each language, the most frequent first.
#[must_use]
pub fn count_languages(snapshot: &Snapshot) -> Vec<(&'static str, usize)> {
    let mut counts = std::collections::BTreeMap::new();
    for (_, file) in snapshot.files() {
        let name = file.record.language.map_or("other", |language| language.name());
        *counts.entry(name).or_insert(0) += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(name, files)| (std::cmp::Reverse(*files), *name));
    counts
}

/// Reads the history of the project's repository; commits don't count where it can't be read, and
/// `note` gets the reason.
///
/// # Errors
/// [`HostError::Usage`] where the project's directory doesn't exist.
pub fn read_history(
    environment: &Environment,
    directory: Option<&Path>,
    project: &Project,
    note: fn(&str),
) -> Result<Option<History>, HostError> {
    let root = project_root(environment, directory)?;
    let git = Git::new(&root, Arc::new(Sandbox::new(SandboxSettings::default())));
    Ok(Git::blocking(project.history(&git)).unwrap_or_else(|error| {
        note(&format!("note: commits don't count this time: {error}"));
        None
    }))
}

/// Returns the answer to a query as JSON.
#[must_use]
pub fn answer_to_json(answer: &Answer, snapshot: &Snapshot) -> Value {
    let definition = |one: &Definition| {
        json!({
            "path": shown_path(snapshot, one.file), "line": one.name_line, "kind": one.kind.name(),
            "name": full_name(&one.scope, &one.name), "signature": one.signature, "match": one.matched.name(),
        })
    };
    let passage = |one: &Passage| json!({"first_line": one.first_line, "lines": one.lines, "symbol": one.symbol, "score": one.score});
    let file = |hit: &FileHit| {
        let why = hit
            .why
            .iter()
            .map(|why| json!({"signal": why.signal.name(), "strength": why.strength, "share": why.share}));
        json!({
            "path": shown_path(snapshot, hit.file), "score": hit.score, "why": why.collect::<Vec<_>>(),
            "passages": hit.passages.iter().map(passage).collect::<Vec<_>>(),
        })
    };
    json!({
        "definitions": answer.definitions.iter().map(definition).collect::<Vec<_>>(),
        "files": answer.files.iter().map(file).collect::<Vec<_>>(),
        "partial": snapshot.is_partial(),
    })
}
