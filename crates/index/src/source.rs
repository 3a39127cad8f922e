//! Sources of files: a work tree, filtered by ignore rules.

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
use journeyman_root_fs::{LinkPolicy, open_regular, open_root};
use rustix::fs::{Advice, Stat};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

pub use self::rules::IGNORE_FILE;
pub(crate) use self::walk::stamp_of;
pub use self::walk::{ListedFile, MAX_DIRECTORIES, MAX_FILES};
use self::walk::{TreeWalk, WalkLimits};

use crate::IndexError;
use crate::analyser::MAX_FILE_BYTES;
use crate::analysis::FileStamp;

/// Number of files that are prefetched at first, and after each read that waited for the disk. None
/// are once all reads are served from memory.
const PREFETCH_BUDGET: usize = 64;

/// Result of listing a tree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// Its files, by path.
    pub files: Vec<ListedFile>,
    /// There are more than [`MAX_FILES`].
    pub cut: bool,
    /// Number of directories that couldn't be read.
    pub unreadable: usize,
}

/// Content of a file.
#[derive(Debug)]
pub enum SourceContent {
    /// The whole content.
    Whole(Vec<u8>),
    /// The file is longer than [`MAX_FILE_BYTES`].
    TooLong,
}

/// A source of files.
pub trait FileSource: Sync {
    /// Lists all files that aren't ignored.
    ///
    /// # Errors
    /// [`IndexError::Io`] where the root can't be read.
    fn list(&self) -> Result<Listing, IndexError>;

    /// Returns a file's current stamp; `None` where it doesn't exist, isn't a regular file, or is
    /// ignored.
    fn stamp(&self, path: &RelPath) -> Option<FileStamp>;

    /// Reads a file. Returns also the stamp that it had when it was opened.
    ///
    /// # Errors
    /// The system's error.
    fn read(&self, path: &RelPath) -> std::io::Result<(SourceContent, FileStamp)>;

    /// Announces that a file will be read soon, so that its content may be prefetched.
    fn prefetch(&self, path: &RelPath) {
        let _ = path;
    }
}

/// A work tree.
#[derive(Debug, Clone)]
pub struct WorkTree {
    root: PathBuf,
    threads: usize,
    /// Number of files that are still prefetched; reset when a read waits for the disk.
    prefetch_budget: Arc<AtomicUsize>,
}

impl WorkTree {
    /// Creates the tree beneath a directory, walked by a number of threads.
    #[must_use]
    pub fn new(root: &Path, threads: usize) -> Self {
        let prefetch_budget = Arc::new(AtomicUsize::new(PREFETCH_BUDGET));
        Self { root: root.to_owned(), threads: threads.max(1), prefetch_budget }
    }

    /// Returns the root directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directories that aren't ignored, with the root: at most [`MAX_DIRECTORIES`].
    #[must_use]
    pub fn directories(&self) -> Vec<PathBuf> {
        let Ok(walk) = TreeWalk::new(&self.root) else { return Vec::new() };
        let found = walk.walk(self.threads, WalkLimits { files: 0, directories: MAX_DIRECTORIES });
        found.directories.into_iter().map(|path| self.root.join(OsStr::from_bytes(&path))).collect()
    }

    /// Opens a file beneath the root, through no link.
    fn open(&self, path: &RelPath) -> std::io::Result<(File, Stat)> {
        let root = open_root(&self.root)?;
        let (file, stat) = open_regular(root.as_fd(), path.as_bytes(), LinkPolicy::Refuse)?;
        Ok((file.into(), stat))
    }
}

impl FileSource for WorkTree {
    fn list(&self) -> Result<Listing, IndexError> {
        let found = std::fs::metadata(&self.root).map_err(IndexError::io("looking at", &self.root))?;
        if !found.is_dir() {
            let error = std::io::ErrorKind::NotADirectory.into();
            return Err(IndexError::io("looking at", &self.root)(error));
        }
        let walk = TreeWalk::new(&self.root).map_err(IndexError::io("looking at", &self.root))?;
        let found = walk.walk(self.threads, WalkLimits { files: MAX_FILES, directories: 0 });
        let mut files = found.files;
        files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        Ok(Listing { files, cut: found.cut, unreadable: found.unreadable })
    }

    fn stamp(&self, path: &RelPath) -> Option<FileStamp> {
        let (_, stat) = self.open(path).ok()?;
        TreeWalk::new(&self.root).ok()?.is_visible(path).then(|| stamp_of(&stat))
    }

    fn read(&self, path: &RelPath) -> std::io::Result<(SourceContent, FileStamp)> {
        use std::io::Read as _;
        let (file, stat) = self.open(path)?;
        let stamp = stamp_of(&stat);
        let size = match usize::try_from(stat.st_size) {
            Ok(size) if size <= MAX_FILE_BYTES => size,
            _ => return Ok((SourceContent::TooLong, stamp)),
        };
        let mut bytes = vec![0; size];
        // A read from memory returns the whole content at once.
        let there = preadv2(&file, &mut [IoSliceMut::new(&mut bytes)], 0, ReadWriteFlags::NOWAIT);
        match there {
            Ok(read) if read > 0 && read == bytes.len() => return Ok((SourceContent::Whole(bytes), stamp)),
            // At most a part of the content is in memory.
            Ok(1..) | Err(Errno::AGAIN) => self.prefetch_budget.store(PREFETCH_BUDGET, Ordering::Relaxed),
            // The file seems empty, or this file system doesn't report whether content is in
            // memory.
            Ok(0) | Err(_) => {}
        }
        bytes.clear();
        bytes.reserve_exact(size + 1);
        file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        let too_long = bytes.len() > MAX_FILE_BYTES;
        Ok((if too_long { SourceContent::TooLong } else { SourceContent::Whole(bytes) }, stamp))
    }

    fn prefetch(&self, path: &RelPath) {
        let left = |left: usize| left.checked_sub(1);
        if self.prefetch_budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_err() {
            return;
        }
        if let Ok((file, _)) = self.open(path) {
            // Advice for a file that is opened again to be read, so errors don't matter.
            let (from, length) = (0, NonZero::new(MAX_FILE_BYTES as u64));
            rustix::fs::fadvise(file, from, length, Advice::WillNeed).unwrap_or_default();
        }
    }
}
