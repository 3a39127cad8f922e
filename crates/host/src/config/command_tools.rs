//! The tables `[tools.commands.NAME]`: tools that run a command of the user's.

use std::collections::BTreeMap;

use journeyman_tools::{ArgumentType, CommandArgument, CommandDefinition};
use toml::{Table, Value};

use super::duration::duration_from_value;
use super::setting::Layer;

/// Maximum number of command tools: every request describes all of them.
const MAX_COMMAND_TOOLS: usize = 32;
/// The words for types of arguments.
const ARGUMENT_TYPES: [(&str, ArgumentType); 5] = [
    ("string", ArgumentType::Text),
    ("integer", ArgumentType::Integer),
    ("boolean", ArgumentType::Boolean),
    ("path", ArgumentType::ReadPath),
    ("strings", ArgumentType::TextList),
];

/// Checks the value of `tools.commands.<name>`.
///
/// # Errors
/// A message with the problem and the expected value.
pub(super) fn check_command_tool(name: &str, value: &Value) -> Result<(), String> {
    let table = value.as_table().ok_or("takes a table with `description`, `run` and `arguments`")?;
    let definition = parse_definition(name, table)?;
    // The project's root plays no part in what a definition may have.
    journeyman_tools::CommandTool::new(definition, "/".as_ref()).map(drop)
}

/// Returns the command tools of the merged settings, which have been checked.
///
/// # Errors
/// A message, if there are too many tools.
pub(super) fn command_tools(settings: &Layer) -> Result<Vec<CommandDefinition>, String> {
    let mut tools = Vec::new();
    for (path, setting) in settings {
        if let [first, second, name] = path.as_slice()
            && first == "tools"
            && second == "commands"
            && let Some(table) = setting.value.as_table()
        {
            tools.push(parse_definition(name, table)?);
        }
    }
    match tools.len() {
        0..=MAX_COMMAND_TOOLS => Ok(tools),
        many => Err(format!("has {many} tools; at most {MAX_COMMAND_TOOLS}")),
    }
}

fn parse_definition(name: &str, table: &Table) -> Result<CommandDefinition, String> {
    let mut definition = CommandDefinition {
        name: name.to_owned(),
        description: String::new(),
        run: Vec::new(),
        arguments: BTreeMap::new(),
        timeout: None,
        network: Vec::new(),
    };
    for (field, value) in table {
        match field.as_str() {
            "description" => definition.description = expect_text(field, value)?,
            "run" => definition.run = expect_texts(field, value)?,
            "network" => definition.network = expect_texts(field, value)?,
            "timeout" => {
                let limit = duration_from_value(value);
                definition.timeout = Some(limit.ok_or("has a `timeout` that is no time, such as \"20s\"")?);
            }
            "arguments" => {
                let arguments = value.as_table().ok_or("has `arguments` that are no table")?;
                for (name, value) in arguments {
                    definition.arguments.insert(name.clone(), parse_argument(name, value)?);
                }
            }
            other => return Err(unknown_field(other, "description, run, arguments, timeout, network")),
        }
    }
    Ok(definition)
}

fn parse_argument(name: &str, value: &Value) -> Result<CommandArgument, String> {
    let of_type = |word: &str| ARGUMENT_TYPES.iter().find(|(known, _)| *known == word).map(|(_, kind)| *kind);
    let types = || {
        let words: Vec<&str> = ARGUMENT_TYPES.iter().map(|(word, _)| *word).collect();
        format!("has an argument `{}` without a type; there are {}", name.escape_debug(), words.join(", "))
    };
    let mut argument =
        CommandArgument { kind: ArgumentType::Text, description: String::new(), optional: false };
    // A type alone is the short form.
    if let Some(word) = value.as_str() {
        argument.kind = of_type(word).ok_or_else(types)?;
        return Ok(argument);
    }
    let table = value.as_table().ok_or_else(types)?;
    let mut writes = false;
    for (field, value) in table {
        match field.as_str() {
            "type" => argument.kind = value.as_str().and_then(of_type).ok_or_else(types)?,
            "description" => argument.description = expect_text(field, value)?,
            "optional" => {
                argument.optional = value.as_bool().ok_or("has an `optional` that isn't true or false")?
            }
            "writes" => writes = value.as_bool().ok_or("has a `writes` that isn't true or false")?,
            other => return Err(unknown_field(other, "type, description, optional, writes")),
        }
    }
    match (writes, argument.kind) {
        (false, _) => {}
        (true, ArgumentType::ReadPath) => argument.kind = ArgumentType::WritePath,
        (true, _) => {
            return Err(format!("has an argument `{}` that writes and is no path", name.escape_debug()));
        }
    }
    Ok(argument)
}

fn expect_text(field: &str, value: &Value) -> Result<String, String> {
    let text = value.as_str().ok_or_else(|| format!("has a `{field}` that isn't text"))?;
    let broken = |c: char| c.is_control() && c != '\n';
    if text.contains(broken) {
        Err(format!("has control characters in `{field}`"))
    } else {
        Ok(text.to_owned())
    }
}

fn expect_texts(field: &str, value: &Value) -> Result<Vec<String>, String> {
    let items = value.as_array().ok_or_else(|| format!("has a `{field}` that isn't a list of texts"))?;
    items.iter().map(|item| expect_text(field, item)).collect()
}

fn unknown_field(field: &str, known: &str) -> String {
    format!("has an unknown field `{}`; it takes {known}", field.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(toml: &str) -> Result<(), String> {
        check_command_tool("query_db", &Value::Table(toml.parse().unwrap()))
    }

    #[test]
    fn a_table_is_checked_strictly() {
        let good = "description = 'Queries.'\nrun = ['psql', '-c', '{sql}', '{files}']\ntimeout = '20s'\n\
                    network = ['db.example.com']\n[arguments]\nsql = { type = 'string', description = 'One SELECT' }\n\
                    files = { type = 'strings', optional = true }";
        assert_eq!(check(good), Ok(()));
        for (toml, expected) in [
            ("run = ['a']", "`description` has to have"),
            ("description = 'x'", "`run` has to begin"),
            ("description = 'x'\nrun = 'a'", "isn't a list of texts"),
            ("description = 'x'\nrun = ['a']\nshell = true", "unknown field `shell`"),
            ("description = 'x'\nrun = ['a', '{b}']\n[arguments]\nb = 'number'", "without a type"),
            (
                "description = 'x'\nrun = ['a', '{b}']\n[arguments]\nb = { type = 'string', writes = true }",
                "is no path",
            ),
            ("description = 'x'\nrun = ['a']\ntimeout = 'soon'", "is no time"),
            (
                "description = 'x\\u001b'\nrun = ['a']".replace("'x\\u001b'", "\"x\\u001b\"").leak(),
                "control characters",
            ),
        ] {
            let problem = check(toml).unwrap_err();
            assert!(problem.contains(expected), "{toml}: {problem}");
        }
    }
}
