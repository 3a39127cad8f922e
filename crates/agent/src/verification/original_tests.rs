//! Checks that run once more with the tests as they were before the session changed them.
//!
//! A session that changes tests until they pass has proven nothing, so the checks that passed run
//! again in a copy of the tree, in which test files and the configuration of test runners have
//! their original contents. New tests stay. Manifests and build files stay as well, though they may
//! configure tests: the change may need what else they say.

use std::fmt::Write as _;
use std::sync::Arc;

use journeyman_protocol::{CheckOutcome, Evidence, RelPath, RunOutcome, SessionId};
use journeyman_verify::test_files::{is_runner_configuration, is_test_file};
use journeyman_workspace::{CheckpointId, Workspace, WorkspaceError};

use super::scratch::{MAX_COPIED_FILES, ScratchCopy, SessionTree};
use super::summary::shorten;
use crate::blocking::run_blocking;
use crate::session::context::Context;
use crate::session::task_end::TaskEnd;

/// Maximum number of changed test files that a summary names.
const MAX_NAMED_FILES: usize = 3;

/// The test files that the session changed, and the copy in which they have their original
/// contents.
pub(crate) struct OriginalTests {
    changed: Vec<RelPath>,
    copy: Result<ScratchCopy, String>,
}

impl OriginalTests {
    /// Prepares the copy, if the session changed or deleted tests since the checkpoint. `None` if
    /// it did not. Changes of `accepted` files stay: the user knows of them.
    pub(crate) async fn prepare(
        cx: &Context,
        since: Option<CheckpointId>,
        accepted: Vec<RelPath>,
    ) -> Option<Self> {
        let (tree, owner) = (SessionTree::of(cx, since)?, cx.session.clone());
        let prepare = move || prepare(&tree, &owner, &accepted);
        let prepared = run_blocking("restoring the original tests", prepare).await;
        match prepared {
            Ok(Ok(prepared)) => prepared,
            // Then it isn't known which tests were changed.
            Ok(Err(error)) => Some(Self { changed: Vec::new(), copy: Err(error.to_string()) }),
            Err(error) => Some(Self { changed: Vec::new(), copy: Err(error.to_string()) }),
        }
    }

    /// Returns the copy as a workspace, or the reason why there is none.
    pub(crate) fn workspace(&self) -> Result<Arc<Workspace>, &str> {
        self.copy.as_ref().map(ScratchCopy::workspace).map_err(String::as_str)
    }

    /// Removes the copy. `evidence` is what the checks found in it. Returns the end of the task if
    /// the change is not verified; or else nothing contradicts that the checks passed.
    pub(crate) async fn finish(self, evidence: &[Evidence]) -> Option<TaskEnd> {
        let tests = name_files(&self.changed);
        let end = match &self.copy {
            Err(reason) => Some(format!("{tests} changed, and the original tests can't be run: {reason}")),
            Ok(_) => evidence.iter().find_map(|one| match &one.outcome {
                CheckOutcome::Failed { .. } if !one.fails() => None,
                CheckOutcome::Failed { reason, .. } => Some(format!(
                    "with {tests} as before the change, `{}` fails: {reason}",
                    shorten(&one.command)
                )),
                // There were no tests before.
                outcome if journeyman_verify::ran_no_test(outcome) => None,
                CheckOutcome::NotRun { reason } => Some(format!(
                    "with {tests} as before the change, `{}` could not run: {reason}",
                    shorten(&one.command)
                )),
                CheckOutcome::Passed => None,
            }),
        };
        if let Ok(scratch) = self.copy {
            scratch.remove().await;
        }
        end.map(|why| TaskEnd::new(RunOutcome::Unverified, format!("finished, but not verified: {why}")))
    }
}

/// Makes the copy with the original tests; `None` if the session changed none.
fn prepare(
    tree: &SessionTree,
    owner: &SessionId,
    accepted: &[RelPath],
) -> Result<Option<OriginalTests>, WorkspaceError> {
    // New tests have no original.
    let is_restored = |path: &RelPath, was_there| was_there && is_test(path) && !accepted.contains(path);
    let (changes, changed) = tree.restoring(owner, is_restored)?;
    if changed.is_empty() {
        return Ok(None);
    }
    Ok(Some(OriginalTests { changed, copy: tree.make_copy(owner, &changes, MAX_COPIED_FILES) }))
}

/// Returns true for a file that decides about nothing but tests.
pub(super) fn is_test(path: &RelPath) -> bool {
    let path = path.to_string();
    is_test_file(&path) || is_runner_configuration(&path)
}

fn name_files(changed: &[RelPath]) -> String {
    let mut text =
        changed.iter().take(MAX_NAMED_FILES).map(RelPath::to_string).collect::<Vec<_>>().join(", ");
    if let Some(more) = changed.len().checked_sub(MAX_NAMED_FILES).filter(|more| *more > 0) {
        let _infallible = write!(text, " and {more} more");
    }
    if text.is_empty() { "the tests may have".to_owned() } else { text }
}
