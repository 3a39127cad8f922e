//! The state of a project's repository, and the operation in progress.

use std::fs;
use std::path::{Path, PathBuf};

use journeyman_protocol::RelPath;

use crate::reader::{GitReader, ReadCommand};
use crate::repository_paths::RepositoryPaths;
use crate::status::GitHead;
use crate::{Git, GitError, OperationInProgress};

/// Prints branch, commit, and two settings, each ended by NUL.
const STATE_SCRIPT: &str = r#"
"$1" symbolic-ref -q HEAD; printf '\0'
"$1" rev-parse -q --verify 'HEAD^{commit}'; printf '\0'
"$1" config --bool core.bare; printf '\0'
"$1" config --bool core.sparseCheckout; printf '\0'
"#;

/// The state of a project's repository. Paths are absolute and without links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryState {
    /// This work tree's git directory.
    pub git_dir: PathBuf,
    /// The git directory that all work trees share; different from `git_dir` in a linked work tree.
    pub common_dir: PathBuf,
    /// The top of the work tree; `None` where the project is itself a git directory.
    pub work_tree: Option<PathBuf>,
    /// The project's path in the work tree; `None` at its top.
    pub prefix: Option<RelPath>,
    /// The last commit, and the branch.
    pub head: GitHead,
    /// True if the repository is configured without a work tree.
    pub bare: bool,
    /// True if only some files are checked out.
    pub sparse: bool,
    /// True if only a part of the history is present.
    pub shallow: bool,
    /// True if the repository names submodules.
    pub submodules: bool,
    /// The operation in progress.
    pub operation: Option<OperationInProgress>,
}

impl Git {
    /// Returns the state of the project's repository.
    ///
    /// # Errors
    /// [`GitError::NoRepository`] if there is none; other [`GitError`]s.
    pub async fn state(&self) -> Result<RepositoryState, GitError> {
        GitReader::open(self).await?.state().await
    }
}

impl GitReader<'_> {
    pub(crate) async fn state(&self) -> Result<RepositoryState, GitError> {
        let action = "rev-parse";
        let mut ask = ReadCommand::new(action, [""; 0]);
        ask.script = Some(STATE_SCRIPT);
        let bytes = self.run(ask).await?.into_output(action)?;
        let malformed = || GitError::Malformed { action, what: "an answer" };
        // A branch's name may have any bytes.
        let text = String::from_utf8_lossy(&bytes);
        let answers: Vec<&str> = text.split('\0').map(str::trim_end).collect();
        let [branch, commit, bare, sparse, ..] = answers.as_slice() else { return Err(malformed()) };
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let place = &self.place;
        Ok(RepositoryState {
            git_dir: place.git_dir.clone(),
            common_dir: place.common_dir.clone(),
            work_tree: place.top.clone(),
            prefix: RelPath::parse(&place.prefix).ok(),
            head: GitHead {
                commit: some(commit),
                branch: some(branch.strip_prefix("refs/heads/").unwrap_or(branch)),
            },
            bare: *bare == "true",
            sparse: *sparse == "true",
            shallow: fs::metadata(place.common_dir.join("shallow")).is_ok_and(|found| found.len() > 0),
            submodules: place.top.as_ref().is_some_and(|top| path_exists(&top.join(".gitmodules"))),
            operation: find_operation_in_progress(place),
        })
    }
}

/// Returns the operation in progress, found by the files that git keeps meanwhile.
pub(crate) fn find_operation_in_progress(place: &RepositoryPaths) -> Option<OperationInProgress> {
    let marks = [
        ("rebase-merge", OperationInProgress::Rebase),
        ("rebase-apply/applying", OperationInProgress::Mailbox),
        ("rebase-apply", OperationInProgress::Rebase),
        ("MERGE_HEAD", OperationInProgress::Merge),
        ("CHERRY_PICK_HEAD", OperationInProgress::CherryPick),
        ("REVERT_HEAD", OperationInProgress::Revert),
        ("BISECT_LOG", OperationInProgress::Bisect),
    ];
    marks.into_iter().find(|(name, _)| path_exists(&place.git_dir.join(name))).map(|(_, operation)| operation)
}

fn path_exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}
