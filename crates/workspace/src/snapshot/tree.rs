//! The whole tree at one moment: signatures of all files that aren't ignored, and hashes of their contents.
//!
//! A snapshot is made from the one before: a file whose signature (size, mtime, ctime, inode, mode) is the same
//! is not read again, unless it was changed within the granularity of the clock before it was read last (git's
//! «racily clean» entries). Directories are recorded by name and mode, so that empty ones come back too.

use std::cmp::Ordering as Order;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use journeyman_protocol::{ContentHash, FileChange, FileChangeKind, RelPath};
use journeyman_store::Durability;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::commands::heartbeat::Beat;
use crate::contents::store::{PACK_FROM, Pack, Vault};
use crate::error::{NotAFile, WorkspaceError};
use crate::files::root_dir::{Door, Links, Seen, hash_pieces, read_up_to};
use crate::hard_links::HardLinks;
use crate::ignored::Ignored;
use crate::journal::Mark;
use crate::limits::Limits;
use crate::snapshot::stored::Stored;
use crate::walk::known::Index;
use crate::walk::{Walked, WalkedDir, WalkedFile};
use crate::workspace::Since;

/// So many files have to be read before a second thread is worth its start.
const HELP_FROM: usize = 48;
/// File times come from a clock that ticks at least 100 times a second on every kernel we run on; twice that.
const TICK_NS: i64 = 20_000_000;
/// The same.
pub(crate) const TICK: std::time::Duration = std::time::Duration::from_nanos(TICK_NS.unsigned_abs());
/// So often a file is looked at that changes between looking and opening.
const LOOKS: usize = 8;
/// Some file systems keep whole or even seconds only.
const COARSE_TICK_NS: i64 = 2_000_000_000;

/// Whether contents are kept or only looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Into the blobs, so that they can be restored.
    Contents,
    /// Hashes only.
    Hashes,
}

/// What is known of a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// Its hash, and whether the blobs have it.
    Hashed { hash: ContentHash, kept: bool },
    /// Too large to keep: only the signature tells whether it changed.
    Unkept,
}

/// One file or link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) path: Vec<u8>,
    pub(crate) seen: Seen,
    pub(crate) content: Content,
    /// Whether the same signature means the same content from now on.
    pub(crate) settled: bool,
}

/// A file's kind, as the journal names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    File,
    Link,
}

/// A file's state, as the journal and checkpoints hold it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileState {
    pub(crate) kind: Kind,
    /// Permission bits.
    pub(crate) mode: u32,
    pub(crate) size: u64,
    /// Absent for what is too large to hash in passing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hash: Option<ContentHash>,
}

impl FileState {
    /// Whether kind and content are the same; without a hash, the size decides.
    pub(crate) fn same_content(&self, other: &Self) -> bool {
        self.kind == other.kind
            && match (self.hash, other.hash) {
                (Some(ours), Some(theirs)) => ours == theirs,
                _ => self.size == other.size,
            }
    }
}

impl Entry {
    pub(crate) fn state(&self) -> FileState {
        let hash = match self.content {
            Content::Hashed { hash, .. } => Some(hash),
            Content::Unkept => None,
        };
        let kind = if self.seen.is_link() { Kind::Link } else { Kind::File };
        FileState { kind, mode: self.seen.permissions(), size: self.seen.size, hash }
    }

    /// Whether content, kind or permissions differ.
    fn differs(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.state(), other.state());
        let content = match (ours.hash, theirs.hash) {
            // A checkpoint has no signatures: there the size alone can tell.
            (None, None) if self.seen.ino != 0 && other.seen.ino != 0 => {
                (self.seen.mtime, self.seen.ino) != (other.seen.mtime, other.seen.ino)
            }
            _ => false,
        };
        content || !ours.same_content(&theirs) || (ours.mode != theirs.mode && ours.kind == Kind::File)
    }
}

/// The tree at one moment.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) entries: Vec<Entry>,
    pub(crate) dirs: Vec<WalkedDir>,
    pub(crate) unreadable: Vec<Vec<u8>>,
    /// Everything named `.git`, in any case. It is no part of what a checkpoint or an undo is about.
    pub(crate) repositories: Vec<Vec<u8>>,
    /// What tells the rules by which files were chosen, but for those in the tree itself; `None` where that isn't
    /// known.
    pub(crate) rules: Option<ContentHash>,
    pub(crate) index: OnceLock<Index>,
    pub(crate) steady: OnceLock<bool>,
    /// Where it lies among the blobs, if it was stored.
    pub(crate) stored: OnceLock<Stored>,
}

