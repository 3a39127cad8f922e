//! Lenient access to JSON values.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::ModelError;

/// Maximum length of a quoted event that is not JSON, in bytes.
const MAX_QUOTED_BYTES: usize = 200;

/// Returns a string member that is not empty.
pub(super) fn get_text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Returns a member that is neither missing nor null.
pub(super) fn get_present<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    value.get(key).filter(|member| !member.is_null())
}

/// Returns a call's arguments as JSON text, empty if there are none. Some servers send an object
/// instead of text.
pub(super) fn get_arguments<'a>(value: &'a Value, key: &str) -> Cow<'a, str> {
    match value.get(key) {
        Some(Value::String(text)) => Cow::Borrowed(text),
        None | Some(Value::Null) => Cow::Borrowed(""),
        Some(other) => Cow::Owned(other.to_string()),
    }
}

/// Returns the elements of an array member; none if it is not an array.
pub(super) fn get_elements<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns a count. Some servers write whole numbers as floats.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(super) fn get_count(value: &Value, key: &str) -> Option<u64> {
    let number = value.get(key)?;
    number.as_u64().or_else(|| {
        let float = number.as_f64()?;
        // `as` saturates, so an absurdly large count stays a count.
        (float.is_finite() && float >= 0.0).then_some(float as u64)
    })
}

/// Returns the count at a path of keys.
pub(super) fn get_count_at(value: &Value, path: &[&str]) -> Option<u64> {
    let (last, parents) = path.split_last()?;
    let parent = parents.iter().try_fold(value, |value, key| value.get(key))?;
    get_count(parent, last)
}

/// Parses the data of an event. Data that is not JSON was cut off or damaged on its way, so the
/// error is retryable.
pub(super) fn parse_event(data: &str) -> Result<Value, ModelError> {
    serde_json::from_str(data).map_err(|error| ModelError::Stream {
        message: format!(
            "an event is not JSON ({error}): {}",
            truncate_with_ellipsis(data, MAX_QUOTED_BYTES)
        ),
        retryable: true,
    })
}

/// Creates an object from its members, in their order.
pub(super) fn new_object<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Returns at most the first `limit` bytes of a text, cut between characters.
pub(super) fn truncate_str(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.get(..end).unwrap_or_default()
}

/// Truncates a text as [`head`] does, and adds an ellipsis if text is missing.
pub(super) fn truncate_with_ellipsis(text: &str, limit: usize) -> String {
    if text.len() <= limit { text.to_owned() } else { format!("{}…", truncate_str(text, limit)) }
}
