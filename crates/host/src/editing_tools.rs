//! Chooses the file-changing tools that are described to a model.
//!
//! Every model may call every tool that the session has. A tool that is not described costs no
//! tokens, so a model gets only the descriptions of the tools it works with best.

use journeyman_policy::matches_wildcards;
use std::collections::BTreeMap;

use crate::HostError;

/// The tools that change files.
const EDITING_TOOLS: [&str; 6] =
    ["edit_file", "write_file", "apply_patch", "edit_symbol", "delete_file", "move_file"];
/// The tools of models that are trained to write patches.
const PATCHING_TOOLS: &[&str] = &["apply_patch", "write_file", "edit_symbol", "delete_file", "move_file"];
/// The tools of other models.
const REPLACING_TOOLS: &[&str] = &["edit_file", "write_file", "edit_symbol", "delete_file", "move_file"];
/// Patterns of models' names, in which `*` stands for any characters, with their tools. The first
/// match applies.
const BUILTIN_TOOL_PATTERNS: [(&str, &[&str]); 5] = [
    ("*gpt-oss*", PATCHING_TOOLS),
    ("openai/*", PATCHING_TOOLS),
    ("*/gpt-*", PATCHING_TOOLS),
    ("*codex*", PATCHING_TOOLS),
    ("*", REPLACING_TOOLS),
];

/// Returns the tools that are not described to a model. The longest matching configured pattern
/// applies.
///
/// # Errors
/// [`HostError::Usage`] for a configured tool that doesn't change files.
pub(crate) fn withheld_tools(
    configured: &BTreeMap<String, Vec<String>>,
    model: &str,
) -> Result<Vec<String>, HostError> {
    for (pattern, tools) in configured {
        if let Some(unknown) = tools.iter().find(|tool| !EDITING_TOOLS.contains(&tool.as_str())) {
            return Err(HostError::usage(format_args!(
                "tools.editing.\"{pattern}\" has `{unknown}`; there are {}",
                EDITING_TOOLS.join(", ")
            )));
        }
    }
    let rows = configured.iter().filter(|(pattern, _)| matches_wildcards(pattern, model));
    let offered: Vec<&str> = match rows.max_by_key(|(pattern, _)| pattern.len()) {
        Some((_, tools)) => tools.iter().map(String::as_str).collect(),
        None => {
            let row = BUILTIN_TOOL_PATTERNS.iter().find(|(pattern, _)| matches_wildcards(pattern, model));
            row.map_or_else(Vec::new, |(_, tools)| tools.to_vec())
        }
    };
    Ok(EDITING_TOOLS.iter().filter(|tool| !offered.contains(*tool)).map(|tool| (*tool).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_offered_the_tools_of_its_row() {
        let table: BTreeMap<String, Vec<String>> = [
            ("openai/gpt-5*".to_owned(), vec!["edit_file".to_owned(), "apply_patch".to_owned()]),
            ("*".to_owned(), EDITING_TOOLS.map(str::to_owned).to_vec()),
        ]
        .into();
        let none = BTreeMap::new();
        // The model; the tools that it isn't offered, built-in and with the table.
        let cases = [
            ("anthropic/claude-sonnet-4-5", vec!["apply_patch"], vec![]),
            (
                "openai/gpt-5",
                vec!["edit_file"],
                vec!["write_file", "edit_symbol", "delete_file", "move_file"],
            ),
            ("openrouter/openai/gpt-4.1", vec!["edit_file"], vec![]),
            ("ollama/gpt-oss:20b", vec!["edit_file"], vec![]),
            ("custom/tiny", vec!["apply_patch"], vec![]),
            ("", vec!["apply_patch"], vec![]),
        ];
        for (model, builtin, configured) in cases {
            assert_eq!(withheld_tools(&none, model).unwrap(), builtin, "{model}");
            assert_eq!(withheld_tools(&table, model).unwrap(), configured, "{model}");
        }
        let wrong = [("*".to_owned(), vec!["run_command".to_owned()])].into();
        let error = withheld_tools(&wrong, "a/b").unwrap_err().to_string();
        assert!(error.contains("tools.editing.\"*\" has `run_command`"), "{error}");
    }

    #[test]
    fn stars_stand_for_any_characters() {
        let cases = [
            ("", "", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("*b", "ab", true),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("*a*", "b", false),
            ("ab*ba", "aba", false),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(matches_wildcards(pattern, name), expected, "{pattern} {name}");
        }
    }
}
