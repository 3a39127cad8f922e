//! The two moves that a transaction is made of: one that never overwrites, and one that exchanges.

use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, linkat, renameat, statat, unlinkat};
use rustix::io::Errno;

/// Renames a file; fails with `EEXIST` if the new name is taken.
pub(crate) fn rename_no_replace(
    from_dir: BorrowedFd<'_>,
    from: &[u8],
    to_dir: BorrowedFd<'_>,
    to: &[u8],
) -> Result<(), Errno> {
    match try_rename_no_replace(from_dir, from, to_dir, to) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
        other => return other,
    }
    // The file system has no such rename. A hard link refuses a taken name as well.
    match linkat(from_dir, from, to_dir, to, AtFlags::empty()) {
        Ok(()) => unlinkat(from_dir, from, AtFlags::empty()),
        Err(Errno::EXIST) => Err(Errno::EXIST),
        // No hard links either: looking first is all that is left.
        Err(_) => match statat(to_dir, to, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Err(Errno::EXIST),
            Err(_) => renameat(from_dir, from, to_dir, to),
        },
    }
}

/// Lets two files change names, in one instant. `EINVAL`, `ENOSYS` or `ENOTSUP` where that can't be
/// done.
pub(crate) fn exchange_files(
    one_dir: BorrowedFd<'_>,
    one: &[u8],
    other_dir: BorrowedFd<'_>,
    other: &[u8],
) -> Result<(), Errno> {
    rustix::fs::renameat_with(one_dir, one, other_dir, other, rustix::fs::RenameFlags::EXCHANGE)
}

fn try_rename_no_replace(
    from_dir: BorrowedFd<'_>,
    from: &[u8],
    to_dir: BorrowedFd<'_>,
    to: &[u8],
) -> Result<(), Errno> {
    rustix::fs::renameat_with(from_dir, from, to_dir, to, rustix::fs::RenameFlags::NOREPLACE)
}
