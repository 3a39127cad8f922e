//! The seam between a wire protocol and the transport beneath it.
//!
//! A codec is pure: it turns a [`ModelRequest`] into a path and a JSON body, and the events of the answer
//! into [`Delta`]s and one [`Reply`]. It opens nothing, waits for nothing and holds no secret.

use serde_json::Value;

use crate::sse::SseEvent;
use crate::{Delta, ModelError, ModelRequest, Reply, Secret};

/// One wire protocol.
pub(crate) trait Codec: Send + Sync {
    /// The request in the protocol's own form. Equal requests give byte-equal bodies.
    fn encode(&self, request: &ModelRequest) -> Result<Encoded, ModelError>;

    /// The headers that carry the key.
    fn auth(&self, key: &Secret) -> Vec<(&'static str, String)>;

    /// The headers that every request carries, beside `content-type: application/json`.
    fn fixed_headers(&self) -> Vec<(&'static str, String)>;

    /// A decoder for one answer.
    fn decoder(&self) -> Box<dyn Decoder>;

    /// What a status that isn't success means, from the provider's error body (at most 4 KiB of it).
    fn error(&self, status: u16, body: &[u8]) -> ModelError;

    /// The path of the list of models, appended to the base URL.
    fn models_path(&self) -> &'static str;

    /// The names in the answer to a GET of [`Codec::models_path`], as a request would give them; empty
    /// where the answer isn't one.
    fn model_names(&self, body: &Value) -> Vec<String>;
}

/// A request in a protocol's form.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Encoded {
    /// Appended to the base URL, with its leading slash, such as `/v1/messages`. May carry a query, never a key.
    pub(crate) path: String,
    /// The body.
    pub(crate) body: Value,
}

/// Reads one answer.
pub(crate) trait Decoder: Send {
    /// Takes the next event. An error event of the provider is an `Err`.
    fn event(&mut self, event: &SseEvent) -> Result<Vec<Delta>, ModelError>;

    /// Whether the protocol's own end has been seen. An answer that ends before is broken.
    fn is_complete(&self) -> bool;

    /// The whole reply; called once, at the end of a complete answer.
    fn finish(&mut self) -> Result<Reply, ModelError>;
}
