//! The moves that a reader of the tree can see, each in one instant.

use std::os::fd::AsFd;

use journeyman_protocol::RelPath;
use rustix::fs::{AtFlags, Mode, fchmod, mkdirat, unlinkat};
use rustix::io::Errno;

use crate::error::{ActualState, WorkspaceError};
use crate::files::root_dir::{LinkPolicy, RootDir};
use crate::files::stat::{FileStat, to_mode};
use crate::journal::record::{ChangeRecord, DirRecord, FileRecord, path_after_move};
use crate::snapshot::entry::{FileKind, FileState};
use crate::transaction::operation::{Operation, OperationKind, TransactionContext};
use crate::transaction::rename::{exchange_files, rename_no_replace};
use journeyman_ignore_rules::walk::names_in;

/// Maximum number of attempts to put back a file that another process keeps replacing.
const MAX_EXCHANGE_ATTEMPTS: usize = 1000;

/// The effect of a directory's new permissions on its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnerAccess {
    Given,
    Taken,
}

/// Returns true if a directory's owner may do more with the second permissions than with the first.
pub(crate) fn grants_more(from: u32, to: u32) -> bool {
    to & !from & 0o700 != 0
}

impl OwnerAccess {
    /// Returns those of these directories, in the order in which each can be reached.
    pub(crate) fn select_changes<'a>(
        self,
        modes: impl Iterator<Item = (&'a RelPath, u32, u32)>,
    ) -> Vec<(&'a RelPath, u32, u32)> {
        let mut modes: Vec<_> =
            modes.filter(|(_, from, to)| grants_more(*from, *to) == (self == Self::Given)).collect();
        modes.sort_by(|one, other| one.0.cmp(other.0));
        if self == Self::Taken {
            modes.reverse();
        }
        modes
    }
}

