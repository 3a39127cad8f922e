//! The ways of making a copy.

use std::fs;
use std::path::Path;

use journeyman_sandbox::Base;

use crate::copies::info::{CopyTools, UnavailableReason};
use crate::copies::location::CopyLocation;
use crate::copies::record::{CopyBase, CopyRecord};
use crate::copies::tier::Tier;
use crate::copies::tiers::making::{CopyRequest, MadeCopy, TREE_DIR, directory_base};
use crate::error::WorkspaceError;
use crate::landing::changes::{CopyChanges, Landing};
use crate::snapshot::entry::FileState;
use crate::workspace::Workspace;

pub(crate) mod caches;
pub(crate) mod file;
pub(crate) mod fill;
pub(crate) mod large;
pub(crate) mod making;
pub(crate) mod overlay;
pub(crate) mod worktree;

/// Makes a copy by this tier. After a failure the caller removes what is left.
pub(crate) fn make_copy(making: CopyRequest<'_>, tier: Tier) -> Result<MadeCopy, UnavailableReason> {
    if lies_in(&making.workspace.project.options.state_dir, making.workspace.root()) {
        return Err("the state directory lies in the project itself".into());
    }
    let files = making.tree.entries.len();
    if tier != Tier::Overlay && files > making.means.max_copied_files {
        return Err(UnavailableReason(format!("{files} files would be copied one by one")));
    }
    match tier {
        Tier::Overlay => overlay::make_overlay(making),
        Tier::Reflink => making.make_directory_copy(CopyBase::of(making)?, fill::FillMethod::Clone),
        Tier::Worktree => worktree::make_worktree(making),
        Tier::Copy => making.make_directory_copy(CopyBase::State, fill::FillMethod::Copy),
    }
}

/// Opens a copy that was made earlier.
pub(crate) fn reopen_copy(
    workspace: &Workspace,
    record: &CopyRecord,
    place: &CopyLocation,
    means: &CopyTools<'_>,
) -> Result<Base, UnavailableReason> {
    let files = place.files(record.beside).ok_or("the directory beside the project is gone")?;
    if record.info.tier == Tier::Overlay {
        overlay::remove_other_layers(files, record.layer);
        return overlay::mount_layer(workspace, means, files, record.layer);
    }
    let tree = files.join(TREE_DIR);
    if !fs::symlink_metadata(&tree).is_ok_and(|found| found.is_dir()) {
        return Err(UnavailableReason(format!("its directory {} is gone", tree.display())));
    }
    let caches = caches::cache_directories(workspace).unwrap_or_default();
    Ok(directory_base(&tree, caches))
}

/// Copies what is too large to be kept, and so to be landed, into a copied tree that hasn't changed
/// it; what it could take is no conflict any more.
pub(crate) fn take_large(
    user: &Workspace,
    copy: &Workspace,
    changes: &CopyChanges,
    mut landing: Landing,
) -> Result<Landing, WorkspaceError> {
    let mut left = Vec::new();
    for (path, reason) in landing.conflicts {
        let change = changes.files.iter().find(|change| change.path == path);
        let large = change.filter(|change| {
            let is_large = |state: &FileState| state.size > user.project.limits().kept_file_bytes;
            change.after.as_ref().is_some_and(is_large) || change.before.as_ref().is_some_and(is_large)
        });
        let taken = match large {
            Some(change) => large::take_file(user, copy, change)?,
            None => false,
        };
        if !taken {
            left.push((path, reason));
        }
    }
    landing.conflicts = left;
    Ok(landing)
}

/// Returns true if `inner` lies in `outer`, or is it.
fn lies_in(inner: &Path, outer: &Path) -> bool {
    // What isn't there yet lies where the first directory above it lies that is.
    let real = inner.ancestors().find_map(|above| fs::canonicalize(above).ok());
    matches!((real, fs::canonicalize(outer)), (Some(inner), Ok(outer)) if inner.starts_with(&outer))
}
