//! The configuration of the conversation in a terminal.

use std::collections::BTreeMap;

use super::setting::Layer;

/// The values of `conversation.theme`.
pub(super) const THEME_NAMES: &[&str] = &["auto", "dark", "light", "none"];
/// The values of `conversation.links`.
pub(super) const LINK_MODE_NAMES: &[&str] = &["auto", "always", "never"];
/// The values of `conversation.notify`.
pub(super) const NOTIFY_MODE_NAMES: &[&str] = &["off", "bell", "message"];

/// The look and the keys of the conversation, which are the user's alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversationConfig {
    /// True to write lines and never to draw a row again.
    pub is_plain: bool,
    /// `auto`, `dark`, `light` or `none`.
    pub theme: Option<String>,
    /// `off`, `bell` or `message`.
    pub notify: Option<String>,
    /// `auto`, `always` or `never`.
    pub links: Option<String>,
    /// The command whose output ends the status line.
    pub status_command: Option<String>,
    /// True if the composer has the keys of vi.
    pub has_vi_keys: bool,
    /// Keys by the name of their action.
    pub keys: BTreeMap<String, String>,
}

impl ConversationConfig {
    /// Converts the settings beneath `conversation`.
    pub(super) fn from_settings(settings: &Layer) -> Self {
        let mut config = Self::default();
        for (path, setting) in settings {
            let [first, rest @ ..] = path.as_slice() else { continue };
            if first != "conversation" {
                continue;
            }
            let words: Vec<&str> = rest.iter().map(String::as_str).collect();
            let text = || setting.value.as_str().map(str::to_owned);
            match words.as_slice() {
                ["plain"] => config.is_plain = setting.value.as_bool().unwrap_or_default(),
                ["theme"] => config.theme = text(),
                ["notify"] => config.notify = text(),
                ["links"] => config.links = text(),
                ["status_command"] => config.status_command = text(),
                ["vi"] => config.has_vi_keys = setting.value.as_bool().unwrap_or_default(),
                ["keys", action] => {
                    config.keys.extend(text().map(|key| ((*action).to_owned(), key)));
                }
                _ => {}
            }
        }
        config
    }
}
