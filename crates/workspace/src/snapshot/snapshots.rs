//! Taking snapshots of the tree, each from the one before it.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};

use journeyman_protocol::RelPath;

use crate::contents::store::BlobStore;
use crate::error::WorkspaceError;
use crate::limits::{MAX_DEPTH, MAX_WALKED_FILES};
use crate::mutex::lock;
use crate::project::Project;
use crate::snapshot::capture::{Capture, ContentMode};
use crate::snapshot::compare::{dir_records, drop_rule_changes, mode_records};
use crate::snapshot::differences::{TreeDifferences, diff_trees, directories_only_in};
use crate::snapshot::entry::{EntryContent, WalkedDir};
use crate::snapshot::own_changes::retain_own;
use crate::snapshot::stored_tree::{encode_cache, read_cache};
use crate::snapshot::tree::Tree;
use crate::state::lock::make_private_dir;
use crate::walk::plan::{ListedDir, WalkPlan, Walked};
use crate::walk::walk;

/// The stat cache is saved when one file in so many was read: writing it down costs as much as
/// reading those again.
const SAVE_DIVISOR: usize = 128;

/// Permission bits without which a directory hides what is in it from its owner.
const OWNER_READ_PERMISSIONS: u32 = 0o500;
/// Owner's permission bits that are set on a new directory that lacks them.
const OWNER_PERMISSIONS: u32 = 0o700;

/// The newest snapshot.
#[derive(Default)]
struct NewestSnapshot {
    tree: Option<Arc<Tree>>,
    /// A tree, and the signatures of its directories as the walk gave them.
    listed: Option<(Arc<Tree>, Vec<Option<ListedDir>>)>,
    /// The newest that lies among the blobs.
    stored: Option<Arc<Tree>>,
    /// Files read since the stat cache was saved.
    unsaved: usize,
    /// The store's count of removals when the tree was last checked.
    removals: Option<u64>,
    /// Snapshots that were given out.
    given: Vec<Weak<Tree>>,
    /// Every directory that a snapshot of this process had, at most [`MAX_FILES`] of them.
    dirs: HashSet<Vec<u8>>,
}

/// The snapshots of one project: the newest in memory, and the stat cache on the disk.
pub(crate) struct Snapshots {
    pub(crate) project: Arc<Project>,
    newest: Mutex<NewestSnapshot>,
}

impl Snapshots {
    pub(crate) fn new(project: Arc<Project>) -> Self {
        Self { project, newest: Mutex::default() }
    }

    /// Looks at the tree; what is in the directories of `before` is looked at whatever tags they
    /// carry now.
    pub(crate) fn take_snapshot(
        &self,
        keep: ContentMode,
        before: Option<&Tree>,
    ) -> Result<Arc<Tree>, WorkspaceError> {
        let _using = match keep {
            ContentMode::Contents => Some(self.project.blob_store.blobs().lock_for_use()?),
            ContentMode::Hashes => None,
        };
        let mut newest = lock(&self.newest);
        let removals = self.project.blob_store.blobs().removal_count();
        if newest.removals.is_some_and(|known| known != removals)
            && let Some(tree) = newest.tree.take()
        {
            self.project.blob_store.invalidate_packs();
            newest.tree = Some(mark_lost_contents(&self.project.blob_store, tree)?);
        }
        newest.removals = Some(removals);
        // What this process has looked into stays in sight from one command to the next.
        let known = [before, newest.tree.as_deref()].map(|tree| tree.map_or(&[][..], |tree| &tree.dirs));
        let end = self.project.journal().current_end();
        let siblings = || self.project.siblings_in_use(end);
        let last = match &newest.tree {
            Some(tree) => tree.clone(),
            None => Arc::new(self.saved_tree().unwrap_or_default()),
        };
        let listed = newest.listed.as_ref().filter(|(tree, _)| Arc::ptr_eq(tree, &last));
        let listed = listed.map_or(&[][..], |(_, listed)| listed);
        let max_files = self.project.limits().max_files;
        let under = Vec::new();
        let plan = WalkPlan {
            root_dir: &self.project.root_dir,
            rules: &self.project.rules,
            under,
            include_ignored: false,
            stat: true,
            max_files,
            known: &known,
            last: Some(&last),
            listed,
            may_be_same: last.is_reusable(self.project.limits()),
            siblings: &siblings,
        };
        let mut walked = walk(&plan).map_err(|errno| WorkspaceError::Root {
            path: self.project.root.clone(),
            source: errno.into(),
        })?;
        self.check_walk(&walked, &last)?;
        let capture = Capture {
            root_dir: &self.project.root_dir,
            blob_store: &self.project.blob_store,
            limits: self.project.limits(),
            keep,
        };
        let listed = std::mem::take(&mut walked.listed);
        let captured = capture.take_snapshot(walked, &last)?;
        newest.listed = Some((captured.tree.clone(), listed));
        newest.unsaved += captured.read;
        if last.stored.get().is_some() {
            newest.stored = Some(last.clone());
        }
        let is_new = newest.tree.as_ref().is_none_or(|known| !Arc::ptr_eq(known, &captured.tree));
        if is_new && newest.dirs.len() < MAX_WALKED_FILES {
            for dir in &captured.tree.dirs {
                if !newest.dirs.contains(&dir.path) {
                    newest.dirs.insert(dir.path.clone());
                }
            }
        }
        newest.tree = Some(captured.tree.clone());
        Ok(captured.tree)
    }

