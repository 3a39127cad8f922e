//! Parsing of JSON lines that CLIs write.

use journeyman_protocol::Tokens;
use serde_json::Value;

use crate::bounds::{MAX_PARSED_LINE_BYTES, MAX_TOOL_OUTPUT_BYTES, MAX_UNKNOWN_LINE_BYTES, clip, one_line};
use crate::{ConversationStep, DelegateEvent};

/// The fields of a tool's input that describe it best; the first that is present is taken.
const SUMMARY_FIELDS: &[&str] = &[
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

/// The escape that replaces half a surrogate pair.
const SURROGATE_REPLACEMENT: &str = "\\ufffd";

/// A parsed line of output.
pub(crate) enum ParsedLine {
    /// A JSON object.
    Object(Value),
    /// An object that can't be parsed: it is too long, or has characters that JSON doesn't allow.
    Unreadable,
    /// Anything else, also the beginning of an object.
    Other,
}

/// Parses a line. Text before the object is dropped, and characters that JSON or UTF-8 don't allow
/// are replaced.
pub(crate) fn parse_line(line: &[u8]) -> ParsedLine {
    let text = String::from_utf8_lossy(line.get(..line.len().min(MAX_PARSED_LINE_BYTES)).unwrap_or(line));
    let text =
        text.trim_start_matches(|character: char| character.is_whitespace() || character == '\u{feff}');
    // A brace inside preceding text doesn't begin the object.
    let start = if text.starts_with('{') { Some(0) } else { text.find("{\"") };
    let Some(text) = start.and_then(|start| text.get(start..)) else { return ParsedLine::Other };
    if line.len() > MAX_PARSED_LINE_BYTES {
        return ParsedLine::Unreadable;
    }
    match parse_value(text).or_else(|_| parse_value(&repair_json(text))) {
        Ok(value) => ParsedLine::Object(value),
        // The output ended within the line.
        Err(error) if error.is_eof() => ParsedLine::Other,
        Err(_) => ParsedLine::Unreadable,
    }
}

/// Parses the JSON value at the beginning of a text.
fn parse_value(text: &str) -> Result<Value, serde_json::Error> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    values.next().unwrap_or_else(|| serde_json::from_str(text))
}

/// Replaces halves of surrogate pairs and control characters.
fn repair_json(text: &str) -> String {
    let mut mended = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|character: char| character == '\\' || character.is_ascii_control()) {
        let (before, from) = rest.split_at(at);
        mended.push_str(before);
        let (kept, length) = match (surrogate_at(from), from.get(6..).and_then(surrogate_at)) {
            (Some(Surrogate::High), Some(Surrogate::Low)) => (from.get(..12).unwrap_or_default(), 12),
            (Some(_), _) => (SURROGATE_REPLACEMENT, 6),
            (None, _) if from.starts_with('\\') => {
                let length = 1 + from.chars().nth(1).map_or(0, char::len_utf8);
                (from.get(..length).unwrap_or_default(), length)
            }
            (None, _) => (" ", 1),
        };
        mended.push_str(kept);
        rest = from.get(length..).unwrap_or_default();
    }
    mended.push_str(rest);
    mended
}

/// One half of a UTF-16 surrogate pair.
enum Surrogate {
    High,
    Low,
}

/// Returns the surrogate at the beginning of a text, if it begins with the escape of one.
fn surrogate_at(text: &str) -> Option<Surrogate> {
    match u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()? {
        0xd800..=0xdbff => Some(Surrogate::High),
        0xdc00..=0xdfff => Some(Surrogate::Low),
        _ => None,
    }
}

/// Returns the step for a line that an adapter doesn't understand; without an event for an empty
/// line.
pub(crate) fn unknown_step(line: &[u8]) -> ConversationStep {
    let line = line.get(..line.len().min(MAX_UNKNOWN_LINE_BYTES)).unwrap_or(line);
    let text = String::from_utf8_lossy(line);
    let text = text.trim();
    if text.is_empty() {
        return ConversationStep::default();
    }
    ConversationStep::from_event(DelegateEvent::Unknown(clip(text, MAX_UNKNOWN_LINE_BYTES)))
}

/// Returns the text at a JSON pointer; empty where there is none.
pub(crate) fn text_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the number of tokens at a JSON pointer; 0 where there is none.
pub(crate) fn tokens_at(value: &Value, pointer: &str) -> Tokens {
    Tokens(value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default())
}

/// Returns the amount of US dollars at a JSON pointer, if there is a number.
pub(crate) fn dollars_at(value: &Value, pointer: &str) -> Option<f64> {
    value.pointer(pointer)?.as_f64().filter(|amount| amount.is_finite() && *amount >= 0.0)
}

/// Returns the elements of the list at a JSON pointer.
pub(crate) fn list_at<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// Describes the input of a tool in one line.
pub(crate) fn summarize_input(input: &Value) -> String {
    if let Some(text) = input.as_str() {
        return one_line(text);
    }
    for field in SUMMARY_FIELDS {
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

/// Returns the beginning of a tool's output, which is a text or a list of blocks with texts.
pub(crate) fn tool_output(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return clip(text, MAX_TOOL_OUTPUT_BYTES);
    }
    let mut output = String::new();
    for block in content.as_array().into_iter().flatten() {
        let text = text_at(block, "/text");
        if text.is_empty() || output.len() >= MAX_TOOL_OUTPUT_BYTES {
            continue;
        }
        if !output.is_empty() {
            output.push('\n');
        }
        output.push_str(&clip(text, MAX_TOOL_OUTPUT_BYTES.saturating_sub(output.len())));
    }
    output
}

/// Escapes a slash at the beginning of a prompt, which the CLI would take for a command.
pub(crate) fn escape_leading_slash(prompt: &str) -> String {
    let guard = if prompt.trim_start().starts_with('/') { "Task: " } else { "" };
    [guard, prompt].concat()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(line: impl AsRef<[u8]>) -> Option<Value> {
        match parse_line(line.as_ref()) {
            ParsedLine::Object(value) => Some(value),
            _ => None,
        }
    }

    #[test]
    fn a_bad_character_costs_itself_alone() {
        let text = |text: &str| Some(json!({ "a": text, "b": 1 }));
        for (line, expected) in [
            (&br#"{"a":"x\ud83d","b":1}"#[..], text("x\u{fffd}")),
            (br#"{"a":"\udc00\ud83d\ude00","b":1}"#, text("\u{fffd}\u{1f600}")),
            (br#"{"a":"\\ud83d \"\ud83dx","b":1}"#, text("\\ud83d \"\u{fffd}x")),
            (b"{\"a\":\"x\xff\",\"b\":1}", text("x\u{fffd}")),
            (b"\xef\xbb\xbf {\"a\":\"x\",\"b\":1}", text("x")),
            (b"(node:1) Warning: {old}{\"a\":\"x\",\"b\":1}", text("x")),
            (b"{\"a\":\"x\ty\",\"b\":1}", text("x y")),
            (b"{\"a\":\"x\",\"b\":1} (node:1) Warning", text("x")),
            (b"[1]", None),
            (b"no {object}", None),
        ] {
            assert_eq!(object(line), expected, "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn what_lies_within_a_broken_object_is_no_object() {
        assert!(matches!(parse_line(br#"{"a":x,"b":{"type":"result"}}"#), ParsedLine::Unreadable));
        assert!(matches!(parse_line(br#"{"a":{"type":"result"}"#), ParsedLine::Other), "it is cut off");
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_PARSED_LINE_BYTES));
        assert!(matches!(parse_line(long.as_bytes()), ParsedLine::Unreadable));
    }
}
