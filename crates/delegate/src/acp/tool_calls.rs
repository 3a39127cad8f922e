//! Tool calls, which an agent reports in any number of updates with the changed fields.

use std::collections::{BTreeSet, HashMap};
use std::path::{Component, Path};

use agent_client_protocol_schema::v1::{
    ContentBlock, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};

use journeyman_protocol::clip_to_bytes;

use crate::DelegateEvent;
use crate::bounds::{
    MAX_CHANGED_PATHS, MAX_ID_OR_PATH_BYTES, MAX_OPEN_TOOLS, MAX_TEXT_BYTES, MAX_TOOL_OUTPUT_BYTES, clip,
    one_line,
};
use crate::json_line::{summarize_input, tool_output};

/// Tools that have started and not ended, by the ids of their calls.
#[derive(Default)]
pub(super) struct OpenTools(HashMap<String, OpenTool>);

/// A tool in use.
struct OpenTool {
    kind: ToolKind,
    /// The first file that the tool works on.
    path: Option<String>,
    /// True if the tool works on a file outside of the directory.
    leaves_directory: bool,
}

impl OpenTools {
    /// Returns true for a tool in use that is allowed outside a sandbox: one that reads and edits
    /// files in the directory alone.
    pub(super) fn is_allowed_unconfined(&self, update: &ToolCallUpdate) -> bool {
        let tool = self.0.get(clip_to_bytes(&update.tool_call_id.0, MAX_ID_OR_PATH_BYTES));
        tool.is_some_and(|tool| {
            let kinds = [ToolKind::Read, ToolKind::Edit, ToolKind::Search, ToolKind::Think];
            kinds.contains(&tool.kind) && !tool.leaves_directory
        })
    }

    /// Reads an update of a tool call of an agent that works in a directory.
    pub(super) fn read(&mut self, update: &ToolCallUpdate, directory: &Path) -> Vec<DelegateEvent> {
        let mut events = Vec::new();
        let id = clip(&update.tool_call_id.0, MAX_ID_OR_PATH_BYTES);
        let fields = &update.fields;
        let changed = changed_paths(fields);
        let leaves_directory = paths_of(fields).any(|path| !lies_within(path, directory));
        let is_room = self.0.len() < MAX_OPEN_TOOLS;
        match self.0.get_mut(&id) {
            Some(tool) => {
                tool.kind = fields.kind.unwrap_or(tool.kind);
                tool.path = tool.path.take().or_else(|| changed.first().cloned());
                tool.leaves_directory |= leaves_directory;
            }
            None if is_room => {
                let kind = fields.kind.unwrap_or_default();
                let path = changed.first().cloned();
                self.0.insert(id.clone(), OpenTool { kind, path, leaves_directory });
                let title = one_line(fields.title.as_deref().unwrap_or_default());
                let input = fields.raw_input.as_ref().map(summarize_input).filter(|input| !input.is_empty());
                let name = fields.name.as_deref().map(one_line);
                let tool = name.unwrap_or_else(|| tool_name(kind).to_owned());
                events.push(DelegateEvent::ToolStart {
                    id: id.clone(),
                    tool,
                    summary: input.unwrap_or(title),
                });
            }
            None => return events,
        }
        let failed = match fields.status {
            Some(ToolCallStatus::Completed) => false,
            Some(ToolCallStatus::Failed) => true,
            _ => return events,
        };
        let Some(OpenTool { kind, path, .. }) = self.0.remove(&id) else { return events };
        events.push(DelegateEvent::ToolEnd { id, failed, output: format_tool_output(fields) });
        let paths: Vec<String> =
            changed.into_iter().chain(path).collect::<BTreeSet<_>>().into_iter().collect();
        if !failed && !paths.is_empty() && matches!(kind, ToolKind::Edit | ToolKind::Delete | ToolKind::Move)
        {
            events.push(DelegateEvent::FilesChanged(paths));
        }
        events
    }
}

/// Returns the files that a tool works on, up to a bound.
fn changed_paths(fields: &ToolCallUpdateFields) -> BTreeSet<String> {
    let paths = paths_of(fields).take(MAX_CHANGED_PATHS);
    paths.map(|path| clip(&path.to_string_lossy(), MAX_ID_OR_PATH_BYTES)).collect()
}

fn paths_of(fields: &ToolCallUpdateFields) -> impl Iterator<Item = &Path> {
    let diffs = fields.content.iter().flatten().filter_map(|content| match content {
        ToolCallContent::Diff(diff) => Some(diff.path.as_path()),
        _ => None,
    });
    diffs.chain(fields.locations.iter().flatten().map(|location| location.path.as_path()))
}

fn lies_within(path: &Path, directory: &Path) -> bool {
    (path.is_relative() || path.starts_with(directory))
        && !path.components().any(|part| part == Component::ParentDir)
}

fn format_tool_output(fields: &ToolCallUpdateFields) -> String {
    let mut output = String::new();
    for content in fields.content.iter().flatten() {
        if let ToolCallContent::Content(content) = content
            && let Some(text) = block_text(&content.content)
            && output.len() < MAX_TOOL_OUTPUT_BYTES
        {
            output.push_str(&clip(&text, MAX_TOOL_OUTPUT_BYTES.saturating_sub(output.len())));
        }
    }
    match &fields.raw_output {
        Some(raw) if output.is_empty() => tool_output(raw),
        _ => output,
    }
}

fn tool_name(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Read => "read",
        ToolKind::Edit => "edit",
        ToolKind::Delete => "delete",
        ToolKind::Move => "move",
        ToolKind::Search => "search",
        ToolKind::Execute => "execute",
        ToolKind::Think => "think",
        ToolKind::Fetch => "fetch",
        _ => "tool",
    }
}

/// Returns the text of a block, if it is a text block.
pub(super) fn block_text(content: &ContentBlock) -> Option<String> {
    match content {
        ContentBlock::Text(text) => Some(clip(&text.text, MAX_TEXT_BYTES)),
        _ => None,
    }
}
