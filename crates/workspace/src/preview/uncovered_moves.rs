//! Moves files that no journal can hold, such as a build's directory of gigabytes, between a layer
//! and the tree.
//!
//! Names are moved, not bytes: removed files lie among the layer's files until these are deleted,
//! new files are the layer's own. Each move is atomic. A file that is replaced is exchanged for its
//! successor; after a crash, the other removed files are put back.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use journeyman_protocol::RelPath;
use rustix::fs::{AtFlags, Mode, RenameFlags, fremovexattr, mkdirat, renameat_with, unlinkat};
use rustix::io::Errno;

use crate::error::WorkspaceError;
use crate::files::directory::entry_names;
use crate::files::remove::remove_entry;
use crate::files::root_dir::{LinkPolicy, RootDir};
use crate::files::stat::FileStat;
use crate::journal::record::DirRecord;
use crate::preview::fingerprint::TreeFingerprint;
use crate::preview::pending_moves;
use crate::preview::pending_moves::PendingMoves;
use crate::preview::uncovered::{DirTotals, UncoveredChange, UncoveredChanges, UncoveredKind};
use crate::state::lock::{make_private_dir, state_error};
use crate::workspace::Workspace;

/// The directory that what goes is moved to.
const REMOVED_DIR: &str = "gone";
/// Marks that the kernel writes on a layer's files and that mean nothing in the tree.
const OVERLAY_ATTRIBUTES: [&str; 6] = [
    "user.overlay.opaque",
    "user.overlay.origin",
    "user.overlay.impure",
    "user.overlay.nlink",
    "user.overlay.upper",
    "user.overlay.uuid",
];
const CHANGED_MEANWHILE_REASON: &str = "it was changed here meanwhile, and left as it is";

/// A landing's second half, made ready before its first one: from then on nothing fails as a whole.
#[derive(Debug)]
pub(crate) struct UncoveredMoves<'a> {
    changes: Vec<&'a UncoveredChange>,
    /// The layer's own directory, with the list of what goes.
    dir: &'a Path,
    /// The directory to which removed things are moved, and their names there.
    gone: Option<(RootDir, PendingMoves)>,
}

/// Makes ready to move what isn't journaled of a layer with these `files`.
pub(crate) fn prepare<'a>(
    dir: &'a Path,
    files: &Path,
    rest: &'a UncoveredChanges,
) -> Result<UncoveredMoves<'a>, WorkspaceError> {
    let changes: Vec<&UncoveredChange> = rest.changes.iter().filter(|change| !change.journaled).collect();
    if changes.is_empty() {
        return Ok(UncoveredMoves { changes, dir, gone: None });
    }
    let at = files.join(REMOVED_DIR);
    make_private_dir(&at)?;
    let root_dir = RootDir::open(&at)?;
    let going =
        changes.iter().filter(|change| is_only_removal(change)).map(|change| change.path.clone()).collect();
    let pending = PendingMoves::write(dir, &at, going)?;
    Ok(UncoveredMoves { changes, dir, gone: Some((root_dir, pending)) })
}

/// Returns true if something only goes; another change may say what comes.
fn is_only_removal(change: &UncoveredChange) -> bool {
    matches!(change.what, UncoveredKind::Removed(_) | UncoveredKind::RemovedTree(_))
}

impl UncoveredMoves<'_> {
    /// Returns the paths to remove that changed since they were examined.
    pub(crate) fn find_changed_paths(&self, user: &Workspace) -> Vec<(RelPath, String)> {
        let had = |change: &&&UncoveredChange| {
            is_only_removal(change) || matches!(change.what, UncoveredKind::Replaced { .. })
        };
        let changed = self
            .changes
            .iter()
            .filter(had)
            .filter(|change| !change.is_unchanged_at(&user.project.root_dir, &change.path));
        changed.map(|change| (change.path.clone(), CHANGED_MEANWHILE_REASON.to_owned())).collect()
    }

    /// Moves the changes into the tree. Returns the paths that had to be left, each with the
    /// reason.
    pub(crate) fn run(self, user: &Workspace, upper: &RootDir) -> Vec<(RelPath, String)> {
        let Some((gone, pending)) = &self.gone else { return Vec::new() };
        let mut carrier = UncoveredMover { user, upper, gone, pending, left: Vec::new() };
        let (going, coming): (Vec<&UncoveredChange>, Vec<&UncoveredChange>) =
            self.changes.iter().partition(|change| is_only_removal(change));
        let mut coming: BTreeMap<&RelPath, &UncoveredChange> =
            coming.into_iter().map(|change| (&change.path, change)).collect();
        // First what goes: other things may take its place. What has one that takes it is exchanged
        // for that, in one step.
        for change in going {
            let successor = coming.remove(&change.path);
            match successor.map(|next| (next, carrier.exchange_entry(change))) {
                None => carrier.remove_or_report(change),
                Some((_, Ok(()))) => {}
                // A file system that can't exchange: then one after the other, and the list brings
                // it back.
                Some((next, Err(Errno::INVAL | Errno::NOSYS))) => {
                    carrier.remove_or_report(change);
                    carrier.place_entry(next);
                }
                Some((_, Err(errno))) => {
                    carrier.leave_out(&change.path, std::io::Error::from(errno).to_string())
                }
            }
        }
        for change in coming.into_values() {
            carrier.place_entry(change);
        }
        let mut left = carrier.left;
        let flushed = rustix::fs::fsync(user.project.root_dir.root());
        let ended = flushed.map_err(|errno| state_error("flush", user.root(), errno.into()));
        // While the list is there, the layer's end would put back what went.
        if let (Err(error), Some(change)) =
            (ended.and(pending_moves::delete_moved(self.dir)), self.changes.first())
        {
            pending_moves::delete_moved(self.dir).ok();
            left.push((change.path.clone(), error.to_string()));
        }
        left
    }
}

