//! The tables `[delegates.NAME.cli]`: coding CLIs that aren't built in.

use journeyman_delegate::{CliDefinition, ConfiguredCli, builtin_adapter};
use serde::Deserialize as _;
use toml::Value;

/// Reads the description of the CLI `name`.
///
/// # Errors
/// A message with the problem.
pub(super) fn parse_cli(name: &str, value: &Value) -> Result<ConfiguredCli, String> {
    if builtin_adapter(name).is_some() {
        return Err(format!("describes {name}, which is built in; use another name"));
    }
    let mut table = value.as_table().ok_or("takes a table with `command`")?.clone();
    if table.insert("name".to_owned(), name.into()).is_some() {
        return Err("has a `name`; the CLI is called by the key".to_owned());
    }
    let definition = CliDefinition::deserialize(Value::Table(table)).map_err(|error| {
        // Its first line names the field; the others may repeat values.
        format!("can't be read: {}", error.message().lines().next().unwrap_or_default())
    })?;
    ConfiguredCli::new(definition).map_err(|error| format!("can't be used: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_checked_strictly() {
        let parse = |toml: &str| parse_cli("mine", &Value::Table(toml.parse().unwrap())).map(drop);
        assert_eq!(
            parse("command = ['mine', '{prompt}']\noutput = { json_lines = { text = 'a.b' } }"),
            Ok(())
        );
        for (toml, expected) in [
            ("", "missing field `command`"),
            ("command = []", "has no command"),
            ("command = ['a']\nshell = true", "unknown field `shell`"),
            ("command = ['a']\nname = 'b'", "has a `name`"),
            ("command = ['a']\nmodel = ['--model']", "lacks `{model}`"),
        ] {
            let problem = parse(toml).unwrap_err();
            assert!(problem.contains(expected), "{toml}: {problem}");
        }
        let taken = parse_cli("codex", &Value::Table("command = ['a']".parse().unwrap())).map(drop);
        assert!(taken.unwrap_err().contains("is built in"));
    }
}
