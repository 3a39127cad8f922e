//! The only caller of the git program.
//!
//! Reads run confined, with hooks, file-system monitors, external diffs, filters and pagers off: a repository's own
//! settings name programs, and looking at a repository must not run them. Commits are another matter: they are the
//! user's, made by the user's git with their signing, and only where the user asked for that commit. Their hooks run in
//! the sandbox ([`HookRun`]), and no program runs outside of it that the committed change decides about unseen.
//! Nothing here pushes, forces, or moves a branch that is there already.
//!
//! [`Git`] is one project's: [`Git::state`], [`Git::status`], [`Git::tracked`], [`Git::show`] and [`Git::log`] read, and
//! [`Git::check_out`] fills a directory elsewhere with what `HEAD` has. Where the user allowed commands without a sandbox,
//! the same settings are off without one. [`Git::for_user`] is the user's own, with their environment:
//! [`UserGit::commit`] commits exactly the files it is given, [`UserGit::begin_branch`] makes a branch beside the work
//! tree, and [`UserGit::sweep`] takes away what a crash left of one. [`Git::blocking`] is for callers without a runtime.
//!
//! It reads no environment, finds the repository by looking (so nothing of it runs), and never follows settings of the
//! user's when reading: their global ignore rules and line ends don't count there.

mod blame;
mod branch;
mod check_out;
mod commit;
mod error;
mod history;
mod hooks;
mod limits;
mod place;
mod programs;
mod read;
mod shield;
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

pub use blame::Blamed;
pub use branch::Branching;
pub use commit::{Commit, CommitDone};
pub use error::{GitError, Refusal};
pub use history::{Logged, Told};
pub use hooks::{Confinement, HookRun};
pub use state::{Operation, State};
pub use status::{Change, Entry, Head, Status, StatusEntry};
pub use tracked::Tracked;
pub use tree::TreeFile;
pub use user::UserGit;

/// The default of `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The user's git, for one project.
#[derive(Debug, Clone)]
pub struct Git {
    root: PathBuf,
    sandbox: Arc<Sandbox>,
    path: OsString,
}

impl Git {
    /// For the project at `root`, with reads confined by `sandbox`.
    #[must_use]
    pub fn new(root: &Path, sandbox: Arc<Sandbox>) -> Self {
        Self { root: root.to_owned(), sandbox, path: DEFAULT_PATH.into() }
    }

    /// With the git that this `PATH` finds first; directories in the project don't count.
    #[must_use]
    pub fn with_path(mut self, path: impl Into<OsString>) -> Self {
        self.path = path.into();
        self
    }

    /// Waits for what one of the asynchronous methods gives, on a thread and a runtime of its own: for callers that
    /// have none, or that may block.
    ///
    /// # Errors
    /// Those of `work`; [`GitError::Io`] when no thread or runtime could be made.
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
