//! The whole tree at one moment: signatures of all files that aren't ignored, and hashes of their
//! contents.
//!
//! A snapshot is made from the one before: a file whose signature (size, mtime, ctime, inode, mode)
//! is the same is not read again, unless it was changed within the granularity of the clock before
//! it was read last (git's `racily clean` entries). Directories are recorded by name and mode, so
//! that empty ones come back too.

use std::sync::OnceLock;

use journeyman_protocol::ContentHash;

use crate::limits::Limits;
use crate::snapshot::entry::{EntryContent, FileKind, TreeEntry, WalkedDir};
use crate::snapshot::tree_index::TreeIndex;

/// The tree at one moment.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) entries: Vec<TreeEntry>,
    pub(crate) dirs: Vec<WalkedDir>,
    pub(crate) unreadable: Vec<Vec<u8>>,
    /// Everything named `.git`, in any case. It is no part of what a checkpoint or an undo is
    /// about.
    pub(crate) repositories: Vec<Vec<u8>>,
    /// A fingerprint of the rules by which files were chosen, but for those in the tree itself;
    /// `None` where that isn't known.
    pub(crate) rules: Option<ContentHash>,
    pub(crate) index: OnceLock<TreeIndex>,
    pub(crate) steady: OnceLock<bool>,
    /// The blobs of the tree, if it was stored.
    pub(crate) stored: OnceLock<StoredBlobs>,
    pub(crate) hash: OnceLock<ContentHash>,
}

impl Tree {
    /// Returns the contents of each directory.
    pub(crate) fn index(&self) -> &TreeIndex {
        self.index.get_or_init(|| TreeIndex::of(&self.entries, &self.dirs))
    }

    /// Returns the hash of the paths, permissions and contents of all files. Of a file that is too
    /// large to keep, size and time of change stand for the content.
    pub(crate) fn hash(&self) -> ContentHash {
        *self.hash.get_or_init(|| {
            let mut list = Vec::new();
            for entry in &self.entries {
                let state = entry.state();
                list.extend_from_slice(&entry.path);
                list.push(0);
                list.extend_from_slice(&state.mode.to_le_bytes());
                list.push(u8::from(state.kind == FileKind::Link));
                match state.hash {
                    Some(hash) => list.extend_from_slice(hash.as_bytes()),
                    None => {
                        list.extend_from_slice(&state.size.to_le_bytes());
                        list.extend_from_slice(&entry.seen.mtime.to_le_bytes());
                    }
                }
            }
            ContentHash::of(&list)
        })
    }

    /// Returns true if the same signatures mean this very tree, with every content kept that may
    /// be.
    pub(crate) fn is_reusable(&self, limits: &Limits) -> bool {
        *self.steady.get_or_init(|| {
            let mut room = TreeBudget::of(limits);
            self.entries.iter().all(|entry| {
                let fits = room.try_reserve(entry.seen.size);
                entry.settled
                    && match entry.content {
                        EntryContent::Hashed { kept, .. } => fits && kept,
                        EntryContent::Unkept => !fits,
                    }
            })
        })
    }

    /// Returns true if nothing that counts differs.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
            || (self.dirs == other.dirs
                && self.unreadable == other.unreadable
                && self.entries.len() == other.entries.len()
                && self.entries.iter().zip(&other.entries).all(|(a, b)| a.path == b.path && !a.differs(b)))
    }
}

/// The room left for contents of a tree.
pub(crate) struct TreeBudget<'a> {
    limits: &'a Limits,
    taken: u64,
}

impl<'a> TreeBudget<'a> {
    pub(crate) fn of(limits: &'a Limits) -> Self {
        Self { limits, taken: 0 }
    }

    /// Returns true if the next file, in the order of paths, is kept.
    pub(crate) fn try_reserve(&mut self, size: u64) -> bool {
        let taken = self.taken.saturating_add(size);
        let most = self.limits.kept_project_bytes.min(self.limits.project_bytes);
        let fits = size <= self.limits.kept_file_bytes && taken <= most;
        if fits {
            self.taken = taken;
        }
        fits
    }
}

/// The blobs of a stored tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredBlobs {
    /// The list's hash.
    pub(crate) hash: ContentHash,
    /// The end of each chunk, in numbers of files, and its hash.
    pub(crate) chunks: Vec<(u32, ContentHash)>,
}
