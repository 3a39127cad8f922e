//! Transactions: a change set is carried out as a whole or not at all.
//!
//! New contents are written beside their files, made durable together with the journal's line that
//! names them, and then moved into place. An existing file changes places with its successor
//! (`RENAME_EXCHANGE`), a deleted one moves to its sibling's name: so the old file itself, with
//! everything about it, is there until the end, and going back needs neither space nor a copy. The
//! moved file is examined after the move: a file that another process changed in the last instant
//! is moved back, and the change is a conflict.

use std::collections::BTreeSet;

use journeyman_protocol::RelPath;
use journeyman_store::Durability;

use crate::change::ChangeId;
use crate::error::{WorkspaceError, io_error};
use crate::failpoint::{Fault, TransactionStep};
use crate::files::paths::is_beneath;
use crate::files::root_dir::{LinkPolicy, read_up_to};
use crate::journal::record::{ChangeRecord, DirRecord, FileRecord, JournalLine};
use crate::journal::{Journal, LineDurability};
use crate::snapshot::entry::FileKind;
use crate::transaction::operation::{
    ChangeIntent, FileAfter, NewContent, Operation, OperationKind, TransactionContext,
};
use crate::transaction::rollback::Rollback;
use crate::transaction::sibling::sibling_name;
use crate::transaction::staging::MIN_FILES_TO_FLUSH_ALL;

pub(crate) mod moves;
pub(crate) mod operation;
pub(crate) mod plan;
pub(crate) mod rename;
pub(crate) mod rollback;
pub(crate) mod sibling;
pub(crate) mod staging;
pub(crate) mod writer;

