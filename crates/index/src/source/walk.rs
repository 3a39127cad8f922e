//! Walking a tree in parallel: every directory is opened beneath the root, through no link.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use journeyman_ignore_rules::{ParsedRules, RuleLayer, is_git, is_ignored, is_tagged_cache};
use journeyman_protocol::RelPath;
use journeyman_root_fs::{Links, open_beneath, open_root};
use rustix::fs::{AtFlags, Dir, FileType, OFlags, Stat, statat};

use super::rules::{add_rules, rules_above};
use crate::analysis::Stamp;

/// Maximum number of listed files, which bounds the cost of a huge tree.
pub const MAX_FILES: usize = 1_000_000;
/// Maximum number of listed directories: no system watches as many.
pub const MAX_DIRECTORIES: usize = 1_000_000;
/// Maximum entries of one directory that are looked at.
const MAX_ENTRIES: usize = MAX_FILES + MAX_DIRECTORIES;

/// The file by which a directory is tagged as a cache.
const CACHE_TAG_FILE: &[u8] = b"CACHEDIR.TAG";

/// A listed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    /// Path of the file.
    pub path: RelPath,
    /// Metadata by which a change is noticed.
    pub stamp: Stamp,
}

/// A tree that can be walked.
#[derive(Debug)]
pub(super) struct TreeWalk {
    root: OwnedFd,
    above: Option<Arc<RuleLayer>>,
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
    pub(super) files: Vec<ListedFile>,
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
    rules: Option<Arc<RuleLayer>>,
}

#[derive(Debug, Default)]
struct WalkState {
    waiting: Vec<PendingDirectory>,
    /// Threads that are reading a directory, which may have more in it.
    reading: usize,
    found: WalkResult,
}

impl TreeWalk {
    /// Opens a tree.
    pub(super) fn new(root: &Path) -> std::io::Result<Self> {
        Ok(Self { root: open_root(root)?, above: rules_above(root) })
    }

    /// Finds what ignore rules let be seen.
    pub(super) fn walk(&self, threads: usize, wanted: WalkLimits) -> WalkResult {
        let start = PendingDirectory { path: Vec::new(), rules: self.above.clone() };
        let shared = Mutex::new(WalkState { waiting: vec![start], ..WalkState::default() });
        let news = Condvar::new();
        std::thread::scope(|scope| {
            let work = || self.read_directories(&shared, &news, wanted);
            for _ in 1..threads {
                // With fewer threads it only takes longer.
                drop(std::thread::Builder::new().spawn_scoped(scope, work));
            }
            work();
        });
        shared.into_inner().unwrap_or_else(PoisonError::into_inner).found
    }

