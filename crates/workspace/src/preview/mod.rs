//! Previews: a command runs in an overlay layer of its own first, to show what it would change.
//!
//! The layer lies over the user's tree as a copy's does, for one command only. Its changes are read
//! [exactly](OverlayRun::examine) from the layer itself, ignored files included: files that a
//! checkpoint covers, and all else that the layer holds or hides. Then it is
//! [landed](OverlayRun::land), with the mount closed, or dropped. A crash drops it: it has no
//! record, and is swept like half-made copies.

use std::sync::Arc;

use journeyman_protocol::{CallId, ContentHash, FileChange, RelPath, SessionId, UnixMillis};
use journeyman_sandbox::Sandbox;

use crate::copies::info::{CopyInfo, CopyTools};
use crate::copies::location::CopyLocation;
use crate::copies::record::CopyPlacement;
use crate::copies::tier::IsolationTier;
use crate::copies::tiers::copy_request::{CopyRequest, MadeCopy};
use crate::copies::tiers::overlay;
use crate::copies::{Copies, location};
use crate::error::WorkspaceError;
use crate::files::root_dir::RootDir;
use crate::landing::changes::{CopyChanges, LandOptions};
use crate::landing::merge::is_beyond_undo;
use crate::preview::uncovered::{DestructiveChange, UncoveredChanges};
use crate::snapshot::capture::ContentMode;
use crate::snapshot::file_observation::observe_file;
use crate::snapshot::tree::Tree;
use crate::state::lock::OwnedLockGuard;
use crate::workspace::Workspace;
use journeyman_ignore_rules::is_git_directory_name;

pub(crate) mod fingerprint;
pub(crate) mod pending_moves;
pub(crate) mod scan;
pub(crate) mod uncovered;
pub(crate) mod uncovered_moves;

/// The label of the checkpoint that a layer lies over, where the step's own isn't the same.
const BASE_LABEL: &str = "before a command that is tried out";

/// A command's own layer over the user's tree. Dropped, it is gone with all that was done in it.
#[derive(Debug)]
pub struct OverlayRun {
    workspace: Arc<Workspace>,
    info: CopyInfo,
    beside: CopyPlacement,
    /// The tree that it lies over, with signatures.
    tree: Arc<Tree>,
    place: CopyLocation,
    _held: OwnedLockGuard,
}

/// The changes of a command in its layer.
#[derive(Debug)]
pub struct OverlayChanges {
    changes: CopyChanges,
    /// Covered files whose change can't be undone, each with the reason.
    beyond: Vec<(RelPath, String)>,
    rest: UncoveredChanges,
}

/// A file or directory that no checkpoint covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UncoveredPath {
    /// True if it is a directory.
    pub directory: bool,
    /// True if it is a file that can be executed.
    pub executable: bool,
    /// True if it lies in a directory that tools make and can make again, or is one.
    pub remade: bool,
}

/// The result of landing a command's layer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OverlayLanding {
    /// The changes that an undo takes back.
    pub changes: Vec<FileChange>,
    /// The files for which nothing was landed, or which were left because they changed meanwhile,
    /// each with the reason.
    pub left: Vec<(RelPath, String)>,
    /// True if it was landed.
    pub landed: bool,
}

impl Workspace {
    /// Returns access to previews of commands.
    #[must_use]
    pub fn previews(&self) -> Previews<'_> {
        Previews { workspace: self }
    }
}

/// Runs commands in an overlay first, to show what they would destroy.
#[derive(Debug)]
pub struct Previews<'a> {
    workspace: &'a Workspace,
}

