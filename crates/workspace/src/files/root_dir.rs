//! The way into the tree: every path is resolved beneath the root by the kernel.
//!
//! A directory descriptor of the root is opened once. On Linux each name goes through `openat2`
//! with `RESOLVE_BENEATH`, so that neither `..`, links, magic links nor a race lead out. Elsewhere,
//! and where a sandbox forbids `openat2`, each component is opened by itself without following
//! links.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use journeyman_protocol::{ContentHash, RelPath};
use journeyman_root_fs::open_beneath;

use crate::files::stat::{FileStat, to_mode};
pub(crate) use journeyman_root_fs::{LinkPolicy, read_up_to};
use journeyman_sandbox::ProjectCopy;
use rustix::fs::{AtFlags, Mode, OFlags, SeekFrom, fstat, openat, readlinkat, statat};
use rustix::io::Errno;

use crate::error::{NotAFile, WorkspaceError};
use crate::limits::MAX_LINKS_FOLLOWED;

/// The size of one read while a file is hashed, in bytes.
const READ_SIZE: usize = 128 * 1024;

/// The treatment of a link that is the last component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinalLinkPolicy {
    /// The link is followed to its target.
    Follow,
    /// The link itself is meant.
    Keep,
}

/// The root's descriptor.
#[derive(Debug)]
pub(crate) struct RootDir {
    root: OwnedFd,
    path: PathBuf,
    lists_by_time: OnceLock<Option<u64>>,
}

