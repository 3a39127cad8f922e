//! The names of the wire protocols.

use std::fmt;
use std::str::FromStr;

/// The four wire protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wire {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Responses.
    Responses,
    /// OpenAI Chat Completions, which most other servers speak.
    Chat,
    /// Gemini `streamGenerateContent`.
    Gemini,
}

impl Wire {
    /// All protocols.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::Responses, Self::Chat, Self::Gemini];

    /// Returns the protocol's name as people type it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Responses => "responses",
            Self::Chat => "chat",
            Self::Gemini => "gemini",
        }
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for a string that is not a [`Wire`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a wire protocol; they are anthropic, responses, chat, gemini")]
pub struct ParseWireError {
    /// The string as given.
    pub given: String,
}

impl FromStr for Wire {
    type Err = ParseWireError;

    fn from_str(given: &str) -> Result<Self, ParseWireError> {
        Self::ALL
            .into_iter()
            .find(|wire| wire.name() == given)
            .ok_or_else(|| ParseWireError { given: given.to_owned() })
    }
}
