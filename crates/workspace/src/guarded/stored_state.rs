//! The guarded paths before a command as its heartbeat has them, so that recovery after a crash
//! moves away and puts back what the end of the command would have.
//!
//! Contents are stored among the blobs. Inodes tell directories apart only where the tree lies on
//! the same device as then.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use journeyman_protocol::RelPath;
use journeyman_store::Durability;
use rustix::fs::{FileType, fstat};

use crate::commands::attribution::parent_change_time;
use crate::commands::tree_snapshot::TreeSnapshot;
use crate::contents::store::BlobStore;
use crate::error::WorkspaceError;
use crate::files::directory::entry_names;
use crate::files::stat::FileStat;
use crate::guarded::kept_paths::{KeptContent, KeptPath};
use crate::guarded::record::{StoredContent, StoredGuardedState, StoredPath};
use crate::guarded::scan::RelevantNames;
use crate::guarded::{ForbiddenChanges, GuardedPath, GuardedState};
use crate::limits::MAX_DEPTH;
use crate::walk::visit::device_of;
use crate::workspace::Workspace;
use journeyman_protocol::GuardRules;

/// Maximum number of names that are looked at in a directory to tell when it was changed.
const MAX_EXAMINED_NAMES: usize = 10_000;

/// The time in which a command that was cut off may have changed the tree, in nanoseconds of the
/// file system's clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CutOffWindow {
    pub(crate) began: i64,
    pub(crate) until: i64,
}

impl GuardedState {
    /// Captures the state as [`GuardedState::capture`] does, for the command that `before` was made
    /// for, and stores it with that command's heartbeat: where a crash comes before
    /// [`GuardedState::revert_and_journal`], `Recovery::recover_call` and
    /// `Recovery::recover_checks` move away and put back the same.
    ///
    /// # Errors
    /// As [`GuardedState::capture`]; failures of the state directory.
    pub fn capture_for_recovery(
        workspace: &Workspace,
        before: &TreeSnapshot,
        rules: GuardRules,
    ) -> Result<Self, WorkspaceError> {
        let guard = Self::capture(workspace, rules)?;
        if let Some(heartbeat) = &before.heartbeat {
            let _using = workspace.project.blob_store.blobs().lock_for_use()?;
            heartbeat.note_guarded(guard.store(workspace)?)?;
        }
        Ok(guard)
    }

    /// Stores the contents, and describes all else.
    fn store(&self, workspace: &Workspace) -> Result<StoredGuardedState, WorkspaceError> {
        let mut known = Vec::with_capacity(self.known.len());
        for (path, one) in &self.known {
            let kept =
                one.kept.as_ref().map(|kept| store(kept, &workspace.project.blob_store)).transpose()?;
            known.push(StoredPath {
                path: path.clone(),
                inode: one.seen.ino,
                mode: one.seen.mode,
                loose: one.loose,
                repository: one.repository,
                kept,
            });
        }
        let with_parts = self.notes.iter().filter(|(_, noted)| !noted.parts.is_empty());
        let parts = with_parts.map(|(dir, noted)| {
            let names = noted.parts.iter().filter_map(|name| RelPath::parse(name).ok());
            (RelPath::parse(&**dir).ok(), names.collect())
        });
        Ok(StoredGuardedState {
            device: device_of_root(workspace),
            repositories: self.repositories.clone(),
            known,
            armed: self.armed.iter().map(|(path, hash)| (path.clone(), *hash)).collect(),
            bare: self.bare.iter().map(|(dir, (inode, hash))| (dir.clone(), *inode, *hash)).collect(),
            parts: parts.collect(),
        })
    }
}

impl StoredGuardedState {
    /// Moves away what a command that was cut off made, and puts back what it changed or deleted,
    /// but for changes after the window. Returns these changes, and true if a directory can't be
    /// listed that could be before.
    pub(crate) fn undo_forbidden_changes(
        &self,
        workspace: &Workspace,
        rules: GuardRules,
        window: CutOffWindow,
    ) -> Result<(ForbiddenChanges, bool), WorkspaceError> {
        let ended = self.load(workspace, rules)?.handle_violations(workspace, false, Some(window));
        Ok((ended.aftermath, ended.hidden))
    }

