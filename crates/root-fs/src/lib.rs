//! Root-confined, bounded reading: the one way to open a file that a repository brings along.
//!
//! A repository may hold a named pipe, a device, a socket, a link to `/dev/zero` or a sparse file
//! of a terabyte in the place of any file that a program expects. Reading one costs bounded time
//! and memory here: a path is resolved beneath its root by the kernel, opening never waits, only a
//! regular file is read (told by `fstat` of what was opened, so nothing can take its place in
//! between), and never more than a limit.
//!
//! This crate depends on no other crate of the workspace, so that each of them can use it.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat};
use rustix::io::Errno;

/// Bytes by which a buffer grows where a file is larger than `fstat` said.
const GROWTH_BYTES: usize = 128 * 1024;
/// `openat2` gives up with `EAGAIN` when a rename elsewhere disturbs its check; it is asked again
/// this many times.
const MAX_OPEN_ATTEMPTS: usize = 64;
/// Never wait for the other end of a pipe, and never get a controlling terminal.
const READ_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Treatment of symbolic links on the way to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkPolicy {
    /// Follow links that stay beneath the root.
    Follow,
    /// Refuse every link, the last component included.
    Refuse,
}

/// Opens `path` beneath `root`; neither `..` nor links nor a race lead out of it.
///
/// # Errors
/// The system's error; `EXDEV` where the path leads out, `ELOOP` at a refused link.
pub fn open_beneath(
    root: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
    links: LinkPolicy,
) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let resolve = if links == LinkPolicy::Refuse { resolve | ResolveFlags::NO_SYMLINKS } else { resolve };
    for _ in 0..MAX_OPEN_ATTEMPTS {
        match openat2(root, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::NOSYS) => return open_by_component(root, path, flags),
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}

/// Opens one component after the other, none of them through a link. A caller that wants links
/// followed gets `ELOOP` at the first one, which is the safe answer where the kernel can't confine
/// the resolution.
fn open_by_component(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let step = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut names = path.split(|&byte| byte == b'/').peekable();
    let mut here: Option<OwnedFd> = None;
    while let Some(name) = names.next() {
        if name == b".." {
            return Err(Errno::XDEV);
        }
        let at = here.as_ref().map_or(root, |dir| dir.as_fd());
        let flags = if names.peek().is_some() { step } else { flags | OFlags::NOFOLLOW | OFlags::CLOEXEC };
        here = Some(openat(at, name, flags, Mode::empty())?);
    }
    here.ok_or(Errno::INVAL)
}

