//! The directories that are kept out of a copy, and that commands see there as the tree has them:
//! what tools made, and git's own.

use std::collections::HashSet;
use std::os::fd::AsFd as _;

use journeyman_protocol::RelPath;
use rustix::fs::{Dir, FileType, OFlags};

use crate::copies::tiers::file_copy::is_directory;
use crate::error::WorkspaceError;
use crate::files::root_dir::{LinkPolicy, RootDir};
use crate::limits::MAX_CACHE_DIRECTORIES;
use crate::snapshot::capture::ContentMode;
use crate::snapshot::tree::Tree;
use crate::workspace::Workspace;
use journeyman_ignore_rules::is_git_directory_name;

/// Returns the topmost directories that aren't part of the tree as it is now, sorted, and the
/// repositories' own.
pub(crate) fn list_cache_directories(workspace: &Workspace) -> Result<Vec<RelPath>, WorkspaceError> {
    let tree = workspace.snapshots.take_snapshot(ContentMode::Hashes, None)?;
    let mut found = find_caches(&workspace.project.root_dir, &tree);
    let repositories = tree.repositories.iter().filter_map(|path| RelPath::parse(path).ok());
    found.extend(
        repositories
            .filter(|path| matches!(workspace.project.root_dir.stat(path), Ok(Some(seen)) if seen.is_dir())),
    );
    Ok(found)
}

/// Returns the topmost directories that lie in the tree's directories without being part of the
/// tree, sorted; at most [`MAX_CACHES`].
pub(crate) fn find_caches(root_dir: &RootDir, tree: &Tree) -> Vec<RelPath> {
    let known: HashSet<&[u8]> = tree.dirs.iter().map(|dir| dir.path.as_slice()).collect();
    let unreadable: HashSet<&[u8]> = tree.unreadable.iter().map(Vec::as_slice).collect();
    let mut found = Vec::new();
    let root: &[u8] = b"";
    for path in std::iter::once(root).chain(tree.dirs.iter().map(|dir| dir.path.as_slice())) {
        let begin = if path.is_empty() { b"." } else { path };
        let Ok(dir) = root_dir.open_beneath(begin, OFlags::RDONLY | OFlags::DIRECTORY, LinkPolicy::Refuse)
        else {
            continue;
        };
        let Ok(entries) = Dir::read_from(&dir) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name().to_bytes();
            let listed = entry.file_type();
            let may_be = matches!(listed, FileType::Directory | FileType::Unknown);
            if !may_be || matches!(name, b"." | b"..") || is_git_directory_name(name) {
                continue;
            }
            let full = if path.is_empty() { name.to_vec() } else { [path, b"/", name].concat() };
            let part_of_it = known.contains(full.as_slice()) || unreadable.contains(full.as_slice());
            if !part_of_it
                && is_directory(dir.as_fd(), name, listed)
                && let Ok(full) = RelPath::parse(full)
            {
                found.push(full);
            }
        }
    }
    found.sort_unstable();
    // Each is a mount for every command.
    found.truncate(MAX_CACHE_DIRECTORIES);
    found
}
