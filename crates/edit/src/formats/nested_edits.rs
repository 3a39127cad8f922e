//! Edits in an argument whose key says nothing of them.

use serde_json::{Map, Value};

use crate::formats::argument_keys::{
    CONTENT_KEYS, EDIT_LIST_KEYS, NEW_TEXT_KEYS, OLD_TEXT_KEYS, PATH_KEYS, read_paired_keys, read_path,
};
use crate::formats::argument_values::first_present_key;
use crate::formats::lenient_json::parse_json_leniently;
use crate::formats::{Format, detect};

/// Edits in an argument of any name.
pub(super) enum NestedEdits<'v> {
    /// An edit, or a list of edits, as a value or as its JSON text.
    Value(&'v Value),
    /// Text in a format with marks.
    Text(&'v str, Format),
}

/// Returns the only argument that holds edits, where none has a name that is known.
pub(super) fn find_nested_edits(object: &Map<String, Value>) -> Option<NestedEdits<'_>> {
    let holds_edits = |value: &Value| match value {
        Value::Array(list) => !list.is_empty() && list.iter().all(is_edit),
        other => is_edit(other),
    };
    let others = object.iter().filter(|(key, _)| !PATH_KEYS.contains(&key.as_str()));
    let mut nested = others.filter_map(|(key, value)| match value {
        Value::Array(list) if key == "files" && !list.is_empty() && list.iter().all(is_whole_file) => {
            Some(NestedEdits::Value(value))
        }
        Value::String(text) if text.trim_start().starts_with(['{', '[']) => {
            let holds = parse_json_leniently(text.trim()).is_ok_and(|inner| holds_edits(&inner));
            holds.then_some(NestedEdits::Value(value))
        }
        Value::String(text) => {
            let format = detect(text)
                .filter(|format| matches!(format, Format::Blocks | Format::Udiff | Format::Patch));
            format.map(|format| NestedEdits::Text(text, format))
        }
        other => holds_edits(other).then_some(NestedEdits::Value(other)),
    });
    nested.next().filter(|_| nested.next().is_none())
}

/// Returns true for an object that names a file and has its content.
fn is_whole_file(value: &Value) -> bool {
    let has_text = |keys: &[&str]| keys.iter().any(|key| value.get(*key).is_some_and(Value::is_string));
    has_text(&PATH_KEYS) && has_text(&CONTENT_KEYS)
}

/// Returns true for an object that is an edit, or names a file with a list of edits. A file with a
/// content may be what somebody else returned.
fn is_edit(value: &Value) -> bool {
    let Value::Object(edit) = value else { return false };
    let has = |keys: &[&str]| keys.iter().any(|key| edit.contains_key(*key));
    let names_file = || has(&PATH_KEYS) || read_path(edit).is_some();
    let list = first_present_key(edit, &EDIT_LIST_KEYS).map(|(_, list)| list);
    has(&OLD_TEXT_KEYS) && has(&NEW_TEXT_KEYS)
        || list.is_some_and(|list| (list.is_array() || list.is_object()) && names_file())
        || read_paired_keys(edit).is_some()
}