impl Previews<'_> {
    /// Mounts a layer over this tree for one command of a session. A session has one at a time;
    /// what is left of an earlier one goes.
    ///
    /// # Errors
    /// [`WorkspaceError::NoCopy`] with the reason why no overlay can be mounted over this tree;
    /// [`WorkspaceError::Busy`] when the session's other process has one; as
    /// [`Workspace::checkpoint`].
    pub fn start(&self, session: &SessionId, sandbox: &Sandbox) -> Result<OverlayRun, WorkspaceError> {
        location::sweep_copies(self.workspace);
        let id = preview_copy_name(session);
        let place = CopyLocation::of(self.workspace, &id);
        let held = place.acquire()?;
        place.clear()?;
        let (base, tree) = self.workspace.checkpoint_with_tree(session, BASE_LABEL)?;
        let opened = self.mount_layer(&tree, &place, sandbox).and_then(|made| {
            let workspace = Copies { workspace: self.workspace }.open_copy_workspace(made.base, &place)?;
            workspace.snapshots.seed_with(made.seed)?;
            Ok((workspace, made.beside))
        });
        let (workspace, beside) = opened.inspect_err(|_| {
            // The next one sweeps what can't be taken away now.
            let _next_time = place.remove();
        })?;
        let created = self
            .workspace
            .project
            .options
            .clock
            .as_ref()
            .map_or(UnixMillis(0), journeyman_protocol::Clock::now);
        let info = CopyInfo { session: id, tier: IsolationTier::Overlay, created, base, holder: None };
        Ok(OverlayRun { workspace: Arc::new(workspace), info, beside, tree, place, _held: held })
    }

    /// Returns true if [`Previews::start`] finds an overlay that can be mounted over this tree.
    ///
    /// # Errors
    /// As [`Previews::start`].
    pub fn check_can_start(&self, session: &SessionId, sandbox: &Sandbox) -> Result<(), WorkspaceError> {
        location::sweep_copies(self.workspace);
        let place = CopyLocation::of(self.workspace, &preview_copy_name(session));
        let _held = place.acquire()?;
        place.clear()?;
        let made = self.mount_layer(&Arc::default(), &place, sandbox).map(drop);
        place.remove()?;
        made
    }

    fn mount_layer(
        &self,
        tree: &Arc<Tree>,
        place: &CopyLocation,
        sandbox: &Sandbox,
    ) -> Result<MadeCopy, WorkspaceError> {
        let means =
            CopyTools { sandbox, git: None, tiers: &[IsolationTier::Overlay], max_copied_files: usize::MAX };
        let making = CopyRequest { workspace: self.workspace, tree, place, means: &means };
        let made = crate::copies::tiers::make_copy(making, IsolationTier::Overlay);
        made.map_err(|reason| WorkspaceError::NoCopy { reasons: vec![(IsolationTier::Overlay, reason.0)] })
    }

    /// Returns the file or directory at `path` if no checkpoint covers it, according to the newest
    /// snapshot; `None` for covered paths, for git's own, and for missing ones.
    #[must_use]
    pub fn uncovered_path(&self, path: &RelPath) -> Option<UncoveredPath> {
        let seen = self.workspace.project.root_dir.stat(path).ok().flatten()?;
        // Nobody looked yet: what is read now is kept for the checkpoint that is about to be made.
        let tree = self
            .workspace
            .snapshots
            .newest_tree()
            .or_else(|| self.workspace.snapshots.take_snapshot(ContentMode::Contents, None).ok())?;
        if path.components().any(is_git_directory_name) || self.workspace.project.rules.is_own_file(path) {
            return None;
        }
        let bytes = path.as_bytes();
        let is_known = match seen.is_dir() {
            true => tree.dirs.iter().any(|dir| dir.path == bytes),
            false => tree.entries.binary_search_by(|entry| entry.path.as_slice().cmp(bytes)).is_ok(),
        };
        let executable = seen.is_file() && seen.permissions() & 0o111 != 0;
        (!is_known).then(|| UncoveredPath {
            directory: seen.is_dir(),
            executable,
            remade: scan::is_regenerable(self.workspace, path),
        })
    }

    /// Removes layers that a crash left. Files that a landing had moved out of the tree when it was
    /// cut off are put back first; a layer whose files can't be put back is kept, and the session's
    /// next layer reports its place.
    pub fn sweep(&self) {
        location::sweep_copies(self.workspace);
    }
}

