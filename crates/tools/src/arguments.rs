//! Fits a model's arguments to a tool's schema: harmless slips are corrected, others are reported.

use serde_json::{Map, Number, Value};

use crate::excerpt::to_one_line;
use crate::schema::{properties, required};

/// Maximum number of problems reported of one call.
const MAX_PROBLEMS: usize = 5;
/// Minimum similarity of a misspelt name to the argument that it is taken for.
const MIN_SIMILARITY: f64 = 0.7;
/// Names that other agents use for an argument, because models share their habits.
const ARGUMENT_SYNONYMS: [(&str, &str); 23] = [
    ("file_path", "path"),
    ("filepath", "path"),
    ("filename", "path"),
    ("file", "path"),
    ("dir", "path"),
    ("old_string", "search"),
    ("old_str", "search"),
    ("old_text", "search"),
    ("new_string", "replace"),
    ("new_str", "replace"),
    ("new_text", "replace"),
    ("contents", "content"),
    ("file_text", "content"),
    ("cmd", "command"),
    ("cwd", "directory"),
    ("query", "pattern"),
    ("regex", "pattern"),
    ("input", "patch"),
    ("destination", "to"),
    ("new_path", "to"),
    ("description", "why"),
    ("explanation", "why"),
    ("reason", "why"),
];

/// Converts `input` to the form that `schema` asks for.
///
/// # Errors
/// The problems and their remedies, in one line.
pub(crate) fn fit_to_schema(schema: &Value, input: Value) -> Result<Value, String> {
    let mut problems = Vec::new();
    let fitted = fit_value(schema, input, "", &mut problems);
    if problems.is_empty() {
        return Ok(fitted);
    }
    let more = problems.len().saturating_sub(MAX_PROBLEMS);
    problems.truncate(MAX_PROBLEMS);
    if more > 0 {
        problems.push(format!("{more} more"));
    }
    Err(problems.join("; "))
}

/// Returns the location of a value for people: `the arguments`, or the path of the field.
fn describe_location(at: &str) -> String {
    if at.is_empty() { "the arguments".to_owned() } else { format!("`{at}`") }
}

fn fit_value(schema: &Value, value: Value, at: &str, problems: &mut Vec<String>) -> Value {
    let wanted = schema.get("type").and_then(Value::as_str).unwrap_or("any");
    match (wanted, value) {
        ("object", value) => fit_object(schema, value, at, problems),
        ("array", value) => fit_array(schema, value, at, problems),
        ("string", Value::Number(number)) => Value::String(number.to_string()),
        ("string", value @ Value::String(_)) => value,
        ("integer", value) => match read_integer(&value) {
            Some(number) => Value::Number(number),
            None => add_problem("a whole number of at least 0", value, at, problems),
        },
        ("boolean", value @ Value::Bool(_)) => value,
        ("boolean", Value::String(word)) if word.eq_ignore_ascii_case("true") => Value::Bool(true),
        ("boolean", Value::String(word)) if word.eq_ignore_ascii_case("false") => Value::Bool(false),
        ("string", value) => add_problem("a string", value, at, problems),
        ("boolean", value) => add_problem("true or false", value, at, problems),
        (_, value) => value,
    }
}

fn add_problem(wanted: &str, value: Value, at: &str, problems: &mut Vec<String>) -> Value {
    problems.push(format!("{} must be {wanted}, not {}", describe_location(at), describe_value(&value)));
    value
}

/// Reads a whole number in the forms that models write: 5, 5.0, "5".
fn read_integer(value: &Value) -> Option<Number> {
    /// The largest float up to which every whole number has a float of its own.
    const MAX_EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_u64() => Some(number.clone()),
        Value::Number(number) => {
            let float = number
                .as_f64()
                .filter(|float| float.fract() == 0.0 && (0.0..=MAX_EXACT_FLOAT).contains(float))?;
            // In range and whole, so the conversion loses nothing.
            Some(Number::from(float as u64))
        }
        Value::String(text) => text.trim().parse::<u64>().ok().map(Number::from),
        _ => None,
    }
}

fn fit_array(schema: &Value, value: Value, at: &str, problems: &mut Vec<String>) -> Value {
    let items = match value {
        Value::Array(items) => items,
        Value::Object(one) => vec![Value::Object(one)],
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(Value::Array(items)) => items,
            _ => return add_problem("a list", Value::String(text), at, problems),
        },
        other => return add_problem("a list", other, at, problems),
    };
    let any = Value::Null;
    let schema = schema.get("items").unwrap_or(&any);
    let fitted = items.into_iter().enumerate().map(|(nth, item)| {
        let at = format!("{at}[{nth}]");
        fit_value(schema, item, &at, problems)
    });
    Value::Array(fitted.collect())
}