impl TransactionContext<'_> {
    pub(crate) fn remove(&self, operation: &Operation, file: &FileRecord) -> Result<(), WorkspaceError> {
        let (Some(sibling), Some((_, seen))) = (&file.sibling, &operation.before) else { return Ok(()) };
        let failed = |errno| self.root_dir.error_for("delete", &file.path, errno);
        let dir = self.root_dir.open_parent(&file.path).map_err(failed)?;
        let room = self.root_dir.open_parent(sibling).map_err(failed)?;
        let (name, aside) = (file.path.file_name(), sibling.file_name());
        match rename_no_replace(dir.as_fd(), name, room.as_fd(), aside) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Err(conflict_error(file, ActualState::Nothing)),
            Err(errno) => return Err(failed(errno)),
        }
        let moved = self.root_dir.stat(sibling).map_err(failed)?;
        if moved.is_some_and(|moved| moved.has_same_content(seen)) {
            return Ok(());
        }
        rename_no_replace(room.as_fd(), aside, dir.as_fd(), name).map_err(failed)?;
        Err(conflict_error(file, ActualState::Other))
    }

    pub(crate) fn make_directories(&self, record: &ChangeRecord) -> Result<(), WorkspaceError> {
        for (top, aside) in record.dirs_set_aside() {
            self.set_aside(record, top, &aside)?;
        }
        for dir in &record.made {
            let failed = |errno| self.root_dir.error_for("create the directory", &dir.path, errno);
            let parent = self.root_dir.open_parent(&dir.path).map_err(failed)?;
            match mkdirat(&parent, dir.path.file_name(), Mode::from_raw_mode(0o777)) {
                Ok(()) => {}
                Err(Errno::EXIST) => {
                    let there = self.root_dir.stat(&dir.path).map_err(failed)?;
                    if there.is_some_and(|there| there.is_dir()) {
                        // Another process made it just now; it will do.
                        continue;
                    }
                    let reason = "a directory is needed where a file is";
                    return Err(WorkspaceError::Contradiction { path: dir.path.clone(), reason });
                }
                Err(errno) => return Err(failed(errno)),
            }
            if let Some(mode) = dir.mode {
                let made = self.root_dir.open_directory(Some(&dir.path)).map_err(failed)?;
                fchmod(&made, to_mode(mode)).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Moves a directory that is in the way to a name beside it, so that going back needs no room
    /// on the disk. It may hold nothing but directories of the record.
    fn set_aside(
        &self,
        record: &ChangeRecord,
        top: &DirRecord,
        aside: &RelPath,
    ) -> Result<(), WorkspaceError> {
        let failed = |errno| self.root_dir.error_for("make room for", &top.path, errno);
        let parent = self.root_dir.open_parent(&top.path).map_err(failed)?;
        let (name, other) = (top.path.file_name(), aside.file_name());
        match rename_no_replace(parent.as_fd(), name, parent.as_fd(), other) {
            Ok(()) => {}
            // An overlay doesn't rename the directories beneath it.
            Err(Errno::XDEV | Errno::PERM) => return self.remove_directory(record, top),
            Err(errno) => return Err(failed(errno)),
        }
        let holds_others = self.has_other_entries(record, top, aside);
        if matches!(holds_others, Ok(false)) {
            return Ok(());
        }
        rename_no_replace(parent.as_fd(), other, parent.as_fd(), name).map_err(failed)?;
        holds_others.map_err(failed).and(Err(obstacle_error(top)))
    }

    /// Returns true if a directory that was set aside holds anything but the record's directories.
    fn has_other_entries(
        &self,
        record: &ChangeRecord,
        top: &DirRecord,
        aside: &RelPath,
    ) -> Result<bool, Errno> {
        for dir in record.dirs_cleared_with(top) {
            let Some(place) = path_after_move(&dir.path, &top.path, aside) else { continue };
            let open = match self.root_dir.open_directory(Some(&place)) {
                Err(Errno::NOENT) => continue,
                other => other?,
            };
            for name in names_in(open.as_fd())? {
                let path = dir.path.join(&name).ok();
                if !path.is_some_and(|path| record.cleared.iter().any(|known| known.path == path)) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Removes it and what is in it of the record, where it can't be moved.
    fn remove_directory(&self, record: &ChangeRecord, top: &DirRecord) -> Result<(), WorkspaceError> {
        for dir in record.dirs_cleared_with(top).into_iter().rev() {
            let failed = |errno| self.root_dir.error_for("make room for", &dir.path, errno);
            let parent = self.root_dir.open_parent(&dir.path).map_err(failed)?;
            match unlinkat(&parent, dir.path.file_name(), AtFlags::REMOVEDIR) {
                Ok(()) => {}
                Err(Errno::NOTEMPTY | Errno::EXIST) => return Err(obstacle_error(dir)),
                Err(errno) => return Err(failed(errno)),
            }
        }
        Ok(())
    }

    /// Sets the permissions of the record's directories that give their owner more, so that files
    /// in them can be changed. The others are set when that is over.
    pub(crate) fn widen_permissions(&self, record: &ChangeRecord) -> Result<(), WorkspaceError> {
        for (path, from, to) in OwnerAccess::Given.select_changes(record.permission_changes()) {
            if !self.set_dir_mode(path, from, to)? {
                return Err(WorkspaceError::Raced { path: path.clone() });
            }
        }
        Ok(())
    }

    /// Sets a directory's permissions if they are as expected. Returns true if they were.
    pub(crate) fn set_dir_mode(&self, path: &RelPath, from: u32, to: u32) -> Result<bool, WorkspaceError> {
        let failed = |errno| self.root_dir.error_for("set the permissions of", path, errno);
        self.set_permissions(path, from, to).map_err(failed)
    }

    pub(crate) fn set_permissions(&self, path: &RelPath, from: u32, to: u32) -> Result<bool, Errno> {
        let seen = self.root_dir.stat(path)?;
        if !seen.is_some_and(|seen| seen.is_dir() && seen.permissions() == from) {
            return Ok(false);
        }
        self.root_dir.set_permissions(path, to)?;
        Ok(true)
    }

    pub(crate) fn place(&self, operation: &Operation, file: &FileRecord) -> Result<(), WorkspaceError> {
        let failed = |errno| self.root_dir.error_for("write", &file.path, errno);
        match (file.operation_kind(), &file.sibling, &operation.before) {
            (OperationKind::Create, Some(sibling), _) => {
                let room = self.root_dir.open_parent(sibling).map_err(failed)?;
                let dir = self.root_dir.open_parent(&file.path).map_err(failed)?;
                match rename_no_replace(room.as_fd(), sibling.file_name(), dir.as_fd(), file.path.file_name())
                {
                    Err(Errno::EXIST) => Err(conflict_error(file, self.actual_state(&file.path))),
                    other => other.map_err(failed),
                }
            }
            (OperationKind::Replace, Some(sibling), Some((_, seen))) => self.replace(file, sibling, seen),
            (OperationKind::Chmod, _, Some((_, seen))) => {
                let (target, now) = self.root_dir.open_file(&file.path, LinkPolicy::Refuse)?;
                if !now.has_same_content(seen) {
                    return Err(conflict_error(file, self.actual_state(&file.path)));
                }
                if now.names > 1 {
                    return Err(WorkspaceError::Raced { path: file.path.clone() });
                }
                let mode = file.after.map_or(now.permissions(), |after| after.mode);
                fchmod(&target, to_mode(mode)).map_err(failed)
            }
            _ => Ok(()),
        }
    }

    fn replace(&self, file: &FileRecord, sibling: &RelPath, seen: &FileStat) -> Result<(), WorkspaceError> {
        let failed = |errno| self.root_dir.error_for("write", &file.path, errno);
        let room = self.root_dir.open_parent(sibling).map_err(failed)?;
        let dir = self.root_dir.open_parent(&file.path).map_err(failed)?;
        let (aside, name) = (sibling.file_name(), file.path.file_name());
        match exchange_files(room.as_fd(), aside, dir.as_fd(), name) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Err(conflict_error(file, self.actual_state(&file.path))),
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                // The file system can't exchange; the last look is all there is against a late
                // change, and the blobs hold what going back needs.
                let now = self.root_dir.stat(&file.path).map_err(failed)?;
                if !now.is_some_and(|now| now.has_same_content(seen)) {
                    return Err(conflict_error(file, self.actual_state(&file.path)));
                }
                return rustix::fs::renameat(&room, aside, &dir, name).map_err(failed);
            }
            Err(errno) => return Err(failed(errno)),
        }
        let moved = self.root_dir.stat(sibling).map_err(failed)?;
        if moved.is_some_and(|moved| moved.has_same_content(seen)) {
            return Ok(());
        }
        self.undo_exchange(file, sibling)?;
        Err(conflict_error(file, self.actual_state(&file.path)))
    }

    /// Puts back what an exchange took away, although it wasn't what was expected. Whoever wrote it
    /// may be writing still: what comes to light under the sibling's name is looked at each time,
    /// and if it is newer than what was put back, it goes back in its turn.
    fn undo_exchange(&self, file: &FileRecord, sibling: &RelPath) -> Result<(), WorkspaceError> {
        let failed = |errno| self.root_dir.error_for("write", &file.path, errno);
        let room = self.root_dir.open_parent(sibling).map_err(failed)?;
        let dir = self.root_dir.open_parent(&file.path).map_err(failed)?;
        let aside = || self.root_dir.stat(sibling).map_err(failed);
        let staged = file.after;
        let mut stale: Option<FileStat> = None;
        for _ in 0..MAX_EXCHANGE_ATTEMPTS {
            let goes_back = aside()?;
            match exchange_files(room.as_fd(), sibling.file_name(), dir.as_fd(), file.path.file_name()) {
                Ok(()) => {}
                // They deleted it meanwhile; theirs goes back under its name.
                Err(Errno::NOENT) => {
                    let (from, to) = (sibling.file_name(), file.path.file_name());
                    return rename_no_replace(room.as_fd(), from, dir.as_fd(), to).map_err(failed);
                }
                Err(errno) => return Err(failed(errno)),
            }
            let came = aside()?;
            let is_stale = match (stale, came) {
                (Some(stale), Some(came)) => came.has_same_content(&stale),
                // The first time it has to be our own new content.
                (None, Some(_)) => {
                    let state = crate::snapshot::file_observation::observe_file(self.root_dir, sibling)?
                        .map(|(state, _)| state);
                    state.zip(staged).is_some_and(|(state, staged)| state.has_same_content(&staged))
                }
                (_, None) => true,
            };
            if is_stale {
                return Ok(());
            }
            stale = goes_back;
        }
        Err(WorkspaceError::Raced { path: file.path.clone() })
    }

    fn actual_state(&self, path: &RelPath) -> ActualState {
        actual_state(self.root_dir, path)
    }
}

/// Returns the state of the file, for a conflict.
pub(crate) fn actual_state(root_dir: &RootDir, path: &RelPath) -> ActualState {
    match crate::snapshot::file_observation::observe_file(root_dir, path) {
        Ok(None) => ActualState::Nothing,
        Ok(Some((FileState { kind: FileKind::File, hash: Some(hash), size, .. }, _))) => {
            ActualState::Content { hash, size }
        }
        Ok(Some(_)) | Err(_) => ActualState::Other,
    }
}

fn obstacle_error(dir: &DirRecord) -> WorkspaceError {
    let reason = "a directory that holds other files stands in the way";
    WorkspaceError::Contradiction { path: dir.path.clone(), reason }
}

fn conflict_error(file: &FileRecord, found: ActualState) -> WorkspaceError {
    let expected = file.before.and_then(|before| before.hash);
    WorkspaceError::Conflict { path: file.path.clone(), expected, found }
}
