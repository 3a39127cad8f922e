//! Entries of a tree: the state of one file, link or directory.

use journeyman_protocol::ContentHash;
use serde::{Deserialize, Serialize};

use crate::files::stat::FileStat;

/// The content of a file in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryContent {
    /// The content's hash, and true if the blob store has the content.
    Hashed { hash: ContentHash, kept: bool },
    /// Too large to keep: only the signature tells whether it changed.
    Unkept,
}

/// One file or link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeEntry {
    pub(crate) path: Vec<u8>,
    pub(crate) seen: FileStat,
    pub(crate) content: EntryContent,
    /// True if the same signature means the same content from now on.
    pub(crate) settled: bool,
}

/// A file's kind, as the journal names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileKind {
    File,
    Link,
}

/// A file's state, as the journal and checkpoints hold it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileState {
    pub(crate) kind: FileKind,
    /// Permission bits.
    pub(crate) mode: u32,
    pub(crate) size: u64,
    /// Absent for what is too large to hash in passing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hash: Option<ContentHash>,
}

impl FileState {
    /// Returns true if kind and content are the same; without a hash, the size decides.
    pub(crate) fn has_same_content(&self, other: &Self) -> bool {
        self.kind == other.kind
            && match (self.hash, other.hash) {
                (Some(ours), Some(theirs)) => ours == theirs,
                _ => self.size == other.size,
            }
    }
}

impl TreeEntry {
    pub(crate) fn state(&self) -> FileState {
        let hash = match self.content {
            EntryContent::Hashed { hash, .. } => Some(hash),
            EntryContent::Unkept => None,
        };
        let kind = if self.seen.is_link() { FileKind::Link } else { FileKind::File };
        FileState { kind, mode: self.seen.permissions(), size: self.seen.size, hash }
    }

    /// Returns true if content, kind or permissions differ.
    pub(crate) fn differs(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.state(), other.state());
        let content = match (ours.hash, theirs.hash) {
            // A checkpoint has no signatures: there the size alone can tell.
            (None, None) if self.seen.ino != 0 && other.seen.ino != 0 => {
                (self.seen.mtime, self.seen.ino) != (other.seen.mtime, other.seen.ino)
            }
            _ => false,
        };
        content
            || !ours.has_same_content(&theirs)
            || (ours.mode != theirs.mode && ours.kind == FileKind::File)
    }
}

/// A directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WalkedDir {
    pub(crate) path: Vec<u8>,
    /// Its permission bits, if `stat` was asked for.
    pub(crate) permissions: u32,
}
