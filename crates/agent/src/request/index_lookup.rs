//! Index results for a task, before the first model request.
//!
//! Uses only the loaded index: nothing is built, updated or waited for. The index may be older than
//! the files, so the outline of a file whose content has changed is left empty.

use std::collections::HashSet;
use std::sync::Arc;

use journeyman_context::gathering::{ContextSources, GatheredContext, gather, is_worth_gathering};
use journeyman_context::pack_follow_up;
use journeyman_context::packing::shown_files;
use journeyman_index::Snapshot;
use journeyman_policy::secrets::unmasked_files;
use journeyman_protocol::{Block, Event, Message, RelPath, Tokens};
use journeyman_tools::SharedIndex;
use journeyman_workspace::{FileBody, Workspace};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::compaction::input_room::InputRoom;
use crate::session::context::SessionContext;

/// Maximum bytes of a file that is shown.
const MAX_FILE_BYTES: u64 = 2 << 20;
/// Maximum tokens of the results for a later message, and the divisor of the input room that bounds
/// them too.
const MAX_FOLLOW_UP_TOKENS: Tokens = Tokens(3_000);
const FOLLOW_UP_ROOM_DIVISOR: u64 = 12;

/// Starts an index lookup for a task. The result is `None` if no index is loaded or nothing
/// matches.
pub(crate) fn look_up_task(
    cx: &SessionContext,
    may_show: Arc<dyn Fn(&RelPath) -> bool + Send + Sync>,
    task: &str,
) -> JoinHandle<Option<GatheredContext>> {
    let (index, workspace, task) = (Arc::clone(&cx.index), Arc::clone(&cx.workspace), task.to_owned());
    tokio::task::spawn_blocking(move || find_in_index(&index, &workspace, &*may_show, &task))
}

/// Looks up a later message of the user in the index. Returns the results that the model hasn't
/// seen, as text, or `None` if no index is loaded, nothing is found in time, or the message has too
/// few words.
pub(crate) async fn look_up_message(
    cx: &mut SessionContext,
    may_show: Arc<dyn Fn(&RelPath) -> bool + Send + Sync>,
    message: &str,
) -> Option<String> {
    let timeout = cx.settings.index_timeout.filter(|_| is_worth_gathering(message))?;
    let found = tokio::time::timeout(timeout, look_up_task(cx, may_show, message)).await.ok()?.ok()??;
    let room = MAX_FOLLOW_UP_TOKENS.min(Tokens(InputRoom::for_model(cx).input.0 / FOLLOW_UP_ROOM_DIVISOR));
    let seen = seen_files(&cx.transcript.state().messages);
    let packed = pack_follow_up(&found, &|path| seen.contains(&*path.to_string()), room)?;
    cx.transcript.emit(Event::ContextPacked {
        tokens: packed.report.tokens,
        files_listed: 0,
        instructions: Vec::new(),
        files: Vec::new(),
        shares: packed.report.shares,
    });
    Some(cx.redactor.redact(&packed.message).into_owned())
}

/// Returns the files of which the model has seen text: shown in a message, or named in the
/// arguments of a call. A name in the map or in a listing is none.
fn seen_files(messages: &[Message]) -> HashSet<&str> {
    let mut seen = HashSet::new();
    for block in messages.iter().flat_map(|message| &message.content) {
        match block {
            Block::Text { text } => seen.extend(shown_files(text)),
            Block::ToolUse(call) => add_words(&call.input, &mut seen),
            _ => {}
        }
    }
    seen
}

/// Adds the words of all texts of a call's arguments.
fn add_words<'a>(value: &'a Value, words: &mut HashSet<&'a str>) {
    match value {
        Value::String(text) => words.extend(text.split_whitespace()),
        Value::Array(list) => list.iter().for_each(|item| add_words(item, words)),
        Value::Object(fields) => fields.values().for_each(|field| add_words(field, words)),
        _ => {}
    }
}

fn find_in_index(
    index: &SharedIndex,
    workspace: &Workspace,
    may_show: &dyn Fn(&RelPath) -> bool,
    task: &str,
) -> Option<GatheredContext> {
    let (project, snapshot) = index.last_snapshot()?;
    let history = project.saved_history();
    let graph = project.graph_without_waiting(&snapshot);
    let read = |file: u32, path: &RelPath| read_unchanged(&snapshot, workspace, file, path);
    let sources = ContextSources {
        snapshot: &snapshot,
        graph: graph.as_deref(),
        history: history.as_ref(),
        may_show: &unmasked_files(may_show),
        read: &read,
    };
    let redactor = index.redactor();
    gather(task, &sources).map(|found| found.map_subjects(|text| redactor.redact(text)))
}

/// Returns the text of a file, unless it has changed since it was indexed or parts of it are
/// secret.
fn read_unchanged(snapshot: &Snapshot, workspace: &Workspace, file: u32, path: &RelPath) -> Option<String> {
    let record = snapshot.file(file).map(|view| view.record).filter(|record| !record.flags.veiled)?;
    let content = workspace.read(path, MAX_FILE_BYTES).ok()?;
    match content.body {
        FileBody::Text(text) if *content.hash.as_bytes() == record.hash => Some(text.text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::{CallId, Role, ToolUse};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_in_a_map_or_a_listing_is_no_text_that_was_seen() {
        let call = ToolUse {
            id: CallId::new("1"),
            name: "shell".to_owned(),
            input: json!({ "command": "cat src/read.py", "more": ["b.py"] }),
            malformed: None,
            signature: None,
        };
        let text = "src/map.py: open_shop\n<file path=\"src/shown.py\" shown=\"in part\">\nx\n</file>";
        let content = vec![Block::text(text), Block::ToolUse(call)];
        let messages = [Message { role: Role::User, content }];
        let seen = seen_files(&messages);
        for path in ["src/shown.py", "src/read.py", "b.py"] {
            assert!(seen.contains(path), "{path}: {seen:?}");
        }
        assert!(!seen.contains("src/map.py") && !seen.contains("shown.py"), "{seen:?}");
    }
}
