//! A directory filled with a copy of a tree: every file that isn't ignored, with its mode, times
//! and attributes.
//!
//! The tree is copied as the checkpoint has it: a file that changed or vanished since is
//! written from the kept contents. Two threads share the work, by pieces of directories, so that
//! each directory is opened about once. Nothing waits for the disk; a copy that a crash tears is
//! swept.

use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use journeyman_protocol::RelPath;
use rustix::fs::{AtFlags, Mode, OFlags, fstat, ftruncate, mkdirat, openat, readlinkat, statat, symlinkat};
use rustix::io::Errno;

use crate::contents::store::BlobStore;
use crate::copies::info::UnavailableReason;
use crate::copies::tiers::file_copy;
use crate::copies::tiers::file_copy::CopyMethod;
use crate::error::WorkspaceError;
use crate::files::paths::last_component;
use crate::files::remove::{open_directory, remove_entry};
use crate::files::root_dir::{LinkPolicy, RootDir, hash_file};
use crate::files::stat::{FileStat, to_mode};
use crate::files::stat::{file_clock, is_change_settled};
use crate::snapshot::entry::{EntryContent, TreeEntry};
use crate::snapshot::tree::Tree;
use crate::transaction::staging::write_all;
use crate::workspace::Workspace;

/// Maximum number of files in one batch.
const MAX_BATCH_FILES: usize = 64;
/// Minimum number of files for which a second thread is worth its start.
const MIN_PARALLEL_FILES: usize = 48;

/// The way to fill the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FillMethod {
    /// Files share their blocks with the originals; nothing else will do.
    Clone,
    /// Files are copied.
    Copy,
    /// The directory has files already; those at these paths are known to differ from the tree's.
    Complete(HashSet<Vec<u8>>),
}

/// The work.
pub(crate) struct FillJob<'a> {
    from: &'a RootDir,
    tree: &'a Tree,
    blob_store: &'a BlobStore,
    to: OwnedFd,
    how: FillMethod,
    next: AtomicUsize,
}

/// The result.
pub(crate) struct FillReport {
    pub(crate) seed: Tree,
    pub(crate) caches: Vec<RelPath>,
    pub(crate) left_out: Vec<(RelPath, String)>,
}

/// One file's outcome.
enum FileOutcome {
    /// The file is there, with this signature.
    There(FileStat),
    /// The file is there with this signature, but its content isn't what it should be.
    Short(FileStat, String),
    /// The file isn't there.
    Gone(String),
}

impl<'a> FillJob<'a> {
    pub(crate) fn new(
        workspace: &'a Workspace,
        tree: &'a Tree,
        to: &Path,
        how: FillMethod,
    ) -> Result<Self, WorkspaceError> {
        let (from, blob_store) = (&workspace.project.root_dir, &workspace.project.blob_store);
        Ok(Self { from, tree, blob_store, to: open_directory(to)?, how, next: AtomicUsize::new(0) })
    }

    pub(crate) fn run(self) -> Result<FillReport, UnavailableReason> {
        if self.how == FillMethod::Clone {
            self.check_block_sharing()?;
        }
        let mut caches = crate::copies::tiers::caches::find_caches(self.from, self.tree);
        let mut left_out = self.make_directories(&caches)?;
        let pieces = self.batches();
        let mut placed = self.copy_batches(&pieces)?;
        placed.sort_unstable_by_key(|(at, _)| *at);
        caches.extend(self.make_repository_mount_points()?);
        self.finish_directories();
        let now = file_clock();
        let mut entries = Vec::with_capacity(placed.len());
        for (at, placed) in placed {
            let Some(entry) = self.tree.entries.get(at) else { continue };
            let (seen, trouble) = match placed {
                FileOutcome::There(seen) => (Some(seen), None),
                FileOutcome::Short(seen, trouble) => (Some(seen), Some(trouble)),
                FileOutcome::Gone(trouble) => (None, Some(trouble)),
            };
            if let Some((trouble, path)) = trouble.zip(RelPath::parse(&entry.path).ok()) {
                left_out.push((path, trouble));
                continue;
            }
            if let Some(seen) = seen {
                let settled = entry.settled && is_change_settled(&seen, now);
                entries.push(TreeEntry { path: entry.path.clone(), seen, content: entry.content, settled });
            }
        }
        let seed = Tree { entries, dirs: self.tree.dirs.clone(), ..Tree::default() };
        Ok(FillReport { seed, caches, left_out })
    }

