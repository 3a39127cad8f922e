//! `apply_patch`: a patch in the envelope `*** Begin Patch` over any number of files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_edit::{Edit, Format, ReplySource, read_reply};
use journeyman_protocol::{Effects, RelPath, ToolSpec};
use journeyman_workspace::Workspace;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::planned_edits::{apply_edits, diff_edits, edit_effects, summarize_files};
use crate::tool::run_blocking;
use crate::tool_interface::ToolInterface;
use crate::{Tool, ToolContext, ToolError, ToolOutput};

/// Maximum number of a patch's problems that the model is told.
const MAX_PROBLEMS: usize = 3;

#[derive(Deserialize, JsonSchema)]
struct ApplyPatchArguments {
    patch: String,
    why: Option<String>,
}

/// The `apply_patch` tool.
pub(crate) struct ApplyPatch {
    shape: ToolInterface,
    root: Option<PathBuf>,
}

/// A parsed patch.
struct Patch {
    edits: Vec<Edit>,
    why: Option<String>,
}

impl ApplyPatch {
    pub(crate) fn new(root: Option<&Path>) -> Self {
        let description = "Changes files by a patch, all or nothing: `*** Begin Patch`; a section a file, `*** Add \
                           File: PATH`, `*** Delete File: PATH` or `*** Update File: PATH` (`*** Move to: PATH`) with \
                           hunks, `@@ enclosing line` and lines after ' ', - or +; `*** End Patch`.";
        Self {
            shape: ToolInterface::for_arguments::<ApplyPatchArguments>("apply_patch", description, root),
            root: root.map(Path::to_owned),
        }
    }

    fn parse_patch(&self, input: &Value) -> Result<Patch, ToolError> {
        let ApplyPatchArguments { patch, why } = self.shape.read_arguments(input)?;
        let text = self.with_relative_paths(&patch);
        // Paths stay as they are written, so that the effects are those of the call.
        let files: BTreeMap<RelPath, String> = BTreeMap::new();
        let source = ReplySource { reply: &text, path: None, finished: true, files: &files };
        let reading = read_reply(&source, Some(Format::Patch));
        if !reading.problems.is_empty() {
            let problems: Vec<String> =
                reading.problems.iter().take(MAX_PROBLEMS).map(ToString::to_string).collect();
            return Err(ToolError::Plan { problems: problems.join("\n") });
        }
        if reading.edits.is_empty() {
            return Err(self.shape.argument_error(
                "`patch` has no section of a file between `*** Begin Patch` and `*** End Patch`",
            ));
        }
        Ok(Patch { edits: reading.edits, why })
    }

    /// Makes paths beneath the project's root relative, because models write absolute ones.
    fn with_relative_paths(&self, patch: &str) -> String {
        let Some(root) = self.root.as_deref().and_then(Path::to_str) else { return patch.to_owned() };
        let prefix = format!(": {}/", root.trim_end_matches('/'));
        let lines = patch.split_inclusive('\n').map(|line| match line.trim_start().starts_with("*** ") {
            true => line.replacen(&prefix, ": ", 1),
            false => line.to_owned(),
        });
        lines.collect()
    }
}

impl Tool for ApplyPatch {
    fn spec(&self) -> ToolSpec {
        self.shape.spec()
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        Ok(edit_effects(&self.parse_patch(input)?.edits))
    }

    fn summary(&self, input: &Value) -> String {
        let Ok(Patch { edits, why }) = self.parse_patch(input) else { return "apply a patch".to_owned() };
        let mut paths: Vec<String> = edits.iter().map(|edit| edit.path.to_string()).collect();
        paths.dedup();
        summarize_files("patch", &paths, why.as_deref())
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn diff(&self, workspace: &Workspace, input: &Value) -> Result<Option<String>, ToolError> {
        diff_edits(workspace, &self.parse_patch(input)?.edits)
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let Patch { edits, why } = self.parse_patch(&input)?;
            let context = context.clone();
            run_blocking(move || apply_edits(&context, &edits, why)).await
        }
        .boxed()
    }
}
