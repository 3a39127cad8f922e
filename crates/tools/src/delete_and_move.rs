//! `delete_file` and `move_file`: changes of a whole file, whatever its content.

use std::path::Path;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_protocol::{Effects, RelPath, ToolSpec};
use journeyman_workspace::{
    Change, ChangeSet, ExpectedState, FileContent, NotAFile, StatKind, Workspace, WorkspaceError,
    unified_diff,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::planned_edits::summarize_files;
use crate::stale::refuse_stale;
use crate::tool::run_blocking;
use crate::tool_interface::{ToolInterface, not_found};
use crate::{Tool, ToolContext, ToolError, ToolLimits, ToolOutput};

#[derive(Deserialize, JsonSchema)]
struct DeleteFileArguments {
    path: String,
    why: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct MoveFileArguments {
    path: String,
    /// New path; nothing may be there
    to: String,
    why: Option<String>,
}

/// The `delete_file` tool.
pub(crate) struct DeleteFile {
    shape: ToolInterface,
}

/// The `move_file` tool.
pub(crate) struct MoveFile {
    shape: ToolInterface,
}

impl DeleteFile {
    pub(crate) fn new(root: Option<&Path>) -> Self {
        Self {
            shape: ToolInterface::for_arguments::<DeleteFileArguments>(
                "delete_file",
                "Deletes a file.",
                root,
            ),
        }
    }

    fn parse_request(&self, input: &Value) -> Result<(RelPath, Option<String>), ToolError> {
        let DeleteFileArguments { path, why } = self.shape.read_arguments(input)?;
        Ok((self.shape.parse_path(&path)?, why))
    }
}

impl MoveFile {
    pub(crate) fn new(root: Option<&Path>) -> Self {
        let description = "Moves or renames a file. Change what names it, too.";
        Self { shape: ToolInterface::for_arguments::<MoveFileArguments>("move_file", description, root) }
    }

    fn parse_request(&self, input: &Value) -> Result<(RelPath, RelPath, Option<String>), ToolError> {
        let MoveFileArguments { path, to, why } = self.shape.read_arguments(input)?;
        let (path, to) = (self.shape.parse_path(&path)?, self.shape.parse_path(&to)?);
        if path == to {
            return Err(self.shape.argument_error("`path` and `to` are the same"));
        }
        Ok((path, to, why))
    }
}

/// Reads a file that is about to be deleted or moved. Refuses it if it differs from what the model
/// saw, or is too large to be restored.
fn read_current_file(context: &ToolContext, path: &RelPath) -> Result<FileContent, ToolError> {
    let workspace = &context.workspace;
    match workspace.stat(path)? {
        None => return Err(not_found(workspace, path.clone())),
        Some(stat) if stat.kind == StatKind::Directory => {
            return Err(WorkspaceError::NotAFile { path: path.clone(), kind: NotAFile::Directory }.into());
        }
        Some(_) => {}
    }
    let content = workspace.read(path, context.limits.file_bytes)?;
    refuse_stale(context, path, &content)?;
    Ok(content)
}

fn apply_change(
    context: &ToolContext,
    wish: Change,
    description: Option<String>,
    done: String,
) -> Result<ToolOutput, ToolError> {
    let applied = context.workspace.apply(ChangeSet {
        call: Some(context.call.clone()),
        session: context.session.clone(),
        description,
        changes: vec![wish],
    })?;
    context.seen.note_changes(&context.workspace, &applied.changes);
    Ok(ToolOutput::text(done).with_changes(&context.workspace, applied.changes))
}

impl Tool for DeleteFile {
    fn spec(&self) -> ToolSpec {
        self.shape.spec()
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        Ok(Effects { writes: vec![self.parse_request(input)?.0], ..Effects::default() })
    }

    fn summary(&self, input: &Value) -> String {
        match self.parse_request(input) {
            Ok((path, why)) => summarize_files("delete", &[path.to_string()], why.as_deref()),
            Err(_) => "delete a file".to_owned(),
        }
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn diff(&self, workspace: &Workspace, input: &Value) -> Result<Option<String>, ToolError> {
        let (path, _) = self.parse_request(input)?;
        let old = match workspace.read(&path, ToolLimits::default().file_bytes) {
            Err(WorkspaceError::NotFound { .. }) => return Err(not_found(workspace, path)),
            old => old.ok(),
        };
        let text = old.as_ref().and_then(FileContent::text);
        Ok(text.map(|text| unified_diff(&path, Some(text.as_bytes()), None)))
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let (path, why) = self.parse_request(&input)?;
            let context = context.clone();
            run_blocking(move || {
                let old = read_current_file(&context, &path)?;
                let done = format!("Deleted {path}");
                apply_change(
                    &context,
                    Change::Delete { path, expected: ExpectedState::Hash(old.hash) },
                    why,
                    done,
                )
            })
            .await
        }
        .boxed()
    }
}

impl Tool for MoveFile {
    fn spec(&self) -> ToolSpec {
        self.shape.spec()
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        let (path, to, _) = self.parse_request(input)?;
        Ok(Effects { writes: vec![path, to], ..Effects::default() })
    }

    fn summary(&self, input: &Value) -> String {
        match self.parse_request(input) {
            Ok((path, to, why)) => summarize_files("move", &[format!("{path} to {to}")], why.as_deref()),
            Err(_) => "move a file".to_owned(),
        }
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let (path, to, why) = self.parse_request(&input)?;
            let context = context.clone();
            run_blocking(move || {
                let old = read_current_file(&context, &path)?;
                let done = format!("Moved {path} to {to}");
                let was_known = context.seen.compare(&path, &old.hash) == crate::SeenStatus::Current;
                let output =
                    apply_change(&context, Change::Rename { from: path, to: to.clone() }, why, done)?;
                if let Some(text) = old.text().filter(|_| was_known) {
                    context.seen.record_text(to, old.hash, text);
                }
                Ok(output)
            })
            .await
        }
        .boxed()
    }
}
