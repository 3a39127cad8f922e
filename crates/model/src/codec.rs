//! The interface between a wire protocol and the transport.
//!
//! A codec is pure: it converts a [`ModelRequest`] into a path and a JSON body, and the events of
//! the response into [`Delta`]s and one [`Reply`]. It opens no connection, waits for nothing and
//! holds no secret.

use journeyman_protocol::Usage;
use serde_json::Value;

use crate::sse::SseEvent;
use crate::{Delta, ModelError, ModelRequest, Reply, Secret};

/// A wire protocol.
pub(crate) trait Codec: Send + Sync {
    /// Encodes a request. Equal requests have byte-equal bodies.
    fn encode(&self, request: &ModelRequest) -> Result<EncodedRequest, ModelError>;

    /// Returns the headers that carry the key.
    fn auth_headers(&self, key: &Secret) -> Vec<(&'static str, String)>;

    /// Returns the headers of every request, apart from `content-type: application/json`.
    fn fixed_headers(&self) -> Vec<(&'static str, String)>;

    /// Creates a decoder for one response.
    fn decoder(&self) -> Box<dyn Decoder>;

    /// Returns the error for a response without success, from the provider's error body.
    fn parse_error(&self, status: u16, body: &[u8]) -> ModelError;

    /// Returns the path of the list of models, appended to the base URL.
    fn models_path(&self) -> &'static str;

    /// Returns the names in the response to a GET of [`Codec::models_path`], in the form that a
    /// request uses; empty if the body is not a list of models.
    fn parse_model_names(&self, body: &Value) -> Vec<String>;
}

/// A request encoded in a protocol.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EncodedRequest {
    /// The path to append to the base URL, with its leading slash, such as `/v1/messages`. May have
    /// a query, never a key.
    pub(crate) path: String,
    /// The body.
    pub(crate) body: Value,
}

/// Decodes one response.
pub(crate) trait Decoder: Send {
    /// Handles the next event. Returns an error for an error event of the provider.
    fn handle_event(&mut self, event: &SseEvent) -> Result<Vec<Delta>, ModelError>;

    /// Returns true if the protocol's own end was received. A response that ends before is broken.
    fn is_complete(&self) -> bool;

    /// Returns the usage that the provider has reported so far.
    fn usage(&self) -> Usage;

    /// Returns true if the content may go on after the protocol's own end, so that silence doesn't
    /// end the response.
    fn may_go_on(&self) -> bool {
        false
    }

    /// Ends the blocks that are still open, at the end of a complete response.
    fn end_blocks(&mut self) -> Result<Vec<Delta>, ModelError> {
        Ok(Vec::new())
    }

    /// Returns the complete reply; called once, at the end of a complete response.
    fn finish(&mut self) -> Result<Reply, ModelError>;
}
