//! Values of an edit tool's arguments, by the types that they have to have. Each is under one of
//! some keys; an error is a message for the model.

use serde_json::{Map, Value};

/// Returns the first of some keys that is there, with its value. `null` is as good as none.
pub(super) fn first_present_key<'v, 'k>(
    object: &'v Map<String, Value>,
    keys: &[&'k str],
) -> Option<(&'k str, &'v Value)> {
    keys.iter().find_map(|key| Some((*key, object.get(*key).filter(|value| !value.is_null())?)))
}

/// Returns a text.
pub(super) fn read_text<'v>(
    object: &'v Map<String, Value>,
    keys: &[&str],
) -> Result<Option<&'v str>, String> {
    match first_present_key(object, keys) {
        None => Ok(None),
        Some((_, Value::String(text))) => Ok(Some(text)),
        Some((key, value)) => Err(format!("\"{key}\" has to be a string, not {}", json_type_name(value))),
    }
}

/// Returns true or false, also written as text or as 1 and 0.
pub(super) fn read_bool(object: &Map<String, Value>, keys: &[&str]) -> Result<Option<bool>, String> {
    let Some((key, value)) = first_present_key(object, keys) else { return Ok(None) };
    let is_one_of = |text: &str, words: [&str; 2]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    match value {
        Value::Bool(flag) => Ok(Some(*flag)),
        Value::String(text) if is_one_of(text, ["true", "yes"]) => Ok(Some(true)),
        Value::String(text) if is_one_of(text, ["false", "no"]) => Ok(Some(false)),
        Value::Number(number) if number.as_u64().is_some_and(|number| number <= 1) => {
            Ok(Some(number.as_u64() == Some(1)))
        }
        other => Err(format!("\"{key}\" has to be true or false, not {}", json_type_name(other))),
    }
}

/// Returns a line number or a count.
pub(super) fn read_number(object: &Map<String, Value>, keys: &[&str]) -> Result<Option<u32>, String> {
    let Some((key, value)) = first_present_key(object, keys) else { return Ok(None) };
    let number = match value {
        Value::Number(number) => number.as_u64().and_then(|number| u32::try_from(number).ok()),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.map(Some).ok_or_else(|| format!("\"{key}\" has to be a line number"))
}

/// Returns the type of a value, in words.
pub(super) fn json_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
