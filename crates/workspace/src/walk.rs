//! Walking the tree: each directory opened once, beneath the root, links never followed.
//!
//! Small trees are walked by the calling thread alone. Where directories pile up, one more thread helps: on
//! two cores that halves the time, and starting it costs less than reading thirty directories.
//!
//! The `ignore` crate's own walker does one path resolution an entry and knows nothing of descriptors; this one
//! uses its rules and reads directories itself, which is contained by construction and several times as fast.

use std::collections::HashSet;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, FileType, OFlags, statat};
use rustix::io::Errno;

use crate::door::{Door, Links, Seen};
use crate::error::may_pass;
use crate::limits::MAX_DEPTH;
use crate::rules::{self, Layer, RuleCache, is_ignored};

/// So many directories have to wait before a second thread is worth its start.
const HELP_FROM: usize = 24;
/// Directory entries are fetched in pieces of this size: more than most directories have.
const ENTRY_BYTES: usize = 16 * 1024;
/// What stands between a file's name and the tag in the name of its short-lived sibling.
pub(crate) const SIBLING_TAG: &[u8] = b".jm-";
/// Hexadecimal digits at the end of such a name.
pub(crate) const SIBLING_DIGITS: usize = 16;

/// What a walk looks at.
pub(crate) struct Plan<'a> {
    pub(crate) door: &'a Door,
    pub(crate) rules: &'a RuleCache,
    /// Where to begin; empty for the root.
    pub(crate) under: Vec<u8>,
    pub(crate) include_ignored: bool,
    /// Whether to `stat` each file.
    pub(crate) stat: bool,
    pub(crate) max_files: usize,
    /// Directories that were looked into before: a `CACHEDIR.TAG` that appears in one of them hides nothing.
    pub(crate) known: &'a [&'a [WalkedDir]],
    /// The short-lived siblings of transactions that were open during the walk. Asked after it, if a name looks
    /// like one: whatever else has such a name is a file like any other.
    pub(crate) siblings: &'a (dyn Fn() -> HashSet<Vec<u8>> + Sync),
}

/// For a walk that isn't about files.
pub(crate) fn no_siblings() -> HashSet<Vec<u8>> {
    HashSet::new()
}

/// A file or link, with what `stat` says if that was asked for.
pub(crate) struct WalkedFile {
    pub(crate) path: Vec<u8>,
    pub(crate) seen: Option<Seen>,
}

/// A directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WalkedDir {
    pub(crate) path: Vec<u8>,
    /// Its permission bits, if `stat` was asked for.
    pub(crate) permissions: u32,
}

/// What a walk found, sorted by the bytes of the paths.
#[derive(Default)]
pub(crate) struct Walked {
    pub(crate) files: Vec<WalkedFile>,
    pub(crate) dirs: Vec<WalkedDir>,
    /// Directories that couldn't be read: what is in them is unknown.
    pub(crate) unreadable: Vec<Vec<u8>>,
    /// Everything named `.git`, in any case: noticed, and never entered.
    pub(crate) repositories: Vec<Vec<u8>>,
    /// There were more files than the limit.
    pub(crate) overflow: bool,
    /// A directory that would be read another time. It is among the unreadable ones too.
    pub(crate) failed: Option<(Vec<u8>, Errno)>,
}

enum Item {
    File { name: Vec<u8>, seen: Option<Seen> },
    Dir { name: Vec<u8>, index: usize },
}

impl Item {
    fn name(&self) -> &[u8] {
        match self {
            Self::File { name, .. } | Self::Dir { name, .. } => name,
        }
    }

    /// Full paths sort as if a directory's name ended with `/`.
    fn order(&self) -> impl Iterator<Item = u8> + '_ {
        let slash = matches!(self, Self::Dir { .. }).then_some(b'/');
        self.name().iter().copied().chain(slash)
    }
}

