//! A layer over the user's tree: nothing is copied.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_sandbox::{Base, OverlayPlan};

use super::{Made, Making, Reason};
use crate::isolate::Means;
use crate::isolate::place::Beside;
use crate::isolate::remove::{open_directory, remove_tree};
use crate::lock::state_error;
use crate::{Workspace, WorkspaceError};

/// What the name of each layer begins with; its number follows.
const LAYER: &str = "layer-";

/// Where a layer is.
pub(in crate::isolate) fn layer_dir(files: &Path, layer: u32) -> PathBuf {
    files.join(format!("{LAYER}{layer}"))
}

/// The part of a layer that changes go to.
pub(in crate::isolate) fn upper(files: &Path, layer: u32) -> PathBuf {
    layer_dir(files, layer).join("upper")
}

pub(super) fn make(making: Making<'_>) -> Result<Made, Reason> {
    let workspace = making.workspace;
    possible(workspace)?;
    let beside = Beside::of(making)?;
    let files = making.files(beside)?;
    begin_layer(workspace, &files, 1)?;
    let base = mount(workspace, making.means, &files, 1)?;
    // Inode and times of files show through: what is known of the tree's is true of the copy's.
    Ok(Made { base, beside, seed: Arc::clone(making.tree), left_out: Vec::new() })
}

/// Makes an empty layer.
pub(in crate::isolate) fn begin_layer(
    workspace: &Workspace,
    files: &Path,
    layer: u32,
) -> Result<(), WorkspaceError> {
    let upper = upper(files, layer);
    for dir in [&layer_dir(files, layer), &upper, &layer_dir(files, layer).join("kernel")] {
        let made = DirBuilder::new().mode(0o700).create(dir);
        made.map_err(|source| state_error("create the directory", dir, source))?;
    }
    // What is merged shows the upper root's nature for its own.
    super::file::look_like(workspace.door.root(), &open_directory(&upper)?);
    Ok(())
}

/// Mounts a layer over the tree.
pub(in crate::isolate) fn mount(
    workspace: &Workspace,
    means: &Means<'_>,
    files: &Path,
    layer: u32,
) -> Result<Base, Reason> {
    possible(workspace)?;
    let absolute = |path: &Path| fs::canonicalize(path).map_err(|error| Reason(error.to_string()));
    let plan = OverlayPlan {
        lower: absolute(workspace.root())?,
        upper: absolute(&upper(files, layer))?,
        work: absolute(&layer_dir(files, layer).join("kernel"))?,
    };
    let mounted = means.sandbox.mount(&plan).map_err(|error| Reason(error.to_string()))?;
    Ok(Base::Mounted(Arc::new(mounted)))
}

/// Takes away layers that don't count: a crash may have left one half made, or one that was replaced.
pub(in crate::isolate) fn sweep(files: &Path, keep: u32) {
    let keep = layer_dir(files, keep);
    for entry in fs::read_dir(files).into_iter().flatten().flatten() {
        let is_layer = entry.file_name().to_str().is_some_and(|name| name.starts_with(LAYER));
        if is_layer && entry.path() != keep {
            let _next_time = remove_tree(&entry.path());
        }
    }
}

fn possible(workspace: &Workspace) -> Result<(), Reason> {
    if workspace.base().is_some() {
        return Err("the tree is a copy itself".into());
    }
    let root = fs::canonicalize(workspace.root()).map_err(|error| Reason(error.to_string()))?;
    match mount_beneath(&root) {
        // A layer shows one file system: what is mounted in the tree would look deleted.
        Some(at) => {
            Err(Reason(format!("another file system is mounted in the project, at {}", at.display())))
        }
        None => Ok(()),
    }
}

/// The first place beneath `root` where something is mounted.
fn mount_beneath(root: &Path) -> Option<PathBuf> {
    let table = fs::read("/proc/self/mountinfo").ok()?;
    let points =
        table.split(|&byte| byte == b'\n').filter_map(|line| line.split(|&byte| byte == b' ').nth(4));
    points.map(unescaped).find(|point| point != root && point.starts_with(root))
}

/// A path of the kernel's table, in which some bytes are written as `\` and three octal digits.
fn unescaped(text: &[u8]) -> PathBuf {
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
            assert_eq!(unescaped(text), Path::new(expected));
        }
    }
}
