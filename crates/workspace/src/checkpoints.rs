//! The checkpoints there are, and what differs between them.

use std::collections::{HashMap, HashSet};

use journeyman_protocol::{ContentHash, SessionId, UnixMillis};

use crate::change::CheckpointId;
use crate::contents::store::Holdings;
use crate::error::WorkspaceError;
use crate::files::diff::Diff;
use crate::files::diff::git_mode;
use crate::files::diff::{Side, file_diff};
use crate::journal::history::History;
use crate::journal::record::{CheckpointRecord, Line};
use crate::limits::DIFF_FILE_BYTES;
use crate::snapshot::capture::Keep;
use crate::snapshot::compare::{filtered, filtered_between};
use crate::snapshot::differences::{Difference, differences};
use crate::snapshot::entry::FileState;
use crate::snapshot::stored::load_tree_with;
use crate::workspace::Workspace;

/// A checkpoint, as `jm checkpoints` lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointInfo {
    /// Its name.
    pub id: CheckpointId,
    /// The session that made it.
    pub session: SessionId,
    /// What it says of itself.
    pub label: String,
    /// When it was made, where a clock was there.
    pub at: Option<UnixMillis>,
    /// Changes in the journal between it and the next one, whoever made them, that aren't taken
    /// back.
    pub changes: usize,
    /// Whether all that it needs is still kept.
    pub whole: bool,
    /// Whether its list of files can be read. Without it the checkpoint can't be compared with.
    pub readable: bool,
}

/// What is found out about kept contents, each looked at once for all checkpoints.
struct Wholeness<'a> {
    workspace: &'a Workspace,
    holdings: Holdings<'a>,
    /// Chunks of trees, and whether all that they name is kept.
    chunks: HashMap<ContentHash, bool>,
}

impl Wholeness<'_> {
    /// Whether the tree can be read, and whether all its contents are kept.
    fn of(&mut self, tree: &ContentHash) -> Result<(bool, bool), WorkspaceError> {
        let (holdings, chunks) = (&mut self.holdings, &mut self.chunks);
        let mut whole = true;
        let read = load_tree_with(tree, self.workspace.vault.blobs(), |chunk, files| {
            let known = match chunks.get(&chunk) {
                Some(known) => *known,
                None => {
                    let mut all = true;
                    for (_, state) in files()? {
                        all &= match state.hash {
                            Some(hash) => holdings.has(&hash)?,
                            // Too large to be kept from the beginning.
                            None => true,
                        };
                    }
                    chunks.insert(chunk, all);
                    all
                }
            };
            whole &= known;
            Ok(())
        });
        match read {
            Ok(_) => Ok((true, whole)),
            Err(WorkspaceError::Lost { .. }) => Ok((false, false)),
            Err(other) => Err(other),
        }
    }
}

impl Workspace {
    /// The checkpoints of this project, oldest first.
    ///
    /// # Errors
    /// [`WorkspaceError::State`] when the journal can't be read.
    pub fn checkpoints(&self) -> Result<Vec<CheckpointInfo>, WorkspaceError> {
        let lines = self.journal().lines()?;
        let mut records: Vec<CheckpointRecord> = Vec::new();
        for line in &lines {
            if let Line::Checkpoint(record) = line {
                records.push(record.clone());
            }
        }
        records.sort_by_key(|record| record.id);
        let ids: Vec<CheckpointId> = records.iter().map(|record| record.id).collect();
        let changes = History::new(lines).in_effect_after(&ids);
        let holdings = self.vault.holdings();
        let mut wholeness = Wholeness { workspace: self, holdings, chunks: HashMap::new() };
        let mut infos = Vec::with_capacity(records.len());
        for (record, changes) in records.into_iter().zip(changes) {
            let CheckpointRecord { id, session, label, at, tree } = record;
            let (readable, whole) = wholeness.of(&tree)?;
            infos.push(CheckpointInfo { id, session, label, at, changes, whole, readable });
        }
        Ok(infos)
    }

    /// What differs between two checkpoints, or between one and the tree as it is, as a unified
    /// diff in git's form of at most `max_bytes` bytes: whole files, in order, as many as fit.
    /// Contents that aren't kept any more are named in [`Diff::lost`].
    ///
    /// # Errors
    /// [`WorkspaceError::UnknownCheckpoint`], [`WorkspaceError::Lost`] when a checkpoint's list of
    /// files is gone, and those of looking at the tree.
    pub fn diff_between(
        &self,
        one: &CheckpointId,
        other: Option<&CheckpointId>,
        max_bytes: usize,
    ) -> Result<Diff, WorkspaceError> {
        let before = self.checkpoint_tree(one)?;
        let found = match other {
            Some(other) => {
                let after = self.checkpoint_tree(other)?;
                filtered_between(self.inputs(), &before, &after, differences(&before, &after))?
            }
            None => {
                let after = self.snapshot(Keep::Hashes, Some(&before))?;
                filtered(self.inputs(), &before, differences(&before, &after))?
            }
        };
        let mut diff = Diff::default();
        let mut lost = HashSet::new();
        for Difference { path, before, after } in &found {
            let mut kept = |state: &FileState| -> Result<Option<Vec<u8>>, WorkspaceError> {
                let bytes = self.kept_bytes(state)?;
                if bytes.is_none() && self.is_lost(state)? {
                    lost.insert(path.clone());
                }
                Ok(bytes)
            };
            let old = match before {
                Some(state) => Some((git_mode(state), kept(state)?)),
                None => None,
            };
            let new = match (after, other) {
                (Some(state), Some(_)) => Some((git_mode(state), kept(state)?)),
                (Some(state), None) => Some((git_mode(state), self.current_bytes(path, state)?)),
                (None, _) => None,
            };
            let old = old.as_ref().map(|(mode, bytes)| Side { mode: *mode, bytes: bytes.as_deref() });
            let new = new.as_ref().map(|(mode, bytes)| Side { mode: *mode, bytes: bytes.as_deref() });
            diff.add(path, &file_diff(path, old, new), max_bytes);
        }
        diff.lost = lost.into_iter().collect();
        diff.lost.sort();
        Ok(diff)
    }

    /// The same against the tree as it is.
    ///
    /// # Errors
    /// As [`Workspace::diff_between`].
    pub fn diff_since(&self, checkpoint: &CheckpointId, max_bytes: usize) -> Result<Diff, WorkspaceError> {
        self.diff_between(checkpoint, None, max_bytes)
    }

    /// Whether a content that couldn't be read was kept once, and is gone or damaged.
    fn is_lost(&self, state: &FileState) -> Result<bool, WorkspaceError> {
        match &state.hash {
            // What is small enough to be shown was read just now.
            Some(hash) => Ok(state.size <= DIFF_FILE_BYTES as u64 || !self.vault.contains(hash)?),
            None => Ok(false),
        }
    }
}