impl RootDir {
    pub(crate) fn open(path: &Path) -> Result<Self, WorkspaceError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(rustix::fs::CWD, path, flags, Mode::empty())
            .map_err(|errno| WorkspaceError::Root { path: path.to_owned(), source: errno.into() })?;
        Ok(Self { root, path: path.to_owned(), lists_by_time: OnceLock::new() })
    }

    /// Opens the copy that stands for the tree at `path`.
    pub(crate) fn open_copy(path: &Path, base: &ProjectCopy) -> Result<Self, WorkspaceError> {
        match base {
            ProjectCopy::Directory { path: copy, .. } => {
                Ok(Self { path: path.to_owned(), ..Self::open(copy)? })
            }
            ProjectCopy::Mounted(mounted) => {
                let root = rustix::io::fcntl_dupfd_cloexec(mounted.root(), 3);
                let root = root
                    .map_err(|errno| WorkspaceError::Root { path: path.to_owned(), source: errno.into() })?;
                Ok(Self { root, path: path.to_owned(), lists_by_time: OnceLock::new() })
            }
        }
    }

    /// Leads to what `other` leads to from now on.
    pub(crate) fn redirect_to(&self, other: &Self) -> Result<(), WorkspaceError> {
        let replaced = journeyman_sandbox::replace_descriptor(self.root(), other.root());
        replaced.map_err(|source| WorkspaceError::Root { path: self.path.clone(), source })
    }

    /// Returns a path by which this process alone reaches the directory behind the root's
    /// descriptor.
    pub(crate) fn descriptor_path(&self) -> PathBuf {
        use std::os::fd::AsRawFd as _;
        PathBuf::from(format!("/proc/self/fd/{}", self.root.as_raw_fd()))
    }

    /// Returns the root's device, if its file system updates a directory's timestamps whenever a
    /// name in it is added, removed or replaced.
    pub(crate) fn reliable_mtime_device(&self) -> Option<u64> {
        *self.lists_by_time.get_or_init(|| reliable_mtime_device(&self.root))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Fails when the root was deleted while it was open: every name beneath it then just looks
    /// absent.
    pub(crate) fn check_alive(&self) -> Result<(), WorkspaceError> {
        let gone = |source: io::Error| WorkspaceError::Root { path: self.path.clone(), source };
        let stat = fstat(&self.root).map_err(|errno| gone(errno.into()))?;
        if stat.st_nlink == 0 { Err(gone(Errno::NOENT.into())) } else { Ok(()) }
    }

    /// Returns an error for `path`, after checking whether the root itself was deleted.
    pub(crate) fn error_for(&self, action: &'static str, path: &RelPath, errno: Errno) -> WorkspaceError {
        match self.check_alive() {
            Err(gone) => gone,
            Ok(()) => WorkspaceError::from_errno(action, path, errno),
        }
    }

    /// Opens `path` beneath the root.
    pub(crate) fn open_beneath(
        &self,
        path: &[u8],
        flags: OFlags,
        links: LinkPolicy,
    ) -> Result<OwnedFd, Errno> {
        open_beneath(self.root(), path, flags, links)
    }

    /// Opens a directory by its canonical path; `None` is the root.
    pub(crate) fn open_directory(&self, path: Option<&RelPath>) -> Result<OwnedFd, Errno> {
        let bytes = path.map_or(b".".as_slice(), RelPath::as_bytes);
        self.open_beneath(bytes, OFlags::RDONLY | OFlags::DIRECTORY, LinkPolicy::Refuse)
    }

    /// Opens the directory that holds the canonical `path`.
    pub(crate) fn open_parent(&self, path: &RelPath) -> Result<OwnedFd, Errno> {
        self.open_directory(path.parent().as_ref())
    }

    /// Returns the metadata of the canonical `path`, links not followed; `None` if nothing is
    /// there, also because a link stands where a directory was.
    pub(crate) fn stat(&self, path: &RelPath) -> Result<Option<FileStat>, Errno> {
        let dir = match self.open_parent(path) {
            Ok(dir) => dir,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            Err(errno) => return Err(errno),
        };
        match statat(&dir, path.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(FileStat::of(&stat))),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Returns the outermost path above the canonical `path` that isn't a directory, if there is
    /// one.
    pub(crate) fn find_obstacle(&self, path: &RelPath) -> Result<Option<(RelPath, FileStat)>, Errno> {
        if self.open_parent(path).is_ok() {
            return Ok(None);
        }
        let mut above = Vec::new();
        let mut next = path.parent();
        while let Some(dir) = next {
            next = dir.parent();
            above.push(dir);
        }
        for dir in above.into_iter().rev() {
            match self.stat(&dir)? {
                Some(seen) if seen.is_dir() => {}
                Some(seen) => return Ok(Some((dir, seen))),
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Returns the metadata of the root itself.
    pub(crate) fn stat_root(&self) -> Result<Option<FileStat>, Errno> {
        fstat(&self.root).map(|stat| Some(FileStat::of(&stat)))
    }

    /// Opens a regular file for reading without ever waiting for it, and says what it is.
    pub(crate) fn open_file(
        &self,
        path: &RelPath,
        links: LinkPolicy,
    ) -> Result<(OwnedFd, FileStat), WorkspaceError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let flags = if links == LinkPolicy::Refuse { flags | OFlags::NOFOLLOW } else { flags };
        let file = self
            .open_beneath(path.as_bytes(), flags, links)
            .map_err(|errno| self.error_for("read", path, errno))?;
        let stat = fstat(&file).map_err(|errno| self.error_for("read", path, errno))?;
        let seen = FileStat::of(&stat);
        match seen.non_file_kind() {
            Some(kind) => Err(WorkspaceError::NotAFile { path: path.clone(), kind }),
            None => Ok((file, seen)),
        }
    }

    /// Waits until no system call is changing the regular file at the canonical `path`.
    ///
    /// File systems show a new size before they stamp the file with the time of its change, so that
    /// it looks like one that was changed long ago. Meanwhile they hold the lock of the file, which
    /// they take to look for data in it (ext4, Btrfs, tmpfs), or to read (XFS).
    pub(crate) fn wait_for_change(&self, path: &RelPath) {
        // What can't be opened isn't waited for.
        let Ok((file, _)) = self.open_file(path, LinkPolicy::Refuse) else { return };
        let _read = rustix::io::pread(&file, &mut [0_u8; 1], 0);
        let _found = rustix::fs::seek(&file, SeekFrom::Data(0));
    }

    /// Reads the target of the link at the canonical `path`.
    pub(crate) fn read_link(&self, path: &RelPath) -> Result<Vec<u8>, Errno> {
        let dir = self.open_parent(path)?;
        Ok(readlinkat(&dir, path.file_name(), Vec::new())?.into_bytes())
    }

    /// Sets the permission bits of the directory at the canonical `path`, also if it can't be
    /// opened.
    pub(crate) fn set_permissions(&self, path: &RelPath, permissions: u32) -> Result<(), Errno> {
        set_permissions(
            self.open_beneath(path.as_bytes(), PERMISSION_FLAGS, LinkPolicy::Refuse)?,
            permissions,
        )
    }

    /// Resolves the links in `path`. Components that don't exist (yet) are taken as they are. A
    /// link out of the tree is refused.
    pub(crate) fn canonicalize(
        &self,
        path: &RelPath,
        last: FinalLinkPolicy,
    ) -> Result<RelPath, WorkspaceError> {
        if let Ok(dir) = self.open_parent(path) {
            match statat(&dir, path.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => return Ok(path.clone()),
                Ok(stat) if last == FinalLinkPolicy::Keep || !FileStat::of(&stat).is_link() => {
                    return Ok(path.clone());
                }
                _ => {}
            }
        }
        self.resolve(path, last)
    }

    fn resolve(&self, path: &RelPath, last: FinalLinkPolicy) -> Result<RelPath, WorkspaceError> {
        let outside = || WorkspaceError::Outside { path: path.clone() };
        let failed = |errno| self.error_for("resolve", path, errno);
        let mut pending: VecDeque<Vec<u8>> = path.components().map(<[u8]>::to_vec).collect();
        let mut done: Vec<(Vec<u8>, Option<OwnedFd>)> = Vec::new();
        let mut links = 0;
        while let Some(name) = pending.pop_front() {
            if name == b".." {
                done.pop().ok_or_else(outside)?;
                continue;
            }
            let here = match done.last() {
                None => self.root(),
                Some((_, Some(dir))) => dir.as_fd(),
                // Beneath something that isn't there: nothing to resolve.
                Some((_, None)) => {
                    done.push((name, None));
                    continue;
                }
            };
            let seen = match statat(here, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => Some(FileStat::of(&stat)),
                Err(Errno::NOENT) => None,
                Err(errno) => return Err(failed(errno)),
            };
            let is_last = pending.is_empty();
            match seen {
                Some(seen) if seen.is_link() && !(is_last && last == FinalLinkPolicy::Keep) => {
                    links += 1;
                    if links > MAX_LINKS_FOLLOWED {
                        return Err(WorkspaceError::NotFound { path: path.clone() });
                    }
                    let target = readlinkat(here, name.as_slice(), Vec::new()).map_err(failed)?.into_bytes();
                    if target.first() == Some(&b'/') {
                        return Err(outside());
                    }
                    let components = target.split(|&byte| byte == b'/');
                    for part in components.rev().filter(|part| !matches!(*part, b"" | b".")) {
                        pending.push_front(part.to_vec());
                    }
                }
                Some(seen) if seen.is_dir() => {
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    let dir = openat(here, name.as_slice(), flags, Mode::empty()).map_err(failed)?;
                    done.push((name, Some(dir)));
                }
                _ => done.push((name, None)),
            }
        }
        let names: Vec<Vec<u8>> = done.into_iter().map(|(name, _)| name).collect();
        let kind = NotAFile::Directory;
        RelPath::parse(names.join(&b'/')).map_err(|_| WorkspaceError::NotAFile { path: path.clone(), kind })
    }
}

/// The flags to open a directory for changing its permissions: without needing any, where the
/// system can.
const PERMISSION_FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW);

fn set_permissions(dir: OwnedFd, permissions: u32) -> Result<(), Errno> {
    use std::os::fd::AsRawFd as _;
    // Such a descriptor takes no fchmod; the name by which the system lists it leads to the same
    // directory.
    rustix::fs::chmod(format!("/proc/self/fd/{}", dir.as_raw_fd()), to_mode(permissions))
}

/// File systems that stamp directories as POSIX demands, by magic number: ext2 to ext4, XFS, Btrfs,
/// F2FS and tmpfs. Not network file systems, which may know late of what others do; nor overlays,
/// whose lower directories may change behind them.
const RELIABLE_MTIME_FILE_SYSTEMS: [u64; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994];

#[allow(clippy::unnecessary_cast, clippy::cast_sign_loss, trivial_numeric_casts)]
fn reliable_mtime_device(root: &OwnedFd) -> Option<u64> {
    let kind = rustix::fs::fstatfs(root).ok()?.f_type as u64;
    RELIABLE_MTIME_FILE_SYSTEMS.contains(&kind).then(|| fstat(root).map(|stat| stat.st_dev as u64).ok())?
}

/// Hashes a file of any size piece by piece.
pub(crate) fn hash_file(file: &OwnedFd) -> io::Result<ContentHash> {
    let mut hasher = blake3::Hasher::new();
    let mut piece = Vec::with_capacity(READ_SIZE);
    loop {
        piece.clear();
        match rustix::io::read(file, rustix::buffer::spare_capacity(&mut piece)) {
            Ok(0) => return Ok(ContentHash::from(*hasher.finalize().as_bytes())),
            Ok(_) => {
                hasher.update(&piece);
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn rel(path: &str) -> RelPath {
        RelPath::parse(path).unwrap()
    }

    #[test]
    fn canonical_table() {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/file"), "x").unwrap();
        symlink("a/b", root.join("short")).unwrap();
        symlink("../b/file", root.join("a/b/up")).unwrap();
        symlink("/etc", root.join("absolute")).unwrap();
        symlink("../../..", root.join("a/out")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink("a/new", root.join("dangling")).unwrap();
        let root_dir = RootDir::open(root).unwrap();
        let table = [
            ("a/b/file", FinalLinkPolicy::Follow, Ok("a/b/file")),
            ("short/file", FinalLinkPolicy::Follow, Ok("a/b/file")),
            ("short/up", FinalLinkPolicy::Follow, Ok("a/b/file")),
            ("short/up", FinalLinkPolicy::Keep, Ok("a/b/up")),
            ("short", FinalLinkPolicy::Keep, Ok("short")),
            ("short/new/deep", FinalLinkPolicy::Follow, Ok("a/b/new/deep")),
            ("dangling", FinalLinkPolicy::Follow, Ok("a/new")),
            ("a/b/file/below", FinalLinkPolicy::Follow, Ok("a/b/file/below")),
            ("absolute/passwd", FinalLinkPolicy::Follow, Err("outside")),
            ("a/out/x", FinalLinkPolicy::Follow, Err("outside")),
            ("loop/x", FinalLinkPolicy::Follow, Err("absent")),
        ];
        for (given, last, expected) in table {
            let found =
                root_dir.canonicalize(&rel(given), last).map(|path| path.to_string()).map_err(|error| {
                    match error {
                        WorkspaceError::Outside { .. } => "outside",
                        WorkspaceError::NotFound { .. } => "absent",
                        other => panic!("{given}: {other}"),
                    }
                });
            assert_eq!(found, expected.map(str::to_owned), "{given}");
        }
    }
}
