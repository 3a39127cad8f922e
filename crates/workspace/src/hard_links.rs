//! Hard links out of the project: writing to such a file changes a file outside, too.
//!
//! Package managers fill `node_modules` and `.venv` with hard links into a store in the home, and
//! trees are copied by linking. A command works on such files in an overlay, which copies before it
//! writes; where it can't, they are read-only to it. Names that all lie in the project do no harm,
//! such as a build's own in `target`.
//!
//! Of a directory that a package manager fills a sample is looked at, and again when its marks
//! change: a manager links its files or copies them, and rarely mixes.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use journeyman_protocol::RelPath;
use rustix::fs::{AtFlags, Dir, FileType, statat};

use crate::error::WorkspaceError;
use crate::files::directory::entry_names;
use crate::files::stat::FileStat;
use crate::limits::MAX_DEPTH;
use crate::mutex::lock;
use crate::project::Project;
use crate::snapshot::tree::Tree;
use crate::walk::plan::{WalkPlan, no_siblings};
use crate::walk::walk;
use journeyman_ignore_rules::tool_directories::is_dependency_directory;

/// Names that change when a package manager has worked in such a directory.
const PACKAGE_MARKERS: [&[u8]; 4] = [b".modules.yaml", b".package-lock.json", b".pnpm", b"lib"];
/// Such directories that are looked at: a large workspace of packages has some hundreds.
const MAX_DEPENDENCY_DIRS: usize = 1_000;
/// Entries looked at in all: 20 ms.
const MAX_EXAMINED_ENTRIES: usize = 20_000;
/// And for each package, or whatever lies right in such a directory.
const MAX_PACKAGE_SAMPLE: usize = 256;
/// Files looked at of one directory further in.
const MAX_DIR_SAMPLE: usize = 8;
/// Maximum number of files whose other names are searched for; more than this are taken for files
/// of a store.
const MAX_SOUGHT_INODES: usize = 64;
/// Entries that may be passed in the search for other names; only their numbers are read.
const MAX_SEARCHED_ENTRIES: usize = 200_000;
/// Paths right in a directory that are protected by themselves; with more it is protected whole.
const MAX_PROTECTED_PARTS: usize = 64;

/// Paths at which writing would change files outside of the project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HardLinks {
    /// Files that checkpoints cover.
    pub files: Vec<RelPath>,
    /// Files and directories in directories that package managers fill.
    pub dependencies: Vec<RelPath>,
}

impl HardLinks {
    /// Returns true if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.dependencies.is_empty()
    }

    /// Returns all these paths.
    pub fn paths(&self) -> impl Iterator<Item = &RelPath> {
        self.dependencies.iter().chain(&self.files)
    }
}

/// The last result, and the metadata by which it is still valid.
#[derive(Debug, Default)]
pub(crate) struct HardLinkCache {
    dependencies: HashMap<RelPath, (StampList, Vec<RelPath>)>,
    /// Covered files with several names, and those whose names aren't all in the project.
    files: (Vec<(u64, i64)>, Arc<HashSet<u64>>),
}

type StampList = Vec<Option<FileStat>>;

/// Finds files with names outside of the project.
pub(crate) struct HardLinkFinder {
    project: Arc<Project>,
    memory: Mutex<HardLinkCache>,
}

impl HardLinkFinder {
    pub(crate) fn new(project: Arc<Project>) -> Self {
        Self { project, memory: Mutex::default() }
    }

    /// Finds hard links to the outside without keeping a snapshot or reading any content.
    ///
    /// # Errors
    /// [`WorkspaceError::Root`] when the root can't be listed.
    pub(crate) fn find(&self) -> Result<HardLinks, WorkspaceError> {
        let plan = WalkPlan {
            stat: true,
            siblings: &no_siblings,
            ..WalkPlan::names_only(
                &self.project.root_dir,
                &self.project.rules,
                self.project.limits().max_files,
            )
        };
        let walked = walk(&plan).map_err(|errno| WorkspaceError::Root {
            path: self.project.root().to_owned(),
            source: errno.into(),
        })?;
        let mut dependencies = Vec::new();
        for dir in std::iter::once(None).chain(walked.dirs.iter().map(|dir| RelPath::parse(&dir.path).ok())) {
            let names = self
                .project
                .root_dir
                .open_directory(dir.as_ref())
                .and_then(|open| entry_names(&open))
                .unwrap_or_default();
            let names = names.into_iter().filter(|name| is_dependency_directory(name));
            dependencies.extend(names.filter_map(|name| child_path(dir.as_ref(), &name)));
        }
        let files = walked.files.iter().filter_map(|file| Some((file.path.as_slice(), file.seen?)));
        Ok(HardLinks {
            files: self.linked_files(files),
            dependencies: self.linked_dependencies(&dependencies),
        })
    }

