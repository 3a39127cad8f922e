//! Tool calls that models write into their text, in the notations they were trained with: a server
//! that doesn't know a model's notation passes them on as text.

use std::ops::Range;

use serde_json::{Map, Value};

use crate::formats::argument_keys::{CONTENT_KEYS, NEW_TEXT_KEYS, OLD_TEXT_KEYS, key_words};
use crate::formats::lenient_json::{first_value_end, parse_json_leniently};
use crate::formats::tags::{attribute_value, parse_opening_tag, trim_content_breaks};
use crate::formats::{ReplyLine, ReplyLines};

/// More calls of one reply are a loop, not work.
const MAX_CALLS: usize = 100;
/// More parameters than any tool has.
const MAX_PARAMETERS: usize = 50;
/// Beginnings of lines that open a call, and what closes it; nothing after `[TOOL_CALLS]`.
const CALL_MARKS: [(&str, &str); 6] = [
    ("<tool_call>", "</tool_call>"),
    ("<function=", "</function>"),
    ("<invoke name=", "</invoke>"),
    ("[TOOL_CALLS]", ""),
    ("<|python_tag|>", ""),
    ("<write_to_file>", "</write_to_file>"),
];
/// Tags of tools that change files, which are only told.
const OTHER_TOOL_TAGS: [&str; 9] = [
    "create_file",
    "delete_file",
    "remove_file",
    "rename_file",
    "move_file",
    "insert_content",
    "code_edit",
    "boltAction",
    "lov-write",
];
/// Tags of such tools that also stand around edits in another form, and tags in them of texts that
/// weren't read.
const AROUND_EDITS_TAGS: [&str; 6] =
    ["replace_in_file", "search_and_replace", "apply_diff", "str_replace", "edit_file", "change"];
const TEXT_TAG_STARTS: [&str; 5] = ["<old", "<new", "<search>", "<find>", "<original"];
/// Only so many of these tags are looked into.
const MAX_TAGS: usize = 16;
/// Words of a tool's name that say that it changes files.
const CHANGING_WORDS: [&str; 10] =
    ["edit", "write", "create", "delete", "remove", "rename", "move", "replace", "patch", "insert"];
/// Divides a tool's name from its arguments.
const ARGUMENTS_MARK: &str = "[ARGS]";
/// The calls of a text are looked at until they have so many times its bytes together: one in the
/// other, or without an end, they would take the square of its length.
const MAX_LOOKS: usize = 8;

/// A call with a tool's name.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedCall {
    /// The tool, as the model calls it.
    pub name: String,
    /// The arguments: an object.
    pub arguments: Value,
    /// The call's bytes in the text.
    pub range: Range<usize>,
}

/// Reads the calls that a text has, in order: `<tool_call>` with JSON, `<function=…>`,
/// `<invoke name="…">`, `[TOOL_CALLS]` with JSON. A call that isn't closed is none.
#[must_use]
pub fn read_named_calls(text: &str) -> Vec<NamedCall> {
    let mut calls = Vec::new();
    let (mut from, mut looked_at) = (0, 0);
    for row in ReplyLines::new(text) {
        if row.start < from || calls.len() >= MAX_CALLS {
            continue;
        }
        let at = row.start + (row.text.len() - row.text.trim_start().len());
        let found = read_calls_at(text, at, &mut looked_at);
        if let Some(last) = found.last() {
            from = last.range.end;
        }
        calls.extend(found);
    }
    calls
}

/// Returns the offset of the first line at which a call begins, whole or not.
pub(crate) fn first_call_offset(text: &str) -> Option<usize> {
    let begins = |line: &str| CALL_MARKS.iter().any(|(opening, _)| line.trim_start().starts_with(opening));
    ReplyLines::new(text).find(|row| begins(row.text)).map(|row| row.start)
}

