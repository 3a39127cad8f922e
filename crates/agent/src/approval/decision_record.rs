//! Events and call states that record a decision about a call.

use journeyman_protocol::{CallState, Event, ToolUse};

use super::authorization::ApprovedCall;
use crate::session::context::SessionContext;
use crate::transcript::running_transcript::CallChange;

/// Emits an event that says who decided about a call.
pub(crate) fn emit_decision(
    cx: &SessionContext,
    call: &ToolUse,
    allowed: bool,
    by: &str,
    note: Option<String>,
) {
    cx.transcript.emit(Event::PermissionDecided { call: call.id.clone(), allowed, by: by.to_owned(), note });
}

/// Records that `by` approved a call. `note` goes to the log and to the model.
pub(super) fn record_approval(
    cx: &mut SessionContext,
    ready: &mut ApprovedCall,
    note: Option<String>,
    by: &str,
) {
    emit_decision(cx, &ready.call, true, by, note.clone());
    let change = CallChange { note: note.clone(), by: Some(by), verdict: None };
    cx.transcript.change_call(&ready.call, CallState::Approved, change);
    ready.context.extend(note.as_deref().map(describe_note));
}

/// Returns the text for the model about a note that a person gave when allowing a call.
pub(super) fn describe_note(note: &str) -> String {
    format!("The user allowed this and says: {note}")
}
