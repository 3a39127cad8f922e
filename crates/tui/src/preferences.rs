//! The person's own settings of the conversation: the user's and the administrator's, never a
//! project's.

use std::path::Path;

use journeyman_host::ADMIN_CONFIG;
use journeyman_host::config::{ConversationConfig, Environment, load_without_project};

use crate::hyperlinks::LinkChoice;
use crate::keymap::Keymap;
use crate::notifier::Notifier;
use crate::theme::ThemeChoice;

/// The settings.
#[derive(Debug, Default)]
pub(crate) struct Preferences {
    /// The keys in force.
    pub(crate) keymap: Keymap,
    /// The notices for a person who is elsewhere.
    pub(crate) attention: Notifier,
    /// The colours that are wanted.
    pub(crate) theme: ThemeChoice,
    /// The terminals that get links.
    pub(crate) links: LinkChoice,
    /// The command that adds to the status line.
    pub(crate) status_command: Option<String>,
    /// True if the composer has the keys of vi.
    pub(crate) has_vi_keys: bool,
    /// True to write lines and draw nothing.
    pub(crate) is_plain: bool,
    /// Wrong settings, for the person.
    pub(crate) problems: Vec<String>,
}

impl Preferences {
    /// Loads the settings. A configuration that can't be read is reported when a session is opened.
    #[must_use]
    pub(crate) fn load(environment: &Environment) -> Self {
        let loaded = load_without_project(environment, Some(Path::new(ADMIN_CONFIG)));
        loaded.map(|config| Self::from_config(config.conversation)).unwrap_or_default()
    }

    fn from_config(config: ConversationConfig) -> Self {
        let (keymap, problems) = Keymap::new(&config.keys);
        Self {
            keymap,
            attention: Notifier::from_setting(config.notify.as_deref()),
            theme: config.theme.as_deref().and_then(ThemeChoice::parse).unwrap_or_default(),
            links: config.links.as_deref().and_then(LinkChoice::parse).unwrap_or_default(),
            status_command: config.status_command,
            has_vi_keys: config.has_vi_keys,
            is_plain: config.is_plain,
            problems,
        }
    }
}
