//! The checkpoints there are, and what differs between them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use journeyman_protocol::{ContentHash, FileChange, RelPath, SessionId, UnixMillis};

use crate::change::{CheckpointId, UndoTarget};
use crate::contents::quota::StorageUsage;
use crate::contents::store::BlobLookup;
use crate::error::WorkspaceError;
use crate::failpoint::TransactionStep;
use crate::files::diff::{Diff, DiffSide, file_diff, git_mode};
use crate::ignored::ignored_changes::IgnoredChange;
use crate::journal::LineDurability;
use crate::journal::history::{ChangesInEffect, History};
use crate::journal::record::{CheckpointRecord, JournalLine};
use crate::landing::changes::CopyChanges;
use crate::landing::collect::with_renames;
use crate::limits::{MAX_DIFF_FILE_BYTES, MAX_LABEL_BYTES};
use crate::mutex::lock;
use crate::snapshot::capture::ContentMode;
use crate::snapshot::compare::{drop_rule_changes, drop_rule_changes_between};
use crate::snapshot::differences::{Difference, diff_trees};
use crate::snapshot::entry::FileState;
use crate::snapshot::stored_tree::{load_tree_with, store_tree};
use crate::snapshot::tree::Tree;
use crate::transaction::writer::LastCheckpoint;
use crate::workspace::Workspace;

/// A changed file with its content before and after the change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedContent {
    /// The file.
    pub path: RelPath,
    /// The file's content before the change; `None` for a new file.
    pub before: Option<Vec<u8>>,
    /// The file's content after the change; `None` for a deleted file.
    pub after: Option<Vec<u8>>,
}

impl ChangedContent {
    /// Creates it from contents of which the inner `None` can't be read.
    pub(crate) fn from_sides(
        path: RelPath,
        before: Option<Option<Vec<u8>>>,
        after: Option<Option<Vec<u8>>>,
    ) -> Option<Self> {
        let readable = !matches!(before, Some(None)) && !matches!(after, Some(None));
        readable.then(|| Self { path, before: before.flatten(), after: after.flatten() })
    }
}

/// A checkpoint, as `jm checkpoints` lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointInfo {
    /// The checkpoint's id.
    pub id: CheckpointId,
    /// The session that made it.
    pub session: SessionId,
    /// The label it was given.
    pub label: String,
    /// The time at which it was made, if the workspace has a clock.
    pub at: Option<UnixMillis>,
    /// Number of changes in effect in the journal between this checkpoint and the next one, of all
    /// sessions.
    pub changes: usize,
    /// The descriptions of those changes, as far as they have any, oldest first; at most
    /// [`MAX_DESCRIPTIONS`](crate::limits::MAX_DESCRIPTIONS).
    pub descriptions: Vec<String>,
    /// True if all that it needs is still kept.
    pub whole: bool,
    /// True if its list of files can be read. Without it the checkpoint can't be compared with.
    pub readable: bool,
}

/// Answers whether contents are kept; each is looked up once for all checkpoints.
struct KeptTreesCache<'a> {
    workspace: &'a Workspace,
    holdings: BlobLookup<'a>,
    /// Chunks of trees, and whether all that they name is kept.
    chunks: HashMap<ContentHash, bool>,
}

