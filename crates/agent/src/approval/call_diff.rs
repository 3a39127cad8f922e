//! The changes that a call would make, before anybody is asked about the call.

use std::sync::Arc;

use journeyman_protocol::{CallState, ToolUse};
use journeyman_tools::Registry;

use super::authorization::{ApprovedCall, PermissionQuestion};
use crate::blocking::run_blocking;
use crate::calls::finished_call::FinishedCall;
use crate::session::context::SessionContext;

/// Maximum bytes of a diff shown with a question. Nobody reads more before saying yes.
const MAX_DIFF_BYTES: usize = 64 * 1024;

/// Returns the failure that a call would end with, so that nobody is asked about the call: `None`
/// where it may succeed, and for a call that a rule asks about, which may keep a file from being
/// read.
pub(crate) async fn foresee_failure(
    registry: &Arc<Registry>,
    cx: &SessionContext,
    ready: &ApprovedCall,
    question: &PermissionQuestion,
) -> Option<FinishedCall> {
    if question.diff.is_some() || !question.judged.verdict.rules.is_empty() {
        return None;
    }
    let failure = diff_call(registry, cx, &ready.call).await.err()?;
    Some(FinishedCall::without_output(CallState::Failed, failure))
}

/// Returns the changes that a call would make, for the person who is asked about the call. An error
/// is what the call would fail with.
pub(super) async fn diff_call(
    registry: &Arc<Registry>,
    cx: &SessionContext,
    call: &ToolUse,
) -> Result<Option<String>, String> {
    let (registry, workspace, call) = (Arc::clone(registry), Arc::clone(&cx.workspace), call.clone());
    let compare = move || registry.get(&call.name).and_then(|tool| tool.diff(&workspace, &call.input));
    let Ok(diff) = run_blocking("comparing what a call would change", compare).await else {
        return Ok(None);
    };
    let diff = diff.map_err(|error| error.to_string())?.filter(|diff| diff.len() <= MAX_DIFF_BYTES);
    Ok(diff.map(|diff| cx.redactor.redact(&diff).into_owned()))
}
