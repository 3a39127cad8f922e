//! Checkpoints: the tree recorded before changes, and the changes since.

use std::sync::Arc;

use journeyman_protocol::{Event, FileChange, Mode};
use journeyman_workspace::{ChangedContent, CheckpointId, Diff, IgnoredChange, WorkspaceError};
use tokio::task::JoinHandle;

use crate::AgentError;
use crate::blocking::{background_error, run_blocking};
use crate::session::context::SessionContext;
use crate::transcript::record::Record;

/// Label of the first checkpoint of a run.
pub const FIRST_CHECKPOINT_LABEL: &str = "before the run";

/// The recording of the tree before the task's first change.
#[derive(Default)]
enum FirstRecording {
    /// Nothing has been recorded yet.
    #[default]
    Unrecorded,
    /// The tree is being recorded in the background.
    Recording(JoinHandle<Result<CheckpointId, WorkspaceError>>),
    /// The tree is recorded.
    Recorded(CheckpointId),
}

/// The newest checkpoint, and the step that it was taken before.
#[derive(Debug, Clone, Copy, Default)]
struct NewestCheckpoint {
    id: Option<CheckpointId>,
    step: Option<u64>,
}

/// The checkpoints of a session.
#[derive(Default)]
pub(crate) struct Checkpoints {
    before: FirstRecording,
    newest: NewestCheckpoint,
    /// The checkpoint of the newest comparison.
    compared_checkpoint: Option<CheckpointId>,
}

impl Checkpoints {
    /// Begins a task whose tree isn't recorded yet.
    pub(crate) fn begin_task(&mut self) {
        self.before = FirstRecording::Unrecorded;
    }

    /// Forgets the comparison of the last task.
    pub(crate) fn forget_comparison(&mut self) {
        self.compared_checkpoint = None;
    }

    /// Continues an interrupted task from its checkpoint.
    pub(crate) fn resume_from_checkpoint(&mut self, checkpoint: Option<u64>) {
        self.before =
            checkpoint.map_or(FirstRecording::Unrecorded, |id| FirstRecording::Recorded(CheckpointId(id)));
    }

    /// Returns the checkpoint before the task, once it is recorded.
    pub(crate) fn checkpoint_before_task(&self) -> Option<CheckpointId> {
        if let FirstRecording::Recorded(id) = self.before { Some(id) } else { None }
    }

    /// Returns the checkpoint of the newest comparison.
    pub(crate) fn compared_checkpoint(&self) -> Option<CheckpointId> {
        self.compared_checkpoint
    }

    /// Starts recording the tree in the background, once per run.
    pub(crate) fn start_recording(&mut self, cx: &SessionContext) {
        if matches!(self.before, FirstRecording::Unrecorded) && cx.settings.mode != Mode::Plan {
            let workspace = Arc::clone(&cx.workspace);
            let session = cx.journal_session().clone();
            self.newest.step = Some(cx.current_step());
            self.before = FirstRecording::Recording(tokio::task::spawn_blocking(move || {
                workspace.checkpoint(&session, FIRST_CHECKPOINT_LABEL)
            }));
        }
    }

    /// Waits until the tree before the run is recorded.
    pub(crate) async fn wait_until_recorded(
        &mut self,
        cx: &mut SessionContext,
    ) -> Result<CheckpointId, AgentError> {
        if let FirstRecording::Recorded(id) = self.before {
            return Ok(id);
        }
        self.start_recording(cx);
        let id = match std::mem::replace(&mut self.before, FirstRecording::Unrecorded) {
            FirstRecording::Recorded(id) => id,
            FirstRecording::Recording(task) => {
                task.await.map_err(|died| background_error("recording the tree", &died))??
            }
            FirstRecording::Unrecorded => {
                self.newest.step = Some(cx.current_step());
                self.take_checkpoint(cx, FIRST_CHECKPOINT_LABEL.to_owned()).await?
            }
        };
        self.before = FirstRecording::Recorded(id);
        self.newest.id = Some(id);
        cx.transcript.record(Record::Checkpoint { id: id.0, step: None });
        cx.transcript.emit(Event::Checkpoint {
            id: id.0,
            label: FIRST_CHECKPOINT_LABEL.to_owned(),
            step: None,
        });
        Ok(id)
    }

