//! Where files come from: a work tree, as ignore rules let it be seen.

mod rules;
mod walk;

use std::ffi::OsStr;
use std::fs::File;
use std::io::IoSliceMut;
use std::num::NonZero;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use journeyman_protocol::RelPath;
use journeyman_root_fs::{Links, open_regular, open_root};
use rustix::fs::{Advice, Stat};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use self::walk::{Walk, Wanted};

use crate::IndexError;
use crate::analyse::MAX_BYTES;
use crate::facts::Stamp;

/// Files that are listed at most: what a tree of a million files costs is bounded, and said.
pub const MAX_FILES: usize = 1_000_000;
/// Directories that are named at most: no system watches as many.
pub const MAX_DIRECTORIES: usize = 1_000_000;
/// Files that are fetched before they are read, at first and after one for which the disk is waited for. Where all are in memory, no
/// more are.
const FETCHED: usize = 64;
/// The project's own list of what the index leaves out, in the form of `.gitignore`.
pub const IGNORE_FILE: &str = ".journeymanignore";

/// A file that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Where.
    pub path: RelPath,
    /// By what a change is noticed.
    pub stamp: Stamp,
}

/// What was found in a tree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// Its files, by path.
    pub files: Vec<Listed>,
    /// There are more than [`MAX_FILES`].
    pub cut: bool,
    /// Directories that couldn't be read.
    pub unreadable: usize,
}

/// What a file has, as far as it is read.
#[derive(Debug)]
pub enum Bytes {
    /// All of it.
    Whole(Vec<u8>),
    /// It is longer than is read.
    TooLong,
}

/// Where files come from.
pub trait Source: Sync {
    /// All files that aren't ignored.
    ///
    /// # Errors
    /// [`IndexError::Io`] where there is no tree at all.
    fn list(&self) -> Result<Listing, IndexError>;

    /// A file's stamp as it is now; `None` where it isn't there, is no plain file, or is ignored.
    fn stamp(&self, path: &RelPath) -> Option<Stamp>;

    /// A file's content.
    ///
    /// # Errors
    /// What the system says.
    fn read(&self, path: &RelPath) -> std::io::Result<Bytes>;

    /// Says that a file will be read soon: its content may be fetched in the meantime. Nothing has to come of it.
    fn soon(&self, path: &RelPath) {
        let _ = path;
    }
}

/// A directory with files in it.
#[derive(Debug, Clone)]
pub struct WorkTree {
    root: PathBuf,
    threads: usize,
    /// For so many files it is worth having them fetched before they are read: the disk was waited for lately.
    fetched: Arc<AtomicUsize>,
}

impl WorkTree {
    /// The tree beneath a directory, walked by so many threads.
    #[must_use]
    pub fn new(root: &Path, threads: usize) -> Self {
        let fetched = Arc::new(AtomicUsize::new(FETCHED));
        Self { root: root.to_owned(), threads: threads.max(1), fetched }
    }

    /// Where it is.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directories that ignore rules let be seen, with the root: at most [`MAX_DIRECTORIES`].
    #[must_use]
    pub fn directories(&self) -> Vec<PathBuf> {
        let Ok(walk) = Walk::new(&self.root) else { return Vec::new() };
        let found = walk.run(self.threads, Wanted { files: 0, directories: MAX_DIRECTORIES });
        found.directories.into_iter().map(|path| self.root.join(OsStr::from_bytes(&path))).collect()
    }

    /// Opens a file beneath the root, through no link.
    fn open(&self, path: &RelPath) -> std::io::Result<(File, Stat)> {
        let root = open_root(&self.root)?;
        let (file, stat) = open_regular(root.as_fd(), path.as_bytes(), Links::Refuse)?;
        Ok((file.into(), stat))
    }
}

#[allow(
    clippy::unnecessary_cast,
    clippy::cast_lossless,
    trivial_numeric_casts,
    reason = "the types differ by system"
)]
pub(crate) fn stamp_of(stat: &Stat) -> Stamp {
    let nanoseconds = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    Stamp {
        size: u64::try_from(stat.st_size).unwrap_or_default(),
        modified: nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        changed: nanoseconds(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        inode: stat.st_ino as u64,
    }
}

impl Source for WorkTree {
    fn list(&self) -> Result<Listing, IndexError> {
        let found = std::fs::metadata(&self.root).map_err(IndexError::io("looking at", &self.root))?;
        if !found.is_dir() {
            let error = std::io::ErrorKind::NotADirectory.into();
            return Err(IndexError::io("looking at", &self.root)(error));
        }
        let walk = Walk::new(&self.root).map_err(IndexError::io("looking at", &self.root))?;
        let found = walk.run(self.threads, Wanted { files: MAX_FILES, directories: 0 });
        let mut files = found.files;
        files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        Ok(Listing { files, cut: found.cut, unreadable: found.unreadable })
    }

    fn stamp(&self, path: &RelPath) -> Option<Stamp> {
        let (_, stat) = self.open(path).ok()?;
        Walk::new(&self.root).ok()?.shows(path).then(|| stamp_of(&stat))
    }

    fn read(&self, path: &RelPath) -> std::io::Result<Bytes> {
        use std::io::Read as _;
        let (file, stat) = self.open(path)?;
        let size = match usize::try_from(stat.st_size) {
            Ok(size) if size <= MAX_BYTES => size,
            _ => return Ok(Bytes::TooLong),
        };
        let mut bytes = vec![0; size];
        // What is in memory is all there at once.
        let there = preadv2(&file, &mut [IoSliceMut::new(&mut bytes)], 0, ReadWriteFlags::NOWAIT);
        match there {
            Ok(read) if read > 0 && read == bytes.len() => return Ok(Bytes::Whole(bytes)),
            // A part of it, or nothing, is in memory.
            Ok(1..) | Err(Errno::AGAIN) => self.fetched.store(FETCHED, Ordering::Relaxed),
            // It is said to be empty, or this file system doesn't tell what is in memory.
            Ok(0) | Err(_) => {}
        }
        bytes.clear();
        bytes.reserve_exact(size + 1);
        file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        Ok(if bytes.len() > MAX_BYTES { Bytes::TooLong } else { Bytes::Whole(bytes) })
    }

    fn soon(&self, path: &RelPath) {
        let left = |left: usize| left.checked_sub(1);
        if self.fetched.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_err() {
            return;
        }
        if let Ok((file, _)) = self.open(path) {
            // A wish, about a file that is opened anew when it is read: a refusal is as good.
            let (from, length) = (0, NonZero::new(MAX_BYTES as u64));
            rustix::fs::fadvise(file, from, length, Advice::WillNeed).unwrap_or_default();
        }
    }
}