impl TransactionContext<'_> {
    /// Lets a test's failpoint speak.
    pub(crate) fn reach_failpoint(
        &self,
        step: TransactionStep,
        path: Option<&RelPath>,
    ) -> Result<(), WorkspaceError> {
        match self.failpoint.map(|hook| (hook.0)(step)) {
            None | Some(Fault::Go) => Ok(()),
            Some(Fault::Cut) => Err(WorkspaceError::CutOff(step)),
            Some(Fault::Fail(errno)) => Err(match path {
                Some(path) => WorkspaceError::from_errno("change", path, errno),
                None => WorkspaceError::State {
                    action: "write",
                    path: self.root_dir.path().to_owned(),
                    source: errno.into(),
                },
            }),
        }
    }

    /// Carries the operations out. The journal is prepared and the lock held.
    pub(crate) fn execute(
        &self,
        journal: &mut Journal,
        intent: ChangeIntent,
        operations: &[Operation],
    ) -> Result<ChangeId, WorkspaceError> {
        let id = ChangeId(journal.next_id());
        let record =
            ChangeRecord { at: journal.timestamp(), ..self.build_change_record(id, intent, operations)? };
        self.reach_failpoint(TransactionStep::Keep, None)?;
        for operation in operations {
            self.keep_previous_content(operation)?;
        }
        self.reach_failpoint(TransactionStep::Intend, None)?;
        journal.append(&[JournalLine::Change(record.clone())], LineDurability::Later)?;
        match self.apply_record(journal, &record, operations) {
            Ok(()) => {
                // Nothing that fails from here on can take the change back.
                self.reach_failpoint(TransactionStep::Clean, None)
                    .or_else(|error| if error.is_cut_off() { Err(error) } else { Ok(()) })?;
                let cleaned = Rollback::new(self).remove_leftovers(&record);
                self.reach_failpoint(TransactionStep::Settle, None)
                    .or_else(|error| if error.is_cut_off() { Err(error) } else { Ok(()) })?;
                // The change has happened whether or not this line is written; the next writer adds
                // it.
                if cleaned.is_err()
                    || journal.append(&[JournalLine::Done(id)], LineDurability::Later).is_err()
                {
                    journal.invalidate();
                }
                Ok(id)
            }
            Err(cut) if cut.is_cut_off() => Err(cut),
            Err(failure) => {
                // What can't be put back now stays open in the journal, and is tried again by the
                // next writer.
                if Rollback::new(self).revert(&record).is_err()
                    || journal.append(&[JournalLine::Void(id)], LineDurability::Later).is_err()
                {
                    journal.invalidate();
                }
                Err(failure)
            }
        }
    }

    /// Names the siblings and finds the directories that have to be made or to make room.
    fn build_change_record(
        &self,
        id: ChangeId,
        intent: ChangeIntent,
        operations: &[Operation],
    ) -> Result<ChangeRecord, WorkspaceError> {
        let cleared = self.emptied_directories(operations, &intent.remove)?;
        let mut made: Vec<DirRecord> = Vec::new();
        let mut files = Vec::with_capacity(operations.len());
        let wanted: std::collections::BTreeMap<&RelPath, Option<u32>> =
            intent.make.iter().map(|dir| (&dir.path, dir.mode)).collect();
        let mut known: BTreeSet<RelPath> = BTreeSet::new();
        let mut need = |dir: Option<RelPath>| -> Result<Option<RelPath>, WorkspaceError> {
            let (existing, missing) = self.missing_directories(dir)?;
            for path in missing {
                if known.insert(path.clone()) {
                    let mode = wanted.get(&path).copied().flatten();
                    made.push(DirRecord { path, mode });
                }
            }
            Ok(existing)
        };
        for (index, operation) in operations.iter().enumerate() {
            let room = match cleared.iter().find(|dir| is_beneath(&operation.path, &dir.path)) {
                Some(top) => top.path.parent(),
                None if operation.after.is_some() => need(operation.path.parent())?,
                None => operation.path.parent(),
            };
            let before = operation.before.as_ref();
            let mut file = FileRecord {
                path: operation.path.clone(),
                before: before.map(|(state, _)| *state),
                after: operation.after.as_ref().map(|after| after.state),
                sibling: None,
            };
            if operation.needs_sibling() {
                file.sibling = Some(sibling_name(&operation.path, room.as_ref(), id, index)?);
            }
            files.push(file);
        }
        for dir in &intent.make {
            need(Some(dir.path.clone()))?;
        }
        made.sort_by(|a, b| a.path.cmp(&b.path));
        let ChangeIntent {
            session, call, cause, description, undoes, left, remove, settles_copy, modes, ..
        } = intent;
        let (at, removed, beside) = (None, remove, Vec::new());
        Ok(ChangeRecord {
            id,
            session,
            call,
            cause,
            at,
            description,
            files,
            made,
            removed,
            cleared,
            modes,
            undoes,
            left,
            beside,
            settles_copy,
        })
    }

    /// Returns the nearest directory that exists at or above `dir`, and those below it that don't,
    /// outermost first.
    fn missing_directories(
        &self,
        dir: Option<RelPath>,
    ) -> Result<(Option<RelPath>, Vec<RelPath>), WorkspaceError> {
        let mut missing = Vec::new();
        let mut next = dir;
        while let Some(path) = next {
            let seen = self
                .root_dir
                .stat(&path)
                .map_err(|errno| self.root_dir.error_for("look at", &path, errno))?;
            if seen.is_some_and(|seen| seen.is_dir()) {
                missing.reverse();
                return Ok((Some(path), missing));
            }
            next = path.parent();
            missing.push(path);
        }
        missing.reverse();
        Ok((None, missing))
    }

    /// Returns directories that stand where a file is to be, with those beneath them that this
    /// change empties, or that are to go as well (`remove`); the outermost first.
    fn emptied_directories(
        &self,
        operations: &[Operation],
        remove: &[DirRecord],
    ) -> Result<Vec<DirRecord>, WorkspaceError> {
        let mut found = BTreeSet::new();
        for operation in operations.iter().filter(|operation| operation.before.is_none()) {
            let path = &operation.path;
            let seen =
                self.root_dir.stat(path).map_err(|errno| self.root_dir.error_for("look at", path, errno))?;
            if !seen.is_some_and(|seen| seen.is_dir()) {
                continue;
            }
            found.insert(path.clone());
            for gone in operations.iter().filter(|gone| gone.after.is_none() && is_beneath(&gone.path, path))
            {
                let mut dir = gone.path.parent();
                while let Some(inner) = dir.filter(|inner| inner != path) {
                    dir = inner.parent();
                    found.insert(inner);
                }
            }
            let empty = remove.iter().map(|dir| &dir.path).filter(|dir| is_beneath(dir, path));
            for dir in empty {
                let seen = self
                    .root_dir
                    .stat(dir)
                    .map_err(|errno| self.root_dir.error_for("look at", dir, errno))?;
                if seen.is_some_and(|seen| seen.is_dir()) {
                    found.insert(dir.clone());
                }
            }
        }
        let mode = |path: &RelPath| self.root_dir.stat(path).ok().flatten().map(|seen| seen.permissions());
        Ok(found.into_iter().map(|path| DirRecord { mode: mode(&path), path }).collect())
    }

    /// Stores the previous content for an undo. A rollback within the transaction doesn't need it.
    fn keep_previous_content(&self, operation: &Operation) -> Result<(), WorkspaceError> {
        let Some((before, _)) = &operation.before else { return Ok(()) };
        let unchanged = matches!(&operation.after, Some(FileAfter { source: NewContent::Unchanged, .. }));
        if unchanged || before.size > self.limits.kept_file_bytes {
            return Ok(());
        }
        if let Some(hash) = &before.hash
            && !self.blob_store.is_unsynced()
            && self.blob_store.claim_existing(hash)?
        {
            return Ok(());
        }
        let path = &operation.path;
        let bytes = match before.kind {
            FileKind::Link => {
                self.root_dir.read_link(path).map_err(|errno| self.root_dir.error_for("read", path, errno))?
            }
            FileKind::File => {
                let (file, seen) = self.root_dir.open_file(path, LinkPolicy::Refuse)?;
                let read = read_up_to(&file, seen.size, self.limits.kept_file_bytes);
                let read = read.map_err(|source| io_error("read", path, source))?;
                read.ok_or_else(|| WorkspaceError::Raced { path: path.clone() })?
            }
        };
        self.blob_store.put(&bytes, Durability::Now)?;
        Ok(())
    }

    fn apply_record(
        &self,
        journal: &mut Journal,
        record: &ChangeRecord,
        operations: &[Operation],
    ) -> Result<(), WorkspaceError> {
        let pairs = || operations.iter().zip(&record.files);
        if !record.modes.is_empty() {
            self.reach_failpoint(TransactionStep::Permit, None)?;
            journal.flush()?;
            self.widen_permissions(record)?;
        }
        let mut staged = Vec::new();
        for (operation, file) in pairs() {
            if let (Some(after), Some(sibling)) = (&operation.after, &file.sibling) {
                self.reach_failpoint(TransactionStep::Stage, Some(&file.path))?;
                let written = self.stage(operation, after, sibling)?;
                self.reach_failpoint(TransactionStep::Staged, Some(&file.path))?;
                if operations.len() < MIN_FILES_TO_FLUSH_ALL {
                    staged.extend(written);
                }
            }
        }
        self.reach_failpoint(TransactionStep::Flush, None)?;
        self.flush(&staged, &record.files)?;
        journal.flush()?;
        for (operation, file) in pairs().filter(|(_, file)| file.operation_kind() == OperationKind::Remove) {
            self.reach_failpoint(TransactionStep::Remove, Some(&file.path))?;
            self.remove(operation, file)?;
            self.reach_failpoint(TransactionStep::Placed, Some(&file.path))?;
        }
        if !(record.cleared.is_empty() && record.made.is_empty()) {
            self.reach_failpoint(TransactionStep::MakeDirectories, None)?;
            self.make_directories(record)?;
        }
        for (operation, file) in pairs().filter(|(_, file)| file.operation_kind() != OperationKind::Remove) {
            self.reach_failpoint(TransactionStep::Place, Some(&file.path))?;
            self.place(operation, file)?;
            self.reach_failpoint(TransactionStep::Placed, Some(&file.path))?;
        }
        self.flush_directories(record)?;
        self.reach_failpoint(TransactionStep::Commit, None)?;
        journal.append(&[JournalLine::Placed(record.id)], LineDurability::Later)
    }
}
