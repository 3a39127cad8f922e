//! The four wire protocols, each a [`Codec`](crate::codec::Codec).
//!
//! `anthropic`, `responses`, `chat` and `gemini` hold one protocol each: the request in its form, and in
//! `stream` the reader of its answer. What they share has a place of its own: `transcript` (the shape that
//! every provider demands of a conversation), `assembly` (blocks and deltas from streamed pieces), `proof`
//! (what a provider wants back unseen), `names` (legal call ids and tool names), `failure` (what an error
//! body means), `effort` (budgets and words), `schema` (the part of JSON Schema that Gemini knows),
//! `host` (what a base URL says about the server behind it) and `json`.
//!
//! A request is encoded with everything that stays the same first and the messages last, from the request
//! alone: a further message changes no earlier byte, so that a provider's prompt cache keeps its worth.

mod anthropic;
mod assembly;
mod chat;
mod effort;
mod failure;
mod gemini;
mod host;
mod json;
mod names;
mod proof;
mod responses;
mod schema;
mod transcript;

#[cfg(test)]
#[path = "../../tests/suite/wire/mod.rs"]
mod tests;

use serde_json::Value;

use crate::codec::Codec;
use crate::{ModelError, ModelRequest, Wire};

/// The server whose form of Chat Completions and Responses is everybody's.
const OPENAI: &str = "https://api.openai.com";

/// The body that a request has in a protocol, for passing a conversation on to other programs. Nothing is sent.
///
/// # Errors
/// [`ModelError::Protocol`] where the conversation can't be said to any provider, such as an empty one.
pub fn request_body(wire: Wire, request: &ModelRequest) -> Result<Value, ModelError> {
    codec(wire, OPENAI).encode(request).map(|encoded| encoded.body)
}

/// The codec of a protocol, for the server at `base_url`: servers that speak the same protocol differ in
/// what they accept (see [`host::Host`]).
pub(crate) fn codec(wire: Wire, base_url: &str) -> Box<dyn Codec> {
    match wire {
        Wire::Anthropic => Box::new(anthropic::Anthropic),
        Wire::Responses => Box::new(responses::Responses::new(base_url)),
        Wire::Chat => Box::new(chat::Chat::new(base_url)),
        Wire::Gemini => Box::new(gemini::Gemini),
    }
}
