//! The end of a call: records its result and emits its events.

use journeyman_context::compaction::{find_same_result, result_as_text};
use journeyman_context::{TokenEstimator, cut_to_budget};
use journeyman_protocol::{
    Block, CallState, CallTransition, Event, GuardViolation, ResultPart, TokenCounter as _, Tokens, ToolUse,
};
use serde_json::Value;

use super::finished_call::FinishedCall;
use crate::compaction::input_room::InputRoom;
use crate::session::context::SessionContext;
use crate::transcript::record::Record;

/// Maximum bytes of a result's beginning in an event. The model gets the whole result.
const MAX_PREVIEW_HEAD_BYTES: usize = 1_000;
/// Maximum bytes of a result's end in an event: errors come last.
const MAX_PREVIEW_TAIL_BYTES: usize = 3_000;
/// Maximum bytes of a result, as logged: larger than any model's window, with room for images. The
/// store takes entries of up to 16 MiB.
const MAX_RESULT_BYTES: usize = 12 * 1024 * 1024;

/// Part of the room for requests that the text of one result may take, in hundredths.
const MAX_RESULT_ROOM_PERCENT: u64 = 25;
/// The tool whose results are compared with earlier ones.
const READ_TOOL: &str = "read_file";
/// Results of fewer bytes are repeated: a reference to one would save nothing.
const MIN_REFERENCED_RESULT_BYTES: usize = 600;

/// Records a call's end together with its result.
pub(crate) fn record_call_end(cx: &mut SessionContext, call: &ToolUse, mut finished: FinishedCall) {
    let violations = std::mem::take(&mut finished.violations).into_iter();
    let violations = violations.map(|one| GuardViolation { call: Some(call.id.clone()), ..one }).collect();
    cx.transcript.record_violations(None, violations);
    // A call with a diff of its own has changed only that file.
    let mut diff = finished.diff.take().filter(|_| finished.changes.len() == 1);
    if let Some(diff) = &mut diff
        && let std::borrow::Cow::Owned(clean) = cx.redactor.redact(&diff.text)
    {
        diff.text = clean;
    }
    for change in &finished.changes {
        let (call, change, diff) = (call.id.clone(), change.clone(), diff.take());
        cx.transcript.emit(Event::FileEdited { call, change, diff });
    }
    // Redacted before truncating, because a part of a secret would not be recognized.
    let preview = truncate_preview(&cx.redactor.redact(&finished.text()));
    if finished.state == CallState::Failed {
        let (call, tool, error) = (call.id.clone(), call.name.clone(), preview.clone());
        cx.transcript.emit(Event::ToolError { call, tool, error });
    }
    let (state, duration_ms, output_lines) = (finished.state, finished.duration_ms, finished.output_lines);
    let (id, tool) = (call.id.clone(), call.name.clone());
    let end = CallTransition {
        call: id.clone(),
        tool: tool.clone(),
        state,
        note: finished.note.clone(),
        by: finished.by.clone(),
        verdict: finished.verdict.clone(),
    };
    let block = result_block(cx, call, finished);
    let record = cx.transcript.end_call(end, block);
    cx.transcript.emit(Event::ToolEnd { call: id, tool, state, preview, duration_ms, output_lines });
    if let Some(record) = record {
        cx.transcript.emit(Event::ToolExecuted { record });
    }
}

/// Returns a result as a block for the model, or a short text if the result is too long for the
/// log.
fn result_block(cx: &mut SessionContext, call: &ToolUse, finished: FinishedCall) -> Block {
    let block = fitted_result_block(cx, call, finished);
    let bytes = serde_json::to_vec(&block).map_or(0, |bytes| bytes.len());
    if bytes <= MAX_RESULT_BYTES {
        return block;
    }
    let text = format!("the call ran, and its result of {bytes} bytes is too long to be kept; ask for less");
    cx.transcript.state().result_block(&cx.redactor, &call.id, &call.name, &text)
}

