//! Taking a tree away, whatever is in it: no link is followed, permissions in the way are given,
//! and neither depth nor number matters.

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, chmod, fchmod, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use crate::error::WorkspaceError;
use crate::files::directory::entry_names;
use crate::files::stat::{FileStat, to_mode};
use crate::state::lock::state_error;

/// Directories open at once; what lies deeper is moved up first.
const MAX_OPEN_DIRS: usize = 32;
/// The permissions that the owner needs to empty a directory.
const OWNER_PERMISSIONS: u32 = 0o700;
/// A directory that is being filled meanwhile is emptied so often.
const MAX_EMPTYING_ROUNDS: usize = 8;

/// Removes what is at `path`, of any kind, whatever its permissions; nothing being there is fine.
/// For state of the program's own, never for what is in a project.
///
/// # Errors
/// [`WorkspaceError::State`].
pub fn remove_tree(path: &Path) -> Result<(), WorkspaceError> {
    let failed = |errno: Errno| state_error("remove", path, errno.into());
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(failed(Errno::INVAL));
    };
    let name = std::os::unix::ffi::OsStrExt::as_bytes(name);
    let dir = match open_dir(CWD, std::os::unix::ffi::OsStrExt::as_bytes(parent.as_os_str())) {
        Err(Errno::NOENT) => return Ok(()),
        other => other.map_err(failed)?,
    };
    remove_entry(dir.as_fd(), name).map_err(failed)
}

/// Removes the directories in `all` that belonged to processes which are gone. Their names begin
/// with the process id and a hyphen. A process id that is in use again is looked at another time.
pub fn remove_trees_of_ended_processes(all: &Path) {
    let Ok(entries) = std::fs::read_dir(all) else { return };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.split_once('-')).map(|(pid, _)| pid.parse::<u32>());
        if let Some(Ok(pid)) = pid
            && !Path::new("/proc").join(pid.to_string()).exists()
        {
            remove_tree(&entry.path()).ok();
        }
    }
}

/// Removes `name` in `dir`, of any kind; nothing being there is fine.
pub(crate) fn remove_entry(dir: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
    match remove_file(dir, name) {
        Err(Errno::ISDIR | Errno::PERM) => {}
        other => return other,
    }
    let mut removal = TreeRemoval { top: dir, deep: VecDeque::new(), moved: 0, prefix: name.to_vec() };
    removal.remove_directory(dir, name, 0)?;
    while let Some(deep) = removal.deep.pop_front() {
        removal.remove_directory(dir, &deep, 0)?;
    }
    Ok(())
}

fn remove_file(dir: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
    let gone = |result| match result {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    };
    match gone(unlinkat(dir, name, AtFlags::empty())) {
        Err(Errno::ACCESS) => {
            let mode = FileStat::of(&rustix::fs::fstat(dir)?).permissions();
            fchmod(dir, to_mode(mode | OWNER_PERMISSIONS))?;
            gone(unlinkat(dir, name, AtFlags::empty()))
        }
        other => other,
    }
}

struct TreeRemoval<'a> {
    /// The directory to which directories that lie too deep are moved.
    top: BorrowedFd<'a>,
    deep: VecDeque<Vec<u8>>,
    moved: u64,
    prefix: Vec<u8>,
}