    /// Refuses a walk that missed a part of the tree: files that no snapshot has would count as
    /// made by a command, or couldn't be restored.
    fn check_walk(&self, walked: &Walked, last: &Tree) -> Result<(), WorkspaceError> {
        if let Some((dir, errno)) = &walked.failed {
            return Err(match RelPath::parse(dir) {
                Ok(dir) => self.project.root_dir.error_for("list", &dir, *errno),
                Err(_) => WorkspaceError::Root { path: self.project.root.clone(), source: (*errno).into() },
            });
        }
        if walked.unreadable.first().is_some_and(Vec::is_empty) {
            let source = rustix::io::Errno::ACCESS.into();
            return Err(WorkspaceError::Root { path: self.project.root.clone(), source });
        }
        if walked.files.is_empty() && (!walked.same || last.entries.is_empty()) {
            self.project.root_dir.check_alive()?;
        }
        Ok(())
    }

    /// Returns the newest snapshot of this process.
    pub(crate) fn newest_tree(&self) -> Option<Arc<Tree>> {
        lock(&self.newest).tree.clone()
    }

    /// Returns the directories that snapshots of this process had, without those of `walked`.
    pub(crate) fn recorded_directories_except(&self, walked: &[WalkedDir]) -> Vec<Vec<u8>> {
        let walked: HashSet<&[u8]> = walked.iter().map(|dir| dir.path.as_slice()).collect();
        let newest = lock(&self.newest);
        newest.dirs.iter().filter(|dir| !walked.contains(dir.as_slice())).cloned().collect()
    }

    /// Sets `tree`, whose signatures hold here too, as the newest snapshot, and saves it. Files
    /// with the same signature aren't read again.
    pub(crate) fn seed_with(&self, tree: Arc<Tree>) -> Result<(), WorkspaceError> {
        {
            let mut newest = lock(&self.newest);
            newest.tree = Some(tree);
            newest.unsaved = 1;
        }
        self.save_cache(1)
    }

    /// Returns the newest snapshot that was saved; `None` when it isn't there or can't be believed.
    pub(crate) fn saved_tree(&self) -> Option<Tree> {
        read_cache(&self.cache_path(), &self.project.blob_store)
    }

    pub(crate) fn cache_path(&self) -> PathBuf {
        self.project.options.state_dir.join("stat-cache")
    }

    /// Saves the stat cache if at least so many files were read since it was, and enough of all to
    /// be worth it. It need not survive a power failure: it is checked when it is read.
    pub(crate) fn save_cache(&self, at_least: usize) -> Result<(), WorkspaceError> {
        let mut newest = lock(&self.newest);
        let unsaved = newest.unsaved;
        let worth = |tree: &Arc<Tree>| unsaved >= at_least.max(tree.entries.len() / SAVE_DIVISOR);
        let Some(tree) = newest.tree.clone().filter(worth) else { return Ok(()) };
        make_private_dir(&self.project.options.state_dir)?;
        let path = self.cache_path();
        // One name for all processes, so that those that are killed here leave one file at most.
        // Where another run in this project saves at the same moment, its cache is as good as ours.
        let new = path.with_extension("new");
        let saved = crate::state::lock::replace_file(
            &new,
            &path,
            &encode_cache(&tree, !self.project.blob_store.is_unsynced()),
        );
        saved.map_err(|source| crate::state::lock::state_error("save", &path, source))?;
        newest.unsaved = 0;
        Ok(())
    }

    /// Returns the trees that this process relies on.
    pub(crate) fn trees_in_use(&self) -> Vec<Arc<Tree>> {
        let newest = lock(&self.newest);
        newest.given.iter().filter_map(Weak::upgrade).chain(newest.tree.clone()).collect()
    }

    /// Notes that a snapshot was given out.
    pub(crate) fn track_in_use(&self, tree: &Arc<Tree>) {
        let mut newest = lock(&self.newest);
        newest.given.retain(|given| given.strong_count() > 0);
        newest.given.push(Arc::downgrade(tree));
    }