    /// Records the tree before the first call of a step that may change it, at most once per step.
    /// If nothing happened since the last checkpoint, no new one is made. Must be called before the
    /// call runs.
    pub(crate) async fn record_step(
        &mut self,
        cx: &mut SessionContext,
        label: &str,
    ) -> Result<(), AgentError> {
        self.wait_until_recorded(cx).await?;
        let step = cx.current_step();
        if self.newest.step == Some(step) {
            return Ok(());
        }
        let id = self.take_checkpoint(cx, label.to_owned()).await?;
        self.newest.step = Some(step);
        if self.newest.id.replace(id) != Some(id) {
            cx.transcript.record(Record::Checkpoint { id: id.0, step: Some(step) });
            cx.transcript.emit(Event::Checkpoint { id: id.0, label: label.to_owned(), step: Some(step) });
        }
        Ok(())
    }

    /// Records the tree on which checks failed, so that a better attempt can be gone back to.
    /// `None` in an isolated copy, which `jm undo` doesn't reach.
    pub(crate) async fn record_attempt(
        &mut self,
        cx: &mut SessionContext,
        attempt: u32,
    ) -> Result<Option<u64>, AgentError> {
        if cx.copy.is_some() {
            return Ok(None);
        }
        let label = format!("after attempt {attempt}");
        let id = self.take_checkpoint(cx, label.clone()).await?;
        if self.newest.id.replace(id) != Some(id) {
            let step = Some(cx.current_step());
            cx.transcript.record(Record::Checkpoint { id: id.0, step });
            cx.transcript.emit(Event::Checkpoint { id: id.0, label, step });
        }
        Ok(Some(id.0))
    }

    async fn take_checkpoint(&self, cx: &SessionContext, label: String) -> Result<CheckpointId, AgentError> {
        let workspace = Arc::clone(&cx.workspace);
        let session = cx.journal_session().clone();
        Ok(run_blocking("recording the tree", move || workspace.checkpoint(&session, &label)).await??)
    }

    /// Returns the differences from the tree before the task or, in a copy, from the user's tree.
    pub(crate) async fn changes(&mut self, cx: &mut SessionContext) -> Result<Vec<FileChange>, AgentError> {
        if let Some(copy) = cx.copy.clone() {
            return copy.changed_files().await;
        }
        if matches!(self.before, FirstRecording::Unrecorded) {
            return Ok(Vec::new());
        }
        let id = self.wait_until_recorded(cx).await?;
        self.compared_checkpoint = Some(id);
        changes_since(cx, id).await
    }

    /// Returns the same as [`Checkpoints::changes`], with the unverified changes of earlier tasks
    /// of the session, such as a task that was interrupted before its checks ran.
    pub(crate) async fn unverified_changes(
        &mut self,
        cx: &mut SessionContext,
    ) -> Result<Vec<FileChange>, AgentError> {
        // A plan changes nothing, so earlier changes need no proof in it.
        let earlier =
            cx.transcript.state().unverified.filter(|_| cx.settings.mode != Mode::Plan).map(CheckpointId);
        let (Some(earlier), None) = (earlier, &cx.copy) else { return self.changes(cx).await };
        match changes_since(cx, earlier).await {
            Ok(changes) => {
                self.compared_checkpoint = Some(earlier);
                Ok(changes)
            }
            // The checkpoint was dropped to keep the journal small, so its changes are unknown.
            Err(AgentError::Workspace(
                WorkspaceError::UnknownCheckpoint { .. } | WorkspaceError::Lost { .. },
            )) => self.changes(cx).await,
            Err(error) => Err(error),
        }
    }

    /// Lists the ignored files that commands of this run changed or deleted, or may have changed.
    /// Returns an empty list if the journal can't be read.
    pub(crate) async fn ignored_changes(&self, cx: &SessionContext) -> Vec<IgnoredChange> {
        let FirstRecording::Recorded(id) = self.before else { return Vec::new() };
        if cx.copy.is_some() {
            return Vec::new();
        }
        let (workspace, session) = (Arc::clone(&cx.workspace), cx.journal_session().clone());
        let asked = run_blocking("reading the journal", move || {
            workspace.history().ignored_changes_since(&id, &session)
        });
        let asked = asked.await;
        asked.map(Result::unwrap_or_default).unwrap_or_default()
    }

    /// Returns both contents of each change since the newest comparison's checkpoint.
    pub(crate) async fn changed_contents(
        &self,
        cx: &SessionContext,
    ) -> Result<Vec<ChangedContent>, AgentError> {
        let (workspace, id) = (Arc::clone(&cx.workspace), self.compared_checkpoint);
        let copy = cx.copy.clone();
        let read = move || match (copy, id) {
            (Some(copy), _) => copy.changed_contents(&copy.changes()?),
            (None, Some(id)) => workspace.history().contents_since(&id),
            (None, None) => Ok(Vec::new()),
        };
        Ok(run_blocking("reading the changes", read).await??)
    }