impl DirTotals {
    /// Returns true if the directory that was counted is at `path`, as it was.
    fn is_unchanged_at(&self, root_dir: &RootDir, path: &RelPath) -> bool {
        self.print.is_some() && TreeFingerprint::of(root_dir, path) == self.print
    }
}

impl UncoveredChange {
    /// Returns true if what goes is at `path` beneath `root_dir`, as it was looked at.
    fn is_unchanged_at(&self, root_dir: &RootDir, path: &RelPath) -> bool {
        match &self.what {
            UncoveredKind::Removed(old) | UncoveredKind::Replaced { old, .. } => {
                root_dir.stat(path).ok().flatten().is_some_and(|now| old.has_same_content(&now))
            }
            UncoveredKind::RemovedTree(tally) => tally.is_unchanged_at(root_dir, path),
            UncoveredKind::Added(_) | UncoveredKind::AddedTree(_) => false,
        }
    }
}

struct UncoveredMover<'a> {
    user: &'a Workspace,
    upper: &'a RootDir,
    gone: &'a RootDir,
    pending: &'a PendingMoves,
    left: Vec<(RelPath, String)>,
}

impl UncoveredMover<'_> {
    fn leave_out(&mut self, path: &RelPath, why: impl Into<String>) {
        self.left.push((path.clone(), why.into()));
    }

    fn remove_or_report(&mut self, change: &UncoveredChange) {
        let path = &change.path;
        if matches!(self.user.project.root_dir.stat(path), Ok(None)) {
            return;
        }
        match self.remove_if_unchanged(change) {
            Ok(true) => {}
            Ok(false) => self.leave_out(path, CHANGED_MEANWHILE_REASON),
            Err(errno) => self.leave_out(path, std::io::Error::from(errno).to_string()),
        }
    }

    /// Moves a path away if it is unchanged; returns true if it was. Compares once more at the new
    /// place, where no other process reaches it, because comparing a directory takes long.
    fn remove_if_unchanged(&mut self, change: &UncoveredChange) -> Result<bool, Errno> {
        let path = &change.path;
        if !change.is_unchanged_at(&self.user.project.root_dir, path) {
            return Ok(false);
        }
        let parent = self.user.project.root_dir.open_parent(path)?;
        let name = self.pending.moved_name(path).ok_or(Errno::NOENT)?;
        let moved = RelPath::parse(name.as_bytes()).map_err(|_| Errno::INVAL)?;
        let gone = self.gone.root();
        match renameat_with(&parent, path.file_name(), gone, name.as_bytes(), RenameFlags::NOREPLACE) {
            // Somewhere else after all: then it is deleted in place.
            Err(Errno::XDEV | Errno::INVAL) => {
                remove_entry(parent.as_fd(), path.file_name())?;
                return Ok(true);
            }
            other => other?,
        }
        if change.is_unchanged_at(self.gone, &moved) {
            return Ok(true);
        }
        renameat_with(gone, name.as_bytes(), &parent, path.file_name(), RenameFlags::NOREPLACE)?;
        Ok(false)
    }

    /// Puts what comes in the place of what goes, which is in the layer then.
    fn exchange_entry(&mut self, change: &UncoveredChange) -> Result<(), Errno> {
        let path = &change.path;
        if !change.is_unchanged_at(&self.user.project.root_dir, path) {
            self.leave_out(path, CHANGED_MEANWHILE_REASON);
            return Ok(());
        }
        strip_overlay_marks(self.upper, path)?;
        let (from, to) = (self.upper.open_parent(path)?, self.user.project.root_dir.open_parent(path)?);
        let swap = || renameat_with(&from, path.file_name(), &to, path.file_name(), RenameFlags::EXCHANGE);
        swap()?;
        if !change.is_unchanged_at(self.upper, path) {
            swap()?;
            self.leave_out(path, CHANGED_MEANWHILE_REASON);
        }
        Ok(())
    }

    fn place_entry(&mut self, change: &UncoveredChange) {
        let path = &change.path;
        if matches!(change.what, UncoveredKind::Replaced { .. }) {
            match self.exchange_entry(change) {
                Err(Errno::INVAL | Errno::NOSYS) => {}
                Err(errno) => return self.leave_out(path, std::io::Error::from(errno).to_string()),
                Ok(()) => return,
            }
        }
        let there = self.user.project.root_dir.stat(path).ok().flatten();
        let is_free = match &change.what {
            UncoveredKind::Replaced { .. } => change.is_unchanged_at(&self.user.project.root_dir, path),
            _ => there.is_none(),
        };
        if !is_free {
            return self.leave_out(path, CHANGED_MEANWHILE_REASON);
        }
        if let Err(errno) = self.move_entry(change) {
            self.leave_out(path, std::io::Error::from(errno).to_string());
        }
    }

    fn move_entry(&mut self, change: &UncoveredChange) -> Result<(), Errno> {
        let path = &change.path;
        let parent = self.make_parent_dir(path)?;
        strip_overlay_marks(self.upper, path)?;
        let from = self.upper.open_parent(path)?;
        let how = if matches!(change.what, UncoveredKind::Replaced { .. }) {
            RenameFlags::empty()
        } else {
            RenameFlags::NOREPLACE
        };
        renameat_with(&from, path.file_name(), &parent, path.file_name(), how)
    }

    /// Opens the directory of the tree that holds the path, and makes it as the layer has it if it
    /// is missing.
    fn make_parent_dir(&self, path: &RelPath) -> Result<OwnedFd, Errno> {
        match self.user.project.root_dir.open_parent(path) {
            Err(Errno::NOENT) => {}
            other => return other,
        }
        let Some(above) = path.parent() else { return Err(Errno::NOENT) };
        let outer = self.make_parent_dir(&above)?;
        let mode = self.upper.stat(&above)?.map_or(0o755, |seen| seen.permissions());
        match mkdirat(&outer, above.file_name(), Mode::from_raw_mode(mode)) {
            Ok(()) | Err(Errno::EXIST) => self.user.project.root_dir.open_parent(path),
            Err(errno) => Err(errno),
        }
    }
}

