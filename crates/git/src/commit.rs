//! Commits exactly the given files with the user's git.
//!
//! The commit is created from a temporary index: a copy of the user's index, reset to `HEAD`, with
//! the files as they are in the work tree. Hooks, signing and messages work as in any `git commit`,
//! except that hooks run in the sandbox; the user's staged changes are not included. The user's own
//! index is updated once, after the commit, and only for the files that the commit changed: any
//! earlier failure, including a hook's, leaves it unchanged.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use journeyman_protocol::RelPath;
use journeyman_sandbox::clean_output;
use tokio_util::sync::CancellationToken;

use crate::hooks::{CommitHooks, HookRunner};
use crate::limits::{LOCK_RETRY_INTERVAL, MAX_COMMIT_MESSAGE_BYTES, MAX_LOCK_ATTEMPTS};
use crate::raw_diff::parse_raw_diff;
use crate::reader::GitReader;
use crate::repository_paths::RepositoryPaths;
use crate::status::{EntryStatus, StatusChange};
use crate::temporary_index::TemporaryIndex;
use crate::tracked::split_nul_records;
use crate::user_git::{CommandOutcome, UserCommand, UserGitRunner};
use crate::{
    CommitRefusal, CommitRequest, Git, GitError, HookRunMode, UserGit, configured_programs, repository_state,
};

/// Prefix of a path that git reads literally from the top of the work tree.
const PATHSPEC_TOP: &[u8] = b":(top)";

/// A commit that was created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedCommit {
    /// The commit's hash.
    pub id: String,
    /// The commit's branch; `None` if `HEAD` is detached, so that no branch has the commit.
    pub branch: Option<String>,
    /// The paths that the commit changed within the project.
    pub paths: Vec<RelPath>,
    /// The paths that were not requested and that a hook added.
    pub added_by_hooks: Vec<RelPath>,
    /// The output of git and the hooks, without control characters.
    pub words: String,
    /// The reason for which the user's index does not include the commit yet; `git reset` updates
    /// it. The commit is valid.
    pub index_behind: Option<String>,
}

impl Git {
    /// Returns those of `paths` that have uncommitted changes now, are untracked, have an
    /// unresolved merge, or are not watched by git on the user's request. After further changes,
    /// committing these files would include the user's own changes. To be called before a task
    /// lands.
    ///
    /// # Errors
    /// [`GitError`].
    pub async fn find_dirty_paths(&self, paths: &[RelPath]) -> Result<Vec<RelPath>, GitError> {
        let reader = GitReader::open(self).await?;
        let (status, tracked) = tokio::join!(reader.status(), reader.tracked_files());
        let mut dirty: BTreeSet<RelPath> = status?.entries.into_iter().map(|entry| entry.path).collect();
        let is_there = |path: &RelPath| fs::symlink_metadata(self.root.join(path.as_path())).is_ok();
        let unwatched = tracked?.into_iter().filter(|file| file.unwatched && is_there(&file.path));
        dirty.extend(unwatched.map(|file| file.path));
        Ok(paths.iter().filter(|path| dirty.contains(path)).cloned().collect())
    }
}

impl UserGit {
    /// Commits these files, and nothing else, on the branch that is checked out. Staged changes
    /// stay staged. Cancellation ends git and its hooks; a commit that exists by then is kept.
    ///
    /// # Errors
    /// [`GitError::CommitRefused`] if the commit is impossible now, or a person has to review
    /// something first ([`GitError::needs_person`]); [`GitError::Failed`] with the output of git or
    /// a hook. The index and `HEAD` are unchanged then; files that a hook changed stay changed.
    pub async fn commit(
        &self,
        commit: &CommitRequest,
        cancel: &CancellationToken,
    ) -> Result<CreatedCommit, GitError> {
        self.commit_unchanged(commit, &Vec::new, cancel).await
    }

