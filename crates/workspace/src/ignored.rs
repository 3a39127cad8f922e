//! Small ignored files around a command: settings, keys, local databases. No checkpoint covers
//! them, but what a command changes or deletes of them is journaled with the rest of its change, so
//! that an undo gives them back.
//!
//! Files that tools make again stay out: files and directories with such names, or tagged as
//! caches, and everything beyond the bounds. Where a directory's own signature is the same, its
//! names aren't read again; a file whose signature is the same isn't, either.

use std::collections::{HashMap, HashSet};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex};

use journeyman_protocol::{ContentHash, RelPath};
use journeyman_store::Durability;
use rustix::fs::{AtFlags, statat};

use crate::error::WorkspaceError;
use crate::files::directory::entry_names;
use crate::files::root_dir::{LinkPolicy, read_up_to};
use crate::files::stat::{FileStat, file_clock, is_change_settled};
use crate::limits::{MAX_DEPTH, MAX_IGNORED_FILES, MAX_KEPT_IGNORED_BYTES, MAX_KEPT_IGNORED_FILES};
use crate::mutex::lock;
use crate::project::Project;
use crate::snapshot::differences::Difference;
use crate::snapshot::entry::{FileKind, FileState};
use crate::snapshot::file_observation::observe_file;
use crate::snapshot::tree::Tree;
use crate::transaction::sibling::is_sibling;
use crate::walk::plan::ListedDir;
use journeyman_ignore_rules::tool_directories::{is_dependency_directory, is_regenerated};
use journeyman_ignore_rules::{is_git_directory_name, is_tagged_cache};

pub(crate) mod ignored_changes;

/// An ignored file before a command.
#[derive(Debug, Clone)]
struct IgnoredFile {
    path: RelPath,
    seen: FileStat,
    /// The kept state; without a hash where it is beyond the bounds.
    state: FileState,
    settled: bool,
}

/// The ignored files before a command.
#[derive(Debug, Clone, Default)]
pub(crate) struct IgnoredSnapshot(Arc<Vec<IgnoredFile>>);

/// The state that is kept from one command to the next.
#[derive(Debug, Default)]
pub(crate) struct IgnoredCache {
    /// The names that the walk left out, by directory.
    names: HashMap<Vec<u8>, (ListedDir, Vec<Vec<u8>>)>,
    files: HashMap<RelPath, IgnoredFile>,
    /// The store's count of removals.
    removals: u64,
    /// Directories that package managers fill.
    pub(crate) dependencies: Vec<RelPath>,
    looked: bool,
}

impl IgnoredSnapshot {
    /// Returns the files whose content isn't kept.
    pub(crate) fn not_undoable_files(&self) -> impl Iterator<Item = &RelPath> {
        self.0.iter().filter(|known| known.state.hash.is_none()).map(|known| &known.path)
    }
}

/// The ignored files of a project, as commands find and leave them.
pub(crate) struct IgnoredFiles {
    pub(crate) project: Arc<Project>,
    pub(crate) memory: Mutex<IgnoredCache>,
}

impl IgnoredFiles {
    pub(crate) fn new(project: Arc<Project>) -> Self {
        Self { project, memory: Mutex::default() }
    }

    /// Returns true if the tree was scanned by this process.
    pub(crate) fn has_scanned(&self) -> bool {
        lock(&self.memory).looked
    }

    /// Returns the directories that package managers fill, by the newest look at the tree.
    pub(crate) fn dependency_dirs(&self) -> Vec<RelPath> {
        lock(&self.memory).dependencies.clone()
    }

