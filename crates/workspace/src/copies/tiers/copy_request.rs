//! The parts that all ways of making a copy share.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_protocol::RelPath;
use journeyman_sandbox::ProjectCopy;

use crate::copies::info::{CopyTools, UnavailableReason};
use crate::copies::location::CopyLocation;
use crate::copies::record::CopyPlacement;
use crate::copies::tiers::fill;
use crate::snapshot::tree::Tree;
use crate::state::lock::make_private_dir;
use crate::workspace::Workspace;

/// A copy that was made.
pub(crate) struct MadeCopy {
    pub(crate) base: ProjectCopy,
    pub(crate) beside: CopyPlacement,
    /// The tree as the copy has it, with the signatures of its own files.
    pub(crate) seed: Arc<Tree>,
    /// Files that the copy doesn't have as the tree has them, each with the reason.
    pub(crate) left_out: Vec<(RelPath, String)>,
}

/// The input of all tiers.
#[derive(Clone, Copy)]
pub(crate) struct CopyRequest<'a> {
    /// The session whose tree it is.
    pub(crate) workspace: &'a Workspace,
    /// The tree, with signatures.
    pub(crate) tree: &'a Arc<Tree>,
    pub(crate) place: &'a CopyLocation,
    pub(crate) means: &'a CopyTools<'a>,
}

impl CopyRequest<'_> {
    /// Makes a full copy in a directory of its own.
    pub(crate) fn make_directory_copy(
        self,
        beside: CopyPlacement,
        how: fill::FillMethod,
    ) -> Result<MadeCopy, UnavailableReason> {
        let to = self.make_tree_dir(beside)?;
        self.fill(beside, &to, how)
    }

    pub(crate) fn make_tree_dir(self, beside: CopyPlacement) -> Result<PathBuf, UnavailableReason> {
        let files = self.make_files_dir(beside)?;
        let to = files.join(TREE_DIR);
        make_private_dir(&to)?;
        Ok(to)
    }

    pub(crate) fn fill(
        self,
        beside: CopyPlacement,
        to: &Path,
        how: fill::FillMethod,
    ) -> Result<MadeCopy, UnavailableReason> {
        let filled = fill::FillJob::new(self.workspace, self.tree, to, how)?.run()?;
        let base = directory_project_copy(to, filled.caches);
        Ok(MadeCopy { base, beside, seed: Arc::new(filled.seed), left_out: filled.left_out })
    }

    /// Makes the directory that files of the copy go to, and returns it.
    pub(crate) fn make_files_dir(self, beside: CopyPlacement) -> Result<PathBuf, UnavailableReason> {
        match beside {
            CopyPlacement::State => {
                make_private_dir(self.place.dir())?;
                Ok(self.place.dir().to_owned())
            }
            CopyPlacement::Root => Ok(self.place.make_sibling_dir()?.to_owned()),
        }
    }
}

/// The name of a copy's tree where it is a directory.
pub(crate) const TREE_DIR: &str = "tree";

/// The name of the directory for what commands write to the tree's caches.
pub(crate) const CACHES_DIR: &str = "caches";

impl CopyPlacement {
    /// Finds the place for the copy's files on the project's file system.
    pub(crate) fn choose(making: CopyRequest<'_>) -> Result<Self, UnavailableReason> {
        use std::os::unix::fs::MetadataExt as _;
        let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
        let root = device(making.workspace.root());
        if root.is_some() && root == device(making.place.dir()) {
            return Ok(Self::State);
        }
        let sibling = making.place.make_sibling_dir()?;
        if root.is_some() && root == device(sibling) {
            return Ok(Self::Root);
        }
        Err("there is no place for it on the project's file system".into())
    }
}

/// Returns the base that commands see for a copy in a directory.
pub(crate) fn directory_project_copy(tree: &Path, caches: Vec<RelPath>) -> ProjectCopy {
    ProjectCopy::Directory { path: tree.to_owned(), caches, layers: tree.with_file_name(CACHES_DIR) }
}
