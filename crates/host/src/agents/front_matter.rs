//! Front matter: the YAML between two lines of `---` at the beginning of a Markdown file.

use serde_json::{Map, Value};

use super::file_error::AgentFileError;
use crate::text_files::MarkdownFile;

/// The fields of front matter. Each known field is taken once; the fields that remain are unknown.
pub(super) struct Fields {
    map: Map<String, Value>,
}

/// Splits a file into its front matter and its text. `parse` is a function of [`MarkdownFile`].
pub(super) fn split_front_matter(
    text: &str,
    parse: fn(&str) -> Result<MarkdownFile, String>,
) -> Result<(Fields, String), AgentFileError> {
    let file = parse(text).map_err(|why| AgentFileError::new("front matter", why))?;
    if file.fields.is_empty() {
        let why = "the file has to begin with a line `---`, YAML, and a line `---`";
        return Err(AgentFileError::new("front matter", why));
    }
    Ok((Fields { map: file.fields }, file.text))
}

impl Fields {
    /// Takes a field as it is.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.map.remove(name).filter(|value| !value.is_null())
    }

    /// Puts a field in.
    pub(super) fn insert(&mut self, name: &str, value: Value) {
        self.map.insert(name.to_owned(), value);
    }

    /// Removes all fields except `known`, and returns the names of the removed fields.
    pub(super) fn take_all_except(&mut self, known: &[&str]) -> Vec<String> {
        let mut others: Vec<String> =
            self.map.keys().filter(|name| !known.contains(&name.as_str())).cloned().collect();
        others.sort();
        self.map.retain(|name, _| known.contains(&name.as_str()));
        others
    }

    /// Takes a text.
    pub(super) fn take_string(&mut self, name: &'static str) -> Result<Option<String>, AgentFileError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(AgentFileError::new(name, "it has to be a text")),
        }
    }

    /// Takes a whole number above zero.
    pub(super) fn take_count(&mut self, name: &'static str) -> Result<Option<u64>, AgentFileError> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => match value.as_u64().filter(|count| *count > 0) {
                Some(count) => Ok(Some(count)),
                None => Err(AgentFileError::new(name, "it has to be a whole number above zero")),
            },
        }
    }

    /// Takes a number between two bounds.
    pub(super) fn take_number(
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

    /// Returns an error if a field remains that nothing has taken.
    pub(super) fn reject_unknown(self, known: &[&str]) -> Result<(), AgentFileError> {
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
