//! The checks of a project that failed last, kept for later sessions.
//!
//! They hold for the tree that they ran on, and for some days: a session whose files are others
//! isn't told of them.

use std::fs;
use std::path::{Path, PathBuf};

use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{CheckOutcome, Diagnostic, Evidence, RelPath, UnixMillis};
use journeyman_workspace::Workspace;

use super::derived_file::{read_derived, write_derived};

/// The file in the project's state directory.
const FILE_NAME: &str = "failed-checks.json";
/// Maximum number of checks, and of findings of each.
const MAX_CHECKS: usize = 8;
const MAX_DIAGNOSTICS: usize = 20;
/// Maximum bytes of a text of a finding, and of a check's output, of which the end is kept.
const MAX_TEXT_BYTES: usize = 1_000;
const MAX_OUTPUT_BYTES: usize = 6_000;
/// The age in milliseconds after which a failure isn't told: three days. Ignored files, tools and
/// services are others by then, and no tree tells that.
const MAX_AGE_MS: u64 = 3 * 24 * 60 * 60 * 1_000;
/// Maximum bytes of the file: more than so many checks need.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The failed checks of a project, in its state directory.
#[derive(Debug)]
pub struct FailedChecks {
    path: PathBuf,
}

impl FailedChecks {
    /// Opens those of the project with this state directory. Nothing is read yet.
    #[must_use]
    pub fn in_directory(state_dir: &Path) -> Self {
        Self { path: state_dir.join(FILE_NAME) }
    }

    /// Returns the checks that failed on the tree of `workspace` as it is in the last three days,
    /// without those that found something in a file that may not be shown.
    #[must_use]
    pub fn load(&self, workspace: &Workspace, may_show: &dyn Fn(&RelPath) -> bool) -> Vec<Evidence> {
        let mut known = self.read();
        let now = workspace.now();
        let is_shown = |found: &Diagnostic| found.path.as_ref().is_none_or(may_show);
        known.retain(|one| is_recent(one.started, now) && one.diagnostics.iter().all(is_shown));
        // A large tree takes long to hash.
        if !known.is_empty() {
            let tree = workspace.history().tree_hash().ok();
            known.retain(|one| one.tree.is_some() && one.tree == tree);
        }
        known
    }

    /// Keeps the checks of a round that failed, without secrets, and forgets those that passed on
    /// the same tree: copies of the project have others. A failure to write loses them only.
    pub fn save(&self, round: &[Evidence], redactor: &Redactor) {
        let before = self.read();
        // What was kept has no secret in its command either.
        let key =
            |one: &Evidence| (one.tree, redactor.redact(&one.command).into_owned(), one.directory.clone());
        let ran: Vec<_> = round.iter().filter(|one| one.tree.is_some()).map(key).collect();
        let failed = round.iter().filter(|one| one.outcome.has_failed() && one.tree.is_some());
        let failed: Vec<Evidence> = failed.filter_map(|one| shorten(one, redactor)).collect();
        let lasting = before.iter().filter(|one| !ran.contains(&key(one))).cloned();
        let kept: Vec<Evidence> = failed.into_iter().chain(lasting).take(MAX_CHECKS).collect();
        if !kept.is_empty() {
            write_derived(&self.path, &kept);
        } else if !before.is_empty() {
            fs::remove_file(&self.path).ok();
        }
    }

    fn read(&self) -> Vec<Evidence> {
        read_derived(&self.path, MAX_FILE_BYTES)
    }
}

/// Returns false for what began too long ago. Where a time isn't known, age says nothing.
fn is_recent(started: Option<UnixMillis>, now: Option<UnixMillis>) -> bool {
    started.zip(now).is_none_or(|(started, now)| now.0.saturating_sub(started.0) <= MAX_AGE_MS)
}

