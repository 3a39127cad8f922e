//! The size of a call's arguments.

use serde_json::Value;

/// Bytes of a number, `true`, `false` or `null` in arguments, with what separates it.
const MAX_SCALAR_BYTES: usize = 24;
/// Bytes of the quotation marks or brackets around a value, with what separates it.
pub(crate) const DELIMITER_BYTES: usize = 4;

/// Returns an upper bound of the bytes that a model writes for arguments, by the lengths of their
/// texts.
pub(crate) fn max_argument_bytes(value: &Value) -> usize {
    // A text is written with escapes, which double it at most unless it has control characters.
    let text = |text: &str| 2 * text.len() + DELIMITER_BYTES;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => MAX_SCALAR_BYTES,
        Value::String(it) => text(it),
        Value::Array(items) => DELIMITER_BYTES + items.iter().map(max_argument_bytes).sum::<usize>(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| text(name) + max_argument_bytes(value));
            DELIMITER_BYTES + fields.sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_never_taken_for_shorter_than_they_are() {
        let text = "fn main() {\n\tprintln!(\"\\\\\");\n}\n".repeat(50);
        for value in [
            json!({ "path": "src/main.rs", "edits": [{ "old": text, "new": "", "all": false }], "at": -1.5e300 }),
            json!([[], {}, null, true, u64::MAX, "\"\n"]),
            json!({ "": "" }),
        ] {
            assert!(max_argument_bytes(&value) >= value.to_string().len(), "{value}");
        }
    }
}