fn fit_object(schema: &Value, value: Value, at: &str, problems: &mut Vec<String>) -> Value {
    let given = match value {
        Value::Object(given) => given,
        Value::Null => Map::new(),
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(given)) => given,
            _ => return add_problem("a JSON object", Value::String(text), at, problems),
        },
        other => return add_problem("a JSON object", other, at, problems),
    };
    let prefix = if at.is_empty() { String::new() } else { format!("{at}.") };
    let known: Vec<&str> = properties(schema).map(|(name, _)| name.as_str()).collect();
    let must = required(schema);
    let mut fitted = Map::new();
    for (name, value) in given {
        let name = synonymous_argument(&name, &known, &fitted).map_or(name, str::to_owned);
        let Some((_, field)) = properties(schema).find(|(known, _)| **known == name) else {
            problems.push(describe_unknown_argument(&format!("{prefix}{name}"), &name, &known));
            continue;
        };
        if value.is_null() {
            continue;
        }
        let value = fit_value(field, value, &format!("{prefix}{name}"), problems);
        fitted.insert(name, value);
    }
    for name in must.into_iter().filter(|name| !fitted.contains_key(*name)) {
        // A field of the wrong type is reported already.
        problems.push(format!("`{prefix}{name}` is missing"));
    }
    Value::Object(fitted)
}

/// Returns the argument that `name` is a synonym of, if the tool has it and the call doesn't give
/// it.
fn synonymous_argument<'k>(name: &str, known: &[&'k str], fitted: &Map<String, Value>) -> Option<&'k str> {
    if known.contains(&name) {
        return None;
    }
    let (_, word) = ARGUMENT_SYNONYMS.iter().find(|(synonym, _)| *synonym == name)?;
    known.iter().copied().find(|known| known == word && !fitted.contains_key(*known))
}

fn describe_unknown_argument(at: &str, name: &str, known: &[&str]) -> String {
    let nearest = known
        .iter()
        .map(|known| (strsim::jaro_winkler(name, known), known))
        .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
        .max_by(|one, other| one.0.total_cmp(&other.0));
    let at = to_one_line(at, 80);
    match nearest {
        Some((_, nearest)) => format!("there is no argument `{at}`; did you mean `{nearest}`?"),
        None => format!("there is no argument `{at}`"),
    }
}

/// Describes a value in a few words.
fn describe_value(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("the string {:?}", to_one_line(text, 40)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde_json::json;

    use super::*;
    use crate::schema::schema_of;

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Arguments {
        path: String,
        limit: Option<u64>,
        ignore_case: Option<bool>,
        edits: Option<Vec<Pair>>,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Pair {
        search: String,
        replace: String,
    }

    #[test]
    fn harmless_slips_are_taken_as_meant() {
        let cases = [
            (json!({"path": "a"}), json!({"path": "a"})),
            (json!({"path": "a", "limit": "5"}), json!({"path": "a", "limit": 5})),
            (json!({"path": "a", "limit": 5.0}), json!({"path": "a", "limit": 5})),
            (json!({"path": "a", "limit": null}), json!({"path": "a"})),
            (json!({"path": "a", "ignore_case": "True"}), json!({"path": "a", "ignore_case": true})),
            (json!({"file_path": "a"}), json!({"path": "a"})),
            (json!({"path": 404}), json!({"path": "404"})),
            (json!("{\"path\": \"a\"}"), json!({"path": "a"})),
            (
                json!({"path": "a", "edits": "[{\"old_string\": \"x\", \"new_string\": \"y\"}]"}),
                json!({"path": "a", "edits": [{"search": "x", "replace": "y"}]}),
            ),
            (
                json!({"path": "a", "edits": {"search": "x", "replace": "y"}}),
                json!({"path": "a", "edits": [{"search": "x", "replace": "y"}]}),
            ),
        ];
        let schema = schema_of::<Arguments>();
        for (given, expected) in cases {
            assert_eq!(fit_to_schema(&schema, given.clone()), Ok(expected), "{given}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_right() {
        let cases = [
            (json!({}), "`path` is missing"),
            (json!(null), "`path` is missing"),
            (json!([1]), "the arguments must be a JSON object, not a list"),
            (json!("x"), "the arguments must be a JSON object, not the string \"x\""),
            (json!({"path": {}}), "`path` must be a string, not an object"),
            (json!({"path": "a", "limit": -5}), "`limit` must be a whole number of at least 0, not -5"),
            (
                json!({"path": "a", "limit": "many"}),
                "`limit` must be a whole number of at least 0, not the string \"many\"",
            ),
            (
                json!({"path": "a", "limit": 1e300}),
                "`limit` must be a whole number of at least 0, not 1e+300",
            ),
            (json!({"path": "a", "limits": 5}), "there is no argument `limits`; did you mean `limit`?"),
            (json!({"path": "a", "zzz": 5}), "there is no argument `zzz`"),
            (json!({"path": "a", "file_path": "b"}), "there is no argument `file_path`"),
            (
                json!({"path": "a", "edits": [{"search": "x", "replace": "y"}, {"search": 1}]}),
                "`edits[1].replace` is missing",
            ),
            (json!({"path": "a", "edits": [[]]}), "`edits[0]` must be a JSON object, not a list"),
        ];
        let schema = schema_of::<Arguments>();
        for (given, expected) in cases {
            let error = fit_to_schema(&schema, given.clone()).unwrap_err();
            assert!(error.starts_with(expected), "{given}: {error}");
        }
    }

    #[test]
    fn schemas_have_nothing_a_model_does_not_need() {
        assert_eq!(
            schema_of::<Arguments>(),
            json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "limit": {"type": "integer"},
                    "ignore_case": {"type": "boolean"},
                    "edits": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {"search": {"type": "string"}, "replace": {"type": "string"}},
                            "required": ["search", "replace"],
                        },
                    },
                },
                "required": ["path"],
            })
        );
    }
}
