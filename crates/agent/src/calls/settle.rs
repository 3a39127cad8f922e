//! The end of a call: its result goes into the transcript, and people are told.

use journeyman_context::fenced;
use journeyman_protocol::{Block, CallState, CallTransition, Event, GuardViolation, ToolUse};

use super::finished::Finished;
use crate::session::context::Context;

/// Bytes of a result that people see in the event; the model sees the whole.
const PREVIEW: usize = 2_000;
/// Bytes of a result as the log has it: an image, or a text that no model's window holds. The store takes no entry of
/// more than 16 MiB.
const MAX_RESULT: usize = 12 * 1024 * 1024;

/// Writes a call's end and its result down, together.
pub(crate) fn settle(cx: &mut Context, call: &ToolUse, mut finished: Finished) {
    let violations = std::mem::take(&mut finished.violations).into_iter();
    let violations = violations.map(|one| GuardViolation { call: Some(call.id.clone()), ..one }).collect();
    cx.transcript.note_violations(None, violations);
    for change in &finished.changes {
        cx.transcript.emit(Event::FileEdited { call: call.id.clone(), change: change.clone() });
    }
    // Half a secret is one too: redacted before it is cut.
    let preview = shortened(&cx.redactor.redact(&finished.text()));
    if finished.state == CallState::Failed {
        let (call, tool, error) = (call.id.clone(), call.name.clone(), preview.clone());
        cx.transcript.emit(Event::ToolError { call, tool, error });
    }
    let (state, duration_ms) = (finished.state, finished.duration_ms);
    let (id, tool) = (call.id.clone(), call.name.clone());
    let end = CallTransition {
        call: id.clone(),
        tool: tool.clone(),
        state,
        note: finished.note.clone(),
        by: finished.by.clone(),
        verdict: finished.verdict.clone(),
    };
    let block = block_of(cx, call, finished);
    let record = cx.transcript.end_call(end, block);
    cx.transcript.emit(Event::ToolEnd { call: id, tool, state, preview, duration_ms });
    if let Some(record) = record {
        cx.transcript.emit(Event::ToolExecuted { record });
    }
}

/// A result as the model is given it, or that it is too long for the log.
fn block_of(cx: &Context, call: &ToolUse, finished: Finished) -> Block {
    let block = whole_block_of(cx, call, finished);
    let bytes = serde_json::to_vec(&block).map_or(0, |bytes| bytes.len());
    if bytes <= MAX_RESULT {
        return block;
    }
    let text = format!("the call ran, and its result of {bytes} bytes is too long to be kept; ask for less");
    cx.transcript.result_block(&call.id, &call.name, &text)
}

fn whole_block_of(cx: &Context, call: &ToolUse, finished: Finished) -> Block {
    if !cx.transcript.takes_result(&call.id) {
        // Fenced: what a file or a command says can't pass for the next result, or for the user.
        let text = fenced("result", &[("of", &call.name)], &finished.text());
        return Block::text(cx.redactor.redact(&text));
    }
    let is_error = finished.is_error();
    let mut content = finished.parts;
    for part in &mut content {
        if let journeyman_protocol::ResultPart::Text { text } = part
            && let std::borrow::Cow::Owned(clean) = cx.redactor.redact(text)
        {
            *text = clean;
        }
    }
    Block::ToolResult { id: call.id.clone(), content, is_error }
}

/// Head of a text that people see in an event.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(PREVIEW) {
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
        None => text.to_owned(),
    }
}