/// Returns true if a text has the call of a tool that changes files, or begins one with a tag that
/// such a tool has.
pub(crate) fn has_unread_edit(text: &str) -> bool {
    let changes = |call: &NamedCall| {
        let words = key_words(&call.name);
        is_edit_arguments(&call.arguments) || words.iter().any(|word| CHANGING_WORDS.contains(&word.as_str()))
    };
    let begins = |row: &ReplyLine<'_>| {
        let start = row.start + (row.text.len() - row.text.trim_start().len());
        OTHER_TOOL_TAGS.iter().any(|name| parse_opening_tag(text, start, name).is_some())
    };
    let around = ReplyLines::new(text).filter_map(|row| {
        let start = row.start + (row.text.len() - row.text.trim_start().len());
        let name = AROUND_EDITS_TAGS.iter().find(|name| parse_opening_tag(text, start, name).is_some())?;
        Some((start, *name))
    });
    read_named_calls(text).iter().any(changes)
        || ReplyLines::new(text).any(|row| begins(&row))
        || around.take(MAX_TAGS).any(|(start, name)| has_texts_in_tag(text, start, name))
}

/// Returns true if a tag opens at `at` and has texts in it.
fn has_texts_in_tag(text: &str, at: usize, name: &str) -> bool {
    let Some(tag) = parse_opening_tag(text, at, name) else { return false };
    let rest = text.get(tag.end..).unwrap_or_default();
    let inner = rest.find(&format!("</{name}>")).and_then(|end| rest.get(..end)).unwrap_or(rest);
    inner.lines().any(|line| TEXT_TAG_STARTS.iter().any(|start| line.trim_start().starts_with(start)))
}

/// Returns true for arguments that change a file, in words of the known edit tools.
pub(crate) fn is_edit_arguments(arguments: &Value) -> bool {
    const OTHER_EDIT_KEYS: [&str; 5] = ["edits", "code_edit", "insert_text", "insert_line", "symbol"];
    let mut keys = OLD_TEXT_KEYS.iter().chain(&NEW_TEXT_KEYS).chain(&CONTENT_KEYS).chain(&OTHER_EDIT_KEYS);
    keys.any(|key| arguments.get(*key).is_some())
}

/// Finds the lines of a text at which a call begins.
pub(crate) struct CallStarts<'a> {
    text: &'a str,
    has_any: bool,
    looked_at: usize,
}

impl<'a> CallStarts<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let has = |opening: &str| memchr::memmem::find(text.as_bytes(), opening.as_bytes()).is_some();
        Self { text, has_any: CALL_MARKS.iter().any(|(opening, _)| has(opening)), looked_at: 0 }
    }

    /// Returns true if the call of an edit begins on this line.
    pub(crate) fn begins_edit(&mut self, row: &ReplyLine<'_>) -> bool {
        if !self.has_any {
            return false;
        }
        let at = row.start + (row.text.len() - row.text.trim_start().len());
        read_calls_at(self.text, at, &mut self.looked_at)
            .iter()
            .any(|call| is_edit_arguments(&call.arguments))
    }
}

