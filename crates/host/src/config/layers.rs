//! Reading the layers, checking each against the table, and merging them.

use std::path::Path;

use journeyman_protocol::{ContentHash, Mode as PermissionMode};
use toml::Value;
use toml::de::{DeTable, DeValue};

use super::command_tools::check_command_tool;
use super::duration::duration_from_value;
use super::files::{PROJECT_DIR, read_project_file, read_user_file};
use super::key::{Key, KeyKind, ProjectPermission};
use super::keys::{self, KEYS};
use super::setting::{Layer, Setting, SettingSource, split_key};
use super::trust::ProjectTrust;
use super::{Config, ConfigError, Environment, hooks};

/// The name of a project's configuration file.
const PROJECT_CONFIG_FILE: &str = "config.toml";

/// A setting from the command line.
#[derive(Debug, Clone)]
pub struct Flag {
    /// The flag, for error messages.
    pub flag: &'static str,
    /// The key that the flag sets.
    pub key: &'static str,
    /// The value as TOML.
    pub value: Value,
}

/// The merged configuration.
#[derive(Debug)]
pub struct LoadedConfig {
    /// The typed values.
    pub config: Config,
    /// The effective settings with their sources, sorted by key.
    pub settings: Layer,
    /// Warnings about settings that are legal and have no effect.
    pub warnings: Vec<String>,
}

/// Reads and merges all layers for the project at `root`.
///
/// # Errors
/// [`ConfigError`] for a file that can't be read or parsed, an unknown key, a value of the wrong
/// kind, a project that widens a permission, and a project's file that needs trust and has none.
pub fn load_config(
    environment: &Environment,
    root: &Path,
    flags: &[Flag],
    trust: ProjectTrust<'_>,
    admin: Option<&Path>,
) -> Result<LoadedConfig, ConfigError> {
    let mut settings = load_user_layer(environment)?;
    let path = root.join(PROJECT_DIR).join(PROJECT_CONFIG_FILE);
    if let Some(text) = read_project_file(root, PROJECT_CONFIG_FILE)? {
        let project = parse_layer(&text, &SettingSource::Project(path.clone()))?;
        let hash = hooks::hash_with_scripts(&text, &project, root);
        merge_project(&mut settings, project, &path, hash, trust)?;
    }
    settings.extend(load_variables(environment)?);
    settings.extend(parse_flag_layer(flags)?);
    if let Some(path) = admin
        && let Some(text) = read_user_file(path)?
    {
        merge_admin(&mut settings, parse_layer(&text, &SettingSource::Admin(path.to_owned()))?);
    }
    let (_, warnings) = hooks::hook_commands(&settings);
    Ok(LoadedConfig { config: Config::from_settings(&settings)?, settings, warnings })
}

/// Loads the configuration without the project's layer, for settings that decide which servers get
/// the project's text.
///
/// # Errors
/// [`ConfigError`], as [`load_config`].
pub fn load_without_project(environment: &Environment, admin: Option<&Path>) -> Result<Config, ConfigError> {
    let mut settings = load_user_layer(environment)?;
    settings.extend(load_variables(environment)?);
    if let Some(path) = admin
        && let Some(text) = read_user_file(path)?
    {
        merge_admin(&mut settings, parse_layer(&text, &SettingSource::Admin(path.to_owned()))?);
    }
    Config::from_settings(&settings)
}

/// Loads the user's own file.
fn load_user_layer(environment: &Environment) -> Result<Layer, ConfigError> {
    let mut settings = Layer::new();
    if let Some(dir) = environment.config_dir() {
        let path = dir.join("config.toml");
        if let Some(text) = read_user_file(&path)? {
            settings.extend(parse_layer(&text, &SettingSource::User(path))?);
        }
    }
    Ok(settings)
}

