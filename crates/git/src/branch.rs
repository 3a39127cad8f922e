//! Creates a branch with a commit without touching the user's checkout.
//!
//! The branch is created in a temporary linked worktree, which exists as long as a
//! [`PendingBranch`]. The user's work tree, index and `HEAD` are not used.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use journeyman_root_fs::read_path;
use tokio_util::sync::CancellationToken;

use crate::limits::MAX_GIT_FILE_BYTES;
use crate::repository_paths::RepositoryPaths;
use crate::user_git::{UserCommand, UserGitRunner};
use crate::{CommitRefusal, CommitRequest, CreatedCommit, Git, GitError, UserGit};

/// Suffix of a file beside the worktree that records the branch's name and base commit.
const BRANCH_RECORD_SUFFIX: &str = ".branch";

/// A branch that is being created. When it is finished or dropped, the worktree is removed, and so
/// is the branch if nothing was committed on it.
#[derive(Debug)]
pub struct PendingBranch {
    user: UserGit,
    name: String,
    base: String,
    /// The top of the worktree.
    top: PathBuf,
    /// The project in the worktree.
    root: PathBuf,
    done: bool,
}

impl UserGit {
    /// Checks that a branch of this name can be created now.
    ///
    /// # Errors
    /// [`GitError::CommitRefused`] with the reason if it can't; as [`UserGit::begin_branch`].
    pub async fn check_branch(&self, name: &str, cancel: &CancellationToken) -> Result<(), GitError> {
        let place = RepositoryPaths::find(&self.git.root)?;
        check_new_branch(&self.runner_at(&place, cancel)?, name).await.map(drop)
    }

    /// Creates a branch at `HEAD`, in a new worktree at `dir`, which must not exist and must be
    /// outside the project. A file of the same name with the suffix `.branch` lies beside it for as
    /// long.
    ///
    /// # Errors
    /// [`GitError::CommitRefused`] if the name is invalid or taken, or there is no commit yet;
    /// [`GitError::Failed`] with the output of git or a hook. Nothing is left then.
    pub async fn begin_branch(
        &self,
        name: &str,
        dir: &Path,
        cancel: &CancellationToken,
    ) -> Result<PendingBranch, GitError> {
        let place = RepositoryPaths::find(&self.git.root)?;
        let own = self.runner_at(&place, cancel)?;
        let base = check_new_branch(&own, name).await?;
        // A check-out runs filters.
        self.check_programs(&own, &place, &[]).await?;
        if fs::symlink_metadata(dir).is_ok() {
            return Err(GitError::InvalidRequest(format!("{} exists", dir.display())));
        }
        if dir.starts_with(&place.root) || dir.starts_with(place.work_tree()?) {
            return Err(GitError::InvalidRequest(format!("{} lies in the project", dir.display())));
        }
        let root = dir.join(OsStr::from_bytes(&place.prefix));
        let (user, name, top) = (self.clone(), name.to_owned(), dir.to_owned());
        let mut begun = PendingBranch { user, name, base, top, root, done: true };
        // The record is written first, so that a crash at any later instant leaves it for the
        // sweep.
        let record = record_path(&begun.top);
        let text = format!("{}\n{}\n", begun.base, begun.name);
        fs::write(&record, text).map_err(GitError::io("writing", &record))?;
        let said = own.run(UserCommand::new(begun.worktree_add_arguments())).await?;
        // A hook may have failed after everything was created. A branch that another process
        // created meanwhile is kept.
        begun.done = !said.is_success() && !has_created_worktree(&own, &begun).await;
        if begun.done {
            if !said.is_success() {
                // Git creates the branch before the worktree.
                delete_if_unmoved(&own, &begun.name, &begun.base).await;
            }
            fs::remove_file(&record).map_err(GitError::io("removing", &record))?;
        }
        said.into_output("worktree add")?;
        fs::create_dir_all(&begun.root).map_err(GitError::io("making", &begun.root))?;
        Ok(begun)
    }

