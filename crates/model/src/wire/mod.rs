//! The four wire protocols, each a [`Codec`](crate::codec::Codec).
//!
//! `anthropic`, `responses`, `chat` and `gemini` each hold one protocol: the encoding of requests,
//! and in `stream` the decoder of responses. They share `transcript` (the shape that every provider
//! requires of a conversation), `assembly` (messages and deltas from streamed pieces), `signature`
//! (opaque values that a provider requires back), `names` (legal call ids and tool names),
//! `failure` (error bodies), `effort` (thinking budgets and efforts), `schema` (the part of JSON
//! Schema that Gemini supports), `host` (differences between servers) and `json`.
//!
//! A request is encoded with the stable parts first and the messages last, and depends on nothing
//! but its own content: another message changes no earlier byte, so that a provider's prompt cache
//! stays valid.

mod anthropic;
mod chat;
mod effort;
mod gemini;
mod gemini_schema;
mod json;
mod legal_names;
mod message_builder;
mod opaque_value;
mod openai_server;
mod provider_error;
mod responses;
mod transcript;

#[cfg(test)]
#[path = "../../tests/suite/wire/mod.rs"]
mod tests;

use serde_json::Value;

use crate::codec::Codec;
use crate::{ModelError, ModelRequest, Wire};

/// The server whose form of Chat Completions and Responses all others accept.
const OPENAI_BASE_URL: &str = "https://api.openai.com";

/// Returns the body of a request in a protocol, for passing a conversation to other programs.
/// Nothing is sent.
///
/// # Errors
/// [`ModelError::Protocol`] if no provider accepts the conversation, such as an empty one.
pub fn request_body(wire: Wire, request: &ModelRequest) -> Result<Value, ModelError> {
    codec(wire, OPENAI_BASE_URL).encode(request).map(|encoded| encoded.body)
}

/// Creates the codec of a protocol for the server at `base_url`: servers that speak the same
/// protocol differ in what they accept (see [`host::Host`]).
pub(crate) fn codec(wire: Wire, base_url: &str) -> Box<dyn Codec> {
    match wire {
        Wire::Anthropic => Box::new(anthropic::AnthropicCodec),
        Wire::Responses => Box::new(responses::ResponsesCodec::new(base_url)),
        Wire::Chat => Box::new(chat::ChatCodec::new(base_url)),
        Wire::Gemini => Box::new(gemini::GeminiCodec),
    }
}
