//! The `hooks` tables: Claude Code's format, with event names of Claude Code or ours.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_policy::registry;
use journeyman_protocol::ContentHash;
use journeyman_sandbox::{HostPatternError, Network, NetworkRules};
use toml::Value;

use super::duration::duration_from_value;
use super::setting::Layer;
use journeyman_agent::hooks::{EventName, HookCommand, HookEvent, Matcher, hash_scripts};

/// Maximum number of hooks of one event in one file: all of them run each time.
const MAX_HOOKS: usize = 64;
/// Maximum length of a command, in bytes: each of its words may name a file that is hashed.
const MAX_COMMAND_BYTES: usize = 8 * 1024;
/// Fields of a hook that only concern Claude Code's display or change nothing that is done here.
const IGNORED_FIELDS: &[&str] = &["description", "statusMessage", "async", "asyncRewake"];
/// Kinds of hooks that only Claude Code has.
const CLAUDE_CODE_HOOK_TYPES: &[&str] = &["prompt", "agent", "http", "mcp_tool"];

/// The commands of one event, with warnings about entries that never run.
#[derive(Debug, Default)]
pub(super) struct EventHooks {
    commands: Vec<HookCommand>,
    warnings: Vec<String>,
}

/// Checks the value of `hooks.<name>`.
///
/// # Errors
/// The problem and the expected value. An unknown event name is reported first.
pub(super) fn check_hooks(name: &str, value: &Value) -> Result<(), HookTableError> {
    parse_hooks(name, value).map(drop)
}

