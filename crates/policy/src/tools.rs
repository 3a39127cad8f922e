//! Names of tools in rules and in `jm policy check --tool`.
//!
//! A rule for a tool that does not exist would never match without anybody noticing, so names are
//! checked. Tools of MCP servers are recognized by the prefix `mcp__`, because the servers are not
//! known when rules are loaded.

use std::fmt;

/// The known tools, and `check`, which stands for the project's own checks. Sorted by name.
pub const TOOLS: &[&str] = &[
    "apply_edit",
    "check",
    "command_output",
    "edit_file",
    "find_references",
    "get_dependencies",
    "get_symbols",
    "git_blame",
    "git_history",
    "list_files",
    "read_file",
    "run_command",
    "search_code",
    "search_text",
    "stop_command",
    "todo_read",
    "todo_write",
    "write_file",
];

/// Prefix of the names of MCP servers' tools.
pub(crate) const MCP: &str = "mcp__";
/// Maximum number of characters of a name in an error.
const SHOWN: usize = 60;
/// Minimum similarity of a name that is suggested.
const LIKELY: f64 = 0.75;
/// Names of the same tools in other agents.
const SYNONYMS: &[(&str, &str)] = &[
    ("bash", "run_command"),
    ("shell", "run_command"),
    ("execute", "run_command"),
    ("edit", "edit_file"),
    ("multiedit", "edit_file"),
    ("apply_patch", "edit_file"),
    ("write", "write_file"),
    ("create_file", "write_file"),
    ("read", "read_file"),
    ("view", "read_file"),
    ("cat", "read_file"),
    ("grep", "search_text"),
    ("glob", "list_files"),
    ("ls", "list_files"),
    ("todowrite", "todo_write"),
];

/// The error for a name that no tool has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownTool {
    /// The name, shortened.
    pub given: String,
    /// The most similar tool, if one is similar enough.
    pub meant: Option<&'static str>,
}

impl fmt::Display for UnknownTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no tool `{}`", self.given)?;
        match self.meant {
            Some(meant) => write!(f, "; did you mean `{meant}`?"),
            None => {
                write!(f, ". There are {}, and those of MCP servers (`mcp__server__tool`)", TOOLS.join(", "))
            }
        }
    }
}

impl std::error::Error for UnknownTool {}

/// Checks that a tool may have this name.
///
/// # Errors
/// [`UnknownTool`] with the most similar name.
pub fn known_tool(name: &str) -> Result<(), UnknownTool> {
    if TOOLS.contains(&name) || name.strip_prefix(MCP).is_some_and(|rest| !rest.is_empty()) {
        return Ok(());
    }
    let given: String =
        name.chars().take(SHOWN).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    let lower = given.to_ascii_lowercase();
    let synonym = SYNONYMS.iter().find(|(other, _)| *other == lower).map(|(_, meant)| *meant);
    let alike = TOOLS.iter().map(|tool| (strsim::jaro_winkler(&lower, tool), *tool));
    let near = alike.max_by(|one, other| one.0.total_cmp(&other.0)).filter(|(alike, _)| *alike >= LIKELY);
    Err(UnknownTool { given, meant: synonym.or(near.map(|(_, tool)| tool)) })
}

/// As [`known_tool`], for a name in a rule, where `*` is a wildcard.
pub(crate) fn known_pattern(pattern: &str) -> Result<(), UnknownTool> {
    if pattern.contains('*') { Ok(()) } else { known_tool(pattern) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_told_with_what_was_meant() {
        assert!(TOOLS.is_sorted());
        for name in TOOLS.iter().copied().chain(["mcp__git__status", "mcp__a"]) {
            assert_eq!(known_tool(name), Ok(()), "{name}");
        }
        for (name, meant) in [
            ("run_comand", Some("run_command")),
            ("Run_Command", Some("run_command")),
            ("Bash", Some("run_command")),
            ("writefile", Some("write_file")),
            ("edit_fil", Some("edit_file")),
            ("zzz", None),
            ("", None),
            ("mcp__", None),
        ] {
            let wrong = known_tool(name).unwrap_err();
            assert_eq!(wrong.meant, meant, "{name}");
            assert!(wrong.to_string().contains(&format!("there is no tool `{name}`")));
        }
        assert!(!known_tool("a\u{1b}[2J").unwrap_err().to_string().contains('\u{1b}'));
        for pattern in ["write_*", "mcp__git__*", "*"] {
            assert_eq!(known_pattern(pattern), Ok(()));
        }
        assert!(known_pattern("write_fil").is_err());
        assert!(SYNONYMS.iter().all(|(name, meant)| TOOLS.contains(meant) && !TOOLS.contains(name)));
    }
}
