//! Repositories in the tree: where they are, and out of it with one that a command planted.
//!
//! Git runs what a repository's configuration and hooks say. The workspace never looks into one; it
//! notices where they are, so that its owner can tell one that is new, and moves that away.

use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use journeyman_protocol::RelPath;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fchmod, fstat, openat, readlinkat, renameat, statat, unlinkat};
use rustix::io::Errno;

use crate::error::WorkspaceError;
use crate::files::directory::{copy, delete};
use crate::files::root_dir::LinkPolicy;
use crate::files::stat::{FileStat, to_mode};
use crate::project::Project;
use crate::state::lock::{make_private_dir, state_error};
use crate::walk::plan::WalkPlan;
use crate::walk::walk;
use crate::workspace::Workspace;
use journeyman_ignore_rules::walk::git_names_in;

/// The permissions of the owner of an open directory.
const OWNER_PERMISSIONS: u32 = 0o700;
/// Maximum number of names to try for a removed path; each removal takes one.
const MAX_NAME_TRIES: u32 = 1_000_000;
/// The prefix of the names of things that were moved away.
const MOVED_PREFIX: &str = "moved";

impl Workspace {
    /// Returns everything named `.git`, in any letter case (a directory, a file or a link), that a
    /// walk finds now: at any depth, the root's own included, but not inside of ignored
    /// directories. A directory that a snapshot of this workspace had is looked into also when
    /// rules or tags hide it now. Sorted. No content is read.
    ///
    /// Directories that can't be read are left out: call this after
    /// [`Commands::end`](crate::CommandObserver::end), which opens those that a command closed.
    ///
    /// # Errors
    /// [`WorkspaceError::TooManyFiles`]; the root vanished.
    pub fn repositories(&self) -> Result<Vec<RelPath>, WorkspaceError> {
        let max_files = self.project.limits().max_files;
        let plan = WalkPlan::names_only(&self.project.root_dir, &self.project.rules, max_files);
        let root = |errno: Errno| WorkspaceError::Root { path: self.root().to_owned(), source: errno.into() };
        let walked = walk(&plan).map_err(root)?;
        if walked.overflow {
            return Err(WorkspaceError::TooManyFiles { limit: max_files });
        }
        if walked.files.is_empty() {
            self.project.root_dir.check_alive()?;
        }
        let mut found: BTreeSet<Vec<u8>> = walked.repositories.into_iter().collect();
        for dir in self.snapshots.recorded_directories_except(&walked.dirs) {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let names = self
                .project
                .root_dir
                .open_beneath(&dir, flags, LinkPolicy::Refuse)
                .and_then(|it| git_names_in(it.as_fd()));
            // Gone, or a link by now: what that leads to is walked under its own name.
            for name in names.unwrap_or_default() {
                found.insert([dir.as_slice(), b"/", &name].concat());
            }
        }
        Ok(found.iter().filter_map(|path| RelPath::parse(path).ok()).collect())
    }
}

/// Moves what may not stay out of the tree.
pub(crate) struct Quarantine<'a> {
    pub(crate) project: &'a Project,
}

