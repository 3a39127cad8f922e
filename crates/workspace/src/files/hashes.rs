//! Hashes of single files, without reading what is known.

use std::collections::HashMap;

use journeyman_protocol::{ContentHash, RelPath};

use crate::error::WorkspaceError;
use crate::files::root_dir::{Last, Links, hash_pieces};
use crate::files::stat::Seen;
use crate::files::stat::{file_clock, is_settled};
use crate::limits::MAX_PRINTS;
use crate::mutex::lock;
use crate::snapshot::entry::Content;
use crate::workspace::Workspace;

/// Files that were hashed outside of a snapshot.
pub(crate) type Prints = HashMap<RelPath, (Seen, ContentHash)>;

impl Workspace {
    /// The hash of each file's content, as
    /// [`FileContent::hash`](crate::files::content::FileContent::hash) gives it; `None` where there
    /// is none to be read: nothing there, no file, no permission, a link that leads out. Links that
    /// stay inside are followed. A file that looks as it did when its hash was taken isn't read
    /// again.
    #[must_use]
    pub fn fingerprints(&self, paths: &[RelPath]) -> Vec<Option<ContentHash>> {
        paths.iter().map(|path| self.fingerprint(path)).collect()
    }

    /// The content with this hash, if an undo would have it; files as they were before commands,
    /// and what edits replaced.
    ///
    /// # Errors
    /// [`WorkspaceError::Store`] when the blobs can't be read.
    pub fn kept(&self, hash: &ContentHash) -> Result<Option<Vec<u8>>, WorkspaceError> {
        self.vault.get(hash)
    }

    fn fingerprint(&self, path: &RelPath) -> Option<ContentHash> {
        let path = self.door.canonical(path, Last::Follow).ok()?;
        let seen = self.door.look(&path).ok()??;
        if !seen.is_file() {
            return None;
        }
        if let Some((_, hash)) = lock(&self.prints).get(&path).filter(|(known, _)| *known == seen) {
            return Some(*hash);
        }
        if let Some(hash) = self.in_newest(&path, &seen) {
            return Some(hash);
        }
        let now = file_clock();
        let (file, before) = self.door.read_file(&path, Links::Refuse).ok()?;
        let hash = hash_pieces(&file).ok()?;
        let after = Seen::of(&rustix::fs::fstat(&file).ok()?);
        if before == after && is_settled(&before, now) {
            let mut prints = lock(&self.prints);
            if prints.len() >= MAX_PRINTS {
                // Which of them were asked for last isn't known; hashing them again costs little.
                prints.clear();
            }
            prints.insert(path, (before, hash));
        }
        Some(hash)
    }

    fn in_newest(&self, path: &RelPath, seen: &Seen) -> Option<ContentHash> {
        let tree = self.newest_tree()?;
        let at = tree.entries.binary_search_by(|entry| entry.path.as_slice().cmp(path.as_bytes())).ok()?;
        let entry = tree.entries.get(at).filter(|entry| entry.settled && entry.seen == *seen)?;
        match entry.content {
            Content::Hashed { hash, .. } => Some(hash),
            Content::Unkept => None,
        }
    }
}
