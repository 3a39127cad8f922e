//! Messages and their content blocks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::CallId;

/// Who a message is from. Tool results travel in a user message, as every provider wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person, or the session in their name (tool results, feedback).
    User,
    /// The model.
    Assistant,
}

/// One message of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Who it is from.
    pub role: Role,
    /// Its blocks, in order.
    pub content: Vec<Block>,
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// The model's thinking, kept because some providers want it back unchanged.
    Thinking {
        /// What may be shown; empty where the provider hides it.
        text: String,
        /// The provider's opaque proof or encrypted form, to be sent back as it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// An image, from a person or a tool.
    Image(ImageData),
    /// The model asks for a tool.
    ToolUse(ToolUse),
    /// What the tool answered. Exactly one for each [`ToolUse`].
    ToolResult {
        /// The call it answers.
        id: CallId,
        /// Its parts, in order.
        content: Vec<ResultPart>,
        /// Whether the call failed, was denied or was cut off.
        #[serde(default)]
        is_error: bool,
    },
}

/// A model's request to run a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolUse {
    /// Names the call; its result carries the same id.
    pub id: CallId,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments. Where the model's JSON didn't parse this is a [`Value::String`] holding the raw
    /// text and `malformed` says why: never silently `{}`.
    pub input: Value,
    /// Why the arguments are not valid JSON, if they aren't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub malformed: Option<String>,
    /// A provider's opaque proof that must be sent back with this call (Gemini's thought signature).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// A piece of a tool's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ResultPart {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image(ImageData),
}

/// An image's bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageData {
    /// Its media type, such as `image/png`.
    pub media_type: String,
    /// Its bytes in base 64.
    pub data: String,
}

/// What a model is told of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolSpec {
    /// The name the model calls it by.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of its input: always an object.
    pub input_schema: Value,
}

impl Message {
    /// A user message of one text block.
    #[must_use]
    pub fn user_text(text: impl Into<String>) -> Self {
        Self { role: Role::User, content: vec![Block::text(text)] }
    }

    /// An assistant message of one text block.
    #[must_use]
    pub fn assistant_text(text: impl Into<String>) -> Self {
        Self { role: Role::Assistant, content: vec![Block::text(text)] }
    }

    /// The message's text blocks, joined by line breaks.
    #[must_use]
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self
            .content
            .iter()
            .filter_map(|block| if let Block::Text { text } = block { Some(text.as_str()) } else { None })
            .collect();
        texts.join("\n")
    }

    /// The calls it asks for, in order.
    pub fn tool_uses(&self) -> impl Iterator<Item = &ToolUse> {
        self.content
            .iter()
            .filter_map(|block| if let Block::ToolUse(call) = block { Some(call) } else { None })
    }
}

impl Block {
    /// A text block.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// A tool result of one text part.
    #[must_use]
    pub fn result(id: CallId, text: impl Into<String>, is_error: bool) -> Self {
        Self::ToolResult { id, content: vec![ResultPart::Text { text: text.into() }], is_error }
    }
}
