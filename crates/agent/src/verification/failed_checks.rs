//! The checks of a project that failed last, kept for later sessions.
//!
//! They hold for the tree that they ran on: a session whose files are others isn't told of them.

use std::fs;
use std::path::{Path, PathBuf};

use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{CheckOutcome, Evidence, clip_to_bytes};
use journeyman_workspace::Workspace;

/// The file in the project's state directory.
const FILE_NAME: &str = "failed-checks.json";
/// Maximum number of checks, and of findings of each.
const MAX_CHECKS: usize = 8;
const MAX_DIAGNOSTICS: usize = 20;
/// Maximum bytes of a text of a finding, and of a check's output, of which the end is kept.
const MAX_TEXT_BYTES: usize = 1_000;
const MAX_OUTPUT_BYTES: usize = 6_000;
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

    /// Returns the checks that failed on the tree of `workspace` as it is.
    #[must_use]
    pub fn load(&self, workspace: &Workspace) -> Vec<Evidence> {
        let mut known = self.read();
        if !known.is_empty() {
            let now = workspace.history().tree_hash().ok();
            known.retain(|one| one.tree.is_some() && one.tree == now);
        }
        known
    }

    /// Keeps the checks of a round that failed, without secrets, and forgets those that passed. A
    /// failure to write loses them only.
    pub fn save(&self, round: &[Evidence], redactor: &Redactor) {
        let before = self.read();
        let is_same = |one: &Evidence, other: &Evidence| {
            one.command == other.command && one.directory == other.directory
        };
        let newest = round.iter().rev().find_map(|one| one.tree);
        let lasting = before.iter().filter(|one| {
            one.tree == newest && !round.iter().any(|ran| ran.tree.is_some() && is_same(one, ran))
        });
        let failed = round.iter().filter(|one| one.outcome.has_failed() && one.tree.is_some());
        let failed = failed.map(|one| shorten(one, redactor));
        let kept: Vec<Evidence> = failed.chain(lasting.cloned()).take(MAX_CHECKS).collect();
        if kept.is_empty() {
            if !before.is_empty() {
                fs::remove_file(&self.path).ok();
            }
            return;
        }
        let Ok(text) = serde_json::to_vec(&kept) else { return };
        let new = self.path.with_extension(format!("{}.new", std::process::id()));
        if fs::write(&new, text).is_ok() && fs::rename(&new, &self.path).is_err() {
            fs::remove_file(&new).ok();
        }
    }

    fn read(&self) -> Vec<Evidence> {
        let is_small = fs::metadata(&self.path).is_ok_and(|file| file.len() <= MAX_FILE_BYTES);
        let text = if is_small { fs::read(&self.path).unwrap_or_default() } else { Vec::new() };
        serde_json::from_slice(&text).unwrap_or_default()
    }
}

/// Returns what a later session needs of a failed check.
fn shorten(evidence: &Evidence, redactor: &Redactor) -> Evidence {
    // Redacted before it is cut, because a part of a secret would not be recognized.
    let clean = |text: &str| clip_to_bytes(&redactor.redact(text), MAX_TEXT_BYTES).to_owned();
    let mut one = evidence.clone();
    one.baseline = None;
    let output = redactor.redact(&one.output);
    let from = output.ceil_char_boundary(output.len().saturating_sub(MAX_OUTPUT_BYTES));
    one.output = output.get(from..).unwrap_or_default().to_owned();
    if let CheckOutcome::Failed { reason, .. } = &mut one.outcome {
        *reason = clean(reason);
    }
    one.diagnostics.truncate(MAX_DIAGNOSTICS);
    for found in &mut one.diagnostics {
        found.before_task = false;
        found.message = clean(&found.message);
        for text in [&mut found.expected, &mut found.actual, &mut found.source].into_iter().flatten() {
            *text = clean(text);
        }
    }
    one
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::{CheckKind, Diagnostic, Severity};

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

    #[tokio::test]
    async fn failures_are_known_until_they_pass_or_the_tree_changes() {
        let test = TestContext::new(&[("a.py", "x = 1\n")]).await;
        let workspace = &test.cx.workspace;
        // A round of checks has made it.
        fs::create_dir_all(workspace.state_dir()).unwrap();
        let known = FailedChecks::in_directory(workspace.state_dir());
        let redactor = Redactor::new(["s3cr3t-t0ken".to_owned()]);
        assert!(known.load(workspace).is_empty());
        let mut failed = outcome("pytest", Some("exit code 1, s3cr3t-t0ken"), workspace);
        failed.output = format!("{} s3cr3t-t0ken é", "y".repeat(20_000));
        failed.diagnostics =
            vec![Diagnostic { before_task: true, ..Diagnostic::new(Severity::Error, "s3cr3t-t0ken") }];
        known.save(&[failed, outcome("ruff", None, workspace)], &redactor);
        known.save(&[outcome("mypy", Some("exit code 2"), workspace)], &redactor);
        let loaded = known.load(workspace);
        let commands: Vec<_> = loaded.iter().map(|one| one.command.as_str()).collect();
        assert_eq!(commands, ["mypy", "pytest"]);
        assert!(loaded[1].output.len() <= MAX_OUTPUT_BYTES && !loaded[1].diagnostics[0].before_task);
        assert!(!fs::read_to_string(&known.path).unwrap().contains("s3cr3t-t0ken"));
        test.write("a.py", "x = 2\n");
        assert!(known.load(workspace).is_empty(), "another tree");
        test.write("a.py", "x = 1\n");
        assert_eq!(known.load(workspace).len(), 2);
        known.save(&[outcome("pytest", None, workspace), outcome("mypy", None, workspace)], &redactor);
        assert!(known.load(workspace).is_empty() && !known.path.exists());
        fs::write(&known.path, "{]").unwrap();
        assert!(known.load(workspace).is_empty(), "a broken file");
    }
}
