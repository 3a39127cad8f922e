//! The limits that a server returns.

use journeyman_protocol::{LimitSource, ModelLimits, Tokens};

/// The limits that a server returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// The context window.
    pub window: Tokens,
    /// Maximum output of one reply, if the server limits it.
    pub max_output: Option<Tokens>,
    /// False if the server chooses the window only when it loads the model, so that its answer may
    /// differ after the first reply.
    pub is_final: bool,
}

impl ServerLimits {
    /// Creates the limits of a model that the server has loaded with this window.
    pub(super) fn of_loaded_model(window: u64) -> Self {
        Self { window: Tokens(window), max_output: None, is_final: true }
    }

    /// Creates the limits of a model that the server has not loaded yet.
    pub(super) fn of_unloaded_model(window: u64) -> Self {
        Self { is_final: false, ..Self::of_loaded_model(window) }
    }

    /// Applies these limits to `limits`, if their source allows a correction by the server.
    pub fn apply_to(&self, limits: &mut ModelLimits) {
        if limits.source.is_provisional() {
            limits.set_window(self.window, LimitSource::Server);
            if let Some(most) = self.max_output {
                limits.max_output = Some(most.min(limits.window));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_corrects_only_what_is_open_and_believable() {
        let told = ServerLimits { max_output: Some(Tokens(9_000)), ..ServerLimits::of_loaded_model(40_000) };
        let mut limits = ModelLimits::conservative_default(true);
        told.apply_to(&mut limits);
        assert_eq!((limits.window, limits.max_output), (Tokens(40_000), Some(Tokens(9_000))));
        assert_eq!(limits.source, LimitSource::Server);
        for source in [LimitSource::Configured, LimitSource::Table, LimitSource::Refusal] {
            let mut limits = ModelLimits { source, ..ModelLimits::conservative_default(true) };
            told.apply_to(&mut limits);
            assert_eq!(limits, ModelLimits { source, ..ModelLimits::conservative_default(true) });
        }
    }
}