fn fitted_result_block(cx: &mut SessionContext, call: &ToolUse, mut finished: FinishedCall) -> Block {
    for part in &mut finished.parts {
        if let ResultPart::Text { text } = part
            && let std::borrow::Cow::Owned(clean) = cx.redactor.redact(text)
        {
            *text = clean;
        }
    }
    fit_into_window(cx, call, &mut finished.parts);
    if call.name == READ_TOOL
        && let Some(known) = find_earlier_read(cx, call, &finished.parts)
    {
        finished.parts = vec![ResultPart::Text { text: known }];
    }
    if cx.transcript.state().needs_result_block(&call.id) {
        let is_error = finished.is_error();
        return Block::ToolResult { id: call.id.clone(), content: finished.parts, is_error };
    }
    // Fenced, so that text of a file or a command can't pass for another result or for the user.
    let text = result_as_text(&call.id, Some(&call.name), finished.is_error(), &finished.text());
    Block::text(cx.redactor.redact(&text))
}

fn part_text(part: &ResultPart) -> &str {
    match part {
        ResultPart::Text { text } => text,
        ResultPart::Image(_) => "",
    }
}

/// Shortens texts that would take too much of the model's window. The log keeps all of them.
fn fit_into_window(cx: &mut SessionContext, call: &ToolUse, content: &mut [ResultPart]) {
    let most = Tokens(InputRoom::for_model(cx).input.0 * MAX_RESULT_ROOM_PERCENT / 100);
    for part in content {
        let ResultPart::Text { text } = part else { continue };
        // No text has more tokens than bytes. An estimate, because the model's vocabulary may have
        // to be unpacked first, and the text is cut by estimates too.
        if text.len() as u64 <= most.0 || TokenEstimator.count(text) <= most {
            continue;
        }
        let handle = format!("output:{}", call.id);
        let shortened = cut_to_budget(text, most, None).text;
        let whole = std::mem::take(text);
        *text = format!(
            "{}\n[shortened, because the model's window is small; read_file with path {handle} shows the rest]",
            shortened.trim_end()
        );
        // A result that a tool has shortened has its whole output in the log already.
        if !whole.contains(&handle) {
            cx.transcript.record(Record::Output { call: call.id.clone(), text: whole });
        }
    }
}

/// Returns a reference to an earlier result if a file is read again and the model still has the
/// very same text.
fn find_earlier_read(cx: &SessionContext, call: &ToolUse, content: &[ResultPart]) -> Option<String> {
    let bytes: usize = content.iter().map(|part| part_text(part).len()).sum();
    if bytes < MIN_REFERENCED_RESULT_BYTES {
        return None;
    }
    let earlier = find_same_result(&cx.transcript.state().messages, call, content)?;
    let earlier_call = match &earlier.input {
        // A reply as text may have told its calls in another form.
        Value::Null => "an earlier call gave".to_owned(),
        input if *input == call.input => format!("this call gave before ({input})"),
        input => format!("another call gave before ({input})"),
    };
    Some(format!(
        "unchanged: the same text as {earlier_call}, which is above; once it isn't, read_file with path output:{} shows it",
        earlier.id
    ))
}

