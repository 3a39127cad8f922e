//! `read_file`: a window of a text, several files, an image, or a command's whole output.

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

use crate::excerpt::{numbered_lines_from, to_one_line};
use crate::image;
use crate::planned_edits::summarize_files;
use crate::tool::run_blocking;
use crate::tool_interface::{ToolInterface, not_found};
use crate::{Tool, ToolContext, ToolError, ToolOutput};

/// Prefix of a path that reads the output of the call whose id follows.
pub(crate) const OUTPUT_PREFIX: &str = "output:";
/// Maximum bytes of a path in a summary.
const MAX_SUMMARY_BYTES: usize = 120;
/// Maximum number of files of one call: each gets a part of what one result may have.
const MAX_FILES: usize = 20;

#[derive(Deserialize, JsonSchema)]
struct ReadFileArguments {
    /// File, or output:ID
    path: Option<String>,
    /// Several files at once
    paths: Option<Vec<String>>,
    /// First line, from 1
    offset: Option<u64>,
    /// Lines (2000)
    limit: Option<u64>,
}

/// The `read_file` tool.
pub(crate) struct ReadFile {
    shape: ToolInterface,
}

/// The requested lines.
#[derive(Clone, Copy)]
struct LineRange {
    offset: u64,
    limit: Option<u64>,
    /// Maximum bytes of the lines.
    bytes: usize,
}

/// The target of a call.
enum ReadRequest {
    /// The output of a call.
    Output(String),
    Files(Vec<RelPath>),
}

impl ReadFile {
    pub(crate) fn new(root: Option<&Path>) -> Self {
        let description = "Reads a text file, with line numbers, or an image. Long files come in parts: go on \
                           with offset.";
        Self { shape: ToolInterface::for_arguments::<ReadFileArguments>("read_file", description, root) }
    }

    fn parse_request(&self, path: Option<String>, paths: Vec<String>) -> Result<ReadRequest, ToolError> {
        if let Some(call) = path.as_deref().and_then(|path| path.strip_prefix(OUTPUT_PREFIX))
            && paths.is_empty()
        {
            return Ok(ReadRequest::Output(call.to_owned()));
        }
        let mut files: Vec<RelPath> = Vec::new();
        for given in path.iter().chain(&paths) {
            let file = self.shape.parse_path(given)?;
            if !files.contains(&file) {
                files.push(file);
            }
        }
        match files.len() {
            0 => Err(self.shape.argument_error("`path` is missing")),
            1..=MAX_FILES => Ok(ReadRequest::Files(files)),
            many => Err(self
                .shape
                .argument_error(format!("{many} files are too many for one call; at most {MAX_FILES}"))),
        }
    }

    async fn run(&self, context: &ToolContext, input: Value) -> Result<ToolOutput, ToolError> {
        let ReadFileArguments { path, paths, offset, limit } = self.shape.read_arguments(&input)?;
        // Models write 0 for "from the beginning" and "no limit".
        let lines = LineRange {
            offset: offset.unwrap_or(1).max(1),
            limit: limit.filter(|limit| *limit > 0),
            bytes: context.limits.read_bytes,
        };
        let mut files = match self.parse_request(path, paths.unwrap_or_default())? {
            ReadRequest::Output(call) => {
                let output = context.outputs.read(&call).await?;
                let mut parts = Vec::new();
                if !output.text.is_empty() || output.images.is_empty() {
                    parts.push(ResultPart::Text {
                        text: show_lines(&output.text, "the output", lines, context),
                    });
                }
                parts.extend(output.images.into_iter().map(ResultPart::Image));
                return Ok(ToolOutput { parts, ..ToolOutput::text("") });
            }
            ReadRequest::Files(files) => files,
        };
        let context = context.clone();
        run_blocking(move || match (files.pop(), files.is_empty()) {
            (Some(only), true) => read_one_file(&context, only, lines),
            (last, _) => {
                files.extend(last);
                Ok(read_several_files(&context, files, lines))
            }
        })
        .await
    }
}

