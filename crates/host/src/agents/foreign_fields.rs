//! Translates agent definitions of other products, and reports fields without an effect.

use journeyman_agent::agents::MAX_DESCRIPTION_CHARS;
use journeyman_protocol::Mode;
use serde_json::Value;

use super::file_error::AgentFileError;
use super::front_matter::Fields;

/// The field with the disallowed tools of a Claude Code agent.
pub(super) const DISALLOWED_TOOLS_FIELD: &str = "disallowedTools";
/// The field with the permission mode of an agent of Claude Code.
pub(super) const PERMISSION_MODE_FIELD: &str = "permissionMode";
/// The field for the maximum turns in Claude Code, and our field.
const MAX_TURNS_FIELDS: (&str, &str) = ("maxTurns", "max_turns");
/// Claude Code's short model names, which select the session's own model here.
const CLAUDE_MODEL_ALIASES: [&str; 4] = ["inherit", "sonnet", "opus", "haiku"];
/// Permission modes that grant an agent no more than the session has.
const UNPRIVILEGED_MODES: [&str; 2] = ["default", "plan"];

/// Translates fields into ours, and removes fields that aren't among `known`. Returns the names of
/// the fields that have no effect.
pub(super) fn translate_fields(fields: &mut Fields, known: &[&str]) -> Result<Vec<String>, AgentFileError> {
    let mut ignored = Vec::new();
    if let Some(turns) = fields.take(MAX_TURNS_FIELDS.0) {
        fields.insert(MAX_TURNS_FIELDS.1, turns);
    }
    if let Some(description) = fields.take_string("description")? {
        let (short, is_cut) = shorten_description(&description);
        if is_cut {
            ignored.push("the end of `description`".to_owned());
        }
        fields.insert("description", Value::String(short));
    }
    if let Some(model) = fields.take_string("model")? {
        let is_short = CLAUDE_MODEL_ALIASES.contains(&model.as_str());
        match model.contains('/') {
            true => fields.insert("model", Value::String(model)),
            // The definition doesn't name a provider.
            false if !is_short => ignored.push("`model`".to_owned()),
            false => {}
        }
    }
    if let Some(mode) = fields.take_string(PERMISSION_MODE_FIELD)? {
        match UNPRIVILEGED_MODES.contains(&mode.as_str()) {
            true if mode == "plan" => fields.insert("mode", Value::String(Mode::Plan.to_string())),
            true => {}
            false => ignored.push(format!("`{PERMISSION_MODE_FIELD}`")),
        }
    }
    ignored.extend(fields.take_all_except(known).into_iter().map(|name| format!("`{name}`")));
    Ok(ignored)
}

/// Returns a description that every request of a session may have, and true if its end is missing.
/// Claude Code writes line ends as `\n`, and examples at the end.
fn shorten_description(description: &str) -> (String, bool) {
    let text = description.replace("\\n", "\n");
    let text = text.trim();
    let Some((end, _)) = text.char_indices().nth(MAX_DESCRIPTION_CHARS) else {
        return (text.to_owned(), false);
    };
    let kept = text.get(..end).unwrap_or(text);
    let example = kept.find("<example>").filter(|at| *at > 0);
    let end = example.or_else(|| kept.rfind(char::is_whitespace)).unwrap_or(kept.len());
    (kept.get(..end).unwrap_or(kept).trim_end().to_owned(), true)
}
