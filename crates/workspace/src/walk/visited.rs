//! Directories that are to be visited, and those that were.

use crate::files::stat::Seen;
use crate::rules::Layer;
use crate::snapshot::index::Number;
use crate::walk::plan::Listed;
use rustix::io::Errno;
use std::sync::Arc;

pub(crate) enum Item {
    New { name: Vec<u8>, seen: Option<Seen> },
    Known { at: u32, seen: Option<Seen> },
    Dir { index: usize },
}

pub(crate) enum Content {
    Items {
        items: Vec<Item>,
        permissions: u32,
    },
    /// The same entries as the last tree has in this directory.
    Same {
        number: Number,
    },
    Unreadable,
    /// It can't be read just now.
    Failed(Errno),
    /// It is gone, or a cache.
    Nothing,
}

/// A directory that was read.
pub(crate) struct Visited {
    pub(crate) index: usize,
    /// Its number in the last tree.
    pub(crate) number: Option<Number>,
    pub(crate) path: Vec<u8>,
    pub(crate) content: Content,
    pub(crate) listed: Option<Listed>,
}

pub(crate) struct Task {
    pub(crate) index: usize,
    pub(crate) depth: usize,
    pub(crate) path: Vec<u8>,
    pub(crate) layers: Option<Arc<Layer>>,
    /// Its number in the last tree.
    pub(crate) known: Option<Number>,
    /// True if the rules of the directories above are as they were for that.
    pub(crate) trusted: bool,
}
