//! Walks a tree for the files and directories to index, by the walk that all listings share.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use journeyman_ignore_rules::walk::{DirNames, MAX_DEPTH, visit_all};
use journeyman_ignore_rules::{
    CACHE_TAG_FILE, ParsedRuleSource, RuleLayer, is_copies_directory, is_git_directory_name, is_ignored,
    is_tagged_cache,
};
use journeyman_protocol::RelPath;
use journeyman_root_fs::{LinkPolicy, open_beneath, open_root};
use rustix::fs::{AtFlags, FileType, OFlags, Stat, statat};
use rustix::io::Errno;

use super::rules::{add_rules, rules_above};
use crate::analysis::FileStamp;

/// Maximum number of listed files, which bounds the cost of a huge tree.
pub const MAX_FILES: usize = 1_000_000;
/// Maximum number of listed directories: no system watches as many.
pub const MAX_DIRECTORIES: usize = 1_000_000;

/// A listed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    /// Path of the file.
    pub path: RelPath,
    /// Metadata by which a change is noticed.
    pub stamp: FileStamp,
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
    depth: usize,
    rules: Option<Arc<RuleLayer>>,
}

/// The results of one thread.
#[derive(Default)]
struct ThreadResults {
    found: WalkResult,
    names: DirNames,
}

/// The limits of a walk, and the numbers used so far.
struct WalkBudget {
    limits: WalkLimits,
    files: AtomicUsize,
    directories: AtomicUsize,
    cut: AtomicBool,
}

impl TreeWalk {
    /// Opens a tree.
    pub(super) fn new(root: &Path) -> std::io::Result<Self> {
        Ok(Self { root: open_root(root)?, above: rules_above(root) })
    }

    /// Finds the files and directories that no rule ignores.
    pub(super) fn walk(&self, threads: usize, limits: WalkLimits) -> WalkResult {
        let first = PendingDirectory { path: Vec::new(), depth: 0, rules: self.above.clone() };
        let (files, directories) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let room = WalkBudget { limits, files, directories, cut: AtomicBool::new(false) };
        let results = visit_all(first, threads, |directory, below, results: &mut ThreadResults| {
            if room.is_full() {
                return;
            }
            match self.read_directory(&directory, &room, below, results) {
                // Gone meanwhile, or a link by now.
                Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(_) => {
                    below.clear();
                    results.found.unreadable += 1;
                }
            }
        });
        let mut all = WalkResult::default();
        for ThreadResults { found, .. } in results {
            all.files.extend(found.files);
            all.directories.extend(found.directories);
            all.unreadable += found.unreadable;
        }
        all.cut = room.cut.into_inner();
        all
    }

    /// Reads one directory.
    fn read_directory(
        &self,
        directory: &PendingDirectory,
        room: &WalkBudget,
        below: &mut Vec<PendingDirectory>,
        results: &mut ThreadResults,
    ) -> Result<(), Errno> {
        let ThreadResults { found, names } = results;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let name = if directory.path.is_empty() { b"." } else { directory.path.as_slice() };
        let opened = open_beneath(self.root.as_fd(), name, flags, LinkPolicy::Refuse)?;
        names.read(opened.as_fd())?;
        if names.is_truncated() {
            room.cut.store(true, Ordering::Relaxed);
        }
        room.add_directory(directory, found);
        if directory.depth > 0 && names.has_file(CACHE_TAG_FILE) && is_tagged_cache(opened.as_fd()) {
            return Ok(());
        }
        let has = |name: &[u8]| names.has_file(name);
        let rules = add_rules(directory.rules.clone(), opened.as_fd(), &directory.path, has);
        let mut path = directory.path.clone();
        if !path.is_empty() {
            path.push(b'/');
        }
        let prefix = path.len();
        for name in names.sorted_names() {
            let (bytes, is_directory) = (names.bytes(name), name.kind == FileType::Directory);
            let is_wanted = if is_directory {
                directory.depth < MAX_DEPTH && !is_copies_directory(bytes)
            } else {
                name.kind == FileType::RegularFile && room.limits.files > 0
            };
            path.truncate(prefix);
            path.extend_from_slice(bytes);
            if !is_wanted || is_ignored(&ParsedRuleSource, rules.as_ref(), &path, bytes, is_directory) {
                continue;
            }
            if is_directory {
                let (path, depth) = (path.clone(), directory.depth + 1);
                below.push(PendingDirectory { path, depth, rules: rules.clone() });
            } else if let (Ok(path), Ok(stat)) =
                (RelPath::parse(&path), statat(&opened, bytes, AtFlags::SYMLINK_NOFOLLOW))
            {
                if !room.try_add_file() {
                    below.clear();
                    break;
                }
                found.files.push(ListedFile { path, stamp: stamp_of(&stat) });
            }
        }
        Ok(())
    }

    /// Returns true if neither the path nor a directory above it is ignored.
    pub(super) fn is_visible(&self, path: &RelPath) -> bool {
        let path = path.as_bytes();
        if path.split(|&byte| byte == b'/').count() > MAX_DEPTH + 1 {
            return false;
        }
        let (mut rules, mut begin) = (self.above.clone(), 0_usize);
        loop {
            let directory = path.get(..begin.saturating_sub(1)).unwrap_or_default();
            let at = if directory.is_empty() { b"." } else { directory };
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let Ok(opened) = open_beneath(self.root.as_fd(), at, flags, LinkPolicy::Refuse) else {
                return false;
            };
            if begin > 0 && is_tagged_cache(opened.as_fd()) {
                return false;
            }
            rules = add_rules(rules, opened.as_fd(), directory, |_| true);
            let rest = path.get(begin..).unwrap_or_default();
            let end = rest.iter().position(|&byte| byte == b'/').map(|end| begin + end);
            let next = path.get(..end.unwrap_or(path.len())).unwrap_or(path);
            let name = next.get(begin..).unwrap_or_default();
            if is_git_directory_name(name)
                || (end.is_some() && is_copies_directory(name))
                || is_ignored(&ParsedRuleSource, rules.as_ref(), next, name, end.is_some())
            {
                return false;
            }
            match end {
                Some(end) => begin = end + 1,
                None => return true,
            }
        }
    }
}

impl WalkBudget {
    /// Returns true if the walk ends because there are more files than the limit.
    fn is_full(&self) -> bool {
        self.limits.files > 0 && self.cut.load(Ordering::Relaxed)
    }

    fn add_directory(&self, directory: &PendingDirectory, found: &mut WalkResult) {
        if self.directories.fetch_add(1, Ordering::Relaxed) < self.limits.directories {
            found.directories.push(directory.path.clone());
        }
    }

    /// Counts a file; returns false beyond the limit.
    fn try_add_file(&self) -> bool {
        let fits = self.files.fetch_add(1, Ordering::Relaxed) < self.limits.files;
        if !fits {
            self.cut.store(true, Ordering::Relaxed);
        }
        fits
    }
}

#[allow(
    clippy::unnecessary_cast,
    clippy::cast_lossless,
    trivial_numeric_casts,
    reason = "the types differ by system"
)]
pub(crate) fn stamp_of(stat: &Stat) -> FileStamp {
    let nanoseconds = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    FileStamp {
        size: u64::try_from(stat.st_size).unwrap_or_default(),
        modified: nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        changed: nanoseconds(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        inode: stat.st_ino as u64,
    }
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
    use crate::source::{FileSource as _, IGNORE_FILE, WorkTree};

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
