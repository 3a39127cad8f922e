//! Names of tools and their arguments in this project and in Claude Code.

use std::path::Path;

use journeyman_policy::builtin_tool;
use journeyman_protocol::Effects;
use serde_json::{Map, Value, json};

use super::event::Dialect;

/// An argument: its own name, Claude Code's name, and wrong names that models write and the tools
/// accept.
type ArgumentNames = (&'static str, &'static str, &'static [&'static str]);

const WRONG_PATH_NAMES: &[&str] = &["filepath", "filename", "file", "dir"];
/// The arguments of tools in [`EDITING_TOOLS`].
const EDIT_ARGUMENTS: &[ArgumentNames] = &[("path", "file_path", WRONG_PATH_NAMES)];

/// The arguments with several names, by tool. [`journeyman_policy::BUILTIN_TOOLS`] has the names of
/// the tools.
const ARGUMENT_NAMES: &[(&str, &[ArgumentNames])] = &[
    (
        "run_command",
        &[
            ("command", "command", &["cmd"]),
            ("background", "run_in_background", &[]),
            ("directory", "cwd", &[]),
        ],
    ),
    ("read_file", &[("path", "file_path", WRONG_PATH_NAMES)]),
    (
        "write_file",
        &[("path", "file_path", WRONG_PATH_NAMES), ("content", "content", &["contents", "file_text"])],
    ),
    (
        "edit_file",
        &[
            ("path", "file_path", WRONG_PATH_NAMES),
            ("search", "old_string", &["old_str", "old_text"]),
            ("replace", "new_string", &["new_str", "new_text"]),
        ],
    ),
    ("list_files", &[("glob", "pattern", &[])]),
    ("search_text", &[("ignore_case", "-i", &[]), ("context", "-C", &[]), ("limit", "head_limit", &[])]),
    ("command_output", &[("id", "bash_id", &[])]),
    ("stop_command", &[("id", "shell_id", &[])]),
];

/// Tools that change files and have no counterpart in Claude Code. Its hooks see them as edits of
/// the first changed file, so that a hook that guards files sees every change.
const EDITING_TOOLS_WITHOUT_COUNTERPART: [&str; 5] =
    ["apply_edit", "apply_patch", "delete_file", "edit_symbol", "move_file"];
/// The editing tool whose input names its files only in the text of a patch.
const PATCH_TOOL: &str = "apply_patch";
/// The name of such a tool in Claude Code.
const CLAUDE_CODE_EDIT: &str = "Edit";

fn argument_names(tool: &str) -> Option<&'static [ArgumentNames]> {
    ARGUMENT_NAMES.iter().find(|(name, _)| *name == tool).map(|(_, arguments)| *arguments)
}

/// Returns every name by which a matcher may call a tool.
pub(super) fn all_tool_names(ours: &str) -> Vec<&str> {
    let mut names = vec![ours];
    names.extend(builtin_tool(ours).iter().flat_map(|tool| tool.claude_code));
    if EDITING_TOOLS_WITHOUT_COUNTERPART.contains(&ours) {
        names.push(CLAUDE_CODE_EDIT);
    }
    names
}

/// Returns the tool's name in a hook's JSON.
pub(super) fn tool_name_in(dialect: Dialect, ours: &str) -> &str {
    match dialect {
        Dialect::Own => ours,
        Dialect::ClaudeCode if EDITING_TOOLS_WITHOUT_COUNTERPART.contains(&ours) => CLAUDE_CODE_EDIT,
        Dialect::ClaudeCode => {
            builtin_tool(ours).and_then(|tool| tool.claude_code.first().copied()).unwrap_or(ours)
        }
    }
}