    /// Takes a snapshot after a command, and opens directories that can't be read any more. `made`
    /// says that `before` lists the directories that were unreadable then, so that other unreadable
    /// ones are new and may be opened too.
    pub(crate) fn snapshot_after_command(
        &self,
        before: &Tree,
        made: bool,
    ) -> Result<Arc<Tree>, WorkspaceError> {
        for _ in 0..MAX_DEPTH {
            let after = self.take_snapshot(ContentMode::Contents, Some(before))?;
            let was_hidden = |path: &[u8]| {
                before.unreadable.iter().any(|dir| path == dir.as_slice() || is_below(path, dir))
            };
            let hidden: Vec<&Vec<u8>> = after.unreadable.iter().filter(|dir| !was_hidden(dir)).collect();
            let mut opened = false;
            for dir in &hidden {
                opened |= self.restore_permissions(before, dir, made);
            }
            if opened {
                continue;
            }
            let lost = hidden.into_iter().find(|dir| before.dirs.iter().any(|known| known.path == **dir));
            return match lost.and_then(|dir| RelPath::parse(dir).ok()) {
                Some(path) => Err(WorkspaceError::MadeUnreadable { path }),
                None => Ok(after),
            };
        }
        self.take_snapshot(ContentMode::Contents, Some(before))
    }

    /// Restores the earlier permissions of a directory, those above it and those once beneath it if
    /// they keep their owner out. Returns true if any were restored.
    pub(crate) fn restore_permissions(&self, before: &Tree, hidden: &[u8], made: bool) -> bool {
        let slashes = hidden.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let above = slashes.chain([hidden.len()]).filter_map(|cut| hidden.get(..cut)).map(|path| {
            let known = before.dirs.iter().find(|dir| dir.path == path);
            (path, known.map(|dir| dir.permissions))
        });
        let beneath = before.dirs.iter().filter(|dir| is_below(&dir.path, hidden));
        let beneath = beneath.map(|dir| (dir.path.as_slice(), Some(dir.permissions)));
        let mut opened = false;
        for (path, then) in above.chain(beneath) {
            let Ok(path) = RelPath::parse(path) else { continue };
            let Ok(Some(seen)) = self.project.root_dir.stat(&path) else { continue };
            let now = seen.permissions();
            let wanted = then.or(made.then_some(now | OWNER_PERMISSIONS)).filter(|wanted| *wanted != now);
            if let Some(wanted) = wanted
                && seen.is_dir()
                && now & OWNER_READ_PERMISSIONS != OWNER_READ_PERMISSIONS
            {
                opened |= self.project.root_dir.set_permissions(&path, wanted).is_ok();
            }
        }
        opened
    }

    /// Returns what differs between two looks, the second of which was just taken.
    pub(crate) fn compare_snapshots(
        &self,
        before: &Tree,
        after: &Tree,
    ) -> Result<TreeDifferences, WorkspaceError> {
        if before.is_same(after) {
            return Ok(TreeDifferences::default());
        }
        let (made, removed) = (directories_only_in(after, before), directories_only_in(before, after));
        let mut found = TreeDifferences {
            files: drop_rule_changes(self.project.compare_inputs(), before, diff_trees(before, after))?,
            made: dir_records(&self.project.root_dir, &made, true),
            removed: dir_records(&self.project.root_dir, &removed, false),
            modes: mode_records(before, after),
            beside: Vec::new(),
        };
        retain_own(self.project.project_copy().as_ref(), &mut found);
        Ok(found)
    }

    /// Returns the signatures of the directories of `tree`, if it is the newest snapshot.
    pub(crate) fn directory_signatures(&self, tree: &Arc<Tree>) -> Vec<Option<ListedDir>> {
        let newest = lock(&self.newest);
        let listed = newest.listed.as_ref().filter(|(of, _)| Arc::ptr_eq(of, tree));
        listed.map(|(_, listed)| listed.clone()).unwrap_or_default()
    }

    /// Returns the newest snapshot that lies among the blobs.
    pub(crate) fn newest_stored(&self) -> Option<Arc<Tree>> {
        lock(&self.newest).stored.clone()
    }
}

/// Returns the tree with contents that are lost marked as not kept.
pub(crate) fn mark_lost_contents(
    blob_store: &BlobStore,
    tree: Arc<Tree>,
) -> Result<Arc<Tree>, WorkspaceError> {
    let mut holdings = blob_store.lookup();
    let mut lost = HashSet::new();
    for entry in &tree.entries {
        if let EntryContent::Hashed { hash, kept: true } = &entry.content
            && !holdings.contains(hash)?
        {
            lost.insert(*hash);
        }
    }
    if lost.is_empty() {
        return Ok(tree);
    }
    let entries = tree.entries.iter().cloned().map(|mut entry| {
        if let EntryContent::Hashed { hash, kept } = &mut entry.content {
            *kept &= !lost.contains(hash);
        }
        entry
    });
    let (dirs, unreadable) = (tree.dirs.clone(), tree.unreadable.clone());
    let (repositories, rules) = (tree.repositories.clone(), tree.rules);
    let entries = entries.collect();
    Ok(Arc::new(Tree { entries, dirs, unreadable, repositories, rules, ..Tree::default() }))
}

fn is_below(path: &[u8], dir: &[u8]) -> bool {
    path.strip_prefix(dir).is_some_and(|rest| rest.first() == Some(&b'/'))
}
