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
    /// The affected test files, and the changed and affected files that may have tests in them.
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
    // Rust's sources have tests in them.
    let reached = reach.files.iter().map(|found| &found.file);
    let sources = reached.filter(|file| graph.path(**file).ends_with(".rs"));
    let mut files: Vec<RelPath> = tests.iter().chain(&changed).chain(sources).filter_map(path).collect();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_context::TestContext;

    #[tokio::test]
    async fn tests_within_the_sources_of_dependent_packages_are_affected() {
        let (before, after) = ("pub fn one() -> i32 {\n    1\n}\n", "pub fn one() -> i32 {\n    2\n}\n");
        let tested = "use first::one;\n\n#[test]\nfn ones() {\n    assert_eq!(one(), 1);\n}\n";
        let user = format!("{tested}\npub fn two() -> i32 {{\n    one() + 1\n}}\n");
        let test = TestContext::new(&[
            ("Cargo.toml", "[workspace]\nmembers = ['first', 'second', 'third']\n"),
            ("first/Cargo.toml", "[package]\nname = 'first'\n"),
            ("first/src/lib.rs", before),
            ("first/tests/it.rs", tested),
            (
                "second/Cargo.toml",
                "[package]\nname = 'second'\n[dependencies]\nfirst = { path = '../first' }\n",
            ),
            ("second/src/lib.rs", &user),
            ("third/Cargo.toml", "[package]\nname = 'third'\n"),
            ("third/src/lib.rs", "pub fn three() -> i32 {\n    3\n}\n"),
        ])
        .await;
        let path = |path: &str| RelPath::parse(path).unwrap();
        let change = ChangedContent {
            path: path("first/src/lib.rs"),
            before: Some(before.into()),
            after: Some(after.into()),
        };
        test.write("first/src/lib.rs", after);
        let index = Arc::clone(&test.cx.index);
        let found = AffectedTests::find(index, vec![change], CancellationToken::new()).await.unwrap();
        let expected = ["first/src/lib.rs", "first/tests/it.rs", "second/src/lib.rs"].map(path);
        assert_eq!(found, AffectedTests { files: expected.to_vec(), affected: 1, all: 1 });
    }
}