    /// Tries whether the tree's files can share their blocks with what is made here.
    fn check_block_sharing(&self) -> Result<(), UnavailableReason> {
        let with_content = |entry: &&TreeEntry| entry.seen.is_file() && entry.seen.size > 0;
        for entry in self.tree.entries.iter().filter(with_content) {
            let Ok(path) = RelPath::parse(&entry.path) else { continue };
            let Ok((from, _)) = self.from.open_file(&path, LinkPolicy::Refuse) else { continue };
            let probe = b".probe";
            let to = file_copy::create(self.to.as_fd(), probe).map_err(unavailable_reason)?;
            let shared = file_copy::share_blocks(&from, &to);
            remove_entry(self.to.as_fd(), probe).map_err(unavailable_reason)?;
            return match shared {
                Ok(()) => Ok(()),
                Err(Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL | Errno::NOSYS) => {
                    Err("the file system can't let files share their blocks".into())
                }
                Err(errno) => Err(unavailable_reason(errno)),
            };
        }
        Ok(())
    }

    fn make_directories(&self, caches: &[RelPath]) -> Result<Vec<(RelPath, String)>, WorkspaceError> {
        let make = |path: &[u8], mode: u32| match mkdirat(&self.to, path, to_mode(mode)) {
            Err(Errno::EXIST) if matches!(self.how, FillMethod::Complete(_)) => Ok(()),
            other => other.map_err(|errno| copy_error(path, errno)),
        };
        if matches!(self.how, FillMethod::Complete(_)) {
            self.remove_unlisted().map_err(|errno| copy_error(b".", errno))?;
        }
        for dir in &self.tree.dirs {
            make(&dir.path, 0o700)?;
        }
        let mut left_out = Vec::new();
        for dir in &self.tree.unreadable {
            make(dir, 0)?;
            if let Ok(path) = RelPath::parse(dir) {
                left_out.push((path, "there is no permission to read the directory".to_owned()));
            }
        }
        // A place for commands to see the real one at.
        for cache in caches {
            make(cache.as_bytes(), 0o755)?;
        }
        Ok(left_out)
    }

    /// Returns ranges of files that lie in one directory.
    fn batches(&self) -> Vec<std::ops::Range<usize>> {
        let mut pieces: Vec<std::ops::Range<usize>> = Vec::new();
        let mut here: Option<&[u8]> = None;
        for (at, entry) in self.tree.entries.iter().enumerate() {
            let dir = parent(&entry.path);
            match pieces.last_mut() {
                Some(piece) if here == Some(dir) && piece.len() < MAX_BATCH_FILES => piece.end = at + 1,
                _ => pieces.push(at..at + 1),
            }
            here = Some(dir);
        }
        pieces
    }

    fn copy_batches(
        &self,
        pieces: &[std::ops::Range<usize>],
    ) -> Result<Vec<(usize, FileOutcome)>, WorkspaceError> {
        let work = || {
            let mut done = Vec::new();
            while let Some(piece) = pieces.get(self.next.fetch_add(1, Ordering::Relaxed)) {
                self.copy_batch(piece.clone(), &mut done).inspect_err(|_| {
                    // The other thread is to stop too.
                    self.next.store(pieces.len(), Ordering::Relaxed);
                })?;
            }
            Ok::<_, WorkspaceError>(done)
        };
        if self.tree.entries.len() < MIN_PARALLEL_FILES {
            return work();
        }
        std::thread::scope(|scope| {
            let helper = scope.spawn(work);
            let ours = work();
            let lost = || WorkspaceError::Lost { what: "a part of the copy".to_owned() };
            let theirs = helper.join().unwrap_or_else(|_| Err(lost()));
            ours.and_then(|mut ours| {
                ours.extend(theirs?);
                Ok(ours)
            })
        })
    }