    /// Removes what a crash left in `dir`: worktrees of branches, their registration, and branches
    /// without a commit of their own. No process may be creating a branch there.
    ///
    /// # Errors
    /// [`GitError`]; everything that could be removed is removed.
    pub async fn remove_stale_branches(&self, dir: &Path) -> Result<(), GitError> {
        let place = RepositoryPaths::find(&self.git.root)?;
        let own = self.runner_at(&place, &CancellationToken::new())?;
        let entries = match fs::read_dir(place.common_dir.join("worktrees")) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(GitError::Io { what: "reading", path: place.common_dir, source }),
        };
        let mut result = Ok(());
        for admin in entries.flatten().map(|entry| entry.path()) {
            let pointer = read_bounded(&admin.join("gitdir"));
            let top = Path::new(OsStr::from_bytes(pointer.trim_ascii_end())).parent();
            let Some(top) = top.filter(|top| is_in_directory(top, dir)) else { continue };
            let text = String::from_utf8_lossy(&read_bounded(&record_path(top))).into_owned();
            let mut lines = text.lines();
            let made = (lines.next(), lines.next());
            let head = String::from_utf8_lossy(&read_bounded(&admin.join("HEAD"))).into_owned();
            let removed = remove_worktree(&own, top).await;
            // No other worktree uses a branch that is checked out there.
            if let ((Some(base), Some(name)), Ok(())) = (made, &removed)
                && head.trim_end().strip_prefix("ref: refs/heads/") == Some(name)
            {
                delete_if_unmoved(&own, name, base).await;
            }
            result = result.and(removed);
        }
        result.and(remove_stale_records(dir))
    }
}

impl PendingBranch {
    /// Returns the project's directory in the new worktree. Changes there don't affect the user's
    /// work tree.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the commit at which the branch began.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Commits files on the new branch, as [`UserGit::commit`] does.
    ///
    /// # Errors
    /// As [`UserGit::commit`].
    pub async fn commit(
        &self,
        commit: &CommitRequest,
        cancel: &CancellationToken,
    ) -> Result<CreatedCommit, GitError> {
        let git = Git { root: self.root.clone(), ..self.user.git.clone() };
        UserGit { git, ..self.user.clone() }.commit(commit, cancel).await
    }

    /// Removes the worktree. The branch is kept if something was committed on it.
    ///
    /// # Errors
    /// [`GitError`] if a part could not be removed; [`UserGit::remove_stale_branches`] removes the
    /// rest later.
    pub async fn finish(mut self) -> Result<(), GitError> {
        self.done = true;
        self.remove_worktree().await
    }

    async fn remove_worktree(&self) -> Result<(), GitError> {
        let place = RepositoryPaths::find(&self.user.git.root)?;
        let own = self.user.runner_at(&place, &CancellationToken::new())?;
        let removed = remove_worktree(&own, &self.top).await;
        delete_if_unmoved(&own, &self.name, &self.base).await;
        let record = record_path(&self.top);
        removed.and(fs::remove_file(&record).map_err(GitError::io("removing", &record)))
    }

    fn worktree_add_arguments(&self) -> Vec<&OsStr> {
        let fixed = ["worktree", "add", "--quiet", "--no-track", "-b", &self.name].map(OsStr::new);
        fixed.into_iter().chain([OsStr::new("--"), self.top.as_os_str(), OsStr::new(&self.base)]).collect()
    }
}

impl Drop for PendingBranch {
    fn drop(&mut self) {
        if !self.done {
            // The next sweep removes what is left after an error.
            Git::run_blocking(self.remove_worktree()).ok();
        }
    }
}

/// Checks that a new branch can have this name; returns the commit to begin at.
async fn check_new_branch(own: &UserGitRunner<'_>, name: &str) -> Result<String, GitError> {
    let bad = || CommitRefusal::BranchName(journeyman_sandbox::clean_output(name.as_bytes()));
    // Git accepts names such as `HEAD` or `refs/heads/x`, but they are misread later.
    if name.starts_with('-') || name.contains('\0') || name == "HEAD" || name.starts_with("refs/") {
        return Err(bad().into());
    }
    let said = own.run(UserCommand::new(["check-ref-format", "--branch", name])).await?;
    // Git expands `-` and `@{-1}` to the previous branch: a name that it changes is refused.
    if !said.is_success() || said.bytes.trim_ascii_end() != name.as_bytes() {
        return Err(bad().into());
    }
    if branch_tip(own, name).await.is_some() {
        return Err(CommitRefusal::BranchExists(name.to_owned()).into());
    }
    let said = own.run(UserCommand::new(["rev-parse", "--quiet", "--verify", "HEAD^{commit}"])).await?;
    if !said.is_success() {
        return Err(CommitRefusal::NoCommit.into());
    }
    Ok(String::from_utf8_lossy(&said.bytes).trim_end().to_owned())
}

