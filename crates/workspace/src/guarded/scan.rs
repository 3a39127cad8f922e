//! A walk over the names of the whole tree, ignored directories included: repositories and guarded
//! names.
//!
//! It goes level by level, so that a bound cuts off what lies deepest. A directory whose signature
//! is as it was in the look before isn't listed again, so that a large `node_modules` costs one
//! `stat` for each directory in it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

use journeyman_protocol::{GuardRules, RelPath};
use rustix::fs::{AtFlags, FileType, OFlags, fstat, statat};
use rustix::io::Errno;

use crate::files::paths::last_component;
use crate::files::root_dir::{LinkPolicy, RootDir};
use crate::files::stat::{FileStat, file_clock, is_change_settled};
use crate::limits::MAX_DEPTH;
use crate::project::Project;
use crate::rules::{RuleCache, RuleLayer};
use crate::snapshot::snapshots::Snapshots;
use crate::snapshot::tree::Tree;
use crate::walk::visit::device_of;
use journeyman_ignore_rules::RULE_FILES;
use journeyman_ignore_rules::tool_directories::is_never_project;
use journeyman_ignore_rules::walk::DirNames;
use journeyman_ignore_rules::{RuleSource, Rules, is_ignored};

/// Maximum number of names that one look reads, so that a flood of files ends it in seconds.
const MAX_SCANNED_NAMES: usize = 8_000_000;
/// From so many directories on a level, several threads list them.
const MIN_PARALLEL_DIRS: usize = 512;
/// More threads than this only wait for each other.
const MAX_THREADS: usize = 4;
/// The three names that make a directory a repository to git, in lower case.
const BARE_REPOSITORY_NAMES: [&[u8]; 3] = [b"head", b"objects", b"refs"];

/// A directory's identity and times when its names were listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DirSignature {
    device: u64,
    seen: FileStat,
}

/// The relevant names of one directory.
#[derive(Debug, Default)]
pub(crate) struct RelevantNames {
    /// Absent where the same signature doesn't mean the same names.
    signature: Option<DirSignature>,
    pub(crate) ino: u64,
    repositories: Vec<Vec<u8>>,
    guarded: Vec<Vec<u8>>,
    /// The names in the directory that belong to a bare repository.
    pub(crate) parts: Vec<Vec<u8>>,
    directories: Vec<Vec<u8>>,
    /// The number of names read.
    names: usize,
}

impl RelevantNames {
    /// Creates the names of a directory of which nothing but the parts of a bare repository is
    /// known.
    pub(super) fn from_bare_parts(parts: Vec<Vec<u8>>) -> Self {
        Self { parts, ..Self::default() }
    }

    fn is_bare(&self) -> bool {
        BARE_REPOSITORY_NAMES.iter().all(|part| self.parts.iter().any(|name| name.eq_ignore_ascii_case(part)))
    }
}

/// Directories by path; the root's is empty.
pub(crate) type RelevantNamesByDir = HashMap<Arc<[u8]>, Arc<RelevantNames>>;

/// The result of one look.
#[derive(Debug, Default)]
pub(crate) struct GuardedScan {
    pub(crate) notes: Arc<RelevantNamesByDir>,
    /// Everything named `.git`, in any letter case.
    pub(crate) repositories: Vec<RelPath>,
    /// The outermost guarded names, but for git's own.
    pub(crate) guarded: Vec<RelPath>,
    /// Guarded names among dependencies and build products that are obeyed all the same.
    pub(crate) among_products: Vec<RelPath>,
    /// Directories that git takes for repositories without a `.git`; `None` is the root.
    pub(crate) bare: Vec<Option<RelPath>>,
    /// Directories that couldn't be listed.
    pub(crate) unreadable: Vec<Arc<[u8]>>,
    /// False if a bound ended the look.
    pub(crate) complete: bool,
}

enum DirListing {
    Known(Arc<RelevantNames>),
    New(Arc<RelevantNames>),
    Unreadable,
    Gone,
}

/// A look under way.
pub(crate) struct GuardedScanner<'a> {
    pub(crate) project: &'a Project,
    pub(crate) snapshots: &'a Snapshots,
    pub(crate) guards: GuardRules,
    pub(crate) before: &'a RelevantNamesByDir,
    /// Maximum number of directories that the look covers.
    pub(crate) max_directories: usize,
}