impl Quarantine<'_> {
    /// Moves what is at the path, of any kind, out of the tree, to a place of its own under
    /// `removed` in the state directory, and returns that place. No link is followed on the way; of
    /// a link only its target is kept. It isn't journaled: no undo brings it back.
    ///
    /// # Errors
    /// [`WorkspaceError::NotRemoved`] for the project's own repository, which was at the root when
    /// the workspace was opened; [`WorkspaceError::NotFound`]; [`WorkspaceError::Raced`] when a
    /// link stands on the way; failures of the file system.
    pub(crate) fn move_away(
        &self,
        path: &RelPath,
        removal: &mut QuarantineDir,
    ) -> Result<PathBuf, WorkspaceError> {
        let failed = |errno| self.project.root_dir.error_for("move away", path, errno);
        let parent = self.project.root_dir.open_parent(path).map_err(failed)?;
        let name = path.file_name();
        let seen = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| FileStat::of(&stat));
        let seen = seen.map_err(failed)?;
        if path.parent().is_none() {
            let same_as_own = |own: &Vec<u8>| {
                own.as_slice() == name
                    // Where cases aren't told apart, another spelling is the same thing.
                    || statat(&parent, own.as_slice(), AtFlags::SYMLINK_NOFOLLOW)
                        .is_ok_and(|stat| FileStat::of(&stat).ino == seen.ino)
            };
            if !removal.takes_own && self.project.own_repositories.iter().any(same_as_own) {
                let reason = "it is the project's own";
                return Err(WorkspaceError::NotRemoved { path: path.clone(), reason });
            }
        }
        let moved = removal.next_path(&self.project.options.removed_dir_path())?;
        if seen.is_link() {
            let target = readlinkat(&parent, name, Vec::new()).map_err(failed)?.into_bytes();
            std::fs::write(&moved, target).map_err(|source| state_error("write", &moved, source))?;
            let unlink = || unlinkat(&parent, name, AtFlags::empty());
            self.retry_with_permissions(path, &parent, &seen, unlink).map_err(failed)?;
            return Ok(moved);
        }
        let rename = || renameat(&parent, name, CWD, &moved);
        match self.retry_with_permissions(path, &parent, &seen, rename) {
            Err(Errno::XDEV) => self.move_across_file_systems(&parent, path, &moved)?,
            other => other.map_err(failed)?,
        }
        Ok(moved)
    }

    /// Does it, and where permissions are in the way, which a command may have left so, once more
    /// without them. The directory above has its own again in the end.
    fn retry_with_permissions(
        &self,
        path: &RelPath,
        parent: &OwnedFd,
        seen: &FileStat,
        work: impl Fn() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        match work() {
            Err(Errno::ACCESS | Errno::PERM) => {}
            other => return other,
        }
        if seen.is_dir() {
            // What can't be permitted shows in the second try.
            let _best_effort =
                self.project.root_dir.set_permissions(path, seen.permissions() | OWNER_PERMISSIONS);
        }
        let above = FileStat::of(&fstat(parent)?).permissions();
        let permitted = above & OWNER_PERMISSIONS != OWNER_PERMISSIONS
            && fchmod(parent, to_mode(above | OWNER_PERMISSIONS)).is_ok();
        let done = work();
        if permitted {
            fchmod(parent, to_mode(above))?;
        }
        done
    }

    /// Copies to another file system and deletes here.
    fn move_across_file_systems(
        &self,
        parent: &OwnedFd,
        path: &RelPath,
        moved: &Path,
    ) -> Result<(), WorkspaceError> {
        let failed = |errno| self.project.root_dir.error_for("move away", path, errno);
        let (Some(place), Some(name)) = (moved.parent(), moved.file_name()) else {
            return Err(failed(Errno::INVAL));
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let to = openat(CWD, place, flags, Mode::empty())
            .map_err(|errno| state_error("open", place, errno.into()))?;
        let name = name.as_encoded_bytes();
        copy(parent.as_fd(), path.file_name(), to.as_fd(), name, 0).map_err(failed)?;
        delete(parent.as_fd(), path.file_name(), 0).map_err(failed)
    }
}

/// A directory for what is moved away together. It is made for the first thing.
#[derive(Debug, Default)]
pub(crate) struct QuarantineDir {
    place: Option<PathBuf>,
    count: usize,
    /// True where what the root held when the workspace was opened may have been planted before
    /// that.
    takes_own: bool,
}

impl QuarantineDir {
    /// Creates a directory for changes of a command that was cut off. `takes_own` says that this
    /// was before the workspace was opened.
    pub(crate) fn for_cut_off_command(takes_own: bool) -> Self {
        Self { takes_own, ..Self::default() }
    }

    /// Returns the path to which the next file is moved.
    fn next_path(&mut self, all: &Path) -> Result<PathBuf, WorkspaceError> {
        let place = match &self.place {
            Some(place) => place,
            None => self.place.insert(make_unique_dir(all)?),
        };
        self.count += 1;
        // It isn't named `.git` or as it was: nothing is to take the state directory for a project.
        Ok(place.join(format!("{MOVED_PREFIX}-{}", self.count)))
    }
}

/// Makes a directory that nothing else was moved to.
fn make_unique_dir(dir: &Path) -> Result<PathBuf, WorkspaceError> {
    make_private_dir(dir)?;
    for number in 1..MAX_NAME_TRIES {
        let place = dir.join(number.to_string());
        match DirBuilder::new().mode(0o700).create(&place) {
            Ok(()) => return Ok(place),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(state_error("create the directory", &place, source)),
        }
    }
    let full = std::io::Error::other("it is full; delete what isn't needed of it");
    Err(state_error("make room in", dir, full))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_repository_is_carried_to_another_file_system_and_nothing_behind_its_links_is_touched() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("from");
        std::fs::create_dir_all(from.join(".git/hooks")).unwrap();
        std::fs::write(from.join(".git/hooks/pre-commit"), "evil").unwrap();
        std::fs::write(dir.path().join("outside"), "stays").unwrap();
        symlink(dir.path(), from.join(".git/link")).unwrap();
        let (at, to) = (std::fs::File::open(&from).unwrap(), std::fs::File::open(dir.path()).unwrap());
        copy(at.as_fd(), b".git", to.as_fd(), MOVED_PREFIX.as_bytes(), 0).unwrap();
        delete(at.as_fd(), b".git", 0).unwrap();
        let moved = dir.path().join(MOVED_PREFIX);
        assert_eq!(std::fs::read_to_string(moved.join("hooks/pre-commit")).unwrap(), "evil");
        assert_eq!(std::fs::read_link(moved.join("link")).unwrap(), dir.path());
        assert_eq!(std::fs::read_dir(&from).unwrap().count(), 0);
        assert_eq!(std::fs::read_to_string(dir.path().join("outside")).unwrap(), "stays");
    }
}