/// Returns a call's arguments for a hook's JSON. An argument that the model wrote under another
/// accepted name gets its right name, so that no call evades a hook that checks `command` or
/// `file_path`.
pub(super) fn input_to_dialect(
    dialect: Dialect,
    ours: &str,
    input: &Value,
    effects: &Effects,
    root: &Path,
) -> Value {
    let arguments = argument_names(ours)
        .or_else(|| EDITING_TOOLS_WITHOUT_COUNTERPART.contains(&ours).then_some(EDIT_ARGUMENTS));
    let (Some(arguments), Value::Object(given)) = (arguments, input) else { return input.clone() };
    let mut fields = rename_keys(given, |name| {
        let row = arguments
            .iter()
            .find(|(own, other, slips)| *own == name || *other == name || slips.contains(&name));
        row.map(|(own, other, _)| if dialect == Dialect::Own { *own } else { *other })
    });
    // A patch names its files in its text; only hooks that look for `file_path` need them apart.
    let is_patch = ours == PATCH_TOOL;
    let is_file = matches!(ours, "read_file" | "write_file" | "edit_file")
        || (EDITING_TOOLS_WITHOUT_COUNTERPART.contains(&ours)
            && (!is_patch || dialect == Dialect::ClaudeCode));
    if let Some(command) = &effects.command
        && ours == "run_command"
    {
        fields.insert("command".to_owned(), Value::String(command.clone()));
    }
    let field = if dialect == Dialect::Own { "path" } else { "file_path" };
    if is_file && let Some(path) = effects.writes.first().or(effects.reads.first()) {
        fields.insert(field.to_owned(), Value::String(path.as_path().to_string_lossy().into_owned()));
    }
    // Scripts compare this path with the output of `realpath`. A stored output (`output:`) isn't a
    // file.
    if is_file
        && dialect == Dialect::ClaudeCode
        && let Some(path) = fields.get(field).and_then(Value::as_str).filter(|it| !it.starts_with("output:"))
    {
        let whole = root.join(path).to_string_lossy().into_owned();
        fields.insert(field.to_owned(), Value::String(whole));
    }
    if dialect == Dialect::ClaudeCode {
        match ours {
            "edit_file" => rename_edit_fields(&mut fields, "search", "old_string", "replace", "new_string"),
            "run_command" => {
                scale_field(&mut fields, "timeout_s", "timeout", |seconds| seconds.checked_mul(1000))
            }
            _ => {}
        }
    }
    Value::Object(fields)
}

/// Converts a hook's amended arguments back to the tool's own names.
pub(super) fn input_from_dialect(dialect: Dialect, ours: &str, input: Value, root: &Path) -> Value {
    let arguments = argument_names(ours)
        .or_else(|| EDITING_TOOLS_WITHOUT_COUNTERPART.contains(&ours).then_some(EDIT_ARGUMENTS));
    let (Dialect::ClaudeCode, Some(arguments)) = (dialect, arguments) else { return input };
    let Value::Object(given) = input else { return input };
    let mut fields = rename_keys(&given, |name| {
        arguments.iter().find(|(_, other, _)| *other == name).map(|(own, ..)| *own)
    });
    if let Some(path) = fields.get("path").and_then(Value::as_str)
        && let Ok(below) = Path::new(path).strip_prefix(root)
    {
        let below =
            if below.as_os_str().is_empty() { ".".into() } else { below.to_string_lossy().into_owned() };
        fields.insert("path".to_owned(), Value::String(below));
    }
    match ours {
        PATCH_TOOL => drop(fields.remove("path")),
        "edit_file" => rename_edit_fields(&mut fields, "old_string", "search", "new_string", "replace"),
        "run_command" => {
            // Claude Code counts milliseconds. The timeout is rounded up to whole seconds.
            scale_field(&mut fields, "timeout", "timeout_s", |millis| Some(millis.div_ceil(1000)));
            // Claude Code's description for people is an argument of no tool here.
            fields.remove("description");
        }
        _ => {}
    }
    Value::Object(fields)
}

/// Returns a call's result for a hook's JSON: one object with the fields that scripts look for.
pub(super) fn tool_response(text: &str, is_error: bool, file: Option<&Value>) -> Value {
    let mut response = json!({
        "success": !is_error, "is_error": is_error, "content": text,
        "stdout": text, "stderr": "", "interrupted": false,
    });
    if let (Some(file), Value::Object(fields)) = (file, &mut response) {
        fields.insert("filePath".to_owned(), file.clone());
    }
    response
}

