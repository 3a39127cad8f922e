//! Queries of the graph. Results have the same order whatever the order of indexing: by distance,
//! then by path.

use super::{Edge, Graph};
use crate::analyser::is_test_program;

/// Maximum files of a result: nobody reads more, and a change that reaches more reaches everything.
pub const MAX_REACHED_FILES: usize = 20_000;
/// Maximum distance in a graph.
pub(super) const MAX_DISTANCE: u32 = 1_000;
/// Maximum files near a file: beyond that, being near says nothing.
const MAX_NEAR_FILES: usize = 200;
/// Maximum distance of a near file.
const MAX_NEAR_DISTANCE: u32 = 2;

/// Calls a function with the neighbours of a file.
type VisitNeighbours<'a> = dyn Fn(u32, &mut dyn FnMut(u32)) + 'a;

/// The direction of a traversal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To a file's dependencies.
    Dependencies,
    /// To a file's dependents.
    Dependents,
    /// In both directions.
    Both,
}

/// A file in a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReachedFile {
    /// The file.
    pub file: u32,
    /// Its distance in steps.
    pub distance: u32,
    /// The previous file on the way, one step nearer.
    pub from: u32,
    /// The number of its last path step.
    pub(super) trail: u32,
}

/// A step of a path to a reached file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TraversalStep {
    pub(super) file: u32,
    /// Number of the previous step; `None` at the start.
    pub(super) from: Option<u32>,
    /// Number of steps before it.
    pub(super) distance: u32,
}

/// Result of a traversal, the nearest files first, without the start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraversalResult {
    /// By distance, then by path.
    pub files: Vec<ReachedFile>,
    /// There are more than [`MAX_REACHED_FILES`].
    pub cut: bool,
    /// There were too many symbols to follow: the result is by files alone.
    pub by_files: bool,
    /// The steps of the paths to the files.
    pub(super) trails: Vec<TraversalStep>,
}

impl TraversalResult {
    /// Returns the path to a file, from its start on, both ends included.
    #[must_use]
    pub fn path_to(&self, file: u32) -> Vec<u32> {
        let Some(found) = self.files.iter().find(|found| found.file == file) else { return vec![file] };
        let trail = |at: u32| self.trails.get(at as usize);
        // A step comes after its previous one.
        let before = |step: &&TraversalStep| trail(step.from?);
        let mut way: Vec<u32> =
            std::iter::successors(trail(found.trail), before).map(|step| step.file).collect();
        way.reverse();
        way
    }
}

/// Files that depend on each other in a cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycle {
    /// The files, by path.
    pub files: Vec<u32>,
    /// A shortest cycle through the first of them, which is repeated at the end.
    pub round: Vec<u32>,
}

impl Graph {
    /// Returns the files at most `depth` steps away.
    #[must_use]
    pub fn neighbours(&self, starts: &[u32], direction: Direction, depth: u32) -> TraversalResult {
        collect_reachable(self, starts, depth, &|file, visit| {
            if direction != Direction::Dependents {
                self.edges(file)
                    .iter()
                    .filter(|edge| edge.connects_neighbours())
                    .for_each(|edge| visit(edge.to));
            }
            if direction != Direction::Dependencies {
                self.reverse_edges(file)
                    .iter()
                    .filter(|edge| edge.connects_neighbours())
                    .for_each(|edge| visit(edge.to));
            }
        })
    }

    /// Returns the dependents of some files, at most `depth` steps away, file by file. Declarations
    /// of parts don't count. [`Graph::find_impact`] is more precise.
    #[must_use]
    pub fn dependents(&self, on: &[u32], depth: u32) -> TraversalResult {
        collect_reachable(self, on, depth, &|file, visit| {
            self.reverse_edges(file)
                .iter()
                .filter(|edge| edge.is_dependency())
                .for_each(|edge| visit(edge.to));
        })
    }

    /// Returns the test files among `changed` and their dependents, the nearest first: the tests to
    /// run after a change. Helpers and data of tests aren't among them, and neither are the tests
    /// of examples and of third-party code, which the project's test runs leave out.
    #[must_use]
    pub fn affected_tests(&self, changed: &[u32], affected: &TraversalResult) -> Vec<u32> {
        let mut own = changed.to_vec();
        own.sort_unstable();
        own.dedup();
        own.into_iter()
            .chain(affected.files.iter().map(|found| found.file))
            .filter(|file| self.is_test(*file))
            .collect()
    }