/// The calls that begin at a place. `looked_at` counts the bytes of all that were looked at.
fn read_calls_at(text: &str, at: usize, looked_at: &mut usize) -> Vec<NamedCall> {
    let rest = text.get(at..).unwrap_or_default();
    let mark = CALL_MARKS.iter().find(|(opening, _)| rest.starts_with(opening));
    let Some((opening, closing)) = mark.filter(|_| *looked_at <= text.len() * MAX_LOOKS) else {
        return Vec::new();
    };
    // A name may stand between the mark and the arguments.
    let named = rest.lines().next().and_then(|line| line.split_once(ARGUMENTS_MARK));
    let head = named.map_or(opening.len(), |(name, _)| name.len() + ARGUMENTS_MARK.len());
    let value_end = || rest.get(head..).map(|value| head + first_value_end(value));
    let closing_at = if closing.is_empty() { value_end() } else { rest.find(closing) };
    *looked_at += closing_at.unwrap_or(rest.len());
    let Some(last) = closing_at else { return Vec::new() };
    let end = last + closing.len();
    let inner = |from: usize, to: usize| rest.get(from..to).unwrap_or_default();
    let one = |name: &str, arguments: Map<String, Value>, end: usize| {
        let arguments = Value::Object(arguments);
        vec![NamedCall { name: name.trim().to_owned(), arguments, range: at..at + end }]
    };
    match *opening {
        "<tool_call>" => {
            let body = inner(opening.len(), last);
            if body.trim_start().starts_with("<function=") {
                let start = at + opening.len() + (body.len() - body.trim_start().len());
                return read_calls_at(text, start, looked_at)
                    .into_iter()
                    .map(|call| NamedCall { range: at..at + end, ..call })
                    .collect();
            }
            if let Some((name, _)) = body.split_once("<arg_key>") {
                return one(name, read_paired_parameters(body), end);
            }
            read_json_calls(body, &(at..at + end))
        }
        "[TOOL_CALLS]" if let Some((name, _)) = named => {
            match parse_json_leniently(inner(head, end).trim()) {
                Ok(Value::Object(arguments)) => {
                    one(name.get(opening.len()..).unwrap_or_default(), arguments, end)
                }
                _ => Vec::new(),
            }
        }
        "[TOOL_CALLS]" | "<|python_tag|>" => read_json_calls(inner(opening.len(), end), &(at..at + end)),
        "<function=" => {
            let Some(head) = rest.find('>') else { return Vec::new() };
            let name = inner(opening.len(), head);
            one(
                name,
                read_parameters(inner(head + 1, last), "<parameter=", "</parameter>", str::to_owned),
                end,
            )
        }
        "<invoke name=" => {
            let Some(head) = rest.find('>') else { return Vec::new() };
            let name = attribute_value(inner("<invoke ".len(), head), "name").unwrap_or_default();
            let key = |head: &str| attribute_value(head, "name").unwrap_or_default().to_owned();
            one(name, read_parameters(inner(head + 1, last), "<parameter ", "</parameter>", key), end)
        }
        _ => {
            let body = inner(opening.len(), last);
            let mut arguments = Map::new();
            for (key, closing) in [("path", "</path>"), ("content", "</content>")] {
                let open = format!("<{key}>");
                let value = body.find(&open).and_then(|from| {
                    let from = from + open.len();
                    body.get(from..body.rfind(closing)?)
                });
                if let Some(value) = value {
                    arguments.insert(key.to_owned(), Value::String(parameter_text(key, value)));
                }
            }
            one("write_to_file", arguments, end)
        }
    }
}

/// Reads `{"name", "arguments"}`, or a list of such.
fn read_json_calls(json: &str, range: &Range<usize>) -> Vec<NamedCall> {
    let values = match parse_json_leniently(json.trim()) {
        Ok(Value::Array(list)) => list,
        Ok(value) => vec![value],
        Err(_) => return Vec::new(),
    };
    let named = values.into_iter().take(MAX_CALLS).filter_map(|value| {
        let value = value.get("function").filter(|inner| inner.is_object()).unwrap_or(&value);
        let name = value.get("name")?.as_str()?.to_owned();
        let arguments =
            ["arguments", "parameters", "args", "input"].iter().find_map(|key| value.get(*key))?;
        // Encoded twice.
        let arguments = match arguments {
            Value::String(text) => parse_json_leniently(text).ok()?,
            other => other.clone(),
        };
        arguments.is_object().then(|| NamedCall { name, arguments, range: range.clone() })
    });
    named.collect()
}

/// Reads parameters, each between an opening tag with its name and a closing tag. A text may have a
/// closing tag itself: the last one before the next parameter counts.
fn read_parameters(
    body: &str,
    opening: &str,
    closing: &str,
    key_of: impl Fn(&str) -> String,
) -> Map<String, Value> {
    let mut found = Map::new();
    let mut starts: Vec<usize> = memchr::memmem::find_iter(body.as_bytes(), opening.as_bytes())
        .filter(|start| {
            body.get(..*start).is_some_and(|before| before.is_empty() || before.ends_with(['\n', '>', ' ']))
        })
        .take(MAX_PARAMETERS)
        .collect();
    starts.push(body.len());
    for pair in starts.windows(2) {
        let [start, next] = pair else { continue };
        let piece = body.get(*start..*next).unwrap_or_default();
        let Some(head) = piece.find('>') else { continue };
        let key = key_of(piece.get(opening.len()..head).unwrap_or_default().trim());
        let Some(value) = piece.rfind(closing).and_then(|end| piece.get(head + 1..end)) else { continue };
        if !key.is_empty() {
            let value = parameter_text(&key, value);
            found.insert(key, Value::String(value));
        }
    }
    found
}