impl KeptTreesCache<'_> {
    /// Returns true if the tree can be read, and whether all its contents are kept.
    fn look_up(&mut self, tree: &ContentHash) -> Result<(bool, bool), WorkspaceError> {
        let (holdings, chunks) = (&mut self.holdings, &mut self.chunks);
        let mut whole = true;
        let read = load_tree_with(tree, self.workspace.project.blob_store.blobs(), |chunk, files| {
            let known = match chunks.get(&chunk) {
                Some(known) => *known,
                None => {
                    let mut all = true;
                    for (_, state) in files()? {
                        all &= match state.hash {
                            Some(hash) => holdings.contains(&hash)?,
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
    /// Returns access to the project's history.
    #[must_use]
    pub fn history(&self) -> ProjectHistory<'_> {
        ProjectHistory { workspace: self }
    }

    /// Records the tree, so that differences to it can be told later: every file that isn't
    /// ignored, tracked by git or not. Contents that aren't kept yet are put among the blobs. Where
    /// nothing happened since the session's last checkpoint, it is that one. `label` is cut to
    /// [`MAX_LABEL_BYTES`].
    ///
    /// # Errors
    /// [`WorkspaceError::TooManyFiles`], [`WorkspaceError::Busy`], failures of the file system or
    /// the blobs.
    pub fn checkpoint(&self, session: &SessionId, label: &str) -> Result<CheckpointId, WorkspaceError> {
        self.checkpoint_with_tree(session, label).map(|(id, _)| id)
    }

    /// Records the tree as [`Workspace::checkpoint`] does. Returns the tree too, with signatures:
    /// by then another thread may have looked at a later one.
    pub(crate) fn checkpoint_with_tree(
        &self,
        session: &SessionId,
        label: &str,
    ) -> Result<(CheckpointId, Arc<Tree>), WorkspaceError> {
        let using = self.project.blob_store.blobs().lock_for_use()?;
        let seen = self.transactions.mark_if_at_rest()?;
        let mut tree = self.snapshots.take_snapshot(ContentMode::Contents, None)?;
        self.project.transaction_context().reach_failpoint(TransactionStep::Look, None)?;
        let known = {
            let writer = lock(&self.transactions.writer);
            let end = writer.journal.current_end();
            let last = writer.last_checkpoint.as_ref().filter(|last| last.end == end);
            last.filter(|last| last.record.session == *session && last.tree.is_same(&tree))
                .map(|last| last.record.id)
        };
        if let Some(id) = known {
            self.project.blob_store.sync()?;
            return Ok((id, tree));
        }
        let near = self.snapshots.newest_stored();
        let mut hash = store_tree(&tree, near.as_deref(), &self.project.blob_store)?;
        let id = self.transactions.write_locked(|writer, _| {
            // Changes made meanwhile come before the checkpoint, so that its tree must have them.
            if seen != Some(writer.journal.current_mark()?) {
                let near =
                    std::mem::replace(&mut tree, self.snapshots.take_snapshot(ContentMode::Contents, None)?);
                hash = store_tree(&tree, Some(&near), &self.project.blob_store)?;
            }
            let known = writer.journal.last_checkpoint();
            // Another process of the session may have made it.
            let known = known.filter(|known| known.session == *session && known.tree == hash);
            let record = match known {
                Some(record) => record,
                None => {
                    let id = CheckpointId(writer.journal.next_id());
                    let cut = label.floor_char_boundary(MAX_LABEL_BYTES);
                    let label = label.get(..cut).unwrap_or_default().to_owned();
                    let at = writer.journal.timestamp();
                    let record = CheckpointRecord { id, session: session.clone(), label, at, tree: hash };
                    // Where nothing was put, what would be lost with it is no more than that
                    // nothing had changed.
                    writer
                        .journal
                        .append(&[JournalLine::Checkpoint(record.clone())], LineDurability::Later)?;
                    if self.project.blob_store.is_unsynced()
                        && !self.project.blob_store.shares_disk(&self.project.options.state_dir)
                    {
                        writer.journal.flush()?;
                    }
                    record
                }
            };
            let (id, end) = (record.id, writer.journal.current_end());
            writer.base = Some((hash, tree.clone()));
            writer.last_checkpoint = Some(LastCheckpoint { record, tree: tree.clone(), end });
            Ok(id)
        })?;
        // One wait for the contents, the tree and the journal's line. Not under the lock: it may be
        // long where others write much.
        self.project.blob_store.sync()?;
        self.snapshots.save_cache(1)?;
        drop(using);
        self.quota().enforce()?;
        Ok((id, tree))
    }

    /// Returns the checkpoints of this project, oldest first.
    ///
    /// # Errors
    /// [`WorkspaceError::State`] when the journal can't be read.
    pub fn checkpoints(&self) -> Result<Vec<CheckpointInfo>, WorkspaceError> {
        let lines = self.project.journal().lines()?;
        let mut records: Vec<CheckpointRecord> = Vec::new();
        for line in &lines {
            if let JournalLine::Checkpoint(record) = line {
                records.push(record.clone());
            }
        }
        records.sort_by_key(|record| record.id);
        let ids: Vec<CheckpointId> = records.iter().map(|record| record.id).collect();
        let changes = History::new(lines).changes_in_effect_after(&ids);
        let holdings = self.project.blob_store.lookup();
        let mut wholeness = KeptTreesCache { workspace: self, holdings, chunks: HashMap::new() };
        let mut infos = Vec::with_capacity(records.len());
        for (record, changes) in records.into_iter().zip(changes) {
            let CheckpointRecord { id, session, label, at, tree } = record;
            let (readable, whole) = wholeness.look_up(&tree)?;
            let ChangesInEffect { count: changes, descriptions } = changes;
            infos.push(CheckpointInfo { id, session, label, at, changes, descriptions, whole, readable });
        }
        Ok(infos)
    }
}

/// The history of a project: its checkpoints, what differs from them, and what is kept of it.
#[derive(Debug)]
pub struct ProjectHistory<'a> {
    pub(crate) workspace: &'a Workspace,
}

impl ProjectHistory<'_> {
    /// Returns the hash of the tree as it is, as [`TreeSnapshot::tree_hash`](crate::TreeSnapshot)
    /// gives it. Files that look as they did when they were hashed aren't read again.
    ///
    /// # Errors
    /// Those of looking at the tree.
    pub fn tree_hash(&self) -> Result<ContentHash, WorkspaceError> {
        let snapshots = &self.workspace.snapshots;
        Ok(snapshots.take_snapshot(ContentMode::Hashes, None)?.hash())
    }

    /// Returns the files that differ from a checkpoint, sorted, regardless of who changed them.
    ///
    /// # Errors
    /// [`WorkspaceError::UnknownCheckpoint`], [`WorkspaceError::Lost`] when its blobs are gone, and
    /// those of looking at the tree.
    pub fn changes_since(&self, checkpoint: &CheckpointId) -> Result<Vec<FileChange>, WorkspaceError> {
        Ok(self.differences_since(checkpoint)?.iter().map(Difference::file_change).collect())
    }

    /// Returns the changes that bring files back to a checkpoint: those for which `wanted` returns
    /// true, given the path and true if the file was there then. They can be landed in a copy of
    /// this tree, under the name of `session`.
    ///
    /// # Errors
    /// As [`ProjectHistory::changes_since`].
    pub fn changes_to_restore(
        &self,
        checkpoint: &CheckpointId,
        session: &SessionId,
        wanted: impl Fn(&RelPath, bool) -> bool,
    ) -> Result<CopyChanges, WorkspaceError> {
        let mut found = self.differences_since(checkpoint)?;
        found.retain(|difference| wanted(&difference.path, difference.before.is_some()));
        for difference in &mut found {
            std::mem::swap(&mut difference.before, &mut difference.after);
        }
        Ok(CopyChanges {
            session: session.clone(),
            base: *checkpoint,
            files: with_renames(found),
            made: Vec::new(),
            removed: Vec::new(),
            objections: Vec::new(),
        })
    }

    /// Returns both contents of each file that differs from a checkpoint, of those that can be
    /// read: files of at most [`MAX_DIFF_FILE_BYTES`] whose content is kept.
    ///
    /// # Errors
    /// As [`ProjectHistory::changes_since`].
    pub fn contents_since(&self, checkpoint: &CheckpointId) -> Result<Vec<ChangedContent>, WorkspaceError> {
        let mut contents = Vec::new();
        for Difference { path, before, after } in self.differences_since(checkpoint)? {
            let old =
                before.as_ref().map(|state| self.workspace.project.read_kept_for_diff(state)).transpose()?;
            let new = after
                .as_ref()
                .map(|state| self.workspace.project.read_current_for_diff(&path, state))
                .transpose()?;
            contents.extend(ChangedContent::from_sides(path, old, new));
        }
        Ok(contents)
    }

    pub(crate) fn differences_since(
        &self,
        checkpoint: &CheckpointId,
    ) -> Result<Vec<Difference>, WorkspaceError> {
        let before = self.workspace.transactions.load_checkpoint_tree(checkpoint)?;
        let after = self.workspace.snapshots.take_snapshot(ContentMode::Hashes, Some(&before))?;
        drop_rule_changes(self.workspace.project.compare_inputs(), &before, diff_trees(&before, &after))
    }

    /// Lists the changes since a checkpoint that commands of a session made, or may have made, to
    /// files that neither the checkpoint nor the newest look at the tree has: ignored ones. Sorted
    /// by path.
    ///
    /// # Errors
    /// As [`ProjectHistory::changes_since`].
    pub fn ignored_changes_since(
        &self,
        checkpoint: &CheckpointId,
        session: &SessionId,
    ) -> Result<Vec<IgnoredChange>, WorkspaceError> {
        let then = self.workspace.transactions.load_checkpoint_tree(checkpoint)?;
        let now = self.workspace.snapshots.newest_tree().unwrap_or_default();
        let has = |tree: &Tree, path: &RelPath| {
            tree.entries.binary_search_by(|entry| entry.path.as_slice().cmp(path.as_bytes())).is_ok()
        };
        let mut found: BTreeMap<RelPath, (Difference, bool)> = BTreeMap::new();
        let lines = lock(&self.workspace.transactions.writer).journal.lines_after(checkpoint.0)?;
        let done = History::new(lines).into_changes().into_iter();
        for record in done.filter(|it| it.session == *session || it.beside.contains(session)) {
            let is_shared = !record.beside.is_empty();
            for file in record.files {
                if has(&then, &file.path) || has(&now, &file.path) {
                    continue;
                }
                let (path, after) = (file.path.clone(), file.after);
                let of = || (Difference { path, before: file.before, after }, false);
                let (difference, was_shared) = found.entry(file.path.clone()).or_insert_with(of);
                difference.after = after;
                *was_shared |= is_shared;
            }
        }
        // What an edit made and a command took away again was nobody's.
        let differs = |difference: &Difference| match (&difference.before, &difference.after) {
            (None, _) => false,
            (Some(before), Some(after)) => {
                before.hash.is_none() || !before.has_same_content(after) || before.mode != after.mode
            }
            (Some(_), None) => true,
        };
        let found = found.into_values().filter(|(difference, _)| differs(difference));
        let changes = found.map(|(difference, is_shared)| {
            let is_kept = difference.before.is_some_and(|it| it.hash.is_some());
            IgnoredChange { change: difference.file_change(), is_undoable: is_kept && !is_shared, is_shared }
        });
        Ok(changes.collect())
    }

    /// Returns the content with this hash, if an undo would have it; files as they were before
    /// commands, and what edits replaced.
    ///
    /// # Errors
    /// [`WorkspaceError::Store`] when the blobs can't be read.
    pub fn kept_content(&self, hash: &ContentHash) -> Result<Option<Vec<u8>>, WorkspaceError> {
        self.workspace.project.blob_store.get(hash)
    }

    /// Returns the session whose changes [`UndoTarget::LastRun`] would take back; `None` where
    /// nothing can be.
    ///
    /// # Errors
    /// A journal that can't be read; [`WorkspaceError::HistoryDamaged`].
    pub fn newest_undoable_session(&self) -> Result<Option<SessionId>, WorkspaceError> {
        match self.workspace.project.history()?.select_changes(&UndoTarget::LastRun) {
            Ok(selected) => Ok(selected.sessions.into_iter().next()),
            Err(damaged @ WorkspaceError::HistoryDamaged { .. }) => Err(damaged),
            Err(_) => Ok(None),
        }
    }

    /// Returns how much of the disk the project's checkpoints and changes take.
    ///
    /// # Errors
    /// [`WorkspaceError::State`] when the record of it can't be read.
    pub fn storage_usage(&self) -> Result<StorageUsage, WorkspaceError> {
        self.workspace.quota().storage_usage()
    }

    /// Returns the differences between two checkpoints, or one and the tree as it is, as a unified
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
        let before = self.workspace.transactions.load_checkpoint_tree(one)?;
        let found = match other {
            Some(other) => {
                let after = self.workspace.transactions.load_checkpoint_tree(other)?;
                drop_rule_changes_between(
                    self.workspace.project.compare_inputs(),
                    &before,
                    &after,
                    diff_trees(&before, &after),
                )?
            }
            None => {
                let after = self.workspace.snapshots.take_snapshot(ContentMode::Hashes, Some(&before))?;
                drop_rule_changes(
                    self.workspace.project.compare_inputs(),
                    &before,
                    diff_trees(&before, &after),
                )?
            }
        };
        let mut diff = Diff::default();
        let mut lost = HashSet::new();
        for Difference { path, before, after } in &found {
            let mut kept = |state: &FileState| -> Result<Option<Vec<u8>>, WorkspaceError> {
                let bytes = self.workspace.project.read_kept_for_diff(state)?;
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
                (Some(state), None) => {
                    Some((git_mode(state), self.workspace.project.read_current_for_diff(path, state)?))
                }
                (None, _) => None,
            };
            let old = old.as_ref().map(|(mode, bytes)| DiffSide { mode: *mode, bytes: bytes.as_deref() });
            let new = new.as_ref().map(|(mode, bytes)| DiffSide { mode: *mode, bytes: bytes.as_deref() });
            diff.add(path, &file_diff(path, old, new), max_bytes);
        }
        diff.lost = lost.into_iter().collect();
        diff.lost.sort();
        Ok(diff)
    }

    /// Returns the differences between a checkpoint and the current tree, as
    /// [`ProjectHistory::diff_between`] does.
    ///
    /// # Errors
    /// As [`ProjectHistory::diff_between`].
    pub fn diff_since(&self, checkpoint: &CheckpointId, max_bytes: usize) -> Result<Diff, WorkspaceError> {
        self.diff_between(checkpoint, None, max_bytes)
    }

    /// Returns true if a content that couldn't be read was kept once, and is gone or damaged.
    fn is_lost(&self, state: &FileState) -> Result<bool, WorkspaceError> {
        match &state.hash {
            // What is small enough to be shown was read just now.
            Some(hash) => Ok(state.size <= MAX_DIFF_FILE_BYTES as u64
                || !self.workspace.project.blob_store.contains(hash)?),
            None => Ok(false),
        }
    }
}
