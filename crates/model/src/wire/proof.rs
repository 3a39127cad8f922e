//! What a provider wants back unseen: signatures, encrypted thinking, opaque details.
//!
//! A session may change its model, and a proof of one protocol is an error in another. So each is kept with
//! the name of the protocol that gave it, and only that protocol's codec opens it again.

/// Which protocol gave a proof, and of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seal {
    /// Anthropic: the signature of a thinking block.
    Anthropic,
    /// Anthropic: the data of a redacted thinking block.
    AnthropicRedacted,
    /// Responses: a reasoning item, as JSON.
    Responses,
    /// Responses: the phase of the message before it.
    ResponsesPhase,
    /// Chat Completions: `reasoning_details` of a message, or `extra_content` of a call, as JSON.
    Chat,
    /// Gemini: a thought signature.
    Gemini,
}

impl Seal {
    fn prefix(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic:",
            Self::AnthropicRedacted => "anthropic-redacted:",
            Self::Responses => "responses:",
            Self::ResponsesPhase => "responses-phase:",
            Self::Chat => "chat:",
            Self::Gemini => "gemini:",
        }
    }

    /// The proof under this seal.
    pub(super) fn close(self, proof: &str) -> String {
        format!("{}{proof}", self.prefix())
    }

    /// The proof, if it is under this seal.
    pub(super) fn open(self, sealed: Option<&str>) -> Option<&str> {
        sealed?.strip_prefix(self.prefix())
    }
}
