//! A layer over the user's tree: nothing is copied.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_sandbox::{OverlayPlan, ProjectCopy};
use rustix::fs::{Access, AtFlags, Mode, OFlags, accessat, linkat, mkdirat, openat, statat};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};

use crate::copies::info::{CopyTools, UnavailableReason};
use crate::copies::record::CopyPlacement;
use crate::copies::tiers::copy_request::{CopyRequest, MadeCopy};
use crate::error::WorkspaceError;
use crate::files::remove::{open_directory, remove_tree};
use crate::files::stat::FileStat;
use crate::snapshot::tree::Tree;
use crate::state::lock::state_error;
use crate::workspace::Workspace;

/// The prefix of each layer's name; its number follows.
const LAYER_PREFIX: &str = "layer-";

/// Returns the directory of a layer.
pub(crate) fn layer_dir(files: &Path, layer: u32) -> PathBuf {
    files.join(format!("{LAYER_PREFIX}{layer}"))
}

/// Returns the directory of a layer that changes go to.
pub(crate) fn upper_dir(files: &Path, layer: u32) -> PathBuf {
    layer_dir(files, layer).join("upper")
}

/// Returns the journal's directory of a layer that is being refreshed.
pub(crate) fn refresh_journal_dir(files: &Path, layer: u32) -> PathBuf {
    layer_dir(files, layer).join("journal")
}

pub(crate) fn make_overlay(making: CopyRequest<'_>) -> Result<MadeCopy, UnavailableReason> {
    let workspace = making.workspace;
    check_can_overlay(workspace)?;
    check_owners(workspace, making.tree)?;
    let beside = CopyPlacement::choose(making)?;
    let files = making.make_files_dir(beside)?;
    create_layer(workspace, &files, 1)?;
    let base = mount_layer(workspace, making.means, &files, 1)?;
    // Inode and times of files show through: what is known of the tree's is true of the copy's.
    Ok(MadeCopy { base, beside, seed: Arc::clone(making.tree), left_out: Vec::new() })
}

/// Makes an empty layer.
pub(crate) fn create_layer(workspace: &Workspace, files: &Path, layer: u32) -> Result<(), WorkspaceError> {
    let upper = upper_dir(files, layer);
    for dir in [&layer_dir(files, layer), &upper, &layer_dir(files, layer).join("kernel")] {
        let made = DirBuilder::new().mode(0o700).create(dir);
        made.map_err(|source| state_error("create the directory", dir, source))?;
    }
    // What is merged shows the upper root's nature for its own.
    crate::copies::tiers::file_copy::set_directory_metadata(
        workspace.project.root_dir.root(),
        &open_directory(&upper)?,
    );
    Ok(())
}

/// Mounts a layer over the tree.
pub(crate) fn mount_layer(
    workspace: &Workspace,
    means: &CopyTools<'_>,
    files: &Path,
    layer: u32,
) -> Result<ProjectCopy, UnavailableReason> {
    check_can_overlay(workspace)?;
    let absolute = |path: &Path| fs::canonicalize(path).map_err(|error| UnavailableReason(error.to_string()));
    let plan = OverlayPlan {
        lower: absolute(workspace.root())?,
        upper: absolute(&upper_dir(files, layer))?,
        work: absolute(&layer_dir(files, layer).join("kernel"))?,
    };
    let mounted = means.sandbox.mount_overlay(&plan).map_err(|error| UnavailableReason(error.to_string()))?;
    Ok(ProjectCopy::Mounted(Arc::new(mounted)))
}

/// Fills an empty layer from another one. Files and marks of removed files are hard-linked, but for
/// the files at the paths in `own`, which are copied.
pub(crate) fn link_layer_files(
    files: &Path,
    old: u32,
    new: u32,
    own: &HashSet<&[u8]>,
) -> Result<(), WorkspaceError> {
    let (from, to) = (upper_dir(files, old), upper_dir(files, new));
    let failed = |errno: Errno| state_error("fill", &to, errno.into());
    let (from, to) = (open_directory(&from)?, open_directory(&to)?);
    let mut open = vec![Vec::new()];
    let mut dirs = Vec::new();
    while let Some(path) = open.pop() {
        let below = link_directory_files(&from, &to, &path, own).map_err(failed)?;
        open.extend(below);
        dirs.push(path);
    }
    // The innermost first: what is made in a directory changes its time.
    for path in dirs.iter().rev() {
        let (from, to) = (open_in(&from, path).map_err(failed)?, open_in(&to, path).map_err(failed)?);
        crate::copies::tiers::file_copy::copy_directory_metadata(from.as_fd(), &to);
    }
    Ok(())
}