enum Content {
    Items {
        items: Vec<Item>,
        permissions: u32,
        repositories: Vec<Vec<u8>>,
    },
    /// A cache: nothing of it counts, but that there are repositories right in it.
    Tagged(Vec<Vec<u8>>),
    Unreadable,
    /// It can't be read just now.
    Failed(Errno),
    Gone,
}

struct Task {
    index: usize,
    depth: usize,
    path: Vec<u8>,
    layers: Option<Arc<Layer>>,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Task>,
    /// Tasks taken and not finished.
    running: usize,
}

struct Walk<'a> {
    plan: &'a Plan<'a>,
    queue: Mutex<Queue>,
    news: Condvar,
    next_index: AtomicUsize,
    files: AtomicUsize,
    overflow: AtomicBool,
}

/// Walks the tree.
///
/// # Errors
/// The system's word on the directory where the walk begins; those beneath it that can't be read are listed.
pub(crate) fn walk(plan: &Plan<'_>) -> Result<Walked, Errno> {
    let layers = if plan.include_ignored { None } else { plan.rules.outermost(plan.door.path()) };
    let layers = if plan.under.is_empty() { layers } else { descend(plan, layers)? };
    let first = Task { index: 0, depth: 0, path: plan.under.clone(), layers };
    let begin: &[u8] = if first.path.is_empty() { b"." } else { &first.path };
    // The error is the caller's to see; inside the walk it would be one more unreadable directory.
    drop(plan.door.enter(begin, OFlags::RDONLY | OFlags::DIRECTORY, Links::Refuse)?);
    let walk = Walk {
        plan,
        queue: Mutex::new(Queue { waiting: vec![first], running: 0 }),
        news: Condvar::new(),
        next_index: AtomicUsize::new(1),
        files: AtomicUsize::new(0),
        overflow: AtomicBool::new(false),
    };
    let mut found = Vec::new();
    std::thread::scope(|scope| {
        let mut helper = None;
        while let Some(task) = walk.take() {
            walk.visit(task, &mut found);
            if helper.is_none() && walk.lock().waiting.len() >= HELP_FROM {
                helper = Some(scope.spawn(|| {
                    let mut found = Vec::new();
                    while let Some(task) = walk.take() {
                        walk.visit(task, &mut found);
                    }
                    found
                }));
            }
        }
        if let Some(Ok(theirs)) = helper.map(std::thread::ScopedJoinHandle::join) {
            found.extend(theirs);
        }
    });
    let overflow = walk.overflow.load(Ordering::Relaxed);
    let mut walked = Walked { overflow, ..flatten(found, walk.next_index.load(Ordering::Relaxed), plan) };
    let looks_like_one = |path: &[u8]| is_sibling(rules::last_component(path));
    if walked.files.iter().any(|file| looks_like_one(&file.path))
        || walked.dirs.iter().any(|dir| looks_like_one(&dir.path))
    {
        let siblings = (plan.siblings)();
        walked.files.retain(|file| !siblings.contains(&file.path));
        walked.dirs.retain(|dir| !is_or_is_in(&dir.path, &siblings));
    }
    Ok(walked)
}

/// Collects the rules of the directories above the one where the walk begins.
fn descend(plan: &Plan<'_>, mut layers: Option<Arc<Layer>>) -> Result<Option<Arc<Layer>>, Errno> {
    if plan.include_ignored {
        return Ok(None);
    }
    let cuts = plan.under.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    for cut in std::iter::once(0).chain(cuts) {
        let path = plan.under.get(..cut).unwrap_or_default();
        let begin: &[u8] = if path.is_empty() { b"." } else { path };
        let dir = plan.door.enter(begin, OFlags::RDONLY | OFlags::DIRECTORY, Links::Refuse)?;
        layers = plan.rules.layer(dir.as_fd(), path, &[b".gitignore", b".ignore"], layers);
    }
    Ok(layers)
}

