//! A change as a commit: by the user's git, with their signing and with their hooks in the sandbox,
//! and with a message that says why.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_git::{
    CommitRefusal, CommitRequest, CreatedCommit, Git, GitError, HookConfinement, HookRunMode, PendingBranch,
    UserGit,
};
use journeyman_policy::GUARD_RULES;
use journeyman_protocol::{
    CheckOutcome, CommitReport, ContentHash, Event, Evidence, FileChange, RelPath, SessionId,
};
use journeyman_store::Blobs;
use journeyman_workspace::{
    ChangeId, CopyChanges, ForbiddenChanges, GuardedState, LandOptions, Options, Workspace, WorkspaceError,
};
use tokio_util::sync::CancellationToken;

use super::commit_options::CommitOptions;
use super::land_request::UnverifiedPolicy;
use crate::AgentError;
use crate::blocking::run_blocking;

/// Maximum characters of a subject, which fit a line of `git log --oneline`.
const MAX_SUBJECT_CHARS: usize = 72;
/// Columns at which a body is wrapped, as git's own documentation advises.
const BODY_COLUMNS: usize = 72;
/// Maximum bytes of the model's last text in a message.
const MAX_BODY_BYTES: usize = 4 * 1024;
/// Maximum number of checks that a message names.
const MAX_NAMED_CHECKS: usize = 10;
/// The subject of a change whose task has no text.
const DEFAULT_SUBJECT: &str = "Change files";

/// Writes a commit's message: the task, the model's own summary, and the evidence.
#[must_use]
pub fn commit_message(task: &str, closing: &str, evidence: &[Evidence]) -> String {
    let mut message = subject_of(task);
    let body = wrap_body(closing.get(..closing.floor_char_boundary(MAX_BODY_BYTES)).unwrap_or_default());
    if !body.is_empty() {
        message.push_str("\n\n");
        message.push_str(&body);
    }
    let passed = evidence.iter().filter(|one| one.outcome == CheckOutcome::Passed);
    let checks: BTreeSet<&str> = passed.map(|one| one.command.lines().next().unwrap_or_default()).collect();
    if !checks.is_empty() {
        let checks: Vec<&str> = checks.into_iter().take(MAX_NAMED_CHECKS).collect();
        message.push_str("\n\nPassed: ");
        message.push_str(&checks.join(", "));
    }
    message.push('\n');
    message
}

/// Returns the first line of the task, cut to the length of a subject.
fn subject_of(task: &str) -> String {
    let line = task.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let line: String = line.trim_start_matches('#').trim().chars().filter(|c| !c.is_control()).collect();
    let mut subject = String::new();
    for word in line.split_whitespace() {
        if subject.chars().count() + 1 + word.chars().count() > MAX_SUBJECT_CHARS && !subject.is_empty() {
            subject.push('…');
            break;
        }
        if !subject.is_empty() {
            subject.push(' ');
        }
        subject.extend(word.chars().take(MAX_SUBJECT_CHARS - 1));
    }
    let mut letters = subject.trim_end_matches('.').chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => DEFAULT_SUBJECT.to_owned(),
    }
}

/// Wraps a text for a body: keeps paragraphs and lists, and breaks long lines between words. A line
/// that git would take for a comment is indented.
fn wrap_body(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.trim().lines() {
        let clean: String = line.trim_end().chars().filter(|c| !c.is_control()).collect();
        let mut current = String::new();
        for word in clean.split(' ') {
            if !current.is_empty() && current.chars().count() + 1 + word.chars().count() > BODY_COLUMNS {
                lines.push(std::mem::take(&mut current));
            }
            if !current.is_empty() {
                current.push(' ');
            }
            current.push_str(word);
        }
        lines.push(current);
    }
    for line in lines.iter_mut().filter(|line| line.starts_with('#')) {
        line.insert(0, ' ');
    }
    lines.join("\n")
}

/// A commit to be made.
pub(super) struct CommitPlan<'a> {
    pub(super) message: String,
    pub(super) hooks: HookRunMode,
    /// The user's tree, and the session whose work it gets.
    pub(super) tree: &'a Arc<Workspace>,
    pub(super) session: &'a SessionId,
    /// The tree that the checks ran on, if the session worked in the user's.
    pub(super) verified: Option<ContentHash>,
}

/// The means to make commits.
#[derive(Debug, Clone)]
pub struct Committer {
    /// The user's git, with the environment and the paths that the user's hooks see.
    pub git: UserGit,
    /// The store of file contents.
    pub blobs: Arc<Blobs>,
    /// A directory of our own, outside of the project, for the worktree of a branch while it is
    /// made.
    pub scratch: PathBuf,
}

