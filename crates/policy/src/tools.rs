//! The built-in tools by name, with what other agents call them.
//!
//! This is the only table of tools' names: rules, the tool registry and hooks look names up here. A
//! rule about a tool that doesn't exist would forbid nothing, and nobody would notice, so names in
//! rules are checked. Tools that a library user registers are passed in by the caller. Tools of MCP
//! servers are recognised by their prefix, `mcp__`, because their servers aren't known when rules
//! are read.

use std::fmt;

/// A built-in tool and its names in other agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuiltinTool {
    /// The name that models call.
    pub name: &'static str,
    /// The names in Claude Code that hooks' matchers accept. Hooks are given the first.
    pub claude_code: &'static [&'static str],
    /// Further names in other agents, in lower case; they are only suggested from.
    pub aliases: &'static [&'static str],
}

const fn new_tool(
    name: &'static str,
    claude_code: &'static [&'static str],
    aliases: &'static [&'static str],
) -> BuiltinTool {
    BuiltinTool { name, claude_code, aliases }
}

/// The built-in tools, and `check`, which stands for the project's own checks, in the order of
/// their names.
pub const BUILTIN_TOOLS: &[BuiltinTool] = &[
    new_tool("apply_edit", &[], &[]),
    new_tool("apply_patch", &[], &["patch"]),
    new_tool("ask_user", &["AskUserQuestion"], &["ask_question", "ask_followup_question"]),
    new_tool("check", &[], &[]),
    new_tool("command_output", &["BashOutput", "TaskOutput"], &["bash_output"]),
    new_tool("complete_task", &[], &["finish", "attempt_completion"]),
    new_tool("delegate_task", &[], &["delegate"]),
    new_tool("delete_file", &[], &["remove_file"]),
    new_tool("edit_file", &["Edit", "MultiEdit"], &["str_replace"]),
    new_tool("edit_symbol", &[], &["replace_symbol_body"]),
    new_tool("find_references", &[], &["references"]),
    new_tool("get_dependencies", &[], &[]),
    new_tool("get_symbols", &[], &["outline"]),
    new_tool("git_blame", &[], &["blame"]),
    new_tool("git_history", &[], &["git_log"]),
    new_tool("list_files", &["Glob", "LS"], &["find"]),
    new_tool("move_file", &[], &["rename_file"]),
    new_tool("read_file", &["Read"], &["cat", "view"]),
    new_tool("remember", &[], &["save_memory"]),
    new_tool("run_command", &["Bash", "Shell"], &["exec_command", "execute", "terminal"]),
    new_tool("search_code", &[], &["codebase_search", "semantic_search"]),
    new_tool("search_text", &["Grep"], &["rg"]),
    new_tool("skill", &["Skill"], &["load_skill"]),
    new_tool("stop_command", &["KillShell", "KillBash", "TaskStop"], &["kill"]),
    new_tool("task", &["Task", "Agent"], &["invoke_agent"]),
    new_tool("todo_read", &["TodoRead"], &[]),
    new_tool("todo_write", &["TodoWrite"], &[]),
    new_tool("web_fetch", &["WebFetch"], &["fetch", "read_url"]),
    new_tool("web_search", &["WebSearch"], &["google_web_search"]),
    new_tool("write_file", &["Write"], &["create_file"]),
];

/// The name of the tool that gives tasks to other coding CLIs.
pub(crate) const DELEGATE_TOOL: &str = "delegate_task";
/// Prefix of the names of MCP servers' tools.
pub(crate) const MCP_PREFIX: &str = "mcp__";
/// Maximum characters of an unknown name that an error repeats.
const MAX_SHOWN_CHARS: usize = 60;
/// Minimum Jaro-Winkler similarity of a name that is suggested.
const MIN_SIMILARITY: f64 = 0.75;

/// A name that no tool has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownTool {
    /// The name, shortened.
    pub given: String,
    /// The tool that was probably meant.
    pub suggestion: Option<&'static str>,
}

impl fmt::Display for UnknownTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no tool `{}`", self.given)?;
        match self.suggestion {
            Some(name) => write!(f, "; did you mean `{name}`?"),
            None => {
                write!(
                    f,
                    ". There are {}, and those of MCP servers (`mcp__server__tool`)",
                    list_builtin_names()
                )
            }
        }
    }
}