impl Tree {
    /// What lies in which directory.
    pub(crate) fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::of(&self.entries, &self.dirs))
    }

    /// Whether the same signatures mean this very tree, with every content kept that may be.
    pub(crate) fn is_steady(&self, limits: &Limits) -> bool {
        *self.steady.get_or_init(|| {
            let mut room = Room::of(limits);
            self.entries.iter().all(|entry| {
                let fits = room.fits(entry.seen.size);
                entry.settled
                    && match entry.content {
                        Content::Hashed { kept, .. } => fits && kept,
                        Content::Unkept => !fits,
                    }
            })
        })
    }

    /// Whether nothing that counts differs.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
            || (self.dirs == other.dirs
                && self.unreadable == other.unreadable
                && self.entries.len() == other.entries.len()
                && self.entries.iter().zip(&other.entries).all(|(a, b)| a.path == b.path && !a.differs(b)))
    }
}

/// What may still be kept of a tree.
struct Room<'a> {
    limits: &'a Limits,
    taken: u64,
}

impl<'a> Room<'a> {
    fn of(limits: &'a Limits) -> Self {
        Self { limits, taken: 0 }
    }

    /// Whether the next file, in the order of paths, is kept.
    fn fits(&mut self, size: u64) -> bool {
        let taken = self.taken.saturating_add(size);
        let most = self.limits.kept_project_bytes.min(self.limits.project_bytes);
        let fits = size <= self.limits.kept_file_bytes && taken <= most;
        if fits {
            self.taken = taken;
        }
        fits
    }
}

/// The tree before a command: give it back to [`Workspace::command_end`](crate::workspace::Workspace::command_end).
///
/// It is cheap to clone. While one that was made for a call or for checks lives, so does their sign of life (see
/// [`Workspace::seal_call`](crate::workspace::Workspace::seal_call)), which takes a descriptor and a sleeping thread.
#[derive(Debug, Clone)]
pub struct TreeSnapshot {
    pub(crate) tree: Arc<Tree>,
    pub(crate) beat: Option<Arc<Beat>>,
    /// Where the journal ended, so that what others journal meanwhile isn't taken for the command's doing.
    pub(crate) journal_end: Mark,
    pub(crate) ignored: Ignored,
    pub(crate) hard_links: Arc<HardLinks>,
}

impl TreeSnapshot {
    pub(crate) fn since(&self) -> Since {
        Since::Look(self.journal_end, self.beat.as_ref().map_or(i64::MIN, |beat| beat.began))
    }

    /// How many files it covers.
    #[must_use]
    pub fn files(&self) -> usize {
        self.tree.entries.len()
    }

    /// Everything named `.git`, in any letter case (a directory, a file or a link), that the walk came by: at any
    /// depth, the root's own included, but not inside of ignored directories. Sorted.
    #[must_use]
    pub fn repositories(&self) -> Vec<RelPath> {
        self.tree.repositories.iter().filter_map(|path| RelPath::parse(path).ok()).collect()
    }

    /// The file that the command's processes are to keep locked (`flock`, shared) while one of them lives, so that
    /// after a crash nothing is taken back that is still being made; `None` for one that gives no sign of life.
    #[must_use]
    pub fn witness(&self) -> Option<std::path::PathBuf> {
        self.beat.as_ref().map(|beat| beat.witness())
    }

    /// The files whose content isn't kept, because they or all together are too large: a command that changes
    /// them can't be undone. Those among ignored files come last.
    #[must_use]
    pub fn not_undoable(&self) -> Vec<RelPath> {
        let unkept = self.tree.entries.iter().filter(|entry| entry.content == Content::Unkept);
        let unkept = unkept.filter_map(|entry| RelPath::parse(&entry.path).ok());
        unkept.chain(self.ignored.not_undoable().cloned()).collect()
    }
}

