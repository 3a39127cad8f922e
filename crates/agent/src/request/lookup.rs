//! Index results for a task, before the first model request.
//!
//! Uses only the loaded index: nothing is built, updated or waited for. The index may be older than
//! the files, so the outline of a file whose content has changed is left empty.

use std::sync::Arc;

use journeyman_context::{Found, Outlined, Signature};
use journeyman_index::Snapshot;
use journeyman_index::overview::{self, MAX_FOUND_FILES};
use journeyman_index::query::{Context, Query, Searcher};
use journeyman_index::tokens::Tokenizer;
use journeyman_protocol::RelPath;
use journeyman_tools::SharedIndex;
use journeyman_workspace::Workspace;
use tokio::task::JoinHandle;

use crate::session::context::Context as SessionContext;

/// Maximum number of outlined files.
const MAX_OUTLINED_FILES: usize = 16;

/// Starts an index lookup for a task. The result is `None` if no index is loaded or nothing
/// matches.
pub(crate) fn look_up(
    cx: &SessionContext,
    may_show: Arc<dyn Fn(&RelPath) -> bool + Send + Sync>,
    task: &str,
) -> JoinHandle<Option<Found>> {
    let (index, workspace, task) = (Arc::clone(&cx.index), Arc::clone(&cx.workspace), task.to_owned());
    tokio::task::spawn_blocking(move || find_in_index(&index, &workspace, &*may_show, &task))
}

fn find_in_index(
    index: &SharedIndex,
    workspace: &Workspace,
    may_show: &dyn Fn(&RelPath) -> bool,
    task: &str,
) -> Option<Found> {
    let query = Query::new(task, &mut Tokenizer::new());
    let (project, snapshot) = index.at_hand()?;
    let history = project.saved_history();
    let answer =
        Searcher::new().search(&*snapshot, history.as_ref(), &query, Context::default(), MAX_FOUND_FILES);
    let asked = overview::score_shares(&answer);
    if asked.is_empty() {
        return None;
    }
    let graph = project.graph_without_waiting(&snapshot);
    let order = overview::rank_files(&snapshot, graph.as_deref(), &asked);
    let best = order.first().map_or(1.0, |(_, score)| *score).max(f64::MIN_POSITIVE);
    let mut found = Found::default();
    for (file, score) in order.iter().take(MAX_FOUND_FILES) {
        let Some(path) = snapshot.file(*file).and_then(|view| view.path()) else { continue };
        // File names appear in any listing, but signatures need permission to read.
        if found.outlines.len() < MAX_OUTLINED_FILES && may_show(&path) {
            let wanted = asked.iter().any(|(asked, _)| asked == file);
            let signatures = file_signatures(&snapshot, workspace, *file, &path, task);
            if wanted || !signatures.is_empty() {
                found.outlines.push(Outlined { path: path.to_string(), signatures });
            }
        }
        found.files.push((path, score / best));
    }
    Some(found)
}

/// Returns the signatures of a file, unless its index record is outdated or its content was
/// redacted.
fn file_signatures(
    snapshot: &Snapshot,
    workspace: &Workspace,
    file: u32,
    path: &RelPath,
    task: &str,
) -> Vec<Signature> {
    let Some(record) = snapshot.file(file).map(|view| view.record).filter(|record| !record.flags.veiled)
    else {
        return Vec::new();
    };
    let now = workspace.fingerprints(std::slice::from_ref(path)).pop().flatten();
    if now.is_none_or(|now| *now.as_bytes() != record.hash) {
        return Vec::new();
    }
    let told = overview::signatures(snapshot, file, task).into_iter();
    told.map(|one| Signature { text: one.text, depth: one.depth, worth: one.worth }).collect()
}
