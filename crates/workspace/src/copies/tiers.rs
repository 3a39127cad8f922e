//! The ways of making a copy.

use std::fs;
use std::path::Path;

use journeyman_sandbox::ProjectCopy;

use crate::copies::info::{CopyTools, UnavailableReason};
use crate::copies::location::CopyLocation;
use crate::copies::record::{CopyPlacement, CopyRecord};
use crate::copies::tier::IsolationTier;
use crate::copies::tiers::copy_request::{CopyRequest, MadeCopy, TREE_DIR, directory_project_copy};
use crate::error::WorkspaceError;
use crate::landing::changes::{CopyChanges, LandingReport};
use crate::snapshot::entry::FileState;
use crate::workspace::Workspace;

pub(crate) mod caches;
pub(crate) mod copy_request;
pub(crate) mod file_copy;
pub(crate) mod fill;
pub(crate) mod large_files;
pub(crate) mod overlay;
pub(crate) mod worktree;

/// Makes a copy by this tier. After a failure the caller removes what is left.
pub(crate) fn make_copy(making: CopyRequest<'_>, tier: IsolationTier) -> Result<MadeCopy, UnavailableReason> {
    if is_within(&making.workspace.project.options.state_dir, making.workspace.root()) {
        return Err("the state directory lies in the project itself".into());
    }
    let files = making.tree.entries.len();
    if tier != IsolationTier::Overlay && files > making.means.max_copied_files {
        return Err(UnavailableReason(format!("{files} files would be copied one by one")));
    }
    match tier {
        IsolationTier::Overlay => overlay::make_overlay(making),
        IsolationTier::Reflink => {
            making.make_directory_copy(CopyPlacement::choose(making)?, fill::FillMethod::Clone)
        }
        IsolationTier::Worktree => worktree::make_worktree(making),
        IsolationTier::Copy => making.make_directory_copy(CopyPlacement::State, fill::FillMethod::Copy),
    }
}

/// Opens a copy that was made earlier.
pub(crate) fn reopen_copy(
    workspace: &Workspace,
    record: &CopyRecord,
    place: &CopyLocation,
    means: &CopyTools<'_>,
) -> Result<ProjectCopy, UnavailableReason> {
    let files = place.files_dir(record.beside).ok_or("the directory beside the project is gone")?;
    if record.info.tier == IsolationTier::Overlay {
        overlay::remove_other_layers(files, record.layer);
        return overlay::mount_layer(workspace, means, files, record.layer);
    }
    let tree = files.join(TREE_DIR);
    if !fs::symlink_metadata(&tree).is_ok_and(|found| found.is_dir()) {
        return Err(UnavailableReason(format!("its directory {} is gone", tree.display())));
    }
    let caches = caches::list_cache_directories(workspace).unwrap_or_default();
    Ok(directory_project_copy(&tree, caches))
}

/// Copies what is too large to be kept, and so to be landed, into a copied tree that hasn't changed
/// it; what it could take is no conflict any more.
pub(crate) fn copy_large_files(
    user: &Workspace,
    copy: &Workspace,
    changes: &CopyChanges,
    mut landing: LandingReport,
) -> Result<LandingReport, WorkspaceError> {
    let mut left = Vec::new();
    for (path, reason) in landing.conflicts {
        let change = changes.files.iter().find(|change| change.path == path);
        let large = change.filter(|change| {
            let is_large = |state: &FileState| state.size > user.project.limits().kept_file_bytes;
            change.after.as_ref().is_some_and(is_large) || change.before.as_ref().is_some_and(is_large)
        });
        let taken = match large {
            Some(change) => large_files::copy_large_file(user, copy, change)?,
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
fn is_within(inner: &Path, outer: &Path) -> bool {
    // What isn't there yet lies where the first directory above it lies that is.
    let real = inner.ancestors().find_map(|above| fs::canonicalize(above).ok());
    matches!((real, fs::canonicalize(outer)), (Some(inner), Ok(outer)) if inner.starts_with(&outer))
}