    /// Returns the changes since the newest comparison's checkpoint as a unified diff of at most
    /// `limit` bytes.
    pub(crate) async fn diff(&self, cx: &SessionContext, limit: usize) -> Result<Option<Diff>, AgentError> {
        Ok(match (&cx.copy, self.compared_checkpoint) {
            (Some(copy), _) => {
                let copy = Arc::clone(copy);
                let compare = move || copy.diff(&copy.changes()?, limit);
                Some(run_blocking("comparing the copy", compare).await??)
            }
            (None, Some(id)) => {
                let workspace = Arc::clone(&cx.workspace);
                Some(
                    run_blocking("comparing the tree", move || workspace.history().diff_since(&id, limit))
                        .await??,
                )
            }
            (None, None) => None,
        })
    }
}

async fn changes_since(cx: &SessionContext, id: CheckpointId) -> Result<Vec<FileChange>, AgentError> {
    let workspace = Arc::clone(&cx.workspace);
    Ok(run_blocking("comparing the tree", move || workspace.history().changes_since(&id)).await??)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_context::TestContext;

    fn paths(changes: &[FileChange]) -> Vec<String> {
        changes.iter().map(|change| change.path.to_string()).collect()
    }

    #[tokio::test]
    async fn changes_are_those_since_the_task_began() {
        let mut test = TestContext::new(&[("a.rs", "one\n"), ("b.rs", "one\n")]).await;
        let mut checkpoints = Checkpoints::default();
        assert_eq!(
            checkpoints.changes(&mut test.cx).await.unwrap(),
            [],
            "nothing is recorded, so nothing changed"
        );
        checkpoints.wait_until_recorded(&mut test.cx).await.unwrap();
        test.write("a.rs", "two\n");
        assert_eq!(paths(&checkpoints.changes(&mut test.cx).await.unwrap()), ["a.rs"]);
        let diff = checkpoints.diff(&test.cx, 4096).await.unwrap().unwrap();
        assert!(diff.text.contains("-one\n+two\n"), "{}", diff.text);
        checkpoints.begin_task();
        checkpoints.wait_until_recorded(&mut test.cx).await.unwrap();
        test.write("b.rs", "two\n");
        assert_eq!(paths(&checkpoints.changes(&mut test.cx).await.unwrap()), ["b.rs"]);
    }

    #[tokio::test]
    async fn a_step_is_recorded_once_and_only_if_something_changed() {
        let mut test = TestContext::new(&[("a.rs", "one\n")]).await;
        let mut checkpoints = Checkpoints::default();
        for content in ["two\n", "three\n"] {
            checkpoints.record_step(&mut test.cx, "first").await.unwrap();
            test.write("a.rs", content);
        }
        test.cx.transcript.end_step(std::time::Duration::ZERO);
        checkpoints.record_step(&mut test.cx, "second").await.unwrap();
        test.cx.transcript.end_step(std::time::Duration::ZERO);
        checkpoints.record_step(&mut test.cx, "third").await.unwrap();
        let labels: Vec<(String, Option<u64>)> = test
            .events()
            .await
            .into_iter()
            .filter_map(|event| match event {
                Event::Checkpoint { label, step, .. } => Some((label, step)),
                _ => None,
            })
            .collect();
        assert_eq!(labels, [(FIRST_CHECKPOINT_LABEL.to_owned(), None), ("second".to_owned(), Some(2))]);
    }

    #[tokio::test]
    async fn unverified_changes_include_those_of_an_interrupted_task() {
        let mut test = TestContext::new(&[("a.rs", "one\n"), ("b.rs", "one\n")]).await;
        let mut checkpoints = Checkpoints::default();
        let first = checkpoints.wait_until_recorded(&mut test.cx).await.unwrap();
        test.write("a.rs", "two\n");
        let outcome = journeyman_protocol::RunOutcome::Interrupted;
        test.cx.transcript.record(Record::Ended { outcome, unverified: Some(first.0) });
        checkpoints.begin_task();
        checkpoints.wait_until_recorded(&mut test.cx).await.unwrap();
        test.write("b.rs", "two\n");
        assert_eq!(paths(&checkpoints.changes(&mut test.cx).await.unwrap()), ["b.rs"]);
        assert_eq!(paths(&checkpoints.unverified_changes(&mut test.cx).await.unwrap()), ["a.rs", "b.rs"]);
        test.cx.settings.mode = Mode::Plan;
        assert_eq!(paths(&checkpoints.unverified_changes(&mut test.cx).await.unwrap()), ["b.rs"]);
    }
}