/// A snapshot being made.
pub(crate) struct Capture<'a> {
    pub(crate) door: &'a Door,
    pub(crate) vault: &'a Vault,
    pub(crate) limits: &'a Limits,
    pub(crate) keep: Keep,
}

/// What [`Capture::take`] found.
pub(crate) struct Captured {
    pub(crate) tree: Arc<Tree>,
    /// How many files were read.
    pub(crate) read: usize,
}

impl Capture<'_> {
    /// Makes a snapshot of what a walk found. When nothing differs from `last`, it is `last` itself.
    pub(crate) fn take(&self, walked: Walked, last: &Arc<Tree>) -> Result<Captured, WorkspaceError> {
        if walked.overflow {
            return Err(WorkspaceError::TooManyFiles { limit: self.limits.max_files });
        }
        if walked.same {
            return Ok(Captured { tree: last.clone(), read: 0 });
        }
        let now = file_clock();
        let mut reused = 0_usize;
        let mut entries = Vec::with_capacity(walked.files.len());
        let mut to_read = Vec::new();
        let mut room = Room::of(self.limits);
        for WalkedFile { path, seen, known } in walked.files {
            let Some(seen) = seen else { continue };
            let known = known.and_then(|at| last.entries.get(at as usize));
            let fits = room.fits(seen.size);
            let reusable =
                known.filter(|entry| entry.seen == seen && entry.settled).map(|entry| entry.content);
            match reusable {
                Some(Content::Hashed { hash, kept }) if fits && (kept || self.keep == Keep::Hashes) => {
                    reused += 1;
                    entries.push(Entry {
                        path,
                        seen,
                        content: Content::Hashed { hash, kept },
                        settled: true,
                    });
                }
                Some(Content::Unkept) if !fits => {
                    reused += 1;
                    entries.push(Entry { path, seen, content: Content::Unkept, settled: true });
                }
                _ => {
                    if fits {
                        to_read.push(entries.len());
                    }
                    // What was known of it spares storing the same content again.
                    let content = known.filter(|_| fits).map_or(Content::Unkept, |entry| entry.content);
                    entries.push(Entry { path, seen, content, settled: true });
                }
            }
        }
        let same = reused == entries.len()
            && reused == last.entries.len()
            && walked.dirs == last.dirs
            && walked.unreadable == last.unreadable
            && walked.repositories == last.repositories
            && walked.rules == last.rules;
        if same {
            return Ok(Captured { tree: last.clone(), read: 0 });
        }
        let read = to_read.len();
        let gone = self.read_all(&mut entries, &to_read, now)?;
        if !gone.is_empty() {
            let mut index = 0;
            let mut gone = gone.iter().peekable();
            entries.retain(|_| {
                index += 1;
                gone.next_if(|at| **at == index - 1).is_none()
            });
        }
        let Walked { dirs, unreadable, repositories, rules, .. } = walked;
        let tree = Tree { entries, dirs, unreadable, repositories, rules, ..Tree::default() };
        Ok(Captured { tree: Arc::new(tree), read })
    }

    /// Reads the files at these places; gives the places of those that are gone by now, in order.
    fn read_all(
        &self,
        entries: &mut [Entry],
        places: &[usize],
        now: i64,
    ) -> Result<Vec<usize>, WorkspaceError> {
        let next = AtomicUsize::new(0);
        let shared: &[Entry] = entries;
        let packs = self.keep == Keep::Contents && places.len() >= PACK_FROM;
        let work = || {
            let mut pack = if packs { self.vault.begin_pack() } else { None };
            let mut done = Vec::new();
            while let Some(place) = places.get(next.fetch_add(1, Ordering::Relaxed)) {
                let Some(entry) = shared.get(*place) else { continue };
                done.push((*place, self.read(entry, now, &mut pack)?));
            }
            if let Some(pack) = &mut pack {
                pack.close()?;
            }
            Ok::<_, WorkspaceError>(done)
        };
        let mut done = if places.len() < HELP_FROM {
            work()?
        } else {
            std::thread::scope(|scope| {
                let helper = scope.spawn(work);
                let ours = work();
                let lost =
                    || WorkspaceError::Lost { what: "a part of the tree that was being read".to_owned() };
                let theirs = helper.join().unwrap_or_else(|_| Err(lost()));
                ours.and_then(|mut ours| {
                    ours.extend(theirs?);
                    Ok(ours)
                })
            })?
        };
        done.sort_unstable_by_key(|(place, _)| *place);
        let mut gone = Vec::new();
        for (place, entry) in done {
            match (entry, entries.get_mut(place)) {
                (Some(entry), Some(slot)) => *slot = entry,
                _ => gone.push(place),
            }
        }
        Ok(gone)
    }

    /// Reads one file or link; `None` when it is gone, or no longer a file.
    fn read(
        &self,
        entry: &Entry,
        now: i64,
        pack: &mut Option<Pack<'_>>,
    ) -> Result<Option<Entry>, WorkspaceError> {
        let Ok(path) = RelPath::parse(&entry.path) else { return Ok(None) };
        if entry.seen.is_link() {
            return match self.door.read_link(&path) {
                Ok(target) => self.entry(entry, &target, entry.seen, is_settled(&entry.seen, now), pack),
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::INVAL) => Ok(None),
                Err(errno) => Err(self.door.fail("read", &path, errno)),
            };
        }
        let (file, before) = match self.door.read_file(&path, Links::Refuse) {
            Ok(opened) => opened,
            Err(WorkspaceError::NotFound { .. } | WorkspaceError::Raced { .. }) => return Ok(None),
            Err(WorkspaceError::NotAFile { kind, .. }) if kind != NotAFile::Other => return Ok(None),
            // What can't be read can't be kept; its signature still tells a change.
            Err(WorkspaceError::Denied { .. }) => {
                return Ok(Some(Entry { content: Content::Unkept, ..entry.clone() }));
            }
            Err(other) => return Err(other),
        };
        let failed = |source| WorkspaceError::Io { action: "read", path: path.clone(), source };
        let Some(bytes) = read_up_to(&file, before.size, self.limits.kept_file_bytes).map_err(failed)? else {
            let content = Content::Unkept;
            return Ok(Some(Entry { seen: before, content, settled: true, path: entry.path.clone() }));
        };
        let after =
            rustix::fs::fstat(&file).map(|stat| Seen::of(&stat)).map_err(|errno| failed(errno.into()))?;
        // A rule file that changed since the walk isn't the one whose rules held in it.
        let stood_still = entry.seen == before && before == after && bytes.len() as u64 == before.size;
        let settled = is_settled(&before, now) && stood_still;
        self.entry(entry, &bytes, before, settled, pack)
    }

    fn entry(
        &self,
        entry: &Entry,
        bytes: &[u8],
        seen: Seen,
        settled: bool,
        pack: &mut Option<Pack<'_>>,
    ) -> Result<Option<Entry>, WorkspaceError> {
        let known = match entry.content {
            Content::Hashed { hash, kept: true } => Some(hash),
            _ => None,
        };
        let hash = match self.keep {
            Keep::Hashes => ContentHash::of(bytes),
            Keep::Contents => match known.filter(|known| *known == ContentHash::of(bytes)) {
                Some(known) => known,
                None => match pack {
                    Some(pack) => pack.put(bytes)?,
                    None => self.vault.put(bytes, Durability::Later)?,
                },
            },
        };
        let content = Content::Hashed { hash, kept: self.keep == Keep::Contents };
        Ok(Some(Entry { path: entry.path.clone(), seen, content, settled }))
    }
}