    /// Commits these files as [`UserGit::commit`] does, unless `find_changed` returns files once
    /// git has read all of them: those that aren't as they are to be committed any more.
    ///
    /// # Errors
    /// As [`UserGit::commit`], and [`CommitRefusal::ChangedSince`].
    pub async fn commit_unchanged(
        &self,
        commit: &CommitRequest,
        find_changed: &(dyn Fn() -> Vec<RelPath> + Sync),
        cancel: &CancellationToken,
    ) -> Result<CreatedCommit, GitError> {
        let reader = GitReader::open(&self.git).await?;
        let own = self.runner_at(&reader.place, cancel)?;
        let work = CommitOperation { place: &reader.place, own };
        work.check_without_git(commit)?;
        self.check_programs(&work.own, work.place, &commit.paths).await?;
        let unwatched = check_index(&reader, commit).await?;
        work.check_with_git(commit).await?;
        let before = work.resolve_head().await?;
        let found = CommitHooks::find(&work.own, &reader.place).await?;
        let index = TemporaryIndex::create(&reader.place)?;
        let place = index.directory.join("hooks");
        let hooks = HookRunner::new(&reader, &self.git, &self.confinement, found, cancel, place).await?;
        work.fill_index(&index.path, commit, &unwatched, before.as_deref()).await?;
        let changed = find_changed();
        if !changed.is_empty() {
            return Err(CommitRefusal::ChangedSince(changed).into());
        }
        let (message, words) = hooks.run_before_commit(&work.own, &index.path, commit).await?;
        let said = work.create_commit(&index.path, message, self.confinement.run).await?;
        let mut done = work.complete_commit(commit, &index.path, before, said).await?;
        let after = hooks.run_after_commit().await;
        let all = [words.as_str(), done.words.as_str(), after.trim()];
        done.words = all.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join("\n");
        Ok(done)
    }

    /// Checks in advance for anything that a person has to review before these files can be
    /// committed.
    ///
    /// # Errors
    /// [`GitError`]; if [`GitError::needs_person`] is true, a person may allow it with
    /// [`HookRunMode::Outside`].
    pub async fn check_commit(&self, paths: &[RelPath], cancel: &CancellationToken) -> Result<(), GitError> {
        let reader = GitReader::open(&self.git).await?;
        let own = self.runner_at(&reader.place, cancel)?;
        self.check_programs(&own, &reader.place, paths).await?;
        let found = CommitHooks::find(&own, &reader.place).await?;
        let place = reader.place.git_dir.clone();
        HookRunner::new(&reader, &self.git, &self.confinement, found, cancel, place).await.map(drop)
    }

    pub(crate) async fn check_programs(
        &self,
        own: &UserGitRunner<'_>,
        place: &RepositoryPaths,
        changed: &[RelPath],
    ) -> Result<(), GitError> {
        let confinement = &self.confinement;
        configured_programs::ProgramCheck { own, place, confinement, changed }.run().await
    }
}

/// A commit in progress.
struct CommitOperation<'a> {
    place: &'a RepositoryPaths,
    own: UserGitRunner<'a>,
}

/// The kind of a file in the work tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileState {
    There,
    Gone,
}

