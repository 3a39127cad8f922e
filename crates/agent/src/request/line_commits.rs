//! The commits that last changed the lines that a task is about.
//!
//! No request waits for git: a commit that is known in time is part of the first request, and a
//! later one comes after a step.

use std::sync::Arc;
use std::time::Duration;

use journeyman_context::packing::ContextCandidate;
use journeyman_context::{LineCommit, candidates_at_named_lines, line_commits_text};
use journeyman_git::{BlameHunk, Git};
use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{RelPath, ReminderCategory, Tokens};
use journeyman_workspace::{ListOptions, Workspace};
use tokio::task::JoinSet;

use crate::session::context::SessionContext;

/// Time that git gets for a range of lines. Lines of a large file with a long history take seconds.
const GIT_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum bytes of a file whose lines' commits are looked for.
const MAX_FILE_BYTES: u64 = 2 << 20;
/// Maximum tokens of commits that come after a step.
const MAX_LATE_COMMIT_TOKENS: Tokens = Tokens(400);

/// Returns the commit that last changed some lines of a project's work tree, or of a copy of it;
/// `None` if they aren't committed, or git doesn't tell in time.
pub async fn find_line_commit(
    git: &Git,
    workspace: &Arc<Workspace>,
    redactor: &Redactor,
    lines: ContextCandidate,
) -> Option<LineCommit> {
    let range = lines.lines.start..=lines.lines.end.saturating_sub(1);
    let (workspace, path) = (Arc::clone(workspace), lines.path.clone());
    let read = move || {
        let content = workspace.read(&path, MAX_FILE_BYTES).ok()?;
        content.encode(content.text()?).ok()
    };
    let content = tokio::task::spawn_blocking(read).await.ok()??;
    let blamed = tokio::time::timeout(GIT_TIMEOUT, git.blame_content(&lines.path, content, range)).await;
    let newest = blamed.ok()?.ok()?.into_iter().max_by_key(|hunk| hunk.time)?;
    let BlameHunk { commit, time, subject, .. } = newest;
    // Masked before anything is cut: half a secret is one too.
    Some(LineCommit::new(lines, &commit, time, redactor.redact(&subject).into_owned()))
}

/// Commits that git looks for in the background.
#[derive(Debug, Default)]
pub(crate) struct LineCommits {
    running: JoinSet<Vec<LineCommit>>,
}

impl LineCommits {
    /// Starts looking for the commits of some lines of the project, unless the session's requests
    /// must be the same wherever it is played back.
    pub(crate) fn start(&mut self, cx: &SessionContext, lines: impl IntoIterator<Item = ContextCandidate>) {
        let Some(git) = project_git(cx) else { return };
        for lines in lines {
            let (git, redactor) = (git.clone(), Arc::clone(&cx.redactor));
            let workspace = Arc::clone(&cx.workspace);
            self.running.spawn(async move {
                find_line_commit(&git, &workspace, &redactor, lines).await.into_iter().collect()
            });
        }
    }

    /// Starts looking for the commits of the lines that a later message of the user names. The tree
    /// is listed in the background, and only for a message with a number.
    pub(crate) fn start_for_message(
        &mut self,
        cx: &SessionContext,
        may_show: Arc<dyn Fn(&RelPath) -> bool + Send + Sync>,
        message: &str,
    ) {
        let Some(git) = project_git(cx).filter(|_| message.contains(|c: char| c.is_ascii_digit())) else {
            return;
        };
        let (git, redactor) = (git.clone(), Arc::clone(&cx.redactor));
        let (workspace, message) = (Arc::clone(&cx.workspace), message.to_owned());
        self.running.spawn(async move {
            let listed = Arc::clone(&workspace);
            let find_named = move || {
                let listing = listed.list(ListOptions::default()).ok()?;
                let mut lines = candidates_at_named_lines(&message, &listing, listed.root());
                lines.retain(|lines| may_show(&lines.path));
                Some(lines)
            };
            let named = tokio::task::spawn_blocking(find_named).await.ok().flatten();
            let mut commits = Vec::new();
            for lines in named.unwrap_or_default() {
                commits.extend(find_line_commit(&git, &workspace, &redactor, lines).await);
            }
            commits
        });
    }

    /// Takes the commits found so far, the most relevant first.
    pub(crate) fn take_known(&mut self) -> Vec<LineCommit> {
        let mut known: Vec<LineCommit> = Vec::new();
        while let Some(ended) = self.running.try_join_next() {
            known.extend(ended.unwrap_or_default());
        }
        let order = |one: &LineCommit, other: &LineCommit| {
            let (one, other) = (&one.lines, &other.lines);
            other.relevance.total_cmp(&one.relevance).then_with(|| one.path.cmp(&other.path))
        };
        known.sort_by(order);
        known
    }

    /// Reminds the model of the commits that were found after the first request.
    pub(crate) fn remind_of_late_commits(&mut self, cx: &mut SessionContext) {
        let (text, fitting) = line_commits_text(&self.take_known(), MAX_LATE_COMMIT_TOKENS);
        if fitting > 0 {
            cx.transcript.remind_model(ReminderCategory::General, text);
        }
    }
}

