//! The differences between two requests, for people.

use serde_json::Value;

use crate::error::shorten;

/// Maximum number of differences shown: the first ones nearly always explain the rest.
const MAX_DIFFERENCES: usize = 6;
/// Maximum length of a value that is shown, in bytes.
const MAX_VALUE_BYTES: usize = 200;
/// Characters of a long text that are shown before the first difference.
const CONTEXT_CHARS: usize = 30;

/// Returns the places where `actual` differs from `recorded`, in one or two lines each; `None` if
/// they are equal. The order of members is ignored.
pub(super) fn diff_json(recorded: &Value, actual: &Value) -> Option<String> {
    let mut found = Differences { lines: Vec::new(), more: false };
    found.compare("", recorded, actual);
    if found.lines.is_empty() {
        return None;
    }
    if found.more {
        found.lines.push("  … and more".to_owned());
    }
    Some(found.lines.join("\n"))
}

struct Differences {
    lines: Vec<String>,
    more: bool,
}

impl Differences {
    fn compare(&mut self, path: &str, recorded: &Value, actual: &Value) {
        if self.more || recorded == actual {
            return;
        }
        match (recorded, actual) {
            (Value::Object(old), Value::Object(new)) => {
                for (name, value) in old {
                    match new.get(name) {
                        Some(other) => self.compare(&member_path(path, name), value, other),
                        None => self.add(&member_path(path, name), Some(value), None),
                    }
                }
                for (name, value) in new.iter().filter(|(name, _)| !old.contains_key(name.as_str())) {
                    self.add(&member_path(path, name), None, Some(value));
                }
            }
            (Value::Array(old), Value::Array(new)) => {
                for index in 0..old.len().max(new.len()) {
                    let path = format!("{path}[{index}]");
                    match (old.get(index), new.get(index)) {
                        (Some(value), Some(other)) => self.compare(&path, value, other),
                        (value, other) => self.add(&path, value, other),
                    }
                }
            }
            _ => self.add(path, Some(recorded), Some(actual)),
        }
    }

    fn add(&mut self, path: &str, recorded: Option<&Value>, actual: Option<&Value>) {
        if self.lines.len() >= MAX_DIFFERENCES {
            self.more = true;
            return;
        }
        let mut path = path.to_owned();
        shorten(&mut path, MAX_VALUE_BYTES);
        let (old, new) = match (recorded, actual) {
            (Some(Value::String(old)), Some(Value::String(new))) => excerpts_at_difference(old, new),
            _ => (format_value(recorded), format_value(actual)),
        };
        self.lines.push(format!("  {path}\n    recorded: {old}\n    now:      {new}"));
    }
}

fn member_path(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn format_value(value: Option<&Value>) -> String {
    let mut text = value.map_or_else(|| "(nothing)".to_owned(), Value::to_string);
    shorten(&mut text, MAX_VALUE_BYTES);
    text
}

/// Returns an excerpt of each text, from shortly before the first difference.
fn excerpts_at_difference(old: &str, new: &str) -> (String, String) {
    let same = old.chars().zip(new.chars()).take_while(|(one, other)| one == other).count();
    let skipped = same.saturating_sub(CONTEXT_CHARS);
    let cut = |text: &str| {
        let rest: String = text.chars().skip(skipped).collect();
        let mut quoted = Value::String(rest).to_string();
        shorten(&mut quoted, MAX_VALUE_BYTES);
        if skipped > 0 { format!("…{quoted} (from character {skipped})") } else { quoted }
    };
    (cut(old), cut(new))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_whatever_the_order() {
        assert_eq!(diff_json(&json!({"a": 1, "b": [2]}), &json!({"b": [2], "a": 1})), None);
    }

    #[test]
    fn the_first_differing_places() {
        let long = "x".repeat(100);
        let old = json!({"model": "a", "messages": [{"text": format!("{long}old")}], "gone": true});
        let new = json!({"model": "a", "messages": [{"text": format!("{long}new")}, 7], "come": null});
        let expected = format!(
            "  messages[0].text\n    recorded: …\"{lead}old\" (from character 70)\n    now:      …\"{lead}new\" (from character 70)\n\
             \x20 messages[1]\n    recorded: (nothing)\n    now:      7\n\
             \x20 gone\n    recorded: true\n    now:      (nothing)\n\
             \x20 come\n    recorded: (nothing)\n    now:      null",
            lead = "x".repeat(30)
        );
        assert_eq!(diff_json(&old, &new).unwrap(), expected);
    }

    #[test]
    fn it_is_bounded() {
        let old = Value::Array((0..10_000).map(|_| Value::String("a".repeat(1_000))).collect());
        let new = Value::Array((0..10_000).map(|_| Value::String("b".repeat(1_000))).collect());
        let text = diff_json(&old, &new).unwrap();
        assert!(text.len() < 4_096, "{}", text.len());
        assert!(text.ends_with("… and more"));
    }
}