    /// Looks at the ignored files, given what the walk found in each directory, and keeps the small
    /// ones if `keep` says so. The right to use blobs is held.
    pub(crate) fn take_snapshot(
        &self,
        tree: &Tree,
        listed: &[Option<ListedDir>],
        keep: bool,
    ) -> Result<IgnoredSnapshot, WorkspaceError> {
        let mut memory = lock(&self.memory);
        let removals = self.project.blob_store.blobs().removal_count();
        if memory.removals != removals {
            memory.files.clear();
            memory.removals = removals;
        }
        let mut found = self.find_ignored(tree, listed, &mut memory);
        memory.looked = true;
        if !keep {
            return Ok(IgnoredSnapshot::default());
        }
        found.sort_by(|one, other| (one.1.size, &one.0).cmp(&(other.1.size, &other.0)));
        let (now, mut bytes) = (file_clock(), 0_u64);
        let mut all = Vec::with_capacity(found.len());
        let mut files = HashMap::with_capacity(found.len());
        for (path, seen) in found {
            let fits = all.len() < MAX_KEPT_IGNORED_FILES
                && seen.size <= self.project.limits().kept_file_bytes
                && bytes.saturating_add(seen.size) <= MAX_KEPT_IGNORED_BYTES;
            let known = match memory.files.remove(&path) {
                Some(known)
                    if known.seen == seen && known.settled && (known.state.hash.is_some() || !fits) =>
                {
                    known
                }
                _ => {
                    let hash = if fits { self.keep_ignored(&path, &seen)? } else { None };
                    let kind = if seen.is_link() { FileKind::Link } else { FileKind::File };
                    let state = FileState { kind, mode: seen.permissions(), size: seen.size, hash };
                    IgnoredFile { path: path.clone(), seen, state, settled: is_change_settled(&seen, now) }
                }
            };
            if known.state.hash.is_some() {
                bytes = bytes.saturating_add(seen.size);
            }
            files.insert(path, known.clone());
            all.push(known);
        }
        memory.files = files;
        Ok(IgnoredSnapshot(Arc::new(all)))
    }

    /// Puts a file's content among the blobs; `None` where it can't be read, or isn't what was
    /// seen.
    fn keep_ignored(&self, path: &RelPath, seen: &FileStat) -> Result<Option<ContentHash>, WorkspaceError> {
        let bytes = if seen.is_link() {
            self.project.root_dir.read_link(path).ok()
        } else {
            let opened =
                self.project.root_dir.open_file(path, LinkPolicy::Refuse).ok().filter(|(_, now)| now == seen);
            opened.and_then(|(file, _)| read_up_to(&file, seen.size, seen.size).ok().flatten())
        };
        let whole = bytes.filter(|bytes| bytes.len() as u64 == seen.size);
        whole.map(|bytes| self.project.blob_store.put(&bytes, Durability::Later)).transpose()
    }

    fn find_ignored(
        &self,
        tree: &Tree,
        listed: &[Option<ListedDir>],
        memory: &mut IgnoredCache,
    ) -> Vec<(RelPath, FileStat)> {
        let root = std::iter::once(b"".as_slice());
        let dirs = root.chain(tree.dirs.iter().map(|dir| dir.path.as_slice()));
        let mut covered = None;
        let mut names = HashMap::with_capacity(memory.names.len());
        let mut search =
            IgnoredSearch { project: &self.project, found: Vec::new(), below: Vec::new(), looked_at: 0 };
        memory.dependencies.clear();
        for (at, dir) in dirs.enumerate() {
            let signature = listed.get(at).copied().flatten().filter(ListedDir::has_reliable_signature);
            let known = memory.names.remove(dir).filter(|(then, _)| signature.as_ref() == Some(then));
            let left_out = match known {
                Some((_, left_out)) => left_out,
                None => {
                    let covered = covered.get_or_insert_with(|| {
                        tree.dirs.iter().map(|dir| dir.path.as_slice()).collect::<HashSet<&[u8]>>()
                    });
                    self.names_left_out(tree, covered, dir)
                }
            };
            let at = RelPath::parse(dir).ok();
            let dependencies = left_out.iter().filter(|name| is_dependency_directory(name));
            let join = |name: &Vec<u8>| at.as_ref().map_or_else(|| RelPath::parse(name), |at| at.join(name));
            memory.dependencies.extend(dependencies.filter_map(|name| join(name).ok()));
            search.look_at_names(dir, &left_out, 0);
            if let Some(signature) = signature {
                names.insert(dir.to_vec(), (signature, left_out));
            }
        }
        memory.names = names;
        // Files beside those of the project first, so that one large directory doesn't take all
        // there is to look at.
        while let Some((dir, depth)) = search.below.pop() {
            search.enter_directory(&dir, depth);
        }
        search.found
    }