/// Parses a file and checks every key and value against the table.
///
/// # Errors
/// [`ConfigError`] naming the file and the line.
pub(super) fn parse_layer(text: &str, source: &SettingSource) -> Result<Layer, ConfigError> {
    let table = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
        origin: source.to_string(),
        message: describe_syntax_error(text, &error),
    })?;
    let mut layer = Layer::new();
    collect_settings(text, source, &mut Vec::new(), table.get_ref(), &mut layer)?;
    Ok(layer)
}

/// Describes a syntax error and its line, without any of the text, which may be a secret.
fn describe_syntax_error(text: &str, error: &toml::de::Error) -> String {
    let line = error.span().map(|span| line_number(text, span.start));
    let message = error.message().trim_end();
    line.map_or_else(|| message.to_owned(), |line| format!("line {line}: {message}"))
}

fn line_number(text: &str, place: usize) -> usize {
    text.get(..place).unwrap_or_default().matches('\n').count() + 1
}

fn collect_settings(
    text: &str,
    source: &SettingSource,
    path: &mut Vec<String>,
    table: &DeTable<'_>,
    layer: &mut Layer,
) -> Result<(), ConfigError> {
    for (name, value) in table {
        path.push(name.get_ref().to_string());
        let origin = format!("{source}:{}", line_number(text, name.span().start));
        if name.get_ref().contains(char::is_control) {
            // Such a name could repaint the terminal that asks about it.
            let key = path.join(".").escape_debug().to_string();
            return Err(ConfigError::Value {
                origin,
                key,
                problem: "has control characters in its name".to_owned(),
            });
        }
        match (value.get_ref(), keys::find_key(path)) {
            (inner, Some(key)) => {
                let value = check_setting(key, path, inner, origin)?;
                layer.insert(path.clone(), Setting { value, source: source.clone() });
            }
            (DeValue::Table(inner), None) if keys::is_table(path) => {
                collect_settings(text, source, path, inner, layer)?
            }
            _ => {
                let nearest = keys::nearest_key(path);
                return Err(ConfigError::UnknownKey { origin, key: path.join("."), nearest });
            }
        }
        path.pop();
    }
    Ok(())
}

/// Checks the value of a key.
fn check_setting(
    key: &Key,
    path: &[String],
    value: &DeValue<'_>,
    origin: String,
) -> Result<Value, ConfigError> {
    let name = path.join(".");
    let problem = if key.kind == KeyKind::Hooks {
        let value = match convert_with_tables(value) {
            Ok(value) => value,
            Err(problem) => return Err(ConfigError::Value { origin, key: name, problem }),
        };
        match hooks::check_hooks(path.last().map_or("", String::as_str), &value) {
            Ok(()) => return Ok(value),
            Err(hooks::HookTableError::Event(nearest)) => {
                let nearest = nearest.map(|event| format!("hooks.{event}"));
                return Err(ConfigError::UnknownKey { origin, key: name, nearest });
            }
            Err(hooks::HookTableError::Value(problem)) => problem,
        }
    } else if matches!(key.kind, KeyKind::CommandTool | KeyKind::Cli) {
        let checked = convert_with_tables(value).and_then(|value| {
            match (key.kind, path) {
                (KeyKind::Cli, [_, name, ..]) => drop(super::clis::parse_cli(name, &value)?),
                _ => check_command_tool(path.last().map_or("", String::as_str), &value)?,
            }
            Ok(value)
        });
        match checked {
            Ok(value) => return Ok(value),
            Err(problem) => problem,
        }
    } else {
        let checked = convert_scalar(value).and_then(|value| check_kind(key.kind, value));
        match checked.and_then(|value| refuse_common_variables(key, value)) {
            Ok(value) => return Ok(value),
            Err(problem) => problem,
        }
    };
    Err(ConfigError::Value { origin, key: name, problem })
}

/// Variables that every environment has. Their values are in paths and in the output of tools.
const COMMON_VARIABLES: [&str; 24] = [
    "HOME", "PATH", "USER", "LOGNAME", "USERNAME", "SHELL", "LANG", "LANGUAGE", "PWD", "OLDPWD", "TERM",
    "TMPDIR", "TMP", "TEMP", "HOSTNAME", "TZ", "SHLVL", "EDITOR", "VISUAL", "PAGER", "DISPLAY", "COLUMNS",
    "LINES", "CI",
];