/// Whether the file's last change is long enough before `now` that a later one must show in its signature.
pub(crate) fn is_settled(seen: &Seen, now: i64) -> bool {
    let newest = seen.mtime.max(seen.ctime);
    let coarse = seen.mtime % 1_000_000_000 == 0 && seen.ctime % 1_000_000_000 == 0;
    let tick = if coarse { COARSE_TICK_NS } else { TICK_NS };
    newest < now.saturating_sub(tick)
}

/// The clock that the kernel stamps files with. It is compared with file times and nothing else: no result
/// depends on what time it is.
pub(crate) fn file_clock() -> i64 {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let clock = rustix::time::ClockId::RealtimeCoarse;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let clock = rustix::time::ClockId::Realtime;
    let now = rustix::time::clock_gettime(clock);
    now.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec)
}

/// One difference between two trees.
#[derive(Debug, Clone)]
pub(crate) struct Difference {
    pub(crate) path: RelPath,
    pub(crate) before: Option<FileState>,
    pub(crate) after: Option<FileState>,
}

impl Difference {
    pub(crate) fn file_change(&self) -> FileChange {
        FileChange { path: self.path.clone(), kind: kind_of(self.before.is_some(), self.after.is_some()) }
    }
}

/// What happened to a file that was there before or is there after.
pub(crate) fn kind_of(before: bool, after: bool) -> FileChangeKind {
    match (before, after) {
        (false, _) => FileChangeKind::Added,
        (true, false) => FileChangeKind::Deleted,
        (true, true) => FileChangeKind::Modified,
    }
}

