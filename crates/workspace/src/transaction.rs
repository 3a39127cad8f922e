//! One change set carried out: all of it, or nothing.
//!
//! New contents are written beside their files, made durable together with the journal's line that names them,
//! and then moved into place. An existing file changes places with its successor (`RENAME_EXCHANGE`), a deleted
//! one moves to its sibling's name: so the old file itself, with everything about it, is there until the end, and
//! going back needs neither space nor a copy. What moved is looked at after the move: a file that somebody
//! changed in the last instant goes back, and the change is a conflict.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};

use journeyman_protocol::{CallId, ContentHash, RelPath, SessionId};
use journeyman_store::{Blobs, Durability};
use rustix::fs::{AtFlags, Mode, OFlags, fchmod, fchown, fsync, mkdirat, openat, symlinkat, unlinkat};
use rustix::io::Errno;

use crate::door::{Door, Links, Seen, mode_of, read_up_to};
use crate::journal::{Cause, DirRecord, FileRecord, Journal, Line, Record, Sync};
use crate::limits::{Failpoint, Fault, Limits, Step};
use crate::rename::{exchange, move_new};
use crate::snapshot::{FileState, Kind};
use crate::walk::{SIBLING_DIGITS, SIBLING_TAG};
use crate::{ChangeId, Found, WorkspaceError};

/// From so many files on, one flush of the whole file system is cheaper than one of each.
const FLUSH_ALL_FROM: usize = 32;
/// A file's name takes at most so many bytes of its sibling's, which has 255 in all.
const SIBLING_NAME_BYTES: usize = 200;
/// Extended attributes larger than this aren't copied; the kernel's own bound is 64 KiB.
const ATTRIBUTE_BYTES: usize = 64 * 1024;

/// Where new content comes from.
#[derive(Debug)]
pub(crate) enum Source {
    Bytes(Vec<u8>),
    Blob(ContentHash),
    /// The content stays; only the mode changes.
    Unchanged,
}

/// What a file is to become.
#[derive(Debug)]
pub(crate) struct After {
    pub(crate) state: FileState,
    pub(crate) source: Source,
    /// The permission bits; `None` leaves a new file's to the system.
    pub(crate) mode: Option<u32>,
    /// Without `mode`: whether a new file is executable.
    pub(crate) executable: bool,
    /// The file whose owner and attributes a new one gets: the one that it was renamed from.
    pub(crate) like: Option<(RelPath, Seen)>,
}

/// One file of a transaction.
#[derive(Debug)]
pub(crate) struct Operation {
    /// Canonical.
    pub(crate) path: RelPath,
    pub(crate) before: Option<(FileState, Seen)>,
    pub(crate) after: Option<After>,
}

/// What happens to one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Move {
    Create,
    Replace,
    Remove,
    Chmod,
}

impl FileRecord {
    pub(crate) fn kind_of_move(&self) -> Move {
        match (&self.before, &self.after) {
            (None, _) => Move::Create,
            (Some(_), None) => Move::Remove,
            (Some(before), Some(after)) if before.same_content(after) && before.hash.is_some() => Move::Chmod,
            (Some(_), Some(_)) => Move::Replace,
        }
    }
}

/// Who asks, and what else belongs to the change.
#[derive(Debug)]
pub(crate) struct Intent {
    pub(crate) session: SessionId,
    pub(crate) call: Option<CallId>,
    pub(crate) cause: Cause,
    pub(crate) undoes: Vec<ChangeId>,
    pub(crate) left: Vec<RelPath>,
    /// Directories to make, besides those that files need.
    pub(crate) make: Vec<DirRecord>,
    /// Directories to remove at the end if they are empty.
    pub(crate) remove: Vec<DirRecord>,
}

/// The means to carry out a transaction.
pub(crate) struct Hands<'a> {
    pub(crate) door: &'a Door,
    pub(crate) blobs: &'a Blobs,
    pub(crate) limits: &'a Limits,
    pub(crate) failpoint: Option<&'a Failpoint>,
    /// Some contents that are among the blobs may not be on the disk yet.
    pub(crate) unsynced: bool,
}

