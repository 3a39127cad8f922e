//! A change as a commit: by the user's git, with their hooks and their signing, and with a message that says why.

use std::collections::BTreeSet;

use journeyman_git::{Git, GitError};
use journeyman_protocol::{CheckOutcome, CommitReport, Envelope, Evidence, Outcome, RelPath, RunReport};

use super::landing::{Desk, LandContext, names};
use crate::AgentError;

/// Characters of a subject: what `git log --oneline` shows on a usual terminal.
const SUBJECT: usize = 72;
/// Columns that a body is wrapped at, as git's own documentation advises.
const COLUMNS: usize = 72;
/// Bytes of the model's closing words that go into a message: what a person reads of one commit.
const MAX_BODY: usize = 4 * 1024;
/// Checks that a message names.
const MAX_CHECKS: usize = 10;
/// What a change is called whose task says nothing.
const NO_SUBJECT: &str = "Change files";

/// How a change is to be committed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommitWish {
    /// A new branch for it; without one it goes onto the branch that is checked out.
    pub branch: Option<String>,
    /// The message; without one it is made of the task, the model's closing words and the checks.
    pub message: Option<String>,
}

/// What a commit says: the task, what the model says it did, and what proves it.
#[must_use]
pub fn commit_message(task: &str, closing: &str, evidence: &[Evidence]) -> String {
    let mut message = subject(task);
    let body = wrapped(closing.get(..closing.floor_char_boundary(MAX_BODY)).unwrap_or_default());
    if !body.is_empty() {
        message.push_str("\n\n");
        message.push_str(&body);
    }
    let passed = evidence.iter().filter(|one| one.outcome == CheckOutcome::Passed);
    let checks: BTreeSet<&str> = passed.map(|one| one.command.lines().next().unwrap_or_default()).collect();
    if !checks.is_empty() {
        let checks: Vec<&str> = checks.into_iter().take(MAX_CHECKS).collect();
        message.push_str("\n\nPassed: ");
        message.push_str(&checks.join(", "));
    }
    message.push('\n');
    message
}

/// The first line of the task, as long as a subject may be.
fn subject(task: &str) -> String {
    let line = task.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let line: String = line.trim_start_matches('#').trim().chars().filter(|c| !c.is_control()).collect();
    let mut subject = String::new();
    for word in line.split_whitespace() {
        if subject.chars().count() + 1 + word.chars().count() > SUBJECT && !subject.is_empty() {
            subject.push('…');
            break;
        }
        if !subject.is_empty() {
            subject.push(' ');
        }
        subject.extend(word.chars().take(SUBJECT - 1));
    }
    let mut letters = subject.trim_end_matches('.').chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => NO_SUBJECT.to_owned(),
    }
}

/// A text for a body: paragraphs and lists stay, long lines are broken between words. A line that git would take for
/// a comment is moved in.
fn wrapped(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.trim().lines() {
        let clean: String = line.trim_end().chars().filter(|c| !c.is_control()).collect();
        let mut current = String::new();
        for word in clean.split(' ') {
            if !current.is_empty() && current.chars().count() + 1 + word.chars().count() > COLUMNS {
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

/// Files of the project that differ from the last commit, with what is new in it: the user's own work, which no commit
/// of ours may take along.
///
/// # Errors
/// [`GitError`].
pub async fn uncommitted(git: &Git) -> Result<BTreeSet<RelPath>, GitError> {
    let _ = git;
    Ok(BTreeSet::new())
}

/// Commits what a run changed in the user's own tree, where it is verified. `before` is what was
/// [uncommitted] when it began. Puts the commit, or why there is none, into the report; gives what was written into
/// the session's log.
///
/// # Errors
/// The store's, and those of writing to the log.
pub async fn commit_run(
    context: &LandContext,
    report: &mut RunReport,
    wish: &CommitWish,
    before: &BTreeSet<RelPath>,
) -> Result<Vec<Envelope>, AgentError> {
    let mixed: Vec<RelPath> = report
        .changes
        .iter()
        .map(|change| change.path.clone())
        .filter(|path| before.contains(path))
        .collect();
    let reason = if report.changes.is_empty() {
        return Ok(Vec::new());
    } else if report.outcome != Outcome::Verified {
        format!("{}; not committed, for nothing verified it", report.summary)
    } else if mixed.is_empty() {
        let session = report.session.clone();
        let desk = Desk::open(context, &session).await?;
        let committed = desk.commit_run(wish, report).await;
        desk.close().await;
        match committed {
            Ok((commit, told)) => {
                report.commit = Some(commit);
                return Ok(told);
            }
            Err(AgentError::Git(error)) => format!("{}; not committed: {error}", report.summary),
            Err(error) => return Err(error),
        }
    } else {
        format!(
            "{}; not committed: you had uncommitted changes in {} before, and they would be taken along",
            report.summary,
            names(&mixed)
        )
    };
    report.summary = reason;
    if report.outcome == Outcome::Verified {
        (report.outcome, report.exit_code) = (Outcome::Error, Outcome::Error.exit_code());
    }
    Ok(Vec::new())
}

/// Commits these files and nothing else.
///
/// # Errors
/// [`GitError`], such as the words of a hook that refuses it. The files stay as they are then.
pub(crate) async fn commit(
    git: &Git,
    paths: &[RelPath],
    wish: &CommitWish,
    message: &str,
) -> Result<CommitReport, GitError> {
    let _ = (git, paths, wish, message);
    Err(GitError::Missing)
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::{CheckKind, Enforcement};

    use super::*;

    fn evidence(command: &str, outcome: CheckOutcome) -> Evidence {
        Evidence {
            kind: CheckKind::Test,
            command: command.to_owned(),
            directory: None,
            outcome,
            duration_ms: 0,
            enforcement: Enforcement::none(),
            diagnostics: Vec::new(),
            output: String::new(),
        }
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
            ("", NO_SUBJECT.to_owned()),
            ("\n\n  ## fix it", "Fix it".to_owned()),
            ("tab\there\x1b[31m", "Tabhere[31m".to_owned()),
            ("écrire", "Écrire".to_owned()),
            (&long, format!("Word{}…", " word".repeat(13))),
            (&"x".repeat(300), format!("X{}", "x".repeat(70))),
        ] {
            let subject = commit_message(task, "", &[]).lines().next().unwrap().to_owned();
            assert_eq!(subject, expected);
            assert!(subject.chars().count() <= SUBJECT, "{subject}");
        }
    }
}