/// Refuses lists of secret variables that name a variable which every environment has.
fn refuse_common_variables(key: &Key, value: Value) -> Result<Value, String> {
    let is_list_of_secrets = matches!(key.name, "secrets" | "providers.*.key_env");
    let names = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    let is_common =
        |name: &&str| COMMON_VARIABLES.contains(name) || name.starts_with("LC_") || name.starts_with("XDG_");
    match names.into_iter().find(is_common).filter(|_| is_list_of_secrets) {
        Some(name) => Err(format!(
            "names {name}, which every environment has: hiding its value would garble paths and output, and keep hooks \
             from working"
        )),
        None => Ok(value),
    }
}

/// Converts a parsed value, including nested tables.
fn convert_with_tables(value: &DeValue<'_>) -> Result<Value, String> {
    match value {
        DeValue::Array(items) => items
            .iter()
            .map(|item| convert_with_tables(item.get_ref()))
            .collect::<Result<_, _>>()
            .map(Value::Array),
        DeValue::Table(table) => {
            let fields = table
                .iter()
                .map(|(name, value)| Ok((name.get_ref().to_string(), convert_with_tables(value.get_ref())?)));
            fields.collect::<Result<_, String>>().map(Value::Table)
        }
        other => convert_scalar(other),
    }
}

/// Converts a parsed value that is no table and no date.
fn convert_scalar(value: &DeValue<'_>) -> Result<Value, String> {
    match value {
        DeValue::String(text) => Ok(Value::String(text.to_string())),
        DeValue::Boolean(switch) => Ok(Value::Boolean(*switch)),
        DeValue::Integer(number) => {
            let digits = number.as_str();
            i64::from_str_radix(digits, number.radix())
                .map(Value::Integer)
                .map_err(|_| format!("is out of range: {digits}"))
        }
        DeValue::Float(number) => {
            number.as_str().parse().map(Value::Float).map_err(|_| "is not a number".to_owned())
        }
        DeValue::Array(items) => items
            .iter()
            .map(|item| convert_scalar(item.get_ref()))
            .collect::<Result<_, _>>()
            .map(Value::Array),
        DeValue::Table(_) => Err("is a table; it takes a plain value".to_owned()),
        DeValue::Datetime(_) => Err("is a date; it takes a plain value".to_owned()),
    }
}

/// Checks a value against its kind; durations become whole seconds as a float.
fn check_kind(kind: KeyKind, value: Value) -> Result<Value, String> {
    let wrong = |value: &Value| format!("is {value}, but takes {}", kind.describe());
    let fits = match (kind, &value) {
        (KeyKind::Text, Value::String(_)) | (KeyKind::Switch, Value::Boolean(_)) => true,
        (KeyKind::Count, Value::Integer(number)) => *number >= 1 && u32::try_from(*number).is_ok(),
        (KeyKind::Number, Value::Integer(number)) => *number >= 0,
        (KeyKind::Number, Value::Float(number)) => number.is_finite() && *number >= 0.0,
        (KeyKind::Mode, Value::String(word)) => word.parse::<PermissionMode>().is_ok(),
        (KeyKind::OneOf(words), Value::String(word)) => words.contains(&word.as_str()),
        (KeyKind::List, Value::Array(items)) => items.iter().all(Value::is_str),
        (KeyKind::Duration, _) => {
            return duration_from_value(&value)
                .map(|d| Value::Float(d.as_secs_f64()))
                .ok_or_else(|| wrong(&value));
        }
        // Only files set these keys, with separate checks.
        (KeyKind::Hooks | KeyKind::CommandTool | KeyKind::Cli, _) => false,
        _ => false,
    };
    if fits { Ok(value) } else { Err(wrong(&value)) }
}