/// All differences between two trees, sorted. What lies in a directory that couldn't be read in one of them is
/// left out: nothing is known of it.
pub(crate) fn differences(before: &Tree, after: &Tree) -> Vec<Difference> {
    let unknown = |path: &[u8]| {
        before.unreadable.iter().chain(&after.unreadable).any(|dir| {
            dir.is_empty()
                || path.strip_prefix(dir.as_slice()).is_some_and(|rest| rest.first() == Some(&b'/'))
        })
    };
    let mut found = Vec::new();
    let mut add = |path: &[u8], before: Option<&Entry>, after: Option<&Entry>| {
        if unknown(path) {
            return;
        }
        if let Ok(path) = RelPath::parse(path) {
            let (before, after) = (before.map(Entry::state), after.map(Entry::state));
            found.push(Difference { path, before, after });
        }
    };
    let (mut old, mut new) = (before.entries.iter().peekable(), after.entries.iter().peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => break,
            (Some(_), None) => Order::Less,
            (None, Some(_)) => Order::Greater,
            (Some(old), Some(new)) => old.path.cmp(&new.path),
        };
        match order {
            Order::Less => {
                if let Some(gone) = old.next() {
                    add(&gone.path, Some(gone), None);
                }
            }
            Order::Greater => {
                if let Some(made) = new.next() {
                    add(&made.path, None, Some(made));
                }
            }
            Order::Equal => {
                if let (Some(old), Some(new)) = (old.next(), new.next())
                    && old.differs(new)
                {
                    add(&old.path, Some(old), Some(new));
                }
            }
        }
    }
    found
}

/// The directories that are only in `there`, sorted.
pub(crate) fn directories_only_in(there: &Tree, not_there: &Tree) -> Vec<WalkedDir> {
    let known: std::collections::HashSet<&[u8]> =
        not_there.dirs.iter().map(|dir| dir.path.as_slice()).collect();
    let mut only: Vec<WalkedDir> =
        there.dirs.iter().filter(|dir| !known.contains(dir.path.as_slice())).cloned().collect();
    only.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    only
}

/// What is at the canonical `path` right now, with its content hashed; `None` when nothing is, also because a link
/// stands where a directory was.
///
/// # Errors
/// [`WorkspaceError::NotAFile`] for a directory and everything else without content;
/// [`WorkspaceError::Raced`] when it is another thing at each look.
pub(crate) fn observe(door: &Door, path: &RelPath) -> Result<Option<(FileState, Seen)>, WorkspaceError> {
    for _ in 0..LOOKS {
        let look = door.look(path).map_err(|errno| door.fail("look at", path, errno))?;
        let Some(seen) = look else { return Ok(None) };
        if seen.is_link() {
            let Ok(target) = door.read_link(path) else { continue };
            let (size, hash) = (target.len() as u64, Some(ContentHash::of(&target)));
            return Ok(Some((FileState { kind: Kind::Link, mode: seen.permissions(), size, hash }, seen)));
        }
        let (file, seen) = match door.read_file(path, Links::Refuse) {
            // Gone, or a link by now: the next look tells.
            Err(WorkspaceError::NotFound { .. } | WorkspaceError::Raced { .. }) => continue,
            other => other?,
        };
        let hash = hash_pieces(&file).map_err(|source| WorkspaceError::Io {
            action: "read",
            path: path.clone(),
            source,
        })?;
        let (kind, mode) = (Kind::File, seen.permissions());
        return Ok(Some((FileState { kind, mode, size: seen.size, hash: Some(hash) }, seen)));
    }
    Err(WorkspaceError::Raced { path: path.clone() })
}
