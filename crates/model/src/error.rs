//! The errors of a request to a model.

use std::fmt;
use std::time::Duration;

use journeyman_protocol::is_invisible_char;

/// Maximum length of an external text in an error: enough for every provider's message, short
/// enough to be shown as a whole.
pub(crate) const MAX_MESSAGE_BYTES: usize = 4 * 1024;

/// A time limit in [`Deadlines`](crate::Deadlines).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Deadline {
    /// Name look-up, TCP and TLS.
    Connect,
    /// From the request to the first byte of the response's body.
    FirstByte,
    /// Between two chunks of the body.
    Idle,
    /// A whole attempt, from beginning to end.
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

/// The error of a request. No variant holds a key: external texts are redacted first.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// No key is set, and the provider needs one.
    #[error("no key for {provider}: {}", no_key_advice(.variables))]
    NoKey {
        /// The provider.
        provider: String,
        /// The environment variables that may hold the key; the first that is set wins.
        variables: Vec<String>,
    },
    /// The provider refused the key (401, 403).
    #[error("the provider refused the key or its rights: {message}{}", format_advice(.advice.as_deref()))]
    Unauthorized {
        /// The provider's message.
        message: String,
        /// Advice for the user. A codec leaves it `None`, and the client sets it.
        advice: Option<String>,
    },
    /// The provider does not have that model (404, or 400 with such a message).
    #[error("the provider doesn't know this model: {provider_message}{}", format_available_models(.available))]
    UnknownModel {
        /// The provider's message.
        provider_message: String,
        /// Similar names of models that the provider has, the most similar first; empty if the list
        /// was not available.
        available: Vec<String>,
    },
    /// Too many requests or tokens (429).
    #[error("the provider's rate limit is reached: {message}")]
    RateLimited {
        /// The provider's message.
        message: String,
    },
    /// The account has no credit or quota left (402, or 429 with such a message); waiting does not
    /// help.
    #[error("the account's quota or credit is used up: {message}")]
    QuotaExceeded {
        /// The provider's message.
        message: String,
    },
    /// The provider is overloaded (503, 529, or such an event in the stream).
    #[error("the provider is overloaded: {message}")]
    Overloaded {
        /// The provider's message.
        message: String,
    },
    /// The provider requests a longer wait than the retry policy allows.
    #[error("{message}; the provider asks to wait {} s, longer than the {} s this client waits at most; try again later", .asked.as_secs(), .longest.as_secs())]
    RetryAfterTooLong {
        /// The wait that the provider requests.
        asked: Duration,
        /// The maximum wait of the [`RetryPolicy`](crate::RetryPolicy).
        longest: Duration,
        /// The error that would have been retried.
        message: String,
    },
    /// A time limit ran out.
    #[error("timed out waiting for {which} after {} from {url}", format_duration(*.after))]
    Timeout {
        /// The time limit.
        which: Deadline,
        /// The limit's duration.
        after: Duration,
        /// The server's URL, without secrets.
        url: String,
    },
    /// The connection could not be made, or broke.
    #[error("no connection to {url}: {reason}{}", format_advice(.advice.as_deref()))]
    Connection {
        /// The server's URL, without secrets.
        url: String,
        /// The system's message.
        reason: String,
        /// Advice for the user, if something is known to help.
        advice: Option<String>,
        /// True if a retry can't help: no server listens on this machine, or the certificate is not
        /// trusted.
        permanent: bool,
    },
    /// The stream ended before the reply was complete.
    #[error("the stream from {url} ended early: {reason}")]
    EndedEarly {
        /// The server's URL, without secrets.
        url: String,
        /// The system's message, or a description of the missing part.
        reason: String,
    },
    /// Any other status without success.
    #[error("the provider answered with status {status}: {message}")]
    Http {
        /// The status.
        status: u16,
        /// The provider's message, limited in length.
        message: String,
    },
    /// The provider reported an error inside the stream.
    #[error("the provider broke off with an error: {message}")]
    Stream {
        /// The provider's message.
        message: String,
        /// True if the provider's error type is temporary (server errors).
        retryable: bool,
    },
    /// The provider violated its protocol, or the protocol can't express the request.
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
    /// The request differs from the recording.
    #[error("the request departs from the recording at exchange {exchange}:\n{diff}")]
    ReplayMismatch {
        /// The number of the exchange in the cassette, from 1.
        exchange: usize,
        /// The first differences with the recorded and the actual values, limited in length.
        diff: String,
    },
    /// The cassette has no further exchange.
    #[error("the recording has {exchanges} exchanges and this is request {}; record it again", .exchanges.saturating_add(1))]
    ReplayExhausted {
        /// Number of exchanges in the cassette.
        exchanges: usize,
    },
    /// A cassette can't be read or written.
    #[error("cassette {path}: {reason}")]
    Cassette {
        /// The file.
        path: String,
        /// The problem.
        reason: String,
    },
    /// The model can't call tools.
    #[error(
        "this model doesn't call tools: {message}; set `tool_calling = false` for its provider to work through text edits"
    )]
    ToolsUnsupported {
        /// The provider's message.
        message: String,
    },
    /// A script can't be read, has no further reply, or expects another message.
    #[error("script: {0}")]
    Script(String),
    /// A program that stands for a model failed at its task, in words for people.
    #[error("{0}")]
    Delegate(String),
    /// The endpoint can't be used as it is configured.
    #[error("the endpoint of {provider} can't be used: {reason}")]
    Endpoint {
        /// The provider.
        provider: String,
        /// The problem.
        reason: String,
    },
    /// Every attempt failed.
    #[error("gave up after {attempts} attempts; the last: {last}")]
    GaveUp {
        /// Number of attempts.
        attempts: u32,
        /// The error of the last attempt.
        last: Box<ModelError>,
    },
}

