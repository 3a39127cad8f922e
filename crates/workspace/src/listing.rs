//! The files of the tree, by name.

use journeyman_protocol::RelPath;

/// Which files to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListOptions {
    /// Only what is beneath this directory.
    pub under: Option<RelPath>,
    /// Only what matches this glob: the file name where the glob has no `/`, else the path from the root.
    pub glob: Option<String>,
    /// Also what is ignored by rules or by name; git's own directory never is listed.
    pub include_ignored: bool,
    /// How many paths to give at most: the first ones in the order of their bytes.
    pub limit: usize,
}

impl Default for ListOptions {
    /// Every file that isn't ignored, as many as a walk looks at.
    fn default() -> Self {
        Self { under: None, glob: None, include_ignored: false, limit: crate::limits::MAX_FILES }
    }
}

/// Files and links, sorted by the bytes of their paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// The paths.
    pub paths: Vec<RelPath>,
    /// Whether there are more than the limit.
    pub truncated: bool,
}

/// What a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Something else: a pipe, a socket, a device, or a link that leads nowhere.
    Other,
}

/// What is known of a path without reading it. Links that stay inside are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// What it is.
    pub kind: StatKind,
    /// Its size in bytes; of a directory, the file system's own figure.
    pub size: u64,
    /// Whether its owner may execute it (enter it, for a directory).
    pub executable: bool,
    /// Whether its last component is a symbolic link.
    pub link: bool,
    /// Time of the last change of its content, in nanoseconds since 1970-01-01 UTC.
    pub modified_ns: i128,
}