    /// Returns the hard links in a tree whose snapshot was just taken.
    pub(crate) fn find_in_tree(&self, tree: &Tree, dependencies: &[RelPath]) -> HardLinks {
        let files = tree.entries.iter().map(|entry| (entry.path.as_slice(), entry.seen));
        HardLinks { files: self.linked_files(files), dependencies: self.linked_dependencies(dependencies) }
    }

    fn linked_files<'a>(&self, files: impl Iterator<Item = (&'a [u8], FileStat)>) -> Vec<RelPath> {
        let linked: Vec<(&[u8], FileStat)> =
            files.filter(|(_, seen)| seen.names > 1 && seen.is_file()).collect();
        if linked.is_empty() {
            return Vec::new();
        }
        let mut known = lock(&self.memory);
        let signature: Vec<(u64, i64)> = linked.iter().map(|(_, seen)| (seen.ino, seen.ctime)).collect();
        if known.files.0 != signature {
            let mut names = LinkCounts::default();
            linked.iter().for_each(|(_, seen)| names.count_name(seen));
            let missing = names.with_missing_names();
            // Those that were met are counted again.
            let found = if missing.len() > MAX_SOUGHT_INODES {
                missing
            } else {
                self.inodes_linked_outside(missing, &names)
            };
            known.files = (signature, Arc::new(found));
        }
        let outside = Arc::clone(&known.files.1);
        drop(known);
        let all = linked.iter().filter(|(_, seen)| outside.contains(&seen.ino));
        all.filter_map(|(path, _)| RelPath::parse(path).ok()).collect()
    }

    fn linked_dependencies(&self, directories: &[RelPath]) -> Vec<RelPath> {
        let mut known = lock(&self.memory);
        let mut now = HashMap::with_capacity(directories.len());
        let mut looked_at = 0;
        for directory in directories.iter().take(MAX_DEPENDENCY_DIRS) {
            let marks = self.marker_stamps(directory);
            let found = match known.dependencies.remove(directory).filter(|(then, _)| *then == marks) {
                Some((_, found)) => found,
                None => self.find_linked_parts(directory, &mut looked_at),
            };
            now.insert(directory.clone(), (marks, found));
        }
        let mut all: Vec<RelPath> = now.values().flat_map(|(_, found)| found).cloned().collect();
        all.sort();
        known.dependencies = now;
        all
    }

    /// Returns the metadata that changes when a package manager works in a directory.
    fn marker_stamps(&self, directory: &RelPath) -> StampList {
        let look = |path: &RelPath| self.project.root_dir.stat(path).ok().flatten();
        let mut marks = vec![look(directory)];
        marks.extend(PACKAGE_MARKERS.iter().map(|name| directory.join(name).ok().as_ref().and_then(look)));
        // Python's packages lie further in.
        let lib = directory.join("lib").ok();
        let open = lib.as_ref().filter(|_| marks.last().is_some_and(Option::is_some));
        let names = open
            .and_then(|lib| self.project.root_dir.open_directory(Some(lib)).ok())
            .and_then(|dir| entry_names(&dir).ok());
        let mut names = names.unwrap_or_default();
        names.sort_unstable();
        for name in names.iter().take(MAX_DIR_SAMPLE) {
            let packages = lib.as_ref().and_then(|lib| lib.join(name).ok()?.join("site-packages").ok());
            marks.push(packages.as_ref().and_then(look));
        }
        marks
    }

    /// Returns the parts of a directory with links out of the project, or the whole directory if
    /// there are many.
    fn find_linked_parts(&self, directory: &RelPath, looked_at: &mut usize) -> Vec<RelPath> {
        let Ok(open) = self.project.root_dir.open_directory(Some(directory)) else { return Vec::new() };
        let mut parts = entry_names(&open).unwrap_or_default();
        parts.sort_unstable();
        let mut names = LinkCounts::default();
        let mut met: Vec<(RelPath, Vec<u64>)> = Vec::new();
        for part in parts {
            let Some(path) = child_path(Some(directory), &part) else { continue };
            let mut inodes = Vec::new();
            self.sample_part(&open, &part, &path, looked_at, &mut |seen| {
                names.count_name(seen);
                inodes.push(seen.ino);
            });
            if !inodes.is_empty() {
                met.push((path, inodes));
            }
        }
        let missing = names.with_missing_names();
        let outside = if missing.len() > MAX_SOUGHT_INODES {
            missing
        } else {
            self.inodes_linked_outside(missing, &names)
        };
        met.retain(|(_, inodes)| inodes.iter().any(|inode| outside.contains(inode)));
        if met.len() > MAX_PROTECTED_PARTS {
            return vec![directory.clone()];
        }
        met.into_iter().map(|(path, _)| path).collect()
    }

    /// Examines some files in a part of a directory, and passes those with several names to `tell`.
    fn sample_part(
        &self,
        open: &OwnedFd,
        name: &[u8],
        path: &RelPath,
        looked_at: &mut usize,
        tell: &mut impl FnMut(&FileStat),
    ) {
        let Ok(stat) = statat(open, name, AtFlags::SYMLINK_NOFOLLOW) else { return };
        let seen = FileStat::of(&stat);
        if seen.is_file() && seen.names > 1 {
            tell(&seen);
        }
        let mut below_it = if seen.is_dir() { vec![(path.clone(), 1)] } else { Vec::new() };
        let mut left = MAX_PACKAGE_SAMPLE;
        // The last first: the depth of one package is reached soon.
        while let Some((at, depth)) = below_it.pop() {
            let Ok(open) = self.project.root_dir.open_directory(Some(&at)) else { continue };
            let mut names = entry_names(&open).unwrap_or_default();
            names.sort_unstable();
            let mut files = if depth > 1 { MAX_DIR_SAMPLE } else { MAX_PACKAGE_SAMPLE };
            for name in names {
                if left == 0 || *looked_at >= MAX_EXAMINED_ENTRIES {
                    return;
                }
                let Ok(stat) = statat(&open, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW) else { continue };
                let seen = FileStat::of(&stat);
                (*looked_at, left) = (*looked_at + 1, left - 1);
                if seen.is_dir() && depth < MAX_DEPTH {
                    below_it.extend(at.join(&name).ok().map(|path| (path, depth + 1)));
                } else if seen.is_file() && files > 0 {
                    files -= 1;
                    if seen.names > 1 {
                        tell(&seen);
                    }
                }
            }
        }
    }

    /// Returns those of the inodes that have names outside of the project. If the search has to end
    /// early, returns all of them.
    fn inodes_linked_outside(&self, sought: HashSet<u64>, names: &LinkCounts) -> HashSet<u64> {
        if sought.is_empty() {
            return sought;
        }
        let mut counts: HashMap<u64, u32> = sought.iter().map(|inode| (*inode, 0)).collect();
        let mut open: Vec<(Option<RelPath>, usize)> = vec![(None, 0)];
        let mut passed = 0;
        while let Some((at, depth)) = open.pop() {
            let Ok(dir) = self.project.root_dir.open_directory(at.as_ref()) else { continue };
            let Ok(entries) = Dir::read_from(&dir) else { continue };
            for entry in entries.flatten() {
                let name = entry.file_name().to_bytes();
                passed += 1;
                if passed > MAX_SEARCHED_ENTRIES {
                    return sought;
                }
                if entry.file_type() == FileType::Directory
                    && !matches!(name, b"." | b"..")
                    && depth < MAX_DEPTH
                {
                    open.extend(child_path(at.as_ref(), name).map(|path| (Some(path), depth + 1)));
                } else if let Some(count) = counts.get_mut(&entry.ino()) {
                    *count += 1;
                }
            }
        }
        counts.retain(|inode, count| names.0.get(inode).is_some_and(|(all, _)| *count < *all));
        counts.into_keys().collect()
    }
}

/// Inodes with several names: how many, and how many were met.
#[derive(Default)]
struct LinkCounts(HashMap<u64, (u32, u32)>);

impl LinkCounts {
    fn count_name(&mut self, seen: &FileStat) {
        let known = self.0.entry(seen.ino).or_insert((seen.names, 0));
        known.1 += 1;
    }

    /// Returns the inodes of which not every name was found.
    fn with_missing_names(&self) -> HashSet<u64> {
        self.0.iter().filter(|(_, (all, met))| met < all).map(|(inode, _)| *inode).collect()
    }
}

fn child_path(directory: Option<&RelPath>, name: &[u8]) -> Option<RelPath> {
    directory.map_or_else(|| RelPath::parse(name), |directory| directory.join(name)).ok()
}