impl Hands<'_> {
    /// Lets a test's failpoint speak.
    fn step(&self, step: Step, path: Option<&RelPath>) -> Result<(), WorkspaceError> {
        match self.failpoint.map(|hook| (hook.0)(step)) {
            None | Some(Fault::Go) => Ok(()),
            Some(Fault::Cut) => Err(WorkspaceError::CutOff(step)),
            Some(Fault::Fail(errno)) => Err(match path {
                Some(path) => WorkspaceError::at("change", path, errno),
                None => WorkspaceError::State {
                    action: "write",
                    path: self.door.path().to_owned(),
                    source: errno.into(),
                },
            }),
        }
    }

    /// Carries the operations out. The journal is prepared and the lock held.
    pub(crate) fn execute(
        &self,
        journal: &mut Journal,
        intent: Intent,
        operations: &[Operation],
    ) -> Result<ChangeId, WorkspaceError> {
        let id = ChangeId(journal.next_id());
        let record = self.plan(id, intent, operations)?;
        self.step(Step::Keep, None)?;
        for operation in operations {
            self.keep(operation)?;
        }
        self.step(Step::Intend, None)?;
        journal.append(&[Line::Change(record.clone())], Sync::Later)?;
        match self.carry_out(journal, &record, operations) {
            Ok(()) => {
                self.step(Step::Clean, None)?;
                self.clean(&record);
                // The change has happened whether or not this line gets there; whoever prepares next adds it.
                drop(journal.append(&[Line::Done(id)], Sync::Later));
                Ok(id)
            }
            Err(cut) if cut.is_cut_off() => Err(cut),
            Err(failure) => {
                // What can't be put back now stays open in the journal, and is tried again by whoever is next.
                if self.revert(&record).is_ok() {
                    drop(journal.append(&[Line::Void(id)], Sync::Later));
                }
                Err(failure)
            }
        }
    }

    /// Names the siblings and finds the directories that have to be made or to make room.
    fn plan(&self, id: ChangeId, intent: Intent, operations: &[Operation]) -> Result<Record, WorkspaceError> {
        let cleared = self.cleared(operations)?;
        let mut made: Vec<DirRecord> = Vec::new();
        let mut files = Vec::with_capacity(operations.len());
        let wanted: std::collections::BTreeMap<&RelPath, Option<u32>> =
            intent.make.iter().map(|dir| (&dir.path, dir.mode)).collect();
        let mut known: BTreeSet<RelPath> = BTreeSet::new();
        let mut need = |dir: Option<RelPath>| -> Result<Option<RelPath>, WorkspaceError> {
            let (existing, missing) = self.missing_above(dir)?;
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
                ino: before.map_or(0, |(_, seen)| seen.ino),
            };
            if file.kind_of_move() != Move::Chmod {
                file.sibling = Some(sibling(&operation.path, room.as_ref(), id, index)?);
            }
            files.push(file);
        }
        for dir in &intent.make {
            need(Some(dir.path.clone()))?;
        }
        made.sort_by(|a, b| a.path.cmp(&b.path));
        let Intent { session, call, cause, undoes, left, remove, .. } = intent;
        Ok(Record { id, session, call, cause, files, made, removed: remove, cleared, undoes, left })
    }

    /// The nearest directory that exists at or above `dir`, and those below it that don't, outermost first.
    fn missing_above(&self, dir: Option<RelPath>) -> Result<(Option<RelPath>, Vec<RelPath>), WorkspaceError> {
        let mut missing = Vec::new();
        let mut next = dir;
        while let Some(path) = next {
            let seen = self.door.look(&path).map_err(|errno| self.door.fail("look at", &path, errno))?;
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

    /// Directories that stand where a file is to be, with those beneath them that this change empties; the
    /// outermost first.
    fn cleared(&self, operations: &[Operation]) -> Result<Vec<DirRecord>, WorkspaceError> {
        let mut found = BTreeSet::new();
        for operation in operations.iter().filter(|operation| operation.before.is_none()) {
            let path = &operation.path;
            let seen = self.door.look(path).map_err(|errno| self.door.fail("look at", path, errno))?;
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
        }
        let mode = |path: &RelPath| self.door.look(path).ok().flatten().map(|seen| seen.permissions());
        Ok(found.into_iter().map(|path| DirRecord { mode: mode(&path), path }).collect())
    }

    /// Stores what is there before, for an undo: going back within the transaction doesn't need it.
    fn keep(&self, operation: &Operation) -> Result<(), WorkspaceError> {
        let Some((before, _)) = &operation.before else { return Ok(()) };
        let unchanged = matches!(&operation.after, Some(After { source: Source::Unchanged, .. }));
        if unchanged || before.size > self.limits.kept_file_bytes {
            return Ok(());
        }
        if let Some(hash) = &before.hash
            && !self.unsynced
            && self.blobs.contains(hash)?
        {
            return Ok(());
        }
        let path = &operation.path;
        let bytes = match before.kind {
            Kind::Link => self.door.read_link(path).map_err(|errno| self.door.fail("read", path, errno))?,
            Kind::File => {
                let (file, seen) = self.door.read_file(path, Links::Refuse)?;
                let read = read_up_to(&file, seen.size, self.limits.kept_file_bytes);
                let read = read.map_err(|source| io_error("read", path, source))?;
                read.ok_or_else(|| WorkspaceError::Raced { path: path.clone() })?
            }
        };
        self.blobs.put_with(&bytes, Durability::Now)?;
        Ok(())
    }

    fn carry_out(
        &self,
        journal: &mut Journal,
        record: &Record,
        operations: &[Operation],
    ) -> Result<(), WorkspaceError> {
        let pairs = || operations.iter().zip(&record.files);
        let mut staged = Vec::new();
        for (operation, file) in pairs() {
            if let (Some(after), Some(sibling)) = (&operation.after, &file.sibling) {
                self.step(Step::Stage, Some(&file.path))?;
                let written = self.stage(operation, after, sibling)?;
                self.step(Step::Staged, Some(&file.path))?;
                if operations.len() < FLUSH_ALL_FROM {
                    staged.extend(written);
                }
            }
        }
        self.step(Step::Flush, None)?;
        self.flush(&staged, operations.len())?;
        journal.flush()?;
        for (operation, file) in pairs().filter(|(_, file)| file.kind_of_move() == Move::Remove) {
            self.step(Step::Remove, Some(&file.path))?;
            self.remove(operation, file)?;
            self.step(Step::Placed, Some(&file.path))?;
        }
        if !(record.cleared.is_empty() && record.made.is_empty()) {
            self.step(Step::MakeDirectories, None)?;
            self.make_directories(record)?;
        }
        for (operation, file) in pairs().filter(|(_, file)| file.kind_of_move() != Move::Remove) {
            self.step(Step::Place, Some(&file.path))?;
            self.place(operation, file)?;
            self.step(Step::Placed, Some(&file.path))?;
        }
        self.flush_directories(record)?;
        self.step(Step::Commit, None)?;
        journal.append(&[Line::Placed(record.id)], Sync::Later)
    }

    /// Writes new content beside its file; gives the descriptor to flush.
    fn stage(
        &self,
        operation: &Operation,
        after: &After,
        sibling: &RelPath,
    ) -> Result<Option<OwnedFd>, WorkspaceError> {
        let path = &operation.path;
        let failed = |errno| self.door.fail("write", path, errno);
        let dir = self.door.parent(sibling).map_err(failed)?;
        let name = sibling.file_name();
        let loaded;
        let bytes = match &after.source {
            Source::Bytes(bytes) => bytes,
            Source::Blob(hash) => {
                loaded =
                    self.blobs.get(hash)?.ok_or_else(|| WorkspaceError::Lost { what: path.to_string() })?;
                &loaded
            }
            Source::Unchanged => return Ok(None),
        };
        if after.state.kind == Kind::Link {
            symlinkat(bytes.as_slice(), &dir, name).map_err(failed)?;
            return Ok(None);
        }
        let old = match (&operation.before, &after.like) {
            (Some((before, seen)), _) if before.kind == Kind::File => Some((path, seen)),
            (_, Some((path, seen))) => Some((path, seen)),
            _ => None,
        };
        let private = old.is_some() || after.mode.is_some();
        let mode = if private { 0o600 } else { 0o666 };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&dir, name, flags, Mode::from_raw_mode(mode)).map_err(failed)?;
        write_all(&file, bytes).map_err(failed)?;
        if let Some((path, seen)) = old {
            self.copy_nature(path, seen, &file);
        }
        if let Some(mode) = after.mode {
            fchmod(&file, mode_of(mode)).map_err(failed)?;
        } else if after.executable {
            let made = rustix::fs::fstat(&file).map(|stat| Seen::of(&stat)).map_err(failed)?.permissions();
            fchmod(&file, mode_of(executable_mode(made, true))).map_err(failed)?;
        }
        Ok(Some(file))
    }

    /// Gives the successor its predecessor's owner and attributes, as far as we may.
    fn copy_nature(&self, path: &RelPath, old: &Seen, new: &OwnedFd) {
        let ours = rustix::fs::fstat(new).map(|stat| Seen::of(&stat).owner);
        if ours.is_ok_and(|ours| ours != old.owner) {
            let (user, group) = old.owner;
            let owner = (rustix::fs::Uid::from_raw(user), rustix::fs::Gid::from_raw(group));
            if fchown(new, Some(owner.0), Some(owner.1)).is_err() {
                // Giving a file away takes privilege; the group alone may still be ours to give.
                let _best_effort = fchown(new, None, Some(owner.1));
            }
        }
        if let Ok((file, _)) = self.door.read_file(path, Links::Refuse) {
            // Attributes that we may not set, or that the file system hasn't, are the system's to give.
            let _best_effort = copy_attributes(&file, new);
        }
    }

    fn flush(&self, staged: &[OwnedFd], operations: usize) -> Result<(), WorkspaceError> {
        let failed =
            |errno: Errno| WorkspaceError::Root { path: self.door.path().to_owned(), source: errno.into() };
        if operations >= FLUSH_ALL_FROM {
            return flush_file_system(self.door).map_err(failed);
        }
        staged.iter().try_for_each(fsync).map_err(failed)
    }

    fn flush_directories(&self, record: &Record) -> Result<(), WorkspaceError> {
        let failed =
            |errno: Errno| WorkspaceError::Root { path: self.door.path().to_owned(), source: errno.into() };
        if record.files.len() >= FLUSH_ALL_FROM {
            return flush_file_system(self.door).map_err(failed);
        }
        let siblings = record.files.iter().filter_map(|file| file.sibling.as_ref());
        let files = record.files.iter().map(|file| &file.path);
        let made = record.made.iter().map(|dir| &dir.path);
        let dirs: BTreeSet<Option<RelPath>> =
            siblings.chain(files).chain(made).map(RelPath::parent).collect();
        for dir in dirs {
            match self.door.directory(dir.as_ref()) {
                Ok(dir) => fsync(&dir).map_err(failed)?,
                // It went with what was in it.
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
        Ok(())
    }

    fn remove(&self, operation: &Operation, file: &FileRecord) -> Result<(), WorkspaceError> {
        let (Some(sibling), Some((_, seen))) = (&file.sibling, &operation.before) else { return Ok(()) };
        let failed = |errno| self.door.fail("delete", &file.path, errno);
        let dir = self.door.parent(&file.path).map_err(failed)?;
        let room = self.door.parent(sibling).map_err(failed)?;
        let (name, aside) = (file.path.file_name(), sibling.file_name());
        match move_new(dir.as_fd(), name, room.as_fd(), aside) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Err(conflict(file, Found::Nothing)),
            Err(errno) => return Err(failed(errno)),
        }
        let moved = self.door.look(sibling).map_err(failed)?;
        if moved.is_some_and(|moved| moved.same_content(seen)) {
            return Ok(());
        }
        move_new(room.as_fd(), aside, dir.as_fd(), name).map_err(failed)?;
        Err(conflict(file, Found::Other))
    }

    fn make_directories(&self, record: &Record) -> Result<(), WorkspaceError> {
        for dir in record.cleared.iter().rev() {
            let failed = |errno| self.door.fail("make room for", &dir.path, errno);
            let parent = self.door.parent(&dir.path).map_err(failed)?;
            match unlinkat(&parent, dir.path.file_name(), AtFlags::REMOVEDIR) {
                Ok(()) => {}
                Err(Errno::NOTEMPTY | Errno::EXIST) => {
                    let reason = "a directory that holds other files stands in the way";
                    return Err(WorkspaceError::Contradiction { path: dir.path.clone(), reason });
                }
                Err(errno) => return Err(failed(errno)),
            }
        }
        for dir in &record.made {
            let failed = |errno| self.door.fail("create the directory", &dir.path, errno);
            let parent = self.door.parent(&dir.path).map_err(failed)?;
            match mkdirat(&parent, dir.path.file_name(), Mode::from_raw_mode(0o777)) {
                Ok(()) => {}
                Err(Errno::EXIST) => {
                    let there = self.door.look(&dir.path).map_err(failed)?;
                    if there.is_some_and(|there| there.is_dir()) {
                        // Somebody else made it just now; it will do.
                        continue;
                    }
                    let reason = "a directory is needed where a file is";
                    return Err(WorkspaceError::Contradiction { path: dir.path.clone(), reason });
                }
                Err(errno) => return Err(failed(errno)),
            }
            if let Some(mode) = dir.mode {
                let made = self.door.directory(Some(&dir.path)).map_err(failed)?;
                fchmod(&made, mode_of(mode)).map_err(failed)?;
            }
        }
        Ok(())
    }

    fn place(&self, operation: &Operation, file: &FileRecord) -> Result<(), WorkspaceError> {
        let failed = |errno| self.door.fail("write", &file.path, errno);
        match (file.kind_of_move(), &file.sibling, &operation.before) {
            (Move::Create, Some(sibling), _) => {
                let room = self.door.parent(sibling).map_err(failed)?;
                let dir = self.door.parent(&file.path).map_err(failed)?;
                match move_new(room.as_fd(), sibling.file_name(), dir.as_fd(), file.path.file_name()) {
                    Err(Errno::EXIST) => Err(conflict(file, self.found(&file.path))),
                    other => other.map_err(failed),
                }
            }
            (Move::Replace, Some(sibling), Some((_, seen))) => self.replace(file, sibling, seen),
            (Move::Chmod, _, Some((_, seen))) => {
                let (target, now) = self.door.read_file(&file.path, Links::Refuse)?;
                if !now.same_content(seen) {
                    return Err(conflict(file, self.found(&file.path)));
                }
                let mode = file.after.map_or(now.permissions(), |after| after.mode);
                fchmod(&target, mode_of(mode)).map_err(failed)
            }
            _ => Ok(()),
        }
    }

    fn replace(&self, file: &FileRecord, sibling: &RelPath, seen: &Seen) -> Result<(), WorkspaceError> {
        let failed = |errno| self.door.fail("write", &file.path, errno);
        let room = self.door.parent(sibling).map_err(failed)?;
        let dir = self.door.parent(&file.path).map_err(failed)?;
        let (aside, name) = (sibling.file_name(), file.path.file_name());
        match exchange(room.as_fd(), aside, dir.as_fd(), name) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Err(conflict(file, self.found(&file.path))),
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                // The file system can't exchange; the last look is all there is against a late change, and the
                // blobs hold what going back needs.
                let now = self.door.look(&file.path).map_err(failed)?;
                if !now.is_some_and(|now| now.same_content(seen)) {
                    return Err(conflict(file, self.found(&file.path)));
                }
                return rustix::fs::renameat(&room, aside, &dir, name).map_err(failed);
            }
            Err(errno) => return Err(failed(errno)),
        }
        let moved = self.door.look(sibling).map_err(failed)?;
        if moved.is_some_and(|moved| moved.same_content(seen)) {
            return Ok(());
        }
        exchange(room.as_fd(), aside, dir.as_fd(), name).map_err(failed)?;
        Err(conflict(file, self.found(&file.path)))
    }

    fn found(&self, path: &RelPath) -> Found {
        found(self.door, path)
    }
}

