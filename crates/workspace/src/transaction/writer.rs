//! Writing to the journal and the tree: one writer at a time, across processes.

use std::sync::{Arc, Mutex};

use journeyman_protocol::{ContentHash, SessionId};

use crate::change::CheckpointId;
use crate::commands::heartbeat::{CommandSpan, list_command_spans};
use crate::error::WorkspaceError;
use crate::failpoint::TransactionStep;
use crate::journal::record::{CheckpointRecord, JournalLine};
use crate::journal::{Journal, JournalEnd, JournalMark};
use crate::mutex::lock;
use crate::project::Project;
use crate::snapshot::stored_tree::load_tree;
use crate::snapshot::tree::Tree;
use crate::state::lock::FileLock;
use crate::transaction::operation::TransactionContext;
use crate::transaction::rollback::Rollback;

/// The state of the writer.
pub(crate) struct WriterState {
    pub(crate) journal: Journal,
    pub(crate) lock: Option<FileLock>,
    /// The store's count of removals when `base` was known to be there.
    pub(crate) removals: u64,
    pub(crate) last_checkpoint: Option<LastCheckpoint>,
    /// The newest stored tree, which heartbeats describe their trees by.
    pub(crate) base: Option<(ContentHash, Arc<Tree>)>,
}

pub(crate) struct LastCheckpoint {
    pub(crate) record: CheckpointRecord,
    pub(crate) tree: Arc<Tree>,
    pub(crate) end: JournalEnd,
}

/// The writer of one project. Changes run one after the other under the project's lock.
pub(crate) struct TransactionWriter {
    pub(crate) project: Arc<Project>,
    pub(crate) writer: Mutex<WriterState>,
}

impl TransactionWriter {
    pub(crate) fn new(project: Arc<Project>) -> Self {
        let (state_dir, limits) = (&project.options.state_dir, &project.options.limits);
        let journal = Journal::new(state_dir, limits.journal_bytes).with_clock(project.options.clock.clone());
        let writer = WriterState { journal, lock: None, removals: 0, last_checkpoint: None, base: None };
        Self { project, writer: Mutex::new(writer) }
    }

    /// Runs `work` with the project's lock, after closing what a crash left open.
    pub(crate) fn write_locked<T>(
        &self,
        work: impl FnOnce(&mut WriterState, &TransactionContext<'_>) -> Result<T, WorkspaceError>,
    ) -> Result<T, WorkspaceError> {
        let _using = self.project.blob_store.blobs().lock_for_use()?;
        let mut writer = lock(&self.writer);
        self.invalidate_removed_blobs(&mut writer);
        let lock = match writer.lock.take() {
            Some(lock) => lock,
            None => FileLock::open(&self.project.options.state_dir)?,
        };
        let result = lock.acquire(self.project.limits().lock_wait).and_then(|_held| {
            let context = self.project.transaction_context();
            if let Some(open) = writer.journal.catch_up()? {
                Rollback::new(&context).recover(&mut writer.journal, &open)?;
            }
            work(&mut writer, &context)
        });
        writer.lock = Some(lock);
        result
    }

    /// Discards cached knowledge of blobs if blobs were removed since. The right to
    /// [use](journeyman_store::Blobs::using) them is held.
    pub(crate) fn invalidate_removed_blobs(&self, writer: &mut WriterState) {
        let removals = self.project.blob_store.blobs().removal_count();
        if writer.removals != removals {
            self.project.blob_store.invalidate_packs();
            writer.base = None;
            writer.removals = removals;
        }
    }

    pub(crate) fn recover_if_idle(&self) -> Result<(), WorkspaceError> {
        let mut writer = lock(&self.writer);
        if writer.journal.is_at_rest() {
            return Ok(());
        }
        let lock = FileLock::open(&self.project.options.state_dir)?;
        if let Some(_held) = lock.try_take()?
            && let Some(open) = writer.journal.catch_up()?
        {
            Rollback::new(&self.project.transaction_context()).recover(&mut writer.journal, &open)?;
        }
        writer.lock = Some(lock);
        Ok(())
    }

    pub(crate) fn load_checkpoint_tree(&self, id: &CheckpointId) -> Result<Arc<Tree>, WorkspaceError> {
        let writer = lock(&self.writer);
        if let Some(last) = writer.last_checkpoint.as_ref().filter(|last| last.record.id == *id) {
            return Ok(last.tree.clone());
        }
        let lines = writer.journal.lines()?;
        drop(writer);
        let tree = lines.into_iter().rev().find_map(|line| match line {
            JournalLine::Checkpoint(record) if record.id == *id => Some(record.tree),
            _ => None,
        });
        let hash = tree.ok_or(WorkspaceError::UnknownCheckpoint { id: *id })?;
        match load_tree(&hash, self.project.blob_store.blobs()) {
            Err(WorkspaceError::Lost { .. }) => {
                Err(WorkspaceError::Lost { what: format!("checkpoint {id}") })
            }
            tree => Ok(tree?.into_tree()),
        }
    }

    /// Takes a snapshot while no change is open. Returns it with the journal's mark of that moment.
    /// Waits for the project's lock only if another process is changing the tree.
    pub(crate) fn snapshot_at_rest<T>(
        &self,
        take: impl Fn() -> Result<T, WorkspaceError>,
    ) -> Result<(T, JournalMark), WorkspaceError> {
        if let Some(before) = self.mark_if_at_rest()? {
            let tree = take()?;
            self.project.transaction_context().reach_failpoint(TransactionStep::Look, None)?;
            if self.mark_if_at_rest()? == Some(before) {
                return Ok((tree, before));
            }
        }
        self.write_locked(|writer, _| Ok((take()?, writer.journal.current_mark()?)))
    }

    pub(crate) fn mark_if_at_rest(&self) -> Result<Option<JournalMark>, WorkspaceError> {
        lock(&self.writer).journal.mark_if_at_rest()
    }

    /// Returns when calls of other sessions ran, or may have run, since a command of this session
    /// began. Calls that ended since by themselves are in the journal.
    pub(crate) fn other_command_spans(
        &self,
        session: &SessionId,
        began: i64,
    ) -> Result<Vec<CommandSpan>, WorkspaceError> {
        let mut spans = list_command_spans(&self.project.options.state_dir, began)?;
        spans.retain(|span| span.session != *session);
        Ok(spans)
    }
}