fn load_variables(environment: &Environment) -> Result<Layer, ConfigError> {
    let mut layer = Layer::new();
    for key in KEYS {
        let Some(name) = key.variable else { continue };
        let Some(text) = environment.var(name) else { continue };
        let value = parse_variable(key, text).map_err(|problem| ConfigError::Value {
            origin: format!("${name}"),
            key: key.name.to_owned(),
            problem,
        })?;
        layer
            .insert(split_key(key.name), Setting { value, source: SettingSource::Variable(name.to_owned()) });
    }
    Ok(layer)
}

/// Parses the text of an environment variable as a key's kind.
fn parse_variable(key: &Key, text: &str) -> Result<Value, String> {
    let value = match key.kind {
        KeyKind::Count => text.parse().map(Value::Integer).ok(),
        KeyKind::Number => text.parse().map(Value::Float).ok(),
        KeyKind::Switch => text.parse().map(Value::Boolean).ok(),
        KeyKind::Text | KeyKind::Duration | KeyKind::Mode | KeyKind::OneOf(_) => {
            Some(Value::String(text.to_owned()))
        }
        KeyKind::List => {
            Some(Value::Array(text.split(',').map(|item| Value::String(item.trim().to_owned())).collect()))
        }
        KeyKind::Hooks | KeyKind::CommandTool | KeyKind::Cli => None,
    };
    value
        .ok_or_else(|| format!("is \"{text}\", but takes {}", key.kind.describe()))
        .and_then(|value| check_kind(key.kind, value))
}

fn parse_flag_layer(flags: &[Flag]) -> Result<Layer, ConfigError> {
    let mut layer = Layer::new();
    for flag in flags {
        let path = split_key(flag.key);
        let Some(key) = keys::find_key(&path) else {
            return Err(ConfigError::UnknownKey {
                origin: flag.flag.to_owned(),
                key: flag.key.to_owned(),
                nearest: keys::nearest_key(&path),
            });
        };
        let value = check_kind(key.kind, flag.value.clone()).map_err(|problem| ConfigError::Value {
            origin: flag.flag.to_owned(),
            key: flag.key.to_owned(),
            problem,
        })?;
        layer.insert(path, Setting { value, source: SettingSource::Flag(flag.flag.to_owned()) });
    }
    Ok(layer)
}

/// Merges a project's settings, none of which may be wider than the user's own.
fn merge_project(
    settings: &mut Layer,
    project: Layer,
    path: &Path,
    hash: ContentHash,
    trust: ProjectTrust<'_>,
) -> Result<(), ConfigError> {
    let needing = project.iter().filter(|(parts, _)| {
        keys::find_key(parts).is_some_and(|key| key.project == ProjectPermission::SetIfTrusted)
    });
    let (needing, values): (Vec<String>, Vec<String>) =
        needing.map(|(parts, setting)| (parts.join("."), setting.value.to_string())).unzip();
    if !needing.is_empty() && !trust.is_file_trusted(path, &hash) {
        return Err(ConfigError::Untrusted { path: path.to_owned(), keys: needing, values, hash });
    }
    for (parts, setting) in project {
        let Some(key) = keys::find_key(&parts) else { continue };
        let current = settings.get(&parts);
        match key.project {
            ProjectPermission::Nothing => {
                return Err(ConfigError::UserOnly {
                    origin: path.display().to_string(),
                    key: parts.join("."),
                });
            }
            ProjectPermission::Narrow => {
                if let Some(allowed) = widest_allowed(key, current)
                    && is_wider(key, &setting.value, &allowed)
                {
                    return Err(ConfigError::Widens {
                        origin: path.display().to_string(),
                        key: parts.join("."),
                        given: display_value(&setting.value),
                        allowed: display_value(&allowed),
                    });
                }
                settings.insert(parts, setting);
            }
            // A project's secrets hide nothing from the user's own hooks.
            ProjectPermission::Set if key.name == "secrets" => {
                settings.insert(super::typed_config::project_secrets_key(), setting);
            }
            // A project's instructions never replace the user's own, and never pass for them.
            ProjectPermission::Set if key.name == "instructions" => {
                settings.insert(super::typed_config::project_instructions_key(), setting);
            }
            ProjectPermission::Set | ProjectPermission::SetIfTrusted => {
                // Both lists hold: a project must not take the user's hooks off.
                let users = current.filter(|_| key.kind == KeyKind::Hooks);
                let value =
                    users.map_or(setting.value.clone(), |users| concat_lists(&users.value, &setting.value));
                settings.insert(parts, Setting { value, ..setting });
            }
        }
    }
    Ok(())
}

