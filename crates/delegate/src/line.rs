//! Lines of JSON as CLIs write them.

use journeyman_protocol::Tokens;
use serde_json::Value;

use crate::bounds::{MAX_LINE_BYTES, MAX_OUTPUT_BYTES, MAX_UNKNOWN_BYTES, clip, one_line};
use crate::{DelegateEvent, Step};

/// Fields of a tool's input that say the most, the first that is there.
const TELLING_FIELDS: &[&str] = &[
    "command",
    "cmd",
    "file_path",
    "filePath",
    "absolute_path",
    "path",
    "dir_path",
    "pattern",
    "query",
    "url",
    "description",
    "prompt",
];

/// Returns the object that a line is, unless it is another thing or too long.
pub(crate) fn parse_object(line: &[u8]) -> Option<Value> {
    let value = (line.len() <= MAX_LINE_BYTES).then(|| serde_json::from_slice::<Value>(line).ok())??;
    value.is_object().then_some(value)
}

/// Returns the step of a line that means nothing to an adapter; an empty line says nothing.
pub(crate) fn unknown(line: &[u8]) -> Step {
    let line = line.get(..line.len().min(MAX_UNKNOWN_BYTES)).unwrap_or(line);
    let text = String::from_utf8_lossy(line);
    let text = text.trim();
    if text.is_empty() {
        return Step::default();
    }
    Step::of(DelegateEvent::Unknown(clip(text, MAX_UNKNOWN_BYTES)))
}

/// Returns the text at a JSON pointer; empty where there is none.
pub(crate) fn text_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the number of tokens at a JSON pointer; 0 where there is none.
pub(crate) fn tokens_at(value: &Value, pointer: &str) -> Tokens {
    Tokens(value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default())
}

/// Returns the amount of US dollars at a JSON pointer, if it is one.
pub(crate) fn dollars_at(value: &Value, pointer: &str) -> Option<f64> {
    value.pointer(pointer)?.as_f64().filter(|amount| amount.is_finite() && *amount >= 0.0)
}

/// Returns the elements of the list at a JSON pointer.
pub(crate) fn list_at<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// Describes the input of a tool in one line.
pub(crate) fn summarize(input: &Value) -> String {
    if let Some(text) = input.as_str() {
        return one_line(text);
    }
    for field in TELLING_FIELDS {
        if let Some(text) = input.get(field).and_then(Value::as_str) {
            return one_line(text);
        }
    }
    match input {
        Value::Null => String::new(),
        Value::Object(fields) if fields.is_empty() => String::new(),
        _ => one_line(&input.to_string()),
    }
}

/// Returns the beginning of a tool's output: a text, or a list of blocks with texts.
pub(crate) fn output_of(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return clip(text, MAX_OUTPUT_BYTES);
    }
    let mut output = String::new();
    for block in content.as_array().into_iter().flatten() {
        let text = text_at(block, "/text");
        if text.is_empty() || output.len() >= MAX_OUTPUT_BYTES {
            continue;
        }
        if !output.is_empty() {
            output.push('\n');
        }
        output.push_str(&clip(text, MAX_OUTPUT_BYTES.saturating_sub(output.len())));
    }
    output
}

/// Returns a prompt as a CLI takes it for a prompt: a slash at its beginning would be a command of
/// the CLI's.
pub(crate) fn guard_slash(prompt: &str) -> String {
    let guard = if prompt.trim_start().starts_with('/') { "Task: " } else { "" };
    [guard, prompt].concat()
}