impl ModelError {
    /// Returns true if the same request may succeed a little later. Never true for an error that
    /// has been retried already ([`ModelError::GaveUp`]).
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

    /// Removes secrets and invisible characters from this error's external text, and limits its
    /// length. Invisible characters go first, because they could split a secret.
    #[must_use]
    pub(crate) fn redact_secrets(mut self, secrets: &[String]) -> Self {
        if let Some(text) = self.external_text_mut() {
            *text = strip_invisible(text);
            for secret in secrets {
                if text.contains(secret.as_str()) {
                    *text = text.replace(secret.as_str(), "[secret]");
                }
            }
            shorten(text, MAX_MESSAGE_BYTES);
        }
        self
    }

    /// Returns the external text of this error, if it has one.
    fn external_text_mut(&mut self) -> Option<&mut String> {
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
            Self::GaveUp { last, .. } => last.external_text_mut(),
            Self::NoKey { .. }
            | Self::Timeout { .. }
            | Self::Cancelled
            | Self::ReplayMismatch { .. }
            | Self::ReplayExhausted { .. }
            | Self::Cassette { .. }
            | Self::Script(_)
            | Self::Delegate(_)
            | Self::Endpoint { .. } => None,
        }
    }

    /// Returns the last attempt's error for [`ModelError::GaveUp`], and this error otherwise.
    #[must_use]
    pub fn root_cause(&self) -> &Self {
        match self {
            Self::GaveUp { last, .. } => last.root_cause(),
            other => other,
        }
    }
}

/// Returns true if a retry can succeed after this status: timeouts, conflicts, rate limits and
/// server errors (529 is Anthropic's "overloaded"). 501 and 505 are permanent.
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

fn format_advice(advice: Option<&str>) -> String {
    advice.map(|text| format!("; {text}")).unwrap_or_default()
}

fn format_available_models(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; near names: {}", names.join(", ")) }
}

/// Cuts a text to at most `limit` bytes, including the ellipsis, between characters.
pub(crate) fn shorten(text: &mut String, limit: usize) {
    const ELLIPSIS: char = '…';
    if text.len() > limit {
        let mut end = limit.saturating_sub(ELLIPSIS.len_utf8());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push(ELLIPSIS);
    }
}

/// Removes control sequences and invisible characters from a text.
pub(crate) fn strip_invisible(text: &str) -> String {
    let mut characters = text.chars().peekable();
    let mut seen = String::with_capacity(text.len());
    while let Some(character) = characters.next() {
        if character == '\u{1b}' && characters.next_if_eq(&'[').is_some() {
            // The final letter of the sequence is dropped too.
            while characters.next().is_some_and(|parameter| !('@'..='~').contains(&parameter)) {}
        } else if matches!(character, '\n' | '\t') || !(character.is_control() || is_hidden(character)) {
            seen.push(character);
        }
    }
    seen
}

fn is_hidden(character: char) -> bool {
    is_invisible_char(character)
        || matches!(character, '\u{34f}' | '\u{180b}'..='\u{180f}' | '\u{2028}' | '\u{2029}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{fff9}'..='\u{fffb}' | '\u{e0100}'..='\u{e01ef}')
}

/// Formats a duration in whole seconds if possible, else in milliseconds.
fn format_duration(duration: Duration) -> String {
    if duration.subsec_nanos() == 0 {
        format!("{} s", duration.as_secs())
    } else {
        format!("{} ms", duration.as_millis())
    }
}
