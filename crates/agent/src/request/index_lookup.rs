//! Index results for a task, before the first model request.
//!
//! Uses only the loaded index: nothing is built, updated or waited for. The index may be older than
//! the files, so the outline of a file whose content has changed is left empty.

use std::sync::Arc;

use journeyman_context::gathering::{ContextSources, GatheredContext, gather, is_worth_gathering};
use journeyman_context::pack_follow_up;
use journeyman_index::Snapshot;
use journeyman_protocol::{Event, RelPath, Tokens};
use journeyman_tools::SharedIndex;
use journeyman_workspace::{FileBody, Workspace};
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
    let said = serde_json::to_string(&cx.transcript.state().messages).ok()?;
    let packed = pack_follow_up(&found, &|path| said.contains(&path.to_string()), room)?;
    cx.transcript.emit(Event::ContextPacked {
        tokens: packed.report.tokens,
        files_listed: 0,
        instructions: Vec::new(),
        files: Vec::new(),
        shares: packed.report.shares,
    });
    Some(cx.redactor.redact(&packed.message).into_owned())
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
        may_show,
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
