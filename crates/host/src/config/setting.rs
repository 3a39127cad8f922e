//! Settings by key, each with its source.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use toml::Value;

/// The source of a value, weakest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingSource {
    /// The program.
    BuiltIn,
    /// The user's file.
    User(PathBuf),
    /// The project's file.
    Project(PathBuf),
    /// An environment variable.
    Variable(String),
    /// A flag.
    Flag(String),
    /// The administrator's file.
    Admin(PathBuf),
}

impl fmt::Display for SettingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built-in"),
            Self::User(path) | Self::Project(path) | Self::Admin(path) => write!(f, "{}", path.display()),
            Self::Variable(name) => write!(f, "${name}"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A value and its source.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The value.
    pub value: Value,
    /// The source of the value.
    pub source: SettingSource,
}

/// Checked values by dotted key. A dot inside a name (`gpt-4.1`) stays within its part of the key.
pub type Layer = BTreeMap<Vec<String>, Setting>;

/// Formats a key with its parts quoted as TOML does.
#[must_use]
pub fn format_key(key: &[String]) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let quoted = key.iter().map(|part| match !part.is_empty() && part.chars().all(is_bare) {
        true => part.clone(),
        false => Value::String(part.clone()).to_string(),
    });
    quoted.collect::<Vec<_>>().join(".")
}

/// Formats the value of a key as people may see it: headers may have secrets in them.
#[must_use]
pub fn format_value(key: &[String], setting: &Setting) -> String {
    if key.iter().any(|part| part == "headers") { "[hidden]".to_owned() } else { setting.value.to_string() }
}

/// Splits a dotted key.
pub(super) fn split_key(name: &str) -> Vec<String> {
    name.split('.').map(str::to_owned).collect()
}
