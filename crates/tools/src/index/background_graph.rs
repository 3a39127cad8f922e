//! The dependency graph, built and updated in the background.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use journeyman_index::graph::Graph;
use journeyman_index::{ProjectIndex, Snapshot};
use journeyman_protocol::RelPath;

/// Maximum time that a query waits for the first graph: enough for a project of some thousand
/// files, or to load a stored graph.
const MAX_GRAPH_WAIT: Duration = Duration::from_millis(300);
/// Maximum number of files returned as near.
const MAX_NEAR_FILES: usize = 400;

/// The newest dependency graph, and the state of building the next one.
#[derive(Default)]
pub(super) struct BackgroundGraph {
    state: Mutex<GraphState>,
    news: Condvar,
}

#[derive(Default)]
struct GraphState {
    known: Option<(Arc<Snapshot>, Arc<Graph>)>,
    making: bool,
}

impl BackgroundGraph {
    /// Returns the graph of this snapshot, or an earlier one while this one is built; `None` if
    /// there is none in time.
    fn get_or_build(
        self: &Arc<Self>,
        project: &Arc<ProjectIndex>,
        snapshot: &Arc<Snapshot>,
    ) -> Option<Arc<Graph>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, graph)) = state.known.as_ref().filter(|(known, _)| Arc::ptr_eq(known, snapshot)) {
            return Some(Arc::clone(graph));
        }
        if !state.making {
            let making = GraphBuild { links: Arc::clone(self), made: None };
            let (project, snapshot) = (Arc::clone(project), Arc::clone(snapshot));
            let started = std::thread::Builder::new().name("graph".to_owned()).spawn(move || {
                let mut making = making;
                let graph = project.graph(&snapshot);
                making.made = Some((snapshot, graph));
            });
            state.making = started.is_ok();
        }
        let end = Instant::now() + MAX_GRAPH_WAIT;
        while state.making && state.known.is_none() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.news.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.known.as_ref().map(|(_, graph)| Arc::clone(graph))
    }

    /// Returns the files at most two steps away from some files, by their numbers in the snapshot.
    pub(super) fn near_files(
        self: &Arc<Self>,
        project: &Arc<ProjectIndex>,
        snapshot: &Arc<Snapshot>,
        files: &[RelPath],
    ) -> Vec<(u32, u32)> {
        if files.is_empty() {
            return Vec::new();
        }
        let Some(graph) = self.get_or_build(project, snapshot) else { return Vec::new() };
        let mut near: BTreeMap<u32, u32> = BTreeMap::new();
        for file in files.iter().filter_map(|file| graph.find_file(file.as_str()?)) {
            for (file, steps) in graph.nearby_nodes(file) {
                // The graph may be of an earlier snapshot: its files are known by their paths.
                let found = RelPath::parse(graph.path(file).as_bytes()).ok();
                let Some(number) = found.and_then(|path| snapshot.find_file(&path)) else { continue };
                let known = near.entry(number).or_insert(steps);
                *known = steps.min(*known);
            }
        }
        let mut near: Vec<(u32, u32)> = near.into_iter().collect();
        near.sort_by_key(|(_, steps)| *steps);
        near.truncate(MAX_NEAR_FILES);
        near
    }
}

/// A graph that is being built; dropping this value stores the result, even after a panic.
struct GraphBuild {
    links: Arc<BackgroundGraph>,
    made: Option<(Arc<Snapshot>, Arc<Graph>)>,
}

impl Drop for GraphBuild {
    fn drop(&mut self) {
        let mut state = self.links.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.making = false;
        if self.made.is_some() {
            state.known = self.made.take();
        }
        drop(state);
        self.links.news.notify_all();
    }
}
