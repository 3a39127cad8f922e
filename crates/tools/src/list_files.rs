//! `list_files`: the project's files by name.

use std::path::Path;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_protocol::{Effects, RelPath, ToolSpec};
use journeyman_workspace::{ListOptions, StatKind};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::excerpt::to_one_line;
use crate::tool::run_blocking;
use crate::tool_interface::{ToolInterface, bounded_count, not_found};
use crate::{Tool, ToolContext, ToolError, ToolOutput};

/// Default number of files: enough for a directory of a large project.
const DEFAULT_FILES: u64 = 500;
/// Maximum number of files; beyond this the bound on bytes applies anyway.
const MAX_FILES: u64 = 5_000;
/// Maximum bytes of a path or glob in a summary.
const MAX_SUMMARY_BYTES: usize = 100;

#[derive(Deserialize, JsonSchema)]
struct ListFilesArguments {
    /// Directory
    path: Option<String>,
    /// Such as *.rs or src/**/*.ts
    glob: Option<String>,
    limit: Option<u64>,
}

/// The `list_files` tool.
pub(crate) struct ListFiles {
    shape: ToolInterface,
}

impl ListFiles {
    pub(crate) fn new(root: Option<&Path>) -> Self {
        let description = "Lists the project's files, without ignored ones.";
        Self { shape: ToolInterface::for_arguments::<ListFilesArguments>("list_files", description, root) }
    }

    async fn run(&self, context: &ToolContext, input: Value) -> Result<ToolOutput, ToolError> {
        let arguments: ListFilesArguments = self.shape.read_arguments(&input)?;
        let under = self.shape.parse_directory("path", arguments.path.as_deref())?;
        let limit = bounded_count(arguments.limit, DEFAULT_FILES, MAX_FILES);
        let glob = self.shape.check_glob(arguments.glob)?;
        let context = context.clone();
        run_blocking(move || list_files(&context, under, glob, limit)).await
    }
}

fn list_files(
    context: &ToolContext,
    under: Option<RelPath>,
    glob: Option<String>,
    limit: usize,
) -> Result<ToolOutput, ToolError> {
    if let Some(path) = &under {
        match context.workspace.stat(path)? {
            None => return Err(not_found(&context.workspace, path.clone())),
            Some(stat) if stat.kind != StatKind::Directory => {
                return Ok(ToolOutput::text(format!("{path}\n(this is a file, not a directory)")));
            }
            Some(_) => {}
        }
    }
    let listing = context.workspace.list(ListOptions { under, glob, limit, include_ignored: false })?;
    let mut text = String::new();
    let mut listed = 0usize;
    for path in &listing.paths {
        let path = path.to_string();
        if text.len() + path.len() > context.limits.result_bytes {
            break;
        }
        text.push_str(&path);
        text.push('\n');
        listed += 1;
    }
    if listing.paths.is_empty() {
        text.push_str("(no files)");
    } else if listed < listing.paths.len() || listing.truncated {
        text.push_str(&format!("[the first {listed}; there are more: narrow down with path or glob]"));
    }
    Ok(ToolOutput::text(text))
}

impl Tool for ListFiles {
    fn spec(&self) -> ToolSpec {
        self.shape.spec()
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        let arguments: ListFilesArguments = self.shape.read_arguments(input)?;
        self.shape.directory_read_effects(arguments.path.as_deref())
    }

    fn summary(&self, input: &Value) -> String {
        let Ok(arguments) = self.shape.read_arguments::<ListFilesArguments>(input) else {
            return "list files".to_owned();
        };
        let path = arguments.path.filter(|path| !path.is_empty()).unwrap_or_else(|| ".".to_owned());
        match arguments.glob {
            Some(glob) => {
                format!(
                    "list {} in {}",
                    to_one_line(&glob, MAX_SUMMARY_BYTES),
                    to_one_line(&path, MAX_SUMMARY_BYTES)
                )
            }
            None => format!("list {}", to_one_line(&path, MAX_SUMMARY_BYTES)),
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