impl Walk<'_> {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // The queue is valid after a panic of the other thread: a task is taken or it isn't.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next directory, or `None` when all are done. The helper waits while the other thread may still find
    /// some; the calling thread waits too, because only then everything is done.
    fn take(&self) -> Option<Task> {
        let mut queue = self.lock();
        loop {
            if let Some(task) = queue.waiting.pop() {
                queue.running += 1;
                return Some(task);
            }
            if queue.running == 0 {
                return None;
            }
            queue = self.news.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn visit(&self, task: Task, found: &mut Vec<(usize, Vec<u8>, Content)>) {
        let mut below = Vec::new();
        let content = self.read(&task, &mut below);
        found.push((task.index, task.path, content));
        let mut queue = self.lock();
        queue.running -= 1;
        let wake = !below.is_empty() || queue.running == 0;
        queue.waiting.append(&mut below);
        drop(queue);
        if wake {
            self.news.notify_all();
        }
    }

    fn read(&self, task: &Task, below: &mut Vec<Task>) -> Content {
        let path: &[u8] = if task.path.is_empty() { b"." } else { &task.path };
        let opened = self.plan.door.enter(path, OFlags::RDONLY | OFlags::DIRECTORY, Links::Refuse);
        let dir = match opened {
            Ok(dir) => dir,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Content::Gone,
            Err(errno) => return unreadable(errno),
        };
        let names = match entries(dir.as_fd()) {
            Ok(names) => names,
            Err(errno) => return unreadable(errno),
        };
        let mut layers = task.layers.clone();
        if !self.plan.include_ignored {
            let known = || self.plan.known.iter().any(|dirs| dirs.iter().any(|dir| dir.path == task.path));
            if names.tagged && task.depth > 0 && !known() && rules::is_tagged_cache(dir.as_fd()) {
                return Content::Tagged(names.repositories);
            }
            let rule_files: Vec<&[u8]> = [b".gitignore".as_slice(), b".ignore"]
                .into_iter()
                .zip([names.gitignore, names.ignore])
                .filter_map(|(name, there)| there.then_some(name))
                .collect();
            if !rule_files.is_empty() {
                layers = self.plan.rules.layer(dir.as_fd(), &task.path, &rule_files, layers);
            }
        }
        let permissions = if self.plan.stat {
            rustix::fs::fstat(&dir).map_or(0, |stat| Seen::of(&stat).permissions())
        } else {
            0
        };
        let repositories = names.repositories;
        let items = self.select(task, dir.as_fd(), names.all, layers.as_ref(), below);
        let mut items = match items {
            Ok(items) => items,
            Err(errno) => return unreadable(errno),
        };
        items.sort_unstable_by(|a, b| a.order().cmp(b.order()));
        Content::Items { items, permissions, repositories }
    }

    /// Keeps what isn't ignored, and makes tasks of the directories among it. Fails where names can be read and
    /// nothing else.
    fn select(
        &self,
        task: &Task,
        dir: BorrowedFd<'_>,
        names: Vec<(Vec<u8>, FileType)>,
        layers: Option<&Arc<Layer>>,
        below: &mut Vec<Task>,
    ) -> Result<Vec<Item>, Errno> {
        let mut items = Vec::with_capacity(names.len());
        let mut path = task.path.clone();
        if !path.is_empty() {
            path.push(b'/');
        }
        let prefix = path.len();
        for (name, kind) in names {
            let mut seen = None;
            let wants_stat = self.plan.stat && kind != FileType::Directory;
            if wants_stat || kind == FileType::Unknown {
                // Ignored files are many in some directories; the rules are asked first.
                if kind != FileType::Unknown && self.skips(&mut path, prefix, &name, false, layers) {
                    continue;
                }
                match statat(dir, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => seen = Some(Seen::of(&stat)),
                    Err(Errno::NOENT) => continue,
                    // What is there and not seen would count as absent, and what is absent before a command as
                    // made by it.
                    Err(errno) => {
                        below.clear();
                        return Err(errno);
                    }
                }
            }
            let asked = seen.is_some() && kind != FileType::Unknown;
            let kind = seen.map_or(kind, |seen| seen.file_type());
            match kind {
                FileType::Directory => {
                    if task.depth >= MAX_DEPTH || self.skips(&mut path, prefix, &name, true, layers) {
                        continue;
                    }
                    path.truncate(prefix);
                    path.extend_from_slice(&name);
                    let index = self.next_index.fetch_add(1, Ordering::Relaxed);
                    let (depth, layers) = (task.depth + 1, layers.cloned());
                    below.push(Task { index, depth, path: path.clone(), layers });
                    items.push(Item::Dir { name, index });
                }
                FileType::RegularFile | FileType::Symlink => {
                    if !asked && self.skips(&mut path, prefix, &name, false, layers) {
                        continue;
                    }
                    if self.files.fetch_add(1, Ordering::Relaxed) >= self.plan.max_files {
                        self.overflow.store(true, Ordering::Relaxed);
                        below.clear();
                        break;
                    }
                    items.push(Item::File { name, seen: seen.filter(|_| self.plan.stat) });
                }
                // A pipe, socket or device has no content to list or keep.
                _ => {}
            }
        }
        Ok(items)
    }

    fn skips(
        &self,
        path: &mut Vec<u8>,
        prefix: usize,
        name: &[u8],
        is_dir: bool,
        layers: Option<&Arc<Layer>>,
    ) -> bool {
        if self.plan.include_ignored {
            return false;
        }
        path.truncate(prefix);
        path.extend_from_slice(name);
        is_ignored(layers, path, name, is_dir)
    }
}

struct Names {
    all: Vec<(Vec<u8>, FileType)>,
    gitignore: bool,
    ignore: bool,
    tagged: bool,
    repositories: Vec<Vec<u8>>,
}

impl Names {
    fn new() -> Self {
        let all = Vec::with_capacity(32);
        Self { all, gitignore: false, ignore: false, tagged: false, repositories: Vec::new() }
    }

    fn add(&mut self, name: &[u8], kind: FileType) {
        if rules::is_git(name) {
            self.repositories.push(name.to_vec());
            return;
        }
        if matches!(name, b"." | b"..") {
            return;
        }
        self.gitignore |= name == b".gitignore";
        self.ignore |= name == b".ignore";
        self.tagged |= name == b"CACHEDIR.TAG";
        self.all.push((name.to_vec(), kind));
    }
}

/// Whether this is the name of a short-lived sibling of an atomic write, of this process or another.
pub(crate) fn is_sibling(name: &[u8]) -> bool {
    let Some(cut) = name.len().checked_sub(SIBLING_DIGITS + SIBLING_TAG.len()) else { return false };
    let (front, back) = name.split_at_checked(cut).unwrap_or_default();
    front.first() == Some(&b'.')
        && back.strip_prefix(SIBLING_TAG).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

fn unreadable(errno: Errno) -> Content {
    if may_pass(errno) { Content::Failed(errno) } else { Content::Unreadable }
}

/// Whether one of these is the directory, or above it.
fn is_or_is_in(dir: &[u8], siblings: &HashSet<Vec<u8>>) -> bool {
    let slashes = dir.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    slashes.chain([dir.len()]).filter_map(|cut| dir.get(..cut)).any(|above| siblings.contains(above))
}

/// The names in a directory.
pub(crate) fn names_in(dir: BorrowedFd<'_>) -> Result<Vec<Vec<u8>>, Errno> {
    let Names { all, repositories, .. } = entries(dir)?;
    Ok(all.into_iter().map(|(name, _)| name).chain(repositories).collect())
}

/// What in this directory is named as git's own directory is.
pub(crate) fn repositories_in(dir: BorrowedFd<'_>) -> Result<Vec<Vec<u8>>, Errno> {
    entries(dir).map(|names| names.repositories)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn entries(dir: BorrowedFd<'_>) -> Result<Names, Errno> {
    let mut names = Names::new();
    let mut buffer = [MaybeUninit::<u8>::uninit(); ENTRY_BYTES];
    let mut raw = rustix::fs::RawDir::new(dir, &mut buffer);
    while let Some(entry) = raw.next() {
        let entry = entry?;
        names.add(entry.file_name().to_bytes(), entry.file_type());
    }
    Ok(names)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn entries(dir: BorrowedFd<'_>) -> Result<Names, Errno> {
    let mut names = Names::new();
    for entry in rustix::fs::Dir::read_from(dir)? {
        let entry = entry?;
        names.add(entry.file_name().to_bytes(), entry.file_type());
    }
    Ok(names)
}

/// Puts the directories' contents together in the order of full paths.
fn flatten(found: Vec<(usize, Vec<u8>, Content)>, count: usize, plan: &Plan<'_>) -> Walked {
    let files = found.iter().map(|(_, _, content)| match content {
        Content::Items { items, .. } => items.len(),
        Content::Tagged(_) | Content::Unreadable | Content::Failed(_) | Content::Gone => 0,
    });
    let mut walked = Walked { files: Vec::with_capacity(files.sum()), ..Walked::default() };
    let mut slots: Vec<Option<(Vec<u8>, Content)>> = Vec::new();
    slots.resize_with(count, || None);
    for (index, path, content) in found {
        if let Some(slot) = slots.get_mut(index) {
            *slot = Some((path, content));
        }
    }
    // What is still to be emitted, the next one last; deep trees don't recurse.
    let mut open: Vec<(Vec<u8>, std::vec::IntoIter<Item>)> = Vec::new();
    let begin = |walked: &mut Walked, slot: Option<(Vec<u8>, Content)>| match slot {
        Some((path, Content::Items { items, permissions, repositories })) => {
            if path != plan.under {
                walked.dirs.push(WalkedDir { path: path.clone(), permissions });
            }
            let mut prefix = path;
            if !prefix.is_empty() {
                prefix.push(b'/');
            }
            let repositories = repositories.iter().map(|name| [prefix.as_slice(), name].concat());
            walked.repositories.extend(repositories);
            Some((prefix, items.into_iter()))
        }
        Some((path, Content::Tagged(repositories))) => {
            let paths = repositories.iter().map(|name| [path.as_slice(), b"/", name].concat());
            walked.repositories.extend(paths);
            None
        }
        Some((path, Content::Unreadable)) => {
            walked.unreadable.push(path);
            None
        }
        Some((path, Content::Failed(errno))) => {
            walked.unreadable.push(path.clone());
            walked.failed = Some((path, errno));
            None
        }
        Some((_, Content::Gone)) | None => None,
    };
    open.extend(begin(&mut walked, slots.first_mut().and_then(Option::take)));
    while let Some((prefix, items)) = open.last_mut() {
        match items.next() {
            Some(Item::File { name, seen }) => {
                let mut path = Vec::with_capacity(prefix.len() + name.len());
                path.extend_from_slice(prefix);
                path.extend_from_slice(&name);
                walked.files.push(WalkedFile { path, seen });
            }
            Some(Item::Dir { index, .. }) => {
                let slot = slots.get_mut(index).and_then(Option::take);
                open.extend(begin(&mut walked, slot));
            }
            None => {
                open.pop();
            }
        }
    }
    walked.repositories.sort_unstable();
    walked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sibling_names() {
        let table: [(&[u8], bool); 6] = [
            (b".main.rs.jm-0123456789abcdef", true),
            (b"..jm-0123456789abcdef", true),
            (b".main.rs.jm-0123456789abcde", false),
            (b"main.rs.jm-0123456789abcdef", false),
            (b".main.rs.jm-0123456789abcdeg", false),
            (b".gitignore", false),
        ];
        for (name, expected) in table {
            assert_eq!(is_sibling(name), expected, "{}", String::from_utf8_lossy(name));
        }
    }
}
