//! Going back: after a failure within a transaction, and after a crash.
//!
//! Both read what the disk says and not what the process remembers, so that they are one and the
//! same, may be cut off themselves, and may be repeated.

use std::os::fd::AsFd;

use journeyman_protocol::RelPath;
use rustix::fs::{AtFlags, Mode, OFlags, fchmod, fsync, mkdirat, openat, renameat, symlinkat, unlinkat};
use rustix::io::Errno;

use crate::contents::store::BlobCondition;
use crate::error::{WorkspaceError, is_transient_errno};
use crate::files::root_dir::LinkPolicy;
use crate::files::stat::to_mode;
use crate::journal::record::{
    ChangeRecord, DirModeRecord, DirRecord, FileRecord, JournalLine, path_after_move,
};
use crate::journal::{Journal, LineDurability, UnfinishedChange};
use crate::snapshot::entry::{FileKind, FileState};
use crate::snapshot::file_observation::observe_file;
use crate::transaction::moves::{OwnerAccess, grants_more};
use crate::transaction::operation::{OperationKind, TransactionContext};
use crate::transaction::rename::rename_no_replace;

/// Reverts or completes a change, from its record and the state of the disk.
pub(crate) struct Rollback<'a> {
    context: TransactionContext<'a>,
}

impl<'a> Rollback<'a> {
    pub(crate) fn new(context: &TransactionContext<'a>) -> Self {
        Self { context: *context }
    }

    /// Closes what a crash left open. The lock is held.
    pub(crate) fn recover(
        &self,
        journal: &mut Journal,
        open: &UnfinishedChange,
    ) -> Result<(), WorkspaceError> {
        let record = &open.record;
        // A directory that holds nothing of the change is made after the removals, and may be all
        // that is missing.
        let is_made = |dir: &DirRecord| matches!(self.context.root_dir.stat(&dir.path), Ok(Some(seen)) if seen.is_dir());
        let has_mode = |dir: &DirModeRecord| {
            // The others come last of all, when nothing can be taken back any more.
            !grants_more(dir.before, dir.after)
                || matches!(self.context.root_dir.stat(&dir.path), Ok(Some(seen)) if seen.permissions() == dir.after)
        };
        let is_complete = || {
            record.files.iter().all(|file| self.has_new_state(file))
                && record.made.iter().all(is_made)
                && record.modes.iter().all(has_mode)
        };
        if open.placed || is_complete() {
            if !open.placed {
                journal.append(&[JournalLine::Placed(record.id)], LineDurability::Now)?;
            }
            // What can't be cleaned up stays open for the next one who looks, and keeps nobody from
            // working.
            return match self.remove_leftovers(record) {
                Ok(()) => journal.append(&[JournalLine::Done(record.id)], LineDurability::Later),
                Err(_) => Ok(()),
            };
        }
        self.revert(record)?;
        journal.append(&[JournalLine::Void(record.id)], LineDurability::Now)
    }

    /// Removes what was moved aside, and directories that are to go once they are empty. What can't
    /// be removed now but perhaps later is an error, so that it is tried again; what another
    /// process uses stays.
    pub(crate) fn remove_leftovers(&self, record: &ChangeRecord) -> Result<(), WorkspaceError> {
        let mut first = None;
        let mut note = |path: &RelPath, result: Result<(), Errno>| {
            if let Err(errno) = result
                && is_transient_errno(errno)
            {
                first.get_or_insert_with(|| self.context.root_dir.error_for("clean up beside", path, errno));
            }
        };
        for file in &record.files {
            if let Some(sibling) = &file.sibling {
                note(&file.path, self.unlink(sibling));
            }
        }
        for (top, aside) in record.dirs_set_aside() {
            for dir in record.dirs_cleared_with(top).into_iter().rev() {
                if let Some(place) = path_after_move(&dir.path, &top.path, &aside) {
                    note(&dir.path, self.remove_dir(&place));
                }
            }
        }
        if record.cause.is_transaction() {
            for dir in record.removed.iter().rev() {
                // Not empty: another process put something there, and it stays.
                note(&dir.path, self.remove_dir(&dir.path));
            }
            for (path, from, to) in OwnerAccess::Taken.select_changes(record.permission_changes()) {
                note(path, self.context.set_permissions(path, from, to).map(drop));
            }
        }
        first.map_or(Ok(()), Err)
    }

