//! One file copied: its bytes, and all that `stat` and attributes say of it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid, fchmod, fchown, fgetxattr,
    flistxattr, fsetxattr, fstat, ftruncate, futimens, openat, utimensat,
};
use rustix::io::Errno;

use crate::files::stat::{FileStat, to_mode};
use crate::transaction::staging::write_all;

/// Up to this size one read and one write are the cheapest; beyond it the kernel copies by itself.
const MAX_SMALL_FILE_BYTES: u64 = 64 * 1024;
/// Bytes that one call asks the kernel to copy.
const COPY_CHUNK: usize = 16 * 1024 * 1024;
/// Bytes that one read takes where the kernel doesn't copy.
const BUFFER_SIZE: usize = 128 * 1024;
/// Names of attributes that fit without a second call; most files have none.
const SMALL_NAMES_BUFFER_BYTES: usize = 512;
/// The kernel's own bound for the names, and for one value.
const MAX_ATTRIBUTE_BYTES: usize = 64 * 1024;
/// `st_blocks` counts in these.
const BLOCK_BYTES: u64 = 512;

/// The way to copy bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopyMethod {
    /// Both share the blocks, where that can be done.
    Share,
    Copy,
}

/// Opens a regular file to be copied, without waiting for what isn't one.
pub(crate) fn open(dir: BorrowedFd<'_>, name: &[u8]) -> Result<(OwnedFd, Stat), Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(dir, name, flags, Mode::empty())?;
    let stat = fstat(&file)?;
    // What a pipe or a device has has no end.
    if !FileStat::of(&stat).is_file() {
        return Err(Errno::NOENT);
    }
    Ok((file, stat))
}

/// Makes a file that wasn't there.
pub(crate) fn create(dir: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(dir, name, flags, Mode::from_raw_mode(0o600))
}

/// Fills an empty file with what another one has. Holes stay holes.
pub(crate) fn copy_bytes(from: &OwnedFd, stat: &Stat, to: &OwnedFd, how: CopyMethod) -> Result<(), Errno> {
    let seen = FileStat::of(stat);
    if seen.size == 0 {
        return Ok(());
    }
    if how == CopyMethod::Share && share_blocks(from, to).is_ok() {
        return Ok(());
    }
    if seen.size <= MAX_SMALL_FILE_BYTES {
        return copy_by_reading(from, to, seen.size);
    }
    #[allow(clippy::unnecessary_cast, clippy::cast_lossless, trivial_numeric_casts)]
    let blocks = u64::try_from(stat.st_blocks as i64).unwrap_or_default();
    if blocks.saturating_mul(BLOCK_BYTES) < seen.size {
        return copy_sparse(from, to, seen.size);
    }
    copy_range(from, to, 0, seen.size)
}

/// Lets both share their blocks.
pub(crate) fn share_blocks(from: &OwnedFd, to: &OwnedFd) -> Result<(), Errno> {
    rustix::fs::ioctl_ficlone(to, from)
}

fn copy_sparse(from: &OwnedFd, to: &OwnedFd, size: u64) -> Result<(), Errno> {
    use rustix::fs::{SeekFrom, seek};
    let mut at = 0;
    while at < size {
        let data = match seek(from, SeekFrom::Data(at)) {
            Ok(data) => data,
            // Nothing but a hole is left.
            Err(Errno::NXIO) => break,
            Err(Errno::INVAL | Errno::OPNOTSUPP) => return copy_range(from, to, 0, size),
            Err(errno) => return Err(errno),
        };
        let hole = seek(from, SeekFrom::Hole(data))?.min(size);
        if hole <= data {
            break;
        }
        copy_range(from, to, data, hole - data)?;
        at = hole;
    }
    ftruncate(to, size)
}

