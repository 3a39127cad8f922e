//! Walking the tree: each directory opened once, beneath the root, links never followed.
//!
//! Small trees are walked by the calling thread alone. Where directories pile up, others help, as many as there are
//! cores: starting one costs less than reading thirty directories.
//!
//! A walk that knows the last tree compares as it goes. Names that were let through by the same rules aren't held
//! against them again, and where nothing differs nothing is put together. A directory whose own signature is the same
//! has the same names, on file systems that are known for it, and isn't listed again. But every file is looked at each
//! time: nothing else tells that a content changed.
//!
//! The `ignore` crate's own walker does one path resolution an entry and knows nothing of descriptors; this one
//! uses its rules and reads directories itself, which is contained by construction and several times as fast.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use journeyman_protocol::ContentHash;
use rustix::fs::{AtFlags, OFlags, statat};
use rustix::io::Errno;

use crate::files::root_dir::{Door, Links, Seen};
use crate::rules;
use crate::rules::{Layer, RuleCache};
use crate::snapshot::tree::{Tree, file_clock};

use crate::walk::known::{Known, Number};
use crate::walk::visit::Finds;
use crate::walk::visit::RULE_FILES;

pub(crate) mod flatten;
pub(crate) mod known;
pub(crate) mod names;
pub(crate) mod visit;

/// For each thread more, so many directories have to wait before it is worth its start.
const HELP_FROM: usize = 24;
/// More threads than this only wait for each other.
const MAX_THREADS: usize = 8;
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
    /// The tree that was found the last time. A directory whose rules and names are the same isn't held against
    /// them again; each file is looked at all the same.
    pub(crate) last: Option<&'a Tree>,
    /// What [`Walked::listed`] was then.
    pub(crate) listed: &'a [Option<Listed>],
    /// Whether [`Walked::same`] may be said.
    pub(crate) may_be_same: bool,
    /// The short-lived siblings of transactions that were open during the walk. Asked after it, if a name looks
    /// like one: whatever else has such a name is a file like any other.
    pub(crate) siblings: &'a (dyn Fn() -> HashSet<Vec<u8>> + Sync),
}

impl<'a> Plan<'a> {
    /// A walk of the whole tree for names alone: what isn't ignored, nothing of it looked at.
    pub(crate) fn of_names(door: &'a Door, rules: &'a RuleCache, max_files: usize) -> Self {
        Self {
            door,
            rules,
            under: Vec::new(),
            include_ignored: false,
            stat: false,
            max_files,
            known: &[],
            last: None,
            listed: &[],
            may_be_same: false,
            siblings: &no_siblings,
        }
    }
}

/// For a walk that isn't about files.
pub(crate) fn no_siblings() -> HashSet<Vec<u8>> {
    HashSet::new()
}

/// A file or link, with what `stat` says if that was asked for.
pub(crate) struct WalkedFile {
    pub(crate) path: Vec<u8>,
    pub(crate) seen: Option<Seen>,
    /// Its place in the last tree.
    pub(crate) known: Option<u32>,
}

/// A directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WalkedDir {
    pub(crate) path: Vec<u8>,
    /// Its permission bits, if `stat` was asked for.
    pub(crate) permissions: u32,
}

/// A directory's signature when its names were listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listed {
    seen: Seen,
    device: u64,
    /// Whether a name that came or went since must show in it.
    tells: bool,
}

impl Listed {
    /// Returns true if a name that came or went since must show in the signature.
    pub(crate) fn tells(&self) -> bool {
        self.tells
    }
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
    /// Nothing differs from the last tree: then nothing else is told.
    pub(crate) same: bool,
    /// The signatures of the root and of the directories, in this order: with the same one, a directory has the same
    /// names. Empty where that isn't known.
    pub(crate) listed: Vec<Option<Listed>>,
    /// What tells the rules of another walk from those of this one, but for the tree's own files; `None` when one
    /// of those changed during the walk.
    pub(crate) rules: Option<ContentHash>,
}

enum Item {
    New { name: Vec<u8>, seen: Option<Seen> },
    Known { at: u32, seen: Option<Seen> },
    Dir { index: usize },
}

enum Content {
    Items {
        items: Vec<Item>,
        permissions: u32,
    },
    /// What the last tree has in this directory.
    Same {
        number: Number,
    },
    Unreadable,
    /// It can't be read just now.
    Failed(Errno),
    /// It is gone, or a cache.
    Nothing,
}

/// A directory that was read.
struct Visited {
    index: usize,
    /// Its number in the last tree.
    number: Option<Number>,
    path: Vec<u8>,
    content: Content,
    listed: Option<Listed>,
}

struct Task {
    index: usize,
    depth: usize,
    path: Vec<u8>,
    layers: Option<Arc<Layer>>,
    /// Its number in the last tree.
    known: Option<Number>,
    /// Whether the rules of the directories above are as they were for that.
    trusted: bool,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Task>,
    /// Tasks taken and not finished.
    running: usize,
    /// Threads that wait for a task.
    idle: usize,
}

struct Walk<'a> {
    plan: &'a Plan<'a>,
    last: Option<Known<'a>>,
    /// When it began, by the clock of file times.
    begun: i64,
    queue: Mutex<Queue>,
    news: Condvar,
    next_index: AtomicUsize,
    files: AtomicUsize,
    overflow: AtomicBool,
    /// A rule file wasn't as it had been seen when its rules were read.
    unsure: AtomicBool,
}