/// Hard-links the files right in a directory. Returns its subdirectories, which are made.
fn link_directory_files(
    from: &OwnedFd,
    to: &OwnedFd,
    path: &[u8],
    own: &HashSet<&[u8]>,
) -> Result<Vec<Vec<u8>>, Errno> {
    let (from, to) = (open_in(from, path)?, open_in(to, path)?);
    let mut below = Vec::new();
    for name in crate::files::directory::entry_names(&from)? {
        let full = if path.is_empty() { name.clone() } else { [path, b"/", &name].concat() };
        let seen = FileStat::of(&statat(&from, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW)?);
        if seen.is_dir() {
            mkdirat(&to, name.as_slice(), Mode::from_raw_mode(0o700))?;
            below.push(full);
        } else if seen.is_file() && own.contains(full.as_slice()) {
            let (file, stat) = crate::copies::tiers::file_copy::open(from.as_fd(), &name)?;
            let made = crate::copies::tiers::file_copy::create(to.as_fd(), &name)?;
            crate::copies::tiers::file_copy::copy_bytes(
                &file,
                &stat,
                &made,
                crate::copies::tiers::file_copy::CopyMethod::Share,
            )?;
            crate::copies::tiers::file_copy::copy_metadata(&file, &seen, &made)?;
        } else {
            linkat(&from, name.as_slice(), &to, name.as_slice(), AtFlags::empty())?;
        }
    }
    Ok(below)
}

fn open_in(dir: &OwnedFd, path: &[u8]) -> Result<OwnedFd, Errno> {
    let path = if path.is_empty() { b".".as_slice() } else { path };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(dir, path, flags, Mode::empty())
}

/// Removes all layers but `keep`: a crash may have left one that is half made or was replaced.
pub(crate) fn remove_other_layers(files: &Path, keep: u32) {
    let keep = layer_dir(files, keep);
    for entry in fs::read_dir(files).into_iter().flatten().flatten() {
        let is_layer = entry.file_name().to_str().is_some_and(|name| name.starts_with(LAYER_PREFIX));
        if is_layer && entry.path() != keep {
            let _next_time = remove_tree(&entry.path());
        }
    }
}

fn check_can_overlay(workspace: &Workspace) -> Result<(), UnavailableReason> {
    if workspace.project_copy().is_some() {
        return Err("the tree is a copy itself".into());
    }
    let root = fs::canonicalize(workspace.root()).map_err(|error| UnavailableReason(error.to_string()))?;
    match find_mount_beneath(&root) {
        // A layer shows one file system: what is mounted in the tree would look deleted.
        Some(at) => Err(UnavailableReason(format!(
            "another file system is mounted in the project, at {}",
            at.display()
        ))),
        None => Ok(()),
    }
}

/// Refuses a tree with something that the user may change and the layer can't: an ordinary user's
/// mount has no number for other owners and groups.
fn check_owners(workspace: &Workspace, tree: &Tree) -> Result<(), UnavailableReason> {
    if geteuid().is_root() {
        return Ok(());
    }
    let us = (geteuid().as_raw(), getegid().as_raw());
    let root = workspace.project.root_dir.root();
    let may_change = |path: &[u8]| accessat(root, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok();
    let owner_of =
        |path: &[u8]| statat(root, path, AtFlags::SYMLINK_NOFOLLOW).map(|stat| FileStat::of(&stat).owner);
    let dirs = std::iter::once(b".".as_slice()).chain(tree.dirs.iter().map(|dir| dir.path.as_slice()));
    let mut foreign_dirs = dirs.filter(|path| owner_of(path).is_ok_and(|owner| owner != us));
    let files = tree.entries.iter().filter(|entry| entry.seen.is_file() && entry.seen.owner != us);
    let mut foreign_files = files.map(|entry| entry.path.as_slice());
    let found = foreign_dirs.find(|path| may_change(path));
    match found.or_else(|| foreign_files.find(|path| may_change(path))) {
        Some(path) => Err(UnavailableReason(format!(
            "an overlay can't change `{}`, which belongs to another user or group",
            String::from_utf8_lossy(path)
        ))),
        None => Ok(()),
    }
}

/// Returns the first mount point beneath `root`.
fn find_mount_beneath(root: &Path) -> Option<PathBuf> {
    let table = fs::read("/proc/self/mountinfo").ok()?;
    let points =
        table.split(|&byte| byte == b'\n').filter_map(|line| line.split(|&byte| byte == b' ').nth(4));
    points.map(unescape_mount_path).find(|point| point != root && point.starts_with(root))
}

/// Decodes a path of the kernel's mount table, in which some bytes are written as `\` and three
/// octal digits.
fn unescape_mount_path(text: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| *first == b'\\');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                path.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                path.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_paths() {
        let table: [(&[u8], &str); 4] =
            [(b"/a/b", "/a/b"), (b"/a\\040b", "/a b"), (b"/a\\134", "/a\\"), (b"/a\\9", "/a\\9")];
        for (text, expected) in table {
            assert_eq!(unescape_mount_path(text), Path::new(expected));
        }
    }
}