/// Reads parameters whose names and values stand between tags of their own: `<arg_key>`,
/// `<arg_value>`.
fn read_paired_parameters(body: &str) -> Map<String, Value> {
    let pieces = body.split("<arg_key>").skip(1).take(MAX_PARAMETERS);
    let pairs = pieces.filter_map(|piece| {
        let (key, rest) = piece.split_once("</arg_key>")?;
        let value = rest.trim_start().strip_prefix("<arg_value>")?;
        let value = value.get(..value.rfind("</arg_value>")?)?;
        Some((key.trim().to_owned(), Value::String(parameter_text(key.trim(), value))))
    });
    pairs.collect()
}

/// A parameter's text; a file's content keeps its last line break.
fn parameter_text(key: &str, raw: &str) -> String {
    let text = trim_content_breaks(raw);
    let ends = CONTENT_KEYS.contains(&key) && !text.is_empty() && !text.ends_with('\n');
    if ends { format!("{text}\n") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_of_each_notation() {
        let edit = json!({"path": "a.py", "old_string": "x < 1", "new_string": "y\n  z"});
        let inner = json!({"name": "edit", "arguments": edit});
        let parameters = |opening: &str, closing: &str| {
            edit.as_object()
                .unwrap()
                .iter()
                .map(|(key, value)| {
                    let head = opening.replace("KEY", key);
                    format!("{head}\n{}\n{closing}\n", value.as_str().unwrap())
                })
                .collect::<String>()
        };
        let in_function = parameters("<parameter=KEY>", "</parameter>");
        let in_invoke = parameters("<parameter name=\"KEY\">", "</parameter>");
        for text in [
            format!("<tool_call>\n{inner}\n</tool_call>"),
            format!("I change it.\n[TOOL_CALLS] [{inner}]"),
            format!("[TOOL_CALLS]edit[ARGS]{edit}\n"),
            format!("<|python_tag|>{}", json!({"name": "edit", "parameters": edit})),
            format!(
                "<tool_call>edit\n{}</tool_call>",
                edit.as_object()
                    .unwrap()
                    .iter()
                    .map(|(key, value)| format!(
                        "<arg_key>{key}</arg_key>\n<arg_value>{}</arg_value>\n",
                        value.as_str().unwrap()
                    ))
                    .collect::<String>()
            ),
            format!("<tool_call>\n<function=edit>\n{in_function}</function>\n</tool_call>"),
            format!("<function=edit>\n{in_function}</function>"),
            format!("<function_calls>\n<invoke name=\"edit\">\n{in_invoke}</invoke>\n</function_calls>"),
            format!(
                "<tool_call>{}</tool_call>",
                json!({"type": "function", "function": {"name": "edit", "arguments": edit.to_string()}})
            ),
        ] {
            let calls = read_named_calls(&text);
            let read: Vec<_> = calls.iter().map(|call| (call.name.as_str(), &call.arguments)).collect();
            assert_eq!(read, [("edit", &edit)], "{text}");
        }
    }

    #[test]
    fn a_call_that_is_cut_off_or_quoted_is_none() {
        for text in [
            "<tool_call>\n{\"name\": \"edit\", \"arguments\": {",
            "<function=edit>\n<parameter=path>a</parameter>\n",
            "Write `<tool_call>{\"name\": \"a\", \"arguments\": {}}</tool_call>` then.",
        ] {
            assert_eq!(read_named_calls(text), [], "{text}");
        }
    }

    #[test]
    fn several_calls_stay_in_order() {
        let text = "<tool_call>{\"name\": \"a\", \"arguments\": {}}</tool_call>\nthen\n\
            <tool_call>{\"name\": \"b\", \"arguments\": {}}</tool_call>\n";
        let names: Vec<String> = read_named_calls(text).into_iter().map(|call| call.name).collect();
        assert_eq!(names, ["a", "b"]);
        let file = "<write_to_file>\n<path>a.py</path>\n<content>\nA = 1\n</content>\n</write_to_file>";
        assert_eq!(read_named_calls(file)[0].arguments, json!({"path": "a.py", "content": "A = 1\n"}));
    }
}