    /// Copies files of one directory.
    fn copy_batch(
        &self,
        range: std::ops::Range<usize>,
        done: &mut Vec<(usize, FileOutcome)>,
    ) -> Result<(), WorkspaceError> {
        let Some(first) = self.tree.entries.get(range.start) else { return Ok(()) };
        let dir = parent(&first.path);
        let begin: &[u8] = if dir.is_empty() { b"." } else { dir };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // Where the directory is gone or a link by now, each file says so.
        let from = self.from.open_beneath(begin, flags, LinkPolicy::Refuse).ok();
        let to = openat(&self.to, begin, flags | OFlags::NOFOLLOW, Mode::empty());
        let to = to.map_err(|errno| copy_error(begin, errno))?;
        for at in range {
            let Some(entry) = self.tree.entries.get(at) else { continue };
            let from = from.as_ref().map(AsFd::as_fd);
            let placed = self.place_file(from, to.as_fd(), entry);
            done.push((at, placed.map_err(|trouble| trouble.into_error(&entry.path))?));
        }
        Ok(())
    }

    fn place_file(
        &self,
        from: Option<BorrowedFd<'_>>,
        to: BorrowedFd<'_>,
        entry: &TreeEntry,
    ) -> Result<FileOutcome, CopyFailure> {
        let name = last_component(&entry.path);
        if let FillMethod::Complete(others) = &self.how {
            if let Some(placed) = from.and_then(|from| reuse_existing_file(from, to, name, entry, others)) {
                return Ok(placed);
            }
            remove_entry(to, name)?;
        }
        if entry.seen.is_link() {
            return self.place_link(from, to, name, entry);
        }
        let opened = from.ok_or(Errno::NOENT).and_then(|from| file_copy::open(from, name));
        let (from, stat) = match opened {
            Ok(opened) => opened,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO) => {
                return self.restore_file(to, name, entry);
            }
            Err(Errno::ACCESS | Errno::PERM) => return create_placeholder(to, name, entry),
            Err(errno) => return Err(errno.into()),
        };
        let kept = matches!(entry.content, EntryContent::Hashed { .. });
        let before = FileStat::of(&stat);
        if before != entry.seen && kept {
            return self.restore_file(to, name, entry);
        }
        let made = file_copy::create(to, name)?;
        let how = if self.how == FillMethod::Clone { CopyMethod::Share } else { CopyMethod::Copy };
        file_copy::copy_bytes(&from, &stat, &made, how)?;
        if kept && fstat(&from).map(|stat| FileStat::of(&stat))? != before {
            remove_entry(to, name)?;
            return self.restore_file(to, name, entry);
        }
        file_copy::copy_metadata(&from, &before, &made)?;
        Ok(FileOutcome::There(FileStat::of(&fstat(&made)?)))
    }

    fn place_link(
        &self,
        from: Option<BorrowedFd<'_>>,
        to: BorrowedFd<'_>,
        name: &[u8],
        entry: &TreeEntry,
    ) -> Result<FileOutcome, CopyFailure> {
        let same = from.filter(|from| {
            let stat = statat(from, name, AtFlags::SYMLINK_NOFOLLOW);
            stat.is_ok_and(|stat| FileStat::of(&stat) == entry.seen)
        });
        match same.map(|from| readlinkat(from, name, Vec::new())) {
            Some(Ok(target)) => {
                symlinkat(target.as_c_str(), to, name)?;
                finish_link(to, name, entry)
            }
            _ => self.restore_file(to, name, entry),
        }
    }

    /// Writes a file as the checkpoint has it: the tree's own is another one by now.
    fn restore_file(
        &self,
        to: BorrowedFd<'_>,
        name: &[u8],
        entry: &TreeEntry,
    ) -> Result<FileOutcome, CopyFailure> {
        let bytes = match entry.content {
            EntryContent::Hashed { hash, .. } => self.blob_store.get(&hash).map_err(CopyFailure::Whole)?,
            EntryContent::Unkept => None,
        };
        let Some(bytes) = bytes else {
            return Ok(FileOutcome::Gone("it vanished while the tree was copied".to_owned()));
        };
        if entry.seen.is_link() {
            symlinkat(bytes.as_slice(), to, name)?;
            return finish_link(to, name, entry);
        }
        let made = file_copy::create(to, name)?;
        write_all(&made, &bytes)?;
        file_copy::set_metadata(&entry.seen, &made)?;
        Ok(FileOutcome::There(FileStat::of(&fstat(&made)?)))
    }

    /// Makes mount points at which commands see the tree's repositories, and returns them. A file
    /// or link that points to a repository is copied.
    fn make_repository_mount_points(&self) -> Result<Vec<RelPath>, WorkspaceError> {
        let mut places = Vec::new();
        for path in &self.tree.repositories {
            let dir = parent(path);
            let begin: &[u8] = if dir.is_empty() { b"." } else { dir };
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let (from, to) = (
                self.from.open_beneath(begin, flags, LinkPolicy::Refuse),
                openat(&self.to, begin, flags | OFlags::NOFOLLOW, Mode::empty()),
            );
            // Gone by now, or in a directory that isn't part of the copy.
            let (Ok(from), Ok(to)) = (from, to) else { continue };
            let placed = place_git_entry(from.as_fd(), to.as_fd(), last_component(path));
            let is_place = placed.map_err(|errno| copy_error(path, errno))?;
            places.extend(RelPath::parse(path).ok().filter(|_| is_place));
        }
        Ok(places)
    }

    /// Sets the metadata of directories as their originals have it, the innermost first, because
    /// making a file changes its directory's time.
    fn finish_directories(&self) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root: &[u8] = b".";
        for path in self.tree.dirs.iter().rev().map(|dir| dir.path.as_slice()).chain([root]) {
            let from = self.from.open_beneath(path, flags, LinkPolicy::Refuse);
            let to = openat(&self.to, path, flags | OFlags::NOFOLLOW, Mode::empty());
            if let (Ok(from), Ok(to)) = (from, to) {
                file_copy::copy_directory_metadata(from.as_fd(), &to);
            }
        }
    }

    /// Removes files and directories that no checkpoint has.
    fn remove_unlisted(&self) -> Result<(), Errno> {
        let files = self.tree.entries.iter().map(|entry| entry.path.as_slice());
        let files: HashSet<&[u8]> = files.collect();
        let dirs: HashSet<&[u8]> = self.tree.dirs.iter().map(|dir| dir.path.as_slice()).collect();
        let mut open: Vec<Vec<u8>> = vec![Vec::new()];
        while let Some(path) = open.pop() {
            let begin: &[u8] = if path.is_empty() { b"." } else { &path };
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let dir = openat(&self.to, begin, flags, Mode::empty())?;
            for name in crate::files::directory::entry_names(&dir)? {
                let full =
                    if path.is_empty() { name.clone() } else { [&path, b"/".as_slice(), &name].concat() };
                let stat = statat(&dir, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW)?;
                let is_dir = FileStat::of(&stat).is_dir();
                let known = if is_dir { &dirs } else { &files };
                if !known.contains(full.as_slice()) {
                    remove_entry(dir.as_fd(), &name)?;
                } else if is_dir {
                    open.push(full);
                }
            }
        }
        Ok(())
    }
}