    /// Returns true for a test file that the project's test runs take.
    pub(super) fn is_test(&self, file: u32) -> bool {
        self.node(file)
            .filter(|node| !node.flags.doc && !node.flags.vendored)
            .is_some_and(|node| node.language.is_some_and(|language| is_test_program(&node.path, language)))
    }

    /// Returns a shortest path from a file to one of its dependencies, both included; of several,
    /// the first by file path.
    #[must_use]
    pub fn shortest_path(&self, from: u32, to: u32) -> Option<Vec<u32>> {
        if from == to {
            return self.node(from).map(|_| vec![from]);
        }
        find_shortest_path(self, from, to, &|edge| edge.connects_neighbours())
    }

    /// Returns import cycles, the largest first. Declarations of parts don't count, and neither do
    /// names: within a package they go in both directions.
    #[must_use]
    pub fn cycles(&self) -> Vec<Cycle> {
        let mut circles: Vec<Vec<u32>> =
            CycleFinder::find_cycles(self).into_iter().filter(|circle| circle.len() > 1).collect();
        circles.iter_mut().for_each(|circle| circle.sort_unstable());
        circles.sort_by_key(|circle| (std::cmp::Reverse(circle.len()), circle.first().copied()));
        let round = |files: Vec<u32>| {
            let first = files.first().copied()?;
            let round = find_shortest_path(self, first, first, &is_import)?;
            Some(Cycle { files, round })
        };
        circles.into_iter().filter_map(round).collect()
    }

    /// Returns the files near a file, by their numbers in the snapshot, with their distance: the
    /// input of [`query::Context`](crate::query::QueryContext). The nearest come first, and among
    /// equally near ones the strongest dependencies.
    #[must_use]
    pub fn nearby_files(&self, file: u32) -> Vec<(u32, u32)> {
        let near = self.nearby_nodes(file).into_iter();
        near.filter_map(|(file, steps)| Some((self.node(file)?.file, steps))).collect()
    }

    /// Returns the files near one as [`Graph::nearby_files`] does, by their numbers in the graph.
    #[must_use]
    pub fn nearby_nodes(&self, file: u32) -> Vec<(u32, u32)> {
        let reach = self.neighbours(&[file], Direction::Both, MAX_NEAR_DISTANCE);
        let weight = |found: &super::ReachedFile| {
            let edge = |from, to| self.edge(from, to).map_or(0, |edge| edge.weight());
            edge(found.from, found.file).max(edge(found.file, found.from))
        };
        let mut near: Vec<(u32, std::cmp::Reverse<u32>, u32)> = reach
            .files
            .iter()
            .map(|found| (found.distance, std::cmp::Reverse(weight(found)), found.file))
            .collect();
        near.sort_unstable();
        near.truncate(MAX_NEAR_FILES);
        near.into_iter().map(|(steps, _, file)| (file, steps)).collect()
    }
}

/// Collects the files that are reachable over `next` in at most `depth` steps.
fn collect_reachable(
    graph: &Graph,
    starts: &[u32],
    depth: u32,
    next: &VisitNeighbours<'_>,
) -> TraversalResult {
    let mut seen = crate::bit_set::BitSet::default();
    let mut level: Vec<u32> = starts.iter().copied().filter(|start| graph.node(*start).is_some()).collect();
    level.sort_unstable();
    level.dedup();
    let mut reach = TraversalResult::default();
    let mut level: Vec<(u32, u32)> = (0..).zip(level).map(|(trail, start)| (start, trail)).collect();
    for (start, _) in &level {
        seen.insert(*start);
        reach.trails.push(TraversalStep { file: *start, from: None, distance: 0 });
    }
    for distance in 1..=depth.min(MAX_DISTANCE) {
        let mut found: Vec<ReachedFile> = Vec::new();
        for (from, trail) in &level {
            next(*from, &mut |file| {
                if !seen.contains(file) {
                    seen.insert(file);
                    found.push(ReachedFile { file, distance, from: *from, trail: *trail });
                }
            });
        }
        found.sort_unstable_by_key(|found| found.file);
        let room = MAX_REACHED_FILES - reach.files.len();
        if found.len() > room {
            found.truncate(room);
            reach.cut = true;
        }
        level.clear();
        for mut found in found {
            let trail = u32::try_from(reach.trails.len()).unwrap_or(u32::MAX);
            reach.trails.push(TraversalStep { file: found.file, from: Some(found.trail), distance });
            found.trail = trail;
            level.push((found.file, trail));
            reach.files.push(found);
        }
        if level.is_empty() || reach.cut {
            break;
        }
    }
    reach
}