/// Returns the beginning and the end of a text, for an event; cut at lines where they are short.
fn truncate_preview(text: &str) -> String {
    if text.len() <= MAX_PREVIEW_HEAD_BYTES + MAX_PREVIEW_TAIL_BYTES {
        return text.to_owned();
    }
    let head = text.get(..text.floor_char_boundary(MAX_PREVIEW_HEAD_BYTES)).unwrap_or_default();
    let head = head.rfind('\n').and_then(|end| head.get(..end)).unwrap_or(head);
    let tail = text.get(text.ceil_char_boundary(text.len() - MAX_PREVIEW_TAIL_BYTES)..).unwrap_or_default();
    let tail = tail
        .find('\n')
        .filter(|end| *end < tail.len() / 2)
        .and_then(|end| tail.get(end + 1..))
        .unwrap_or(tail);
    format!("{head}\n… {} bytes left out …\n{tail}", text.len() - head.len() - tail.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::test_context::{TestContext, call};

    #[tokio::test]
    async fn a_file_that_is_read_again_unchanged_is_a_reference() {
        for in_text in [false, true] {
            let mut test = TestContext::new(&[]).await;
            let text = "let a = 1;\n".repeat(100);
            let mut read = |id: &str, text: &str| {
                let made = call(id, "read_file", json!({ "path": "a.rs" }));
                if in_text {
                    let reply = "<call tool=\"read_file\">{\"path\": \"a.rs\"}</call>";
                    test.record_reply_text(reply, std::slice::from_ref(&made));
                } else {
                    test.record_reply(std::slice::from_ref(&made));
                }
                let parts = vec![ResultPart::Text { text: text.to_owned() }];
                let finished = FinishedCall::with_output(CallState::Completed, parts, Vec::new());
                record_call_end(&mut test.cx, &made, finished);
                match test.cx.transcript.state().messages.last().unwrap().content.last().unwrap() {
                    Block::ToolResult { content, .. } => part_text(content.first().unwrap()).to_owned(),
                    Block::Text { text } => text.split_once('\n').unwrap().1.replace("\n</result>", ""),
                    other => panic!("{other:?}"),
                }
            };
            assert_eq!(read("c1", &text).trim(), text.trim());
            let second = read("c2", &text);
            assert!(second.starts_with("unchanged: the same text as this call gave before"), "{second}");
            let changed = format!("{text}// more\n");
            assert_eq!(read("c3", &changed).trim(), changed.trim());
            assert_eq!(read("c4", "short"), "short");
            assert_eq!(read("c5", "short"), "short");
        }
    }

    #[tokio::test]
    async fn a_result_takes_a_part_of_a_small_window_and_the_log_has_all_of_it() {
        let mut test = TestContext::new(&[]).await;
        test.cx.meter.set_refused_window(Tokens(4_096));
        let made = call("c1", "read_file", json!({ "path": "a.rs" }));
        test.record_reply(std::slice::from_ref(&made));
        let text: String = (0..2_000).map(|line| format!("let value_{line} = {line};\n")).collect();
        let parts = vec![ResultPart::Text { text: text.clone() }];
        let finished = FinishedCall::with_output(CallState::Completed, parts, Vec::new());
        record_call_end(&mut test.cx, &made, finished);
        let last = test.cx.transcript.state().messages.last().unwrap().content.last().unwrap().clone();
        let Block::ToolResult { content, .. } = last else { panic!("{last:?}") };
        let shown = part_text(content.first().unwrap());
        assert!(test.cx.meter.counter().count(shown) < Tokens(1_100), "{}", shown.len());
        assert!(shown.contains("value_0 ") && shown.contains("output:c1"));
        test.cx.transcript.flush().await.unwrap();
        let store = std::sync::Arc::clone(test.cx.transcript.log().store());
        let kept =
            crate::transcript::log_reader::read_result(&*store, &test.cx.session, &made.id).await.unwrap();
        assert_eq!(kept.as_ref().map(|kept| &*kept.text), Some(text.as_str()));
        let all = crate::read_result_texts(&*store, &test.cx.session, text.len()).await.unwrap();
        assert_eq!(all.get(&made.id), Some(&text));
        let none = crate::read_result_texts(&*store, &test.cx.session, 10).await.unwrap();
        assert!(none.is_empty(), "there is no room for it");
        // What it is shortened to is the same again, but for the handle.
        let again = call("c2", "read_file", json!({ "path": "a.rs" }));
        test.record_reply(std::slice::from_ref(&again));
        let parts = vec![ResultPart::Text { text }];
        let finished = FinishedCall::with_output(CallState::Completed, parts, Vec::new());
        record_call_end(&mut test.cx, &again, finished);
        let last = test.cx.transcript.state().messages.last().unwrap().content.last().unwrap().clone();
        let Block::ToolResult { content, .. } = last else { panic!("{last:?}") };
        let shown = part_text(content.first().unwrap());
        assert!(shown.starts_with("unchanged: ") && shown.contains("output:c1 shows it"), "{shown}");
    }

    #[test]
    fn a_preview_has_the_beginning_and_the_end() {
        assert_eq!(truncate_preview("short"), "short");
        let lines: String = (0..3_000).map(|number| format!("line {number}\n")).collect();
        let preview = truncate_preview(&lines);
        assert!(preview.starts_with("line 0\nline 1\n") && preview.ends_with("line 2999\n"), "{preview}");
        assert!(preview.contains(" bytes left out …\nline "), "{preview}");
        assert!(preview.len() <= MAX_PREVIEW_HEAD_BYTES + MAX_PREVIEW_TAIL_BYTES + 40);
    }
}
