//! Reverts changes of commands to files that an agent may not change.

use std::sync::Arc;

use journeyman_protocol::{CallState, RelPath, ResultPart, ToolUse};
use journeyman_tools::SeenFiles;
use journeyman_workspace::UndoReport;

use super::finished_call::FinishedCall;
use crate::AgentError;
use crate::approval::approvals::Approvals;
use crate::blocking::run_blocking;
use crate::recovery::cut_off_work::record_own_changes;
use crate::session::context::SessionContext;

/// Maximum number of files named in a result.
const MAX_NAMED_FILES: usize = 10;

/// Reverts all changes of a call that changed a file beyond the agent's scope, and notes this in
/// the result. The changes of a command aren't known before it runs. Ignored files, such as build
/// output, are not checked.
pub(crate) async fn revert_beyond_scope(
    cx: &mut SessionContext,
    approvals: &Approvals,
    seen: &Arc<SeenFiles>,
    call: &ToolUse,
    finished: &mut FinishedCall,
) {
    let beyond: Vec<&RelPath> =
        approvals.filter_beyond_scope(finished.changes.iter().map(|change| &change.path)).collect();
    if beyond.is_empty() {
        return;
    }
    let mut text =
        format!("This agent may change files of tests alone, and this changed {}.", list_paths(&beyond));
    let (workspace, session, id) = (Arc::clone(&cx.workspace), cx.journal_session().clone(), call.id.clone());
    let undone = run_blocking("taking back a change", move || workspace.undo_call(&session, &id)).await;
    match undone.and_then(|done| done.map_err(AgentError::from)) {
        Ok(UndoReport { restored, conflicts, .. }) => {
            text.push_str(" All that it changed was taken back.");
            finished.changes.retain(|change| conflicts.iter().any(|(path, _)| *path == change.path));
            let kept: Vec<&RelPath> = conflicts.iter().map(|(path, _)| path).collect();
            if !kept.is_empty() {
                text.push_str(&format!(" But {} could not be, and is as it is.", list_paths(&kept)));
            }
            record_own_changes(cx, seen, restored).await;
        }
        Err(error) => text.push_str(&format!(" It could not be taken back: {error}.")),
    }
    finished.state = CallState::Failed;
    finished.parts.push(ResultPart::Text { text });
}

fn list_paths(paths: &[&RelPath]) -> String {
    let named =
        paths.iter().take(MAX_NAMED_FILES).map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
    match paths.len().saturating_sub(MAX_NAMED_FILES) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
