//! The only caller of the git program.
//!
//! Reads run confined, without hooks, file-system monitors, external diffs, filters and pagers: a
//! repository's own settings name programs, and reading a repository must not run them. Commits are
//! made by the user's git with the user's signing, only if the user asked for that commit. Their
//! hooks run in the sandbox ([`HookRun`]), and no program outside the sandbox depends on a
//! committed change that nobody has reviewed. Nothing here pushes, forces, or moves an existing
//! branch.
//!
//! - [`Git`] reads one project's repository: [`Git::state`], [`Git::status`], [`Git::tracked`],
//!   [`Git::show`], [`Git::log`]. [`Git::check_out`] writes the files of `HEAD` into a directory
//!   elsewhere. If the user allowed commands without a sandbox, the same settings are disabled
//!   without one.
//! - [`UserGit`], from [`Git::for_user`], has the user's environment: [`UserGit::commit`] commits
//!   exactly the given files, [`UserGit::begin_branch`] creates a branch beside the work tree, and
//!   [`UserGit::sweep`] removes what a crash left.
//! - [`Git::blocking`] is for callers without an async runtime.
//!
//! The crate reads no environment, finds the repository without running git, and ignores the user's
//! settings when it reads: their global ignore rules and line-end settings have no effect.

mod blame;
mod branch;
mod check_out;
mod commit;
mod error;
mod history;
mod hooks;
mod limits;
mod overrides;
mod paths;
mod programs;
mod read;
mod state;
mod status;
mod tracked;
mod tree;
mod user;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_sandbox::Sandbox;

pub use blame::BlameHunk;
pub use branch::PendingBranch;
pub use commit::{CommitRequest, CreatedCommit};
pub use error::{CommitRefusal, GitError};
pub use history::{CommitDetails, CommitSummary};
pub use hooks::{HookConfinement, HookRun};
pub use state::{Operation, RepositoryState};
pub use status::{EntryStatus, GitHead, Status, StatusChange, StatusEntry};
pub use tracked::Tracked;
pub use tree::TreeFile;
pub use user::UserGit;

/// The search path for programs if none is given.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Reads a project's repository with git.
#[derive(Debug, Clone)]
pub struct Git {
    root: PathBuf,
    sandbox: Arc<Sandbox>,
    path: OsString,
}

impl Git {
    /// Creates a reader for the project at `root`, confined by `sandbox`.
    #[must_use]
    pub fn new(root: &Path, sandbox: Arc<Sandbox>) -> Self {
        Self { root: root.to_owned(), sandbox, path: DEFAULT_PATH.into() }
    }

    /// Uses the git that this `PATH` finds first; directories in the project are ignored.
    #[must_use]
    pub fn with_path(mut self, path: impl Into<OsString>) -> Self {
        self.path = path.into();
        self
    }

    /// CommandTrigger one of the asynchronous methods to its end, on a thread and a runtime of its
    /// own.
    ///
    /// # Errors
    /// The errors of `work`; [`GitError::Io`] if no thread or runtime could be created.
    pub fn blocking<T: Send>(work: impl Future<Output = Result<T, GitError>> + Send) -> Result<T, GitError> {
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map_err(GitError::io("starting", "git"))?.block_on(work)
        };
        std::thread::scope(|scope| {
            let started = std::thread::Builder::new().spawn_scoped(scope, run);
            let ended = started.map_err(GitError::io("starting", "git"))?.join();
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}
