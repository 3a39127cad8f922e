//! What is asked of a model.

use journeyman_protocol::{Message, Tokens, ToolSpec};
use serde::{Deserialize, Serialize};

/// One request: everything the model sees, in no provider's shape.
///
/// The parts that stay the same from turn to turn come first (`tools`, `system`, older messages), so
/// that a provider's prompt cache can keep them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelRequest {
    /// The provider's name of the model. Empty means the one that the [`Model`](crate::Model) was made for.
    pub model: String,
    /// The system prompt, in order.
    pub system: Vec<SystemPart>,
    /// The conversation. Every tool call in it has exactly one result.
    pub messages: Vec<Message>,
    /// What the model may call; empty for a model that works through text alone.
    pub tools: Vec<ToolSpec>,
    /// The longest reply, thinking included; `None` leaves it to the provider, or to the codec's own
    /// default where the protocol insists on a number.
    pub max_output: Option<Tokens>,
    /// Sampling temperature; `None` sends none, which some thinking models insist on.
    pub temperature: Option<f32>,
    /// Nucleus sampling; `None` sends none.
    pub top_p: Option<f32>,
    /// How much the model should think before it answers; `None` leaves it to the model.
    pub thinking: Option<Thinking>,
    /// A stable key of the session, sent where a provider routes its cache by one.
    pub session: Option<String>,
}

/// A piece of the system prompt. Sessions write it down, so that a restart begins with the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SystemPart {
    /// The text.
    pub text: String,
    /// Whether everything up to and including this part should be kept in the provider's cache.
    pub cache: bool,
}

impl SystemPart {
    /// A part that ends a cached prefix.
    #[must_use]
    pub fn cached(text: impl Into<String>) -> Self {
        Self { text: text.into(), cache: true }
    }
}

/// How much to think. A codec turns one form into the other where its protocol has only that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// At most so many tokens.
    Budget(u32),
    /// A word instead of a number.
    Effort(Effort),
}

/// How hard to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
}