/// Returns the widest value that a project may set a key to: the user's own setting, or the
/// built-in limit.
fn widest_allowed(key: &Key, current: Option<&Setting>) -> Option<Value> {
    if let Some(setting) = current {
        return Some(setting.value.clone());
    }
    match key.name {
        // The built-in mode depends on the surface (`edit` in a terminal, `auto` without one): the
        // typed configuration narrows by it when the surface is known, so any mode is narrower
        // here.
        "mode" | "budget_usd" => None,
        "isolate" => Some(Value::Boolean(false)),
        "lint_fix" => Some(Value::Boolean(true)),
        "max_turns" => Some(Value::Integer(i64::from(journeyman_agent::DEFAULT_MAX_TURNS))),
        "max_iterations" => {
            Some(Value::Integer(i64::from(journeyman_agent::DEFAULT_MAX_FEEDBACK_ITERATIONS)))
        }
        "test_budget" => Some(Value::Float(journeyman_agent::DEFAULT_TEST_TIME_BUDGET.as_secs_f64())),
        "timeout" => Some(Value::Float(journeyman_agent::DEFAULT_TASK_TIMEOUT.as_secs_f64())),
        "tools.concurrency" => {
            i64::try_from(journeyman_agent::DEFAULT_MAX_CONCURRENT_CALLS).ok().map(Value::Integer)
        }
        "tools.timeout" => Some(Value::Float(journeyman_agent::DEFAULT_TOOL_TIMEOUT.as_secs_f64())),
        _ => None,
    }
}

/// Returns true if `given` allows more than `allowed`.
fn is_wider(key: &Key, given: &Value, allowed: &Value) -> bool {
    match (given, allowed) {
        // Without isolation a session changes the project directly.
        (Value::Boolean(given), Value::Boolean(allowed)) if key.name == "isolate" => *allowed && !*given,
        (Value::Boolean(given), Value::Boolean(allowed)) => *given && !*allowed,
        (Value::String(given), Value::String(allowed)) => {
            given.parse::<PermissionMode>().ok() > allowed.parse::<PermissionMode>().ok()
        }
        _ => number_from_value(given) > number_from_value(allowed),
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are below 2^32")]
fn number_from_value(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    }
}

/// Merges the administrator's settings. They narrow keys that a project may narrow, and are
/// defaults for other keys.
fn merge_admin(settings: &mut Layer, admin: Layer) {
    for (parts, setting) in admin {
        let narrowed = keys::find_key(&parts).filter(|key| key.project == ProjectPermission::Narrow);
        let forbids = parts.first().is_some_and(|first| first == "sandbox");
        let hooks = keys::find_key(&parts).is_some_and(|key| key.kind == KeyKind::Hooks);
        if let Some(current) = settings.get(&parts).filter(|_| hooks) {
            // Hooks can deny calls: the administrator's come first, and no layer can remove them.
            let value = concat_lists(&setting.value, &current.value);
            settings.insert(parts, Setting { value, ..setting });
            continue;
        }
        match settings.get(&parts) {
            Some(current) if narrowed.is_some_and(|key| !is_wider(key, &current.value, &setting.value)) => {}
            Some(_) if narrowed.is_none() && !forbids => {}
            _ => {
                settings.insert(parts, setting);
            }
        }
    }
}

fn concat_lists(one: &Value, other: &Value) -> Value {
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut all = items(one);
    all.extend(items(other));
    Value::Array(all)
}

fn display_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
