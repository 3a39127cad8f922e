//! What no journal can hold, such as a build's directory of gigabytes, moved between a layer and the tree.
//!
//! Names are moved, not bytes: what goes lies among the layer's files until these are removed, what comes is the
//! layer's own. Each move is one step that happens or doesn't; a crash between two leaves the rest undone.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use journeyman_protocol::RelPath;
use rustix::fs::{AtFlags, Mode, RenameFlags, fremovexattr, mkdirat, renameat_with, unlinkat};
use rustix::io::Errno;

use super::rest::{Rest, RestChange, What};
use crate::door::{Door, Links, Seen};
use crate::isolate::remove::{open_directory, remove_in};
use crate::journal::DirRecord;
use crate::lock::{make_private_dir, state_error};
use crate::repository::children;
use crate::{Workspace, WorkspaceError};

/// The directory that what goes is moved to.
const GONE: &str = "gone";
/// Marks that the kernel writes on a layer's files and that mean nothing in the tree.
const MARKS: [&str; 6] = [
    "user.overlay.opaque",
    "user.overlay.origin",
    "user.overlay.impure",
    "user.overlay.nlink",
    "user.overlay.upper",
    "user.overlay.uuid",
];
const MEANWHILE: &str = "it was changed here meanwhile, and left as it is";

/// Moves what isn't journaled; gives what had to be left, each with the reason.
pub(super) fn carry(
    user: &Workspace,
    upper: &Door,
    files: &Path,
    rest: &Rest,
) -> Result<Vec<(RelPath, String)>, WorkspaceError> {
    let changes: Vec<&RestChange> = rest.changes.iter().filter(|change| !change.journaled).collect();
    if changes.is_empty() {
        return Ok(Vec::new());
    }
    let gone = files.join(GONE);
    make_private_dir(&gone)?;
    let mut carrier = Carrier { user, upper, gone: open_directory(&gone)?, number: 0, left: Vec::new() };
    // First what goes: other things may take its place.
    let (going, coming): (Vec<&RestChange>, Vec<&RestChange>) = changes
        .into_iter()
        .partition(|change| matches!(change.what, What::Removed(_) | What::RemovedTree(_)));
    for change in going {
        carrier.take_away(change);
    }
    for change in coming {
        carrier.place(change);
    }
    rustix::fs::fsync(user.door.root()).map_err(|errno| state_error("flush", user.root(), errno.into()))?;
    Ok(carrier.left)
}

struct Carrier<'a> {
    user: &'a Workspace,
    upper: &'a Door,
    gone: OwnedFd,
    number: u64,
    left: Vec<(RelPath, String)>,
}

impl Carrier<'_> {
    fn leave(&mut self, path: &RelPath, why: impl Into<String>) {
        self.left.push((path.clone(), why.into()));
    }

    fn take_away(&mut self, change: &RestChange) {
        let path = &change.path;
        match self.user.door.look(path) {
            Ok(None) => return,
            Ok(Some(now)) => {
                let same = match &change.what {
                    What::Removed(old) => old.same_content(&now),
                    _ => now.is_dir(),
                };
                if !same {
                    return self.leave(path, MEANWHILE);
                }
            }
            Err(errno) => return self.leave(path, std::io::Error::from(errno).to_string()),
        }
        if let Err(errno) = self.remove(path) {
            self.leave(path, std::io::Error::from(errno).to_string());
        }
    }

    fn remove(&mut self, path: &RelPath) -> Result<(), Errno> {
        let parent = self.user.door.parent(path)?;
        self.number += 1;
        let name = self.number.to_string();
        match renameat_with(&parent, path.file_name(), &self.gone, name.as_bytes(), RenameFlags::NOREPLACE) {
            // Somewhere else after all: then it is deleted in place.
            Err(Errno::XDEV | Errno::INVAL) => remove_in(parent.as_fd(), path.file_name()),
            other => other,
        }
    }

    fn place(&mut self, change: &RestChange) {
        let path = &change.path;
        let there = self.user.door.look(path).ok().flatten();
        let is_free = match (&change.what, &there) {
            (What::Replaced { old, .. }, Some(now)) => old.same_content(now),
            (What::Replaced { .. }, None) => false,
            (_, there) => there.is_none(),
        };
        if !is_free {
            return self.leave(path, MEANWHILE);
        }
        if let Err(errno) = self.put(change) {
            self.leave(path, std::io::Error::from(errno).to_string());
        }
    }

    fn put(&mut self, change: &RestChange) -> Result<(), Errno> {
        let path = &change.path;
        let parent = self.parent(path)?;
        strip(self.upper, path)?;
        let from = self.upper.parent(path)?;
        let how = if matches!(change.what, What::Replaced { .. }) {
            RenameFlags::empty()
        } else {
            RenameFlags::NOREPLACE
        };
        renameat_with(&from, path.file_name(), &parent, path.file_name(), how)
    }

    /// The tree's directory that is to hold it, made as the layer has it where it isn't there.
    fn parent(&self, path: &RelPath) -> Result<OwnedFd, Errno> {
        match self.user.door.parent(path) {
            Err(Errno::NOENT) => {}
            other => return other,
        }
        let Some(above) = path.parent() else { return Err(Errno::NOENT) };
        let outer = self.parent(&above)?;
        let mode = self.upper.look(&above)?.map_or(0o755, |seen| seen.permissions());
        match mkdirat(&outer, above.file_name(), Mode::from_raw_mode(mode)) {
            Ok(()) | Err(Errno::EXIST) => self.user.door.parent(path),
            Err(errno) => Err(errno),
        }
    }
}

/// Takes the kernel's marks off, and pipes, sockets and devices out.
fn strip(upper: &Door, path: &RelPath) -> Result<(), Errno> {
    let Some(seen) = upper.look(path)? else { return Err(Errno::NOENT) };
    let mut open: Vec<(RelPath, Seen)> = vec![(path.clone(), seen)];
    while let Some((at, seen)) = open.pop() {
        if seen.is_file() {
            if let Ok((file, _)) = upper.read_file(&at, Links::Refuse) {
                unmark(&file);
            }
            continue;
        }
        if !seen.is_dir() {
            continue;
        }
        let dir = upper.directory(Some(&at))?;
        unmark(&dir);
        for name in children(&dir)? {
            let Ok(inner) = at.join(&name) else { continue };
            match upper.look(&inner)? {
                Some(seen) if seen.is_file() || seen.is_dir() => open.push((inner, seen)),
                Some(seen) if seen.is_link() => {}
                _ => unlinkat(&dir, name.as_slice(), AtFlags::empty())?,
            }
        }
    }
    Ok(())
}

fn unmark(file: &OwnedFd) {
    for mark in MARKS {
        // Most files have none of them.
        fremovexattr(file, mark).ok();
    }
}

impl Workspace {
    /// Removes directories that are to be gone, now that what was in them is.
    pub(super) fn remove_emptied(&self, dirs: &[DirRecord]) {
        for dir in dirs.iter().rev() {
            if let Ok(parent) = self.door.parent(&dir.path) {
                // One that somebody else uses stays.
                let _only_if_empty = unlinkat(&parent, dir.path.file_name(), AtFlags::REMOVEDIR);
            }
        }
    }
}
