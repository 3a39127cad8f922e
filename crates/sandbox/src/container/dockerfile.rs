//! The images that a Dockerfile starts from. A build would fetch missing images, and nothing may be
//! fetched without a request.

use std::collections::BTreeMap;

/// Instructions of one file; a long one has a hundred.
const MAX_INSTRUCTIONS: usize = 2_000;
/// The name of the empty image.
const EMPTY_IMAGE: &str = "scratch";

/// Returns the images that must be there, in their order, each once.
///
/// # Errors
/// Text that isn't understood: the images that a build would fetch are then unknown.
pub(super) fn parse_base_images(text: &str, given: &BTreeMap<String, String>) -> Result<Vec<String>, String> {
    let mut variables: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut stages: Vec<String> = Vec::new();
    let mut found: Vec<String> = Vec::new();
    let mut any = false;
    let mut need = |name: &str, stages: &[String]| {
        let own = stages.iter().any(|stage| stage.eq_ignore_ascii_case(name));
        if !own && name != EMPTY_IMAGE && !found.iter().any(|known| known == name) {
            found.push(name.to_owned());
        }
    };
    let mut count = 0_usize;
    for (number, instruction) in split_instructions(text)? {
        let mut words = instruction.split_ascii_whitespace();
        let Some(keyword) = words.next() else { continue };
        match keyword.to_ascii_uppercase().as_str() {
            // Those before the first stage are all that counts where an image is named.
            "ARG" if !any => {
                for word in words {
                    let (name, value) = match word.split_once('=') {
                        Some((name, value)) => (name, Some(unquote(value).to_owned())),
                        None => (word, None),
                    };
                    let value = given.get(name).cloned().or(value);
                    variables.insert(name.to_owned(), value);
                }
            }
            "FROM" => {
                let mut words = words.filter(|word| !word.starts_with("--platform"));
                let image = words.next().ok_or_else(|| format!("line {number}: FROM names no image"))?;
                let image = fill_variables(image, &variables).ok_or_else(|| {
                    format!(
                        "line {number}: which image is meant depends on a variable that has no plain value"
                    )
                })?;
                need(&image, &stages);
                let name = match (words.next(), words.next()) {
                    (Some(word), Some(name)) if word.eq_ignore_ascii_case("as") => name.to_owned(),
                    (None, _) => String::new(),
                    _ => return Err(format!("line {number}: FROM isn't understood")),
                };
                any = true;
                // A stage can also be named by its number.
                stages.push(count.to_string());
                stages.push(name);
                count += 1;
            }
            "COPY" | "ADD" | "RUN" | "ONBUILD" => {
                for word in instruction.split(|c: char| c.is_ascii_whitespace() || c == ',') {
                    let from = word.strip_prefix("--from=").or_else(|| word.strip_prefix("from="));
                    let Some(image) = from.map(unquote) else { continue };
                    if image.contains('$') {
                        return Err(format!("line {number}: an image is named by a variable"));
                    }
                    need(image, &stages);
                }
            }
            _ => {}
        }
    }
    if any { Ok(found) } else { Err("it has no FROM".to_owned()) }
}

/// Instructions with the number of their first line, continued lines joined, comments left out.
fn split_instructions(text: &str) -> Result<Vec<(usize, String)>, String> {
    let mut all: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#') {
            let directive: String = comment.chars().filter(|c| !c.is_whitespace()).collect();
            let directive = directive.to_ascii_lowercase();
            if all.is_empty() && (directive.starts_with("escape=") || directive.starts_with("syntax=")) {
                return Err(format!("line {}: another syntax than the usual one", number + 1));
            }
            continue;
        }
        if line.is_empty() {
            continue;
        }
        let (part, continues) = match line.strip_suffix('\\') {
            Some(part) => (part, true),
            None => (line, false),
        };
        match all.last_mut().filter(|_| open) {
            Some((_, instruction)) => instruction.push_str(part),
            None => all.push((number + 1, part.to_owned())),
        }
        open = continues;
        if all.len() > MAX_INSTRUCTIONS {
            return Err(format!("it has more than {MAX_INSTRUCTIONS} instructions"));
        }
    }
    Ok(all)
}

fn unquote(text: &str) -> &str {
    let inner = |quote: char| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}

/// Returns a name with its variables filled in; `None` where one has no value, or more than a name.
fn fill_variables(name: &str, variables: &BTreeMap<String, Option<String>>) -> Option<String> {
    let mut out = String::new();
    let mut rest = unquote(name);
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let variable = match after.strip_prefix('{') {
            Some(braced) => {
                let (variable, after) = braced.split_once('}')?;
                rest = after;
                variable
            }
            None => {
                let end = after.find(|c| !is_name(c)).unwrap_or(after.len());
                let (variable, after) = after.split_at_checked(end)?;
                rest = after;
                variable
            }
        };
        if variable.is_empty() || !variable.chars().all(is_name) {
            return None;
        }
        let value = variables.get(variable)?.as_ref()?;
        if value.contains('$') {
            return None;
        }
        out.push_str(value);
    }
    out.push_str(rest);
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    (!out.is_empty() && out.chars().all(plain)).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Result<Vec<String>, String> {
        parse_base_images(text, &BTreeMap::from([("V".to_owned(), "given".to_owned())]))
    }

    #[test]
    fn images_are_found_wherever_they_are_named() {
        let cases: &[(&str, &[&str])] = &[
            ("FROM debian:12\nRUN true\n", &["debian:12"]),
            ("# c\nfrom --platform=linux/amd64 a/b@sha256:00 as One\nFROM one\n", &["a/b@sha256:00"]),
            ("ARG V=default\nFROM base:${V}-slim\n", &["base:given-slim"]),
            ("ARG W=\"x\"\nFROM base:$W\n", &["base:x"]),
            ("FROM \\\n  split\n", &["split"]),
            ("FROM a\nCOPY --from=b /x /y\nCOPY --from=0 /x /y\n", &["a", "b"]),
            ("FROM a AS s\nCOPY --chown=1 --from=s /x /y\n", &["a"]),
            ("FROM a\nRUN --mount=type=bind,from=c,source=/x true\n", &["a", "c"]),
            ("FROM a\nONBUILD COPY --from=d /x /y\n", &["a", "d"]),
            ("FROM scratch\nCOPY x /\n", &[]),
            ("FROM a\nFROM b\nFROM a\n", &["a", "b"]),
        ];
        for (text, expected) in cases {
            assert_eq!(found(text).unwrap(), *expected, "{text}");
        }
    }

    #[test]
    fn what_cant_be_told_is_an_error() {
        for text in [
            "",
            "RUN true\n",
            "FROM\n",
            "FROM $UNKNOWN\n",
            "ARG A\nFROM x:$A\n",
            "ARG A=x\nFROM ${A:-y}\n",
            "ARG A=$V\nFROM $A\n",
            "FROM a b c\n",
            "FROM a;b\n",
            "# escape=`\nFROM a\n",
            "# syntax = docker/dockerfile:1\nFROM a\n",
            "FROM a\nCOPY --from=$X / /\n",
        ] {
            assert!(found(text).is_err(), "{text}");
        }
        assert!(found(&"FROM a\n".repeat(3_000)).is_err());
    }
}