impl CommitOperation<'_> {
    /// Performs the checks that run no program.
    fn check_without_git(&self, commit: &CommitRequest) -> Result<(), CommitRefusal> {
        if let Some(operation) = repository_state::find_operation_in_progress(self.place) {
            return Err(CommitRefusal::InProgress(operation));
        }
        let lock = self.place.git_dir.join("index.lock");
        if fs::symlink_metadata(&lock).is_ok() {
            return Err(CommitRefusal::Locked(lock));
        }
        let message = clean_output(commit.message.as_bytes());
        if message.trim().is_empty() || message.len() > MAX_COMMIT_MESSAGE_BYTES {
            return Err(CommitRefusal::MessageLength(message.trim().len()));
        }
        if commit.paths.is_empty() {
            return Err(CommitRefusal::NothingToCommit);
        }
        let mixed: BTreeSet<&RelPath> = commit.mixed.iter().collect();
        let mixed = filter_requested_paths(commit, |path| mixed.contains(path));
        if !mixed.is_empty() {
            return Err(CommitRefusal::UserChanges(mixed));
        }
        let elsewhere =
            filter_requested_paths(commit, |path| is_in_nested_repository(&self.place.root, path));
        if !elsewhere.is_empty() {
            return Err(CommitRefusal::NestedRepository(elsewhere));
        }
        Ok(())
    }

    async fn check_with_git(&self, commit: &CommitRequest) -> Result<(), GitError> {
        // `core.worktree` may name another work tree, whose files git would commit.
        let expected = [
            ("--absolute-git-dir", self.place.git_dir.as_path(), "git finds another repository here"),
            ("--show-toplevel", self.place.work_tree()?, "git has its work tree elsewhere"),
        ];
        for (which, expected, reason) in expected {
            let found = self.own.run_for_output("rev-parse", ["rev-parse", which]).await?;
            let found = found.strip_suffix(b"\n").unwrap_or(&found);
            let found = Path::new(OsStr::from_bytes(found)).canonicalize();
            if !found.is_ok_and(|found| found == expected) {
                let (path, reason) = (self.place.root.clone(), reason.to_owned());
                return Err(GitError::Broken { path, reason });
            }
        }
        for who in ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"] {
            let said = self.own.run(UserCommand::new(["var", who])).await?;
            if !said.is_success() && !said.cancelled {
                let last = said.words.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
                return Err(CommitRefusal::NoIdentity(last.to_owned()).into());
            }
        }
        // A deleted file is no longer ignored, and a tracked file never is. Behind this prefix git
        // reads no other.
        let there = commit.paths.iter().filter(|path| self.file_state(path) == FileState::There);
        let asked = there
            .flat_map(|path| [PATHSPEC_TOP, self.path_from_top(path).as_slice(), b"\0"].concat())
            .collect();
        let said =
            self.own.run(UserCommand::new(["check-ignore", "-z", "--stdin"]).with_stdin(asked)).await?;
        if said.code == Some(0) {
            let named: BTreeSet<&[u8]> =
                split_nul_records(&said.bytes).filter_map(|name| name.strip_prefix(PATHSPEC_TOP)).collect();
            let ignored =
                filter_requested_paths(commit, |path| named.contains(self.path_from_top(path).as_slice()));
            return Err(CommitRefusal::Ignored(ignored).into());
        }
        if said.code == Some(1) { Ok(()) } else { Err(said.into_error("check-ignore")) }
    }

    /// Adds the files to the index as they are in the work tree; the other entries are those of
    /// `HEAD`.
    async fn fill_index(
        &self,
        index: &Path,
        commit: &CommitRequest,
        unwatched: &BTreeSet<RelPath>,
        head: Option<&str>,
    ) -> Result<(), GitError> {
        let action = "read-tree";
        // A copy keeps git's cached file times and the sparse checkout.
        let call = match head {
            Some(head) => UserCommand::new(["read-tree", "--reset", head]),
            None => UserCommand::new(["read-tree", "--empty"]),
        };
        self.own.run(call.with_index(index)).await?.into_output(action)?;
        let action = "update-index";
        // Git would keep the old content of a file that it doesn't watch. Removed first, the file
        // is added as new.
        let out = |path: &RelPath| self.file_state(path) == FileState::Gone || unwatched.contains(path);
        let out = self.nul_terminated_paths(commit, out);
        let there = self.nul_terminated_paths(commit, |path| self.file_state(path) == FileState::There);
        let passes: [(Vec<u8>, &[&str]); 2] = [(out, &["--force-remove"]), (there, &["--add", "--replace"])];
        for (paths, how) in passes.into_iter().filter(|(paths, _)| !paths.is_empty()) {
            let args = std::iter::once(&action).chain(how).chain(&["-z", "--stdin"]);
            let call = UserCommand::new(args).with_stdin(paths).with_index(index);
            self.own.run(call).await?.into_output(action)?;
        }
        let listed = match head {
            Some(head) => {
                let call =
                    UserCommand::new(["diff-index", "--cached", "--quiet", "--ignore-submodules=none", head]);
                let said = self.own.run(call.with_index(index)).await?;
                match said.code {
                    Some(0) => false,
                    Some(1) => true,
                    _ => return Err(said.into_error("diff-index")),
                }
            }
            None => !self
                .own
                .run(UserCommand::new(["ls-files", "-z"]).with_index(index))
                .await?
                .into_output("ls-files")?
                .is_empty(),
        };
        if listed { Ok(()) } else { Err(CommitRefusal::NothingToCommit.into()) }
    }

    async fn create_commit(
        &self,
        index: &Path,
        message: Vec<u8>,
        hooks: HookRunMode,
    ) -> Result<CommandOutcome, GitError> {
        let call = UserCommand::new(["commit", "--quiet", "--file=-"]).with_stdin(message).with_index(index);
        self.own.run(if hooks == HookRunMode::Outside { call.with_hooks() } else { call }).await
    }

    /// Checks the result of git's commit, and updates the user's index.
    async fn complete_commit(
        &self,
        commit: &CommitRequest,
        index: &Path,
        before: Option<String>,
        said: CommandOutcome,
    ) -> Result<CreatedCommit, GitError> {
        // The result is checked even after cancellation.
        let without_cancellation =
            CommitOperation { place: self.place, own: self.own.without_cancellation() };
        let made = without_cancellation.find_next_commit(before.as_deref()).await?;
        let Some(id) = made else {
            return Err(if said.is_success() {
                GitError::Failed { action: "commit", words: "it made no commit".to_owned() }
            } else {
                said.into_error("commit")
            });
        };
        // The commit is ours if git succeeded, or was ended after creating it and no other process
        // committed.
        let is_ours = said.is_success()
            || (said.code.is_none() && without_cancellation.matches_index(&id, index).await?);
        if !is_ours {
            return Err(said.into_error("commit"));
        }
        let changed = without_cancellation.list_commit_changes(&id).await?;
        let asked: BTreeSet<Vec<u8>> = commit.paths.iter().map(|path| self.path_from_top(path)).collect();
        let index_behind =
            without_cancellation.update_user_index(&changed, &asked, before.as_deref()).await.err();
        let inside = |full: &Vec<u8>| {
            full.strip_prefix(self.place.prefix.as_slice()).and_then(|path| RelPath::parse(path).ok())
        };
        let branch = without_cancellation
            .own
            .run(UserCommand::new(["symbolic-ref", "--quiet", "--short", "HEAD"]))
            .await?;
        let branch = String::from_utf8_lossy(&branch.bytes).trim_end().to_owned();
        Ok(CreatedCommit {
            id,
            branch: (!branch.is_empty()).then_some(branch),
            paths: changed.keys().filter_map(inside).collect(),
            added_by_hooks: changed.keys().filter(|full| !asked.contains(*full)).filter_map(inside).collect(),
            words: said.words.trim().to_owned(),
            index_behind: index_behind.map(|error| error.to_string()),
        })
    }

    /// Returns the commit that is checked out; `None` before the first commit.
    async fn resolve_head(&self) -> Result<Option<String>, GitError> {
        let said =
            self.own.run(UserCommand::new(["rev-parse", "--quiet", "--verify", "HEAD^{commit}"])).await?;
        match said.code {
            Some(0) => Ok(Some(String::from_utf8_lossy(&said.bytes).trim_end().to_owned())),
            Some(1) => Ok(None),
            _ => Err(said.into_error("rev-parse")),
        }
    }

    /// Returns the commit that followed `before`: the user or a hook may have created more since.
    async fn find_next_commit(&self, before: Option<&str>) -> Result<Option<String>, GitError> {
        let action = "rev-list";
        let Some(head) = self.resolve_head().await? else { return Ok(None) };
        let Some(before) = before else { return Ok(Some(head)) };
        let range = format!("{before}..{head}");
        let args = [action, "--reverse", "--first-parent", "--ancestry-path", &range];
        let listed = self.own.run_for_output(action, args).await?;
        Ok(String::from_utf8_lossy(&listed).lines().next().map(str::to_owned))
    }

    /// Returns true if a commit has the same tree as an index.
    async fn matches_index(&self, id: &str, index: &Path) -> Result<bool, GitError> {
        let tree = self
            .own
            .run(UserCommand::new(["write-tree"]).with_index(index))
            .await?
            .into_output("write-tree")?;
        let its = self
            .own
            .run_for_output("rev-parse", ["rev-parse", "--verify", &format!("{id}^{{tree}}")])
            .await?;
        Ok(tree == its)
    }

    /// Returns the changes of a commit: each path with the mode and object for the index.
    async fn list_commit_changes(&self, id: &str) -> Result<BTreeMap<Vec<u8>, String>, GitError> {
        let action = "diff-tree";
        let fixed = [action, "--root", "--raw", "--no-commit-id", "--no-renames", "--no-abbrev", "-r", "-z"];
        let bytes = self.own.run_for_output(action, fixed.into_iter().chain([id])).await?;
        parse_raw_diff(&bytes).ok_or(GitError::Malformed { action, what: "an entry" })
    }

    /// Updates the user's index to the commit: the requested files, and files that a hook added
    /// unless the user has other changes of them staged.
    async fn update_user_index(
        &self,
        changed: &BTreeMap<Vec<u8>, String>,
        asked: &BTreeSet<Vec<u8>>,
        before: Option<&str>,
    ) -> Result<(), GitError> {
        let staged: BTreeSet<Vec<u8>> = match before {
            Some(before) => {
                let args = ["diff-index", "--cached", "--raw", "--no-renames", "--no-abbrev", "-z", before];
                let staged = self.own.run_for_output("diff-index", args).await?;
                let staged = parse_raw_diff(&staged)
                    .ok_or(GitError::Malformed { action: "diff-index", what: "an entry" })?;
                staged.into_keys().collect()
            }
            None => {
                let staged = self.own.run_for_output("ls-files", ["ls-files", "-z"]).await?;
                split_nul_records(&staged).map(<[u8]>::to_vec).collect()
            }
        };
        let mut lines = Vec::new();
        for (path, entry) in changed {
            if asked.contains(path) || !staged.contains(path) {
                lines.extend_from_slice(entry.as_bytes());
                lines.push(b'\t');
                lines.extend_from_slice(path);
                lines.push(0);
            }
        }
        let mut tries = MAX_LOCK_ATTEMPTS;
        loop {
            let call = UserCommand::new(["update-index", "-z", "--index-info"]).with_stdin(lines.clone());
            let said = self.own.run(call).await?;
            let locked = fs::symlink_metadata(self.place.git_dir.join("index.lock")).is_ok();
            if said.is_success() {
                break;
            }
            tries = tries.saturating_sub(1);
            if !locked || tries == 0 {
                return Err(said.into_error("update-index"));
            }
            tokio::time::sleep(LOCK_RETRY_INTERVAL).await;
        }
        // Refreshes the cached file times; differences of other files are no error.
        self.own.run(UserCommand::new(["update-index", "-q", "--refresh"])).await.map(|_| ())
    }

    fn path_from_top(&self, path: &RelPath) -> Vec<u8> {
        [&self.place.prefix, path.as_bytes()].concat()
    }

    fn file_state(&self, path: &RelPath) -> FileState {
        file_state_of(&self.place.root, path)
    }

    /// Returns some of the requested files, each ended by NUL.
    fn nul_terminated_paths(&self, commit: &CommitRequest, is: impl Fn(&RelPath) -> bool) -> Vec<u8> {
        let mut all = Vec::new();
        for path in commit.paths.iter().filter(|path| is(path)) {
            all.extend_from_slice(&self.path_from_top(path));
            all.push(0);
        }
        all
    }
}

