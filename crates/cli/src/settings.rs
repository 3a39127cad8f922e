//! Flags to configuration, and `jm config`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use journeyman_agent::ConfigError;
use journeyman_agent::config::{
    Config, Environment, Flag, KEYS, ProjectMay, TrustStore, Trusted, load as load_layers,
};
use toml::Value;

use crate::args::{ConfigArgs, RunArgs};
use crate::edge::{Failure, root};
use crate::stdout::say;
use crate::{color, prompt};

/// What the administrator forbids.
const ADMIN: &str = "/etc/journeyman/config.toml";

/// Loads the configuration of a run, asking for trust where a person can be asked.
pub(crate) fn load(
    environment: &Environment,
    root: &Path,
    args: &RunArgs,
    interactive: bool,
) -> Result<Config, Failure> {
    let flags = flags(args)?;
    let store = environment.state_dir().map(|dir| TrustStore::new(&dir));
    let remembered = |store: &Option<TrustStore>| match store {
        Some(store) => {
            load_layers(environment, root, &flags, Trusted::Remembered(store), Some(Path::new(ADMIN)))
        }
        None => load_layers(environment, root, &flags, Trusted::Nothing, Some(Path::new(ADMIN))),
    };
    if args.trust_project {
        return Ok(load_layers(environment, root, &flags, Trusted::ThisRun, Some(Path::new(ADMIN)))?.config);
    }
    match (remembered(&store), &store) {
        (Err(ConfigError::Untrusted { path, keys, values, hash }), Some(trusted)) if interactive => {
            if !prompt::trust(color::stderr(), &path, &keys, &values).context("asking for trust")? {
                return Err(ConfigError::Untrusted { path, keys, values, hash }.into());
            }
            trusted.add(&path, &hash).context("remembering the trust")?;
            Ok(remembered(&store)?.config)
        }
        (loaded, _) => Ok(loaded?.config),
    }
}

fn flags(args: &RunArgs) -> Result<Vec<Flag>, Failure> {
    let mut flags = Vec::new();
    let mut text = |flag, key, value: &Option<String>| {
        if let Some(value) = value {
            flags.push(Flag { flag, key, value: Value::String(value.clone()) });
        }
    };
    text("--model", "model", &args.model.model);
    text("--base-url", "base_url", &args.model.base_url);
    text("--wire", "wire", &args.model.wire);
    text("--mode", "mode", &args.mode);
    text("--timeout", "timeout", &args.timeout);
    for (flag, key, value) in [
        ("--max-turns", "max_turns", args.max_turns),
        ("--max-iterations", "max_iterations", args.max_iterations),
    ] {
        if let Some(value) = value {
            flags.push(Flag { flag, key, value: Value::Integer(i64::from(value)) });
        }
    }
    if let Some(budget) = args.budget {
        flags.push(Flag { flag: "--budget", key: "budget_usd", value: Value::Float(budget) });
    }
    if let Some(blank) = args.check.iter().find(|check| check.trim().is_empty()) {
        return Err(Failure::usage(format_args!("--check «{blank}» is empty; give a shell command")));
    }
    if !args.check.is_empty() {
        let checks = args.check.iter().cloned().map(Value::String).collect();
        flags.push(Flag { flag: "--check", key: "checks", value: Value::Array(checks) });
    }
    Ok(flags)
}

/// `jm config`.
pub(crate) fn print(environment: &Environment, args: &ConfigArgs) -> Result<u8, Failure> {
    let paint = color::stdout();
    if args.keys {
        for key in KEYS {
            let project = match key.project {
                ProjectMay::Set => "a project may set it",
                ProjectMay::Narrow => "a project may narrow it",
                ProjectMay::SetIfTrusted => "a project may set it once trusted",
                ProjectMay::Nothing => "yours alone",
            };
            let variable = key.variable.map(|name| format!("; ${name}")).unwrap_or_default();
            say!("{}: {} — {} ({project}{variable})", paint.bold(key.name), key.kind.describe(), key.help);
        }
        return Ok(0);
    }
    let root = root(environment, args.directory.as_deref())?;
    let loaded = load_layers(environment, &root, &[], Trusted::ThisRun, Some(Path::new(ADMIN)))?;
    let places: Vec<PathBuf> = [
        environment.config_dir().map(|dir| dir.join("config.toml")),
        Some(root.join(".journeyman/config.toml")),
        Some(PathBuf::from(ADMIN)),
    ]
    .into_iter()
    .flatten()
    .collect();
    for place in places {
        let state = if place.exists() { "read" } else { "not there" };
        say!("{}", paint.dim(&format!("# {} ({state})", place.display())));
    }
    if loaded.settings.is_empty() {
        say!("# nothing is set: every value is built-in. `jm config --keys` lists what can be set.");
    }
    for (path, setting) in &loaded.settings {
        let key: Vec<String> = path.iter().map(|part| quoted(part)).collect();
        let value = if path.contains(&"headers".to_owned()) {
            "[hidden]".to_owned()
        } else {
            setting.value.to_string()
        };
        say!("{} = {value}  {}", key.join("."), paint.dim(&format!("# {}", setting.source)));
    }
    Ok(0)
}

/// A part of a dotted key as TOML writes it.
fn quoted(part: &str) -> String {
    let bare = !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare { part.to_owned() } else { Value::String(part.to_owned()).to_string() }
}
