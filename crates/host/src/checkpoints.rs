//! The checkpoints of a project, and the differences between them.

use journeyman_agent::FIRST_CHECKPOINT_LABEL;
use journeyman_workspace::{CheckpointId, CheckpointInfo, Diff, Workspace};
use serde_json::{Value, json};

use crate::{Context as _, HostError};

/// Maximum size of a diff, in bytes. More isn't read by anybody, and a narrower question can be
/// asked.
pub const MAX_DIFF_BYTES: usize = 16 * 1024 * 1024;

/// Returns a checkpoint as JSON.
#[must_use]
pub fn checkpoint_to_json(checkpoint: &CheckpointInfo) -> Value {
    let CheckpointInfo { id, session, label, at, changes, descriptions, whole, readable } = checkpoint;
    json!({
        "id": id, "session": session, "label": label, "at": at, "changes": changes,
        "descriptions": descriptions, "whole": whole, "readable": readable,
    })
}

/// The differences between two checkpoints, or from a checkpoint to the files as they are.
#[derive(Debug)]
pub struct CheckpointDiff {
    /// The earlier checkpoint.
    pub from: CheckpointId,
    /// The later checkpoint; `None` for the files as they are.
    pub to: Option<CheckpointId>,
    /// The differences, with at most [`MAX_DIFF_BYTES`] of text.
    pub diff: Diff,
}

impl CheckpointDiff {
    /// Compares two checkpoints. Without `from`, the first checkpoint of the newest run is taken.
    ///
    /// # Errors
    /// [`HostError::Failed`] where a checkpoint doesn't exist or can't be read.
    pub fn new(
        workspace: &Workspace,
        from: Option<CheckpointId>,
        to: Option<CheckpointId>,
    ) -> Result<Self, HostError> {
        let from = match from {
            Some(from) => from,
            None => find_newest_run_start(&workspace.checkpoints().context("the checkpoints")?)?,
        };
        let diff = workspace.history().diff_between(&from, to.as_ref(), MAX_DIFF_BYTES).context("diff")?;
        Ok(Self { from, to, diff })
    }

    /// Returns the differences as JSON, with the text of the diff or without.
    #[must_use]
    pub fn to_json(&self, has_text: bool) -> Value {
        let Self { from, to, diff } = self;
        let files = diff.files.iter().map(|file| {
            json!({
                "path": file.path, "kind": file.kind, "added": file.added, "removed": file.removed,
                "binary": file.opaque,
            })
        });
        let mut object = json!({
            "from": from, "to": to, "added": diff.added, "removed": diff.removed, "lost": diff.lost,
            "files": files.collect::<Vec<_>>(),
        });
        if let Some(object) = object.as_object_mut().filter(|_| has_text) {
            object.insert("truncated".to_owned(), diff.truncated.into());
            object.insert("diff".to_owned(), diff.text.clone().into());
        }
        object
    }
}

/// Returns the first checkpoint of the newest run.
fn find_newest_run_start(checkpoints: &[CheckpointInfo]) -> Result<CheckpointId, HostError> {
    let newest = checkpoints.last().map(|newest| &newest.session);
    let ours = || checkpoints.iter().filter(|checkpoint| Some(&checkpoint.session) == newest);
    // A session that was gone on with has several runs.
    let first =
        ours().rev().find(|checkpoint| checkpoint.label == FIRST_CHECKPOINT_LABEL).or_else(|| ours().next());
    let missing = "there is no checkpoint in this directory to compare with; `jm run` makes one before it changes \
                   anything";
    first.map(|first| first.id).ok_or_else(|| HostError::failed(missing))
}