fn rename_keys(given: &Map<String, Value>, to: impl Fn(&str) -> Option<&'static str>) -> Map<String, Value> {
    given.iter().map(|(name, value)| (to(name).unwrap_or(name).to_owned(), value.clone())).collect()
}

fn rename_edit_fields(fields: &mut Map<String, Value>, search: &str, to: &str, replace: &str, with: &str) {
    let Some(Value::Array(edits)) = fields.get_mut("edits") else { return };
    for edit in edits.iter_mut().filter_map(Value::as_object_mut) {
        for (from, into) in [(search, to), (replace, with)] {
            if let Some(text) = edit.remove(from) {
                edit.insert(into.to_owned(), text);
            }
        }
    }
}

fn scale_field(fields: &mut Map<String, Value>, from: &str, to: &str, by: impl Fn(u64) -> Option<u64>) {
    if let Some(number) = fields.get(from).and_then(Value::as_u64).and_then(by) {
        fields.remove(from);
        fields.insert(to.to_owned(), Value::from(number));
    }
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::RelPath;

    use super::*;

    fn effects(writes: &[&str], command: Option<&str>) -> Effects {
        Effects {
            writes: writes.iter().map(|path| RelPath::parse(path.as_bytes()).unwrap()).collect(),
            command: command.map(str::to_owned),
            ..Effects::default()
        }
    }

    #[test]
    fn arguments_go_out_in_claude_codes_names_and_come_back_in_ours() {
        let root = Path::new("/project");
        let cases = [
            (
                "edit_file",
                json!({"path": "src/a.rs", "search": "x", "replace": "y"}),
                effects(&["src/a.rs"], None),
                json!({"file_path": "/project/src/a.rs", "old_string": "x", "new_string": "y"}),
            ),
            (
                "edit_file",
                json!({"path": "a", "edits": [{"search": "x", "replace": "y"}]}),
                effects(&["a"], None),
                json!({"file_path": "/project/a", "edits": [{"old_string": "x", "new_string": "y"}]}),
            ),
            (
                "run_command",
                json!({"command": "ls", "timeout_s": 5}),
                effects(&[], Some("ls")),
                json!({"command": "ls", "timeout": 5000}),
            ),
            (
                "write_file",
                json!({"path": "a", "content": "b"}),
                effects(&["a"], None),
                json!({"file_path": "/project/a", "content": "b"}),
            ),
            ("mcp__x__y", json!({"path": "a"}), effects(&[], None), json!({"path": "a"})),
        ];
        for (tool, ours, effects, theirs) in cases {
            let out = input_to_dialect(Dialect::ClaudeCode, tool, &ours, &effects, root);
            assert_eq!(out, theirs, "{tool}");
            assert_eq!(input_from_dialect(Dialect::ClaudeCode, tool, out, root), ours, "{tool}");
        }
    }

    #[test]
    fn a_guard_sees_the_file_whatever_the_model_called_the_argument() {
        let root = Path::new("/project");
        let written = json!({"filename": ".env", "contents": "x"});
        let out =
            input_to_dialect(Dialect::ClaudeCode, "write_file", &written, &effects(&[".env"], None), root);
        assert_eq!(out, json!({"file_path": "/project/.env", "content": "x"}));
        let out = input_to_dialect(
            Dialect::Own,
            "run_command",
            &json!({"cmd": "ls"}),
            &effects(&[], Some("ls")),
            root,
        );
        assert_eq!(out, json!({"command": "ls"}));
        // The effects of the call take precedence over any argument name.
        let out = input_to_dialect(
            Dialect::Own,
            "run_command",
            &json!({"comand": "ls"}),
            &effects(&[], Some("ls")),
            root,
        );
        assert_eq!(out, json!({"comand": "ls", "command": "ls"}));
    }
}
