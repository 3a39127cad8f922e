//! Opaque values that a provider requires back: signatures, encrypted thinking, reasoning details.
//!
//! A session may change its model, and a value of one protocol is an error in another. So each
//! value is stored with a prefix for the protocol that produced it, and only that protocol's codec
//! reads it.

/// The protocol and the kind of an opaque value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpaqueValueKind {
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

impl OpaqueValueKind {
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

    /// Adds the prefix of this kind to a value.
    pub(super) fn add_prefix(self, signature: &str) -> String {
        format!("{}{signature}", self.prefix())
    }

    /// Returns the value without its prefix, if it is of this kind.
    pub(super) fn strip_prefix(self, sealed: Option<&str>) -> Option<&str> {
        sealed?.strip_prefix(self.prefix())
    }
}