/// Checks that no requested file is staged with other content than in the work tree, which would be
/// lost, and that none is a nested repository that is no submodule. Returns the files that git
/// doesn't watch on the user's request.
async fn check_index(reader: &GitReader<'_>, commit: &CommitRequest) -> Result<BTreeSet<RelPath>, GitError> {
    let (status, tracked) = tokio::join!(reader.status(), reader.tracked_files());
    let (status, tracked) = (status?, tracked?);
    let known: BTreeSet<&RelPath> = tracked.iter().map(|file| &file.path).collect();
    let is_dir = |path: &RelPath| {
        let at = reader.place.root.join(path.as_path());
        fs::symlink_metadata(at.join(".git")).is_ok() && !known.contains(path)
    };
    let nested = filter_requested_paths(commit, is_dir);
    if !nested.is_empty() {
        return Err(CommitRefusal::NestedRepository(nested).into());
    }
    let twofold: BTreeSet<RelPath> = status
        .entries
        .into_iter()
        .filter(|found| match found.entry {
            EntryStatus::Tracked { staged, unstaged, .. } => {
                staged != StatusChange::None && unstaged != StatusChange::None
            }
            EntryStatus::Unmerged => true,
            EntryStatus::Untracked { .. } | EntryStatus::Ignored => false,
        })
        .map(|found| found.path)
        .collect();
    let staged = filter_requested_paths(commit, |path| twofold.contains(path));
    if !staged.is_empty() {
        return Err(CommitRefusal::Staged(staged).into());
    }
    Ok(tracked.into_iter().filter(|file| file.unwatched).map(|file| file.path).collect())
}

