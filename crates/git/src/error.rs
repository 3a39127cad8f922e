//! The errors of git, with advice.

use std::io;
use std::path::PathBuf;

use journeyman_protocol::RelPath;
use journeyman_sandbox::SandboxError;

use crate::Operation;
use crate::limits::MAX_MESSAGE;

/// The error of a git action.
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
        /// The installed version.
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
    /// The files that lead to the repository aren't as git writes them.
    #[error("{}: {reason}", .path.display())]
    Broken {
        /// The file or directory.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// Git said no.
    #[error("git {action} failed: {words}")]
    Failed {
        /// The action.
        action: &'static str,
        /// Its words, made safe to show.
        words: String,
    },
    /// It gave more than is taken.
    #[error("git {action} gave more than {limit} bytes")]
    TooMuch {
        /// The action.
        action: &'static str,
        /// The bound, in bytes.
        limit: usize,
    },
    /// It took too long.
    #[error("git {action} took too long and was ended")]
    TimedOut {
        /// The action.
        action: &'static str,
    },
    /// The caller ended it.
    #[error("git {action} was ended")]
    Cancelled {
        /// The action.
        action: &'static str,
    },
    /// It gave what this version doesn't understand.
    #[error("git {action} gave something that isn't understood: {what}")]
    Malformed {
        /// The action.
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
    /// A commit or a branch can't be made as things stand; nothing was changed.
    #[error(transparent)]
    Unfit(#[from] Refusal),
    /// Reads can't be confined here.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The file system said no.
    #[error("{what} {}: {source}", .path.display())]
    Io {
        /// The action.
        what: &'static str,
        /// To what.
        path: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },
}

/// The reason why a commit or a branch isn't made. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Something else was begun.
    #[error("a {0} is in progress; finish or abort it first")]
    InProgress(Operation),
    /// Somebody changes the index at this moment, or did when the machine stopped.
    #[error("{} exists: another git runs here; if none does, remove that file", .0.display())]
    Locked(PathBuf),
    /// The files are the same as in the last commit.
    #[error("there is nothing to commit")]
    Nothing,
    /// Files with changes of the user's own from before; a commit would take those along.
    #[error("{} changed by you too and not committed: commit your own changes first", shown(.0))]
    Mixed(Vec<RelPath>),
    /// Files of which one state is staged and another one is in the work tree.
    #[error("{} staged otherwise than in the work tree: commit or unstage that first", shown(.0))]
    Staged(Vec<RelPath>),
    /// Files that git ignores.
    #[error("{} ignored by git", shown(.0))]
    Ignored(Vec<RelPath>),
    /// Files that belong to a submodule or to another repository in the project.
    #[error("{} in another repository", shown(.0))]
    Elsewhere(Vec<RelPath>),
    /// Nobody to commit as.
    #[error(
        "git doesn't know who commits; set it with: git config --global user.name \"Your Name\" and git config \
         --global user.email you@example.com (git says: {0})"
    )]
    NoIdentity(String),
    /// The message is empty, or too long.
    #[error("the message has {0} bytes; between 1 and {MAX_MESSAGE} are possible")]
    Message(usize),
    /// Not a name that a branch can have.
    #[error("«{0}» can't name a branch")]
    BranchName(String),
    /// Branches are made, never moved.
    #[error("there is a branch «{0}» already; choose another name")]
    BranchExists(String),
    /// Hooks that can't be run in the sandbox.
    #[error(
        "the commit's hooks can't be run in the sandbox ({reason}): {}. Look at them and at what they run, and commit by \
         yourself, or commit without hooks: --no-verify", named(.hooks)
    )]
    Hooks {
        /// Their files.
        hooks: Vec<PathBuf>,
        /// The reason.
        reason: String,
    },
    /// A program that would run outside of the sandbox, and files of the change that decide what it does.
    #[error(
        "git would run what its setting \"{setting}\" names outside of the sandbox, and the change decides what that \
         does: {} changed or new. Look at what changed, and commit by yourself", shown(.files)
    )]
    Unseen {
        /// The setting's key.
        setting: String,
        /// The files.
        files: Vec<RelPath>,
    },
    /// Files that a hook added to the commit and that programs outside of the sandbox obey.
    #[error("a hook added to the commit what programs outside of the sandbox run or obey: {} not to be added", shown(.0))]
    AddedByHook(Vec<RelPath>),
    /// A branch begins at a commit.
    #[error("there is no commit yet for a branch to begin at")]
    NoCommit,
}

impl Refusal {
    /// Returns true where a person who has seen the files may allow it.
    #[must_use]
    pub fn needs_person(&self) -> bool {
        matches!(self, Self::Hooks { .. } | Self::Unseen { .. })
    }
}

fn named(files: &[PathBuf]) -> String {
    let names: Vec<String> =
        files.iter().map(|file| journeyman_sandbox::clean(file.display().to_string().as_bytes())).collect();
    names.join(", ")
}

/// Some paths in words, with the verb that goes with their number.
fn shown(paths: &[RelPath]) -> String {
    const NAMED: usize = 5;
    let mut text = paths.iter().take(NAMED).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if paths.len() > NAMED {
        text.push_str(&format!(" and {} more", paths.len() - NAMED));
    }
    text.push_str(if paths.len() == 1 { " is" } else { " are" });
    text
}

impl GitError {
    /// Returns true where a person who has seen the files may allow it.
    #[must_use]
    pub fn needs_person(&self) -> bool {
        matches!(self, Self::Unfit(refusal) if refusal.needs_person())
    }

    pub(crate) fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }
}
