//! The typed inputs of an agent.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::schema::{SchemaError, check_schema, find_violations};
use super::template::TemplateError;

/// Maximum characters of an unknown name that an error repeats.
const MAX_SHOWN_INPUT_NAME_CHARS: usize = 60;

/// The type of an input.
#[derive(Debug, Clone, PartialEq)]
pub enum InputKind {
    /// A text.
    String,
    /// A number.
    Number,
    /// A whole number.
    Integer,
    /// True or false.
    Boolean,
    /// A list of texts.
    Strings,
    /// A list of numbers.
    Numbers,
    /// Any value that a JSON Schema allows.
    Schema(Value),
}

/// An input of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentInput {
    /// The name, which `${name}` stands for in templates.
    pub name: String,
    /// The type.
    pub kind: InputKind,
    /// The meaning, for the person or model that gives the value.
    pub description: String,
    /// True if the agent can't run without a value.
    pub required: bool,
}

/// The reason why inputs were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// The inputs don't fit the definition.
    #[error("{}", .0.join("; "))]
    Invalid(Vec<String>),
    /// A template names what isn't there.
    #[error(transparent)]
    Template(#[from] TemplateError),
}

/// The names of the types, as definitions write them.
const KIND_NAMES: [&str; 6] = ["string", "number", "integer", "boolean", "string[]", "number[]"];

/// The error for an unknown type name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is no type; there are {}, and any JSON Schema", KIND_NAMES.join(", "))]
pub struct UnknownInputKind {
    /// The name as given, shortened.
    pub given: String,
}

impl std::str::FromStr for InputKind {
    type Err = UnknownInputKind;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Ok(match name {
            "string" => Self::String,
            "number" => Self::Number,
            "integer" => Self::Integer,
            "boolean" => Self::Boolean,
            "string[]" => Self::Strings,
            "number[]" => Self::Numbers,
            other => return Err(UnknownInputKind { given: shorten_for_error(other) }),
        })
    }
}

impl InputKind {
    /// Returns the JSON Schema of the type.
    #[must_use]
    pub fn schema(&self) -> Value {
        match self {
            Self::String => json!({ "type": "string" }),
            Self::Number => json!({ "type": "number" }),
            Self::Integer => json!({ "type": "integer" }),
            Self::Boolean => json!({ "type": "boolean" }),
            Self::Strings => json!({ "type": "array", "items": { "type": "string" } }),
            Self::Numbers => json!({ "type": "array", "items": { "type": "number" } }),
            Self::Schema(schema) => schema.clone(),
        }
    }

    /// Reads a value that a person typed: a text as it is, lists by commas or as JSON, the others
    /// as JSON.
    ///
    /// # Errors
    /// A sentence that says what was expected.
    pub fn parse_text(&self, text: &str) -> Result<Value, String> {
        let json = || serde_json::from_str::<Value>(text.trim());
        match self {
            Self::String => Ok(Value::String(text.to_owned())),
            Self::Strings if !text.trim_start().starts_with('[') => {
                Ok(text.split(',').map(|item| Value::String(item.trim().to_owned())).collect())
            }
            Self::Numbers if !text.trim_start().starts_with('[') => parse_number_list(text),
            Self::Schema(_) => Ok(json().unwrap_or_else(|_| Value::String(text.to_owned()))),
            _ => json().map_err(|_| {
                format!("`{}` is not JSON of the type {}", shorten_for_error(text), self.schema())
            }),
        }
    }
}

fn parse_number_list(text: &str) -> Result<Value, String> {
    let item = |item: &str| {
        serde_json::from_str::<Value>(item.trim())
            .map_err(|_| format!("`{}` is no number", shorten_for_error(item)))
    };
    text.split(',').map(item).collect()
}

