//! Flags to configuration, and `jm config`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use journeyman_agent::{Asked, Checks};
use journeyman_host::ConfigError;
use journeyman_host::config::{
    Config, Environment, Flag, KEYS, Loaded, ProjectMay, TrustStore, Trusted, load as load_layers,
};
use journeyman_protocol::Mode;
use toml::Value;

use crate::args::{ConfigArgs, RunOptions};
use crate::edge::{Failure, root};
use crate::stdout::say;
use crate::{color, prompt};

/// What the administrator forbids.
pub(crate) const ADMIN: &str = "/etc/journeyman/config.toml";

/// What a session was started with, for opening it again.
pub(crate) struct Before {
    pub(crate) model: String,
    pub(crate) mode: Mode,
    pub(crate) asked: Asked,
}

/// How errors name what comes from [`Before`].
const SESSION: &str = "the session as it was";
/// What the model of an address without a provider is called before its own name.
const CUSTOM: &str = "custom/";

/// The configuration of a run, and what is to be kept for opening its session again.
pub(crate) struct Settled {
    pub(crate) config: Config,
    pub(crate) asked: Asked,
    /// What people should be told of.
    pub(crate) warnings: Vec<String>,
}

/// Loads the configuration of a run, asking for trust where a person can be asked.
pub(crate) fn load(
    environment: &Environment,
    root: &Path,
    options: &RunOptions,
    before: Option<&Before>,
    interactive: bool,
) -> Result<Settled, Failure> {
    let asked = asked(options, before)?;
    let flags = flags(options, before, &asked);
    let loaded = loaded(environment, root, options, &flags, interactive)?;
    #[cfg_attr(not(target_os = "linux"), allow(unused_mut))]
    let Loaded { mut config, warnings, .. } = loaded;
    #[cfg(target_os = "linux")]
    crate::containers::read_recipe(&mut config, environment, root, options.trust_project, interactive)?;
    Ok(Settled { config, asked, warnings })
}

/// The configuration where nothing of it that a project may set counts, so that nothing has to be trusted.
pub(crate) fn of_the_user(environment: &Environment, root: &Path) -> Result<Config, Failure> {
    Ok(load_layers(environment, root, &[], Trusted::ThisRun, Some(Path::new(ADMIN)))?.config)
}

fn loaded(
    environment: &Environment,
    root: &Path,
    options: &RunOptions,
    flags: &[Flag],
    interactive: bool,
) -> Result<Loaded, Failure> {
    let store = environment.state_dir().map(|dir| TrustStore::new(&dir));
    let admin = Some(Path::new(ADMIN));
    let remembered = |store: &Option<TrustStore>| match store {
        Some(store) => load_layers(environment, root, flags, Trusted::Remembered(store), admin),
        None => load_layers(environment, root, flags, Trusted::Nothing, admin),
    };
    if options.trust_project {
        return Ok(load_layers(environment, root, flags, Trusted::ThisRun, admin)?);
    }
    match (remembered(&store), &store) {
        (Err(ConfigError::Untrusted { path, keys, values, hash }), Some(trusted)) if interactive => {
            if !prompt::trust(color::stderr(), &path, &keys, &values).context("asking for trust")? {
                return Err(ConfigError::Untrusted { path, keys, values, hash }.into());
            }
            trusted.add(&path, &hash).context("remembering the trust")?;
            Ok(remembered(&store)?)
        }
        (loaded, _) => Ok(loaded?),
    }
}

/// What is asked for beside the configuration: by flags, or else when the session was started.
fn asked(options: &RunOptions, before: Option<&Before>) -> Result<Asked, Failure> {
    if let Some(blank) = options.check.iter().find(|check| check.trim().is_empty()) {
        return Err(Failure::usage(format_args!("--check «{blank}» is empty; give a shell command")));
    }
    let was = before.map(|before| before.asked.clone()).unwrap_or_default();
    let model = &options.model;
    // Another model is somewhere else, unless it is said that it is there.
    let elsewhere = model.model.is_some() || model.base_url.is_some();
    let (base_url, wire) = match elsewhere {
        true => (model.base_url.clone(), model.wire.clone()),
        false => (was.base_url, model.wire.clone().or(was.wire)),
    };
    let checks = match (options.no_check, options.check.is_empty()) {
        (true, _) => Some(Checks::Off),
        (false, false) => Some(Checks::Custom(options.check.clone())),
        (false, true) => was.checks,
    };
    Ok(Asked { base_url, wire, checks, ..was })
}

/// The same without what may be a secret: an address with a password or a token in it is not kept.
pub(crate) fn worth_keeping(asked: &Asked) -> Asked {
    let secret = |url: &String| url.contains(['@', '?']);
    match &asked.base_url {
        Some(url) if secret(url) => Asked { base_url: None, wire: None, ..asked.clone() },
        _ => asked.clone(),
    }
}

