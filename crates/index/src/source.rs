//! Where files come from: a work tree, as ignore rules let it be seen.

use std::io::IoSliceMut;
use std::num::NonZero;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ignore::{WalkBuilder, WalkState};
use journeyman_protocol::RelPath;
use rustix::fs::{Advice, CWD, Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

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
        let found = self.walk().build().flatten();
        let directories = found.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_dir()));
        directories.map(ignore::DirEntry::into_path).take(MAX_DIRECTORIES).collect()
    }

    fn walk(&self) -> WalkBuilder {
        let mut walk = WalkBuilder::new(&self.root);
        walk.hidden(false)
            .follow_links(false)
            .git_global(false)
            .require_git(false)
            .add_custom_ignore_filename(IGNORE_FILE)
            .threads(self.threads)
            .filter_entry(|entry| entry.file_name() != ".git");
        walk
    }

    fn relative(&self, path: &Path) -> Option<RelPath> {
        RelPath::parse(path.strip_prefix(&self.root).ok()?.as_os_str().as_bytes()).ok()
    }

    /// Opens a file beneath the root, through no link.
    fn open(&self, path: &RelPath) -> std::io::Result<std::fs::File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(CWD, &self.root, flags | OFlags::DIRECTORY, Mode::empty())?;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        // Without waiting for somebody at the other end of a pipe.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        Ok(rustix::fs::openat2(root, path.as_bytes(), flags, Mode::empty(), resolve)?.into())
    }
}

fn stamp(found: &std::fs::Metadata) -> Stamp {
    let nanoseconds = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    Stamp {
        size: found.size(),
        modified: nanoseconds(found.mtime(), found.mtime_nsec()),
        changed: nanoseconds(found.ctime(), found.ctime_nsec()),
        inode: found.ino(),
    }
}

impl Source for WorkTree {
    fn list(&self) -> Result<Listing, IndexError> {
        let found = std::fs::metadata(&self.root).map_err(IndexError::io("looking at", &self.root))?;
        if !found.is_dir() {
            let error = std::io::ErrorKind::NotADirectory.into();
            return Err(IndexError::io("looking at", &self.root)(error));
        }
        let (count, unreadable) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let all = Mutex::new(Vec::new());
        self.walk().build_parallel().run(|| {
            // Of this thread, until it ends.
            let mut own = Gathered { files: Vec::new(), all: &all };
            let (count, unreadable) = (&count, &unreadable);
            Box::new(move |entry| {
                let Ok(entry) = entry else {
                    unreadable.fetch_add(1, Ordering::Relaxed);
                    return WalkState::Continue;
                };
                if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                    return WalkState::Continue;
                }
                if count.fetch_add(1, Ordering::Relaxed) >= MAX_FILES {
                    return WalkState::Quit;
                }
                if let (Some(path), Ok(found)) = (self.relative(entry.path()), entry.metadata()) {
                    own.files.push(Listed { path, stamp: stamp(&found) });
                }
                WalkState::Continue
            })
        });
        let mut files = all.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        let cut = count.into_inner() > MAX_FILES;
        Ok(Listing { files, cut, unreadable: unreadable.into_inner() })
    }

    fn stamp(&self, path: &RelPath) -> Option<Stamp> {
        let found = self.open(path).ok()?.metadata().ok()?;
        (found.is_file() && !self.is_ignored(path)).then(|| stamp(&found))
    }

    fn read(&self, path: &RelPath) -> std::io::Result<Bytes> {
        use std::io::Read as _;
        let file = self.open(path)?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(std::io::ErrorKind::InvalidInput.into());
        }
        if found.len() > MAX_BYTES as u64 {
            return Ok(Bytes::TooLong);
        }
        let mut bytes = vec![0; found.len() as usize];
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
        bytes.reserve_exact(found.len() as usize + 1);
        file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        Ok(if bytes.len() > MAX_BYTES { Bytes::TooLong } else { Bytes::Whole(bytes) })
    }

    fn soon(&self, path: &RelPath) {
        let left = |left: usize| left.checked_sub(1);
        if self.fetched.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_err() {
            return;
        }
        if let Ok(file) = self.open(path) {
            // A wish, about a file that is opened anew when it is read: a refusal is as good.
            let (from, length) = (0, NonZero::new(MAX_BYTES as u64));
            rustix::fs::fadvise(file, from, length, Advice::WillNeed).unwrap_or_default();
        }
    }
}

impl WorkTree {
    /// Whether ignore rules leave a file out: walks from the root along its path alone.
    fn is_ignored(&self, path: &RelPath) -> bool {
        use std::ffi::OsStr;
        let target = self.root.join(OsStr::from_bytes(path.as_bytes()));
        let along = target.clone();
        let mut walk = self.walk();
        walk.threads(1)
            .filter_entry(move |entry| entry.file_name() != ".git" && along.starts_with(entry.path()));
        !walk.build().flatten().any(|entry| entry.path() == target)
    }
}

/// One thread's files, handed over when it ends.
struct Gathered<'a> {
    files: Vec<Listed>,
    all: &'a Mutex<Vec<Listed>>,
}

impl Drop for Gathered<'_> {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        all.append(&mut self.files);
    }
}
