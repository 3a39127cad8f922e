//! Checks that run once more with the tests as they were before the session changed them.
//!
//! A session that changes tests until they pass has proven nothing, so the checks that passed run
//! again in a copy of the tree, in which test files and the configuration of test runners have
//! their original contents. New tests stay. Manifests and build files stay as well, though they may
//! configure tests: the change may need what else they say.

use std::fmt::Write as _;
use std::sync::Arc;

use journeyman_protocol::{CheckOutcome, Evidence, RelPath, RunOutcome, SessionId, UnixMillis};
use journeyman_verify::test_files::{is_runner_configuration, is_test_file};
use journeyman_workspace::{
    CheckpointId, CopyChanges, IsolatedCopy, LandOptions, Tier, Workspace, WorkspaceError,
};

use super::shorten;
use crate::blocking::run_blocking;
use crate::isolation::{Isolation, WorkCopy};
use crate::session::context::Context;
use crate::session::task_end::TaskEnd;

/// Maximum number of files that are copied one by one for the copy.
const MAX_COPIED_FILES: usize = 50_000;
/// Maximum number of changed test files that a summary names.
const MAX_NAMED_FILES: usize = 3;

/// The test files that the session changed, and the copy in which they have their original
/// contents.
pub(crate) struct OriginalTests {
    changed: Vec<RelPath>,
    copy: Result<ScratchCopy, String>,
}

/// A copy that is removed after use.
struct ScratchCopy {
    origin: Arc<Workspace>,
    name: SessionId,
    copy: IsolatedCopy,
}

/// The tree of a session, from which the copy is made.
enum SessionTree {
    /// The user's tree, with the checkpoint since which the session changes it.
    InPlace(Box<Isolation>, CheckpointId),
    /// The session's own copy.
    Copy(Arc<WorkCopy>),
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
        self.copy.as_ref().map(|scratch| Arc::clone(scratch.copy.workspace())).map_err(String::as_str)
    }

    /// Removes the copy. `evidence` is what the checks found in it. Returns the end of the task if
    /// the change is not verified; or else nothing contradicts that the checks passed.
    pub(crate) async fn finish(self, evidence: &[Evidence]) -> Option<TaskEnd> {
        let tests = name_files(&self.changed);
        let end = match &self.copy {
            Err(reason) => Some(format!("{tests} changed, and the original tests can't be run: {reason}")),
            Ok(_) => evidence.iter().find_map(|one| match &one.outcome {
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
        if let Ok(ScratchCopy { origin, name, copy }) = self.copy {
            let removed = run_blocking("removing the copy with the original tests", move || {
                drop(copy);
                origin.copies().discard(&name)
            });
            // What can't be removed now is swept when the project is opened.
            removed.await.ok();
        }
        end.map(|why| TaskEnd::new(RunOutcome::Unverified, format!("finished, but not verified: {why}")))
    }
}

impl SessionTree {
    /// Returns the session's tree; `None` where nothing changed since any checkpoint.
    fn of(cx: &Context, since: Option<CheckpointId>) -> Option<Self> {
        if let Some(copy) = &cx.copy {
            return Some(Self::Copy(Arc::clone(copy)));
        }
        let isolation = Isolation {
            origin: Arc::clone(&cx.workspace),
            sandbox: Arc::clone(&cx.sandbox),
            git: None,
            tiers: Tier::ALL.to_vec(),
            max_copied_files: MAX_COPIED_FILES,
        };
        Some(Self::InPlace(Box::new(isolation), since?))
    }

    fn isolation(&self) -> &Isolation {
        match self {
            Self::InPlace(isolation, _) => isolation,
            Self::Copy(copy) => copy.isolation(),
        }
    }

    /// Returns what differs between the user's tree and the tree with the original tests, and the
    /// changed tests.
    fn changes(
        &self,
        owner: &SessionId,
        accepted: &[RelPath],
    ) -> Result<(CopyChanges, Vec<RelPath>), WorkspaceError> {
        let is_restored = |path: &RelPath| is_test(path) && !accepted.contains(path);
        match self {
            Self::InPlace(isolation, since) => {
                let changes = isolation.origin.history().changes_back_to(since, owner, is_restored)?;
                let tests = changes.files().into_iter().map(|change| change.path).collect();
                Ok((changes, tests))
            }
            Self::Copy(copy) => {
                let mut changes = copy.changes()?;
                let tests = changes.leave_out(|path, was_there| was_there && is_restored(path));
                Ok((changes, tests))
            }
        }
    }
}

/// Makes the copy with the original tests; `None` if the session changed none.
fn prepare(
    tree: &SessionTree,
    owner: &SessionId,
    accepted: &[RelPath],
) -> Result<Option<OriginalTests>, WorkspaceError> {
    let (changes, changed) = tree.changes(owner, accepted)?;
    if changed.is_empty() {
        return Ok(None);
    }
    let copy = make_copy(tree.isolation(), owner, &changes);
    Ok(Some(OriginalTests { changed, copy }))
}

fn make_copy(isolation: &Isolation, owner: &SessionId, changes: &CopyChanges) -> Result<ScratchCopy, String> {
    if isolation.origin.base().is_some() {
        return Err("the project is a copy itself".to_owned());
    }
    // Nobody else has this name: the sessions of people begin with the time.
    let name = SessionId::new(UnixMillis(0), fastrand::u64(..));
    let origin = Arc::clone(&isolation.origin);
    let copy = origin
        .copies()
        .create_scratch(&name, owner, &isolation.copy_tools())
        .map_err(|error| error.to_string())?;
    // Nobody undoes anything in this copy.
    let options = LandOptions { beyond_undo: true, ..LandOptions::default() };
    let landed = copy.workspace().land(changes, &options);
    let scratch = ScratchCopy { origin, name, copy };
    match landed {
        Ok(landing) => match landing.conflicts.first() {
            None => Ok(scratch),
            Some((path, reason)) => Err(scratch.give_up(format!("{path}: {reason}"))),
        },
        Err(error) => Err(scratch.give_up(error.to_string())),
    }
}

impl ScratchCopy {
    fn give_up(self, reason: String) -> String {
        let Self { origin, name, copy } = self;
        drop(copy);
        // What can't be removed now is swept when the project is opened.
        origin.copies().discard(&name).ok();
        reason
    }
}

/// Returns true for a file that decides about nothing but tests.
fn is_test(path: &RelPath) -> bool {
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