impl TreeRemoval<'_> {
    fn remove_directory(&mut self, at: BorrowedFd<'_>, name: &[u8], depth: usize) -> Result<(), Errno> {
        for _ in 0..MAX_EMPTYING_ROUNDS {
            match unlinkat(at, name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                // A directory that keeps us out may be empty or not, and so may the one above it.
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::ACCESS | Errno::PERM) => {}
                Err(Errno::NOTDIR) => return remove_file(at, name),
                Err(errno) => return Err(errno),
            }
            if depth >= MAX_OPEN_DIRS {
                return self.move_up(at, name);
            }
            let dir = open_granting_access(at, name)?;
            for child in entry_names(&dir)? {
                match remove_file(dir.as_fd(), &child) {
                    Err(Errno::ISDIR | Errno::PERM) => {
                        self.remove_directory(dir.as_fd(), &child, depth + 1)?
                    }
                    other => other?,
                }
            }
        }
        unlinkat(at, name, AtFlags::REMOVEDIR)
    }

    /// Puts a directory that lies deep beside the top one, to be emptied from there.
    fn move_up(&mut self, at: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
        // Its `..` changes, for which it has to be writable.
        drop(open_granting_access(at, name)?);
        loop {
            self.moved += 1;
            let digits = self.moved.to_string();
            let cut = self.prefix.get(..self.prefix.len().min(200)).unwrap_or_default();
            let new = [cut, b".deep-", digits.as_bytes()].concat();
            if statat(self.top, new.as_slice(), AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                continue;
            }
            renameat(at, name, self.top, new.as_slice())?;
            self.deep.push_back(new);
            return Ok(());
        }
    }
}

/// Opens a directory that its owner may be kept out of, and lets the owner in.
fn open_granting_access(at: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    match open_dir(at, name) {
        Ok(dir) => {
            let mode = FileStat::of(&rustix::fs::fstat(&dir)?).permissions();
            if mode & OWNER_PERMISSIONS != OWNER_PERMISSIONS {
                fchmod(&dir, to_mode(mode | OWNER_PERMISSIONS))?;
            }
            Ok(dir)
        }
        Err(Errno::ACCESS) => {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let dir = openat(at, name, flags, Mode::empty())?;
            // Such a descriptor takes no fchmod; the name by which the system lists it leads to the
            // same directory.
            chmod(format!("/proc/self/fd/{}", dir.as_raw_fd()), to_mode(OWNER_PERMISSIONS))?;
            open_dir(at, name)
        }
        Err(errno) => Err(errno),
    }
}

fn open_dir(at: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(at, name, flags, Mode::empty())
}

/// Opens a directory for good, such as one that a copy is made in.
pub(crate) fn open_directory(path: &Path) -> Result<OwnedFd, WorkspaceError> {
    File::open(path).map(OwnedFd::from).map_err(|source| state_error("open", path, source))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn trees_of_every_sort_go_and_nothing_behind_their_links_does() {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("file"), "stays").unwrap();
        let tree = dir.path().join("tree");
        fs::create_dir_all(tree.join("a/closed/below")).unwrap();
        fs::write(tree.join("a/closed/below/file"), "x").unwrap();
        fs::write(tree.join(OsStr::from_bytes(b"line\nbreak\xff")), "x").unwrap();
        symlink(&outside, tree.join("a/link")).unwrap();
        symlink("nowhere", tree.join("dangling")).unwrap();
        for (path, mode) in [("a/closed/below", 0o500), ("a/closed", 0o000), ("a", 0o555)] {
            fs::set_permissions(tree.join(path), fs::Permissions::from_mode(mode)).unwrap();
        }
        remove_tree(&tree).unwrap();
        remove_tree(&tree).unwrap();
        assert!(tree.symlink_metadata().is_err());
        symlink(&outside, &tree).unwrap();
        remove_tree(&tree).unwrap();
        assert!(tree.symlink_metadata().is_err());
        assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "stays");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_tree_deeper_than_any_path_goes() {
        let dir = tempfile::tempdir().unwrap();
        let name = [b'd'; 200];
        let mut at = open_dir(CWD, dir.path().as_os_str().as_bytes()).unwrap();
        for _ in 0..300 {
            rustix::fs::mkdirat(&at, name.as_slice(), Mode::from_raw_mode(0o700)).unwrap();
            at = open_dir(at.as_fd(), &name).unwrap();
            rustix::fs::symlinkat("/", &at, "link").unwrap();
        }
        drop(at);
        remove_tree(&dir.path().join(OsStr::from_bytes(&name))).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
