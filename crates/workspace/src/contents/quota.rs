//! The bound on the disk use of a project's history, and what is removed when it is reached.
//!
//! The [ledger](crate::contents::blob_usage) counts what the project put among the blobs. When that
//! passes the quota, the journal is walked newest first until what its changes and checkpoints need
//! would take more than seven eighths of it; what is older is dropped, oldest first. Then every
//! blob of the ledger goes that nothing needs any more: no change or checkpoint that is left, no
//! running command, no copy of the tree, no other project. The newest change and the newest
//! checkpoint always stay, and so do the checkpoints that copies were made from.
//!
//! The journal is cut before the blobs go, so that a crash leaves blobs too many and never one too
//! few; the next sweep finds them in the ledger. A sweep needs the project's lock and doesn't wait
//! for other processes: while one of them stores something, the sweep is put off until the next
//! change.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use journeyman_protocol::ContentHash;
use journeyman_store::SweepLock;

use crate::change::CheckpointId;
use crate::commands::heartbeat::list_command_starts;
use crate::contents::blob_usage::{BlobEntry, disk_cost, read_wanted_hashes};
use crate::contents::store::BlobStore;
use crate::error::WorkspaceError;
use crate::failpoint::TransactionStep;
use crate::journal::Journal;
use crate::journal::record::{ChangeRecord, JournalLine};
use crate::landing::stored_changes::referenced_contents as stored_contents;
use crate::mutex::lock;
use crate::project::Project;
use crate::snapshot::entry::EntryContent;
use crate::snapshot::snapshots::Snapshots;
use crate::snapshot::stored_tree::{load_tree_with, read_cache};
use crate::snapshot::tree::Tree;
use crate::state::lock::{FileLock, state_error};
use crate::transaction::rollback::Rollback;
use crate::transaction::writer::{TransactionWriter, WriterState};

/// The part of the quota, as 1 in so many, that a sweep leaves free, so that the next change
/// doesn't sweep again.
const FREE_SPACE_DIVISOR: u64 = 8;
/// The longest record of a copy that is looked into for its checkpoint.
const MAX_COPY_RECORD_BYTES: u64 = 1024 * 1024;

/// The disk space that a project's stored history takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageUsage {
    /// Bytes that the blobs take which this project was the first to put.
    pub bytes: u64,
    /// The maximum for that.
    pub limit_bytes: u64,
}

/// Keeps the stored history of a project within its quota.
pub(crate) struct Quota<'a> {
    pub(crate) project: &'a Project,
    pub(crate) snapshots: &'a Snapshots,
    pub(crate) transactions: &'a TransactionWriter,
}