/// A file that can't be copied: one of its own, or one that ends the whole.
enum CopyFailure {
    One(Errno),
    Whole(WorkspaceError),
}

impl From<Errno> for CopyFailure {
    fn from(errno: Errno) -> Self {
        Self::One(errno)
    }
}

impl CopyFailure {
    fn into_error(self, path: &[u8]) -> WorkspaceError {
        match self {
            Self::One(errno) => copy_error(path, errno),
            Self::Whole(error) => error,
        }
    }
}

/// Returns the existing file in the copy if its content is that of the tree, after setting its
/// metadata.
fn reuse_existing_file(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    name: &[u8],
    entry: &TreeEntry,
    others: &HashSet<Vec<u8>>,
) -> Option<FileOutcome> {
    let EntryContent::Hashed { hash, .. } = entry.content else { return None };
    if others.contains(&entry.path) || entry.seen.is_link() {
        return None;
    }
    let (original, stat) = file_copy::open(from, name).ok()?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let there = openat(to, name, flags, Mode::empty()).ok()?;
    let seen = FileStat::of(&fstat(&there).ok()?);
    let alike = FileStat::of(&stat) == entry.seen && seen.is_file() && seen.size == entry.seen.size;
    if !alike || hash_file(&there).ok()? != hash {
        return None;
    }
    file_copy::copy_metadata(&original, &entry.seen, &there).ok()?;
    Some(FileOutcome::There(FileStat::of(&fstat(&there).ok()?)))
}

