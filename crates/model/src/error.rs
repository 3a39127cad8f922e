//! What can go wrong between a request and its reply.

use std::fmt;
use std::time::Duration;

use journeyman_protocol::is_invisible;

/// The most of a text from outside that an error holds, in bytes: enough for every provider's message,
/// little enough to be shown whole.
pub(crate) const MAX_MESSAGE: usize = 4 * 1024;

/// Which of the four time limits ran out. Their values are in [`Deadlines`](crate::Deadlines).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Deadline {
    /// Name look-up, TCP and TLS.
    Connect,
    /// From the request to the first byte of the reply's body.
    FirstByte,
    /// Between two pieces of the body.
    Idle,
    /// One attempt, from beginning to end.
    Total,
}

impl fmt::Display for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "a connection",
            Self::FirstByte => "the first byte",
            Self::Idle => "the next byte",
            Self::Total => "the whole reply",
        })
    }
}

/// Why a request has no reply. No variant ever holds a key: texts from outside are searched for it first.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The provider wants a key and none is set.
    #[error("no key for {provider}: {}", no_key_advice(.variables))]
    NoKey {
        /// The provider.
        provider: String,
        /// The environment variables that may hold its key, first set wins.
        variables: Vec<String>,
    },
    /// The provider refused the key (401, 403).
    #[error("the provider refused the key or its rights: {message}{}", with_advice(.advice))]
    Unauthorized {
        /// The provider's message.
        message: String,
        /// What to do about it; a codec leaves it empty and the client fills it in.
        advice: String,
    },
    /// The provider doesn't have that model (404, or 400 that says so).
    #[error("the provider doesn't know this model: {provider_message}{}", available_list(.available))]
    UnknownModel {
        /// The provider's message.
        provider_message: String,
        /// Names that the provider does have, the nearest first, a few; empty where it couldn't be asked.
        available: Vec<String>,
    },
    /// Too many requests or tokens (429).
    #[error("the provider's rate limit is reached: {message}")]
    RateLimited {
        /// The provider's message.
        message: String,
    },
    /// The account has no credit or quota left (402, or 429 that says so); waiting doesn't help.
    #[error("the account's quota or credit is used up: {message}")]
    QuotaExceeded {
        /// The provider's message.
        message: String,
    },
    /// The provider has too much to do (503, 529, or a mid-stream event that says so).
    #[error("the provider is overloaded: {message}")]
    Overloaded {
        /// The provider's message.
        message: String,
    },
    /// The provider asks to wait longer than the retry policy allows.
    #[error("{message}; the provider asks to wait {} s, longer than the {} s this client waits at most; try again later", .asked.as_secs(), .longest.as_secs())]
    RetryAfterTooLong {
        /// What the provider asked for.
        asked: Duration,
        /// What [`RetryPolicy`](crate::RetryPolicy) allows.
        longest: Duration,
        /// The error that would have been retried.
        message: String,
    },
    /// A time limit ran out.
    #[error("timed out waiting for {which} after {} from {url}", seconds(*.after))]
    Timeout {
        /// Which limit.
        which: Deadline,
        /// Its value.
        after: Duration,
        /// Whom it waited for, without any secret.
        url: String,
    },
    /// The connection couldn't be made, or broke.
    #[error("no connection to {url}: {reason}{}", with_advice(.advice))]
    Connection {
        /// Whom to, without any secret.
        url: String,
        /// What the system said.
        reason: String,
        /// What to do about it, if something is known to help.
        advice: String,
        /// Whether trying again can't help: nothing listens on this machine, or the certificate isn't trusted.
        permanent: bool,
    },
    /// The stream ended before the reply was whole.
    #[error("the stream from {url} ended early: {reason}")]
    EndedEarly {
        /// Whom from, without any secret.
        url: String,
        /// What the system said, or what was missing.
        reason: String,
    },
    /// Any other status that isn't success.
    #[error("the provider answered with status {status}: {message}")]
    Http {
        /// The status.
        status: u16,
        /// The provider's message, bounded.
        message: String,
    },
    /// The provider reported an error inside the stream.
    #[error("the provider broke off with an error: {message}")]
    Stream {
        /// The provider's message.
        message: String,
        /// Whether the provider's error type is one that passes (server errors).
        retryable: bool,
    },
    /// The provider didn't keep to its protocol, or the request can't be said in it.
    #[error("not what the protocol allows: {0}")]
    Protocol(String),
    /// The request is longer than the model's context.
    #[error("the request is longer than the model's context: {message}")]
    ContextTooLong {
        /// The provider's message.
        message: String,
    },
    /// The caller's token was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The request departs from the recording.
    #[error("the request departs from the recording at exchange {exchange}:\n{diff}")]
    ReplayMismatch {
        /// Which exchange of the cassette, from 1.
        exchange: usize,
        /// The first differing places with old and new values, bounded.
        diff: String,
    },
    /// The cassette has no further exchange.
    #[error("the recording has {exchanges} exchanges and this is request {}; record it again", .exchanges.saturating_add(1))]
    ReplayExhausted {
        /// How many it has.
        exchanges: usize,
    },
    /// A cassette can't be read or written.
    #[error("cassette {path}: {reason}")]
    Cassette {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The model can't call tools.
    #[error(
        "this model doesn't call tools: {message}; set `tools = false` for its provider to work through text edits"
    )]
    ToolsUnsupported {
        /// The provider's message.
        message: String,
    },
    /// A script can't be read, ran out, or met a request it didn't expect.
    #[error("script: {0}")]
    Script(String),
    /// The endpoint can't be used as it is configured.
    #[error("the endpoint of {provider} can't be used: {reason}")]
    Endpoint {
        /// The provider.
        provider: String,
        /// What is wrong.
        reason: String,
    },
    /// Every attempt failed.
    #[error("gave up after {attempts} attempts; the last: {last}")]
    GaveUp {
        /// How many there were.
        attempts: u32,
        /// How the last one failed.
        last: Box<ModelError>,
    },
}