impl Quota<'_> {
    /// Returns the disk space that the project's checkpoints and changes take.
    ///
    /// # Errors [`WorkspaceError::State`] when the record of it can't be read.
    pub(crate) fn storage_usage(&self) -> Result<StorageUsage, WorkspaceError> {
        let ledger = self.project.blob_store.usage();
        let (bytes, _) = ledger.totals().map_err(|source| state_error("read", ledger.path(), source))?;
        Ok(StorageUsage { bytes, limit_bytes: self.project.limits().project_bytes })
    }

    /// Makes room if the project's past takes more than it may. What was done before stays done: a
    /// failure is found again at the next change.
    ///
    /// # Errors
    /// Only that of a test's failpoint.
    pub(crate) fn enforce(&self) -> Result<(), WorkspaceError> {
        // A copy's contents are the project's, and so is their removal.
        if self.project.project_copy().is_some() {
            return Ok(());
        }
        match self.sweep_if_needed() {
            Err(error) if error.is_cut_off() => Err(error),
            _ => Ok(()),
        }
    }

    fn sweep_if_needed(&self) -> Result<(), WorkspaceError> {
        let ledger = self.project.blob_store.usage();
        let (total, floor) = ledger.totals().map_err(|source| state_error("read", ledger.path(), source))?;
        if total <= self.project.limits().project_bytes.max(floor) {
            return Ok(());
        }
        let mut writer = lock(&self.transactions.writer);
        let project = match writer.lock.take() {
            Some(project) => project,
            None => FileLock::open(&self.project.options.state_dir)?,
        };
        let swept = project.try_take().and_then(|held| {
            match (held, self.project.blob_store.blobs().try_lock_for_sweep()?) {
                (Some(_held), Some(right)) => self.sweep(&mut writer, &right),
                _ => Ok(()),
            }
        });
        writer.lock = Some(project);
        swept
    }

    fn sweep(&self, writer: &mut WriterState, right: &SweepLock) -> Result<(), WorkspaceError> {
        let context = self.project.transaction_context();
        if let Some(open) = writer.journal.catch_up()? {
            Rollback::new(&context).recover(&mut writer.journal, &open)?;
        }
        self.project.blob_store.invalidate_packs();
        let ledger = self.project.blob_store.usage();
        let failed = |source| state_error("keep", ledger.path(), source);
        let mut book = HashMap::new();
        for entry in ledger.entries().map_err(failed)? {
            if let Some(stored) = self.project.blob_store.blobs().stored_bytes(&entry.hash)? {
                book.insert(entry.hash, (disk_cost(stored), entry.cost.is_some()));
            }
        }
        let others = self.blobs_needed_by_others(&book);
        // A blob whose first owner dropped it is charged to this project from now on.
        for (hash, (_, ours)) in &mut book {
            *ours |= !others.contains(hash);
        }
        let quota = self.project.limits().project_bytes;
        let target = quota - quota / FREE_SPACE_DIVISOR;
        let mut needs = MarkPhase::new(&self.project.blob_store, &book);
        let based = self.mark_always_needed(&mut needs)?;
        let lines = writer.journal.lines()?;
        let from = needs.find_first_kept_line(&lines, &based, target)?;
        if from > 0 {
            context.reach_failpoint(TransactionStep::Forget, None)?;
            writer.journal.drop_lines_before(lines, from, &based)?;
            writer.base = None;
        }
        let total = needs.repack_needed()?;
        let MarkPhase { marked, .. } = needs;
        context.reach_failpoint(TransactionStep::Sweep, None)?;
        let gone = book.keys().filter(|hash| !marked.contains_key(*hash) && !others.contains(*hash));
        self.project.blob_store.blobs().sweep(right, gone.copied())?;
        context.reach_failpoint(TransactionStep::Swept, None)?;
        self.project.blob_store.retain_packs(|pack| marked.contains_key(pack))?;
        let kept =
            marked.iter().map(|(hash, mark)| BlobEntry { hash: *hash, cost: mark.ours.then_some(mark.cost) });
        let mut kept: Vec<BlobEntry> = kept.collect();
        kept.sort_by_key(|entry| *entry.hash.as_bytes());
        // With more than that it would be swept again and again for nothing.
        let floor = if total > target { total.saturating_add(quota / FREE_SPACE_DIVISOR) } else { 0 };
        ledger.replace(&kept, floor).map_err(failed)?;
        self.project.blob_store.invalidate_packs();
        Ok(())
    }

    /// Returns this project's blobs that other projects rely on.
    fn blobs_needed_by_others(&self, book: &HashMap<ContentHash, (u64, bool)>) -> HashSet<ContentHash> {
        let ours = self.project.blob_store.usage().path();
        let projects = ours.parent().and_then(Path::parent).map(fs::read_dir);
        let Some(Ok(projects)) = projects else { return HashSet::new() };
        let mut needed = HashSet::new();
        for project in projects.flatten() {
            let theirs = project.path().join("ledger");
            if theirs != ours {
                // A ledger that can't be read can't have entries of this store.
                needed
                    .extend(read_wanted_hashes(&theirs, |hash| book.contains_key(hash)).unwrap_or_default());
            }
        }
        needed
    }

    /// Marks what is needed regardless of the journal. Returns the checkpoints that copies were
    /// made from.
    fn mark_always_needed(&self, needs: &mut MarkPhase<'_>) -> Result<HashSet<CheckpointId>, WorkspaceError> {
        let mut based = HashSet::new();
        needs.mark_state_dir(&self.project.options.state_dir)?;
        for tree in self.snapshots.trees_in_use() {
            needs.mark_tree_in_memory(&tree);
        }
        let copies = match fs::read_dir(self.project.options.state_dir.join("work")) {
            Ok(copies) => copies,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(based),
            Err(source) => {
                return Err(state_error("list", &self.project.options.state_dir.join("work"), source));
            }
        };
        for copy in copies {
            let copy =
                copy.map_err(|source| state_error("list", &self.project.options.state_dir, source))?.path();
            based.extend(copy_base_checkpoint(&copy));
            for hash in stored_contents(&copy)? {
                needs.mark_content(&hash)?;
            }
            let state = copy.join("state");
            needs.mark_state_dir(&state)?;
            for line in Journal::new(&state, u64::MAX).lines()? {
                needs.mark_line(&line)?;
            }
        }
        Ok(based)
    }
}