    fn load(&self, workspace: &Workspace, rules: GuardRules) -> Result<GuardedState, WorkspaceError> {
        let is_same_device = device_of_root(workspace) == self.device;
        let mut known = BTreeMap::new();
        for one in &self.known {
            let kept = one
                .kept
                .as_ref()
                .map(|kept| load(kept, &workspace.project.blob_store))
                .transpose()?
                .flatten();
            // Without contents and the same device nothing tells what is there from what was.
            let inode = match workspace.project.root_dir.stat(&one.path) {
                _ if is_same_device => one.inode,
                Ok(Some(seen)) if kept.is_none() => seen.ino,
                _ => 0,
            };
            let (loose, repository) = (one.loose, one.repository);
            let (seen, kept) = (partial_stat(one.mode, inode), kept.map(Arc::new));
            known.insert(
                one.path.clone(),
                GuardedPath { seen, above: 0, mounted: false, shared: false, loose, repository, kept },
            );
        }
        let notes = self.parts.iter().map(|(dir, names)| {
            let parts = names.iter().map(|name| name.as_bytes().to_vec()).collect();
            let dir = dir.as_ref().map_or(&b""[..], RelPath::as_bytes);
            (Arc::from(dir), Arc::new(RelevantNames::from_bare_parts(parts)))
        });
        let notes: HashMap<_, _> = notes.collect();
        let repositories = self.repositories.clone();
        Ok(GuardedState {
            rules,
            repositories: repositories.relocate(&workspace.access_path(), workspace.root(), is_same_device),
            known,
            armed: self.armed.iter().cloned().collect(),
            bare: self.bare.iter().map(|(dir, inode, hash)| (dir.clone(), (*inode, *hash))).collect(),
            notes: Arc::new(notes),
            unreadable: HashSet::new(),
            protected: Vec::new(),
        })
    }
}

impl CutOffWindow {
    /// Returns true if the path was last changed within the window, or something in it was.
    pub(crate) fn contains(self, workspace: &Workspace, path: &RelPath) -> bool {
        match workspace.project.root_dir.stat(path) {
            Ok(Some(seen)) if seen.ctime <= self.until => true,
            Ok(Some(seen)) => {
                seen.is_dir() && self.contains_change_in(workspace, path, &mut { MAX_EXAMINED_NAMES }, 0)
            }
            Ok(None) => parent_change_time(&workspace.project.root_dir, path)
                .is_some_and(|emptied| emptied <= self.until),
            Err(_) => false,
        }
    }

    fn contains_change_in(
        self,
        workspace: &Workspace,
        dir: &RelPath,
        room: &mut usize,
        depth: usize,
    ) -> bool {
        let names = workspace
            .project
            .root_dir
            .open_directory(Some(dir))
            .and_then(|open| entry_names(&open))
            .unwrap_or_default();
        for path in names.iter().filter_map(|name| dir.join(name).ok()) {
            let Some(left) = room.checked_sub(1) else { return false };
            *room = left;
            let Ok(Some(seen)) = workspace.project.root_dir.stat(&path) else { continue };
            if (self.began..=self.until).contains(&seen.ctime)
                || (seen.is_dir()
                    && depth < MAX_DEPTH
                    && self.contains_change_in(workspace, &path, room, depth + 1))
            {
                return true;
            }
        }
        false
    }
}

fn device_of_root(workspace: &Workspace) -> u64 {
    fstat(workspace.project.root_dir.root()).map_or(0, |stat| device_of(&stat))
}

fn partial_stat(mode: u32, ino: u64) -> FileStat {
    FileStat { mode, size: 0, mtime: 0, ctime: 0, ino, owner: (0, 0), names: 1 }
}

fn store(kept: &KeptPath, blob_store: &BlobStore) -> Result<StoredContent, WorkspaceError> {
    let mode = kept.seen.mode;
    Ok(match &kept.content {
        KeptContent::File(bytes, hash) => {
            if !blob_store.claim_existing(hash)? {
                blob_store.put(bytes, Durability::Later)?;
            }
            StoredContent::File { mode, hash: *hash }
        }
        KeptContent::Link(target) => StoredContent::Link(target.clone()),
        KeptContent::Directory(children) => {
            let mut stored = Vec::with_capacity(children.len());
            for (name, child) in children {
                if let Ok(name) = RelPath::parse(name) {
                    stored.push((name, store(child, blob_store)?));
                }
            }
            StoredContent::Directory { mode, children: stored }
        }
        KeptContent::Other => StoredContent::Other { mode },
    })
}

/// Loads a stored content; `None` if it is lost.
fn load(stored: &StoredContent, blob_store: &BlobStore) -> Result<Option<KeptPath>, WorkspaceError> {
    let (mode, content) = match stored {
        StoredContent::File { mode, hash } => {
            let Some(bytes) = blob_store.get(hash)? else { return Ok(None) };
            (*mode, KeptContent::File(bytes.into(), *hash))
        }
        StoredContent::Link(target) => (FileType::Symlink.as_raw_mode(), KeptContent::Link(target.clone())),
        StoredContent::Directory { mode, children } => {
            let mut loaded = Vec::with_capacity(children.len());
            for (name, child) in children {
                let Some(child) = load(child, blob_store)? else { return Ok(None) };
                loaded.push((name.as_bytes().to_vec(), child));
            }
            (*mode, KeptContent::Directory(loaded))
        }
        StoredContent::Other { mode } => (*mode, KeptContent::Other),
    };
    Ok(Some(KeptPath { seen: partial_stat(mode, 0), settled: false, content }))
}
