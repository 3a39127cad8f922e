//! Templates of prompts: `${name}` stands for a value.

use std::collections::BTreeMap;

/// Maximum bytes of an expanded template: more than any model's window.
const MAX_EXPANDED_BYTES: usize = 4 * 1024 * 1024;

/// The reason why a template can't be expanded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The template names values that aren't there.
    #[error("missing inputs: {}; available inputs: {}", missing.join(", "), list_names(available))]
    Missing {
        /// The names without a value, in the order of the template.
        missing: Vec<String>,
        /// The names with a value.
        available: Vec<String>,
    },
    /// The expanded text would be too long.
    #[error("the prompt would have more than {MAX_EXPANDED_BYTES} bytes; give shorter inputs")]
    TooLong,
}

fn list_names(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Replaces each `${name}` by its value. Values are data: a `${…}` in one stays as it is. A `${`
/// that no name and `}` follow is text, and so is one after a `$`, which is left out.
pub(super) fn expand(template: &str, values: &BTreeMap<String, String>) -> Result<String, TemplateError> {
    let mut out = String::with_capacity(template.len());
    let mut missing: Vec<String> = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(escaped) = before.strip_suffix('$') {
            out.push_str(escaped);
            out.push_str("${");
            rest = after;
            continue;
        }
        out.push_str(before);
        let Some((name, tail)) = split_placeholder(after) else {
            out.push_str("${");
            rest = after;
            continue;
        };
        match values.get(name) {
            Some(value) => out.push_str(value),
            None if missing.iter().all(|known| known != name) => missing.push(name.to_owned()),
            None => {}
        }
        if out.len() > MAX_EXPANDED_BYTES {
            return Err(TemplateError::TooLong);
        }
        rest = tail;
    }
    out.push_str(rest);
    if !missing.is_empty() {
        return Err(TemplateError::Missing { missing, available: values.keys().cloned().collect() });
    }
    if out.len() > MAX_EXPANDED_BYTES { Err(TemplateError::TooLong) } else { Ok(out) }
}

/// Returns the names that a template has placeholders for.
pub(super) fn placeholder_names(template: &str) -> impl Iterator<Item = &str> {
    let mut rest = template;
    std::iter::from_fn(move || {
        loop {
            let (before, after) = rest.split_once("${")?;
            rest = after;
            if !before.ends_with('$')
                && let Some((name, _)) = split_placeholder(after)
            {
                return Some(name);
            }
        }
    })
}

/// Splits a name and `}` from the beginning of a text.
fn split_placeholder(text: &str) -> Option<(&str, &str)> {
    let (name, tail) = text.split_once('}')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some((name, tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn values_are_data_and_are_never_expanded_again() {
        let given = values(&[("a", "${b} $& $1"), ("b", "two"), ("unused", "x")]);
        for (template, expected) in [
            ("${a}|${b}", "${b} $& $1|two"),
            ("no placeholder", "no placeholder"),
            ("$ {a} $a ${} ${a b} ${", "$ {a} $a ${} ${a b} ${"),
            ("${${a}", "${${b} $& $1"),
            ("$${a} costs $$${b}", "${a} costs $${b}"),
        ] {
            assert_eq!(expand(template, &given).as_deref(), Ok(expected), "{template}");
        }
    }

    #[test]
    fn missing_names_are_listed_beside_those_that_are_there() {
        let error = expand("${a} ${c} ${d} ${c}", &values(&[("a", "1"), ("b", "2")])).unwrap_err();
        assert_eq!(error.to_string(), "missing inputs: c, d; available inputs: a, b");
        let error = expand("${a}", &values(&[])).unwrap_err();
        assert_eq!(error.to_string(), "missing inputs: a; available inputs: none");
    }

    #[test]
    fn names_are_those_that_are_expanded() {
        assert_eq!(placeholder_names("${a} $${b} ${ ${c} ${d e}").collect::<Vec<_>>(), ["a", "c"]);
    }

    #[test]
    fn an_expanded_text_is_bounded() {
        let long = "x".repeat(MAX_EXPANDED_BYTES / 2);
        let given = values(&[("a", &long)]);
        assert_eq!(expand("${a}${a}${a}", &given), Err(TemplateError::TooLong));
    }
}
