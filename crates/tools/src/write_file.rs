//! `write_file`: creates or replaces a whole file.

use std::path::Path;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_edit::strip_fence;
use journeyman_policy::secrets::SECRET_MASK;
use journeyman_protocol::{Effects, RelPath, ToolSpec};
use journeyman_workspace::{
    Change, ChangeSet, ExpectedState, FileBody, FileContent, LineEnding, Workspace, WorkspaceError,
    edit_diff, unified_diff,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::planned_edits::summarize_files;
use crate::stale::stale_error;
use crate::tool::run_blocking;
use crate::tool_interface::ToolInterface;
use crate::{SeenStatus, Tool, ToolContext, ToolError, ToolLimits, ToolOutput};

#[derive(Deserialize, JsonSchema)]
struct WriteFileArguments {
    path: String,
    content: String,
    why: Option<String>,
}

/// The `write_file` tool.
pub(crate) struct WriteFile {
    shape: ToolInterface,
}

impl WriteFile {
    pub(crate) fn new(root: Option<&Path>) -> Self {
        let description = "Creates a file, or replaces one that you have read; edit_file changes parts.";
        Self { shape: ToolInterface::for_arguments::<WriteFileArguments>("write_file", description, root) }
    }

    async fn run(&self, context: &ToolContext, input: Value) -> Result<ToolOutput, ToolError> {
        let arguments: WriteFileArguments = self.shape.read_arguments(&input)?;
        let path = self.shape.parse_path(&arguments.path)?;
        let context = context.clone();
        run_blocking(move || write(&context, path, arguments.content, arguments.why)).await
    }
}

fn write(
    context: &ToolContext,
    path: RelPath,
    text: String,
    description: Option<String>,
) -> Result<ToolOutput, ToolError> {
    let old = match context.workspace.read(&path, context.limits.file_bytes) {
        Ok(old) => Some(old),
        Err(WorkspaceError::NotFound { .. }) => None,
        // Too large to have been read.
        Err(WorkspaceError::TooLarge { .. }) => return Err(ToolError::NotSeen { path }),
        Err(error) => return Err(error.into()),
    };
    if old.is_none() && context.seen.note_deletion(&path) {
        return Err(ToolError::GoneSince { path });
    }
    if let Some(old) = &old {
        match context.seen.compare(&path, &old.hash) {
            SeenStatus::Current => {}
            // An empty file has no content to lose.
            SeenStatus::Never if old.size == 0 => {}
            SeenStatus::Never => return Err(ToolError::NotSeen { path }),
            SeenStatus::Changed | SeenStatus::ChangedByUs => return Err(stale_error(context, path, old)),
        }
    }
    let had_mask = old.as_ref().and_then(FileContent::text).is_some_and(|old| old.contains(SECRET_MASK));
    if text.contains(SECRET_MASK) && !had_mask {
        return Err(ToolError::Masked { path });
    }
    let fenced = |text: &str| text.starts_with("```") || text.starts_with("~~~");
    let was_fenced = old.as_ref().and_then(FileContent::text).is_some_and(fenced);
    let inside = strip_fence(&path, &text).filter(|_| !was_fenced).map(str::to_owned);
    let unfenced = if inside.is_some() { ", without the fence around it" } else { "" };
    let text = inside.unwrap_or(text);
    let lines = text.lines().count();
    let (bytes, kept) = encode_like(old.as_ref(), text, &path)?;
    let written = FileContent::from_bytes(bytes.clone(), false);
    let hash = written.hash;
    let expected = old.as_ref().map_or(ExpectedState::Absent, |old| ExpectedState::Hash(old.hash));
    let applied = context.workspace.apply(ChangeSet {
        call: Some(context.call.clone()),
        session: context.session.clone(),
        description,
        changes: vec![Change::Write { path: path.clone(), content: bytes, expected }],
    })?;
    context.seen.note_changes(&context.workspace, &applied.changes);
    match written.text() {
        Some(text) => context.seen.record_text(path.clone(), hash, text),
        None => context.seen.record(path.clone(), hash),
    }
    let texts = old.as_ref().filter(|old| old.hash != hash).and_then(|old| old.text().zip(written.text()));
    let diff = texts.map(|(before, after)| edit_diff(&path, before, after));
    let did = match old {
        Some(old) if old.hash == hash => format!("{path} already had this content; nothing changed"),
        Some(_) => format!("Replaced {path} ({lines} lines{kept}{unfenced})"),
        None => format!("Created {path} ({lines} lines{unfenced})"),
    };
    let output = ToolOutput::text(did).with_changes(&context.workspace, applied.changes);
    Ok(ToolOutput { diff, ..output })
}

/// Encodes the new text as the old file is, with its line endings, and returns a note on these.
fn encode_like(
    old: Option<&FileContent>,
    text: String,
    path: &RelPath,
) -> Result<(Vec<u8>, &'static str), ToolError> {
    let Some(old) = old else { return Ok((text.into_bytes(), "")) };
    let FileBody::Text(style) = &old.body else { return Ok((text.into_bytes(), "")) };
    let to_crlf = style.line_ending == LineEnding::CrLf && !text.contains('\r');
    let text = if to_crlf { text.replace('\n', "\r\n") } else { text };
    let bytes = old.encode(&text).map_err(|source| ToolError::Encode { path: path.clone(), source })?;
    Ok((bytes, if to_crlf { ", CRLF line endings kept" } else { "" }))
}

impl Tool for WriteFile {
    fn spec(&self) -> ToolSpec {
        self.shape.spec()
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        let arguments: WriteFileArguments = self.shape.read_arguments(input)?;
        Ok(Effects { writes: vec![self.shape.parse_path(&arguments.path)?], ..Effects::default() })
    }

    fn summary(&self, input: &Value) -> String {
        match self.shape.read_arguments::<WriteFileArguments>(input) {
            Ok(WriteFileArguments { path, why, .. }) => summarize_files("write", &[path], why.as_deref()),
            Err(_) => "write a file".to_owned(),
        }
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn diff(&self, workspace: &Workspace, input: &Value) -> Result<Option<String>, ToolError> {
        let arguments: WriteFileArguments = self.shape.read_arguments(input)?;
        let path = self.shape.parse_path(&arguments.path)?;
        let old = match workspace.read(&path, ToolLimits::default().file_bytes) {
            Ok(old) => Some(old),
            Err(WorkspaceError::NotFound { .. }) => None,
            Err(_) => return Ok(None),
        };
        let before = old.as_ref().and_then(FileContent::text);
        if old.is_some() && before.is_none() {
            return Ok(None);
        }
        Ok(Some(unified_diff(&path, before.map(str::as_bytes), Some(arguments.content.as_bytes()))))
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.run(context, input).boxed()
    }
}