    /// Puts everything back as it was before the record's change. Goes on after a failure, and
    /// reports the first.
    pub(crate) fn revert(&self, record: &ChangeRecord) -> Result<(), WorkspaceError> {
        let mut first = None;
        let mut note = |result: Result<(), WorkspaceError>| {
            if let Err(error) = result {
                first.get_or_insert(error);
            }
        };
        let modes = || record.permission_changes().map(|(path, before, after)| (path, after, before));
        for (path, from, to) in OwnerAccess::Given.select_changes(modes()) {
            note(self.context.set_dir_mode(path, from, to).map(drop));
        }
        let (removals, others): (Vec<&FileRecord>, Vec<&FileRecord>) =
            record.files.iter().partition(|file| file.operation_kind() == OperationKind::Remove);
        for file in others.into_iter().rev() {
            note(self.revert_file(file));
        }
        for dir in record.made.iter().rev() {
            match self.remove_dir(&dir.path) {
                Err(errno) if is_transient_errno(errno) => {
                    note(Err(self.context.root_dir.error_for("remove", &dir.path, errno)))
                }
                // Not there, or not empty any more: another process uses it now.
                _ => {}
            }
        }
        for (top, aside) in record.dirs_set_aside() {
            note(self.restore_set_aside(&top.path, &aside));
        }
        for dir in &record.cleared {
            note(self.restore_dir(&dir.path, dir.mode));
        }
        for file in removals.into_iter().rev() {
            note(self.revert_file(file));
        }
        for (path, from, to) in OwnerAccess::Taken.select_changes(modes()) {
            note(self.context.set_dir_mode(path, from, to).map(drop));
        }
        first.map_or(Ok(()), Err)
    }

