//! Front matter: the YAML between two lines of `---` at the beginning of a Markdown file.

use serde_json::{Map, Value};

use super::file_error::AgentFileError;

/// Maximum bytes of front matter. Real ones have a few hundred.
const MAX_FRONT_MATTER_BYTES: usize = 64 * 1024;

/// The fields of front matter, each taken once. What is left at the end is unknown.
pub(super) struct Fields {
    map: Map<String, Value>,
}

/// Splits a file into its front matter and its text.
pub(super) fn split(text: &str) -> Result<(Fields, &str), AgentFileError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let missing = || {
        AgentFileError::new("front matter", "the file has to begin with a line `---`, YAML, and a line `---`")
    };
    let first = text.lines().next().ok_or_else(missing)?;
    if first.trim_end() != "---" {
        return Err(missing());
    }
    let rest = text.get(first.len()..).and_then(|rest| rest.split_once('\n')).map(|(_, rest)| rest);
    let rest = rest.ok_or_else(missing)?;
    let mut length = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            let yaml = rest.get(..length).unwrap_or_default();
            let body = rest.get(length + line.len()..).unwrap_or_default();
            return Ok((parse(yaml)?, body));
        }
        length += line.len();
    }
    Err(missing())
}

fn parse(yaml: &str) -> Result<Fields, AgentFileError> {
    if yaml.len() > MAX_FRONT_MATTER_BYTES {
        let why = format!("it has {} bytes; at most {MAX_FRONT_MATTER_BYTES}", yaml.len());
        return Err(AgentFileError::new("front matter", why));
    }
    if yaml.trim().is_empty() {
        return Ok(Fields { map: Map::new() });
    }
    // The parser bounds depth, nodes and aliases by itself.
    let value: Value = serde_saphyr::from_str(yaml).map_err(|error| {
        // The first line: the others quote the file.
        let text = error.to_string();
        AgentFileError::new("front matter", text.lines().next().unwrap_or_default())
    })?;
    match value {
        Value::Object(map) => Ok(Fields { map }),
        _ => Err(AgentFileError::new("front matter", "it has to be a list of `field: value`")),
    }
}

impl Fields {
    /// Takes a field as it is.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.map.remove(name).filter(|value| !value.is_null())
    }

    /// Takes a text.
    pub(super) fn text(&mut self, name: &'static str) -> Result<Option<String>, AgentFileError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(AgentFileError::new(name, "it has to be a text")),
        }
    }

    /// Takes a whole number above zero.
    pub(super) fn count(&mut self, name: &'static str) -> Result<Option<u64>, AgentFileError> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => match value.as_u64().filter(|count| *count > 0) {
                Some(count) => Ok(Some(count)),
                None => Err(AgentFileError::new(name, "it has to be a whole number above zero")),
            },
        }
    }

    /// Takes a number between two bounds.
    pub(super) fn number(
        &mut self,
        name: &'static str,
        least: f64,
        most: f64,
    ) -> Result<Option<f64>, AgentFileError> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => match value.as_f64().filter(|number| (least..=most).contains(number)) {
                Some(number) => Ok(Some(number)),
                None => {
                    Err(AgentFileError::new(name, format!("it has to be a number from {least} to {most}")))
                }
            },
        }
    }

    /// Refuses what no field was taken from.
    pub(super) fn finish(self, known: &[&str]) -> Result<(), AgentFileError> {
        match self.map.keys().next() {
            None => Ok(()),
            Some(unknown) => {
                let shown: String =
                    unknown.chars().take(60).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
                let why = format!("there is no field `{shown}`; there are {}", known.join(", "));
                Err(AgentFileError::new("front matter", why))
            }
        }
    }
}
