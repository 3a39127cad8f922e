//! The texts that a session tells its model by itself: files of `prompts/`, or the user's own.

use std::fmt::Write as _;

use journeyman_protocol::{ContentHash, Mode, ToolSpec};
use serde_json::Value;

/// Maximum bytes of a text of the user's: a model reads it with every request.
const MAX_PROMPT_BYTES: usize = 32 * 1024;

/// A built-in text: the name of its file, the text, and its places.
struct BuiltinPrompt {
    name: &'static str,
    text: &'static str,
    places: &'static [&'static str],
}

const fn builtin_prompt(
    name: &'static str,
    text: &'static str,
    places: &'static [&'static str],
) -> BuiltinPrompt {
    BuiltinPrompt { name, text, places }
}

/// The principles and rules: the same for every task, project and mode, so that providers can keep
/// them.
const SYSTEM_FILE: &str = "system.md";
const TEXT_PROTOCOL_FILE: &str = "text-protocol.md";
const EDIT_FORMAT_FILE: &str = "edit-format.md";
const PLAN_FILE: &str = "plan.md";
const COMPACTION_FILE: &str = "compaction.md";
const READ_ONLY_FILE: &str = "read-only.md";

/// The built-in texts.
const BUILTIN_PROMPTS: [BuiltinPrompt; 10] = [
    builtin_prompt(SYSTEM_FILE, include_str!("../prompts/system.md"), &[]),
    builtin_prompt("mode-plan.md", include_str!("../prompts/mode-plan.md"), &[]),
    builtin_prompt("mode-ask.md", include_str!("../prompts/mode-ask.md"), &[]),
    builtin_prompt("mode-edit.md", include_str!("../prompts/mode-edit.md"), &[]),
    builtin_prompt("mode-auto.md", include_str!("../prompts/mode-auto.md"), &[]),
    builtin_prompt(READ_ONLY_FILE, include_str!("../prompts/read-only.md"), &[]),
    builtin_prompt(
        TEXT_PROTOCOL_FILE,
        include_str!("../prompts/text-protocol.md"),
        &["edit_format", "tools"],
    ),
    builtin_prompt(EDIT_FORMAT_FILE, include_str!("../prompts/edit-format.md"), &[]),
    builtin_prompt(PLAN_FILE, include_str!("../prompts/plan.md"), &["plan"]),
    builtin_prompt(COMPACTION_FILE, include_str!("../prompts/compaction.md"), &[]),
];

/// The texts that a session tells its model by itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PromptTexts {
    /// The user's texts, by the names of the files that they replace.
    own: Vec<(&'static str, String)>,
}

/// The answer that a session in mode plan is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadOnlyGoal {
    /// A plan, where a change is asked for.
    #[default]
    Plan,
    /// Whatever the task asks for.
    Answer,
}

/// Why a text can't take the place of a built-in one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PromptError {
    /// No text has this name.
    #[error("there is no prompt `{name}`; there are {}", PromptTexts::names().collect::<Vec<_>>().join(", "))]
    Unknown {
        /// The name.
        name: String,
    },
    /// It is empty or too long.
    #[error("the prompt `{name}` has {bytes} bytes; it takes 1 to {MAX_PROMPT_BYTES}")]
    Size {
        /// The name.
        name: &'static str,
        /// Its size.
        bytes: usize,
    },
    /// A place of the built-in text is missing, or it has one that nothing fills.
    #[error("the prompt `{name}` has {}; it takes {}", list_placeholders(given), list_placeholders(taken))]
    Places {
        /// The name.
        name: &'static str,
        /// The places that it has.
        given: Vec<String>,
        /// The places that it has to have.
        taken: Vec<String>,
    },
}

fn list_placeholders(places: &[String]) -> String {
    match places {
        [] => "no place `${…}`".to_owned(),
        places => places.iter().map(|name| format!("`${{{name}}}`")).collect::<Vec<_>>().join(" and "),
    }
}

