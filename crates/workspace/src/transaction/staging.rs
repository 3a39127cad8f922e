//! New contents beside their files, and the waits for the disk.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;

use journeyman_protocol::{ContentHash, RelPath};
use rustix::fs::{CWD, Mode, OFlags, fchmod, fchown, fsync, openat, symlinkat};
use rustix::io::Errno;

use crate::error::WorkspaceError;
use crate::files::root_dir::{LinkPolicy, RootDir};
use crate::files::stat::{FileStat, to_mode};
use crate::journal::record::{ChangeRecord, FileRecord};
use crate::snapshot::entry::FileKind;
use crate::transaction::operation::{FileAfter, NewContent, Operation, TransactionContext};

/// From so many files on, one flush of the whole file system is cheaper than one of each.
pub(crate) const MIN_FILES_TO_FLUSH_ALL: usize = 32;
/// Extended attributes larger than this aren't copied; the kernel's own bound is 64 KiB.
const MAX_ATTRIBUTE_BYTES: usize = 64 * 1024;
/// The size of one read while a large file is copied, in bytes.
const READ_SIZE: usize = 128 * 1024;
/// The flags to open a file to copy from.
const SOURCE_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

impl TransactionContext<'_> {
    /// Writes new content beside its file. Returns the descriptor to flush.
    pub(crate) fn stage(
        &self,
        operation: &Operation,
        after: &FileAfter,
        sibling: &RelPath,
    ) -> Result<Option<OwnedFd>, WorkspaceError> {
        let path = &operation.path;
        let failed = |errno| self.root_dir.error_for("write", path, errno);
        let dir = self.root_dir.open_parent(sibling).map_err(failed)?;
        let name = sibling.file_name();
        let loaded;
        let bytes = match &after.source {
            NewContent::Bytes(bytes) => bytes,
            NewContent::Blob(hash) => {
                loaded = self
                    .blob_store
                    .get(hash)?
                    .ok_or_else(|| WorkspaceError::Lost { what: path.to_string() })?;
                &loaded
            }
            NewContent::File(_) | NewContent::Unchanged => {
                loaded = Vec::new();
                &loaded
            }
        };
        if after.state.kind == FileKind::Link {
            symlinkat(bytes.as_slice(), &dir, name).map_err(failed)?;
            return Ok(None);
        }
        let old = match (&operation.before, &after.like) {
            (Some((before, seen)), _) if before.kind == FileKind::File => Some((path, seen)),
            (_, Some((path, seen))) => Some((path, seen)),
            _ => None,
        };
        let private = old.is_some() || after.mode.is_some();
        let mode = if private { 0o600 } else { 0o666 };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&dir, name, flags, Mode::from_raw_mode(mode)).map_err(failed)?;
        write_all(&file, bytes).map_err(failed)?;
        match &after.source {
            NewContent::File(from) => {
                let from = openat(CWD, from, SOURCE_FLAGS, Mode::empty())
                    .map_err(|errno| crate::state::lock::state_error("read", from, errno.into()))?;
                if Some(copy_and_hash(&from, &file).map_err(failed)?) != after.state.hash {
                    return Err(WorkspaceError::Lost { what: path.to_string() });
                }
            }
            NewContent::Unchanged => {
                let (from, _) = self.root_dir.open_file(path, LinkPolicy::Refuse)?;
                if Some(copy_and_hash(&from, &file).map_err(failed)?) != after.state.hash {
                    return Err(WorkspaceError::Raced { path: path.clone() });
                }
            }
            NewContent::Bytes(_) | NewContent::Blob(_) => {}
        }
        if let Some((path, seen)) = old {
            self.copy_metadata(path, seen, &file);
        }
        if let Some(mode) = after.mode {
            fchmod(&file, to_mode(mode)).map_err(failed)?;
        } else if after.executable {
            let made =
                rustix::fs::fstat(&file).map(|stat| FileStat::of(&stat)).map_err(failed)?.permissions();
            fchmod(&file, to_mode(executable_mode(made, true))).map_err(failed)?;
        }
        Ok(Some(file))
    }

    /// Copies the old file's owner and attributes to the new one, as far as the system allows.
    fn copy_metadata(&self, path: &RelPath, old: &FileStat, new: &OwnedFd) {
        let ours = rustix::fs::fstat(new).map(|stat| FileStat::of(&stat).owner);
        if ours.is_ok_and(|ours| ours != old.owner) {
            let (user, group) = old.owner;
            let owner = (rustix::fs::Uid::from_raw(user), rustix::fs::Gid::from_raw(group));
            if fchown(new, Some(owner.0), Some(owner.1)).is_err() {
                // Giving a file away takes privilege; the group alone may still be ours to give.
                let _best_effort = fchown(new, None, Some(owner.1));
            }
        }
        if let Ok((file, _)) = self.root_dir.open_file(path, LinkPolicy::Refuse) {
            // Attributes that we may not set, or that the file system hasn't, are the system's to
            // give.
            let _best_effort = copy_attributes(&file, new);
        }
    }

    pub(crate) fn flush(&self, staged: &[OwnedFd], files: &[FileRecord]) -> Result<(), WorkspaceError> {
        let failed = |errno| self.flush_error(files, errno);
        if files.len() >= MIN_FILES_TO_FLUSH_ALL {
            return flush_file_system(self.root_dir).map_err(failed);
        }
        staged.iter().try_for_each(fsync).map_err(failed)
    }

    /// Returns the error for a failed flush. It names the first file, as the disk doesn't say which
    /// one it refused.
    fn flush_error(&self, files: &[FileRecord], errno: Errno) -> WorkspaceError {
        match files.first() {
            Some(file) => self.root_dir.error_for("flush", &file.path, errno),
            None => WorkspaceError::Root { path: self.root_dir.path().to_owned(), source: errno.into() },
        }
    }

    pub(crate) fn flush_directories(&self, record: &ChangeRecord) -> Result<(), WorkspaceError> {
        let failed = |errno| self.flush_error(&record.files, errno);
        if record.files.len() >= MIN_FILES_TO_FLUSH_ALL {
            return flush_file_system(self.root_dir).map_err(failed);
        }
        let siblings = record.files.iter().filter_map(|file| file.sibling.as_ref());
        let files = record.files.iter().map(|file| &file.path);
        let others = record.made.iter().chain(&record.cleared).map(|dir| &dir.path);
        let dirs: BTreeSet<Option<RelPath>> =
            siblings.chain(files).chain(others).map(RelPath::parent).collect();
        for dir in dirs {
            match self.root_dir.open_directory(dir.as_ref()) {
                Ok(dir) => fsync(&dir).map_err(failed)?,
                // It went with what was in it, or a link has its place now.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
        Ok(())
    }
}

/// Sets the execute bits of those who may read the file, or clears all.
pub(crate) fn executable_mode(mode: u32, executable: bool) -> u32 {
    if executable { mode | ((mode & 0o444) >> 2) } else { mode & !0o111 }
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

/// Copies the rest of a file, and returns its hash.
pub(crate) fn copy_and_hash(from: &OwnedFd, to: &OwnedFd) -> Result<ContentHash, Errno> {
    let mut hasher = blake3::Hasher::new();
    let mut piece = Vec::with_capacity(READ_SIZE);
    loop {
        piece.clear();
        match rustix::io::read(from, rustix::buffer::spare_capacity(&mut piece)) {
            Ok(0) => return Ok(ContentHash::from(*hasher.finalize().as_bytes())),
            Ok(_) => {
                hasher.update(&piece);
                write_all(to, &piece)?;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

fn copy_attributes(old: &OwnedFd, new: &OwnedFd) -> Result<(), Errno> {
    use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};
    let mut names = vec![0_u8; MAX_ATTRIBUTE_BYTES];
    let length = flistxattr(old, names.as_mut_slice())?;
    names.truncate(length);
    if names.is_empty() {
        return Ok(());
    }
    let mut value = vec![0_u8; MAX_ATTRIBUTE_BYTES];
    for name in names.split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        let length = fgetxattr(old, name, value.as_mut_slice())?;
        let value = value.get(..length).unwrap_or_default();
        let _best_effort = fsetxattr(new, name, value, XattrFlags::empty());
    }
    Ok(())
}

fn flush_file_system(root_dir: &RootDir) -> Result<(), Errno> {
    rustix::fs::syncfs(root_dir.root())
}
