//! Requests to a model, independent of the provider.

use std::sync::Arc;

use journeyman_protocol::{Message, Tokens, ToolSpec};
use serde::{Deserialize, Serialize};

/// A request: everything that the model sees, independent of the provider.
///
/// The parts that stay the same from turn to turn come first (`tools`, `system`, older messages),
/// so that a provider's prompt cache can keep them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelRequest {
    /// The provider's name of the model. If empty, the model for which the [`Model`](crate::Model)
    /// was created is used.
    pub model: String,
    /// The system prompt, in order.
    pub system: Vec<SystemPart>,
    /// The conversation. Every tool call has exactly one result.
    pub messages: Vec<Message>,
    /// The tools that the model may call; empty for a model that works with text only.
    pub tools: Arc<[ToolSpec]>,
    /// Maximum length of the reply, including thinking. `None` leaves it to the provider, or to the
    /// codec's default if the protocol requires a number.
    pub max_output: Option<Tokens>,
    /// Sampling temperature; `None` sends none, as some thinking models require.
    pub temperature: Option<f32>,
    /// Nucleus sampling; `None` sends none.
    pub top_p: Option<f32>,
    /// The amount of thinking before the reply; `None` leaves it to the model.
    pub thinking: Option<Thinking>,
    /// A stable key of the session, sent to providers that route their cache by such a key.
    pub session: Option<String>,
}

/// A part of the system prompt. Sessions store the parts, so that a restart sends the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SystemPart {
    /// The text.
    pub text: String,
    /// True if the provider should cache the request up to and including this part.
    pub cache: bool,
}

impl SystemPart {
    /// Creates a part that ends a cached prefix.
    #[must_use]
    pub fn cached(text: impl Into<String>) -> Self {
        Self { text: text.into(), cache: true }
    }
}

/// The amount of thinking. A codec converts one form into the other if its protocol has only that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// Maximum number of thinking tokens.
    Budget(u32),
    /// A relative effort.
    Effort(Effort),
}

/// A relative effort of thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// Low effort.
    Low,
    /// Medium effort.
    Medium,
    /// High effort.
    High,
}