    /// Reads directories until there are none left.
    fn read_directories(&self, shared: &Mutex<WalkState>, news: &Condvar, wanted: WalkLimits) {
        let mut all = lock_state(shared);
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
            let read = self.read_directory(&next, wanted.files > 0);
            all = lock_state(shared);
            all.reading -= 1;
            all.add_directory(next, read, wanted);
            news.notify_all();
        }
    }

    /// Reads one directory; `None` where that isn't possible.
    fn read_directory(
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
        let has = |name: &[u8]| entries.iter().any(|(entry, _)| entry == name);
        if !directory.path.is_empty() && has(CACHE_TAG_FILE) && is_tagged_cache(opened.as_fd()) {
            return Some((Vec::new(), found));
        }
        let rules = add_rules(directory.rules.clone(), opened.as_fd(), &directory.path, has);
        let mut inner = Vec::new();
        for (name, kind) in entries {
            if [b".".as_slice(), b".."].contains(&name.as_slice()) || is_git(&name) {
                continue;
            }
            let stat = || statat(&opened, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW).ok();
            // Some file systems don't tell kinds in a listing.
            let kind = match kind {
                FileType::Unknown => stat().map_or(kind, |stat| FileType::from_raw_mode(stat.st_mode)),
                known => known,
            };
            let is_wanted = kind == FileType::Directory || (kind == FileType::RegularFile && with_files);
            let path = join_name(&directory.path, &name);
            let is_directory = kind == FileType::Directory;
            if !is_wanted || is_ignored(&ParsedRules, rules.as_ref(), &path, &name, is_directory) {
                continue;
            }
            if kind == FileType::Directory {
                inner.push(PendingDirectory { path, rules: rules.clone() });
            } else if let (Ok(path), Some(stat)) = (RelPath::parse(&path), stat()) {
                found.files.push(ListedFile { path, stamp: stamp_of(&stat) });
            }
        }
        Some((inner, found))
    }

    /// Returns true if the list has a file of this path, if it is there: neither it nor a directory
    /// on the way to it is ignored.
    pub(super) fn is_visible(&self, path: &RelPath) -> bool {
        let path = path.as_bytes();
        let (mut rules, mut begin) = (self.above.clone(), 0_usize);
        loop {
            let directory = path.get(..begin.saturating_sub(1)).unwrap_or_default();
            let at = if directory.is_empty() { b"." } else { directory };
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let Ok(opened) = open_beneath(self.root.as_fd(), at, flags, Links::Refuse) else { return false };
            if begin > 0 && is_tagged_cache(opened.as_fd()) {
                return false;
            }
            rules = add_rules(rules, opened.as_fd(), directory, |_| true);
            let rest = path.get(begin..).unwrap_or_default();
            let end = rest.iter().position(|&byte| byte == b'/').map(|end| begin + end);
            let next = path.get(..end.unwrap_or(path.len())).unwrap_or(path);
            let name = next.get(begin..).unwrap_or_default();
            if is_git(name) || is_ignored(&ParsedRules, rules.as_ref(), next, name, end.is_some()) {
                return false;
            }
            match end {
                Some(end) => begin = end + 1,
                None => return true,
            }
        }
    }
}

