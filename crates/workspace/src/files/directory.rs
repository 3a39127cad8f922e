//! Reading, copying and deleting directories by descriptor; links are never followed.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, mkdirat, openat, readlinkat, statat, unlinkat};
use rustix::io::Errno;

use crate::files::stat::FileStat;
use crate::limits::MAX_DEPTH;
use crate::transaction::staging::write_all;

/// The size of one read while a file is copied between file systems, in bytes.
pub(crate) const READ_SIZE: usize = 128 * 1024;

pub(crate) fn entry_names(dir: &OwnedFd) -> Result<Vec<Vec<u8>>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            names.push(name.to_vec());
        }
    }
    Ok(names)
}

pub(crate) fn open_dir(at: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(at, name, flags, Mode::empty())
}

/// Copies files, links and directories; pipes, sockets and devices have nothing to keep.
pub(crate) fn copy(
    from: BorrowedFd<'_>,
    name: &[u8],
    to: BorrowedFd<'_>,
    new: &[u8],
    depth: usize,
) -> Result<(), Errno> {
    if depth > MAX_DEPTH {
        return Err(Errno::NAMETOOLONG);
    }
    let seen = FileStat::of(&statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?);
    if seen.is_link() {
        return rustix::fs::symlinkat(readlinkat(from, name, Vec::new())?, to, new);
    }
    if seen.is_dir() {
        let old = open_dir(from, name)?;
        mkdirat(to, new, Mode::from_raw_mode(0o700))?;
        let made = open_dir(to, new)?;
        for child in entry_names(&old)? {
            copy(old.as_fd(), &child, made.as_fd(), &child, depth + 1)?;
        }
        return Ok(());
    }
    if !seen.is_file() {
        return Ok(());
    }
    let reading = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let old = openat(from, name, reading, Mode::empty())?;
    let writing = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = openat(to, new, writing, Mode::from_raw_mode(0o600))?;
    let mut piece = Vec::with_capacity(READ_SIZE);
    loop {
        piece.clear();
        match rustix::io::read(&old, rustix::buffer::spare_capacity(&mut piece)) {
            Ok(0) => return Ok(()),
            Ok(_) => write_all(&made, &piece)?,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

pub(crate) fn delete(at: BorrowedFd<'_>, name: &[u8], depth: usize) -> Result<(), Errno> {
    if depth > MAX_DEPTH {
        return Err(Errno::NAMETOOLONG);
    }
    if !FileStat::of(&statat(at, name, AtFlags::SYMLINK_NOFOLLOW)?).is_dir() {
        return unlinkat(at, name, AtFlags::empty());
    }
    let dir = open_dir(at, name)?;
    for child in entry_names(&dir)? {
        delete(dir.as_fd(), &child, depth + 1)?;
    }
    unlinkat(at, name, AtFlags::REMOVEDIR)
}