/// The result of making a branch.
pub(super) enum BranchOutcome {
    /// The branch has a commit with these changes.
    Done { commit: CommitReport, changes: Vec<FileChange> },
    /// The change depends on uncommitted changes in these files.
    Conflicts(Vec<RelPath>),
    /// Git or a hook refused the commit; the branch is gone.
    Refused(GitError),
}

impl Committer {
    /// Commits these files of the user's tree and nothing else, unless some of them are `mixed` or
    /// aren't as the session left them. Changes that hooks make in the tree are journaled as those
    /// of checks are, because a person may be working. Returns the notices about them.
    pub(super) async fn commit_files(
        &self,
        delivered: CommitPlan<'_>,
        paths: Vec<RelPath>,
        mixed: Vec<RelPath>,
        stop: &CancellationToken,
    ) -> Result<(CommitReport, Vec<Event>), AgentError> {
        let CommitPlan { message, hooks, tree, session, verified } = delivered;
        let (watched, committer, asked) = (Arc::clone(tree), session.clone(), paths.clone());
        let begun = run_blocking("looking at the tree", move || {
            let files = watched.history().delivered_files(&committer, &asked, verified.as_ref())?;
            let before = watched.command_observer().begin()?;
            let guard = GuardedState::capture(&watched, GUARD_RULES)?;
            Ok::<_, WorkspaceError>((files, before, guard))
        });
        let (files, before, guard) = begun.await??;
        let commit = CommitRequest { paths, message, mixed };
        let git = self.user_git_with_hooks(hooks, guard.protected_paths());
        let made = git.commit_unchanged(&commit, &|| files.find_changed(tree), stop).await;
        let (watched, session) = (Arc::clone(tree), session.clone());
        let ended = run_blocking("looking at the tree", move || {
            // Hooks may have run outside of the sandbox, where nothing kept them from guarded
            // files.
            guard.revert_and_journal(&watched, false, || {
                watched.command_observer().end_checks(before, &session)
            })
        });
        let (changes, ForbiddenChanges { violations, problem }) = ended.await?;
        changes?;
        let report = commit_report(made?, &commit.message);
        let mut told: Vec<Event> = problem.into_iter().map(|message| Event::Warning { message }).collect();
        if !violations.is_empty() {
            told.push(Event::GuardViolated { call: None, check: None, violations });
        }
        Ok((report, told))
    }

    /// Returns the user's git, whose hooks run as given and can't change the protected paths.
    fn user_git_with_hooks(&self, run: HookRunMode, protected: &[RelPath]) -> UserGit {
        let confinement = self.git.confinement().clone();
        self.git.clone().with_confinement(HookConfinement {
            run,
            protected: protected.to_vec(),
            ..confinement
        })
    }

    /// Checks in advance if a commit of these files needs a person's review.
    ///
    /// # Errors
    /// As [`UserGit::check_commit`].
    pub async fn check_commit(
        &self,
        request: &CommitOptions,
        paths: &[RelPath],
        stop: &CancellationToken,
    ) -> Result<(), GitError> {
        self.user_git_with_hooks(request.hooks, &[]).check_commit(paths, stop).await
    }

    /// Commits a copy's changes on a new branch, in a worktree of its own. The change was verified
    /// on top of the user's present files. If it doesn't apply to the last commit line by line, the
    /// user's consent is needed.
    pub(super) async fn commit_on_branch(
        &self,
        name: &str,
        changes: &CopyChanges,
        (message, hooks): (String, HookRunMode),
        unverified: UnverifiedPolicy,
        stop: &CancellationToken,
    ) -> Result<BranchOutcome, AgentError> {
        let place = self.scratch.join(changes.session.as_str());
        // This process holds the session, so files of an earlier attempt that was cut off can be
        // removed.
        self.git.remove_stale_branches(&place).await?;
        let clean = || {
            // Remaining files are in our scratch directory. The session's next attempt removes
            // them.
            std::fs::remove_dir_all(&place).ok();
        };
        std::fs::create_dir_all(&place).map_err(|source| GitError::Io {
            what: "making",
            path: place.clone(),
            source,
        })?;
        let begun = self.user_git_with_hooks(hooks, &[]).begin_branch(name, &place.join("tree"), stop).await;
        let branching = begun.inspect_err(|_| clean())?;
        let branched = self.fill_worktree(&branching, &place, changes, message, unverified, stop).await;
        let finished = branching.finish().await;
        if finished.is_ok() {
            // Else what is written down in there tells the next try what to take away.
            clean();
        }
        let branched = branched?;
        if matches!(branched, BranchOutcome::Done { .. }) {
            finished?;
        }
        Ok(branched)
    }