/// Returns a text for an error message: shortened, and without control characters.
fn shorten_for_error(text: &str) -> String {
    text.chars()
        .take(MAX_SHOWN_INPUT_NAME_CHARS)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// Returns the JSON Schema of an object with these inputs. An empty list of required names is left
/// out, because some providers refuse it.
pub(super) fn object_schema(inputs: &[AgentInput]) -> Value {
    let mut properties = Map::new();
    for input in inputs {
        let mut schema = input.kind.schema();
        if let Some(schema) = schema.as_object_mut()
            && !input.description.is_empty()
        {
            schema.insert("description".to_owned(), Value::String(input.description.clone()));
        }
        properties.insert(input.name.clone(), schema);
    }
    let required: Vec<&str> =
        inputs.iter().filter(|input| input.required).map(|input| input.name.as_str()).collect();
    let mut object = json!({ "type": "object", "properties": properties });
    if let (Some(object), false) = (object.as_object_mut(), required.is_empty()) {
        object.insert("required".to_owned(), json!(required));
    }
    object
}

/// Checks that an input can be used: its name, and the schema of its type.
pub(super) fn check_input(input: &AgentInput) -> Result<(), String> {
    let is_name = !input.name.is_empty() && input.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name {
        let name = shorten_for_error(&input.name);
        return Err(format!("`{name}` can't name an input: letters, digits and `_` of ASCII"));
    }
    match &input.kind {
        InputKind::Schema(schema) => {
            check_schema(schema).map_err(|SchemaError(why)| format!("`{}`: {why}", input.name))
        }
        _ => Ok(()),
    }
}

/// Returns the values of templates for these inputs. Names that the definition doesn't have, and
/// values of other types, are refused.
pub(super) fn template_values(
    inputs: &[AgentInput],
    given: &Map<String, Value>,
) -> Result<BTreeMap<String, String>, InputError> {
    let mut problems = Vec::new();
    for name in given.keys().filter(|name| inputs.iter().all(|input| input.name != **name)) {
        problems.push(format!("there is no input `{}`", shorten_for_error(name)));
    }
    let mut values = BTreeMap::new();
    let mut missing = Vec::new();
    for input in inputs {
        let Some(value) = given.get(&input.name).filter(|value| !value.is_null()) else {
            if input.required {
                missing.push(input.name.clone());
            } else {
                values.insert(input.name.clone(), String::new());
            }
            continue;
        };
        let wrong = find_violations(&input.kind.schema(), value).unwrap_or_else(|SchemaError(why)| vec![why]);
        problems.extend(wrong.into_iter().map(|why| format!("input `{}`: {why}", input.name)));
        values.insert(input.name.clone(), format_value(value));
    }
    if !missing.is_empty() {
        let available = given.keys().map(|name| shorten_for_error(name)).collect();
        return Err(TemplateError::Missing { missing, available }.into());
    }
    if problems.is_empty() { Ok(values) } else { Err(InputError::Invalid(problems)) }
}

/// Formats a value for a prompt: a text unchanged, a list of texts as lines, other values as JSON.
pub(super) fn format_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_string) => {
            let lines = items.iter().filter_map(Value::as_str).map(|item| format!("- {item}"));
            lines.collect::<Vec<_>>().join("\n")
        }
        Value::Object(_) | Value::Array(_) => serde_json::to_string_pretty(value).unwrap_or_default(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(name: &str, kind: InputKind, required: bool) -> AgentInput {
        AgentInput { name: name.to_owned(), kind, description: String::new(), required }
    }

    #[test]
    fn an_unknown_type_is_named_with_those_that_there_are() {
        for kind in KIND_NAMES {
            assert!(kind.parse::<InputKind>().is_ok(), "{kind}");
        }
        let error = "date".parse::<InputKind>().unwrap_err().to_string();
        assert!(error.starts_with("`date` is no type; there are string, number, integer"), "{error}");
    }

    #[test]
    fn inputs_become_the_schema_of_a_tool_without_an_empty_list_of_required_names() {
        let optional = [input("a", InputKind::Strings, false)];
        assert_eq!(
            object_schema(&optional),
            json!({ "type": "object", "properties": { "a": { "type": "array", "items": { "type": "string" } } } })
        );
        let required = [input("a", InputKind::Boolean, true), input("b", InputKind::Integer, false)];
        assert_eq!(object_schema(&required)["required"], json!(["a"]));
    }

    #[test]
    fn values_are_checked_against_their_types() {
        let schema = InputKind::Schema(json!({ "enum": ["low", "high"] }));
        let inputs = [
            input("text", InputKind::String, true),
            input("count", InputKind::Integer, false),
            input("items", InputKind::Strings, false),
            input("level", schema, false),
        ];
        let values = |given: Value| template_values(&inputs, given.as_object().unwrap());
        let good = values(json!({ "text": "x", "items": ["a", "b"], "level": "low" })).unwrap();
        assert_eq!((good["items"].as_str(), good["count"].as_str()), ("- a\n- b", ""));
        assert_eq!(
            values(json!({ "count": 1 })).unwrap_err().to_string(),
            "missing inputs: text; available inputs: count"
        );
        for (given, named) in [
            (json!({ "text": 1 }), "input `text`"),
            (json!({ "text": "x", "count": 1.5 }), "input `count`"),
            (json!({ "text": "x", "level": "middle" }), "input `level`"),
            (json!({ "text": "x", "other": 1 }), "there is no input `other`"),
        ] {
            let error = values(given).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn typed_values_are_read_by_their_types() {
        for (kind, text, value) in [
            (InputKind::String, "42", json!("42")),
            (InputKind::Integer, "42", json!(42)),
            (InputKind::Boolean, "true", json!(true)),
            (InputKind::Strings, "a, b", json!(["a", "b"])),
            (InputKind::Strings, r#"["a,b"]"#, json!(["a,b"])),
            (InputKind::Numbers, "1, 2.5", json!([1, 2.5])),
        ] {
            assert_eq!(kind.parse_text(text), Ok(value), "{text}");
        }
        assert!(InputKind::Integer.parse_text("many").is_err());
        assert!(InputKind::Numbers.parse_text("1,x").is_err());
    }
}
