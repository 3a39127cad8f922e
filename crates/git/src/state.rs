//! The repository that a project lies in, and the operation that is under way in it.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use journeyman_protocol::RelPath;

use crate::place::Place;
use crate::read::{Ask, Reader};
use crate::status::Head;
use crate::{Git, GitError};

/// Prints branch, commit, and two settings, each ended by NUL.
const SCRIPT: &str = r#"
"$1" symbolic-ref -q HEAD; printf '\0'
"$1" rev-parse -q --verify 'HEAD^{commit}'; printf '\0'
"$1" config --bool core.bare; printf '\0'
"$1" config --bool core.sparseCheckout; printf '\0'
"#;

/// Something that was begun in a repository and isn't finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `git merge`.
    Merge,
    /// `git rebase`.
    Rebase,
    /// `git am`.
    Mailbox,
    /// `git cherry-pick`.
    CherryPick,
    /// `git revert`.
    Revert,
    /// `git bisect`.
    Bisect,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Merge => "merge",
            Self::Rebase => "rebase",
            Self::Mailbox => "am",
            Self::CherryPick => "cherry-pick",
            Self::Revert => "revert",
            Self::Bisect => "bisect",
        })
    }
}

/// A project's repository. Paths are absolute and without links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// This work tree's git directory.
    pub git_dir: PathBuf,
    /// The one that all its work trees share; the same, but in a linked one.
    pub common_dir: PathBuf,
    /// The top of the work tree; `None` where the project is itself a git directory.
    pub work_tree: Option<PathBuf>,
    /// The path of the project in the work tree; `None` at its top.
    pub prefix: Option<RelPath>,
    /// The last commit, and the branch.
    pub head: Head,
    /// The repository says that it has no work tree.
    pub bare: bool,
    /// Not all of its files are checked out.
    pub sparse: bool,
    /// Not all of its history is there.
    pub shallow: bool,
    /// It names submodules.
    pub submodules: bool,
    /// The operation under way.
    pub operation: Option<Operation>,
}

impl State {
    /// Returns true if the work tree is a linked worktree.
    #[must_use]
    pub fn is_linked(&self) -> bool {
        self.git_dir != self.common_dir
    }
}

impl Git {
    /// The repository that the project lies in.
    ///
    /// # Errors
    /// [`GitError::NoRepository`] where there is none; other [`GitError`]s.
    pub async fn state(&self) -> Result<State, GitError> {
        Reader::open(self).await?.state().await
    }
}

impl Reader<'_> {
    pub(crate) async fn state(&self) -> Result<State, GitError> {
        let action = "rev-parse";
        let mut ask = Ask::new(action, [""; 0]);
        ask.script = Some(SCRIPT);
        let bytes = self.run(ask).await?.done(action)?;
        let malformed = || GitError::Malformed { action, what: "an answer" };
        let text = std::str::from_utf8(&bytes).map_err(|_| malformed())?;
        let answers: Vec<&str> = text.split('\0').map(str::trim_end).collect();
        let [branch, commit, bare, sparse, ..] = answers.as_slice() else { return Err(malformed()) };
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let place = &self.place;
        Ok(State {
            git_dir: place.git_dir.clone(),
            common_dir: place.common_dir.clone(),
            work_tree: place.top.clone(),
            prefix: RelPath::parse(&place.prefix).ok(),
            head: Head {
                commit: some(commit),
                branch: some(branch.strip_prefix("refs/heads/").unwrap_or(branch)),
            },
            bare: *bare == "true",
            sparse: *sparse == "true",
            shallow: fs::metadata(place.common_dir.join("shallow")).is_ok_and(|found| found.len() > 0),
            submodules: place.top.as_ref().is_some_and(|top| is_there(&top.join(".gitmodules"))),
            operation: operation(place),
        })
    }
}

/// Returns the operation that was begun and isn't finished, found by the files that git keeps
/// meanwhile.
pub(crate) fn operation(place: &Place) -> Option<Operation> {
    let marks = [
        ("rebase-merge", Operation::Rebase),
        ("rebase-apply/applying", Operation::Mailbox),
        ("rebase-apply", Operation::Rebase),
        ("MERGE_HEAD", Operation::Merge),
        ("CHERRY_PICK_HEAD", Operation::CherryPick),
        ("REVERT_HEAD", Operation::Revert),
        ("BISECT_LOG", Operation::Bisect),
    ];
    marks.into_iter().find(|(name, _)| is_there(&place.git_dir.join(name))).map(|(_, operation)| operation)
}

fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}