impl PromptTexts {
    /// Returns the names of the texts, which are those of their files.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILTIN_PROMPTS.iter().map(|prompt| prompt.name)
    }

    /// Puts a text in the place of the built-in one of this name.
    ///
    /// # Errors
    /// [`PromptError`] for an unknown name, and for a text that is too long or has other places.
    pub fn replace(&mut self, name: &str, text: String) -> Result<(), PromptError> {
        let Some(builtin) = BUILTIN_PROMPTS.iter().find(|prompt| prompt.name == name) else {
            return Err(PromptError::Unknown { name: name.chars().take(60).collect() });
        };
        let name = builtin.name;
        if text.trim().is_empty() || text.len() > MAX_PROMPT_BYTES {
            return Err(PromptError::Size { name, bytes: text.len() });
        }
        let mut given: Vec<String> = placeholders(&text).map(str::to_owned).collect();
        given.sort();
        given.dedup();
        let taken: Vec<String> = builtin.places.iter().map(|&place| place.to_owned()).collect();
        if given != taken {
            return Err(PromptError::Places { name, given, taken });
        }
        self.own.retain(|(other, _)| *other != name);
        self.own.push((name, text));
        Ok(())
    }

    /// Returns the hash of all texts, which tells runs with other texts apart.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        let mut all = String::new();
        for prompt in &BUILTIN_PROMPTS {
            let text = self.text(prompt.name);
            let _infallible = write!(all, "{} {}\n{text}\n", prompt.name, text.len());
        }
        ContentHash::of(all.as_bytes())
    }

    /// Returns the instructions for the model that sums up a conversation.
    #[must_use]
    pub fn compaction(&self) -> &str {
        self.text(COMPACTION_FILE)
    }

    /// Returns a plan with what the model that carries it out is told about it.
    #[must_use]
    pub fn plan(&self, plan: &str) -> String {
        fill_template(self.text(PLAN_FILE), |place| (place == "plan").then_some(plan))
    }

    /// Returns how to work and what never to do.
    pub(crate) fn system(&self) -> &str {
        self.text(SYSTEM_FILE)
    }

    /// Returns the description of a mode for the model.
    pub(crate) fn mode(&self, mode: Mode, goal: ReadOnlyGoal) -> &str {
        self.text(match mode {
            Mode::Plan if goal == ReadOnlyGoal::Answer => READ_ONLY_FILE,
            Mode::Plan => "mode-plan.md",
            Mode::Ask => "mode-ask.md",
            Mode::Edit => "mode-edit.md",
            Mode::Auto => "mode-auto.md",
        })
    }

    /// Returns the instructions for a model without tool calling.
    pub(crate) fn text_protocol(&self, tools: &[ToolSpec], edits: bool) -> String {
        let mut list = String::new();
        for tool in tools.iter().filter(|tool| !EDITING_TOOLS.contains(&tool.name.as_str())) {
            let _infallible = writeln!(
                list,
                "- {} {}: {}",
                tool.name,
                argument_signature(&tool.input_schema),
                tool.description.trim()
            );
        }
        let format = if edits { format!("\n{}\n", self.text(EDIT_FORMAT_FILE)) } else { String::new() };
        let mut out = fill_template(self.text(TEXT_PROTOCOL_FILE), |place| match place {
            "edit_format" => Some(&format),
            "tools" => Some(list.trim_end()),
            _ => None,
        });
        out.push('\n');
        out
    }

    fn text(&self, name: &str) -> &str {
        let own = self.own.iter().find(|(other, _)| *other == name).map(|(_, text)| text.as_str());
        let builtin = || BUILTIN_PROMPTS.iter().find(|prompt| prompt.name == name).map(|prompt| prompt.text);
        own.or_else(builtin).unwrap_or_default().trim_end()
    }
}