/// Creates a file of the same size and mode for one that can't be read, so that it doesn't look
/// deleted.
fn create_placeholder(
    to: BorrowedFd<'_>,
    name: &[u8],
    entry: &TreeEntry,
) -> Result<FileOutcome, CopyFailure> {
    let made = file_copy::create(to, name)?;
    ftruncate(&made, entry.seen.size)?;
    file_copy::set_metadata(&entry.seen, &made)?;
    let trouble = "there is no permission to read it; the copy has zeros in its place".to_owned();
    Ok(FileOutcome::Short(FileStat::of(&fstat(&made)?), trouble))
}

fn finish_link(to: BorrowedFd<'_>, name: &[u8], entry: &TreeEntry) -> Result<FileOutcome, CopyFailure> {
    file_copy::set_link_metadata(to, name, &entry.seen)?;
    let stat = statat(to, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileOutcome::There(FileStat::of(&stat)))
}

/// Makes what is named `.git`: an empty directory for a directory, the same file or link for a file
/// or link. Whether it is a directory.
fn place_git_entry(from: BorrowedFd<'_>, to: BorrowedFd<'_>, name: &[u8]) -> Result<bool, Errno> {
    let Ok(stat) = statat(from, name, AtFlags::SYMLINK_NOFOLLOW) else { return Ok(false) };
    let seen = FileStat::of(&stat);
    if seen.is_dir() {
        return mkdirat(to, name, to_mode(0o700)).map(|()| true);
    }
    if seen.is_link() {
        symlinkat(readlinkat(from, name, Vec::new())?.as_c_str(), to, name)?;
    } else if let Ok((pointer, stat)) = file_copy::open(from, name) {
        let made = file_copy::create(to, name)?;
        file_copy::copy_bytes(&pointer, &stat, &made, CopyMethod::Copy)?;
        file_copy::copy_metadata(&pointer, &FileStat::of(&stat), &made)?;
    }
    Ok(false)
}

fn parent(path: &[u8]) -> &[u8] {
    let cut = path.iter().rposition(|&byte| byte == b'/').unwrap_or_default();
    path.get(..cut).unwrap_or_default()
}

fn copy_error(path: &[u8], errno: Errno) -> WorkspaceError {
    match RelPath::parse(path) {
        Ok(path) => WorkspaceError::from_errno("copy", &path, errno),
        Err(_) => crate::state::lock::state_error("fill", Path::new("the copy"), errno.into()),
    }
}

fn unavailable_reason(errno: Errno) -> UnavailableReason {
    UnavailableReason(std::io::Error::from(errno).to_string())
}
