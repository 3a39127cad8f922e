//! Reading one directory.

use std::cmp::Ordering as Order;
use std::iter::{Copied, Peekable};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::slice::Iter;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::{AtFlags, FileType, OFlags, statat};
use rustix::io::Errno;

use crate::error::is_transient_errno;
use crate::files::root_dir::LinkPolicy;
use crate::files::stat::{FileStat, is_change_settled};
use crate::limits::MAX_DEPTH;
use crate::rules::RuleLayer;
use crate::snapshot::tree_index::EntryRef;
use crate::walk::last_tree::LastTree;
use crate::walk::plan::ListedDir;
use crate::walk::visited::{DirTask, VisitedContent, VisitedDir, VisitedItem};
use crate::walk::walk_state::WalkState;
use journeyman_ignore_rules::walk::{DirNames, compare_paths};
use journeyman_ignore_rules::{CACHE_TAG_FILE, RULE_FILES, RuleSource, Rules, is_ignored};

/// Maximum number of listings of a directory in which an entry changes its kind between listing and
/// `stat`.
const MAX_LISTING_ATTEMPTS: usize = 8;

/// The results of one thread.
#[derive(Default)]
pub(crate) struct ThreadResults {
    pub(crate) visited: Vec<VisitedDir>,
    pub(crate) repositories: Vec<Vec<u8>>,
    names: DirNames,
}

/// The reason why a directory's content isn't known.
enum ReadFailure {
    /// The directory's names can be listed, but nothing else can be read at the moment.
    Closed(Errno),
    /// An entry became another kind of file since the listing.
    Raced,
}

/// A directory being read.
struct DirReader<'a> {
    task: &'a DirTask,
    dir: BorrowedFd<'a>,
    rules: Vec<(&'static [u8], FileStat)>,
    layers: Option<Arc<RuleLayer>>,
    /// True if the rules here are those by which the last tree was chosen.
    trusted: bool,
    permissions: u32,
}