impl GuardedScanner<'_> {
    pub(crate) fn run(&self) -> GuardedScan {
        let products = BuildProducts::of(self.project, self.snapshots);
        let mut look = GuardedScan { complete: true, ..GuardedScan::default() };
        let mut notes = RelevantNamesByDir::with_capacity(self.before.len());
        let (mut names, mut depth) = (0_usize, 0);
        let mut level: Vec<Arc<[u8]>> = vec![Arc::default()];
        while !level.is_empty() {
            let mut below = Vec::new();
            for (path, listing) in level.iter().zip(self.list_all(&level)) {
                let noted = match listing {
                    DirListing::Known(noted) => noted,
                    DirListing::New(noted) => {
                        names = names.saturating_add(noted.names);
                        noted
                    }
                    DirListing::Unreadable => {
                        look.unreadable.push(path.clone());
                        continue;
                    }
                    DirListing::Gone => continue,
                };
                self.classify_names(path, &noted, &products, &mut look, &mut below);
                notes.insert(path.clone(), noted);
            }
            depth += 1;
            let room = self.max_directories.saturating_sub(notes.len());
            if below.len() > room || names > MAX_SCANNED_NAMES || (depth > MAX_DEPTH && !below.is_empty()) {
                look.complete = false;
                below.truncate(if names > MAX_SCANNED_NAMES || depth > MAX_DEPTH { 0 } else { room });
            }
            level = below;
        }
        look.notes = Arc::new(notes);
        look
    }

    /// Classifies a directory's names into `look`, and adds the directories to enter to `below`.
    fn classify_names(
        &self,
        path: &[u8],
        noted: &RelevantNames,
        products: &BuildProducts<'_>,
        look: &mut GuardedScan,
        below: &mut Vec<Arc<[u8]>>,
    ) {
        let whole = |name: &[u8]| if path.is_empty() { name.to_vec() } else { [path, b"/", name].concat() };
        let parsed = |name: &Vec<u8>| RelPath::parse(whole(name)).ok();
        look.repositories.extend(noted.repositories.iter().filter_map(parsed));
        if noted.is_bare() {
            look.bare.push(RelPath::parse(path).ok());
        }
        let mut closed: Vec<&[u8]> = Vec::new();
        for name in &noted.guarded {
            let Some(path) = parsed(name) else { continue };
            if self.project.rules.is_own_directory(path.as_bytes()) {
                continue;
            }
            if !products.contains(path.as_bytes()) {
                closed.push(name);
                look.guarded.push(path);
            } else if RelPath::parse(name).is_ok_and(|name| (self.guards.on_entering)(&name)) {
                closed.push(name);
                look.among_products.push(path);
            }
        }
        for name in &noted.directories {
            if !closed.contains(&name.as_slice()) {
                let path = whole(name);
                if !self.project.rules.is_own_directory(&path) {
                    below.push(path.into());
                }
            }
        }
    }

    fn list_all(&self, level: &[Arc<[u8]>]) -> Vec<DirListing> {
        let begun = file_clock();
        if level.len() < MIN_PARALLEL_DIRS {
            let mut names = DirNames::default();
            return level.iter().map(|path| self.list(path, begun, &mut names)).collect();
        }
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        let piece = level.len().div_ceil(threads).max(1);
        std::thread::scope(|scope| {
            let work = |paths: &[Arc<[u8]>]| {
                let mut names = DirNames::default();
                paths.iter().map(|path| self.list(path, begun, &mut names)).collect::<Vec<_>>()
            };
            let started: Vec<_> =
                level.chunks(piece).map(|paths| (paths.len(), scope.spawn(move || work(paths)))).collect();
            let ended = started.into_iter().map(|(count, thread)| {
                // What a thread that died should have listed isn't known.
                thread.join().unwrap_or_else(|_| (0..count).map(|_| DirListing::Unreadable).collect())
            });
            ended.flatten().collect()
        })
    }

    fn list(&self, path: &Arc<[u8]>, begun: i64, names: &mut DirNames) -> DirListing {
        let at: &[u8] = if path.is_empty() { b"." } else { path };
        let before = self.before.get(path);
        if let Some(noted) = before
            && let Some(then) = noted.signature
            && let Ok(stat) = statat(self.project.root_dir.root(), at, AtFlags::SYMLINK_NOFOLLOW)
            && then == (DirSignature { device: device_of(&stat), seen: FileStat::of(&stat) })
        {
            return DirListing::Known(Arc::clone(noted));
        }
        match self.relist_dir(at, begun, names) {
            Ok(noted) => DirListing::New(Arc::new(noted)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => DirListing::Gone,
            Err(_) => DirListing::Unreadable,
        }
    }

    fn relist_dir(&self, at: &[u8], begun: i64, names: &mut DirNames) -> Result<RelevantNames, Errno> {
        let dir =
            self.project.root_dir.open_beneath(at, OFlags::RDONLY | OFlags::DIRECTORY, LinkPolicy::Refuse)?;
        // Before the names are read: a later change shows in a later signature.
        let stat = fstat(&dir)?;
        let signature = DirSignature { device: device_of(&stat), seen: FileStat::of(&stat) };
        let tells = self.project.root_dir.reliable_mtime_device() == Some(signature.device)
            && is_change_settled(&signature.seen, begun);
        names.read(dir.as_fd())?;
        let mut noted = RelevantNames {
            signature: tells.then_some(signature),
            ino: signature.seen.ino,
            repositories: names.git_names().to_vec(),
            names: names.sorted_names().len(),
            ..RelevantNames::default()
        };
        for name in names.sorted_names() {
            let bytes = names.bytes(name);
            if name.kind == FileType::Directory {
                noted.directories.push(bytes.to_vec());
            }
            if BARE_REPOSITORY_NAMES.iter().any(|part| bytes.eq_ignore_ascii_case(part)) {
                noted.parts.push(bytes.to_vec());
            }
            if RelPath::parse(bytes).is_ok_and(|name| (self.guards.guarded)(&name)) {
                noted.guarded.push(bytes.to_vec());
            }
        }
        Ok(noted)
    }
}