/// Returns the checkpoint that a copy was made from, as its record says.
fn copy_base_checkpoint(copy: &Path) -> Option<CheckpointId> {
    let path = copy.join("record");
    if fs::symlink_metadata(&path).ok()?.len() > MAX_COPY_RECORD_BYTES {
        return None;
    }
    let text = fs::read_to_string(path).ok()?;
    let value: serde_json::Value = text.lines().find_map(|line| serde_json::from_str(line).ok())?;
    value.get("info")?.get("base")?.as_u64().map(CheckpointId)
}

/// A blob that is needed.
#[derive(Debug, Clone, Copy)]
struct MarkedBlob {
    cost: u64,
    /// True if this project was the first to put it.
    ours: bool,
}

/// The blobs that are needed, among those that this project has recorded.
struct MarkPhase<'a> {
    blob_store: &'a BlobStore,
    book: &'a HashMap<ContentHash, (u64, bool)>,
    marked: HashMap<ContentHash, MarkedBlob>,
    total: u64,
    contents: HashSet<ContentHash>,
    chunks: HashSet<ContentHash>,
    /// The blobs that only the newest line needs.
    fresh: Vec<ContentHash>,
}

impl<'a> MarkPhase<'a> {
    fn new(blob_store: &'a BlobStore, book: &'a HashMap<ContentHash, (u64, bool)>) -> Self {
        Self {
            blob_store,
            book,
            marked: HashMap::new(),
            total: 0,
            contents: HashSet::new(),
            chunks: HashSet::new(),
            fresh: Vec::new(),
        }
    }

    fn mark_blob(&mut self, hash: &ContentHash) {
        let Some((cost, ours)) = self.book.get(hash).copied() else { return };
        if self.marked.insert(*hash, MarkedBlob { cost, ours }).is_none() {
            self.fresh.push(*hash);
            if ours {
                self.total = self.total.saturating_add(cost);
            }
        }
    }

    fn mark_content(&mut self, hash: &ContentHash) -> Result<(), WorkspaceError> {
        if self.contents.insert(*hash) {
            self.mark_blob(hash);
            // A blob that another project keeps may be removed with that project's: both the blob
            // and the pack are kept.
            if !self.marked.contains_key(hash)
                && let Some(pack) = self.blob_store.pack_of(hash)?
            {
                self.mark_blob(&pack);
            }
        }
        Ok(())
    }

    fn mark_tree(&mut self, hash: &ContentHash) -> Result<(), WorkspaceError> {
        self.mark_blob(hash);
        let blob_store = self.blob_store;
        let loaded = load_tree_with(hash, blob_store.blobs(), |chunk, files| {
            self.mark_blob(&chunk);
            if self.chunks.insert(chunk) {
                for (_, state) in files()? {
                    state.hash.iter().try_for_each(|hash| self.mark_content(hash))?;
                }
            }
            Ok(())
        });
        match loaded {
            // Nothing is left of it that could be kept.
            Ok(_) | Err(WorkspaceError::Lost { .. }) => Ok(()),
            Err(other) => Err(other),
        }
    }