impl RuleSource<FileStat> for WalkState<'_> {
    fn load(&self, dir: &[u8], files: &[(&'static [u8], FileStat)]) -> Arc<Rules> {
        let path: &[u8] = if dir.is_empty() { b"." } else { dir };
        let Ok(opened) =
            self.plan.root_dir.open_beneath(path, OFlags::RDONLY | OFlags::DIRECTORY, LinkPolicy::Refuse)
        else {
            self.unsure.store(true, Ordering::Relaxed);
            return Arc::new(Rules::default());
        };
        let (rules, as_seen) = self.plan.rules.load(opened.as_fd(), dir, files);
        if as_seen.is_none() {
            self.unsure.store(true, Ordering::Relaxed);
        }
        rules
    }
}

impl WalkState<'_> {
    /// Reads a directory. Returns its content with the signature that saves the next listing.
    pub(crate) fn read(
        &self,
        task: &DirTask,
        below: &mut Vec<DirTask>,
        finds: &mut ThreadResults,
    ) -> (VisitedContent, Option<ListedDir>) {
        let path: &[u8] = if task.path.is_empty() { b"." } else { &task.path };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        for _ in 0..MAX_LISTING_ATTEMPTS {
            let dir = match self.plan.root_dir.open_beneath(path, flags, LinkPolicy::Refuse) {
                Ok(dir) => dir,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return (VisitedContent::Nothing, None),
                Err(errno) => return (unreadable_content(errno), None),
            };
            let dir = dir.as_fd();
            // Before the names are read: a later change shows in a later signature.
            let listed = self.signature(dir);
            if let Some(content) = self.reuse_listing(task, dir, listed, below) {
                return (content, listed);
            }
            if let Err(errno) = finds.names.read(dir) {
                return (unreadable_content(errno), None);
            }
            if finds.names.is_truncated() {
                self.overflow.store(true, Ordering::Relaxed);
            }
            let known = || self.plan.known.iter().any(|dirs| dirs.iter().any(|dir| dir.path == task.path));
            let may_be_cache =
                task.depth > 0 && !self.plan.include_ignored && finds.names.has_file(CACHE_TAG_FILE);
            if may_be_cache && !known() && journeyman_ignore_rules::is_tagged_cache(dir) {
                // Nothing of it counts, but that there are repositories right in it.
                note_repositories(task, finds);
                return (VisitedContent::Nothing, None);
            }
            let permissions = listed.map_or(0, |listed| listed.seen.permissions());
            let reading = self.begin(task, dir, &finds.names, permissions);
            match self.select_entries(&reading, &finds.names, below) {
                Ok(content) => {
                    note_repositories(task, finds);
                    return (content, listed.filter(|_| finds.names.has_no_special_names()));
                }
                Err(ReadFailure::Closed(errno)) => {
                    below.clear();
                    return (unreadable_content(errno), None);
                }
                Err(ReadFailure::Raced) => below.clear(),
            }
        }
        (VisitedContent::Failed(Errno::AGAIN), None)
    }

    /// Returns the signature that changes with the names, where the file system is known for it and
    /// enough time has passed.
    fn signature(&self, dir: BorrowedFd<'_>) -> Option<ListedDir> {
        if !self.plan.stat {
            return None;
        }
        let stat = rustix::fs::fstat(dir).ok()?;
        let (seen, device) = (FileStat::of(&stat), device_of(&stat));
        let tells = self.plan.root_dir.reliable_mtime_device() == Some(device)
            && is_change_settled(&seen, self.begun);
        Some(ListedDir { seen, device, tells })
    }

    /// Looks at each file of a directory that has the names it had, under rules that are as they
    /// were. `None` where that isn't so.
    fn reuse_listing(
        &self,
        task: &DirTask,
        dir: BorrowedFd<'_>,
        listed: Option<ListedDir>,
        below: &mut Vec<DirTask>,
    ) -> Option<VisitedContent> {
        let (last, number) = self.last.zip(task.known).filter(|_| task.trusted)?;
        let then = self.plan.listed.get(number as usize).copied().flatten()?;
        listed.filter(|now| now.tells && *now == then)?;
        let refs = last.in_dir(number);
        let prefix = if task.path.is_empty() { 0 } else { task.path.len() + 1 };
        let (mut items, mut same, mut files) = (Vec::with_capacity(refs.len()), true, 0);
        for it in refs {
            items.push(match *it {
                EntryRef::Dir(number) => {
                    let path = &last.dir(number)?.path;
                    VisitedItem::Dir {
                        index: self.add_task((task, true, &task.layers), path, Some(number), below),
                    }
                }
                EntryRef::File(at) => {
                    let entry = last.entry(at)?;
                    let name = entry.path.get(prefix..)?;
                    let seen = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| FileStat::of(&stat));
                    let seen = seen.ok().filter(|seen| seen.file_type() == entry.seen.file_type());
                    let Some(seen) = seen else {
                        below.clear();
                        return None;
                    };
                    same &= seen == entry.seen;
                    files += 1;
                    VisitedItem::Known { at, seen: Some(seen) }
                }
            });
        }
        if self.files.fetch_add(files, Ordering::Relaxed) + files > self.plan.max_files {
            self.overflow.store(true, Ordering::Relaxed);
        }
        if same {
            Some(VisitedContent::Same { number })
        } else {
            Some(VisitedContent::Items { items, permissions: then.seen.permissions() })
        }
    }

    fn begin<'a>(
        &self,
        task: &'a DirTask,
        dir: BorrowedFd<'a>,
        names: &DirNames,
        permissions: u32,
    ) -> DirReader<'a> {
        let (mut trusted, mut rules) = (task.trusted, Vec::new());
        if !self.plan.include_ignored {
            for name in RULE_FILES {
                let seen =
                    names.has_file(name).then(|| statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()).flatten();
                let seen = seen.map(|stat| FileStat::of(&stat)).filter(|seen| !seen.is_dir());
                trusted = trusted && self.is_rule_file_unchanged(task, name, seen.as_ref());
                rules.extend(seen.map(|seen| (name, seen)));
            }
        }
        let files = || rules.iter().filter(|(_, seen)| seen.is_file()).copied();
        let outer = task.layers.clone();
        let layers = if files().next().is_some() {
            Some(RuleLayer::new(&task.path, files().collect(), outer))
        } else {
            outer
        };
        DirReader { task, dir, rules, layers, trusted, permissions }
    }

    /// Returns true if a rule file, or its absence, is what the last tree had.
    fn is_rule_file_unchanged(&self, task: &DirTask, name: &[u8], seen: Option<&FileStat>) -> bool {
        let Some((last, number)) = self.last.zip(task.known) else { return false };
        match (last.file(number, name), seen) {
            (None, None) => true,
            (Some(entry), Some(seen)) => entry.settled && entry.seen == *seen,
            _ => false,
        }
    }

    /// Keeps what isn't ignored, and makes tasks of the directories among it.
    fn select_entries(
        &self,
        reading: &DirReader<'_>,
        names: &DirNames,
        below: &mut Vec<DirTask>,
    ) -> Result<VisitedContent, ReadFailure> {
        let task = reading.task;
        let last = self.last.zip(task.known);
        let old = last.map_or(&[][..], |(last, number)| last.in_dir(number));
        let mut old = old.iter().copied().peekable();
        let mut same = last.is_some();
        let mut items = Vec::with_capacity(names.sorted_names().len());
        let mut path = task.path.clone();
        if !path.is_empty() {
            path.push(b'/');
        }
        let prefix = path.len();
        for name in names.sorted_names() {
            let bytes = names.bytes(name);
            let is_dir = name.kind == FileType::Directory;
            let (known, gone) =
                last.map_or((None, false), |(last, _)| advance_to(last, &mut old, (bytes, is_dir)));
            path.truncate(prefix);
            path.extend_from_slice(bytes);
            // What the same rules let through the last time isn't held against them again.
            let is_known = reading.trusted && known.is_some();
            let asks = !(self.plan.include_ignored || is_known);
            let kept = !(asks && is_ignored(self, reading.layers.as_ref(), &path, bytes, is_dir));
            let item = match name.kind {
                _ if !kept => None,
                FileType::Directory if self.plan.rules.is_own_directory(&path) => None,
                FileType::Directory if task.depth < MAX_DEPTH => {
                    let number = match known {
                        Some(EntryRef::Dir(number)) => Some(number),
                        _ => None,
                    };
                    let above = (task, reading.trusted, &reading.layers);
                    Some((
                        VisitedItem::Dir { index: self.add_task(above, &path, number, below) },
                        number.is_some(),
                    ))
                }
                FileType::RegularFile if self.plan.rules.is_own_output(&path) => None,
                FileType::RegularFile | FileType::Symlink => {
                    let Some(seen) = self.stat_if_asked(reading, bytes, name.kind)? else {
                        same &= known.is_none() && !gone;
                        continue;
                    };
                    if self.files.fetch_add(1, Ordering::Relaxed) >= self.plan.max_files {
                        self.overflow.store(true, Ordering::Relaxed);
                        below.clear();
                        break;
                    }
                    Some(visited_file(last.map(|(last, _)| last), known, bytes, seen))
                }
                // A pipe, socket or device has no content to list or keep.
                _ => None,
            };
            match item {
                Some((item, as_known)) => {
                    same &= as_known && !gone;
                    items.push(item);
                }
                None => same &= known.is_none() && !gone,
            }
        }
        let permissions = reading.permissions;
        if let Some((last, number)) = last
            && same
            && old.next().is_none()
            && last.dir(number).is_none_or(|dir| dir.permissions == permissions)
        {
            return Ok(VisitedContent::Same { number });
        }
        Ok(VisitedContent::Items { items, permissions })
    }

    /// Adds a task for a directory, and returns its number.
    fn add_task(
        &self,
        (above, trusted, layers): (&DirTask, bool, &Option<Arc<RuleLayer>>),
        path: &[u8],
        known: Option<u32>,
        below: &mut Vec<DirTask>,
    ) -> usize {
        let index = self.next_index.fetch_add(1, Ordering::Relaxed);
        let (depth, layers) = (above.depth + 1, layers.clone());
        // Nothing is known of what is in a directory that the last tree hadn't.
        let trusted = trusted && known.is_some();
        below.push(DirTask { index, depth, path: path.to_vec(), layers, known, trusted });
        index
    }

    /// Returns the metadata, if it is asked for; `None` when the file is gone.
    fn stat_if_asked(
        &self,
        reading: &DirReader<'_>,
        name: &[u8],
        kind: FileType,
    ) -> Result<Option<Option<FileStat>>, ReadFailure> {
        if !self.plan.stat {
            return Ok(Some(None));
        }
        let rules = reading.rules.iter().find(|(rules, _)| *rules == name);
        let seen = match rules {
            // As it was when its rules were taken for those of the tree.
            Some((_, seen)) => *seen,
            None => match statat(reading.dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileStat::of(&stat),
                Err(Errno::NOENT) => return Ok(None),
                // What is there and not seen would count as absent, and what is absent before a
                // command as made by it.
                Err(errno) => return Err(ReadFailure::Closed(errno)),
            },
        };
        if seen.file_type() == kind {
            return Ok(Some(Some(seen)));
        }
        let counts =
            matches!(seen.file_type(), FileType::RegularFile | FileType::Symlink | FileType::Directory);
        if counts { Err(ReadFailure::Raced) } else { Ok(None) }
    }
}