fn filter_requested_paths(commit: &CommitRequest, is: impl Fn(&RelPath) -> bool) -> Vec<RelPath> {
    commit.paths.iter().filter(|path| is(path)).cloned().collect()
}

/// Returns the directories between the top and a path.
fn parent_directories(path: &RelPath) -> Vec<RelPath> {
    let mut all: Vec<RelPath> = std::iter::successors(path.parent(), RelPath::parent).collect();
    all.reverse();
    all
}

/// Returns true if a path lies in a nested repository. The nested repository's own directory does
/// not: it is committed as a submodule.
fn is_in_nested_repository(root: &Path, path: &RelPath) -> bool {
    path.components().any(|name| name.eq_ignore_ascii_case(b".git"))
        || parent_directories(path)
            .iter()
            .any(|directory| fs::symlink_metadata(root.join(directory.as_path()).join(".git")).is_ok())
}

/// Returns the kind of a file in the work tree. Directories, and paths beyond a link, count as
/// deleted; only a repository's own directory is committed as a submodule.
fn file_state_of(root: &Path, path: &RelPath) -> FileState {
    let is_link = |directory: &RelPath| {
        fs::symlink_metadata(root.join(directory.as_path())).map_or(true, |found| !found.is_dir())
    };
    let at = root.join(path.as_path());
    let is_there = fs::symlink_metadata(&at)
        .is_ok_and(|found| !found.is_dir() || fs::symlink_metadata(at.join(".git")).is_ok());
    if is_there && !parent_directories(path).iter().any(is_link) { FileState::There } else { FileState::Gone }
}
