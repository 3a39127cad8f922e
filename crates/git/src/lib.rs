//! The only caller of the git program.
//!
//! Reads run confined, without hooks, file-system monitors, external diffs, filters and pagers: a
//! repository's own settings name programs, and reading a repository must not run them. Commits are
//! made by the user's git with the user's signing, only if the user asked for that commit. Their
//! hooks run in the sandbox ([`HookRunMode`]), and no program outside the sandbox depends on a
//! committed change that no person has reviewed. Nothing here pushes, forces, or moves an existing
//! branch.
//!
//! - [`Git`] reads one project's repository: [`Git::state`], [`Git::status`],
//!   [`Git::tracked_files`], [`Git::show`], [`Git::log`]. [`Git::check_out`] writes the files of
//!   `HEAD` into a directory elsewhere. If the user allowed commands without a sandbox, the same
//!   settings are disabled without one.
//! - [`UserGit`], from [`Git::for_user`], has the user's environment: [`UserGit::commit`] commits
//!   exactly the given files, [`UserGit::begin_branch`] creates a branch beside the work tree, and
//!   [`UserGit::remove_stale_branches`] removes what a crash left.
//! - [`Git::run_blocking`] is for callers without an async runtime.
//!
//! The crate reads no environment, finds the repository and the checked-out commit ([`Git::head`])
//! without running git, and ignores the user's
//! settings when it reads: their global ignore rules and line-end settings have no effect.

mod blame;
mod branch;
mod check_out;
mod commit;
mod commit_request;
mod configured_programs;
mod error;
mod git;
mod head;
mod history;
mod hook_confinement;
mod hooks;
mod limits;
mod operation_in_progress;
mod overrides;
mod raw_diff;
mod reader;
mod repository_paths;
mod repository_state;
mod status;
mod temporary_index;
mod tracked;
mod tree;
mod user_git;

#[cfg(test)]
mod tests;

pub use blame::BlameHunk;
pub use branch::PendingBranch;
pub use commit::CreatedCommit;
pub use commit_request::CommitRequest;
pub use error::{CommitRefusal, GitError};
pub use git::Git;
pub use history::{CommitDetails, CommitSummary};
pub use hook_confinement::{HookConfinement, HookRunMode};
pub use operation_in_progress::OperationInProgress;
pub use repository_state::RepositoryState;
pub use status::{EntryStatus, GitHead, Status, StatusChange, StatusEntry};
pub use tracked::TrackedFile;
pub use tree::TreeFile;
pub use user_git::UserGit;