    fn current_state(&self, path: &RelPath) -> Result<Option<FileState>, WorkspaceError> {
        match observe_file(self.context.root_dir, path) {
            Ok(found) => Ok(found.map(|(state, _)| state)),
            Err(WorkspaceError::NotAFile { .. } | WorkspaceError::NotFound { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    fn has_new_state(&self, file: &FileRecord) -> bool {
        self.current_state(&file.path).is_ok_and(|now| is_in_state(file, now, file.after))
    }

    fn revert_file(&self, file: &FileRecord) -> Result<(), WorkspaceError> {
        let now = self.current_state(&file.path)?;
        let is_after = is_in_state(file, now, file.after);
        let failed = |errno| self.context.root_dir.error_for("restore", &file.path, errno);
        if file.operation_kind() == OperationKind::Chmod {
            return match (&file.before, is_after) {
                (Some(before), true) => self.set_mode(&file.path, before.mode),
                _ => Ok(()),
            };
        }
        let Some(sibling) = &file.sibling else { return Ok(()) };
        let aside = self.context.root_dir.stat(sibling).map_err(failed)?;
        match (file.operation_kind(), aside) {
            // Staged and not placed.
            (OperationKind::Create, Some(_)) => self.unlink(sibling).map_err(failed),
            (OperationKind::Create, None) if is_after && now.is_some() => {
                self.unlink(&file.path).map_err(failed)
            }
            (OperationKind::Remove, Some(_)) => match self.restore_sibling(sibling, &file.path) {
                // Another process made a file of that name since.
                Err(Errno::EXIST) => self.abandon_file(file, sibling),
                other => other.map_err(failed),
            },
            (OperationKind::Replace, Some(_)) => {
                let aside = self.current_state(sibling)?;
                let is = |then: Option<FileState>| aside.is_some() && is_in_state(file, aside, then);
                // What is neither, with the new content in place, is what somebody wrote in the
                // last instant.
                let is_old = is(file.before) || (is_after && !is(file.after));
                match (is_old, is_after || now.is_none()) {
                    (true, true) => match self.replace_with_sibling(sibling, &file.path) {
                        // Another process made a directory of that name since.
                        Err(Errno::ISDIR | Errno::EXIST | Errno::NOTEMPTY) => {
                            self.abandon_file(file, sibling)
                        }
                        other => other.map_err(failed),
                    },
                    // Both are the old file: the sibling was about to get its new permissions.
                    (true, false) if is_in_state(file, now, file.before) => {
                        self.unlink(sibling).map_err(failed)
                    }
                    (true, false) => self.abandon_file(file, sibling),
                    _ => self.unlink(sibling).map_err(failed),
                }
            }
            (OperationKind::Replace, None) if is_after && file.is_mode_change() => match &file.before {
                Some(before) => self.set_mode(&file.path, before.mode),
                None => Ok(()),
            },
            (OperationKind::Replace, None) if is_after => self.restore_content(file, sibling),
            _ => Ok(()),
        }
    }

    /// Leaves a file that another process made. The old file is removed if its content is among the
    /// blobs; else it stays too, under the sibling's name.
    fn abandon_file(&self, file: &FileRecord, sibling: &RelPath) -> Result<(), WorkspaceError> {
        match file.before.and_then(|before| before.hash) {
            Some(hash) if self.context.blob_store.verify(&hash)? == BlobCondition::Whole => self
                .unlink(sibling)
                .map_err(|errno| self.context.root_dir.error_for("restore", &file.path, errno)),
            _ => Ok(()),
        }
    }

    fn restore_sibling(&self, sibling: &RelPath, path: &RelPath) -> Result<(), Errno> {
        let (room, dir) =
            (self.context.root_dir.open_parent(sibling)?, self.context.root_dir.open_parent(path)?);
        rename_no_replace(room.as_fd(), sibling.file_name(), dir.as_fd(), path.file_name())
    }

    fn replace_with_sibling(&self, sibling: &RelPath, path: &RelPath) -> Result<(), Errno> {
        let (room, dir) =
            (self.context.root_dir.open_parent(sibling)?, self.context.root_dir.open_parent(path)?);
        renameat(&room, sibling.file_name(), &dir, path.file_name())
    }

    /// Restores a file from the blobs, on file systems that can't exchange files.
    fn restore_content(&self, file: &FileRecord, sibling: &RelPath) -> Result<(), WorkspaceError> {
        let lost = || WorkspaceError::Lost { what: file.path.to_string() };
        let before = file.before.ok_or_else(lost)?;
        let hash = before.hash.ok_or_else(lost)?;
        let bytes = self.context.blob_store.get(&hash)?.ok_or_else(lost)?;
        let failed = |errno| self.context.root_dir.error_for("restore", &file.path, errno);
        let dir = self.context.root_dir.open_parent(sibling).map_err(failed)?;
        if before.kind == FileKind::Link {
            symlinkat(bytes.as_slice(), &dir, sibling.file_name()).map_err(failed)?;
        } else {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let new = openat(&dir, sibling.file_name(), flags, Mode::from_raw_mode(0o600)).map_err(failed)?;
            crate::transaction::staging::write_all(&new, &bytes).map_err(failed)?;
            fchmod(&new, to_mode(before.mode)).map_err(failed)?;
            fsync(&new).map_err(failed)?;
        }
        self.replace_with_sibling(sibling, &file.path).map_err(failed)
    }

    fn set_mode(&self, path: &RelPath, mode: u32) -> Result<(), WorkspaceError> {
        let (file, _) = self.context.root_dir.open_file(path, LinkPolicy::Refuse)?;
        fchmod(&file, to_mode(mode)).map_err(|errno| self.context.root_dir.error_for("restore", path, errno))
    }

    fn unlink(&self, path: &RelPath) -> Result<(), Errno> {
        let dir = self.context.root_dir.open_parent(path)?;
        match unlinkat(&dir, path.file_name(), AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            other => other,
        }
    }

    fn remove_dir(&self, path: &RelPath) -> Result<(), Errno> {
        let dir = self.context.root_dir.open_parent(path)?;
        unlinkat(&dir, path.file_name(), AtFlags::REMOVEDIR)
    }

    /// Gives a directory that was set aside its name back.
    fn restore_set_aside(&self, path: &RelPath, aside: &RelPath) -> Result<(), WorkspaceError> {
        match self.restore_sibling(aside, path) {
            // It wasn't set aside, or another process took its name since.
            Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::EXIST) => Ok(()),
            Err(errno) => Err(self.context.root_dir.error_for("restore the directory", path, errno)),
        }
    }

    fn restore_dir(&self, path: &RelPath, mode: Option<u32>) -> Result<(), WorkspaceError> {
        let failed = |errno| self.context.root_dir.error_for("restore the directory", path, errno);
        let dir = self.context.root_dir.open_parent(path).map_err(failed)?;
        match mkdirat(&dir, path.file_name(), Mode::from_raw_mode(0o777)) {
            Err(Errno::EXIST) => return Ok(()),
            other => other.map_err(failed)?,
        }
        let Some(mode) = mode else { return Ok(()) };
        let made = self.context.root_dir.open_directory(Some(path)).map_err(failed)?;
        fchmod(&made, to_mode(mode)).map_err(failed)
    }
}

/// Returns true if `now` is the state `then` of a file. Permissions count where they are all that
/// the change is about: those of new content may be set later than its bytes.
fn is_in_state(file: &FileRecord, now: Option<FileState>, then: Option<FileState>) -> bool {
    match (now, then) {
        (None, None) => true,
        (Some(now), Some(then)) => {
            now.has_same_content(&then) && (!file.is_mode_change() || now.mode == then.mode)
        }
        _ => false,
    }
}
