//! Validation of, and by, the JSON Schemas of agent definitions.

use serde_json::Value;

/// Maximum bytes of a schema: every request of the agent carries it.
const MAX_SCHEMA_BYTES: usize = 32 * 1024;
/// Maximum number of violations in one message to the model.
const MAX_VIOLATIONS: usize = 8;
/// Maximum characters of one violation, which may quote a long value.
const MAX_VIOLATION_CHARS: usize = 300;

/// The reason why a schema can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SchemaError(pub(super) String);

/// Checks that a schema is valid and not too long.
pub(super) fn check_schema(schema: &Value) -> Result<(), SchemaError> {
    let bytes = serde_json::to_vec(schema).map_or(usize::MAX, |bytes| bytes.len());
    if bytes > MAX_SCHEMA_BYTES {
        return Err(SchemaError(format!(
            "a schema of {bytes} bytes is too long; at most {MAX_SCHEMA_BYTES}"
        )));
    }
    compile_schema(schema).map(drop)
}

/// Returns the violations of the schema by a value, with their positions; none for a valid value.
pub(super) fn find_violations(schema: &Value, value: &Value) -> Result<Vec<String>, SchemaError> {
    let validator = compile_schema(schema)?;
    let problem = |error: jsonschema::ValidationError<'_>| {
        let place = error.instance_path().to_string();
        let place = if place.is_empty() { "the value".to_owned() } else { format!("`{place}`") };
        let text: String = error.to_string().chars().take(MAX_VIOLATION_CHARS).collect();
        format!("{place}: {text}")
    };
    Ok(validator.iter_errors(value).take(MAX_VIOLATIONS).map(problem).collect())
}

fn compile_schema(schema: &Value) -> Result<jsonschema::Validator, SchemaError> {
    if !schema.is_object() {
        return Err(SchemaError("a schema is an object".to_owned()));
    }
    // References out of the schema are refused: nothing is fetched for it.
    jsonschema::validator_for(schema).map_err(|error| {
        let text: String = error.to_string().chars().take(MAX_VIOLATION_CHARS).collect();
        SchemaError(format!("it is no JSON Schema: {text}"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn violations_name_the_place() {
        let schema =
            json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "integer" } } });
        assert_eq!(find_violations(&schema, &json!({ "a": 1 })), Ok(Vec::new()));
        let wrong = find_violations(&schema, &json!({ "a": "x" })).unwrap();
        assert!(wrong[0].starts_with("`/a`: "), "{wrong:?}");
        let missing = find_violations(&schema, &json!({})).unwrap();
        assert!(missing[0].starts_with("the value: ") && missing[0].contains("\"a\""), "{missing:?}");
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        for schema in [json!("string"), json!({ "type": "date" }), json!({ "$ref": "https://example.com/x" })]
        {
            assert!(check_schema(&schema).is_err(), "{schema}");
        }
        let long = json!({ "description": "x".repeat(MAX_SCHEMA_BYTES) });
        assert!(check_schema(&long).unwrap_err().0.contains("too long"));
    }
}
