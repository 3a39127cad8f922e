//! Why git couldn't do something, and what can be done about it.

use std::io;
use std::path::PathBuf;

use journeyman_sandbox::SandboxError;

/// Why git couldn't do something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// There is no git program.
    #[error("git is not installed, or not in PATH")]
    Missing,
    /// It is older than what it takes to read a repository without running what that names.
    #[error(
        "git {found} is too old to read a repository safely without a sandbox; {least} or newer is needed"
    )]
    TooOld {
        /// What is installed.
        found: String,
        /// The oldest that will do.
        least: &'static str,
    },
    /// The project is in no repository.
    #[error("{} is in no git repository", .root.display())]
    NoRepository {
        /// The project.
        root: PathBuf,
    },
    /// The repository is a bare one, or the project lies in a git directory.
    #[error("{} is a bare repository, without a work tree", .root.display())]
    NoWorkTree {
        /// The project.
        root: PathBuf,
    },
    /// What leads to the repository isn't as git writes it.
    #[error("{}: {reason}", .path.display())]
    Broken {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Git said no.
    #[error("git {action} failed: {words}")]
    Failed {
        /// What was asked of it.
        action: &'static str,
        /// Its words, made safe to show.
        words: String,
    },
    /// It gave more than is taken.
    #[error("git {action} gave more than {limit} bytes")]
    TooMuch {
        /// What was asked of it.
        action: &'static str,
        /// The bound, in bytes.
        limit: usize,
    },
    /// It took too long.
    #[error("git {action} took too long and was ended")]
    TimedOut {
        /// What was asked of it.
        action: &'static str,
    },
    /// The caller ended it.
    #[error("git {action} was ended")]
    Cancelled {
        /// What was asked of it.
        action: &'static str,
    },
    /// It gave what this version doesn't understand.
    #[error("git {action} gave something that isn't understood: {what}")]
    Malformed {
        /// What was asked of it.
        action: &'static str,
        /// What.
        what: &'static str,
    },
    /// The repository was changed while it was read; trying again helps.
    #[error("the repository was changed while it was read; try again")]
    Moved,
    /// The request can't be done as it stands.
    #[error("refused: {0}")]
    Refused(String),
    /// Reads can't be confined here.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The file system said no.
    #[error("{what} {}: {source}", .path.display())]
    Io {
        /// What was done.
        what: &'static str,
        /// To what.
        path: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },
}

impl GitError {
    pub(crate) fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }
}
