//! Tests that a change can affect, by the dependency graph of the index.

use std::sync::Arc;

use journeyman_index::graph::{ChangedPart, ChangedSourceFile, DeletedFile, Graph, TraversalResult};
use journeyman_protocol::RelPath;
use journeyman_tools::SharedIndex;
use journeyman_workspace::ChangedContent;
use tokio_util::sync::CancellationToken;

use crate::blocking::run_blocking;

/// The tests that a change can affect, among all tests of the project.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AffectedTests {
    /// The affected test files and the changed files, which may have tests in them.
    pub(crate) files: Vec<RelPath>,
    /// Number of affected test files.
    pub(crate) affected: usize,
    /// Number of the project's test files.
    pub(crate) all: usize,
}

impl AffectedTests {
    /// Finds the tests that the changes can affect. `None` if the index can't tell: it isn't
    /// complete, or a file changed that isn't code, such as a manifest or data.
    pub(crate) async fn find(
        index: Arc<SharedIndex>,
        changes: Vec<ChangedContent>,
        stop: CancellationToken,
    ) -> Option<Self> {
        run_blocking("finding the affected tests", move || find_affected_tests(&index, changes, &stop))
            .await
            .ok()?
    }

    /// Returns true if running the affected tests alone saves much of a run of all tests.
    pub(crate) fn is_small_part(&self) -> bool {
        self.affected > 0 && self.affected.saturating_mul(2) <= self.all
    }
}

fn find_affected_tests(
    index: &SharedIndex,
    changes: Vec<ChangedContent>,
    stop: &CancellationToken,
) -> Option<AffectedTests> {
    let asked = index.snapshot(stop).ok()?;
    if !asked.lacks.is_empty() || !asked.note.is_empty() {
        return None;
    }
    let mut graph = asked.project.graph(&asked.snapshot);
    let (gone, present): (Vec<ChangedContent>, Vec<ChangedContent>) =
        changes.into_iter().partition(|change| change.after.is_none());
    if !gone.is_empty() {
        let gone: Vec<DeletedFile> = gone.iter().map(deleted_file).collect();
        let read = |path: &str| asked.project.read_text(&RelPath::parse(path).ok()?);
        graph = Arc::new(graph.with_deleted_files(&asked.snapshot, &gone, &read));
    }
    let mut parts: Vec<ChangedSourceFile> = Vec::with_capacity(present.len());
    for change in &present {
        parts.push(changed_source_file(&graph, change)?);
    }
    for change in &gone {
        parts.push(ChangedSourceFile::from(find_graph_file(&graph, &change.path)?));
    }
    // Documentation affects no test.
    parts.retain(|part| graph.node(part.file).is_some_and(|node| !node.flags.doc));
    let changed: Vec<u32> = parts.iter().map(|part| part.file).collect();
    let reach = graph.find_impact(&asked.snapshot, &parts, u32::MAX);
    let tests = graph.affected_tests(&changed, &reach);
    let everything: Vec<u32> = (0..u32::try_from(graph.len()).ok()?).collect();
    let all = graph.affected_tests(&everything, &TraversalResult::default()).len();
    let path = |file: &u32| RelPath::parse(graph.path(*file).as_bytes()).ok();
    let mut files: Vec<RelPath> = tests.iter().chain(&changed).filter_map(path).collect();
    files.sort_unstable();
    files.dedup();
    Some(AffectedTests { files, affected: tests.len(), all })
}

/// Returns the number of a file if the graph has its dependents.
fn find_graph_file(graph: &Graph, path: &RelPath) -> Option<u32> {
    let file = graph.find_file(path.as_str()?)?;
    graph.node(file).filter(|node| node.language.is_some() || node.flags.doc).map(|_| file)
}

fn changed_source_file(graph: &Graph, change: &ChangedContent) -> Option<ChangedSourceFile> {
    let file = find_graph_file(graph, &change.path)?;
    let part = match (&change.before, &change.after, graph.node(file)?.language) {
        (Some(before), Some(after), Some(language)) => {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            ChangedPart::between(language, &text(before), &text(after))
        }
        _ => None,
    };
    Some(ChangedSourceFile { file, part })
}

fn deleted_file(change: &ChangedContent) -> DeletedFile {
    let text = change.before.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    DeletedFile { path: change.path.to_string(), text }
}