/// Finds a shortest path by a breadth-first search that ends at its target, without a limit of
/// files: it keeps a number for each.
fn find_shortest_path(graph: &Graph, from: u32, to: u32, counts: &dyn Fn(&Edge) -> bool) -> Option<Vec<u32>> {
    const UNVISITED: u32 = u32::MAX;
    let mut before = vec![UNVISITED; graph.len()];
    let mut level = vec![from];
    while !level.is_empty() {
        let mut next = Vec::new();
        for here in &level {
            for edge in graph.edges(*here).iter().filter(|edge| counts(edge)) {
                let Some(place) = before.get_mut(edge.to as usize).filter(|place| **place == UNVISITED)
                else {
                    continue;
                };
                *place = *here;
                next.push(edge.to);
            }
        }
        if before.get(to as usize).is_some_and(|place| *place != UNVISITED) {
            let mut way = vec![to];
            let mut here = to;
            while let Some(place) = before.get(here as usize).filter(|place| **place != UNVISITED) {
                here = *place;
                way.push(here);
                if here == from {
                    break;
                }
            }
            way.reverse();
            return Some(way);
        }
        next.sort_unstable();
        level = next;
    }
    None
}

fn is_import(edge: &Edge) -> bool {
    edge.line > 0 && !edge.part
}

/// Tarjan's strongly connected components, with an explicit stack: a graph may be one long chain.
struct CycleFinder<'a> {
    graph: &'a Graph,
    /// The order in which files were visited, counted from 1.
    order: Vec<u32>,
    low: Vec<u32>,
    open: Vec<u32>,
    is_open: crate::bit_set::BitSet,
    count: u32,
    found: Vec<Vec<u32>>,
}

impl<'a> CycleFinder<'a> {
    fn find_cycles(graph: &'a Graph) -> Vec<Vec<u32>> {
        let files = graph.len();
        let mut circles = Self {
            graph,
            order: vec![0; files],
            low: vec![0; files],
            open: Vec::new(),
            is_open: crate::bit_set::BitSet::default(),
            count: 0,
            found: Vec::new(),
        };
        for file in 0..files as u32 {
            if circles.order_of(file) == 0 {
                circles.visit_from(file);
            }
        }
        circles.found
    }

    fn order_of(&self, file: u32) -> u32 {
        self.order.get(file as usize).copied().unwrap_or(0)
    }

    fn low_link_of(&self, file: u32) -> u32 {
        self.low.get(file as usize).copied().unwrap_or(0)
    }

    fn update_low_link(&mut self, file: u32, to: u32) {
        if let Some(low) = self.low.get_mut(file as usize) {
            *low = (*low).min(to);
        }
    }

    fn enter_file(&mut self, file: u32) {
        self.count += 1;
        if let (Some(order), Some(low)) = (self.order.get_mut(file as usize), self.low.get_mut(file as usize))
        {
            (*order, *low) = (self.count, self.count);
        }
        self.open.push(file);
        self.is_open.insert(file);
    }

    fn visit_from(&mut self, start: u32) {
        let mut stack: Vec<(u32, usize)> = vec![(start, 0)];
        self.enter_file(start);
        while let Some((file, at)) = stack.last_mut() {
            let file = *file;
            if let Some(edge) = self.graph.edges(file).get(*at) {
                *at += 1;
                if !is_import(edge) {
                    continue;
                }
                if self.order_of(edge.to) == 0 {
                    self.enter_file(edge.to);
                    stack.push((edge.to, 0));
                } else if self.is_open.contains(edge.to) {
                    self.update_low_link(file, self.order_of(edge.to));
                }
                continue;
            }
            stack.pop();
            if let Some((outer, _)) = stack.last() {
                self.update_low_link(*outer, self.low_link_of(file));
            }
            if self.low_link_of(file) == self.order_of(file) {
                let mut circle = Vec::new();
                while let Some(inner) = self.open.pop() {
                    self.is_open.remove(inner);
                    circle.push(inner);
                    if inner == file {
                        break;
                    }
                }
                self.found.push(circle);
            }
        }
    }
}
