//! Files too large to be kept as blobs, copied from the tree into a copy.

use std::os::fd::AsFd as _;

use rustix::fs::{Mode, OFlags, fstat, mkdirat, openat, renameat};
use rustix::io::Errno;

use journeyman_protocol::RelPath;

use crate::copies::tiers::file_copy;
use crate::copies::tiers::file_copy::CopyMethod;
use crate::error::WorkspaceError;
use crate::files::remove::remove_entry;
use crate::files::stat::FileStat;
use crate::landing::changes::CopyChange;
use crate::snapshot::entry::{FileKind, FileState};
use crate::snapshot::file_observation::observe_file;
use crate::workspace::Workspace;

/// The name of a file that is being copied.
const TEMPORARY_NAME: &[u8] = b".journeyman-new";

/// Makes the file in the copy what the user has, if the copy hasn't changed it. Whether that is so
/// now.
pub(crate) fn copy_large_file(
    user: &Workspace,
    copy: &Workspace,
    change: &CopyChange,
) -> Result<bool, WorkspaceError> {
    let path = &change.path;
    let signature = |workspace: &Workspace| workspace.project.root_dir.stat(path).ok().flatten();
    if signature(user).is_some_and(|seen| signature(copy) == Some(seen)) {
        // It shows through.
        return Ok(true);
    }
    if !is_unchanged(copy, path, change.before.as_ref())? {
        return Ok(false);
    }
    let failed = |errno| WorkspaceError::from_errno("copy", path, errno);
    match &change.after {
        None => {
            let dir = copy.project.root_dir.open_parent(path).map_err(failed)?;
            remove_entry(dir.as_fd(), path.file_name()).map_err(failed)?;
            Ok(true)
        }
        Some(after) if after.kind == FileKind::File => place_file(user, copy, path).map_err(failed),
        Some(_) => Ok(false),
    }
}

fn is_unchanged(
    copy: &Workspace,
    path: &RelPath,
    before: Option<&FileState>,
) -> Result<bool, WorkspaceError> {
    let now = match observe_file(&copy.project.root_dir, path) {
        Ok(now) => now.map(|(state, _)| state),
        Err(WorkspaceError::NotAFile { .. } | WorkspaceError::Denied { .. }) => return Ok(false),
        Err(other) => return Err(other),
    };
    Ok(match (before, now) {
        (None, None) => true,
        (Some(before), Some(now)) => before.has_same_content(&now) && before.mode == now.mode,
        _ => false,
    })
}

fn place_file(user: &Workspace, copy: &Workspace, path: &RelPath) -> Result<bool, Errno> {
    let source = user.project.root_dir.open_parent(path)?;
    let (from, stat) = file_copy::open(source.as_fd(), path.file_name())?;
    make_parent_dirs(copy, path)?;
    let dir = copy.project.root_dir.open_parent(path)?;
    let at = dir.as_fd();
    remove_entry(at, TEMPORARY_NAME)?;
    let made = file_copy::create(at, TEMPORARY_NAME)?;
    let copied = file_copy::copy_bytes(&from, &stat, &made, CopyMethod::Share)
        .and_then(|()| file_copy::copy_metadata(&from, &FileStat::of(&stat), &made))
        .and_then(|()| renameat(at, TEMPORARY_NAME, at, path.file_name()));
    if let Err(errno) = copied {
        remove_entry(at, TEMPORARY_NAME)?;
        return Err(errno);
    }
    Ok(FileStat::of(&fstat(&from)?) == FileStat::of(&stat))
}

fn make_parent_dirs(copy: &Workspace, path: &RelPath) -> Result<(), Errno> {
    let cuts = path.as_bytes().iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    let mut here = copy.project.root_dir.open_directory(None)?;
    let mut begin = 0;
    for cut in cuts {
        let name = path.as_bytes().get(begin..cut).unwrap_or_default();
        match mkdirat(&here, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        here = openat(&here, name, flags, Mode::empty())?;
        begin = cut + 1;
    }
    Ok(())
}
