//! The forms of output that a configuration can name.

use serde::Deserialize;

/// The form of a CLI's output.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// Text for people: all of it is the message.
    #[default]
    Text,
    /// An object a line.
    JsonLines(Paths),
    /// The Agent Client Protocol, in both directions.
    Acp(AcpOptions),
}

/// Places in the objects of JSON Lines, as JSON pointers (`/a/b`) or with dots (`a.b`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Paths {
    /// A piece of text.
    pub text: Option<String>,
    /// The last message. Without it the last piece of text is the message.
    pub message: Option<String>,
    /// The session's id.
    pub session: Option<String>,
    /// The tokens of the input, so far.
    pub input_tokens: Option<String>,
    /// The tokens of the output, so far.
    pub output_tokens: Option<String>,
    /// US dollars, so far.
    pub cost: Option<String>,
    /// The sentence of an error that ends the run.
    pub error: Option<String>,
}

/// Options of an agent that speaks ACP.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AcpOptions {
    /// The authentication method to ask for before a session; most agents need none.
    pub authentication: Option<String>,
}