/// Returns the commit of a branch.
async fn branch_tip(own: &UserGitRunner<'_>, name: &str) -> Option<String> {
    let reference = format!("refs/heads/{name}");
    let said = own.run(UserCommand::new(["show-ref", "--verify", "--hash", &reference])).await.ok()?;
    said.is_success().then(|| String::from_utf8_lossy(&said.bytes).trim_end().to_owned())
}

/// Returns true if a failed attempt got as far as creating the worktree.
async fn has_created_worktree(own: &UserGitRunner<'_>, begun: &PendingBranch) -> bool {
    let Ok(place) = RepositoryPaths::find(&begun.top) else { return false };
    let head = read_bounded(&place.git_dir.join("HEAD"));
    let expected = format!("ref: refs/heads/{}\n", begun.name);
    place.top.as_deref() == begun.top.canonicalize().ok().as_deref()
        && head == expected.as_bytes()
        && branch_tip(own, &begun.name).await.as_deref() == Some(&begun.base)
}

/// Removes a worktree that this module created, and its registration.
async fn remove_worktree(own: &UserGitRunner<'_>, top: &Path) -> Result<(), GitError> {
    let action = "worktree remove";
    let args =
        [OsStr::new("worktree"), "remove".as_ref(), "--force".as_ref(), "--".as_ref(), top.as_os_str()];
    let said = own.run(UserCommand::new(args)).await?;
    match fs::remove_dir_all(top) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(GitError::Io { what: "removing", path: top.to_owned(), source })
        }
        _ => said.into_output(action).map(|_| ()),
    }
}

/// Deletes a branch without commits of its own. Git compares and deletes in one step.
async fn delete_if_unmoved(own: &UserGitRunner<'_>, name: &str, base: &str) {
    let reference = format!("refs/heads/{name}");
    if branch_tip(own, name).await.as_deref() == Some(base) {
        // An error means that another process moved the branch meanwhile, so the branch is kept.
        own.run(UserCommand::new(["update-ref", "-d", &reference, base])).await.ok();
    }
}

fn record_path(top: &Path) -> PathBuf {
    let mut name = top.as_os_str().to_owned();
    name.push(BRANCH_RECORD_SUFFIX);
    name.into()
}

/// Removes the records in a directory whose worktrees are gone.
fn remove_stale_records(dir: &Path) -> Result<(), GitError> {
    let Ok(entries) = fs::read_dir(dir) else { return Ok(()) };
    let names = entries.flatten().map(|entry| entry.path());
    for file in names.filter(|file| {
        file.as_os_str().as_bytes().ends_with(BRANCH_RECORD_SUFFIX.as_bytes()) && file.is_file()
    }) {
        let top = file.as_os_str().as_bytes();
        let top = top.strip_suffix(BRANCH_RECORD_SUFFIX.as_bytes()).unwrap_or(top);
        if fs::symlink_metadata(OsStr::from_bytes(top)).is_err() {
            fs::remove_file(&file).map_err(GitError::io("removing", &file))?;
        }
    }
    Ok(())
}

fn read_bounded(file: &Path) -> Vec<u8> {
    read_path(file, MAX_GIT_FILE_BYTES).ok().flatten().unwrap_or_default()
}

/// Returns true if a path lies in a directory that may have another name through links.
fn is_in_directory(path: &Path, dir: &Path) -> bool {
    let real = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let is_plain = path.components().all(|part| part != std::path::Component::ParentDir);
    is_plain && [dir, &real].iter().any(|dir| path.starts_with(dir) && path != *dir)
}
