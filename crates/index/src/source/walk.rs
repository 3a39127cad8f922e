//! Walking a tree in parallel: every directory is opened beneath the root, through no link.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use journeyman_protocol::RelPath;
use journeyman_root_fs::{Links, open_beneath, open_root};
use rustix::fs::{AtFlags, Dir, FileType, OFlags, Stat, statat};

use super::rules::{GIT, Rules, is_ignored};
use crate::analysis::Stamp;

/// Maximum number of listed files, which bounds the cost of a huge tree.
pub const MAX_FILES: usize = 1_000_000;
/// Maximum number of listed directories: no system watches as many.
pub const MAX_DIRECTORIES: usize = 1_000_000;
/// Maximum entries of one directory that are looked at.
const MAX_ENTRIES: usize = MAX_FILES + MAX_DIRECTORIES;

/// A listed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Path of the file.
    pub path: RelPath,
    /// Metadata by which a change is noticed.
    pub stamp: Stamp,
}

/// A tree that can be walked.
#[derive(Debug)]
pub(super) struct Walk {
    root: OwnedFd,
    place: PathBuf,
    above: Option<Arc<Rules>>,
}

/// Maximum numbers of files and directories to return.
#[derive(Debug, Clone, Copy)]
pub(super) struct WalkLimits {
    pub(super) files: usize,
    pub(super) directories: usize,
}

/// Results of a walk, in no order.
#[derive(Debug, Default)]
pub(super) struct WalkResult {
    pub(super) files: Vec<Listed>,
    /// Paths from the root, which is the empty one.
    pub(super) directories: Vec<Vec<u8>>,
    /// There is more than was wanted.
    pub(super) cut: bool,
    /// Directories that couldn't be read.
    pub(super) unreadable: usize,
}

/// A directory to be read, with the rules of those above it.
#[derive(Debug)]
struct PendingDirectory {
    path: Vec<u8>,
    rules: Option<Arc<Rules>>,
}

#[derive(Debug, Default)]
struct WalkState {
    waiting: Vec<PendingDirectory>,
    /// Threads that are reading a directory, which may have more in it.
    reading: usize,
    found: WalkResult,
}

impl Walk {
    /// Opens a tree.
    pub(super) fn new(root: &Path) -> std::io::Result<Self> {
        Ok(Self { root: open_root(root)?, place: root.to_owned(), above: Rules::above(root) })
    }

    /// Finds what ignore rules let be seen.
    pub(super) fn run(&self, threads: usize, wanted: WalkLimits) -> WalkResult {
        let start = PendingDirectory { path: Vec::new(), rules: self.above.clone() };
        let shared = Mutex::new(WalkState { waiting: vec![start], ..WalkState::default() });
        let news = Condvar::new();
        std::thread::scope(|scope| {
            let work = || self.work(&shared, &news, wanted);
            for _ in 1..threads {
                // With fewer threads it only takes longer.
                drop(std::thread::Builder::new().spawn_scoped(scope, work));
            }
            work();
        });
        shared.into_inner().unwrap_or_else(PoisonError::into_inner).found
    }

