//! Applying the edits of a model's reply to the files of a project.

use std::io::Read;

use journeyman_edit::{ApplyOptions, ChangeKind, EditFailure, EditPlan, FileChange, plan};
use journeyman_tools::ProjectFiles;
use journeyman_workspace::{ChangeSet, Workspace};
use serde_json::{Value, json};

use crate::input::read_bytes;
use crate::sessions::new_session_id;
use crate::{Context as _, HostError};

/// The label of the checkpoint before a reply is applied.
const CHECKPOINT_LABEL: &str = "before jm apply";

/// Maximum size of a reply, in bytes: far more than the output limit of any model.
const MAX_REPLY_BYTES: u64 = 16 << 20;

/// Reads a model's reply from standard input.
///
/// # Errors
/// [`HostError::Usage`] for an empty or over-long reply, and for one that isn't UTF-8.
pub fn read_reply(input: impl Read) -> Result<String, HostError> {
    let bytes = read_bytes("reply", input, "standard input", MAX_REPLY_BYTES)?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(HostError::usage("there is no reply on standard input: jm apply < reply.md"));
    }
    String::from_utf8(bytes).map_err(|error| {
        HostError::usage(format_args!("the reply isn't UTF-8 (byte {})", error.utf8_error().valid_up_to()))
    })
}

/// The edits of a reply, placed in a project.
pub struct PlacedReply<'a> {
    workspace: &'a Workspace,
    tree: ProjectFiles<'a>,
    /// The changes, and the edits that have no place.
    pub plan: EditPlan,
}

impl<'a> PlacedReply<'a> {
    /// Places the edits of a reply. Changes to files that programs outside of the sandbox obey are
    /// refused.
    #[must_use]
    pub fn new(workspace: &'a Workspace, reply: &str, options: &ApplyOptions) -> Self {
        let tree = ProjectFiles::new(workspace);
        let mut plan = plan(reply, options, &tree);
        refuse_guarded(&mut plan);
        Self { workspace, tree, plan }
    }

    /// Writes all changes in one step, after a checkpoint.
    ///
    /// # Errors
    /// [`HostError::Failed`] where a file changed meanwhile or can't be written; nothing is written
    /// then.
    pub fn apply_changes(&self) -> Result<(), HostError> {
        apply_plan(self.workspace, &self.tree, &self.plan)
    }

    /// Returns the exit code: 0 for applied or nothing to do, 1 for refused, 3 for partly refused.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match (self.plan.failed.is_empty(), self.plan.changes_to_write().is_empty()) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => 3,
        }
    }
}

/// Refuses changes to files that programs outside of the sandbox run or obey.
fn refuse_guarded(plan: &mut EditPlan) {
    let touches = |change: &FileChange| {
        let guarded = [Some(&change.path), change.to.as_ref()].into_iter().flatten();
        guarded.into_iter().find(|path| journeyman_policy::is_guarded(path)).cloned()
    };
    for path in plan.changes.iter().filter_map(touches) {
        let message = format!(
            "{path}: programs outside of the sandbox run or obey it (git's files, hooks, editor and shell settings, \
             instructions of agents, credentials), so a reply doesn't change it. Change it by hand if you mean it."
        );
        plan.failed.push(EditFailure { path: Some(path), kind: "guarded", message, nearest: None });
    }
    plan.changes.retain(|change| touches(change).is_none());
}

/// Writes all changes of a plan in one step.
fn apply_plan(workspace: &Workspace, files: &ProjectFiles<'_>, plan: &EditPlan) -> Result<(), HostError> {
    let changes = files.changes_of(plan).context("nothing was written")?;
    if changes.is_empty() {
        return Ok(());
    }
    let session = new_session_id();
    workspace.checkpoint(&session, CHECKPOINT_LABEL).context("keeping the state before")?;
    workspace
        .apply(ChangeSet { call: None, session, description: None, changes })
        .context("nothing was written")?;
    Ok(())
}

/// Returns the 1-based lines where edits were placed.
#[must_use]
pub fn list_placed_lines(change: &FileChange) -> Vec<u32> {
    change
        .notes
        .iter()
        .filter(|note| note.strategy.is_some() && note.count > 0)
        .map(|note| note.line)
        .collect()
}

/// Describes where a change was placed, and by which strategy; `None` where no strategy placed it.
#[must_use]
pub fn describe_placement(change: &FileChange) -> Option<String> {
    let strategy = change.strategy()?;
    let lines: Vec<String> = list_placed_lines(change).iter().map(ToString::to_string).collect();
    match lines.as_slice() {
        [] => None,
        [only] => Some(format!("line {only}, {strategy}")),
        several => Some(format!("lines {}, {strategy}", several.join(", "))),
    }
}

/// Returns the report of a plan as JSON.
#[must_use]
pub fn plan_to_json(plan: &EditPlan) -> Value {
    let applied = plan.changes_to_write().iter().map(|change| {
        let notes: Vec<&str> = change.notes.iter().filter_map(|note| note.note.as_deref()).collect();
        let method = match change.strategy() {
            Some(strategy) => json!(strategy),
            None if change.kind == ChangeKind::Modify => json!("rewrite"),
            None => json!(change.kind),
        };
        let mut object = json!({
            "path": change.path, "kind": change.kind, "method": method, "lines": list_placed_lines(change), "differed": notes,
        });
        if let Some(fields) = object.as_object_mut() {
            if let Some(to) = &change.to {
                fields.insert("to".to_owned(), json!(to));
            }
            if let Some(finding) = &change.broken {
                let broken = json!({"line": finding.line, "message": finding.message});
                fields.insert("broken".to_owned(), broken);
            }
        }
        object
    });
    let unchanged = plan.unchanged.iter().map(|same| json!({"path": same.path, "reason": same.reason}));
    let failed = plan.failed.iter().map(|failure| {
        let nearest = failure.nearest.as_ref().map(|(line, text)| json!({"line": line, "text": text}));
        json!({"path": failure.path, "kind": failure.kind, "reason": failure.message, "nearest": nearest})
    });
    let mut object = json!({
        "format": plan.format,
        "applied": applied.collect::<Vec<_>>(),
        "unchanged": unchanged.collect::<Vec<_>>(),
        "failed": failed.collect::<Vec<_>>(),
    });
    if let (Some(fields), false) = (object.as_object_mut(), plan.failed.is_empty()) {
        fields.insert("feedback".to_owned(), json!(plan.feedback()));
    }
    object
}