/// Returns the entry of the last tree with this name, and true if others before it are gone.
fn advance_to(
    last: LastTree<'_>,
    old: &mut Peekable<Copied<Iter<'_, EntryRef>>>,
    name: (&[u8], bool),
) -> (Option<EntryRef>, bool) {
    let mut gone = false;
    while let Some(next) = old.peek() {
        match compare_paths(last.name(*next), name) {
            Order::Greater => break,
            Order::Equal => return (old.next(), gone),
            Order::Less => {
                old.next();
                gone = true;
            }
        }
    }
    (None, gone)
}

/// Returns a file for the later assembly, and true if it is unchanged.
fn visited_file(
    last: Option<LastTree<'_>>,
    known: Option<EntryRef>,
    name: &[u8],
    seen: Option<FileStat>,
) -> (VisitedItem, bool) {
    if let (Some(EntryRef::File(at)), Some(last)) = (known, last)
        && let Some(entry) = last.entry(at)
    {
        return (VisitedItem::Known { at, seen }, Some(entry.seen) == seen);
    }
    (VisitedItem::New { name: name.to_vec(), seen }, false)
}

#[allow(clippy::unnecessary_cast, trivial_numeric_casts)]
pub(crate) fn device_of(stat: &rustix::fs::Stat) -> u64 {
    stat.st_dev as u64
}

fn unreadable_content(errno: Errno) -> VisitedContent {
    if is_transient_errno(errno) { VisitedContent::Failed(errno) } else { VisitedContent::Unreadable }
}

fn note_repositories(task: &DirTask, finds: &mut ThreadResults) {
    let slash: &[u8] = if task.path.is_empty() { b"" } else { b"/" };
    let paths = finds.names.git_names().iter().map(|name| [task.path.as_slice(), slash, name].concat());
    finds.repositories.extend(paths);
}