impl ModelError {
    /// Whether the same request may do better a little later. Never true of an error that has been
    /// retried already ([`ModelError::GaveUp`]).
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Overloaded { .. }
            | Self::Timeout { .. }
            | Self::EndedEarly { .. } => true,
            Self::Connection { permanent, .. } => !permanent,
            Self::Http { status, .. } => is_retryable_status(*status),
            Self::Stream { retryable, .. } => *retryable,
            _ => false,
        }
    }

    /// Returns this error without the secrets, and with its texts bounded. What nobody sees goes first: it could stand
    /// in the midst of a secret.
    #[must_use]
    pub(crate) fn cleaned(mut self, secrets: &[String]) -> Self {
        if let Some(text) = self.outside_text() {
            *text = visible(text);
            for secret in secrets {
                if text.contains(secret.as_str()) {
                    *text = text.replace(secret.as_str(), "[secret]");
                }
            }
            shorten(text, MAX_MESSAGE);
        }
        self
    }

    /// The text of this error that came from outside, if it holds one.
    fn outside_text(&mut self) -> Option<&mut String> {
        match self {
            Self::Unauthorized { message, .. }
            | Self::RateLimited { message }
            | Self::QuotaExceeded { message }
            | Self::Overloaded { message }
            | Self::RetryAfterTooLong { message, .. }
            | Self::Http { message, .. }
            | Self::Stream { message, .. }
            | Self::ContextTooLong { message }
            | Self::ToolsUnsupported { message } => Some(message),
            Self::UnknownModel { provider_message, .. } => Some(provider_message),
            Self::Connection { reason, .. } | Self::EndedEarly { reason, .. } => Some(reason),
            Self::Protocol(what) => Some(what),
            Self::GaveUp { last, .. } => last.outside_text(),
            Self::NoKey { .. }
            | Self::Timeout { .. }
            | Self::Cancelled
            | Self::ReplayMismatch { .. }
            | Self::ReplayExhausted { .. }
            | Self::Cassette { .. }
            | Self::Script(_)
            | Self::Endpoint { .. } => None,
        }
    }

    /// The error itself: of [`ModelError::GaveUp`] the last one, of any other that one.
    #[must_use]
    pub fn root(&self) -> &Self {
        match self {
            Self::GaveUp { last, .. } => last.root(),
            other => other,
        }
    }
}

/// Whether a status may pass by itself: time-outs, conflicts, rate limits, server errors (529 is
/// Anthropic's «overloaded»). 501 and 505 say that it never will.
#[must_use]
pub(crate) fn is_retryable_status(status: u16) -> bool {
    matches!(status, 408 | 409 | 429) || (500..=599).contains(&status) && !matches!(status, 501 | 505)
}

fn no_key_advice(variables: &[String]) -> String {
    match variables {
        [] => "set one in its config table".to_owned(),
        [first, rest @ ..] => {
            let others: String = rest.iter().map(|name| format!(" (or {name})")).collect();
            format!("set {first}{others}, or use a local model such as ollama/NAME")
        }
    }
}

fn with_advice(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("; {text}") }
}

fn available_list(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; near names: {}", names.join(", ")) }
}

/// Cuts a text to at most `limit` bytes, the mark of the cut included, between characters.
pub(crate) fn shorten(text: &mut String, limit: usize) {
    const MARK: char = '…';
    if text.len() > limit {
        let mut end = limit.saturating_sub(MARK.len_utf8());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push(MARK);
    }
}

/// Returns the text without control sequences and characters that aren't seen.
pub(crate) fn visible(text: &str) -> String {
    let mut characters = text.chars().peekable();
    let mut seen = String::with_capacity(text.len());
    while let Some(character) = characters.next() {
        if character == '\u{1b}' && characters.next_if_eq(&'[').is_some() {
            // The letter that ends the sequence goes, too.
            while characters.next().is_some_and(|parameter| !('@'..='~').contains(&parameter)) {}
        } else if matches!(character, '\n' | '\t') || !(character.is_control() || is_unseen(character)) {
            seen.push(character);
        }
    }
    seen
}

fn is_unseen(character: char) -> bool {
    is_invisible(character)
        || matches!(character, '\u{34f}' | '\u{180b}'..='\u{180f}' | '\u{2028}' | '\u{2029}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{fff9}'..='\u{fffb}' | '\u{e0100}'..='\u{e01ef}')
}

/// Whole seconds as such, anything shorter in milliseconds.
fn seconds(duration: Duration) -> String {
    if duration.subsec_nanos() == 0 {
        format!("{} s", duration.as_secs())
    } else {
        format!("{} ms", duration.as_millis())
    }
}
