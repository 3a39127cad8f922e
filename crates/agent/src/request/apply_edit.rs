//! The tool behind edits in a reply's text: applies the steps for one file, all of them or none.
//!
//! Not offered to models with tool calling, which have `edit_file` and `write_file`.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_edit::{AllowedDifferences, Edit, EditOp, FileOps, OpContext, OpsOutcome, Refusal, apply_ops};
use journeyman_policy::secrets::SECRET_MASK;
use journeyman_protocol::{ContentHash, Effects, RelPath, ToolSpec};
use journeyman_tools::{Tool, ToolContext, ToolError, ToolLimits, ToolOutput, refuse_stale, summarize_files};
use journeyman_workspace::{
    Change, ChangeSet, ExpectedState, FileBody, FileContent, Workspace, WorkspaceError, unified_diff,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The tool's name.
pub(crate) const TOOL_NAME: &str = "apply_edit";

/// The input of a call: one `<edit>` block.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EditInput {
    path: RelPath,
    ops: Vec<EditOp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

/// Returns the call input for an `<edit>` block.
pub(crate) fn edit_to_input(edit: &Edit) -> Value {
    match &edit.description {
        Some(why) => json!({ "path": edit.path, "ops": edit.ops, "description": why }),
        None => json!({ "path": edit.path, "ops": edit.ops }),
    }
}

/// Returns the call input for the edits of a file in another format.
pub(crate) fn file_edits_to_input(file: &FileOps) -> Value {
    json!({ "path": file.path, "ops": file.ops })
}

/// The tool that applies `<edit>` blocks.
pub(crate) struct ApplyEditTool;

fn parse_input(input: &Value) -> Result<EditInput, ToolError> {
    serde_json::from_value(input.clone()).map_err(|error| ToolError::Arguments {
        tool: TOOL_NAME.into(),
        problems: error.to_string(),
        signature: "an <edit> block".to_owned(),
    })
}

impl Tool for ApplyEditTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: TOOL_NAME.to_owned(),
            description: "Applies one <edit> block.".to_owned(),
            input_schema: json!({ "type": "object" }),
        }
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        let EditInput { path, ops, .. } = parse_input(input)?;
        let targets =
            ops.into_iter().filter_map(|step| if let EditOp::Rename { to } = step { Some(to) } else { None });
        let writes = std::iter::once(path).chain(targets).collect();
        Ok(Effects { writes, ..Effects::default() })
    }

    fn summary(&self, input: &Value) -> String {
        let Ok(EditInput { path, description, .. }) = parse_input(input) else {
            return "edit a file".to_owned();
        };
        summarize_files("edit", &[path.to_string()], description.as_deref())
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn diff(&self, workspace: &Workspace, input: &Value) -> Result<Option<String>, ToolError> {
        let EditInput { path, ops, .. } = parse_input(input)?;
        let old = match workspace.read(&path, ToolLimits::default().file_bytes) {
            Ok(old) => Some(old),
            Err(WorkspaceError::NotFound { .. }) => None,
            Err(_) => return Ok(None),
        };
        let text = old.as_ref().and_then(FileContent::text);
        if old.is_some() && text.is_none() {
            return Ok(None);
        }
        let with = OpContext { path: &path, shown: None, allow: AllowedDifferences::default() };
        let outcome = apply_ops(text, &ops, &with);
        if let Some(refusal) = outcome.failed.first() {
            return Err(ToolError::Plan { problems: format!("{path}: {refusal}") });
        }
        // A new name is no difference; the arguments name it.
        if outcome.rename.is_some() {
            return Ok(None);
        }
        let new = outcome.content.as_deref().map(str::as_bytes);
        Ok(Some(unified_diff(&path, text.map(str::as_bytes), new)))
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let context = context.clone();
        async move {
            let input = parse_input(&input)?;
            tokio::task::spawn_blocking(move || apply_edit(&context, input))
                .await
                .unwrap_or_else(|died| Err(ToolError::Stopped(died.to_string())))
        }
        .boxed()
    }
}

fn apply_edit(context: &ToolContext, input: EditInput) -> Result<ToolOutput, ToolError> {
    let EditInput { path, ops, description } = input;
    let old = match context.workspace.read(&path, context.limits.file_bytes) {
        Ok(old) => Some(old),
        Err(WorkspaceError::NotFound { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    if let Some(old) = &old {
        refuse_stale(context, &path, old)?;
    }
    let text = match old.as_ref().map(|old| (&old.body, old.size)) {
        None => None,
        Some((FileBody::Text(text), _)) => Some(text.text.clone()),
        Some((_, size)) => return Err(ToolError::Binary { path, size }),
    };
    let outcome = apply_ops(
        text.as_deref(),
        &ops,
        &OpContext { path: &path, shown: None, allow: AllowedDifferences::default() },
    );
    if let Some(refusal) = outcome.failed.first() {
        return Ok(ToolOutput::failure(format!("{path}: {refusal}")));
    }
    if outcome.is_unchanged() {
        return Ok(ToolOutput::failure(format!("{path}: {}", Refusal::NoChange)));
    }
    let expected = old.as_ref().map_or(ExpectedState::Absent, |old| ExpectedState::Hash(old.hash));
    let mut changes = Vec::new();
    let mut hash = None;
    match &outcome.content {
        None => changes.push(Change::Delete { path: path.clone(), expected }),
        Some(content) => {
            if content.contains(SECRET_MASK) && !text.as_ref().is_some_and(|old| old.contains(SECRET_MASK)) {
                return Err(ToolError::Masked { path });
            }
            let bytes = match &old {
                Some(old) => {
                    old.encode(content).map_err(|source| ToolError::Encode { path: path.clone(), source })?
                }
                None => content.clone().into_bytes(),
            };
            hash = Some(ContentHash::of(&bytes));
            changes.push(Change::Write { path: path.clone(), content: bytes, expected });
            if let Some(to) = &outcome.rename {
                changes.push(Change::Rename { from: path.clone(), to: to.clone() });
            }
        }
    }
    let applied = context.workspace.apply(ChangeSet {
        call: Some(context.call.clone()),
        session: context.session.clone(),
        description,
        changes,
    })?;
    context.seen.note_changes(&context.workspace, &applied.changes);
    if let Some(hash) = hash {
        Arc::clone(&context.seen).record(outcome.rename.clone().unwrap_or_else(|| path.clone()), hash);
    }
    Ok(ToolOutput::text(describe_edit(&path, &outcome)).with_changes(&context.workspace, applied.changes))
}

/// Describes the applied edit, with notes on differences from the model's text.
fn describe_edit(path: &RelPath, outcome: &OpsOutcome) -> String {
    let mut text = match (&outcome.content, &outcome.rename) {
        (None, _) => format!("Deleted {path}."),
        (Some(_), Some(to)) => format!("Changed {path}, now {to}."),
        (Some(_), None) => format!("Changed {path}."),
    };
    for note in outcome.notes.iter().filter_map(|one| one.note.as_ref().map(|note| (one.line, note))) {
        text.push_str(&format!(" Line {}: {}.", note.0, note.1.trim_end_matches('.')));
    }
    text
}
