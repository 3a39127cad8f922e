//! Configuration: built-in < user < project < environment < flags, with the admin's file above all
//! for what it forbids.
//!
//! Every key is a row of [`KEYS`]: its kind, what it means, and what a project may do with it. A
//! layer is checked against the table before it is merged, so an unknown key, a value of the wrong
//! kind or a project that widens a permission is an error that names the file and the line.
//! [`Config`] is the typed result, and [`Loaded::settings`] has the source of each value.
//!
//! [`load_policy`] reads the rules, which are in files beside these.

mod container;
mod environment;
mod error;
mod hooks;
mod keys;
mod layers;
mod policy;
mod trust;
mod typed;

pub use container::{ContainerConfig, ProjectImage};
pub use environment::Environment;
pub use error::ConfigError;
pub use keys::{KEYS, Key, Kind, ProjectMay};
pub use layers::{Flag, Layer, Loaded, Setting, Source, load, load_own};
pub use policy::{LoadedPolicy, PolicyFile, keep_rules, load_policy};
pub use trust::{TrustStore, Trusted};
/// Parses `90s`, `1.5h` or a number of seconds; more than nothing and at most a year.
#[must_use]
pub fn parse_duration(text: &str) -> Option<std::time::Duration> {
    layers::parse_duration(&toml::Value::String(text.to_owned()))
}

pub use typed::{Config, PriceConfig, ProviderConfig, VectorsConfig};

/// Maximum size of a configuration file, in bytes. Real ones have a few kilobytes.
pub const MAX_CONFIG_BYTES: u64 = 1024 * 1024;
