//! `jm config`.

use std::path::{Path, PathBuf};

use journeyman_host::config::{Environment, KEYS, ProjectMay, Trusted, load};
use journeyman_host::state::project_root;
use journeyman_host::{ADMIN_CONFIG, HostError};
use toml::Value;

use crate::args::ConfigArgs;
use crate::color;
use crate::stdout::say;

pub(crate) fn print(environment: &Environment, args: &ConfigArgs) -> Result<u8, HostError> {
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
    let root = project_root(environment, args.directory.as_deref())?;
    let loaded = load(environment, &root, &[], Trusted::ThisRun, Some(Path::new(ADMIN_CONFIG)))?;
    let places: Vec<PathBuf> = [
        environment.config_dir().map(|dir| dir.join("config.toml")),
        Some(root.join(".journeyman/config.toml")),
        Some(PathBuf::from(ADMIN_CONFIG)),
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

/// Quotes a part of a dotted key as TOML does.
fn quoted(part: &str) -> String {
    let bare = !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare { part.to_owned() } else { Value::String(part.to_owned()).to_string() }
}