impl OverlayRun {
    /// Returns the tree with the layer over it, as a workspace for the command.
    #[must_use]
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.workspace
    }

    /// Tells what was done in the layer of `user`'s tree, exactly.
    ///
    /// # Errors
    /// As [`Landings::changes`](crate::Landings::changes); [`WorkspaceError::TooManyFiles`] when
    /// the layer holds more than anybody would land.
    pub fn examine(&self, user: &Workspace) -> Result<OverlayChanges, WorkspaceError> {
        let mut changes = user.landings().changes_in_workspace(&self.workspace, &self.info)?;
        self.fill_missing_before_hashes(user, &mut changes)?;
        let now = self.workspace.snapshots.newest_tree().unwrap_or_default();
        let looked = user.land(&changes, &LandOptions { dry_run: true, ..exact_options() })?;
        let rest = scan::scan_layer(user, &self.upper_dir()?, (&self.tree, &now), &changes)?;
        let beyond = looked.conflicts.into_iter().filter(|(_, why)| is_beyond_undo(why)).collect();
        Ok(OverlayChanges { changes, beyond, rest })
    }

    /// Hashes files that the command changed and that were too large for the checkpoint to hash, as
    /// long as the user's tree has them as they were.
    fn fill_missing_before_hashes(
        &self,
        user: &Workspace,
        changes: &mut CopyChanges,
    ) -> Result<(), WorkspaceError> {
        for file in &mut changes.files {
            let Some(before) = file.before.as_mut().filter(|before| before.hash.is_none()) else { continue };
            let place =
                self.tree.entries.binary_search_by(|entry| entry.path.as_slice().cmp(file.path.as_bytes()));
            let known = place.ok().and_then(|at| self.tree.entries.get(at));
            if let (Some(known), Ok(Some((now, seen)))) =
                (known, observe_file(&user.project.root_dir, &file.path))
                && known.seen == seen
            {
                before.hash = now.hash;
            }
        }
        Ok(())
    }

    fn upper_dir(&self) -> Result<RootDir, WorkspaceError> {
        let files = self.files_dir()?;
        RootDir::open(&overlay::upper_dir(&files, 1))
    }

    fn files_dir(&self) -> Result<std::path::PathBuf, WorkspaceError> {
        let gone =
            || crate::state::lock::state_error("find", self.place.dir(), std::io::ErrorKind::NotFound.into());
        self.place.files_dir(self.beside).map(std::path::Path::to_owned).ok_or_else(gone)
    }

    /// Brings what was examined into `user`'s tree: what an undo brings back as one transaction of
    /// the call, and then the rest. Where the user changed a file of it meanwhile, nothing is
    /// landed. The mount is closed first.
    ///
    /// # Errors
    /// As [`Workspace::land`]; nothing is landed then. What fails after the transaction is told in
    /// [`OverlayLanding::left`].
    pub fn land(
        self,
        user: &Workspace,
        tried: &OverlayChanges,
        session: &SessionId,
        call: &CallId,
    ) -> Result<OverlayLanding, WorkspaceError> {
        let upper = self.upper_dir()?;
        let files = self.files_dir()?;
        // Nobody changes a layer under its mount. Its workspace goes with `self`, its descriptor
        // now.
        self.workspace.project.close_project_copy()?;
        let mut landing = OverlayLanding { left: tried.refusals(), ..OverlayLanding::default() };
        if !landing.left.is_empty() {
            return Ok(landing);
        }
        let besides = match tried.rest.journaled_operations(user, &upper)? {
            Ok(besides) => besides,
            Err(left) => {
                landing.left = left;
                return Ok(landing);
            }
        };
        // What can fail, fails before anything is landed.
        let carry = uncovered_moves::prepare(self.place.dir(), &files, &tried.rest)?;
        landing.left = carry.find_changed_paths(user);
        if !landing.left.is_empty() {
            return Ok(landing);
        }
        let options = LandOptions { beyond_undo: !tried.beyond.is_empty(), ..exact_options() };
        let done = user.landings().land_for_call(&tried.changes, &options, (session, Some(call)), besides)?;
        if !done.conflicts.is_empty() {
            landing.left = done.conflicts;
            return Ok(landing);
        }
        landing.changes = done.applied.changes;
        landing.landed = true;
        landing.left = carry.run(user, &upper);
        uncovered_moves::remove_emptied(&user.project.root_dir, &tried.changes.removed);
        Ok(landing)
    }

    /// Drops it with all that was done in it.
    pub fn discard(self) {}
}

impl Drop for OverlayRun {
    fn drop(&mut self) {
        // A mount that is still in use keeps files alive, not names.
        let _next_time = self.workspace.project.close_project_copy();
        let _next_time = self.place.remove();
    }
}

impl OverlayChanges {
    /// Returns the changed files that a checkpoint covers.
    #[must_use]
    pub fn changes(&self) -> Vec<FileChange> {
        self.changes.files()
    }

    /// Returns the changes compared with a copy's base, for showing them.
    #[must_use]
    pub fn copy_changes(&self) -> &CopyChanges {
        &self.changes
    }

    /// Returns what would be lost: ignored files and directories that the command removed or
    /// replaced, but for what tools replaced in directories that they make themselves, and covered
    /// files that are too large to be kept.
    #[must_use]
    pub fn destructive_changes(&self) -> Vec<DestructiveChange> {
        let mut losses = self.rest.destructive_changes();
        losses.extend(self.beyond.iter().map(|(path, _)| {
            let file = self.changes.files.iter().find(|file| file.path == *path);
            let before = file.and_then(|file| file.before.as_ref());
            DestructiveChange {
                path: path.clone(),
                files: 1,
                bytes: before.map_or(0, |before| before.size),
                directory: false,
                replaced: file.is_some_and(|file| file.after.is_some()),
                undoable: false,
                more: false,
            }
        }));
        losses
    }

    /// Returns the reasons why the layer can't be landed at all, file by file: guarded paths, new
    /// repositories, links out of the project, names and kinds of files that are never landed.
    #[must_use]
    pub fn refusals(&self) -> Vec<(RelPath, String)> {
        let mut all = self.changes.objections.clone();
        all.extend(self.rest.objections.iter().cloned());
        all
    }

    /// Pipes, sockets and devices, which aren't landed.
    #[must_use]
    pub fn left_out_paths(&self) -> &[RelPath] {
        &self.rest.left_out
    }

    /// Returns true if there is nothing to land.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.rest.changes.is_empty() && self.rest.objections.is_empty()
    }
}

/// Returns options that land exactly what was examined, or nothing.
fn exact_options() -> LandOptions {
    LandOptions { as_checked: true, ..LandOptions::default() }
}

/// Returns the name of a session's layer among copies. Its time is zero, which no session has.
fn preview_copy_name(session: &SessionId) -> SessionId {
    let hash = ContentHash::of(session.as_str().as_bytes());
    let mut entropy = [0; 8];
    for (to, from) in entropy.iter_mut().zip(hash.as_bytes()) {
        *to = *from;
    }
    SessionId::new(UnixMillis(0), u64::from_le_bytes(entropy))
}