    async fn fill_worktree(
        &self,
        branching: &PendingBranch,
        place: &Path,
        changes: &CopyChanges,
        message: String,
        unverified: UnverifiedPolicy,
        stop: &CancellationToken,
    ) -> Result<BranchOutcome, AgentError> {
        let (root, changes) = (branching.root().to_owned(), changes.clone());
        let options = Options::new(place.join("state"), Arc::clone(&self.blobs));
        let landing = run_blocking("writing the branch", move || {
            let tree = Workspace::open(&root, options)?;
            let looked = tree.land(&changes, &LandOptions { dry_run: true, ..LandOptions::default() })?;
            let merged = !looked.merged.is_empty() && unverified == UnverifiedPolicy::Keep;
            if merged || !looked.conflicts.is_empty() {
                return Ok(looked);
            }
            let as_checked = unverified == UnverifiedPolicy::Keep;
            tree.land(&changes, &LandOptions { as_checked, ..LandOptions::default() })
        });
        let landing = landing.await??;
        if landing.applied.id == ChangeId::NONE {
            let conflicts = landing.conflicts.into_iter().map(|(path, _)| path).chain(landing.merged);
            let conflicts: Vec<RelPath> = conflicts.collect();
            return Ok(match conflicts.is_empty() {
                true => BranchOutcome::Refused(GitError::CommitRefused(CommitRefusal::NothingToCommit)),
                false => BranchOutcome::Conflicts(conflicts),
            });
        }
        let changes = landing.applied.changes;
        let paths = changes.iter().map(|change| change.path.clone()).collect();
        let commit = CommitRequest { paths, message, mixed: Vec::new() };
        Ok(match branching.commit(&commit, stop).await {
            Ok(done) => BranchOutcome::Done { commit: commit_report(done, &commit.message), changes },
            Err(error) => BranchOutcome::Refused(error),
        })
    }
}

fn commit_report(done: CreatedCommit, message: &str) -> CommitReport {
    let subject = message.lines().next().unwrap_or_default().to_owned();
    CommitReport { id: done.id, branch: done.branch, subject }
}

/// Returns the files of the project that differ from the last commit, including new files. They are
/// the user's own work, which no commit of a session may include.
///
/// # Errors
/// [`GitError`].
pub async fn list_uncommitted_files(git: &Git) -> Result<BTreeSet<RelPath>, GitError> {
    Ok(git.status().await?.entries.into_iter().map(|entry| entry.path).collect())
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::CheckKind;

    use super::*;

    fn evidence(command: &str, outcome: CheckOutcome) -> Evidence {
        Evidence::new(CheckKind::Test, command, outcome)
    }

    #[test]
    fn a_message_says_what_for_how_and_with_what_proof() {
        let failed = CheckOutcome::NotRun { reason: "no cargo".to_owned() };
        let checks = [evidence("make test", CheckOutcome::Passed), evidence("cargo test", failed)];
        let closing = "I made the greeting polite and kept the old spelling in the documentation where it is quoted.\n\n\
                       # Notes\n- one";
        assert_eq!(
            commit_message("make the greeting polite.\nplease", closing, &checks),
            "Make the greeting polite\n\nI made the greeting polite and kept the old spelling in the\n\
             documentation where it is quoted.\n\n # Notes\n- one\n\nPassed: make test\n"
        );
    }

    #[test]
    fn subjects_are_one_line_of_bounded_length() {
        let long = "word ".repeat(40);
        for (task, expected) in [
            ("", DEFAULT_SUBJECT.to_owned()),
            ("\n\n  ## fix it", "Fix it".to_owned()),
            ("tab\there\x1b[31m", "Tabhere[31m".to_owned()),
            ("écrire", "Écrire".to_owned()),
            (&long, format!("Word{}…", " word".repeat(13))),
            (&"x".repeat(300), format!("X{}", "x".repeat(70))),
        ] {
            let subject = commit_message(task, "", &[]).lines().next().unwrap().to_owned();
            assert_eq!(subject, expected);
            assert!(subject.chars().count() <= MAX_SUBJECT_CHARS, "{subject}");
        }
    }
}
