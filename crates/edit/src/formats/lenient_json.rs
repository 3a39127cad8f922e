//! JSON as models write it.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Returns the end of a text's first value: behind its last bracket, whatever stands in its
/// strings.
pub(crate) fn first_value_end(text: &str) -> usize {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}

/// Reads JSON; with commas before closing brackets, which mean nothing else, and raw line breaks in
/// strings.
pub(crate) fn parse_json_leniently(text: &str) -> Result<Value, serde_json::Error> {
    let error = match serde_json::from_str(text) {
        Ok(UniqueKeys(value)) => return Ok(value),
        Err(error) => error,
    };
    if error.is_eof() {
        return Err(error);
    }
    match repair_json(text) {
        Cow::Owned(text) => serde_json::from_str(&text).map(|UniqueKeys(value)| value).map_err(|_| error),
        Cow::Borrowed(_) => Err(error),
    }
}

/// A value in which no key of an object is there twice with two values: one of them would be lost.
struct UniqueKeys(Value);

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueKeysVisitor).map(Self)
    }
}

struct UniqueKeysVisitor;

impl<'de> Visitor<'de> for UniqueKeysVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(UniqueKeys(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut values = Map::new();
        while let Some((key, UniqueKeys(value))) = object.next_entry::<String, UniqueKeys>()? {
            if values.get(&key).is_some_and(|other| *other != value) {
                return Err(de::Error::custom(format_args!("the key {key:?} is there twice")));
            }
            values.insert(key, value);
        }
        Ok(Value::Object(values))
    }
}

/// The text without trailing commas, and with the control characters in its strings escaped.
fn repair_json(text: &str) -> Cow<'_, str> {
    let mut out = String::with_capacity(text.len());
    let (mut in_string, mut escaped, mut changed) = (false, false, false);
    for (at, c) in text.char_indices() {
        if in_string {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_string = false,
                '\n' | '\r' | '\t' => {
                    changed = true;
                    out.push_str(match c {
                        '\n' => "\\n",
                        '\r' => "\\r",
                        _ => "\\t",
                    });
                    continue;
                }
                _ => {}
            }
        } else if c == '"' {
            in_string = true;
        } else if c == ',' {
            let next =
                text.get(at + 1..).unwrap_or_default().bytes().find(|byte| !byte.is_ascii_whitespace());
            if matches!(next, Some(b'}' | b']')) {
                changed = true;
                continue;
            }
        }
        out.push(c);
    }
    if changed { Cow::Owned(out) } else { Cow::Borrowed(text) }
}