/// Returns the names of the places of a template.
fn placeholders(template: &str) -> impl Iterator<Item = &str> {
    template.split("${").skip(1).filter_map(|after| after.split_once('}')).map(|(name, _)| name)
}

/// Fills the places of a template, in one pass: what is filled in is not looked at again.
fn fill_template<'v>(template: &str, value: impl Fn(&str) -> Option<&'v str>) -> String {
    let mut parts = template.split("${");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('}').and_then(|(name, rest)| Some((value(name)?, rest))) {
            Some((value, rest)) => {
                out.push_str(value);
                out.push_str(rest);
            }
            None => {
                out.push_str("${");
                out.push_str(part);
            }
        }
    }
    out
}

/// The tools that `<edit>` blocks stand for.
const EDITING_TOOLS: [&str; 6] =
    ["edit_file", "write_file", "apply_patch", "delete_file", "move_file", "apply_edit"];

/// A tool's arguments in one line: `{path: string, offset?: integer}`.
fn argument_signature(schema: &Value) -> String {
    let required: Vec<&str> = match schema.get("required") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return "{}".to_owned();
    };
    let mut out = String::from("{");
    for (index, (name, property)) in properties.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        let mark = if required.contains(&name.as_str()) { "" } else { "?" };
        let _infallible = write!(out, "{comma}\"{name}\"{mark}: {}", type_name(property));
    }
    out.push('}');
    out
}

/// A property's type in a word.
fn type_name(property: &Value) -> String {
    if let Some(Value::Array(values)) = property.get("enum") {
        let words: Vec<String> = values.iter().map(Value::to_string).collect();
        return words.join("|");
    }
    match property.get("type") {
        Some(Value::String(word)) if word == "array" => property
            .get("items")
            .map_or_else(|| "array".to_owned(), |items| format!("[{}]", type_name(items))),
        Some(Value::String(word)) => word.clone(),
        Some(Value::Array(words)) => {
            words.iter().filter_map(Value::as_str).find(|word| *word != "null").unwrap_or("any").to_owned()
        }
        _ => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_principles_and_the_rules_are_there() {
        let prompts = PromptTexts::default();
        for part in [
            "Read before you write",
            "smallest change",
            "Verify:",
            "Say why",
            "Never weaken, skip or delete a test or an assertion",
            "No breaking change",
            "Look for the same pattern elsewhere",
            "ask",
            "commit messages",
        ] {
            assert!(prompts.system().contains(part), "{part}");
        }
    }

    #[test]
    fn the_users_text_takes_the_place_of_the_built_in_one() {
        let mut prompts = PromptTexts::default();
        let hash = prompts.hash();
        prompts.replace("mode-edit.md", "Mode: mine.\n".to_owned()).unwrap();
        assert_eq!(prompts.mode(Mode::Edit, ReadOnlyGoal::Plan), "Mode: mine.");
        assert_ne!(prompts.hash(), hash, "the log tells them apart");
        prompts.replace("mode-edit.md", BUILTIN_PROMPTS[3].text.to_owned()).unwrap();
        assert_eq!(prompts.hash(), hash);
        let text = "Blocks: ${tools}${edit_format}";
        prompts.replace("text-protocol.md", text.to_owned()).unwrap();
        let spec = ToolSpec {
            name: "look".to_owned(),
            description: "Has ${edit_format}.".to_owned(),
            input_schema: serde_json::json!({}),
        };
        assert_eq!(prompts.text_protocol(&[spec], false), "Blocks: - look {}: Has ${edit_format}.\n");
        for (name, text, expected) in [
            ("sistem.md", "x", "there is no prompt `sistem.md`; there are system.md"),
            ("system.md", " ", "it takes 1 to 32768"),
            ("system.md", "Hello ${name}", "has `${name}`; it takes no place"),
            ("text-protocol.md", "${tools}", "has `${tools}`; it takes `${edit_format}` and `${tools}`"),
        ] {
            let error = prompts.replace(name, text.to_owned()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