/// Removes the kernel's marks, and deletes pipes, sockets and devices.
fn strip_overlay_marks(upper: &RootDir, path: &RelPath) -> Result<(), Errno> {
    let Some(seen) = upper.stat(path)? else { return Err(Errno::NOENT) };
    let mut open: Vec<(RelPath, FileStat)> = vec![(path.clone(), seen)];
    while let Some((at, seen)) = open.pop() {
        if seen.is_file() {
            if let Ok((file, _)) = upper.open_file(&at, LinkPolicy::Refuse) {
                remove_attributes(&file);
            }
            continue;
        }
        if !seen.is_dir() {
            continue;
        }
        let dir = upper.open_directory(Some(&at))?;
        remove_attributes(&dir);
        for name in entry_names(&dir)? {
            let Ok(inner) = at.join(&name) else { continue };
            match upper.stat(&inner)? {
                Some(seen) if seen.is_file() || seen.is_dir() => open.push((inner, seen)),
                Some(seen) if seen.is_link() => {}
                _ => unlinkat(&dir, name.as_slice(), AtFlags::empty())?,
            }
        }
    }
    Ok(())
}

fn remove_attributes(file: &OwnedFd) {
    for mark in OVERLAY_ATTRIBUTES {
        // Most files have none of them.
        fremovexattr(file, mark).ok();
    }
}

/// Removes directories that are to be gone, now that what was in them is.
pub(crate) fn remove_emptied(root_dir: &RootDir, dirs: &[DirRecord]) {
    for dir in dirs.iter().rev() {
        if let Ok(parent) = root_dir.open_parent(&dir.path) {
            // A directory that another process uses stays.
            let _only_if_empty = unlinkat(&parent, dir.path.file_name(), AtFlags::REMOVEDIR);
        }
    }
}
