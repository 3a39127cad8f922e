//! The names of tools in definitions, also as other products write them.

use journeyman_agent::agents::AgentTools;
use journeyman_policy::{BUILTIN_TOOLS, check_tool_name};
use serde_json::Value;

use super::file_error::AgentFileError;

/// The field.
const FIELD: &str = "tools";
/// Maximum number of names.
const MAX_NAMES: usize = 200;

/// Reads the tools of a definition: `read_only`, `all`, or names.
pub(super) fn read_tools(value: Option<Value>) -> Result<Option<AgentTools>, AgentFileError> {
    let names: Vec<String> = match value {
        None => return Ok(None),
        Some(Value::String(text)) => match text.trim() {
            "read_only" => return Ok(Some(AgentTools::ReadOnly)),
            "all" | "*" => return Ok(Some(AgentTools::All)),
            text => text.split(',').map(|name| name.trim().to_owned()).collect(),
        },
        Some(Value::Array(items)) => {
            let name = |item: &Value| item.as_str().map(|name| name.trim().to_owned());
            let names: Option<Vec<String>> = items.iter().map(name).collect();
            names.ok_or_else(|| AgentFileError::new(FIELD, "each has to be a name"))?
        }
        Some(_) => return Err(AgentFileError::new(FIELD, "it has to be read_only, all, or a list of names")),
    };
    if names.len() > MAX_NAMES {
        return Err(AgentFileError::new(FIELD, format!("at most {MAX_NAMES} names")));
    }
    if names.iter().any(|name| name == "*") {
        return Ok(Some(AgentTools::All));
    }
    let mut ours: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        let name = own_name(&name)?;
        if !ours.contains(&name) {
            ours.push(name);
        }
    }
    Ok(Some(AgentTools::Named(ours)))
}

/// Returns the name of a tool as sessions have it.
fn own_name(given: &str) -> Result<String, AgentFileError> {
    let lower = given.to_ascii_lowercase();
    let is_it = |tool: &&journeyman_policy::BuiltinTool| {
        tool.name == given
            || tool.claude_code.iter().any(|other| other.eq_ignore_ascii_case(given))
            || tool.aliases.contains(&lower.as_str())
            || GEMINI_NAMES.iter().any(|(other, ours)| *other == given && *ours == tool.name)
    };
    if let Some(tool) = BUILTIN_TOOLS.iter().find(is_it) {
        return Ok(tool.name.to_owned());
    }
    check_tool_name(given, &|_| false).map_err(|unknown| AgentFileError::new(FIELD, unknown.to_string()))?;
    Ok(given.to_owned())
}

/// Names of tools in Gemini CLI, and ours.
const GEMINI_NAMES: [(&str, &str); 7] = [
    ("glob", "list_files"),
    ("grep_search", "search_text"),
    ("invoke_agent", "task"),
    ("list_directory", "list_files"),
    ("read_many_files", "read_file"),
    ("replace", "edit_file"),
    ("run_shell_command", "run_command"),
];