    fn mark_tree_in_memory(&mut self, tree: &Tree) {
        for entry in &tree.entries {
            if let EntryContent::Hashed { hash, kept: true } = entry.content {
                // What can't be looked up is found missing when the tree is next looked at.
                self.mark_content(&hash).ok();
            }
        }
    }

    /// Marks the contents before a change: an undo needs them.
    fn mark_change(&mut self, record: &ChangeRecord) -> Result<(), WorkspaceError> {
        let before = record.files.iter().filter_map(|file| file.before.as_ref());
        before.filter_map(|state| state.hash.as_ref()).try_for_each(|hash| self.mark_content(hash))
    }

    fn mark_line(&mut self, line: &JournalLine) -> Result<(), WorkspaceError> {
        match line {
            JournalLine::Change(record) => self.mark_change(record),
            JournalLine::Checkpoint(record) => self.mark_tree(&record.tree),
            JournalLine::Placed(_)
            | JournalLine::Done(_)
            | JournalLine::Void(_)
            | JournalLine::Dropped(_)
            | JournalLine::Damaged(_) => Ok(()),
        }
    }

    /// Marks the blobs that snapshots and running commands of a state directory need.
    fn mark_state_dir(&mut self, dir: &Path) -> Result<(), WorkspaceError> {
        if let Some(tree) = read_cache(&dir.join("stat-cache"), self.blob_store) {
            self.mark_tree_in_memory(&tree);
        }
        for begin in list_command_starts(dir)? {
            let (tree, contents) = begin.needed_blobs();
            self.mark_tree(&tree)?;
            contents.iter().try_for_each(|hash| self.mark_content(hash))?;
        }
        Ok(())
    }

    /// Returns the first line from which the journal fits the quota.
    fn find_first_kept_line(
        &mut self,
        lines: &[JournalLine],
        based: &HashSet<CheckpointId>,
        target: u64,
    ) -> Result<usize, WorkspaceError> {
        let newest = lines.iter().rev().find(|line| matches!(line, JournalLine::Checkpoint(_)));
        let is_based = |line: &&JournalLine| matches!(line, JournalLine::Checkpoint(record) if based.contains(&record.id));
        for line in newest.into_iter().chain(lines.iter().filter(is_based)) {
            self.mark_line(line)?;
        }
        let (mut from, mut changed) = (lines.len(), false);
        for (place, line) in lines.iter().enumerate().rev() {
            self.fresh.clear();
            self.mark_line(line)?;
            if self.total > target && changed && !self.fresh.is_empty() {
                self.unmark_newest_line();
                break;
            }
            changed |= matches!(line, JournalLine::Change(_));
            from = place;
        }
        // What only closes or says what was dropped before is no reason to write the journal anew.
        let is_nothing =
            |line: &JournalLine| !matches!(line, JournalLine::Change(_) | JournalLine::Checkpoint(_));
        Ok(if lines.iter().take(from).all(is_nothing) { 0 } else { from })
    }

    fn unmark_newest_line(&mut self) {
        for hash in std::mem::take(&mut self.fresh) {
            if let Some(mark) = self.marked.remove(&hash).filter(|mark| mark.ours) {
                self.total = self.total.saturating_sub(mark.cost);
            }
        }
        // Contents are asked after no more, so that what was seen of them doesn't matter.
    }

    /// Moves the needed contents of mostly unneeded packs into new packs. Returns the total size
    /// afterwards.
    fn repack_needed(&mut self) -> Result<u64, WorkspaceError> {
        let (marked, contents) = (&self.marked, &self.contents);
        let moved =
            self.blob_store.repack(|pack| marked.contains_key(pack), |hash| contents.contains(hash))?;
        for (old, new) in moved {
            if let Some(mark) = self.marked.remove(&old).filter(|mark| mark.ours) {
                self.total = self.total.saturating_sub(mark.cost);
            }
            for pack in new {
                let cost = self.blob_store.blobs().stored_bytes(&pack)?.map_or(0, disk_cost);
                if self.marked.insert(pack, MarkedBlob { cost, ours: true }).is_none() {
                    self.total = self.total.saturating_add(cost);
                }
            }
        }
        Ok(self.total)
    }
}