    /// Reads directories until there are none left.
    fn work(&self, shared: &Mutex<WalkState>, news: &Condvar, wanted: WalkLimits) {
        let mut all = lock(shared);
        loop {
            let Some(next) = all.waiting.pop() else {
                if all.reading == 0 {
                    news.notify_all();
                    return;
                }
                all = news.wait(all).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            all.reading += 1;
            drop(all);
            let read = self.read(&next, wanted.files > 0);
            all = lock(shared);
            all.reading -= 1;
            all.add(next, read, wanted);
            news.notify_all();
        }
    }

    /// Reads one directory; `None` where that isn't possible.
    fn read(
        &self,
        directory: &PendingDirectory,
        with_files: bool,
    ) -> Option<(Vec<PendingDirectory>, WalkResult)> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let name = if directory.path.is_empty() { b"." } else { directory.path.as_slice() };
        let opened = open_beneath(self.root.as_fd(), name, flags, Links::Refuse).ok()?;
        let mut found = WalkResult::default();
        let mut entries: Vec<(Vec<u8>, FileType)> = Vec::new();
        for entry in Dir::read_from(&opened).ok()? {
            let entry = entry.ok()?;
            found.cut = entries.len() == MAX_ENTRIES;
            if found.cut {
                break;
            }
            entries.push((entry.file_name().to_bytes().to_vec(), entry.file_type()));
        }
        let has = |name: &str| entries.iter().any(|(entry, _)| entry == name.as_bytes());
        let outer = directory.rules.clone();
        let rules = Rules::enter(outer, (self.root.as_fd(), &self.place), &directory.path, has);
        let mut inner = Vec::new();
        for (name, kind) in entries {
            if [b".".as_slice(), b"..", GIT.as_bytes()].contains(&name.as_slice()) {
                continue;
            }
            let stat = || statat(&opened, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW).ok();
            // Some file systems don't tell kinds in a listing.
            let kind = match kind {
                FileType::Unknown => stat().map_or(kind, |stat| FileType::from_raw_mode(stat.st_mode)),
                known => known,
            };
            let is_wanted = kind == FileType::Directory || (kind == FileType::RegularFile && with_files);
            let path = beneath(&directory.path, &name);
            if !is_wanted || is_ignored(rules.as_ref(), &path, kind == FileType::Directory) {
                continue;
            }
            if kind == FileType::Directory {
                inner.push(PendingDirectory { path, rules: rules.clone() });
            } else if let (Ok(path), Some(stat)) = (RelPath::parse(&path), stat()) {
                found.files.push(Listed { path, stamp: stamp_of(&stat) });
            }
        }
        Some((inner, found))
    }

    /// Returns true if no rule leaves out a file, or a directory on the way to it.
    pub(super) fn shows(&self, path: &RelPath) -> bool {
        let path = path.as_bytes();
        let (mut rules, mut directory) = (self.above.clone(), 0);
        loop {
            let inside = path.get(..directory).unwrap_or_default();
            rules = Rules::enter(rules, (self.root.as_fd(), &self.place), inside, |_| true);
            let begin = if directory == 0 { 0 } else { directory + 1 };
            let rest = path.get(begin..).unwrap_or_default();
            let end = rest.iter().position(|&byte| byte == b'/').map(|end| begin + end);
            let next = path.get(..end.unwrap_or(path.len())).unwrap_or(path);
            let is_git = next.get(begin..) == Some(GIT.as_bytes());
            if is_git || is_ignored(rules.as_ref(), next, end.is_some()) {
                return false;
            }
            match end {
                Some(end) => directory = end,
                None => return true,
            }
        }
    }
}

impl WalkState {
    fn add(
        &mut self,
        directory: PendingDirectory,
        read: Option<(Vec<PendingDirectory>, WalkResult)>,
        wanted: WalkLimits,
    ) {
        let Some((inner, read)) = read else {
            self.found.unreadable += 1;
            return;
        };
        let found = &mut self.found;
        if found.directories.len() < wanted.directories {
            found.directories.push(directory.path);
        }
        let room = wanted.files.saturating_sub(found.files.len());
        found.cut |= read.cut || read.files.len() > room;
        found.files.extend(read.files.into_iter().take(room));
        self.waiting.extend(inner);
        if wanted.files > 0 && found.cut {
            self.waiting.clear();
        }
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

fn lock(shared: &Mutex<WalkState>) -> MutexGuard<'_, WalkState> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn beneath(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;
    use std::os::unix::ffi::OsStrExt as _;

    use ignore::WalkBuilder;
    use proptest::prelude::*;

    use super::*;
    use crate::source::{IGNORE_FILE, Source as _, WorkTree};

    const DIRECTORIES: [&str; 7] = ["", "a", "b", "a/a", "a/b", "b/a", "a/b/c"];
    const RULE_FILES: [&str; 4] = [".gitignore", ".ignore", IGNORE_FILE, ".git/info/exclude"];
    const FILES: [&str; 4] = ["x", "y.rs", "a.log", ".dot"];

    /// Returns what the `ignore` crate's own walk finds: files, and directories beneath the root.
    fn expected(root: &Path) -> (BTreeSet<PathBuf>, BTreeSet<PathBuf>) {
        let mut walk = WalkBuilder::new(root);
        walk.hidden(false).follow_links(false).git_global(false).require_git(false);
        walk.add_custom_ignore_filename(IGNORE_FILE).filter_entry(|entry| entry.file_name() != GIT);
        let (mut files, mut directories) = (BTreeSet::new(), BTreeSet::new());
        for entry in walk.build() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_file() {
                files.insert(entry.path().strip_prefix(root).unwrap().to_owned());
            } else if kind.is_dir() {
                directories.insert(entry.path().to_owned());
            }
        }
        (files, directories)
    }

