//! Files that helpers open, write and hold.

use std::ffi::CStr;
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// One read of standard input on its way to the command.
const INPUT_CHUNK_BYTES: usize = 64 * 1024;

/// Writes to a file of the kernel's, in one call. Neither allocates nor uses `errno`.
pub(super) fn write_file(path: &CStr, text: &[u8]) -> Result<(), Errno> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(file, text).map(drop)
}

/// Opens the file at a path with `O_PATH`, following no link.
pub(super) fn open_without_links(path: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::io::retry_on_intr(|| rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve))
}

/// Locks the file that shows that the command lives. A process that locked it exclusively, or
/// removed it, relies on there being no command.
pub(super) fn open_liveness_file(path: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    lock_liveness_file(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Locks the open witness; `ESTALE` where its name is gone.
pub(super) fn lock_liveness_file(file: OwnedFd) -> Result<OwnedFd, Errno> {
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockShared)?;
    if rustix::fs::fstat(&file)?.st_nlink == 0 { Err(Errno::STALE) } else { Ok(file) }
}

/// Reads standard input into a file in memory, open for reading from its beginning.
pub(super) fn receive_input(control: &OwnedFd, length: Option<u64>) -> Result<Option<OwnedFd>, Errno> {
    let Some(mut left) = length else { return Ok(None) };
    let file = rustix::fs::memfd_create(c"stdin", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut buffer = vec![0; INPUT_CHUNK_BYTES];
    while left > 0 {
        let wanted = usize::try_from(left).unwrap_or(INPUT_CHUNK_BYTES).min(INPUT_CHUNK_BYTES);
        let part = buffer.get_mut(..wanted).ok_or(Errno::IO)?;
        let count = rustix::io::retry_on_intr(|| rustix::io::read(control, &mut *part))?;
        let mut rest = part.get(..count).filter(|got| !got.is_empty()).ok_or(Errno::PIPE)?;
        left -= count as u64;
        while !rest.is_empty() {
            let written = rustix::io::write(&file, rest)?;
            rest = rest.get(written..).ok_or(Errno::IO)?;
        }
    }
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
    Ok(Some(file))
}

/// Creates a file in memory with these bytes, open for reading from its beginning.
pub(super) fn create_memory_file(parts: &[&[u8]]) -> Result<OwnedFd, Errno> {
    let file = rustix::fs::memfd_create(c"order", rustix::fs::MemfdFlags::CLOEXEC)?;
    for part in parts {
        let mut rest = *part;
        while !rest.is_empty() {
            let written = rustix::io::retry_on_intr(|| rustix::io::write(&file, rest))?;
            rest = rest.get(written..).ok_or(Errno::IO)?;
        }
    }
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
    Ok(file)
}
