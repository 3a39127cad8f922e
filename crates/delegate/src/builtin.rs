//! The adapters of the CLIs that need no configuration.

use crate::{Adapter, Claude, Codex, Gemini, Opencode};

/// Returns the built-in adapters, in the order in which `auto` prefers them.
#[must_use]
pub fn builtin_adapters() -> Vec<Box<dyn Adapter>> {
    vec![Box::new(Claude), Box::new(Codex), Box::new(Gemini), Box::new(Opencode)]
}

/// Returns the built-in adapter with this name.
#[must_use]
pub fn builtin_adapter(name: &str) -> Option<Box<dyn Adapter>> {
    builtin_adapters().into_iter().find(|adapter| adapter.name() == name)
}
