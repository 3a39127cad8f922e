//! The part of JSON Schema that Gemini's function declarations know.
//!
//! Source: the `Schema` object of Google's API reference, a subset of OpenAPI 3.0. What it has no member for
//! is said another way where that is possible (`const`, `oneOf`, `["string", "null"]`, `$ref`) and left out
//! where it only narrows (`additionalProperties`, `default`, `$schema`): tools validate their input anyway.

use serde_json::{Map, Value, json};

use super::json;

/// How deep references are followed. Tools nest two or three levels; a reference to itself has no end.
const MAX_DEPTH: usize = 8;
/// The most subschemas of one tool. References can multiply: each of ten that names two others is 1,024.
const MAX_NODES: usize = 1_024;

/// Members that mean the same on both sides.
const KEPT: &[&str] = &[
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
/// Formats that Gemini takes; it refuses others.
const FORMATS: &[&str] = &["enum", "date-time", "int32", "int64", "float", "double"];

/// A tool's parameters for Gemini; `None` where it has none, because an object without members is refused.
pub(super) fn parameters(schema: &Value) -> Option<Value> {
    let mut reader = Reader { root: schema, nodes: 0 };
    let converted = reader.convert(schema, 0);
    let members = converted.get("properties").and_then(Value::as_object);
    members.is_some_and(|members| !members.is_empty()).then_some(converted)
}

struct Reader<'a> {
    root: &'a Value,
    nodes: usize,
}

/// What stands for anything: Gemini wants a type, and a text can hold every value.
fn anything(why: &str) -> Value {
    if why.is_empty() { json!({"type": "string"}) } else { json!({"type": "string", "description": why}) }
}

impl<'a> Reader<'a> {
    fn convert(&mut self, schema: &'a Value, depth: usize) -> Value {
        self.nodes = self.nodes.saturating_add(1);
        let description = json::text(schema, "description").unwrap_or_default();
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            return anything(if description.is_empty() { "a value as JSON text" } else { description });
        }
        let depth = depth.saturating_add(1);
        let Some(members) = schema.as_object() else { return anything("") };
        if let Some(target) = json::text(schema, "$ref") {
            let Some(target) = target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)) else {
                return anything(description);
            };
            return described(self.convert(target, depth), description);
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(alternatives)) = members.get(key) {
                return self.alternatives(alternatives, description, depth);
            }
        }
        if let Some(Value::Array(all)) = members.get("allOf") {
            return self.merged(all, members, description, depth);
        }
        if let Some(Value::Array(types)) = members.get("type") {
            return self.several_types(types, members, depth);
        }
        self.plain(members, kind_of(members), depth)
    }

    fn plain(&mut self, members: &'a Map<String, Value>, kind: &str, depth: usize) -> Value {
        let mut converted = Map::new();
        converted.insert("type".to_owned(), json!(kind));
        for key in KEPT {
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
            enumerate(&mut converted, kind, &values);
        }
        if members.get("nullable") == Some(&Value::Bool(true)) {
            converted.insert("nullable".to_owned(), Value::Bool(true));
        }
        match kind {
            "array" => {
                let items = members
                    .get("items")
                    .or_else(|| members.get("prefixItems").and_then(|items| items.get(0)));
                let items = items.map_or_else(|| anything(""), |items| self.convert(items, depth));
                converted.insert("items".to_owned(), items);
            }
            "object" => self.properties(&mut converted, members, depth),
            _ => {}
        }
        Value::Object(converted)
    }

    fn properties(
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

    /// One of several: null makes the rest nullable, fixed texts become one enumeration.
    fn alternatives(&mut self, alternatives: &'a [Value], description: &str, depth: usize) -> Value {
        let is_null = |schema: &&'a Value| schema.get("type").and_then(Value::as_str) == Some("null");
        let nullable = alternatives.iter().any(|schema| is_null(&schema));
        let rest: Vec<&'a Value> = alternatives.iter().filter(|schema| !is_null(schema)).collect();
        let words: Option<Vec<Value>> =
            rest.iter().map(|schema| fixed_words(schema)).collect::<Option<Vec<_>>>().map(|all| all.concat());
        let mut converted = match (words, rest.as_slice()) {
            (Some(words), [_, ..]) => {
                let mut converted = json::object([("type", json!("string"))]);
                enumerate(&mut converted, "string", &words);
                Value::Object(converted)
            }
            (_, []) => anything(""),
            (_, [only]) => self.convert(only, depth),
            (_, several) => {
                let several: Vec<Value> = several.iter().map(|schema| self.convert(schema, depth)).collect();
                // Gemini takes no other member beside `anyOf` than these two.
                json!({"anyOf": several})
            }
        };
        if nullable && let Some(members) = converted.as_object_mut() {
            members.insert("nullable".to_owned(), Value::Bool(true));
        }
        described(converted, description)
    }

    /// All of several, which is how schemas extend each other: members are put together.
    fn merged(
        &mut self,
        all: &'a [Value],
        own: &'a Map<String, Value>,
        description: &str,
        depth: usize,
    ) -> Value {
        let mut merged = Map::new();
        let mut own_part = self.plain(own, kind_of(own), depth);
        if !own.contains_key("type") && !own.contains_key("properties") {
            own_part = json!({});
        }
        let parts: Vec<Value> = all.iter().map(|part| self.convert(part, depth)).chain([own_part]).collect();
        for part in parts {
            let Value::Object(part) = part else { continue };
            for (key, value) in part {
                match (merged.get_mut(&key), value) {
                    (Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
                    (Some(Value::Array(known)), Value::Array(more)) if key == "required" => {
                        known.extend(more)
                    }
                    (_, value) => {
                        merged.insert(key, value);
                    }
                }
            }
        }
        described(Value::Object(merged), description)
    }

    fn several_types(&mut self, types: &'a [Value], members: &'a Map<String, Value>, depth: usize) -> Value {
        let names: Vec<&str> = types.iter().filter_map(Value::as_str).collect();
        let nullable = names.contains(&"null");
        let rest: Vec<&str> = names.into_iter().filter(|name| *name != "null").collect();
        let mut converted = match rest.as_slice() {
            [] => anything(""),
            [only] => self.plain(members, only, depth),
            several => {
                let several: Vec<Value> =
                    several.iter().map(|kind| self.plain(members, kind, depth)).collect();
                json!({"anyOf": several})
            }
        };
        if nullable && let Some(members) = converted.as_object_mut() {
            members.insert("nullable".to_owned(), Value::Bool(true));
        }
        converted
    }
}

fn kind_of(members: &Map<String, Value>) -> &str {
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

/// The texts of a schema that allows only some.
fn fixed_words(schema: &Value) -> Option<Vec<Value>> {
    let values = match (schema.get("const"), schema.get("enum")) {
        (Some(only), _) => vec![only.clone()],
        (None, Some(Value::Array(values))) => values.clone(),
        _ => return None,
    };
    values.iter().all(Value::is_string).then_some(values)
}

/// Gemini enumerates texts only; of other types the values are put into words.
fn enumerate(converted: &mut Map<String, Value>, kind: &str, values: &[Value]) {
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

/// The schema with its outer description, which says more of this use than the inner one.
fn described(mut schema: Value, description: &str) -> Value {
    if !description.is_empty()
        && let Some(members) = schema.as_object_mut()
    {
        members.insert("description".to_owned(), json!(description));
    }
    schema
}
