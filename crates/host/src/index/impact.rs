//! The files that a change reaches.

use journeyman_index::graph::{ReachedFile, TraversalResult};

use super::answers::{AffectedFile, ImpactAnswer};
use super::graph::{ChangeSet, CodeGraph};

/// The files that a change reaches, and the tests to run.
#[derive(Debug)]
pub struct Impact {
    /// The changed files.
    pub changed: Vec<u32>,
    /// The paths of files that are gone; they are among the changed ones.
    pub gone: Vec<String>,
    /// The reached files, nearest first.
    pub reach: TraversalResult,
    /// The tests that reach a changed file.
    pub tests: Vec<u32>,
}

impl Impact {
    /// Follows a change over at most `depth` steps.
    #[must_use]
    pub fn find(known: &CodeGraph, change: ChangeSet, depth: u32) -> Self {
        let ChangeSet { parts, gone } = change;
        let mut changed: Vec<u32> = parts.iter().map(|part| part.file).collect();
        changed.sort_unstable();
        changed.dedup();
        let reach = known.graph.find_impact(&known.index.snapshot, &parts, depth);
        let tests = known.graph.affected_tests(&changed, &reach);
        Self { changed, gone, reach, tests }
    }

    /// Returns true if nothing depends on the change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.reach.files.is_empty() && self.tests.is_empty()
    }

    /// Returns true if the file at `path` is gone.
    #[must_use]
    pub fn is_deleted(&self, path: &str) -> bool {
        self.gone.iter().any(|gone| gone == path)
    }

    /// Returns the paths of deleted files that no file depended on.
    pub fn unused_deleted_paths<'a>(&'a self, known: &'a CodeGraph) -> impl Iterator<Item = &'a String> {
        let is_needed =
            |path: &str| self.reach.files.iter().any(|found| known.graph.path(found.from) == path);
        self.gone.iter().filter(move |path| !is_needed(path))
    }

    /// Returns the number of files that a list of `limit` files leaves out.
    #[must_use]
    pub fn count_omitted(&self, limit: usize) -> usize {
        self.reach.files.len().saturating_sub(limit)
    }

    /// Returns at most `limit` files as they are printed in JSON; tests are never cut off.
    #[must_use]
    pub fn to_answer(&self, known: &CodeGraph, limit: usize) -> ImpactAnswer {
        let graph = &known.graph;
        let paths = |files: &[u32]| files.iter().map(|file| graph.path(*file).to_owned()).collect();
        let mut changed: Vec<String> = paths(&self.changed);
        changed.retain(|path| !self.is_deleted(path));
        let affected = self.reach.files.iter().take(limit).map(|found: &ReachedFile| AffectedFile {
            path: graph.path(found.file).to_owned(),
            distance: found.distance,
            way: paths(&self.reach.path_to(found.file)),
            test: self.tests.contains(&found.file),
        });
        let left_out = self.count_omitted(limit);
        ImpactAnswer {
            changed,
            gone: self.gone.clone(),
            affected: affected.collect(),
            more: left_out > 0,
            left_out,
            cut: self.reach.cut,
            by_files: self.reach.by_files,
            tests: paths(&self.tests),
        }
    }
}