/// Reads several files. The error of a file stands in place of its text. Space that short files
/// don't need goes to the files after them.
fn read_several_files(context: &ToolContext, files: Vec<RelPath>, lines: LineRange) -> ToolOutput {
    let (mut parts, mut room, mut left) = (Vec::new(), lines.bytes, files.len());
    let mut failed = 0;
    for path in files {
        let heading = format!("== {path} ==\n");
        let bytes = room / left.max(1);
        left = left.saturating_sub(1);
        let mut texts = match read_one_file(context, path, LineRange { bytes, ..lines }) {
            Ok(output) => output.parts,
            Err(error) => {
                failed += 1;
                vec![ResultPart::Text { text: format!("error: {error}") }]
            }
        };
        if let Some(ResultPart::Text { text }) = texts.first_mut() {
            room = room.saturating_sub(text.len());
            text.insert_str(0, &heading);
        } else {
            parts.push(ResultPart::Text { text: heading });
        }
        parts.append(&mut texts);
    }
    let is_error = parts.len() == failed;
    ToolOutput { parts: join_texts(parts), is_error, ..ToolOutput::text("") }
}

/// Joins adjacent texts.
fn join_texts(parts: Vec<ResultPart>) -> Vec<ResultPart> {
    let mut joined: Vec<ResultPart> = Vec::new();
    for part in parts {
        match (joined.last_mut(), part) {
            (Some(ResultPart::Text { text: before }), ResultPart::Text { text }) => {
                before.push_str(if before.ends_with('\n') { "" } else { "\n" });
                before.push_str(&text);
            }
            (_, part) => joined.push(part),
        }
    }
    joined
}

fn read_one_file(context: &ToolContext, path: RelPath, lines: LineRange) -> Result<ToolOutput, ToolError> {
    let workspace = &context.workspace;
    match workspace.stat(&path)? {
        None => return Err(not_found(workspace, path)),
        Some(stat) if stat.kind == StatKind::Directory => {
            return Err(WorkspaceError::NotAFile { path, kind: NotAFile::Directory }.into());
        }
        Some(_) => {}
    }
    if image::is_image_name(path.as_path()) {
        let image = image::read_image(workspace, &path, context.limits.image_bytes)?;
        return Ok(ToolOutput { parts: vec![ResultPart::Image(image)], ..ToolOutput::text("") });
    }
    let content = workspace.read(&path, context.limits.file_bytes)?;
    let Some(text) = content.text() else { return Err(ToolError::Binary { path, size: content.size }) };
    let shown = if text.is_empty() {
        "(the file is empty)".to_owned()
    } else {
        show_lines(&redact_settings(&path, text), "the file", lines, context)
    };
    context.seen.record_text(path, content.hash, text);
    Ok(ToolOutput::text(shown))
}

/// Returns the text of a file, with the secrets of a settings file masked.
pub(crate) fn redact_settings<'t>(path: &RelPath, text: &'t str) -> Cow<'t, str> {
    if is_settings_file(&path.to_string()) { mask_settings(text) } else { Cow::Borrowed(text) }
}

/// Returns the requested lines, and a note on how to read on.
fn show_lines(text: &str, what: &str, lines: LineRange, context: &ToolContext) -> String {
    let limits = &context.limits;
    let limit = lines.limit.unwrap_or(limits.read_lines).min(limits.read_lines);
    let window = numbered_lines_from(text, lines.offset, limit, lines.bytes);
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
        let ReadFileArguments { path, paths, .. } = self.shape.read_arguments(input)?;
        match self.parse_request(path, paths.unwrap_or_default())? {
            ReadRequest::Output(_) => Ok(Effects::default()),
            ReadRequest::Files(reads) => Ok(Effects { reads, ..Effects::default() }),
        }
    }

    fn summary(&self, input: &Value) -> String {
        let Ok(ReadFileArguments { path, paths, offset, .. }) = self.shape.read_arguments(input) else {
            return "read a file".to_owned();
        };
        let paths: Vec<String> = path.into_iter().chain(paths.unwrap_or_default()).collect();
        match (paths.as_slice(), offset) {
            ([], _) => "read a file".to_owned(),
            ([path], Some(offset)) if offset > 1 => {
                format!("read {} from line {offset}", to_one_line(path, MAX_SUMMARY_BYTES))
            }
            _ => summarize_files("read", &paths, None),
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