/// Walks the tree.
///
/// # Errors
/// The system's word on the directory where the walk begins; those beneath it that can't be read are listed.
pub(crate) fn walk(plan: &Plan<'_>) -> Result<Walked, Errno> {
    let print = plan.rules.print(plan.door.path());
    let layers = if plan.include_ignored { None } else { plan.rules.outermost(plan.door.path()) };
    let layers = if plan.under.is_empty() { layers } else { descend(plan, layers)? };
    let begin: &[u8] = if plan.under.is_empty() { b"." } else { &plan.under };
    // The error is the caller's to see; inside the walk it would be one more unreadable directory.
    drop(plan.door.enter(begin, OFlags::RDONLY | OFlags::DIRECTORY, Links::Refuse)?);
    let last = plan.last.filter(|_| plan.under.is_empty()).map(Known::new);
    let trusted = plan.last.is_some_and(|last| last.rules == Some(print));
    let (known, path) = (last.map(|_| 0), plan.under.clone());
    let first = Task { index: 0, depth: 0, path, layers, known, trusted };
    let walk = Walk {
        plan,
        last,
        begun: file_clock(),
        queue: Mutex::new(Queue { waiting: vec![first], ..Queue::default() }),
        news: Condvar::new(),
        next_index: AtomicUsize::new(1),
        files: AtomicUsize::new(0),
        overflow: AtomicBool::new(false),
        unsure: AtomicBool::new(false),
    };
    let finds = walk.run();
    Ok(walk.end(finds, print))
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
        let files = RULE_FILES.into_iter().filter_map(|name| {
            let seen = Seen::of(&statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?);
            seen.is_file().then_some((name, seen))
        });
        layers = Layer::new(path, files.collect(), layers);
    }
    Ok(layers)
}

impl Walk<'_> {
    /// Visits everything, with as many threads as are worth it.
    fn run(&self) -> Finds {
        let most = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        let mut finds = Finds::default();
        std::thread::scope(|scope| {
            let mut helpers = Vec::new();
            while let Some(task) = self.take() {
                self.visit(task, &mut finds);
                if helpers.len() + 1 < most && self.lock().waiting.len() >= HELP_FROM * (helpers.len() + 1) {
                    helpers.push(scope.spawn(|| {
                        let mut finds = Finds::default();
                        while let Some(task) = self.take() {
                            self.visit(task, &mut finds);
                        }
                        finds
                    }));
                }
            }
            for theirs in helpers.into_iter().filter_map(|helper| helper.join().ok()) {
                finds.visited.extend(theirs.visited);
                finds.repositories.extend(theirs.repositories);
            }
        });
        finds.repositories.sort_unstable();
        finds
    }

    fn end(&self, finds: Finds, print: ContentHash) -> Walked {
        let Finds { visited, repositories, .. } = finds;
        let overflow = self.overflow.load(Ordering::Relaxed);
        let rules = (!self.unsure.load(Ordering::Relaxed)).then_some(print);
        if let Some(last) = self.last
            && self.plan.may_be_same
            && !overflow
            && last.has_no_sibling_names()
            && rules == last.tree.rules
            && flatten::is_same(&visited, last, &repositories)
        {
            return Walked { same: true, listed: flatten::listed(&visited), ..Walked::default() };
        }
        let walked = flatten::flatten(visited, self.next_index.load(Ordering::Relaxed), self.plan, self.last);
        let mut walked = Walked { overflow, repositories, rules, ..walked };
        let looks_like_one = |path: &[u8]| is_sibling(rules::last_component(path));
        if walked.files.iter().any(|file| looks_like_one(&file.path))
            || walked.dirs.iter().any(|dir| looks_like_one(&dir.path))
        {
            let siblings = (self.plan.siblings)();
            let all = (walked.files.len(), walked.dirs.len());
            walked.files.retain(|file| !siblings.contains(&file.path));
            walked.dirs.retain(|dir| !is_or_is_in(&dir.path, &siblings));
            // One that stays when its transaction is over is a file like any other then.
            if (walked.files.len(), walked.dirs.len()) != all {
                walked.listed.clear();
            }
        }
        walked
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // The queue is valid after a panic of the other thread: a task is taken or it isn't.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next directory, or `None` when all are done. A helper waits while another thread may still find
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
            queue.idle += 1;
            queue = self.news.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }

    fn visit(&self, task: Task, finds: &mut Finds) {
        let mut below = Vec::new();
        let (content, listed) = self.read(&task, &mut below, finds);
        let Task { index, known: number, path, .. } = task;
        finds.visited.push(Visited { index, number, path, content, listed });
        let mut queue = self.lock();
        queue.running -= 1;
        let wake = queue.idle > 0 && (!below.is_empty() || queue.running == 0);
        queue.waiting.append(&mut below);
        drop(queue);
        if wake {
            self.news.notify_all();
        }
    }
}

/// Whether this is the name of a short-lived sibling of an atomic write, of this process or another.
pub(crate) fn is_sibling(name: &[u8]) -> bool {
    let Some(cut) = name.len().checked_sub(SIBLING_DIGITS + SIBLING_TAG.len()) else { return false };
    let (front, back) = name.split_at_checked(cut).unwrap_or_default();
    front.first() == Some(&b'.')
        && back.strip_prefix(SIBLING_TAG).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

/// Whether one of these is the directory, or above it.
fn is_or_is_in(dir: &[u8], siblings: &HashSet<Vec<u8>>) -> bool {
    let slashes = dir.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    slashes.chain([dir.len()]).filter_map(|cut| dir.get(..cut)).any(|above| siblings.contains(above))
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