    fn rule() -> impl Strategy<Value = String> {
        let name = prop::sample::select(vec![
            "a", "b", "c", "x", "*.log", "*.rs", "y*", "a/b", "**/c", "a/**", ".dot", "*", "[xy]*", "\\!x",
            "#x", "a/*/c", "b/**/x",
        ]);
        let end = prop::sample::select(vec!["", "", "/", " "]);
        let start = prop::sample::select(vec!["", "", "!", "/", "!/"]);
        (start, name, end).prop_map(|(start, name, end)| format!("{start}{name}{end}"))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]
        #[test]
        fn ignore_rules_mean_what_they_mean_to_the_ignore_crate(
            rules in prop::collection::vec(
                (prop::sample::select(&DIRECTORIES), prop::sample::select(&RULE_FILES), prop::collection::vec(rule(), 1..5)),
                0..7,
            ),
            root in prop::sample::select(vec!["", "a", "a/b"]),
            threads in 1..4_usize,
        ) {
            let kept = tempfile::tempdir().unwrap();
            for directory in DIRECTORIES {
                std::fs::create_dir_all(kept.path().join(directory)).unwrap();
                for file in FILES {
                    std::fs::write(kept.path().join(directory).join(file), "").unwrap();
                }
            }
            for (directory, file, lines) in rules {
                let path = kept.path().join(directory).join(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, lines.join("\n")).unwrap();
            }
            let root = kept.path().join(root);
            let (files, directories) = expected(&root);
            let tree = WorkTree::new(&root, threads);
            let listed: BTreeSet<PathBuf> =
                tree.list().unwrap().files.iter().map(|file| file.path.as_path().to_owned()).collect();
            prop_assert_eq!(&listed, &files);
            let found: BTreeSet<PathBuf> =
                tree.directories().iter().map(|path| path.components().collect()).collect();
            prop_assert_eq!(found, directories);
            // Asked for by itself, a file is seen or left out as in the list.
            for directory in DIRECTORIES {
                for file in FILES {
                    let path = Path::new(directory).join(file);
                    if root.join(&path).is_file() {
                        let seen = tree.stamp(&RelPath::parse(path.as_os_str().as_bytes()).unwrap());
                        prop_assert_eq!(seen.is_some(), files.contains(&path), "{:?}", path);
                    }
                }
            }
        }
    }

    #[test]
    fn a_linked_work_tree_has_the_rules_of_its_repository() {
        let kept = tempfile::tempdir().unwrap();
        let at = |path: &str| kept.path().join(path);
        std::fs::create_dir_all(at("main/.git/worktrees/one")).unwrap();
        std::fs::create_dir_all(at("main/.git/info")).unwrap();
        std::fs::create_dir_all(at("one")).unwrap();
        std::fs::write(at("main/.git/info/exclude"), "x\n").unwrap();
        std::fs::write(at("main/.git/worktrees/one/commondir"), "../..\n").unwrap();
        std::fs::write(at("one/.git"), format!("gitdir: {}\n", at("main/.git/worktrees/one").display()))
            .unwrap();
        std::fs::write(at("one/x"), "").unwrap();
        std::fs::write(at("one/y"), "").unwrap();
        let listing = WorkTree::new(&at("one"), 1).list().unwrap();
        let paths: Vec<String> = listing.files.iter().map(|file| file.path.to_string()).collect();
        assert_eq!(paths, ["y"]);
    }
}
