//! Reading the files that a walk found, to make a tree of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use journeyman_protocol::{ContentHash, RelPath};
use journeyman_store::Durability;
use rustix::io::Errno;

use crate::contents::store::{BlobStore, MIN_FILES_TO_PACK, PackBuilder};
use crate::error::{NotAFile, WorkspaceError};
use crate::files::root_dir::{LinkPolicy, RootDir, read_up_to};
use crate::files::stat::{FileStat, file_clock, is_change_settled};
use crate::limits::Limits;
use crate::snapshot::entry::{EntryContent, TreeEntry};
use crate::snapshot::tree::{Tree, TreeBudget};
use crate::walk::plan::{Walked, WalkedFile};

/// Minimum number of files to read for which a second thread is worth its start.
pub(crate) const MIN_PARALLEL_FILES: usize = 48;

/// True if contents are kept or only looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentMode {
    /// Into the blobs, so that they can be restored.
    Contents,
    /// Hashes only.
    Hashes,
}

/// A snapshot being made.
pub(crate) struct Capture<'a> {
    pub(crate) root_dir: &'a RootDir,
    pub(crate) blob_store: &'a BlobStore,
    pub(crate) limits: &'a Limits,
    pub(crate) keep: ContentMode,
}

/// The result of [`Capture::take_snapshot`].
pub(crate) struct CapturedTree {
    pub(crate) tree: Arc<Tree>,
    /// The number of files read.
    pub(crate) read: usize,
}

impl Capture<'_> {
    /// Makes a snapshot of what a walk found. When nothing differs from `last`, it is `last`
    /// itself.
    pub(crate) fn take_snapshot(
        &self,
        walked: Walked,
        last: &Arc<Tree>,
    ) -> Result<CapturedTree, WorkspaceError> {
        if walked.overflow {
            return Err(WorkspaceError::TooManyFiles { limit: self.limits.max_files });
        }
        if walked.same {
            return Ok(CapturedTree { tree: last.clone(), read: 0 });
        }
        let now = file_clock();
        let mut reused = 0_usize;
        let mut entries = Vec::with_capacity(walked.files.len());
        let mut to_read = Vec::new();
        let mut room = TreeBudget::of(self.limits);
        for WalkedFile { path, seen, known } in walked.files {
            let Some(seen) = seen else { continue };
            let known = known.and_then(|at| last.entries.get(at as usize));
            let fits = room.try_reserve(seen.size);
            let reusable =
                known.filter(|entry| entry.seen == seen && entry.settled).map(|entry| entry.content);
            match reusable {
                Some(EntryContent::Hashed { hash, kept })
                    if fits && (kept || self.keep == ContentMode::Hashes) =>
                {
                    reused += 1;
                    entries.push(TreeEntry {
                        path,
                        seen,
                        content: EntryContent::Hashed { hash, kept },
                        settled: true,
                    });
                }
                Some(EntryContent::Unkept) if !fits => {
                    reused += 1;
                    entries.push(TreeEntry { path, seen, content: EntryContent::Unkept, settled: true });
                }
                _ => {
                    if fits {
                        to_read.push(entries.len());
                    }
                    // What was known of it spares storing the same content again.
                    let content = known.filter(|_| fits).map_or(EntryContent::Unkept, |entry| entry.content);
                    entries.push(TreeEntry { path, seen, content, settled: true });
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
            return Ok(CapturedTree { tree: last.clone(), read: 0 });
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
        Ok(CapturedTree { tree: Arc::new(tree), read })
    }

    /// Reads the files at these places. Returns the places of those that are gone by now, in order.
    pub(crate) fn read_all(
        &self,
        entries: &mut [TreeEntry],
        places: &[usize],
        now: i64,
    ) -> Result<Vec<usize>, WorkspaceError> {
        let next = AtomicUsize::new(0);
        let shared: &[TreeEntry] = entries;
        let packs = self.keep == ContentMode::Contents && places.len() >= MIN_FILES_TO_PACK;
        let work = || {
            let mut pack = if packs { self.blob_store.begin_pack() } else { None };
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
        let mut done = if places.len() < MIN_PARALLEL_FILES {
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
    pub(crate) fn read(
        &self,
        entry: &TreeEntry,
        now: i64,
        pack: &mut Option<PackBuilder<'_>>,
    ) -> Result<Option<TreeEntry>, WorkspaceError> {
        let Ok(path) = RelPath::parse(&entry.path) else { return Ok(None) };
        if entry.seen.is_link() {
            return match self.root_dir.read_link(&path) {
                Ok(target) => {
                    self.capture_entry(entry, &target, entry.seen, is_change_settled(&entry.seen, now), pack)
                }
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::INVAL) => Ok(None),
                Err(errno) => Err(self.root_dir.error_for("read", &path, errno)),
            };
        }
        let (file, before) = match self.root_dir.open_file(&path, LinkPolicy::Refuse) {
            Ok(opened) => opened,
            Err(WorkspaceError::NotFound { .. } | WorkspaceError::Raced { .. }) => return Ok(None),
            Err(WorkspaceError::NotAFile { kind, .. }) if kind != NotAFile::Other => return Ok(None),
            // What can't be read can't be kept; its signature still tells a change.
            Err(WorkspaceError::Denied { .. }) => {
                return Ok(Some(TreeEntry { content: EntryContent::Unkept, ..entry.clone() }));
            }
            Err(other) => return Err(other),
        };
        let failed = |source| WorkspaceError::Io { action: "read", path: path.clone(), source };
        let Some(bytes) = read_up_to(&file, before.size, self.limits.kept_file_bytes).map_err(failed)? else {
            let content = EntryContent::Unkept;
            return Ok(Some(TreeEntry { seen: before, content, settled: true, path: entry.path.clone() }));
        };
        let after =
            rustix::fs::fstat(&file).map(|stat| FileStat::of(&stat)).map_err(|errno| failed(errno.into()))?;
        // A rule file that changed since the walk isn't the one whose rules held in it.
        let stood_still = entry.seen == before && before == after && bytes.len() as u64 == before.size;
        let settled = is_change_settled(&before, now) && stood_still;
        self.capture_entry(entry, &bytes, before, settled, pack)
    }

    pub(crate) fn capture_entry(
        &self,
        entry: &TreeEntry,
        bytes: &[u8],
        seen: FileStat,
        settled: bool,
        pack: &mut Option<PackBuilder<'_>>,
    ) -> Result<Option<TreeEntry>, WorkspaceError> {
        let known = match entry.content {
            EntryContent::Hashed { hash, kept: true } => Some(hash),
            _ => None,
        };
        let hash = match self.keep {
            ContentMode::Hashes => ContentHash::of(bytes),
            ContentMode::Contents => match known.filter(|known| *known == ContentHash::of(bytes)) {
                Some(known) => known,
                None => match pack {
                    Some(pack) => pack.put(bytes)?,
                    None => self.blob_store.put(bytes, Durability::Later)?,
                },
            },
        };
        let content = EntryContent::Hashed { hash, kept: self.keep == ContentMode::Contents };
        Ok(Some(TreeEntry { path: entry.path.clone(), seen, content, settled }))
    }
}
