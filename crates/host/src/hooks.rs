//! Hooks of a configuration.

use std::path::Path;

use journeyman_agent::hooks::HooksBuilder;
use journeyman_model::builtin_providers;

use crate::config::{Config, Environment};
use crate::models::{CUSTOM_KEY_VARIABLE, all_providers};

/// Adds the commands of a configuration for the project at `root` to `hooks`. They get the user's
/// environment without every provider's keys and the variables that the user lists as secret.
/// Variables that a project lists are redacted, but no hook goes without them.
#[must_use]
pub fn add_configured_hooks(
    hooks: HooksBuilder,
    config: &Config,
    environment: &Environment,
    root: &Path,
) -> HooksBuilder {
    // Includes the keys of a provider that has been moved to another address.
    let keys =
        builtin_providers().into_iter().chain(all_providers(config)).flat_map(|provider| provider.key_env);
    let secret = keys.chain(config.secrets.iter().cloned()).chain([CUSTOM_KEY_VARIABLE.to_owned()]);
    hooks
        .commands(config.hooks.iter().cloned())
        .variables(environment.vars.clone())
        .hide_variables(secret)
        .pin_scripts(root)
}
