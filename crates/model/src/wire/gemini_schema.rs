//! Converts JSON Schema to the subset of Gemini's function declarations.
//!
//! Source: the `Schema` object of Google's API reference, a subset of OpenAPI 3.0. Constructs
//! without a counterpart are expressed another way if possible (`const`, `oneOf`, `["string",
//! "null"]`, `$ref`) and omitted if they only narrow the type (`additionalProperties`, `default`,
//! `$schema`): tools validate their input anyway.

use serde_json::{Map, Value, json};

use super::json;

/// Maximum depth of references. Tools nest two or three levels; a recursive reference has no end.
const MAX_DEPTH: usize = 8;
/// Maximum number of subschemas of a tool. References can multiply: ten that each refer to two
/// others are 1,024.
const MAX_NODES: usize = 1_024;

/// Members that have the same meaning in both.
const SHARED_MEMBERS: &[&str] = &[
    "description",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
    "minimum",
    "maximum",
    "pattern",
];
/// Formats that Gemini accepts; it refuses others.
const FORMATS: &[&str] = &["enum", "date-time", "int32", "int64", "float", "double"];

/// Returns a tool's parameters for Gemini; `None` if it has none, because an object without members
/// is refused.
pub(super) fn convert_parameters(schema: &Value) -> Option<Value> {
    let mut reader = SchemaConverter { root: schema, nodes: 0 };
    let converted = reader.convert(schema, 0);
    let members = converted.get("properties").and_then(Value::as_object);
    members.is_some_and(|members| !members.is_empty()).then_some(converted)
}

struct SchemaConverter<'a> {
    root: &'a Value,
    nodes: usize,
}

/// Returns a schema for any value: Gemini requires a type, and a text can hold every value.
fn any_value_schema(why: &str) -> Value {
    if why.is_empty() { json!({"type": "string"}) } else { json!({"type": "string", "description": why}) }
}

impl<'a> SchemaConverter<'a> {
    fn convert(&mut self, schema: &'a Value, depth: usize) -> Value {
        self.nodes = self.nodes.saturating_add(1);
        let description = json::get_text(schema, "description").unwrap_or_default();
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            return any_value_schema(if description.is_empty() {
                "a value as JSON text"
            } else {
                description
            });
        }
        let depth = depth.saturating_add(1);
        let Some(members) = schema.as_object() else { return any_value_schema("") };
        if let Some(target) = json::get_text(schema, "$ref") {
            let Some(target) = target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)) else {
                return any_value_schema(description);
            };
            return with_description(self.convert(target, depth), description);
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(alternatives)) = members.get(key) {
                return self.convert_alternatives(alternatives, description, depth);
            }
        }
        if let Some(Value::Array(all)) = members.get("allOf") {
            return self.merge_all_of(all, members, description, depth);
        }
        if let Some(Value::Array(types)) = members.get("type") {
            return self.convert_several_types(types, members, depth);
        }
        self.convert_typed(members, schema_type(members), depth)
    }

    fn convert_typed(&mut self, members: &'a Map<String, Value>, kind: &str, depth: usize) -> Value {
        let mut converted = Map::new();
        converted.insert("type".to_owned(), json!(kind));
        for key in SHARED_MEMBERS {
            if let Some(value) = members.get(*key) {
                converted.insert((*key).to_owned(), value.clone());
            }
        }
        if let Some(format) =
            members.get("format").and_then(Value::as_str).filter(|format| FORMATS.contains(format))
        {
            converted.insert("format".to_owned(), json!(format));
        }
        let listed = members.get("enum").and_then(Value::as_array).cloned();
        if let Some(values) = listed.or_else(|| members.get("const").map(|only| vec![only.clone()])) {
            add_enum(&mut converted, kind, &values);
        }
        if members.get("nullable") == Some(&Value::Bool(true)) {
            converted.insert("nullable".to_owned(), Value::Bool(true));
        }
        match kind {
            "array" => {
                let items = members
                    .get("items")
                    .or_else(|| members.get("prefixItems").and_then(|items| items.get(0)));
                let items = items.map_or_else(|| any_value_schema(""), |items| self.convert(items, depth));
                converted.insert("items".to_owned(), items);
            }
            "object" => self.convert_properties(&mut converted, members, depth),
            _ => {}
        }
        Value::Object(converted)
    }

    fn convert_properties(
        &mut self,
        converted: &mut Map<String, Value>,
        members: &'a Map<String, Value>,
        depth: usize,
    ) {
        let Some(Value::Object(properties)) = members.get("properties") else { return };
        let properties: Map<String, Value> =
            properties.iter().map(|(name, schema)| (name.clone(), self.convert(schema, depth))).collect();
        if let Some(Value::Array(required)) = members.get("required") {
            let known = |name: &&Value| name.as_str().is_some_and(|name| properties.contains_key(name));
            let required: Vec<Value> = required.iter().filter(known).cloned().collect();
            if !required.is_empty() {
                converted.insert("required".to_owned(), Value::Array(required));
            }
        }
        if !properties.is_empty() {
            converted.insert("properties".to_owned(), Value::Object(properties));
        }
    }

    /// Converts alternatives: null makes the rest nullable, constant texts become one enumeration.
    fn convert_alternatives(&mut self, alternatives: &'a [Value], description: &str, depth: usize) -> Value {
        let is_null = |schema: &&'a Value| schema.get("type").and_then(Value::as_str) == Some("null");
        let nullable = alternatives.iter().any(|schema| is_null(&schema));
        let rest: Vec<&'a Value> = alternatives.iter().filter(|schema| !is_null(schema)).collect();
        let words: Option<Vec<Value>> = rest
            .iter()
            .map(|schema| constant_texts(schema))
            .collect::<Option<Vec<_>>>()
            .map(|all| all.concat());
        let mut converted = match (words, rest.as_slice()) {
            (Some(words), [_, ..]) => {
                let mut converted = json::new_object([("type", json!("string"))]);
                add_enum(&mut converted, "string", &words);
                Value::Object(converted)
            }
            (_, []) => any_value_schema(""),
            (_, [only]) => self.convert(only, depth),
            (_, several) => {
                let several: Vec<Value> = several.iter().map(|schema| self.convert(schema, depth)).collect();
                // Gemini accepts no other member beside `anyOf` than these two.
                json!({"anyOf": several})
            }
        };
        if nullable && let Some(members) = converted.as_object_mut() {
            members.insert("nullable".to_owned(), Value::Bool(true));
        }
        with_description(converted, description)
    }

    /// Merges the members of `allOf`, by which schemas extend each other.
    fn merge_all_of(
        &mut self,
        all: &'a [Value],
        own: &'a Map<String, Value>,
        description: &str,
        depth: usize,
    ) -> Value {
        let mut merge_all_of = Map::new();
        let mut own_part = self.convert_typed(own, schema_type(own), depth);
        if !own.contains_key("type") && !own.contains_key("properties") {
            own_part = json!({});
        }
        let parts: Vec<Value> = all.iter().map(|part| self.convert(part, depth)).chain([own_part]).collect();
        for part in parts {
            let Value::Object(part) = part else { continue };
            for (key, value) in part {
                match (merge_all_of.get_mut(&key), value) {
                    (Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
                    (Some(Value::Array(known)), Value::Array(more)) if key == "required" => {
                        known.extend(more)
                    }
                    (_, value) => {
                        merge_all_of.insert(key, value);
                    }
                }
            }
        }
        with_description(Value::Object(merge_all_of), description)
    }

    fn convert_several_types(
        &mut self,
        types: &'a [Value],
        members: &'a Map<String, Value>,
        depth: usize,
    ) -> Value {
        let names: Vec<&str> = types.iter().filter_map(Value::as_str).collect();
        let nullable = names.contains(&"null");
        let rest: Vec<&str> = names.into_iter().filter(|name| *name != "null").collect();
        let mut converted = match rest.as_slice() {
            [] => any_value_schema(""),
            [only] => self.convert_typed(members, only, depth),
            several => {
                let several: Vec<Value> =
                    several.iter().map(|kind| self.convert_typed(members, kind, depth)).collect();
                json!({"anyOf": several})
            }
        };
        if nullable && let Some(members) = converted.as_object_mut() {
            members.insert("nullable".to_owned(), Value::Bool(true));
        }
        converted
    }
}