/// What to say of the file in a conflict.
pub(crate) fn found(door: &Door, path: &RelPath) -> Found {
    match crate::snapshot::observe(door, path) {
        Ok(None) => Found::Nothing,
        Ok(Some((FileState { kind: Kind::File, hash: Some(hash), size, .. }, _))) => {
            Found::Content { hash, size }
        }
        Ok(Some(_)) | Err(_) => Found::Other,
    }
}

fn conflict(file: &FileRecord, found: Found) -> WorkspaceError {
    let expected = file.before.and_then(|before| before.hash);
    WorkspaceError::Conflict { path: file.path.clone(), expected, found }
}

pub(crate) fn io_error(action: &'static str, path: &RelPath, source: std::io::Error) -> WorkspaceError {
    WorkspaceError::Io { action, path: path.clone(), source }
}

/// Whoever may read it may execute it, or nobody may.
pub(crate) fn executable_mode(mode: u32, executable: bool) -> u32 {
    if executable { mode | ((mode & 0o444) >> 2) } else { mode & !0o111 }
}

pub(crate) fn is_beneath(path: &RelPath, dir: &RelPath) -> bool {
    path.as_bytes().strip_prefix(dir.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'/'))
}

/// A name that no two changes of a project share, so that it needs no randomness: the change's number and the
/// file's place in it are hashed together with the path.
fn sibling(
    path: &RelPath,
    room: Option<&RelPath>,
    id: ChangeId,
    index: usize,
) -> Result<RelPath, WorkspaceError> {
    let name = path.file_name();
    let name = name.get(..SIBLING_NAME_BYTES).unwrap_or(name);
    let key = [path.as_bytes(), &id.0.to_le_bytes(), &index.to_le_bytes()].concat();
    let digits = ContentHash::of(&key).to_string();
    let digits = digits.get(..SIBLING_DIGITS).unwrap_or(&digits);
    let name = [b".", name, SIBLING_TAG, digits.as_bytes()].concat();
    let sibling = match room {
        Some(dir) => dir.join(name),
        None => RelPath::parse(name),
    };
    sibling.map_err(|_| WorkspaceError::at("write", path, Errno::NAMETOOLONG))
}

pub(crate) fn write_all(file: &OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(file, bytes) {
            Ok(0) => return Err(Errno::IO),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn copy_attributes(old: &OwnedFd, new: &OwnedFd) -> Result<(), Errno> {
    use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};
    let mut names = vec![0_u8; ATTRIBUTE_BYTES];
    let length = flistxattr(old, names.as_mut_slice())?;
    names.truncate(length);
    if names.is_empty() {
        return Ok(());
    }
    let mut value = vec![0_u8; ATTRIBUTE_BYTES];
    for name in names.split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        let length = fgetxattr(old, name, value.as_mut_slice())?;
        let value = value.get(..length).unwrap_or_default();
        let _best_effort = fsetxattr(new, name, value, XattrFlags::empty());
    }
    Ok(())
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn copy_attributes(_old: &OwnedFd, _new: &OwnedFd) -> Result<(), Errno> {
    Ok(())
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn flush_file_system(door: &Door) -> Result<(), Errno> {
    rustix::fs::syncfs(door.root())
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn flush_file_system(_door: &Door) -> Result<(), Errno> {
    rustix::fs::sync();
    Ok(())
}
