//! JSON Schema for Gemini.

use super::super::gemini_schema::convert_parameters;
use super::*;

/// The schema of one property, converted.
fn property(schema: Value) -> Value {
    let whole = json!({"type": "object", "properties": {"x": schema}, "$defs": {
        "Word": {"type": "string", "title": "Word", "description": "a word"},
        "Tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/Tree"}}},
    }});
    convert_parameters(&whole).unwrap()["properties"]["x"].clone()
}

#[test]
fn constructs() {
    let cases = [
        (
            json!({"type": "string", "title": "X", "default": "a", "examples": ["b"], "format": "uri"}),
            json!({"type": "string"}),
        ),
        (json!({"type": "string", "format": "date-time"}), json!({"type": "string", "format": "date-time"})),
        (
            json!({"type": "integer", "format": "uint32", "minimum": 0}),
            json!({"type": "integer", "minimum": 0}),
        ),
        (json!({"type": ["string", "null"]}), json!({"type": "string", "nullable": true})),
        (
            json!({"type": ["string", "array"], "items": {"type": "integer"}, "description": "d"}),
            json!({"anyOf": [
                {"type": "string", "description": "d"},
                {"type": "array", "description": "d", "items": {"type": "integer"}},
            ]}),
        ),
        (json!({"const": "a"}), json!({"type": "string", "enum": ["a"]})),
        (json!({"const": 5}), json!({"type": "integer", "description": "One of: 5."})),
        (json!({"type": "string", "enum": ["a", "b", ""]}), json!({"type": "string", "enum": ["a", "b"]})),
        (
            json!({"enum": [1, 2], "description": "Which."}),
            json!({"type": "integer", "description": "Which. One of: 1, 2."}),
        ),
        (
            json!({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}),
            json!({"type": "integer", "minimum": 1, "nullable": true}),
        ),
        (
            json!({"oneOf": [{"const": "a", "description": "A"}, {"enum": ["b", "c"], "type": "string"}], "description": "d"}),
            json!({"type": "string", "enum": ["a", "b", "c"], "description": "d"}),
        ),
        (
            json!({"oneOf": [{"type": "string"}, {"type": "integer"}]}),
            json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ),
        (json!({"$ref": "#/$defs/Word"}), json!({"type": "string", "description": "a word"})),
        (
            json!({"$ref": "#/$defs/Word", "description": "mine"}),
            json!({"type": "string", "description": "mine"}),
        ),
        (
            json!({"$ref": "#/$defs/Nothing", "description": "d"}),
            json!({"type": "string", "description": "d"}),
        ),
        (json!({"$ref": "https://elsewhere"}), json!({"type": "string"})),
        (
            json!({"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}], "properties": {"b": {}}, "required": ["b", "c"]}),
            json!({
                "type": "object",
                "required": ["a", "b"],
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            }),
        ),
        (json!({"allOf": [{"$ref": "#/$defs/Word"}]}), json!({"type": "string", "description": "a word"})),
        (json!({"type": "array"}), json!({"type": "array", "items": {"type": "string"}})),
        (json!({"type": "object", "additionalProperties": {"type": "string"}}), json!({"type": "object"})),
        (json!(true), json!({"type": "string"})),
        (json!({}), json!({"type": "string"})),
        (json!(null), json!({"type": "string"})),
    ];
    for (schema, expected) in cases {
        assert_eq!(property(schema.clone()), expected, "{schema}");
    }
}

#[test]
fn an_object_without_members_is_no_parameters() {
    for schema in
        [json!({"type": "object"}), json!({"type": "object", "properties": {}}), json!({}), json!(true)]
    {
        assert_eq!(convert_parameters(&schema), None);
    }
}

#[test]
fn schemas_without_end_have_one() {
    let tree = property(json!({"$ref": "#/$defs/Tree"}));
    assert!(tree.to_string().len() < 1_000);
    // Each definition names the next one eight times: 8^40 in full.
    let mut schema = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": {}});
    for level in 0..40 {
        let next = format!("#/$defs/d{}", level + 1);
        let properties: serde_json::Map<String, Value> =
            (0..8).map(|n| (format!("p{n}"), json!({"$ref": next}))).collect();
        schema["$defs"][format!("d{level}")] = json!({"type": "object", "properties": properties});
    }
    assert!(convert_parameters(&schema).unwrap().to_string().len() < 200_000);
}