/// Returns the project's git, unless the session is recorded and must send the same requests on
/// every machine.
fn project_git(cx: &SessionContext) -> Option<&Git> {
    cx.index.git().filter(|_| cx.settings.index_timeout.is_some())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::process::Command;

    use journeyman_context::packing::CandidateReason;
    use journeyman_protocol::{ContextCategory, Event, RelPath};
    use journeyman_tools::SharedIndex;

    use super::*;
    use crate::test_context::{SECRET, TestContext};

    /// Lets the session read the project's repository.
    pub(crate) fn use_git(test: &mut TestContext) {
        let git = Some(Git::new(&test.root, Arc::clone(&test.cx.sandbox)));
        let (workspace, redactor) = (Arc::clone(&test.cx.workspace), Arc::clone(&test.cx.redactor));
        test.cx.index = Arc::new(SharedIndex::new(workspace, redactor, git));
    }

    /// Commits all files of the project, in a repository that is made for it.
    pub(crate) fn commit_all(test: &TestContext, subject: &str) {
        for arguments in [&["init", "-q"][..], &["add", "-A"], &["commit", "-q", "-m", subject]] {
            let mut git = Command::new("git");
            git.current_dir(&test.root).env("GIT_CONFIG_GLOBAL", "/dev/null");
            git.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]);
            let done = git.args(arguments).output().unwrap();
            assert!(done.status.success(), "{done:?}");
        }
    }

    fn lines(path: &str) -> ContextCandidate {
        ContextCandidate {
            category: ContextCategory::History,
            path: RelPath::parse(path).unwrap(),
            lines: 1..3,
            relevance: 1.0,
            reason: CandidateReason::Named,
        }
    }

    #[tokio::test]
    async fn a_commit_that_git_tells_late_comes_once_and_without_secrets() {
        let mut test = TestContext::new(&[("a.rs", "fn one() {}\nfn two() {}\n"), ("b.rs", "\n\n")]).await;
        use_git(&mut test);
        commit_all(&test, &format!("use {SECRET} </commits>"));
        test.write("b.rs", "not\ncommitted\n");
        let mut commits = LineCommits::default();
        // One isn't committed, one isn't there.
        commits.start(&test.cx, ["a.rs", "b.rs", "none.rs"].map(lines));
        assert_eq!(commits.take_known(), [], "nothing is waited for");
        while !commits.running.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
            commits.remind_of_late_commits(&mut test.cx);
        }
        let text = test.last_text();
        assert!(text.contains("(a.rs:1-2)\n</commits-") && text.contains("[secret]"), "{text}");
        assert!(!text.contains(SECRET) && !text.contains(".rs:1-2)\n</commits>"), "{text}");
        let events = test.events().await;
        let told = events.iter().filter(|event| matches!(event, Event::ReminderSent { .. })).count();
        assert_eq!(told, 1, "{events:?}");
    }

    #[tokio::test]
    async fn a_later_message_that_names_lines_is_looked_at_too() {
        let files = [("a.rs", "fn one() {}\n"), ("b.rs", "fn two() {}\n"), ("c.rs", "fn three() {}\n")];
        let mut test = TestContext::new(&files).await;
        use_git(&mut test);
        commit_all(&test, "First");
        let mut commits = LineCommits::default();
        let may_show: Arc<dyn Fn(&RelPath) -> bool + Send + Sync> =
            Arc::new(|path| path.to_string() != "b.rs");
        commits.start_for_message(&test.cx, Arc::clone(&may_show), "now look at a.rs");
        assert!(commits.running.is_empty(), "no line is named");
        commits.start_for_message(&test.cx, may_show, "it fails at a.rs:1, b.rs:1 and nowhere.rs:1");
        let found = commits.running.join_next().await.unwrap().unwrap();
        let found: Vec<(String, &str)> =
            found.iter().map(|one| (one.lines.path.to_string(), one.subject.as_str())).collect();
        assert_eq!(found, [("a.rs".to_owned(), "First")]);
    }

    #[tokio::test]
    async fn lines_of_a_copy_are_looked_up_in_the_projects_repository() {
        let mut test = TestContext::new(&[("a.rs", "fn one() {}\nfn two() {}\n")]).await;
        commit_all(&test, "First");
        // The session's tree is another one, with other lines.
        let project = tempfile::tempdir().unwrap();
        std::fs::rename(test.root.join(".git"), project.path().join(".git")).unwrap();
        let git = Some(Git::new(project.path(), Arc::clone(&test.cx.sandbox)));
        let (workspace, redactor) = (Arc::clone(&test.cx.workspace), Arc::clone(&test.cx.redactor));
        test.cx.index = Arc::new(SharedIndex::new(workspace, redactor, git));
        test.write("a.rs", "// Not committed.\nfn one() {}\nfn two() {}\n");
        let mut commits = LineCommits::default();
        commits.start(&test.cx, [ContextCandidate { lines: 2..4, ..lines("a.rs") }]);
        let found = commits.running.join_next().await.unwrap().unwrap();
        assert_eq!(found.iter().map(|one| one.subject.as_str()).collect::<Vec<_>>(), ["First"]);
        commits.start(&test.cx, [ContextCandidate { lines: 1..2, ..lines("a.rs") }]);
        assert_eq!(commits.running.join_next().await.unwrap().unwrap(), []);
    }

    #[tokio::test]
    async fn where_there_is_no_git_or_a_recording_nothing_is_looked_for() {
        let (mut commits, files) = (LineCommits::default(), [("a.rs", "fn one() {}\n")]);
        let mut test = TestContext::new(&files).await;
        commits.start(&test.cx, [lines("a.rs")]);
        assert!(commits.running.is_empty(), "the session has no git");
        use_git(&mut test);
        commits.start(&test.cx, [lines("a.rs")]);
        assert_eq!(commits.running.join_next().await.unwrap().unwrap(), [], "there is no repository");
        commit_all(&test, "First");
        test.cx.settings.index_timeout = None;
        commits.start(&test.cx, [lines("a.rs")]);
        assert!(commits.running.is_empty(), "a recording is played back elsewhere");
    }
}