impl std::error::Error for UnknownTool {}

/// Returns the names of the built-in tools for a message.
pub(crate) fn list_builtin_names() -> String {
    BUILTIN_TOOLS.iter().map(|tool| tool.name).collect::<Vec<_>>().join(", ")
}

/// Returns the built-in tool of this name.
#[must_use]
pub fn builtin_tool(name: &str) -> Option<&'static BuiltinTool> {
    BUILTIN_TOOLS.iter().find(|tool| tool.name == name)
}

/// Returns the registered tool that an unknown name probably means: the tool that another agent
/// calls so, else the one with the most similar name.
#[must_use]
pub fn suggest_tool<'a>(name: &str, registered: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let lower = name.to_ascii_lowercase();
    let is_alias = |tool: &&BuiltinTool| {
        let mut claude_code = tool.claude_code.iter();
        claude_code.any(|other| other.eq_ignore_ascii_case(&lower)) || tool.aliases.contains(&lower.as_str())
    };
    let alias = BUILTIN_TOOLS.iter().find(is_alias);
    if let Some(found) = alias.and_then(|tool| registered.clone().find(|name| *name == tool.name)) {
        return Some(found);
    }
    let scored = registered.map(|other| (strsim::jaro_winkler(&lower, other), other));
    let best = scored.max_by(|one, other| one.0.total_cmp(&other.0))?;
    (best.0 >= MIN_SIMILARITY).then_some(best.1)
}

/// Checks that a tool of this name exists: a built-in one, one of an MCP server, or one for which
/// `is_registered` returns true.
///
/// # Errors
/// [`UnknownTool`] with the most similar built-in name.
pub fn check_tool_name(name: &str, is_registered: &dyn Fn(&str) -> bool) -> Result<(), UnknownTool> {
    let is_mcp = name.strip_prefix(MCP_PREFIX).is_some_and(|rest| !rest.is_empty());
    if builtin_tool(name).is_some() || is_mcp || is_registered(name) {
        return Ok(());
    }
    let given: String =
        name.chars().take(MAX_SHOWN_CHARS).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    let suggestion = suggest_tool(&given, BUILTIN_TOOLS.iter().map(|tool| tool.name));
    Err(UnknownTool { given, suggestion })
}

/// Checks a name in a rule as [`check_tool_name`] does. A name with `*`, which stands for any
/// characters, passes.
pub(crate) fn check_tool_pattern(
    pattern: &str,
    is_registered: &dyn Fn(&str) -> bool,
) -> Result<(), UnknownTool> {
    if pattern.contains('*') { Ok(()) } else { check_tool_name(pattern, is_registered) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_come_with_a_suggestion() {
        let names: Vec<&str> = BUILTIN_TOOLS.iter().map(|tool| tool.name).collect();
        assert!(names.is_sorted());
        let known_tool = |name: &str| check_tool_name(name, &|_| false);
        for name in names.iter().copied().chain(["mcp__git__status", "mcp__a"]) {
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
            assert_eq!(wrong.suggestion, meant, "{name}");
            assert!(wrong.to_string().contains(&format!("there is no tool `{name}`")));
        }
        assert!(!known_tool("a\u{1b}[2J").unwrap_err().to_string().contains('\u{1b}'));
        for pattern in ["write_*", "mcp__git__*", "*"] {
            assert_eq!(check_tool_pattern(pattern, &|_| false), Ok(()));
        }
        assert!(check_tool_pattern("write_fil", &|_| false).is_err());
        let aliases = BUILTIN_TOOLS.iter().flat_map(|tool| tool.aliases);
        assert!(aliases.clone().all(|alias| builtin_tool(alias).is_none()));
        assert!(aliases.clone().all(|alias| *alias == alias.to_ascii_lowercase()));
    }

    #[test]
    fn a_registered_tool_of_a_library_user_is_known() {
        assert_eq!(check_tool_name("launch_rocket", &|name| name == "launch_rocket"), Ok(()));
        let unknown = check_tool_name("launch_rockets", &|name| name == "launch_rocket").unwrap_err();
        assert_eq!(unknown.given, "launch_rockets");
    }
}