fn copy_range(from: &OwnedFd, to: &OwnedFd, begin: u64, length: u64) -> Result<(), Errno> {
    let (mut source, mut target) = (begin, begin);
    let end = begin.saturating_add(length);
    while source < end {
        let piece = usize::try_from(end - source).unwrap_or(COPY_CHUNK).min(COPY_CHUNK);
        match rustix::fs::copy_file_range(from, Some(&mut source), to, Some(&mut target), piece) {
            // Shorter by now, or a file system that has no such call and says so in this way.
            Ok(0) => return copy_range_by_reading(from, to, source, end),
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::XDEV | Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL | Errno::PERM) => {
                return copy_range_by_reading(from, to, source, end);
            }
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

fn copy_range_by_reading(from: &OwnedFd, to: &OwnedFd, begin: u64, end: u64) -> Result<(), Errno> {
    use rustix::fs::{SeekFrom, seek};
    seek(from, SeekFrom::Start(begin))?;
    seek(to, SeekFrom::Start(begin))?;
    copy_by_reading(from, to, end.saturating_sub(begin))
}

/// Reads and writes, up to the end or so many bytes.
fn copy_by_reading(from: &OwnedFd, to: &OwnedFd, mut left: u64) -> Result<(), Errno> {
    let mut piece = Vec::with_capacity(usize::try_from(left).unwrap_or(BUFFER_SIZE).min(BUFFER_SIZE));
    while left > 0 {
        piece.clear();
        match rustix::io::read(from, rustix::buffer::spare_capacity(&mut piece)) {
            Ok(0) => return Ok(()),
            Ok(_) => {
                let most = usize::try_from(left).unwrap_or(usize::MAX);
                piece.truncate(most);
                write_all(to, &piece)?;
                left -= piece.len() as u64;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Copies the owner, mode, attributes and modification time of a file, as far as the system allows.
pub(crate) fn copy_metadata(from: &OwnedFd, old: &FileStat, to: &OwnedFd) -> Result<(), Errno> {
    copy_attributes(from, to);
    set_metadata(old, to)
}

/// Sets the owner, mode and modification time of a copy, but not its attributes, for an original
/// that can't be read.
pub(crate) fn set_metadata(old: &FileStat, to: &OwnedFd) -> Result<(), Errno> {
    let made = FileStat::of(&fstat(to)?);
    give_owner(made.owner, old.owner, to);
    if made.permissions() != old.permissions() || made.owner != old.owner {
        fchmod(to, to_mode(old.permissions()))?;
    }
    set_modified(to, old.mtime)
}

/// Sets a file's modification time, in nanoseconds since 1970.
pub(crate) fn set_modified(file: &OwnedFd, mtime: i64) -> Result<(), Errno> {
    futimens(file, &modified_time(mtime))
}

/// Copies the owner, mode, attributes and times of a directory, as far as the system allows.
pub(crate) fn copy_directory_metadata(from: BorrowedFd<'_>, to: &OwnedFd) {
    copy_attributes(from, to);
    set_directory_metadata(from, to);
}

/// Copies the owner, mode and times of a directory, without its attributes.
pub(crate) fn set_directory_metadata(from: BorrowedFd<'_>, to: &OwnedFd) {
    if let Ok(stat) = fstat(from) {
        let _best_effort = set_metadata(&FileStat::of(&stat), to);
    }
}

/// Copies the owner and time of a link to its copy.
pub(crate) fn set_link_metadata(dir: BorrowedFd<'_>, name: &[u8], old: &FileStat) -> Result<(), Errno> {
    let us = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    if us != old.owner {
        let owner = (Uid::from_raw(old.owner.0), Gid::from_raw(old.owner.1));
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let _best_effort = rustix::fs::chownat(dir, name, Some(owner.0), Some(owner.1), flags);
    }
    utimensat(dir, name, &modified_time(old.mtime), AtFlags::SYMLINK_NOFOLLOW)
}

fn give_owner(ours: (u32, u32), old: (u32, u32), to: &OwnedFd) {
    if ours == old {
        return;
    }
    let owner = (Uid::from_raw(old.0), Gid::from_raw(old.1));
    if fchown(to, Some(owner.0), Some(owner.1)).is_err() {
        // Giving a file away takes privilege; the group alone may still be ours to give.
        let _best_effort = fchown(to, None, Some(owner.1));
    }
}

fn modified_time(nanos: i64) -> Timestamps {
    let second = 1_000_000_000;
    let keep = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
    #[allow(clippy::useless_conversion)]
    let time = Timespec { tv_sec: nanos.div_euclid(second).into(), tv_nsec: nanos.rem_euclid(second) };
    Timestamps { last_access: keep, last_modification: time }
}

fn copy_attributes(from: impl AsFd, to: &OwnedFd) {
    use rustix::fs::XattrFlags;
    let mut few = [0_u8; SMALL_NAMES_BUFFER_BYTES];
    let mut many = Vec::new();
    let names = match flistxattr(&from, few.as_mut_slice()) {
        Ok(0) => return,
        Ok(length) => few.get(..length).unwrap_or_default(),
        Err(Errno::RANGE) => {
            many.resize(MAX_ATTRIBUTE_BYTES, 0);
            let Ok(length) = flistxattr(&from, many.as_mut_slice()) else { return };
            many.get(..length).unwrap_or_default()
        }
        Err(_) => return,
    };
    let mut value = vec![0_u8; MAX_ATTRIBUTE_BYTES];
    for name in names.split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        let Ok(length) = fgetxattr(&from, name, value.as_mut_slice()) else { continue };
        let value = value.get(..length).unwrap_or_default();
        // Attributes that we may not set, or that the file system hasn't, are the system's to give.
        let _best_effort = fsetxattr(to, name, value, XattrFlags::empty());
    }
}

/// Returns true if a directory's entry is a directory, looked up where the listing doesn't say.
pub(crate) fn is_directory(dir: BorrowedFd<'_>, name: &[u8], listed: FileType) -> bool {
    match listed {
        FileType::Unknown => rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileStat::of(&stat).is_dir()),
        known => known == FileType::Directory,
    }
}
