//! Configuration: built-in < user < project < environment < flags, with the admin's file above all
//! for what it forbids.
//!
//! Every key is a row of [`KEYS`]: its kind, what it means, and what a project may do with it. A
//! layer is checked against the table before it is merged, so an unknown key, a value of the wrong
//! kind or a project that widens a permission is an error that names the file and the line.
//! [`Config`] is the typed result, and [`LoadedConfig::settings`] has the source of each value.
//!
//! [`load_policy`] reads the rules, which are in files beside these.

mod clis;
mod command_tools;
mod container;
mod conversation;
mod duration;
mod environment;
mod error;
mod files;
mod hooks;
mod key;
mod keys;
mod layers;
mod policy;
mod setting;
mod trust;
mod typed_config;

pub use container::{ContainerConfig, ProjectImage};
pub use conversation::ConversationConfig;
pub use duration::parse_duration;
pub use environment::Environment;
pub use error::ConfigError;
pub use files::{MAX_CONFIG_BYTES, config_files};
pub use key::{Key, KeyKind, ProjectPermission};
pub use keys::KEYS;
pub use layers::{Flag, LoadedConfig, load_config, load_without_project};
pub use policy::{
    LoadedPolicy, PolicyFile, insert_config_line, load_policy, save_project_rules, save_user_rules,
};
pub use setting::{Layer, Setting, SettingSource, format_key, format_value};
pub use trust::{ProjectTrust, TrustStore};
pub use typed_config::{
    Config, DelegateConfig, LimitsConfig, PriceConfig, ProviderConfig, VectorsConfig, WebConfig,
};
