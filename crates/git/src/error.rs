//! The errors of git operations.

use std::io;
use std::path::PathBuf;

use journeyman_protocol::RelPath;
use journeyman_sandbox::SandboxError;

use crate::OperationInProgress;
use crate::limits::MAX_COMMIT_MESSAGE_BYTES;

/// The error of a git operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// No git program was found.
    #[error("git is not installed, or not in PATH")]
    Missing,
    /// The installed git is too old to read a repository without running programs that the
    /// repository names.
    #[error(
        "git {found} is too old to read a repository safely without a sandbox; {least} or newer is needed"
    )]
    TooOld {
        /// The installed version.
        found: String,
        /// The oldest supported version.
        least: &'static str,
    },
    /// The project is not in a repository.
    #[error("{} is in no git repository", .root.display())]
    NoRepository {
        /// The project.
        root: PathBuf,
    },
    /// The repository is bare, or the project lies in a git directory.
    #[error("{} is a bare repository, without a work tree", .root.display())]
    NoWorkTree {
        /// The project.
        root: PathBuf,
    },
    /// A file of the repository is not as git writes it.
    #[error("{}: {reason}", .path.display())]
    Broken {
        /// The file or directory.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// Git failed.
    #[error("git {action} failed: {words}")]
    Failed {
        /// The operation.
        action: &'static str,
        /// Git's output, without control characters.
        words: String,
    },
    /// Git's output exceeds the limit.
    #[error("git {action} gave more than {limit} bytes")]
    OutputTooLarge {
        /// The operation.
        action: &'static str,
        /// The maximum, in bytes.
        limit: usize,
    },
    /// Git exceeded the timeout.
    #[error("git {action} took too long and was ended")]
    TimedOut {
        /// The operation.
        action: &'static str,
    },
    /// The caller cancelled the operation.
    #[error("git {action} was ended")]
    Cancelled {
        /// The operation.
        action: &'static str,
    },
    /// Git's output has an unknown format.
    #[error("git {action} gave something that isn't understood: {what}")]
    Malformed {
        /// The operation.
        action: &'static str,
        /// The part of the output.
        what: &'static str,
    },
    /// The repository was changed while it was read; a retry helps.
    #[error("the repository was changed while it was read; try again")]
    ConcurrentChange,
    /// The arguments are invalid.
    #[error("refused: {0}")]
    InvalidRequest(String),
    /// A commit or a branch can't be created now; nothing was changed.
    #[error(transparent)]
    CommitRefused(#[from] CommitRefusal),
    /// Git can't be confined here.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// A file operation failed.
    #[error("{what} {}: {source}", .path.display())]
    Io {
        /// The operation.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// The reason for which a commit or a branch is not created. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommitRefusal {
    /// Another operation is in progress.
    #[error("a {0} is in progress; finish or abort it first")]
    InProgress(OperationInProgress),
    /// Another git process uses the index, or was cut off while it did.
    #[error("{} exists: another git runs here; if none does, remove that file", .0.display())]
    Locked(PathBuf),
    /// The files are equal to those of the last commit.
    #[error("there is nothing to commit")]
    NothingToCommit,
    /// Files with earlier changes of the user, which a commit would include.
    #[error("{} changed by you too and not committed: commit your own changes first", format_paths(.0))]
    UserChanges(Vec<RelPath>),
    /// Files whose staged content differs from the work tree.
    #[error("{} staged otherwise than in the work tree: commit or unstage that first", format_paths(.0))]
    Staged(Vec<RelPath>),
    /// Files that changed after the content that was to be committed.
    #[error("{} not any more as verified: look at what changed, and commit by yourself", format_paths(.0))]
    ChangedSince(Vec<RelPath>),
    /// Files that git ignores.
    #[error("{} ignored by git", format_paths(.0))]
    Ignored(Vec<RelPath>),
    /// Files that belong to a submodule or a nested repository.
    #[error("{} in another repository", format_paths(.0))]
    NestedRepository(Vec<RelPath>),
    /// The committer's name and email are not configured.
    #[error(
        "git doesn't know who commits; set it with: git config --global user.name \"Your Name\" and git config \
         --global user.email you@example.com (git says: {0})"
    )]
    NoIdentity(String),
    /// The message is empty or too long.
    #[error("the message has {0} bytes; between 1 and {MAX_COMMIT_MESSAGE_BYTES} are possible")]
    MessageLength(usize),
    /// The name is not valid for a branch.
    #[error("`{0}` can't name a branch")]
    BranchName(String),
    /// The branch exists already; branches are never moved.
    #[error("the branch `{0}` exists already; choose another name")]
    BranchExists(String),
    /// The hooks can't run in the sandbox.
    #[error(
        "the commit's hooks can't be run in the sandbox ({reason}): {}. Look at them and at what they run, and commit by \
         yourself, or commit without hooks: --no-verify", format_files(.hooks)
    )]
    Hooks {
        /// The hooks' files.
        hooks: Vec<PathBuf>,
        /// The reason.
        reason: String,
    },
    /// A program would run outside the sandbox, and changed files decide what it does.
    #[error(
        "git would run what its setting \"{setting}\" names outside of the sandbox, and the change decides what that \
         does: {} changed or new. Look at what changed, and commit by yourself", format_paths(.files)
    )]
    Unseen {
        /// The setting's key.
        setting: String,
        /// The files.
        files: Vec<RelPath>,
    },
    /// Files that a hook added to the commit and that programs outside the sandbox obey.
    #[error("a hook added to the commit what programs outside of the sandbox run or obey: {} not to be added", format_paths(.0))]
    AddedByHook(Vec<RelPath>),
    /// There is no commit at which a branch could begin.
    #[error("there is no commit yet for a branch to begin at")]
    NoCommit,
}

impl CommitRefusal {
    /// Returns true if a person who has reviewed the files may allow the commit.
    #[must_use]
    pub fn needs_person(&self) -> bool {
        matches!(self, Self::Hooks { .. } | Self::Unseen { .. })
    }
}

fn format_files(files: &[PathBuf]) -> String {
    let names: Vec<String> = files
        .iter()
        .map(|file| journeyman_sandbox::clean_output(file.display().to_string().as_bytes()))
        .collect();
    names.join(", ")
}

/// Lists some paths, with the verb for their number.
fn format_paths(paths: &[RelPath]) -> String {
    const MAX_NAMED_PATHS: usize = 5;
    let mut text = paths.iter().take(MAX_NAMED_PATHS).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if paths.len() > MAX_NAMED_PATHS {
        text.push_str(&format!(" and {} more", paths.len() - MAX_NAMED_PATHS));
    }
    text.push_str(if paths.len() == 1 { " is" } else { " are" });
    text
}

impl GitError {
    /// Returns true if a person who has reviewed the files may allow the commit.
    #[must_use]
    pub fn needs_person(&self) -> bool {
        matches!(self, Self::CommitRefused(refusal) if refusal.needs_person())
    }

    pub(crate) fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }
}