/// Tells which paths lie among dependencies or build products.
pub(crate) struct BuildProducts<'a> {
    root_dir: &'a RootDir,
    rules: &'a RuleCache,
    /// The newest snapshot: a directory that it looked into isn't hidden by rules that a command
    /// wrote since.
    tree: Option<Arc<Tree>>,
    ignored: RefCell<HashMap<Vec<u8>, bool>>,
}

impl<'a> BuildProducts<'a> {
    pub(crate) fn of(project: &'a Project, snapshots: &Snapshots) -> Self {
        let (root_dir, rules) = (&project.root_dir, &project.rules);
        Self { root_dir, rules, tree: snapshots.newest_tree(), ignored: RefCell::default() }
    }

    /// Returns true if a directory above the path is ignored and nobody opens it as a project.
    pub(crate) fn contains(&self, path: &[u8]) -> bool {
        let mut slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        slashes.any(|cut| {
            let dir = path.get(..cut).unwrap_or_default();
            is_never_project(last_component(dir)) && self.is_ignored_dir(dir)
        })
    }

    /// Returns true if rules ignore the directory, or one above it.
    pub(crate) fn is_ignored_dir(&self, dir: &[u8]) -> bool {
        if let Some(known) = self.ignored.borrow().get(dir) {
            return *known;
        }
        let ignored = self.is_ignored(dir);
        self.ignored.borrow_mut().insert(dir.to_vec(), ignored);
        ignored
    }

    fn is_ignored(&self, dir: &[u8]) -> bool {
        let mut layers = self.rules.outer_rules(self.root_dir.path());
        let cuts = dir.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let mut above: &[u8] = b"";
        for cut in cuts.chain([dir.len()]) {
            let at: &[u8] = if above.is_empty() { b"." } else { above };
            let Ok(open) =
                self.root_dir.open_beneath(at, OFlags::RDONLY | OFlags::DIRECTORY, LinkPolicy::Refuse)
            else {
                return false;
            };
            let files: Vec<_> =
                RULE_FILES.into_iter().filter_map(|name| stat_rule_file(open.as_fd(), name)).collect();
            if !files.is_empty() {
                layers = Some(RuleLayer::new(above, files, layers));
            }
            let path = dir.get(..cut).unwrap_or_default();
            let is_known = self.tree.as_ref().is_some_and(|tree| {
                tree.dirs.binary_search_by(|known| known.path.as_slice().cmp(path)).is_ok()
            });
            if !is_known && is_ignored(self, layers.as_ref(), path, last_component(path), true) {
                return true;
            }
            above = path;
        }
        false
    }
}

fn stat_rule_file(dir: BorrowedFd<'_>, name: &'static [u8]) -> Option<(&'static [u8], FileStat)> {
    let seen = FileStat::of(&statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?);
    seen.is_file().then_some((name, seen))
}

impl RuleSource<FileStat> for BuildProducts<'_> {
    fn load(&self, dir: &[u8], files: &[(&'static [u8], FileStat)]) -> Arc<Rules> {
        let path: &[u8] = if dir.is_empty() { b"." } else { dir };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let Ok(open) = self.root_dir.open_beneath(path, flags, LinkPolicy::Refuse) else {
            return Arc::new(Rules::default());
        };
        self.rules.load(open.as_fd(), dir, files).0
    }
}
