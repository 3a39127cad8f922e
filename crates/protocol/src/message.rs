//! Messages and their content blocks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::CallId;

/// The author of a message. Tool results are sent in user messages, as every provider requires.
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
    /// The message's author.
    pub role: Role,
    /// The message's blocks, in order.
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
    /// The model's thinking, kept because some providers require it back unchanged.
    Thinking {
        /// The text that may be shown; empty if the provider hides it.
        text: String,
        /// The provider's opaque signature or encrypted text, to be sent back unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// An image, from a person or a tool.
    Image(ImageData),
    /// A tool call that the model requests.
    ToolUse(ToolUse),
    /// The result of a tool call. Each [`ToolUse`] has exactly one.
    ToolResult {
        /// The id of the call.
        id: CallId,
        /// The result's parts, in order.
        content: Vec<ResultPart>,
        /// True if the call failed, was denied or was interrupted.
        #[serde(default)]
        is_error: bool,
    },
}

/// A model's request to run a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolUse {
    /// The call's id; its result carries the same id.
    pub id: CallId,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments. If the model's JSON did not parse, this is a [`Value::String`] with the raw
    /// text and `malformed` says why; it is never silently `{}`.
    pub input: Value,
    /// The parse error, if the arguments are not valid JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub malformed: Option<String>,
    /// The provider's opaque signature that must be sent back with this call (Gemini's thought
    /// signature).
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

/// An image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageData {
    /// The image's media type, such as `image/png`.
    pub media_type: String,
    /// The image's bytes in base 64.
    pub data: String,
}

/// The description of a tool that a model gets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolSpec {
    /// The name by which the model calls the tool.
    pub name: String,
    /// The purpose of the tool and when to use it.
    pub description: String,
    /// JSON Schema of the input, which is always an object.
    pub input_schema: Value,
}

impl Message {
    /// Creates a user message of one text block.
    #[must_use]
    pub fn user_text(text: impl Into<String>) -> Self {
        Self { role: Role::User, content: vec![Block::text(text)] }
    }

    /// Creates an assistant message of one text block.
    #[must_use]
    pub fn assistant_text(text: impl Into<String>) -> Self {
        Self { role: Role::Assistant, content: vec![Block::text(text)] }
    }

    /// Returns the message's text blocks, joined by line breaks.
    #[must_use]
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self
            .content
            .iter()
            .filter_map(|block| if let Block::Text { text } = block { Some(text.as_str()) } else { None })
            .collect();
        texts.join("\n")
    }

    /// Returns the tool calls that the message requests, in order.
    pub fn tool_uses(&self) -> impl Iterator<Item = &ToolUse> {
        self.content
            .iter()
            .filter_map(|block| if let Block::ToolUse(call) = block { Some(call) } else { None })
    }
}

impl Block {
    /// Creates a text block.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Creates a tool result of one text part.
    #[must_use]
    pub fn result(id: CallId, text: impl Into<String>, is_error: bool) -> Self {
        Self::ToolResult { id, content: vec![ResultPart::Text { text: text.into() }], is_error }
    }
}
