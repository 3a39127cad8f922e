//! The names of tools in definitions, also as other products write them.

use journeyman_agent::agents::{AgentDefinition, AgentLimits, AgentTools, EditScope};
use journeyman_policy::{BUILTIN_TOOLS, check_tool_name};
use serde_json::Value;

use super::file_error::AgentFileError;
use super::foreign_fields::DISALLOWED_TOOLS_FIELD;

/// The field.
const TOOLS_FIELD: &str = "tools";
/// Maximum number of names.
const MAX_TOOL_NAMES: usize = 200;

/// The tools that change existing files, and those that delete or move files.
const CHANGING_TOOLS: [&str; 5] = ["edit_file", "edit_symbol", "apply_patch", "delete_file", "move_file"];
/// The tools that write whole files, and those that delete or move files.
const WRITING_TOOLS: [&str; 4] = ["write_file", "apply_patch", "delete_file", "move_file"];
/// The tool that gives a task to another CLI, which may change files.
const DELEGATE_TOOL: &str = "delegate_task";

/// Reads the tools of a definition: `read_only`, `all`, or names. A name that no tool has is an
/// error, or is left out and named in `left_out`.
pub(super) fn read_tools(
    value: Option<Value>,
    mut left_out: Option<&mut Vec<String>>,
) -> Result<Option<AgentTools>, AgentFileError> {
    let names = match value {
        None => return Ok(None),
        Some(Value::String(text)) if text.trim() == "read_only" => return Ok(Some(AgentTools::ReadOnly)),
        Some(Value::String(text)) if text.trim() == "all" => return Ok(Some(AgentTools::All)),
        Some(value) => {
            parse_tool_names(value, TOOLS_FIELD, "it has to be read_only, all, or a list of names")?
        }
    };
    if names.iter().any(|name| name == "*") {
        return Ok(Some(AgentTools::All));
    }
    let mut ours: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        match (normalize_tool_name(&name), &mut left_out) {
            (Ok(name), _) if ours.contains(&name) => {}
            (Ok(name), _) => ours.push(name),
            (Err(error), None) => return Err(error),
            (Err(_), Some(_)) if name.is_empty() => {}
            (Err(_), Some(left_out)) => left_out.push(format!("the tool `{name}`")),
        }
    }
    Ok(Some(AgentTools::Named(ours)))
}

/// Reads the disallowed tools of another product's agent. A partly disallowed tool is disallowed as
/// a whole, together with tools of the same effect. An unknown name disallows nothing.
pub(super) fn read_disallowed_tools(
    value: Option<Value>,
    ignored: &mut Vec<String>,
) -> Result<Vec<String>, AgentFileError> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let mut withheld: Vec<String> = Vec::new();
    for name in parse_tool_names(value, DISALLOWED_TOOLS_FIELD, "it has to be a list of names")? {
        let whole = name.split('(').next().unwrap_or_default().trim();
        let Ok(tool) = normalize_tool_name(whole) else { continue };
        if whole != name {
            ignored.push(format!("the pattern of `{name}` (the whole tool is withheld)"));
        }
        match tool.as_str() {
            "edit_file" => withheld.extend(CHANGING_TOOLS.map(str::to_owned)),
            "write_file" => withheld.extend(WRITING_TOOLS.map(str::to_owned)),
            "run_command" => withheld.push(tool),
            _ => {
                withheld.push(tool);
                continue;
            }
        }
        withheld.push(DELEGATE_TOOL.to_owned());
    }
    withheld.sort();
    withheld.dedup();
    Ok(withheld)
}

/// Reads a list of names, or a text with commas between them.
fn parse_tool_names(
    value: Value,
    field: &'static str,
    expected: &str,
) -> Result<Vec<String>, AgentFileError> {
    let names: Vec<String> = match value {
        Value::String(text) => split_names(&text),
        Value::Array(items) => {
            let name = |item: &Value| item.as_str().map(|name| name.trim().to_owned());
            let names: Option<Vec<String>> = items.iter().map(name).collect();
            names.ok_or_else(|| AgentFileError::new(field, "each has to be a name"))?
        }
        _ => return Err(AgentFileError::new(field, expected)),
    };
    match names.len() > MAX_TOOL_NAMES {
        true => Err(AgentFileError::new(field, format!("at most {MAX_TOOL_NAMES} names"))),
        false => Ok(names),
    }
}

/// Describes the tools of a definition.
#[must_use]
pub fn describe_tools(definition: &AgentDefinition) -> String {
    let tools = match &definition.tools {
        AgentTools::ReadOnly => "those that only read".to_owned(),
        AgentTools::All => "all".to_owned(),
        AgentTools::Named(names) if names.is_empty() => "none".to_owned(),
        AgentTools::Named(names) => names.join(", "),
    };
    match definition.withheld_tools.as_slice() {
        [] => tools,
        withheld => format!("{tools}; never {}", withheld.join(", ")),
    }
}

/// Describes the files that the edits of an agent may change.
#[must_use]
pub fn describe_edit_scope(scope: EditScope) -> &'static str {
    match scope {
        EditScope::All => "all files that the session may change",
        EditScope::TestFiles => "files of tests alone",
    }
}

/// Describes the limits of an agent: its turns, time, tokens and cost.
#[must_use]
pub fn describe_limits(limits: &AgentLimits) -> String {
    let AgentLimits { turns, time, grace, tokens, usd } = limits;
    let tokens = tokens.map(|tokens| format!(", {tokens} tokens")).unwrap_or_default();
    let usd = usd.map(|usd| format!(", ${usd}")).unwrap_or_default();
    let (time, grace) = (time.as_secs(), grace.as_secs());
    format!("{turns} turns, {time} s, {grace} s for the last turn{tokens}{usd}")
}

/// Splits a text at its commas, but not at those in parentheses: they belong to a pattern.
fn split_names(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let is_between = |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    text.split(is_between).map(|name| name.trim().to_owned()).collect()
}

/// Translates a tool's name of another product into ours.
fn normalize_tool_name(given: &str) -> Result<String, AgentFileError> {
    let lower = given.to_ascii_lowercase();
    let is_it = |tool: &&journeyman_policy::BuiltinTool| {
        tool.name == given
            || tool.claude_code.iter().any(|other| other.eq_ignore_ascii_case(given))
            || tool.aliases.contains(&lower.as_str())
            || GEMINI_TOOL_NAMES.iter().any(|(other, ours)| *other == given && *ours == tool.name)
    };
    if let Some(tool) = BUILTIN_TOOLS.iter().find(is_it) {
        return Ok(tool.name.to_owned());
    }
    check_tool_name(given, &|_| false)
        .map_err(|unknown| AgentFileError::new(TOOLS_FIELD, unknown.to_string()))?;
    Ok(given.to_owned())
}

/// Names of tools in Gemini CLI, and ours.
const GEMINI_TOOL_NAMES: [(&str, &str); 7] = [
    ("glob", "list_files"),
    ("grep_search", "search_text"),
    ("invoke_agent", "task"),
    ("list_directory", "list_files"),
    ("read_many_files", "read_file"),
    ("replace", "edit_file"),
    ("run_shell_command", "run_command"),
];