    /// Returns the names in a directory that the walk left out, except git's and the program's own.
    fn names_left_out(&self, tree: &Tree, covered: &HashSet<&[u8]>, dir: &[u8]) -> Vec<Vec<u8>> {
        let at = RelPath::parse(dir).ok();
        let names = self
            .project
            .root_dir
            .open_directory(at.as_ref())
            .and_then(|dir| entry_names(&dir))
            .unwrap_or_default();
        let prefix = if dir.is_empty() { Vec::new() } else { [dir, b"/"].concat() };
        let is_left_out = |name: &Vec<u8>| {
            let path = [prefix.as_slice(), name].concat();
            let is_file = tree.entries.binary_search_by(|entry| entry.path.as_slice().cmp(&path)).is_ok();
            let is_other = is_git_directory_name(name)
                || is_sibling(name)
                || self.project.rules.is_own_directory(&path)
                || self.project.rules.is_own_output(&path);
            !(is_file || is_other || covered.contains(path.as_slice()))
        };
        names.into_iter().filter(is_left_out).collect()
    }

    /// Returns the changes of a command to ignored files.
    pub(crate) fn ignored_differences(&self, before: &IgnoredSnapshot) -> Vec<Difference> {
        before.0.iter().filter_map(|known| self.ignored_difference(known)).collect()
    }

    fn ignored_difference(&self, known: &IgnoredFile) -> Option<Difference> {
        // Of what can't be looked at nothing is known.
        let seen =
            self.project.root_dir.stat(&known.path).ok()?.filter(|seen| seen.is_file() || seen.is_link());
        let after = match seen {
            Some(seen) if seen == known.seen && (known.settled || known.state.hash.is_none()) => return None,
            Some(seen) if known.state.hash.is_none() => {
                // A mode or an owner says nothing of the content.
                if seen.has_same_content(&known.seen) && seen.permissions() == known.seen.permissions() {
                    return None;
                }
                let kind = if seen.is_link() { FileKind::Link } else { FileKind::File };
                Some(FileState { kind, mode: seen.permissions(), size: seen.size, hash: None })
            }
            Some(_) => observe_file(&self.project.root_dir, &known.path).ok()?.map(|(state, _)| state),
            None => None,
        };
        let same = after.is_some_and(|after| {
            known.state.hash.is_some()
                && after.has_same_content(&known.state)
                && (after.mode == known.state.mode || after.kind == FileKind::Link)
        });
        (!same).then(|| Difference { path: known.path.clone(), before: Some(known.state), after })
    }
}

/// A search for ignored files.
struct IgnoredSearch<'a> {
    project: &'a Project,
    found: Vec<(RelPath, FileStat)>,
    /// Ignored directories that weren't entered yet.
    below: Vec<(RelPath, usize)>,
    looked_at: usize,
}

impl IgnoredSearch<'_> {
    /// Looks at these names of a directory.
    fn look_at_names(&mut self, dir: &[u8], names: &[Vec<u8>], depth: usize) {
        if names.is_empty() || self.looked_at >= MAX_IGNORED_FILES {
            return;
        }
        let at = RelPath::parse(dir).ok();
        let Ok(open) = self.project.root_dir.open_directory(at.as_ref()) else { return };
        for name in names.iter().filter(|name| !is_regenerated(name)) {
            self.looked_at += 1;
            if self.looked_at > MAX_IGNORED_FILES {
                return;
            }
            let path = at.as_ref().map_or_else(|| RelPath::parse(name), |at| at.join(name));
            let Ok(path) = path else { continue };
            let Ok(stat) = statat(&open, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let seen = FileStat::of(&stat);
            if seen.is_dir() && depth < MAX_DEPTH {
                self.below.push((path, depth + 1));
            } else if (seen.is_file() || seen.is_link()) && !self.is_guarded(&path) {
                self.found.push((path, seen));
            }
        }
    }

    /// Returns true for a guarded file, which is restored in another way.
    fn is_guarded(&self, path: &RelPath) -> bool {
        self.project.options.guarded.is_some_and(|rules| (rules.guarded)(path))
    }

    fn enter_directory(&mut self, dir: &RelPath, depth: usize) {
        if self.looked_at >= MAX_IGNORED_FILES {
            return;
        }
        let Ok(open) = self.project.root_dir.open_directory(Some(dir)) else { return };
        if is_tagged_cache(open.as_fd()) {
            return;
        }
        let Ok(mut names) = entry_names(&open) else { return };
        // Git repositories and virtual environments are recreated as a whole.
        if names.iter().any(|name| is_git_directory_name(name) || name == b"pyvenv.cfg") {
            return;
        }
        names.retain(|name| !is_sibling(name));
        names.sort_unstable();
        self.look_at_names(dir.as_bytes(), &names, depth);
    }
}