/// Opens a directory by its name, as the root of what is read beneath it. Links on the way are
/// followed.
///
/// # Errors
/// The system's error.
pub fn open_root(path: &Path) -> io::Result<OwnedFd> {
    Ok(openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Opens a regular file beneath `root` for reading, and returns its `fstat`.
///
/// # Errors
/// The system's error; [`io::ErrorKind::InvalidInput`] where something else than a regular file is
/// there.
pub fn open_regular(root: BorrowedFd<'_>, path: &[u8], links: LinkPolicy) -> io::Result<(OwnedFd, Stat)> {
    let flags = if links == LinkPolicy::Refuse { READ_FLAGS | OFlags::NOFOLLOW } else { READ_FLAGS };
    check_regular(open_beneath(root, path, flags, links)?)
}

/// Reads a regular file beneath `root`; `None` where it has more than `limit` bytes.
///
/// # Errors
/// Those of [`open_regular`], and of reading.
pub fn read_beneath(
    root: BorrowedFd<'_>,
    path: &[u8],
    links: LinkPolicy,
    limit: u64,
) -> io::Result<Option<Vec<u8>>> {
    let (file, stat) = open_regular(root, path, links)?;
    read_up_to(&file, stat_size(&stat), limit)
}

/// Reads a regular file by a path that isn't confined, with links followed: for files that lead
/// elsewhere by design, such as git's own. `None` where it has more than `limit` bytes.
///
/// # Errors
/// The system's error; [`io::ErrorKind::InvalidInput`] where something else than a regular file is
/// there.
pub fn read_path(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let (file, stat) = check_regular(openat(CWD, path, READ_FLAGS, Mode::empty())?)?;
    read_up_to(&file, stat_size(&stat), limit)
}

fn check_regular(file: OwnedFd) -> io::Result<(OwnedFd, Stat)> {
    let stat = fstat(&file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok((file, stat)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

fn stat_size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

/// Reads an open file to its end; `None` where it has more than `limit` bytes. `size` is the
/// expected size.
///
/// # Errors
/// The system's error.
pub fn read_up_to(file: &OwnedFd, size: u64, limit: u64) -> io::Result<Option<Vec<u8>>> {
    if size > limit {
        return Ok(None);
    }
    // One byte more than the size, so that the end is seen without growing the buffer.
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default().saturating_add(1));
    loop {
        if bytes.len() as u64 > limit {
            return Ok(None);
        }
        if bytes.len() == bytes.capacity() {
            bytes.reserve(GROWTH_BYTES);
        }
        match rustix::io::read(file, rustix::buffer::spare_capacity(&mut bytes)) {
            Ok(0) => return Ok(Some(bytes)),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use rustix::fs::{FileType, mknodat};

    use super::*;

    /// Every kind of entry that isn't a plain file within its root, and what reading it gives.
    #[test]
    fn only_a_regular_file_within_the_limit_is_read_and_nothing_is_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join("root").join(name);
        std::fs::create_dir_all(at("directory")).unwrap();
        std::fs::write(at("plain"), "plain").unwrap();
        std::fs::write(at("directory/x"), "x").unwrap();
        std::fs::write(place.path().join("secret"), "secret").unwrap();
        std::fs::File::create(at("endless")).unwrap().set_len(1 << 42).unwrap();
        mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        symlink("plain", at("inside")).unwrap();
        symlink("../secret", at("outside")).unwrap();
        symlink("/dev/zero", at("zeros")).unwrap();
        symlink("directory", at("linked")).unwrap();
        let root = open_root(&at("")).unwrap();
        let read = |path: &str, links| match read_beneath(root.as_fd(), path.as_bytes(), links, 5) {
            Ok(Some(text)) => String::from_utf8(text).unwrap(),
            Ok(None) => "too long".to_owned(),
            Err(error) => error.kind().to_string(),
        };
        let refused = "invalid input parameter";
        let looped = "filesystem loop or indirection limit (e.g. symlink loop)";
        let beyond = "cross-device link or rename";
        for (path, with_links, without) in [
            ("plain", "plain", "plain"),
            ("endless", "too long", "too long"),
            ("pipe", refused, refused),
            ("directory", refused, refused),
            ("inside", "plain", looped),
            ("outside", beyond, looped),
            ("zeros", beyond, looped),
            ("../secret", beyond, beyond),
            ("linked/../plain", "plain", looped),
            ("absent", "entity not found", "entity not found"),
        ] {
            assert_eq!(read(path, LinkPolicy::Follow), with_links, "{path}, links followed");
            assert_eq!(read(path, LinkPolicy::Refuse), without, "{path}, links refused");
        }
        assert!(open_regular(root.as_fd(), b"socket", LinkPolicy::Refuse).is_err());
        for (path, links) in
            [("directory/x", true), ("inside", false), ("../secret", false), ("linked/x", false)]
        {
            let opened = open_by_component(root.as_fd(), path.as_bytes(), READ_FLAGS);
            assert_eq!(opened.is_ok(), links, "{path}, component by component");
        }
    }

    #[test]
    fn a_path_that_may_lead_anywhere_is_read_under_the_same_bounds() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::write(at("plain"), "plain").unwrap();
        symlink("plain", at("link")).unwrap();
        symlink("/dev/zero", at("zeros")).unwrap();
        mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert_eq!(read_path(&at("link"), 5).unwrap().unwrap(), b"plain");
        assert_eq!(read_path(&at("link"), 4).unwrap(), None);
        for name in ["zeros", "pipe"] {
            assert_eq!(read_path(&at(name), 5).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{name}");
        }
    }
}
