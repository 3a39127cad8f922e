//! The reader of a project's repository.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_sandbox::Sandbox;

use crate::GitError;

/// The search path for programs if the caller gives no other.
pub(crate) const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Reads a project's repository with git.
#[derive(Debug, Clone)]
pub struct Git {
    pub(crate) root: PathBuf,
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) path: OsString,
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

    /// Returns a reader for another project, confined in the same way.
    #[must_use]
    pub fn for_project(&self, root: &Path) -> Self {
        Self { root: root.to_owned(), ..self.clone() }
    }

    /// Runs one of the asynchronous methods to its end, on a thread and a runtime of its
    /// own.
    ///
    /// # Errors
    /// The errors of `work`; [`GitError::Io`] if no thread or runtime could be created.
    pub fn run_blocking<T: Send>(
        work: impl Future<Output = Result<T, GitError>> + Send,
    ) -> Result<T, GitError> {
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
