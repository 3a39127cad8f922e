//! Resolutions of files, from which a graph is made.

use super::name_dependencies::DefinitionRow;
use super::{Edge, Node};

/// The resolution of one file.
#[derive(Debug, Clone, Default)]
pub(super) struct ResolvedFile {
    /// By target.
    pub(super) edges: Vec<Edge>,
    pub(super) packages: Vec<u32>,
    /// Numbers of the names in its import lists, sorted.
    pub(super) brought: Vec<u64>,
    /// Keys of the places that were looked up, sorted.
    pub(super) looked: Vec<u32>,
}

/// The resolution of all files.
#[derive(Debug, Default)]
pub(super) struct ResolvedGraph {
    /// By path.
    pub(super) nodes: Vec<Node>,
    /// In the order of the files.
    pub(super) files: Vec<ResolvedFile>,
    pub(super) packages: Vec<Box<str>>,
    /// Empty if nothing changed.
    pub(super) rows: Vec<DefinitionRow>,
    pub(super) done: UpdateStats,
}

/// The work of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UpdateStats {
    /// Number of files whose imports were resolved.
    pub resolved: usize,
    /// Number of files whose names were looked up.
    pub linked: usize,
    /// Number of files that are new, changed or deleted since the graph was saved.
    pub changed: usize,
}