/// Returns what a later session needs of a failed check, without secrets. `None` if that can't be
/// told.
fn shorten(evidence: &Evidence, redactor: &Redactor) -> Option<Evidence> {
    // Redacted before it is cut, because a part of a secret would not be recognized.
    let mut value = serde_json::to_value(evidence).ok()?;
    redactor.redact_json(&mut value);
    let mut one: Evidence = serde_json::from_value(value).ok()?;
    let cut = |text: &mut String| text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    one.baseline = None;
    let from = one.output.ceil_char_boundary(one.output.len().saturating_sub(MAX_OUTPUT_BYTES));
    one.output.drain(..from);
    if let CheckOutcome::Failed { reason, .. } = &mut one.outcome {
        cut(reason);
    }
    one.diagnostics.truncate(MAX_DIAGNOSTICS);
    for found in &mut one.diagnostics {
        found.before_task = false;
        cut(&mut found.message);
        let texts = [&mut found.test, &mut found.expected, &mut found.actual, &mut found.source];
        texts.into_iter().flatten().for_each(cut);
    }
    Some(one)
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::{CheckKind, Severity};

    use super::*;
    use crate::test_context::TestContext;

    fn outcome(command: &str, reason: Option<&str>, workspace: &Workspace) -> Evidence {
        let outcome = match reason {
            Some(reason) => CheckOutcome::Failed { exit_code: Some(1), reason: reason.to_owned() },
            None => CheckOutcome::Passed,
        };
        let tree = Some(workspace.history().tree_hash().unwrap());
        Evidence { tree, ..Evidence::new(CheckKind::Test, command, outcome) }
    }

    #[test]
    fn an_old_failure_is_not_told() {
        let at = |ms| Some(UnixMillis(ms));
        assert!(is_recent(at(5), at(5 + MAX_AGE_MS)) && !is_recent(at(5), at(6 + MAX_AGE_MS)));
        assert!(is_recent(at(9), at(5)) && is_recent(None, at(u64::MAX)) && is_recent(at(0), None));
    }

    #[tokio::test]
    async fn failures_are_known_until_they_pass_or_the_tree_changes() {
        let test = TestContext::new(&[("a.py", "x = 1\n")]).await;
        let workspace = &test.cx.workspace;
        // A round of checks has made it.
        fs::create_dir_all(workspace.state_dir()).unwrap();
        let known = FailedChecks::in_directory(workspace.state_dir());
        let redactor = Redactor::new(["s3cr3t-t0ken".to_owned()]);
        assert!(known.load(workspace, &|_| true).is_empty());
        let mut failed = outcome("pytest", Some("exit code 1, s3cr3t-t0ken"), workspace);
        let asked = outcome("make key=s3cr3t-t0ken", Some("exit code 3"), workspace);
        failed.output = format!("{} s3cr3t-t0ken é", "y".repeat(20_000));
        failed.diagnostics =
            vec![Diagnostic { before_task: true, ..Diagnostic::new(Severity::Error, "s3cr3t-t0ken") }];
        failed.diagnostics[0].test = Some("test_x[s3cr3t-t0ken]".to_owned());
        failed.diagnostics[0].path = Some(RelPath::parse("vault/a.py").unwrap());
        known.save(&[failed, outcome("ruff", None, workspace)], &redactor);
        known.save(&[outcome("mypy", Some("exit code 2"), workspace)], &redactor);
        let loaded = known.load(workspace, &|_| true);
        let commands: Vec<_> = loaded.iter().map(|one| one.command.as_str()).collect();
        assert_eq!(commands, ["mypy", "pytest"]);
        assert!(loaded[1].output.len() <= MAX_OUTPUT_BYTES && !loaded[1].diagnostics[0].before_task);
        assert!(!fs::read_to_string(&known.path).unwrap().contains("s3cr3t-t0ken"));
        known.save(std::slice::from_ref(&asked), &redactor);
        assert!(!fs::read_to_string(&known.path).unwrap().contains("s3cr3t-t0ken"));
        known.save(&[Evidence { outcome: CheckOutcome::Passed, ..asked }], &redactor);
        let visible = known.load(workspace, &|path| !path.to_string().starts_with("vault/"));
        assert_eq!(visible.iter().map(|one| one.command.as_str()).collect::<Vec<_>>(), ["mypy"]);
        test.write("a.py", "x = 2\n");
        assert!(known.load(workspace, &|_| true).is_empty(), "another tree");
        known.save(&[outcome("pytest", None, workspace)], &redactor);
        test.write("a.py", "x = 1\n");
        assert_eq!(known.load(workspace, &|_| true).len(), 2);
        known.save(&[outcome("pytest", None, workspace), outcome("mypy", None, workspace)], &redactor);
        assert!(known.load(workspace, &|_| true).is_empty() && !known.path.exists());
        fs::write(&known.path, "{]").unwrap();
        assert!(known.load(workspace, &|_| true).is_empty(), "a broken file");
    }
}
