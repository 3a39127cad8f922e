//! JSON Schemas of Rust types, reduced to what a model needs.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// Returns the schema of `A` without titles, formats and the like, because every request carries
/// it.
pub(crate) fn schema_of<A: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>().to_value();
    if let Some(schema) = schema.as_object_mut() {
        // The tool has a description of its own.
        schema.remove("description");
        remove_unneeded(schema);
    }
    schema
}

fn remove_unneeded(schema: &mut Map<String, Value>) {
    for key in ["title", "$schema", "format", "minimum", "default", "additionalProperties"] {
        schema.remove(key);
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().filter_map(Value::as_object_mut).for_each(remove_unneeded);
    }
    if let Some(items) = schema.get_mut("items").and_then(Value::as_object_mut) {
        // An item's fields have the outer fields' names and meanings.
        items.remove("description");
        remove_unneeded(items);
    }
}

/// Returns the arguments and their types in one line: `{path: string, limit?: integer}`.
pub(crate) fn type_signature(schema: &Value) -> String {
    let required = required(schema);
    let fields = properties(schema).map(|(name, field)| {
        let mark = if required.contains(&name.as_str()) { "" } else { "?" };
        format!("{name}{mark}: {}", type_name(field))
    });
    format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
}

fn type_name(schema: &Value) -> String {
    match schema.get("type").and_then(Value::as_str) {
        Some("array") => format!("[{}]", schema.get("items").map_or_else(String::new, type_name)),
        Some("object") => type_signature(schema),
        Some(name) => name.to_owned(),
        None => "any".to_owned(),
    }
}

/// Returns the properties of an object's schema, in order.
pub(crate) fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// Returns the names of the required properties.
pub(crate) fn required(schema: &Value) -> Vec<&str> {
    let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).collect()
}
