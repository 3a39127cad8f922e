//! The output formats that a configuration can choose.

use serde::Deserialize;

/// The format of a CLI's output.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CliOutputFormat {
    /// Plain text, all of which is the message.
    #[default]
    Text,
    /// One JSON object a line.
    JsonLines(JsonPaths),
    /// The Agent Client Protocol, in both directions.
    Acp(AcpOptions),
}

/// The fields in the objects of JSON Lines, as JSON pointers (`/a/b`) or with dots (`a.b`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JsonPaths {
    /// A piece of the message's text.
    pub text: Option<String>,
    /// The last message. Without this field the last piece of text is the message.
    pub message: Option<String>,
    /// The session's id.
    pub session: Option<String>,
    /// The input tokens so far.
    pub input_tokens: Option<String>,
    /// The output tokens so far.
    pub output_tokens: Option<String>,
    /// The cost so far, in US dollars.
    pub cost: Option<String>,
    /// The message of an error that ends the run.
    pub error: Option<String>,
}

/// Options of an agent that speaks ACP.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AcpOptions {
    /// The authentication method to request before a session; most agents need none.
    pub authentication: Option<String>,
}
