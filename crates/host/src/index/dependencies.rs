//! The files that a file depends on, and those that depend on it.

use journeyman_index::graph::{Cycle, Direction, ReachedFile, TraversalResult};

use super::answers::{DepsAnswer, FoundCycle, NeighbourFile, PathStep};
use super::graph::CodeGraph;

/// The neighbours of a file in the dependency graph.
#[derive(Debug)]
pub struct Dependencies {
    /// The file.
    pub start: u32,
    /// The direction that was followed.
    pub direction: Direction,
    /// The neighbours, nearest first.
    pub reach: TraversalResult,
    /// The packages that the file uses; empty for dependents.
    pub packages: Vec<String>,
}

impl Dependencies {
    /// Follows at most `depth` steps from a file.
    #[must_use]
    pub fn find(known: &CodeGraph, start: u32, direction: Direction, depth: u32) -> Self {
        let reach = known.graph.neighbours(&[start], direction, depth);
        let packages = match direction {
            Direction::Dependents => Vec::new(),
            Direction::Dependencies | Direction::Both => {
                known.graph.packages(start).map(str::to_owned).collect()
            }
        };
        Self { start, direction, reach, packages }
    }

    /// Returns true if nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.reach.files.is_empty() && self.packages.is_empty()
    }

    /// Returns the number of files that a list of `limit` files leaves out.
    #[must_use]
    pub fn count_omitted(&self, limit: usize) -> usize {
        self.reach.files.len().saturating_sub(limit)
    }

    /// Returns the edge by which a file was reached: the file that depends, and what it depends on.
    #[must_use]
    pub fn edge_to(&self, found: &ReachedFile) -> (u32, u32) {
        match self.direction {
            Direction::Dependents => (found.file, found.from),
            Direction::Dependencies | Direction::Both => (found.from, found.file),
        }
    }

    /// Returns at most `limit` files as they are printed in JSON.
    #[must_use]
    pub fn to_answer(&self, known: &CodeGraph, limit: usize) -> DepsAnswer {
        let files = self.reach.files.iter().take(limit).map(|found| {
            let (from, to) = self.edge_to(found);
            NeighbourFile {
                path: known.graph.path(found.file).to_owned(),
                distance: found.distance,
                from: known.graph.path(found.from).to_owned(),
                why: known.edge_reason(from, to),
            }
        });
        let left_out = self.count_omitted(limit);
        DepsAnswer::Files {
            path: known.graph.path(self.start).to_owned(),
            direction: match self.direction {
                Direction::Dependents => "dependents",
                Direction::Dependencies => "dependencies",
                Direction::Both => "both",
            },
            files: files.collect(),
            packages: self.packages.clone(),
            more: left_out > 0,
            left_out,
            cut: self.reach.cut,
        }
    }
}

/// The shortest path between two files of the dependency graph.
#[derive(Debug)]
pub struct DependencyPath {
    /// The files from the one that depends to the one that it depends on; `None` where neither
    /// depends on the other.
    pub files: Option<Vec<u32>>,
    /// True if the second file depends on the first one.
    pub is_reversed: bool,
}

impl DependencyPath {
    /// Finds the path from one file to another, or the other way round.
    #[must_use]
    pub fn find(known: &CodeGraph, from: u32, to: u32) -> Self {
        match known.graph.shortest_path(from, to) {
            Some(files) => Self { files: Some(files), is_reversed: false },
            None => {
                let files = known.graph.shortest_path(to, from);
                Self { is_reversed: files.is_some(), files }
            }
        }
    }

    /// Returns the path as it is printed in JSON.
    #[must_use]
    pub fn to_answer(&self, known: &CodeGraph) -> DepsAnswer {
        let step = |pair: &[u32]| {
            let [from, to] = pair else { return None };
            let why = known.edge_reason(*from, *to);
            let path = |file: u32| known.graph.path(file).to_owned();
            Some(PathStep { from: path(*from), to: path(*to), why })
        };
        let steps = self.files.as_ref().map(|files| files.windows(2).filter_map(step).collect());
        DepsAnswer::Path { found: self.files.is_some(), reversed: self.is_reversed, steps }
    }
}

/// Returns the dependency cycles of a project, or those that a file is in.
#[must_use]
pub fn find_cycles(known: &CodeGraph, file: Option<u32>) -> Vec<Cycle> {
    let mut cycles = known.graph.cycles();
    cycles.retain(|cycle| file.is_none_or(|file| cycle.files.binary_search(&file).is_ok()));
    cycles
}

/// Returns at most `limit` cycles as they are printed in JSON.
#[must_use]
pub fn cycles_to_answer(known: &CodeGraph, cycles: &[Cycle], limit: usize) -> DepsAnswer {
    let paths = |files: &[u32]| files.iter().map(|file| known.path(*file)).collect();
    let shown = cycles.iter().take(limit);
    let shown = shown.map(|cycle| FoundCycle { files: paths(&cycle.files), round: paths(&cycle.round) });
    let left_out = cycles.len().saturating_sub(limit);
    DepsAnswer::Cycles { cycles: shown.collect(), more: left_out > 0, left_out }
}
