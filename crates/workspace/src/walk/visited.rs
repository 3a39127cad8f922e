//! Directories that are to be visited, and those that were.

use crate::files::stat::FileStat;
use crate::rules::RuleLayer;
use crate::snapshot::tree_index::DirNumber;
use crate::walk::plan::ListedDir;
use rustix::io::Errno;
use std::sync::Arc;

pub(crate) enum VisitedItem {
    New { name: Vec<u8>, seen: Option<FileStat> },
    Known { at: u32, seen: Option<FileStat> },
    Dir { index: usize },
}

pub(crate) enum VisitedContent {
    Items {
        items: Vec<VisitedItem>,
        permissions: u32,
    },
    /// The directory has the same entries as in the last tree.
    Same {
        number: DirNumber,
    },
    Unreadable,
    /// The directory can't be read at the moment.
    Failed(Errno),
    /// The directory is gone, or a cache.
    Nothing,
}

/// A directory that was read.
pub(crate) struct VisitedDir {
    pub(crate) index: usize,
    /// The directory's number in the last tree.
    pub(crate) number: Option<DirNumber>,
    pub(crate) path: Vec<u8>,
    pub(crate) content: VisitedContent,
    pub(crate) listed: Option<ListedDir>,
}

pub(crate) struct DirTask {
    pub(crate) index: usize,
    pub(crate) depth: usize,
    pub(crate) path: Vec<u8>,
    pub(crate) layers: Option<Arc<RuleLayer>>,
    /// The directory's number in the last tree.
    pub(crate) known: Option<DirNumber>,
    /// True if the rules of the directories above are as they were for that.
    pub(crate) trusted: bool,
}
