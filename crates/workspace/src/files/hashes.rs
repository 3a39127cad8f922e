//! Hashes of single files, without reading what is known.

use std::collections::HashMap;

use journeyman_protocol::{ContentHash, RelPath};

use crate::files::root_dir::{FinalLinkPolicy, LinkPolicy, hash_file};
use crate::files::stat::FileStat;
use crate::files::stat::{file_clock, is_change_settled};
use crate::limits::MAX_CACHED_FINGERPRINTS;
use crate::mutex::lock;
use crate::project::Project;
use crate::snapshot::entry::EntryContent;
use crate::snapshot::snapshots::Snapshots;
use std::sync::{Arc, Mutex};

/// Files that were hashed outside of a snapshot.
pub(crate) type CachedHashes = HashMap<RelPath, (FileStat, ContentHash)>;

/// Remembers the hashes of single files.
pub(crate) struct FileHashes {
    project: Arc<Project>,
    snapshots: Arc<Snapshots>,
    prints: Mutex<CachedHashes>,
}

impl FileHashes {
    pub(crate) fn new(project: Arc<Project>, snapshots: Arc<Snapshots>) -> Self {
        Self { project, snapshots, prints: Mutex::default() }
    }

    pub(crate) fn fingerprints(&self, paths: &[RelPath]) -> Vec<Option<ContentHash>> {
        paths.iter().map(|path| self.fingerprint(path)).collect()
    }

    fn fingerprint(&self, path: &RelPath) -> Option<ContentHash> {
        let path = self.project.root_dir.canonicalize(path, FinalLinkPolicy::Follow).ok()?;
        let seen = self.project.root_dir.stat(&path).ok()??;
        if !seen.is_file() {
            return None;
        }
        if let Some((_, hash)) = lock(&self.prints).get(&path).filter(|(known, _)| *known == seen) {
            return Some(*hash);
        }
        if let Some(hash) = self.hash_in_newest_snapshot(&path, &seen) {
            return Some(hash);
        }
        let now = file_clock();
        let (file, before) = self.project.root_dir.open_file(&path, LinkPolicy::Refuse).ok()?;
        let hash = hash_file(&file).ok()?;
        let after = FileStat::of(&rustix::fs::fstat(&file).ok()?);
        if before == after && is_change_settled(&before, now) {
            let mut prints = lock(&self.prints);
            if prints.len() >= MAX_CACHED_FINGERPRINTS {
                // Which of them were asked for last isn't known; hashing them again costs little.
                prints.clear();
            }
            prints.insert(path, (before, hash));
        }
        Some(hash)
    }

    fn hash_in_newest_snapshot(&self, path: &RelPath, seen: &FileStat) -> Option<ContentHash> {
        let tree = self.snapshots.newest_tree()?;
        let at = tree.entries.binary_search_by(|entry| entry.path.as_slice().cmp(path.as_bytes())).ok()?;
        let entry = tree.entries.get(at).filter(|entry| entry.settled && entry.seen == *seen)?;
        match entry.content {
            EntryContent::Hashed { hash, .. } => Some(hash),
            EntryContent::Unkept => None,
        }
    }
}
