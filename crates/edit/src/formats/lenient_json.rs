//! JSON as models write it.

use std::borrow::Cow;

use serde_json::Value;

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
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    if error.is_eof() {
        return Err(error);
    }
    match repair_json(text) {
        Cow::Owned(text) => serde_json::from_str(&text).map_err(|_| error),
        Cow::Borrowed(_) => Err(error),
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