/// An error in a table of hooks.
pub(super) enum HookTableError {
    /// The event doesn't exist.
    Event(Option<&'static str>),
    /// A field of the table is wrong.
    Value(String),
}

impl From<String> for HookTableError {
    fn from(problem: String) -> Self {
        Self::Value(problem)
    }
}

/// Returns all hooks of the merged settings, which have been checked, and warnings about hooks that
/// never run.
pub(super) fn hook_commands(settings: &Layer) -> (Vec<HookCommand>, Vec<String>) {
    let mut all = EventHooks::default();
    for (path, setting) in settings {
        if let [first, name] = path.as_slice()
            && first == "hooks"
            && let Ok(found) = parse_hooks(name, &setting.value)
        {
            all.commands.extend(found.commands);
            all.warnings.extend(found.warnings.into_iter().map(|text| format!("{}: {text}", setting.source)));
        }
    }
    (all.commands, all.warnings)
}

/// Hashes a file for trust: its text, and the project's scripts that its hooks run.
pub(super) fn hash_with_scripts(text: &str, layer: &Layer, root: &Path) -> ContentHash {
    let (commands, _) = hook_commands(layer);
    let mut all = text.to_owned();
    for (path, hash) in commands.iter().flat_map(|hook| hash_scripts(&hook.command, root)) {
        all.push_str(&format!("\n{hash} {}", path.display()));
    }
    ContentHash::of(all.as_bytes())
}

fn parse_hooks(name: &str, value: &Value) -> Result<EventHooks, HookTableError> {
    let (event, dialect, results) = match EventName::parse(name) {
        EventName::Known(event, dialect, results) => (event, dialect, results),
        EventName::ClaudeCodeOnly => {
            let warning = format!("hooks.{name} never runs: there is no such event here");
            return Ok(EventHooks { commands: Vec::new(), warnings: vec![warning] });
        }
        EventName::Unknown(nearest) => return Err(HookTableError::Event(nearest)),
    };
    let mut found = EventHooks::default();
    for group in expect_tables(value, "takes tables: [[hooks.EVENT]] with `matcher` and `hooks`")? {
        let mut matcher = Matcher::everything();
        let mut hooks = None;
        for (field, value) in group {
            match field.as_str() {
                "matcher" => matcher = Matcher::new(expect_text(field, value)?)?,
                "hooks" => hooks = Some(expect_tables(value, "has a `hooks` that isn't a list of tables")?),
                "description" => {}
                other => return Err(unknown_field(other, &["matcher", "hooks"]).into()),
            }
        }
        if matcher != Matcher::everything() && !event.takes_matcher() {
            found.warnings.push(format!("hooks.{name} takes no `matcher`; its hooks always run"));
        }
        let hooks = hooks.ok_or_else(|| {
            "needs `hooks = [{ type = \"command\", command = \"…\" }]` in each of its tables".to_owned()
        })?;
        for hook in hooks {
            match parse_hook(hook, &mut found.warnings)? {
                Some(read) => {
                    let matcher = matcher.clone();
                    found.commands.push(HookCommand { event, dialect, results, matcher, ..read });
                }
                None => {
                    found.warnings.push(format!("a hook of hooks.{name} never runs: only commands do here"))
                }
            }
        }
    }
    if found.commands.len() > MAX_HOOKS {
        return Err(HookTableError::Value(format!(
            "has {} hooks; at most {MAX_HOOKS}",
            found.commands.len()
        )));
    }
    Ok(found)
}

/// Parses one hook; `None` for a kind that isn't run here.
fn parse_hook(hook: &toml::Table, warnings: &mut Vec<String>) -> Result<Option<HookCommand>, String> {
    let kind = hook.get("type").map_or(Ok("command"), |value| expect_text("type", value))?;
    if CLAUDE_CODE_HOOK_TYPES.contains(&kind) {
        return Ok(None);
    }
    if kind != "command" {
        return Err(format!("has a hook of type \"{kind}\"; only \"command\" is known"));
    }
    let mut command = None;
    let mut read = HookCommand::new(HookEvent::PreTool, "");
    for (field, value) in hook {
        match field.as_str() {
            "type" => {}
            "command" => command = Some(expect_text(field, value)?).filter(|it| !it.trim().is_empty()),
            "timeout" => {
                read.timeout = duration_from_value(value)
                    .ok_or_else(|| format!("has a `timeout` of {value}; it takes seconds, more than 0"))?;
            }
            "sandbox" => {
                read.sandbox = value
                    .as_bool()
                    .ok_or_else(|| format!("has a `sandbox` of {value}; it takes true or false"))?;
            }
            "network" => read.network = parse_network(value)?,
            "read" => read.read = parse_paths(field, value)?,
            "write" => read.write = parse_paths(field, value)?,
            // `if` narrows when the hook runs, so ignoring it would run the hook at other times.
            "if" => return Err("has a hook with `if`, which isn't known here; use `matcher`".to_owned()),
            "once" => warnings.push("`once` isn't known here: the hook runs each time".to_owned()),
            field if IGNORED_FIELDS.contains(&field) => {}
            other => {
                return Err(unknown_field(
                    other,
                    &["type", "command", "timeout", "sandbox", "network", "read", "write"],
                ));
            }
        }
    }
    let command = command.ok_or("has a hook without `command`")?;
    if command.len() > MAX_COMMAND_BYTES {
        return Err(format!(
            "has a command of {} bytes; put what is over {MAX_COMMAND_BYTES} into a script",
            command.len()
        ));
    }
    read.command = command.to_owned();
    Ok(Some(read))
}

/// Parses `true` for the machine's network, or a list of hosts and registries.
fn parse_network(value: &Value) -> Result<Network, String> {
    const EXPECTED_VALUE: &str = "it takes true, false, or a list of hosts and registries";
    if let Some(all) = value.as_bool() {
        return Ok(if all { Network::Host } else { Network::Off });
    }
    let wrong = || format!("has a `network` of {value}; {EXPECTED_VALUE}");
    let mut rules = NetworkRules::default();
    for item in value.as_array().ok_or_else(wrong)? {
        let given = item.as_str().ok_or_else(wrong)?;
        let hosts = registry::resolve_hosts(given)
            .map_err(|error| format!("has a `network` that is wrong: {error}"))?;
        for host in hosts {
            rules.hosts.push(host.parse().map_err(|error: HostPatternError| error.to_string())?);
        }
    }
    Ok(if rules.hosts.is_empty() { Network::Off } else { Network::Filtered(Arc::new(rules)) })
}

fn parse_paths(field: &str, value: &Value) -> Result<Vec<PathBuf>, String> {
    let wrong = || format!("has a `{field}` of {value}; it takes a list of paths that begin with / or ~/");
    let items = value.as_array().ok_or_else(wrong)?;
    let path = |item: &Value| expect_text(field, item).ok().map(PathBuf::from);
    let found: Option<Vec<PathBuf>> = items.iter().map(path).collect();
    let plain = |path: &PathBuf| path.is_absolute() || path.starts_with("~");
    found.filter(|all| all.iter().all(plain)).ok_or_else(wrong)
}

fn expect_tables<'a>(value: &'a Value, otherwise: &str) -> Result<Vec<&'a toml::Table>, String> {
    let tables = value.as_array().map(|items| items.iter().map(Value::as_table).collect::<Option<Vec<_>>>());
    tables.flatten().ok_or_else(|| otherwise.to_owned())
}

fn expect_text<'a>(field: &str, value: &'a Value) -> Result<&'a str, String> {
    let text = value.as_str().ok_or_else(|| format!("has a `{field}` that isn't text"))?;
    let broken = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if text.contains(broken) { Err(format!("has control characters in `{field}`")) } else { Ok(text) }
}

fn unknown_field(field: &str, known: &[&str]) -> String {
    format!("has an unknown field `{}`; it takes {}", field.escape_debug(), known.join(", "))
}
