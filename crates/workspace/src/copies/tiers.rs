//! The ways of making a copy.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_protocol::RelPath;
use journeyman_sandbox::Base;

use crate::copies::location::{Beside, Place};
use crate::copies::record::Record;
use crate::copies::{Means, Tier};
use crate::error::WorkspaceError;
use crate::landing::{CopyChanges, Landing};
use crate::snapshot::tree::{FileState, Tree};
use crate::state::lock::make_private_dir;
use crate::workspace::Workspace;

pub(crate) mod caches;
pub(crate) mod file;
pub(crate) mod fill;
pub(crate) mod large;
pub(crate) mod overlay;
pub(crate) mod worktree;

/// A copy that was made.
pub(crate) struct Made {
    pub(crate) base: Base,
    pub(crate) beside: Beside,
    /// The tree as the copy has it, with the signatures of its own files.
    pub(crate) seed: Arc<Tree>,
    /// What isn't in the copy as it is in the tree, each with the reason.
    pub(crate) left_out: Vec<(RelPath, String)>,
}

/// Why a tier can't be had, in words for a person.
#[derive(Debug)]
pub(crate) struct Reason(pub(crate) String);

impl From<WorkspaceError> for Reason {
    fn from(error: WorkspaceError) -> Self {
        Self(error.to_string())
    }
}

impl From<&str> for Reason {
    fn from(words: &str) -> Self {
        Self(words.to_owned())
    }
}

/// What all tiers need.
#[derive(Clone, Copy)]
pub(crate) struct Making<'a> {
    /// Whose tree it is.
    pub(crate) workspace: &'a Workspace,
    /// That tree, with signatures.
    pub(crate) tree: &'a Arc<Tree>,
    pub(crate) place: &'a Place,
    pub(crate) means: &'a Means<'a>,
}

impl Making<'_> {
    /// Makes a copy in this way. What a failure leaves in the place is the caller's to take away.
    pub(crate) fn attempt(self, tier: Tier) -> Result<Made, Reason> {
        if lies_in(&self.workspace.options.state_dir, self.workspace.root()) {
            return Err("the state directory lies in the project itself".into());
        }
        match tier {
            Tier::Overlay => overlay::make(self),
            Tier::Reflink => self.directory(Beside::of(self)?, fill::How::Clone),
            Tier::Worktree => worktree::make(self),
            Tier::Copy => self.directory(Beside::State, fill::How::Copy),
        }
    }

    /// A directory of its own with everything in it.
    fn directory(self, beside: Beside, how: fill::How) -> Result<Made, Reason> {
        let to = self.make_tree_dir(beside)?;
        self.fill(beside, &to, how)
    }

    fn make_tree_dir(self, beside: Beside) -> Result<PathBuf, Reason> {
        let files = self.files(beside)?;
        let to = files.join(TREE);
        make_private_dir(&to)?;
        Ok(to)
    }

    fn fill(self, beside: Beside, to: &Path, how: fill::How) -> Result<Made, Reason> {
        let filled = fill::Fill::new(self.workspace, self.tree, to, how)?.run()?;
        let base = directory_base(to, filled.caches);
        Ok(Made { base, beside, seed: Arc::new(filled.seed), left_out: filled.left_out })
    }

    /// The directory that files of the copy go to, made.
    fn files(self, beside: Beside) -> Result<PathBuf, Reason> {
        match beside {
            Beside::State => {
                make_private_dir(self.place.dir())?;
                Ok(self.place.dir().to_owned())
            }
            Beside::Root => Ok(self.place.make_sibling()?.to_owned()),
        }
    }
}

/// The name of a copy's tree where it is a directory.
const TREE: &str = "tree";
/// That of the directory for what commands write to the tree's caches.
const CACHES: &str = "caches";

impl Beside {
    /// Where the copy's files are on the file system of the project's.
    fn of(making: Making<'_>) -> Result<Self, Reason> {
        use std::os::unix::fs::MetadataExt as _;
        let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
        let root = device(making.workspace.root());
        if root.is_some() && root == device(making.place.dir()) {
            return Ok(Self::State);
        }
        let sibling = making.place.make_sibling()?;
        if root.is_some() && root == device(sibling) {
            return Ok(Self::Root);
        }
        Err("there is no place for it on the project's file system".into())
    }
}

/// What a directory is to commands.
fn directory_base(tree: &Path, caches: Vec<RelPath>) -> Base {
    Base::Directory { path: tree.to_owned(), caches, layers: tree.with_file_name(CACHES) }
}

/// A copy that was made earlier, opened again.
pub(crate) fn reopen(
    workspace: &Workspace,
    record: &Record,
    place: &Place,
    means: &Means<'_>,
) -> Result<Base, Reason> {
    let files = place.files(record.beside).ok_or("the directory beside the project is gone")?;
    if record.info.tier == Tier::Overlay {
        overlay::sweep(files, record.layer);
        return overlay::mount(workspace, means, files, record.layer);
    }
    let tree = files.join(TREE);
    if !fs::symlink_metadata(&tree).is_ok_and(|found| found.is_dir()) {
        return Err(Reason(format!("its directory {} is gone", tree.display())));
    }
    let caches = caches::beneath(workspace).unwrap_or_default();
    Ok(directory_base(&tree, caches))
}

/// Copies what is too large to be kept, and so to be landed, into a copied tree that hasn't changed it; what it could
/// take is no conflict any more.
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
            let is_large = |state: &FileState| state.size > user.limits().kept_file_bytes;
            change.after.as_ref().is_some_and(is_large) || change.before.as_ref().is_some_and(is_large)
        });
        let taken = match large {
            Some(change) => large::take(user, copy, change)?,
            None => false,
        };
        if !taken {
            left.push((path, reason));
        }
    }
    landing.conflicts = left;
    Ok(landing)
}

/// Whether `inner` lies in `outer`, or is it.
fn lies_in(inner: &Path, outer: &Path) -> bool {
    // What isn't there yet lies where the first directory above it lies that is.
    let real = inner.ancestors().find_map(|above| fs::canonicalize(above).ok());
    matches!((real, fs::canonicalize(outer)), (Some(inner), Ok(outer)) if inner.starts_with(&outer))
}
