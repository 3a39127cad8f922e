//! `read_file`: a window of a text, an image, or a command's whole output.

use std::borrow::Cow;
use std::path::Path;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_policy::secrets::{is_settings_file, mask_settings};
use journeyman_protocol::{Effects, RelPath, ResultPart, ToolSpec};
use journeyman_workspace::{NotAFile, StatKind, WorkspaceError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::excerpt::{lines_from, shown_on_one_line};
use crate::image;
use crate::shape::{Shape, not_found};
use crate::tool::in_background;
use crate::{Tool, ToolContext, ToolError, ToolOutput};

/// Prefix of a call's id that reads the call's output instead of a file.
pub(crate) const OUTPUT_PREFIX: &str = "output:";
/// A path is cut to this many bytes in a summary.
const SUMMARY_BYTES: usize = 120;

#[derive(Deserialize, JsonSchema)]
struct ReadFileArguments {
    /// File, or output:ID
    path: String,
    /// First line, from 1
    offset: Option<u64>,
    /// Lines (2000)
    limit: Option<u64>,
}

/// Reads files.
pub(crate) struct ReadFile {
    shape: Shape,
}

/// The requested lines.
#[derive(Clone, Copy)]
struct Lines {
    offset: u64,
    limit: Option<u64>,
}

impl ReadFile {
    pub(crate) fn new(root: Option<&Path>) -> Self {
        let description = "Reads a text file, with line numbers, or an image. Long files come in parts: go on \
                           with offset.";
        Self { shape: Shape::of::<ReadFileArguments>("read_file", description, root) }
    }

    async fn run(&self, context: &ToolContext, input: Value) -> Result<ToolOutput, ToolError> {
        let arguments: ReadFileArguments = self.shape.read(&input)?;
        // 0 is what models write for `from the beginning` and `no limit`.
        let lines = Lines {
            offset: arguments.offset.unwrap_or(1).max(1),
            limit: arguments.limit.filter(|limit| *limit > 0),
        };
        if let Some(call) = arguments.path.strip_prefix(OUTPUT_PREFIX) {
            let text = context.outputs.read(call).await?;
            return Ok(ToolOutput::text(show_lines(&text, "the output", lines, context)));
        }
        let path = self.shape.path(&arguments.path)?;
        let context = context.clone();
        in_background(move || read(&context, path, lines)).await
    }
}

fn read(context: &ToolContext, path: RelPath, lines: Lines) -> Result<ToolOutput, ToolError> {
    let workspace = &context.workspace;
    match workspace.stat(&path)? {
        None => return Err(not_found(workspace, path)),
        Some(stat) if stat.kind == StatKind::Directory => {
            return Err(WorkspaceError::NotAFile { path, kind: NotAFile::Directory }.into());
        }
        Some(_) => {}
    }
    if image::is_image(&path) {
        let image = image::read(workspace, &path, context.limits.image_bytes)?;
        return Ok(ToolOutput { parts: vec![ResultPart::Image(image)], ..ToolOutput::text("") });
    }
    let content = workspace.read(&path, context.limits.file_bytes)?;
    let Some(text) = content.text() else { return Err(ToolError::Binary { path, size: content.size }) };
    let shown = if text.is_empty() {
        "(the file is empty)".to_owned()
    } else {
        show_lines(&without_settings(&path, text), "the file", lines, context)
    };
    context.seen.record_text(path, content.hash, text);
    Ok(ToolOutput::text(shown))
}

/// Returns the text of a file without the secrets that a file of settings has.
pub(crate) fn without_settings<'t>(path: &RelPath, text: &'t str) -> Cow<'t, str> {
    if is_settings_file(&path.to_string()) { mask_settings(text) } else { Cow::Borrowed(text) }
}

/// The wanted lines, and how to read on.
fn show_lines(text: &str, what: &str, lines: Lines, context: &ToolContext) -> String {
    let limits = &context.limits;
    let limit = lines.limit.unwrap_or(limits.read_lines).min(limits.read_lines);
    let window = lines_from(text, lines.offset, limit, limits.read_bytes);
    if window.last == 0 {
        return format!("(line {} is beyond the end: {what} has {} lines)", lines.offset, window.total);
    }
    let mut shown = window.text;
    if window.last < window.total {
        let next = window.last + 1;
        shown.push_str(&format!("[{what} has {} lines; go on with offset {next}]", window.total));
    }
    shown
}

impl Tool for ReadFile {
    fn spec(&self) -> ToolSpec {
        self.shape.spec()
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        let arguments: ReadFileArguments = self.shape.read(input)?;
        if arguments.path.starts_with(OUTPUT_PREFIX) {
            return Ok(Effects::default());
        }
        Ok(Effects { reads: vec![self.shape.path(&arguments.path)?], ..Effects::default() })
    }

    fn summary(&self, input: &Value) -> String {
        match self.shape.read::<ReadFileArguments>(input) {
            Ok(ReadFileArguments { path, offset: Some(offset), .. }) if offset > 1 => {
                format!("read {} from line {offset}", shown_on_one_line(&path, SUMMARY_BYTES))
            }
            Ok(ReadFileArguments { path, .. }) => format!("read {}", shown_on_one_line(&path, SUMMARY_BYTES)),
            Err(_) => "read a file".to_owned(),
        }
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.run(context, input).boxed()
    }
}