fn schema_type(members: &Map<String, Value>) -> &str {
    match members.get("type").and_then(Value::as_str) {
        Some(kind @ ("string" | "number" | "integer" | "boolean" | "array" | "object")) => kind,
        _ if members.contains_key("properties") => "object",
        _ if members.contains_key("items") => "array",
        _ => match members.get("const").or_else(|| members.get("enum").and_then(|values| values.get(0))) {
            Some(Value::Bool(_)) => "boolean",
            Some(Value::Number(number)) if number.is_f64() => "number",
            Some(Value::Number(_)) => "integer",
            _ => "string",
        },
    }
}

/// Returns the texts of a schema that allows only some texts.
fn constant_texts(schema: &Value) -> Option<Vec<Value>> {
    let values = match (schema.get("const"), schema.get("enum")) {
        (Some(only), _) => vec![only.clone()],
        (None, Some(Value::Array(values))) => values.clone(),
        _ => return None,
    };
    values.iter().all(Value::is_string).then_some(values)
}

/// Adds an enumeration. Gemini enumerates texts only; values of other types are listed in the
/// description.
fn add_enum(converted: &mut Map<String, Value>, kind: &str, values: &[Value]) {
    if kind == "string" && values.iter().any(Value::is_string) {
        if values.iter().any(Value::is_null) {
            converted.insert("nullable".to_owned(), Value::Bool(true));
        }
        let words = values.iter().filter(|value| value.is_string() && value.as_str() != Some("")).cloned();
        converted.insert("enum".to_owned(), words.collect());
        return;
    }
    let listed: Vec<String> = values.iter().map(Value::to_string).collect();
    let listed = format!("One of: {}.", listed.join(", "));
    let text = match converted.get("description").and_then(Value::as_str) {
        Some(description) => format!("{description} {listed}"),
        None => listed,
    };
    converted.insert("description".to_owned(), Value::String(text));
}

/// Returns the schema with its outer description, which says more about this use than the inner
/// one.
fn with_description(mut schema: Value, description: &str) -> Value {
    if !description.is_empty()
        && let Some(members) = schema.as_object_mut()
    {
        members.insert("description".to_owned(), json!(description));
    }
    schema
}
