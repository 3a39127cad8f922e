//! The tree on record before anything may change it: once a run, and before every step that does more than read.

use journeyman_protocol::{Event, Mode};
use journeyman_workspace::{CheckpointId, WorkspaceError};
use std::sync::Arc;
use tokio::task::JoinHandle;

use crate::AgentError;
use crate::calls::runner::Ready;
use crate::session::turn::{Worker, background, blocking};
use crate::transcript::record::Record;

/// What the first checkpoint of a run says of itself.
pub const BEFORE_THE_RUN: &str = "before the run";
/// Bytes of a checkpoint's label: a line of a list.
const MAX_LABEL: usize = journeyman_workspace::limits::LABEL_BYTES;

/// The tree as it was before the task changed anything.
pub(crate) enum Before {
    /// Nothing has been recorded yet.
    Unrecorded,
    /// It is being recorded in the background.
    Recording(JoinHandle<Result<CheckpointId, WorkspaceError>>),
    /// It is on record.
    Recorded(CheckpointId),
}

/// The newest checkpoint, and the step that it was taken before.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Newest {
    id: Option<CheckpointId>,
    step: Option<u64>,
}

impl Worker {
    /// Starts recording the tree in the background, once a run.
    pub(crate) fn record_before(&mut self) {
        if matches!(self.before, Before::Unrecorded) && self.settings.mode != Mode::Plan {
            let workspace = Arc::clone(&self.parts.workspace);
            let session = self.session.clone();
            self.newest.step = Some(self.next_step());
            self.before = Before::Recording(tokio::task::spawn_blocking(move || {
                workspace.checkpoint(&session, BEFORE_THE_RUN)
            }));
        }
    }

    /// Waits until the tree as it was before the run is on record.
    pub(crate) async fn recorded(&mut self) -> Result<CheckpointId, AgentError> {
        if let Before::Recorded(id) = self.before {
            return Ok(id);
        }
        self.record_before();
        let id = match std::mem::replace(&mut self.before, Before::Unrecorded) {
            Before::Recorded(id) => id,
            Before::Recording(task) => {
                task.await.map_err(|died| background("recording the tree", &died))??
            }
            Before::Unrecorded => {
                self.newest.step = Some(self.next_step());
                self.checkpoint(BEFORE_THE_RUN.to_owned()).await?
            }
        };
        self.before = Before::Recorded(id);
        self.newest.id = Some(id);
        self.note(Record::Checkpoint { id: id.0, step: None });
        self.log.emit(Event::Checkpoint { id: id.0, label: BEFORE_THE_RUN.to_owned(), step: None });
        Ok(id)
    }

    /// Puts the tree on record before the first call of a step that may change it; once a step, and nothing where
    /// nothing happened since the last one. To be called before the call is.
    pub(crate) async fn record_step(&mut self, label: &str) -> Result<(), AgentError> {
        self.recorded().await?;
        let step = self.next_step();
        if self.newest.step == Some(step) {
            return Ok(());
        }
        let id = self.checkpoint(label.to_owned()).await?;
        self.newest.step = Some(step);
        if self.newest.id.replace(id) != Some(id) {
            self.note(Record::Checkpoint { id: id.0, step: Some(step) });
            self.log.emit(Event::Checkpoint { id: id.0, label: label.to_owned(), step: Some(step) });
        }
        Ok(())
    }

    /// What the checkpoint before this step says of itself: the step, and what is about to happen in it.
    pub(crate) fn step_label(&self, ready: &[Ready]) -> String {
        let changing = ready.iter().filter(|one| !one.read_only);
        let summaries: Vec<String> = changing
            .map(|one| self.summary(&one.call).lines().next().unwrap_or_default().to_owned())
            .collect();
        let mut label = format!("step {}: {}", self.next_step(), summaries.join(", "));
        label.retain(|character| !character.is_control());
        label.truncate(label.floor_char_boundary(MAX_LABEL));
        label
    }

    /// The step that runs, counted over the whole session.
    fn next_step(&self) -> u64 {
        self.state.books.step.saturating_add(1)
    }

    async fn checkpoint(&self, label: String) -> Result<CheckpointId, AgentError> {
        let workspace = Arc::clone(&self.parts.workspace);
        let session = self.session.clone();
        Ok(blocking("recording the tree", move || workspace.checkpoint(&session, &label)).await??)
    }
}
