//! The data that candidates are gathered from.

use journeyman_index::Snapshot;
use journeyman_index::graph::Graph;
use journeyman_index::history::History;
use journeyman_protocol::RelPath;

/// Where candidates come from.
pub struct ContextSources<'a> {
    /// The index.
    pub snapshot: &'a Snapshot,
    /// The dependency graph, if it is there.
    pub graph: Option<&'a Graph>,
    /// The history, if it is there.
    pub history: Option<&'a History>,
    /// Returns true if something of a file may be shown.
    pub may_show: &'a dyn Fn(&RelPath) -> bool,
    /// Returns the text of a file that may be shown, by its number and path, unless it has changed
    /// since it was indexed.
    pub read: &'a dyn Fn(u32, &RelPath) -> Option<String>,
}