impl WalkState {
    fn add_directory(
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

fn lock_state(shared: &Mutex<WalkState>) -> MutexGuard<'_, WalkState> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn join_name(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::io::Write as _;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    use proptest::prelude::*;

    use super::*;
    use crate::source::{IGNORE_FILE, Source as _, WorkTree};

    const DIRECTORIES: [&str; 7] = ["", "a", "b", "a/a", "a/b", "b/a", "a/b/c"];
    /// A later one of a directory counts more.
    const RULE_FILES: [&str; 3] = [".gitignore", ".ignore", IGNORE_FILE];
    const FILES: [&str; 4] = ["x", "y.rs", "a.log", ".dot"];

    /// Returns the paths that git ignores in a repository at `root`.
    fn ignored_by_git(root: &Path, paths: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
        let mut git = Command::new("git");
        git.args(["-c", "core.excludesFile=", "check-ignore", "--no-index", "-z", "--stdin"]);
        git.current_dir(root).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = git.spawn().unwrap();
        let text: Vec<&[u8]> = paths.iter().map(|path| path.as_os_str().as_bytes()).collect();
        child.stdin.take().unwrap().write_all(&text.join(&0)).unwrap();
        let output = child.wait_with_output().unwrap().stdout;
        let ignored = output.split(|&byte| byte == 0).filter(|path| !path.is_empty());
        ignored.map(|path| PathBuf::from(std::ffi::OsStr::from_bytes(path))).collect()
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
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        /// Git knows no `.ignore` files: it gets their rules behind those of the `.gitignore`
        /// beside.
        #[test]
        fn ignore_rules_mean_what_they_mean_to_git(
            rules in prop::collection::btree_map(
                (prop::sample::select(&DIRECTORIES), prop::sample::select(&[0, 1, 2])),
                prop::collection::vec(rule(), 1..5),
                0..7,
            ),
            excluded in prop::collection::vec(rule(), 0..2),
            root in prop::sample::select(vec!["", "a", "a/b"]),
            threads in 1..4_usize,
        ) {
            let kept = tempfile::tempdir().unwrap();
            let (ours, gits) = (kept.path().join("ours"), kept.path().join("git"));
            let mut paths: BTreeSet<PathBuf> = BTreeSet::new();
            for directory in DIRECTORIES {
                for tree in [&ours, &gits] {
                    std::fs::create_dir_all(tree.join(directory)).unwrap();
                }
                paths.extend(Some(PathBuf::from(directory)).filter(|_| !directory.is_empty()));
                for file in FILES {
                    paths.insert(Path::new(directory).join(file));
                    for tree in [&ours, &gits] {
                        std::fs::write(tree.join(directory).join(file), "").unwrap();
                    }
                }
            }
            let mut combined: BTreeMap<&str, String> = BTreeMap::new();
            for ((directory, file), lines) in &rules {
                let path = Path::new(directory).join(RULE_FILES[*file]);
                std::fs::write(ours.join(&path), lines.join("\n")).unwrap();
                paths.insert(path);
                *combined.entry(directory).or_default() += &format!("{}\n", lines.join("\n"));
            }
            for (directory, text) in combined {
                std::fs::write(gits.join(directory).join(".gitignore"), text).unwrap();
            }
            std::fs::create_dir_all(ours.join(".git/info")).unwrap();
            Command::new("git").args(["init", "-q"]).arg(&gits).status().unwrap();
            std::fs::create_dir_all(gits.join(".git/info")).unwrap();
            for tree in [&ours, &gits] {
                std::fs::write(tree.join(".git/info/exclude"), excluded.join("\n")).unwrap();
            }
            let ignored = ignored_by_git(&gits, &paths);
            // What is in an ignored directory is no project of its own to git.
            prop_assume!(!ignored.contains(Path::new(root)));
            let inside = |path: &PathBuf| path.strip_prefix(root).ok().map(Path::to_owned);
            let shown: BTreeSet<PathBuf> = paths.difference(&ignored).filter_map(inside).collect();
            let is_file = |path: &&PathBuf| ours.join(root).join(path).is_file();
            let (files, mut directories): (BTreeSet<PathBuf>, BTreeSet<PathBuf>) =
                shown.iter().cloned().partition(|path| is_file(&path));
            directories.insert(PathBuf::new());
            let tree = WorkTree::new(&ours.join(root), threads);
            let listed: BTreeSet<PathBuf> =
                tree.list().unwrap().files.iter().map(|file| file.path.as_path().to_owned()).collect();
            prop_assert_eq!(&listed, &files);
            let top = ours.join(root);
            let found: BTreeSet<PathBuf> =
                tree.directories().iter().map(|path| path.strip_prefix(&top).unwrap().to_owned()).collect();
            prop_assert_eq!(found, directories);
            // Asked for by itself, a file is seen or left out as in the list.
            for path in paths.iter().filter_map(inside).filter(|path| is_file(&path)) {
                let seen = tree.stamp(&RelPath::parse(path.as_os_str().as_bytes()).unwrap());
                prop_assert_eq!(seen.is_some(), files.contains(&path), "{:?}", path);
            }
        }
    }

    #[test]
    fn directories_that_tools_make_are_left_out_without_a_rule() {
        let kept = tempfile::tempdir().unwrap();
        let at = |path: &str| kept.path().join(path);
        for directory in ["node_modules/m", "cache/deep", "src"] {
            std::fs::create_dir_all(at(directory)).unwrap();
            std::fs::write(at(directory).join("x"), "").unwrap();
        }
        std::fs::write(at("cache/CACHEDIR.TAG"), "Signature: 8a477f597d28d172789f06886806bc55\n").unwrap();
        let tree = WorkTree::new(kept.path(), 1);
        let listed = || -> Vec<String> {
            tree.list().unwrap().files.iter().map(|file| file.path.to_string()).collect()
        };
        assert_eq!(listed(), ["src/x"]);
        for (path, is_seen) in [("node_modules/m/x", false), ("cache/deep/x", false), ("src/x", true)] {
            assert_eq!(tree.stamp(&RelPath::parse(path).unwrap()).is_some(), is_seen, "{path}");
        }
        std::fs::write(at(".gitignore"), "!node_modules\n").unwrap();
        let tree = WorkTree::new(kept.path(), 1);
        let paths: Vec<String> =
            tree.list().unwrap().files.iter().map(|file| file.path.to_string()).collect();
        assert!(paths.contains(&"node_modules/m/x".to_owned()), "{paths:?}");
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
