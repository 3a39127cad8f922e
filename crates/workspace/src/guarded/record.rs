//! The record of guarded paths in a command's heartbeat.

use journeyman_protocol::{ContentHash, RelPath};
use journeyman_sandbox::Repositories;
use serde::{Deserialize, Serialize};

/// The guarded paths before a command, without their contents.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredGuardedState {
    pub(crate) device: u64,
    pub(crate) repositories: Repositories,
    pub(crate) known: Vec<StoredPath>,
    pub(crate) armed: Vec<(RelPath, ContentHash)>,
    /// Repositories without a `.git`: the directory, its inode, and the hash of its settings and
    /// hooks.
    pub(crate) bare: Vec<(Option<RelPath>, u64, Option<ContentHash>)>,
    /// Directories with names that make a bare repository, and these names.
    pub(crate) parts: Vec<(Option<RelPath>, Vec<RelPath>)>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredPath {
    pub(crate) path: RelPath,
    pub(crate) inode: u64,
    pub(crate) mode: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) loose: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) repository: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kept: Option<StoredContent>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StoredContent {
    File { mode: u32, hash: ContentHash },
    Link(Vec<u8>),
    Directory { mode: u32, children: Vec<(RelPath, StoredContent)> },
    Other { mode: u32 },
}

impl StoredGuardedState {
    /// Returns the hashes of the contents.
    pub(crate) fn contents(&self) -> Vec<ContentHash> {
        fn collect_hashes(content: &StoredContent, hashes: &mut Vec<ContentHash>) {
            match content {
                StoredContent::File { hash, .. } => hashes.push(*hash),
                StoredContent::Directory { children, .. } => {
                    children.iter().for_each(|(_, child)| collect_hashes(child, hashes));
                }
                StoredContent::Link(_) | StoredContent::Other { .. } => {}
            }
        }
        let mut hashes = Vec::new();
        self.known
            .iter()
            .filter_map(|one| one.kept.as_ref())
            .for_each(|kept| collect_hashes(kept, &mut hashes));
        hashes
    }
}
