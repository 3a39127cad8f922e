//! The moves that a reader of the tree can see, each in one instant.

use std::os::fd::AsFd;

use journeyman_protocol::RelPath;
use rustix::fs::{AtFlags, Mode, fchmod, mkdirat, unlinkat};
use rustix::io::Errno;

use crate::error::{ActualState, WorkspaceError};
use crate::files::root_dir::{Links, RootDir};
use crate::files::stat::{FileStat, mode_of};
use crate::journal::record::{ChangeRecord, DirRecord, FileRecord, path_after_move};
use crate::snapshot::entry::{FileKind, FileState};
use crate::transaction::operation::{Operation, OperationKind, TransactionContext};
use crate::transaction::rename::{exchange_files, move_new};
use journeyman_ignore_rules::walk::names_in;

/// Maximum number of attempts to put back a file that another process keeps replacing.
const MAX_EXCHANGES: usize = 1000;

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
    pub(crate) fn of<'a>(
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
        let dir = self.root_dir.parent(&file.path).map_err(failed)?;
        let room = self.root_dir.parent(sibling).map_err(failed)?;
        let (name, aside) = (file.path.file_name(), sibling.file_name());
        match move_new(dir.as_fd(), name, room.as_fd(), aside) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Err(conflict_error(file, ActualState::Nothing)),
            Err(errno) => return Err(failed(errno)),
        }
        let moved = self.root_dir.stat(sibling).map_err(failed)?;
        if moved.is_some_and(|moved| moved.same_content(seen)) {
            return Ok(());
        }
        move_new(room.as_fd(), aside, dir.as_fd(), name).map_err(failed)?;
        Err(conflict_error(file, ActualState::Other))
    }

    pub(crate) fn make_directories(&self, record: &ChangeRecord) -> Result<(), WorkspaceError> {
        for (top, aside) in record.set_aside() {
            self.set_aside(record, top, &aside)?;
        }
        for dir in &record.made {
            let failed = |errno| self.root_dir.error_for("create the directory", &dir.path, errno);
            let parent = self.root_dir.parent(&dir.path).map_err(failed)?;
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
                fchmod(&made, mode_of(mode)).map_err(failed)?;
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
        let parent = self.root_dir.parent(&top.path).map_err(failed)?;
        let (name, other) = (top.path.file_name(), aside.file_name());
        match move_new(parent.as_fd(), name, parent.as_fd(), other) {
            Ok(()) => {}
            // An overlay doesn't rename the directories beneath it.
            Err(Errno::XDEV | Errno::PERM) => return self.clear(record, top),
            Err(errno) => return Err(failed(errno)),
        }
        let holds_others = self.holds_others(record, top, aside);
        if matches!(holds_others, Ok(false)) {
            return Ok(());
        }
        move_new(parent.as_fd(), other, parent.as_fd(), name).map_err(failed)?;
        holds_others.map_err(failed).and(Err(in_the_way(top)))
    }

    /// Returns true if a directory that was set aside holds anything but the record's directories.
    fn holds_others(&self, record: &ChangeRecord, top: &DirRecord, aside: &RelPath) -> Result<bool, Errno> {
        for dir in record.cleared_with(top) {
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
    fn clear(&self, record: &ChangeRecord, top: &DirRecord) -> Result<(), WorkspaceError> {
        for dir in record.cleared_with(top).into_iter().rev() {
            let failed = |errno| self.root_dir.error_for("make room for", &dir.path, errno);
            let parent = self.root_dir.parent(&dir.path).map_err(failed)?;
            match unlinkat(&parent, dir.path.file_name(), AtFlags::REMOVEDIR) {
                Ok(()) => {}
                Err(Errno::NOTEMPTY | Errno::EXIST) => return Err(in_the_way(dir)),
                Err(errno) => return Err(failed(errno)),
            }
        }
        Ok(())
    }

    /// Sets the permissions of the record's directories that give their owner more, so that files
    /// in them can be changed. The others are set when that is over.
    pub(crate) fn give_permissions(&self, record: &ChangeRecord) -> Result<(), WorkspaceError> {
        for (path, from, to) in OwnerAccess::Given.of(record.permission_changes()) {
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
        match (file.kind_of_move(), &file.sibling, &operation.before) {
            (OperationKind::Create, Some(sibling), _) => {
                let room = self.root_dir.parent(sibling).map_err(failed)?;
                let dir = self.root_dir.parent(&file.path).map_err(failed)?;
                match move_new(room.as_fd(), sibling.file_name(), dir.as_fd(), file.path.file_name()) {
                    Err(Errno::EXIST) => Err(conflict_error(file, self.actual_state(&file.path))),
                    other => other.map_err(failed),
                }
            }
            (OperationKind::Replace, Some(sibling), Some((_, seen))) => self.replace(file, sibling, seen),
            (OperationKind::Chmod, _, Some((_, seen))) => {
                let (target, now) = self.root_dir.read_file(&file.path, Links::Refuse)?;
                if !now.same_content(seen) {
                    return Err(conflict_error(file, self.actual_state(&file.path)));
                }
                if now.names > 1 {
                    return Err(WorkspaceError::Raced { path: file.path.clone() });
                }
                let mode = file.after.map_or(now.permissions(), |after| after.mode);
                fchmod(&target, mode_of(mode)).map_err(failed)
            }
            _ => Ok(()),
        }
    }

    fn replace(&self, file: &FileRecord, sibling: &RelPath, seen: &FileStat) -> Result<(), WorkspaceError> {
        let failed = |errno| self.root_dir.error_for("write", &file.path, errno);
        let room = self.root_dir.parent(sibling).map_err(failed)?;
        let dir = self.root_dir.parent(&file.path).map_err(failed)?;
        let (aside, name) = (sibling.file_name(), file.path.file_name());
        match exchange_files(room.as_fd(), aside, dir.as_fd(), name) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Err(conflict_error(file, self.actual_state(&file.path))),
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                // The file system can't exchange; the last look is all there is against a late
                // change, and the blobs hold what going back needs.
                let now = self.root_dir.stat(&file.path).map_err(failed)?;
                if !now.is_some_and(|now| now.same_content(seen)) {
                    return Err(conflict_error(file, self.actual_state(&file.path)));
                }
                return rustix::fs::renameat(&room, aside, &dir, name).map_err(failed);
            }
            Err(errno) => return Err(failed(errno)),
        }
        let moved = self.root_dir.stat(sibling).map_err(failed)?;
        if moved.is_some_and(|moved| moved.same_content(seen)) {
            return Ok(());
        }
        self.exchange_back(file, sibling)?;
        Err(conflict_error(file, self.actual_state(&file.path)))
    }

    /// Puts back what an exchange took away, although it wasn't what was expected. Whoever wrote it
    /// may be writing still: what comes to light under the sibling's name is looked at each time,
    /// and if it is newer than what was put back, it goes back in its turn.
    fn exchange_back(&self, file: &FileRecord, sibling: &RelPath) -> Result<(), WorkspaceError> {
        let failed = |errno| self.root_dir.error_for("write", &file.path, errno);
        let room = self.root_dir.parent(sibling).map_err(failed)?;
        let dir = self.root_dir.parent(&file.path).map_err(failed)?;
        let aside = || self.root_dir.stat(sibling).map_err(failed);
        let staged = file.after;
        let mut stale: Option<FileStat> = None;
        for _ in 0..MAX_EXCHANGES {
            let goes_back = aside()?;
            match exchange_files(room.as_fd(), sibling.file_name(), dir.as_fd(), file.path.file_name()) {
                Ok(()) => {}
                // They deleted it meanwhile; theirs goes back under its name.
                Err(Errno::NOENT) => {
                    let (from, to) = (sibling.file_name(), file.path.file_name());
                    return move_new(room.as_fd(), from, dir.as_fd(), to).map_err(failed);
                }
                Err(errno) => return Err(failed(errno)),
            }
            let came = aside()?;
            let is_stale = match (stale, came) {
                (Some(stale), Some(came)) => came.same_content(&stale),
                // The first time it has to be our own new content.
                (None, Some(_)) => {
                    let state = crate::snapshot::observe::observe_file(self.root_dir, sibling)?
                        .map(|(state, _)| state);
                    state.zip(staged).is_some_and(|(state, staged)| state.same_content(&staged))
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
    match crate::snapshot::observe::observe_file(root_dir, path) {
        Ok(None) => ActualState::Nothing,
        Ok(Some((FileState { kind: FileKind::File, hash: Some(hash), size, .. }, _))) => {
            ActualState::Content { hash, size }
        }
        Ok(Some(_)) | Err(_) => ActualState::Other,
    }
}

fn in_the_way(dir: &DirRecord) -> WorkspaceError {
    let reason = "a directory that holds other files stands in the way";
    WorkspaceError::Contradiction { path: dir.path.clone(), reason }
}

fn conflict_error(file: &FileRecord, found: ActualState) -> WorkspaceError {
    let expected = file.before.and_then(|before| before.hash);
    WorkspaceError::Conflict { path: file.path.clone(), expected, found }
}