fn flags(options: &RunOptions, before: Option<&Before>, asked: &Asked) -> Vec<Flag> {
    let mut flags = Vec::new();
    let mut text = |flag, key, value: Option<&String>| {
        if let Some(value) = value {
            flags.push(Flag { flag, key, value: Value::String(value.clone()) });
        }
    };
    let was = before.map(|before| before.model.strip_prefix(CUSTOM).unwrap_or(&before.model).to_owned());
    let source = |flag, given: &Option<String>| if given.is_some() { flag } else { SESSION };
    let model = &options.model;
    text(source("--model", &model.model), "model", model.model.as_ref().or(was.as_ref()));
    text(source("--base-url", &model.base_url), "base_url", asked.base_url.as_ref());
    text(source("--wire", &model.wire), "wire", asked.wire.as_ref());
    let mode = before.map(|before| before.mode.name().to_owned());
    text(source("--mode", &options.mode), "mode", options.mode.as_ref().or(mode.as_ref()));
    text("--timeout", "timeout", options.timeout.as_ref());
    for (flag, key, value) in [
        ("--max-turns", "max_turns", options.max_turns),
        ("--max-iterations", "max_iterations", options.max_iterations),
    ] {
        if let Some(value) = value {
            flags.push(Flag { flag, key, value: Value::Integer(i64::from(value)) });
        }
    }
    if options.allow_root {
        flags.push(Flag { flag: "--allow-root", key: "sandbox.allow_root", value: Value::Boolean(true) });
    }
    if let Some(budget) = options.budget {
        flags.push(Flag { flag: "--budget", key: "budget_usd", value: Value::Float(budget) });
    }
    if let Some(Checks::Custom(checks)) = &asked.checks {
        let checks = checks.iter().cloned().map(Value::String).collect();
        flags.push(Flag { flag: "--check", key: "checks", value: Value::Array(checks) });
    }
    flags
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::ModelArgs;

    fn options(model: Option<&str>, base_url: Option<&str>, check: &[&str], no_check: bool) -> RunOptions {
        let text = |text: Option<&str>| text.map(str::to_owned);
        RunOptions {
            model: ModelArgs { model: text(model), base_url: text(base_url), ..ModelArgs::default() },
            check: check.iter().map(|&check| check.to_owned()).collect(),
            no_check,
            ..RunOptions::default()
        }
    }

    fn was() -> Before {
        let asked = Asked {
            base_url: Some("http://one".to_owned()),
            wire: Some("chat".to_owned()),
            checks: Some(Checks::Custom(vec!["make".to_owned()])),
            ..Asked::default()
        };
        Before { model: "custom/tiny".to_owned(), mode: Mode::Edit, asked }
    }

    #[test]
    fn flags_stand_above_what_the_session_had() {
        let was = was();
        let before = Some(&was);
        // What is given; the address, the model and the checks that hold then.
        let custom = |check: &str| Some(Checks::Custom(vec![check.to_owned()]));
        let cases = [
            (options(None, None, &[], false), Some("http://one"), "tiny", custom("make")),
            (options(Some("openai/gpt-5"), None, &[], false), None, "openai/gpt-5", custom("make")),
            (options(None, Some("http://two"), &["true"], false), Some("http://two"), "tiny", custom("true")),
            (options(None, None, &[], true), Some("http://one"), "tiny", Some(Checks::Off)),
        ];
        for (options, base_url, model, checks) in cases {
            let asked = asked(&options, before).unwrap();
            assert_eq!(asked.base_url.as_deref(), base_url, "{options:?}");
            assert_eq!(asked.checks, checks, "{options:?}");
            let flags = flags(&options, before, &asked);
            let flag = |key: &str| flags.iter().find(|flag| flag.key == key).map(|flag| flag.value.clone());
            assert_eq!(flag("model"), Some(Value::String(model.to_owned())), "{options:?}");
            assert_eq!(flag("base_url"), base_url.map(|url| Value::String(url.to_owned())), "{options:?}");
            assert_eq!(flag("mode"), Some(Value::String("edit".to_owned())), "{options:?}");
        }
    }

    #[test]
    fn an_address_with_a_secret_in_it_is_not_kept() {
        for (url, kept) in [
            ("http://127.0.0.1:8080/v1", true),
            ("https://me:secret@example.com/v1", false),
            ("https://example.com/v1?key=secret", false),
        ] {
            let (base_url, wire) = (Some(url.to_owned()), Some("chat".to_owned()));
            let asked = Asked { base_url, wire, ..Asked::default() };
            assert_eq!(worth_keeping(&asked).base_url.is_some(), kept, "{url}");
            assert_eq!(worth_keeping(&asked).wire.is_some(), kept, "{url}");
        }
    }
}
