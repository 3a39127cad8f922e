//! Cassettes: recordings of HTTP exchanges in a file, to be replayed without a network.
//!
//! A cassette is JSON Lines with one exchange per line, in the order of the requests: the request
//! (method, URL without secrets, harmless headers, body as JSON) and the response (status, harmless
//! headers, each chunk of the body byte for byte), or the error instead of it or after it.

mod diff;
mod record;
mod replay;

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::transport::{HttpRequest, path_and_query};
use crate::{Deadline, ModelError};

pub use record::{Recorder, RecordingTransport};
pub use replay::Replayer;

/// The version of the format that this crate writes, and the only one that it reads.
const FORMAT_VERSION: u32 = 1;
/// Request headers that are recorded; none of them ever holds a secret.
const REQUEST_HEADERS: &[&str] =
    &["accept", "content-type", "user-agent", "anthropic-version", "anthropic-beta"];
/// Response headers that are recorded: those that this crate uses, and those by which a provider
/// identifies a request.
const RESPONSE_HEADERS: &[&str] =
    &["content-type", "date", "retry-after", "retry-after-ms", "request-id", "x-request-id"];
/// Query parameters whose values are recorded, because they never hold a secret.
pub(crate) const VISIBLE_PARAMETERS: &[&str] = &["alt", "api-version", "pageSize"];
const REDACTED: &str = "[secret]";
/// Minimum length of a secret that is redacted: shorter texts would occur everywhere.
const MIN_SECRET_BYTES: usize = 8;

/// A recorded exchange: one line of a cassette.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct RecordedExchange {
    version: u32,
    /// The index among the requests, from 0. Overlapping exchanges are written in the order in
    /// which they end.
    index: u64,
    /// The date in the recorded prompt, so that a replay on another day can use the same date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    day: Option<String>,
    request: RecordedRequest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    response: Option<RecordedResponse>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<RecordedError>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct RecordedRequest {
    method: String,
    url: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The body as JSON; null if there is none. A body that is not JSON is a string.
    #[serde(default)]
    body: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct RecordedResponse {
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    chunks: Vec<RecordedChunk>,
}

/// A chunk of a body, exactly as received.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RecordedChunk {
    Text(String),
    Base64(String),
}

impl RecordedChunk {
    fn new(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Base64(STANDARD.encode(bytes)),
        }
    }

    fn bytes(&self) -> Result<Vec<u8>, String> {
        match self {
            Self::Text(text) => Ok(text.clone().into_bytes()),
            Self::Base64(text) => {
                STANDARD.decode(text).map_err(|error| format!("a chunk is not base 64: {error}"))
            }
        }
    }
}

/// The failure of an exchange.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct RecordedError {
    kind: RecordedErrorKind,
    reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RecordedErrorKind {
    /// The connection could not be made.
    Connection,
    /// The connection could not be made, and a retry can't help.
    Refused,
    /// The body broke off.
    EndedEarly,
    /// A time limit was exceeded.
    ConnectTimeout,
    FirstByteTimeout,
    IdleTimeout,
    TotalTimeout,
    /// The client stopped reading or was cancelled.
    Dropped,
}

impl RecordedError {
    fn dropped_by_caller() -> Self {
        Self {
            kind: RecordedErrorKind::Dropped,
            reason: "the client stopped reading".to_owned(),
            after_ms: None,
        }
    }

    fn new(error: &ModelError) -> Self {
        let (kind, reason, after) = match error {
            ModelError::Connection { reason, permanent, .. } => {
                let kind =
                    if *permanent { RecordedErrorKind::Refused } else { RecordedErrorKind::Connection };
                (kind, reason.clone(), None)
            }
            ModelError::Timeout { which, after, .. } => {
                let kind = match which {
                    Deadline::Connect => RecordedErrorKind::ConnectTimeout,
                    Deadline::FirstByte => RecordedErrorKind::FirstByteTimeout,
                    Deadline::Idle => RecordedErrorKind::IdleTimeout,
                    Deadline::Total => RecordedErrorKind::TotalTimeout,
                };
                (kind, format!("no {which}"), Some(*after))
            }
            ModelError::EndedEarly { reason, .. } => (RecordedErrorKind::EndedEarly, reason.clone(), None),
            other => (RecordedErrorKind::EndedEarly, other.to_string(), None),
        };
        let after_ms = after.map(|after: Duration| u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
        Self { kind, reason, after_ms }
    }

    fn to_model_error(&self, url: &str) -> ModelError {
        let url = url.to_owned();
        let timeout = |which| ModelError::Timeout {
            which,
            after: Duration::from_millis(self.after_ms.unwrap_or_default()),
            url: url.clone(),
        };
        let connection = |permanent| ModelError::Connection {
            url: url.clone(),
            reason: self.reason.clone(),
            advice: None,
            permanent,
        };
        match self.kind {
            RecordedErrorKind::Connection => connection(false),
            RecordedErrorKind::Refused => connection(true),
            RecordedErrorKind::ConnectTimeout => timeout(Deadline::Connect),
            RecordedErrorKind::FirstByteTimeout => timeout(Deadline::FirstByte),
            RecordedErrorKind::IdleTimeout => timeout(Deadline::Idle),
            RecordedErrorKind::TotalTimeout => timeout(Deadline::Total),
            RecordedErrorKind::EndedEarly | RecordedErrorKind::Dropped => {
                ModelError::EndedEarly { url: url.clone(), reason: self.reason.clone() }
            }
        }
    }
}

impl RecordedRequest {
    /// Creates the record of a request, without secrets.
    fn new(request: &HttpRequest, secrets: &[String]) -> Self {
        let headers = request
            .headers
            .iter()
            .filter(|header| !header.secret && REQUEST_HEADERS.contains(&header.name.as_str()))
            .map(|header| (header.name.clone(), redact(&header.value, secrets)))
            .collect();
        let body = if request.body.is_empty() {
            Value::Null
        } else {
            let text = redact(&String::from_utf8_lossy(&request.body), secrets);
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        };
        Self {
            method: request.method.name().to_owned(),
            url: redact(&redact_url(&request.url), secrets),
            headers,
            body,
        }
    }

    /// Returns the parts that must be equal in a replay: everything but the host and the headers.
    fn to_comparable(&self) -> Value {
        let mut body = self.body.clone();
        if let Some(members) = body.as_object_mut() {
            // The key of the session differs in every run and does not affect the response.
            members.remove("prompt_cache_key");
        }
        serde_json::json!({ "method": self.method, "path": path_and_query(&self.url), "body": body })
    }
}

/// Returns the secrets of a request, the longest first: the values of its secret headers, and the
/// words of each value, because a key may follow `Bearer`.
fn secrets_of(request: &HttpRequest) -> Vec<String> {
    let values = request.headers.iter().filter(|header| header.secret).map(|header| header.value.as_str());
    let mut secrets: Vec<String> = values
        .flat_map(|value| std::iter::once(value).chain(value.split_whitespace()))
        .filter(|text| text.len() >= MIN_SECRET_BYTES)
        .map(str::to_owned)
        .collect();
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.dedup();
    secrets
}

/// Redacts secrets in a text, also where they are escaped for JSON.
fn redact(text: &str, secrets: &[String]) -> String {
    let mut text = text.to_owned();
    for secret in secrets {
        let escaped = Value::from(secret.as_str()).to_string();
        let escaped = escaped.trim_matches('"');
        for form in [secret.as_str(), escaped] {
            if text.contains(form) {
                text = text.replace(form, REDACTED);
            }
        }
    }
    text
}

/// Returns a URL without user, password and fragment, and with the values of unknown query
/// parameters redacted.
fn redact_url(url: &str) -> String {
    let shown = crate::transport::display_url(url);
    let query = url.split('#').next().and_then(|url| url.split_once('?')).map(|(_, query)| query);
    let Some(query) = query else {
        return shown;
    };
    let parameters: Vec<String> = query
        .split('&')
        .map(|parameter| match parameter.split_once('=') {
            Some((name, _)) if !VISIBLE_PARAMETERS.contains(&name) => format!("{name}={REDACTED}"),
            _ => parameter.to_owned(),
        })
        .collect();
    format!("{shown}?{}", parameters.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_written_without_secrets() {
        let cases = [
            ("https://u:p@h/v1/x?alt=sse&key=abc#f", "https://h/v1/x?alt=sse&key=[secret]"),
            ("https://h/v1/x", "https://h/v1/x"),
            ("https://h/x?flag&api-version=2", "https://h/x?flag&api-version=2"),
        ];
        for (url, expected) in cases {
            assert_eq!(redact_url(url), expected);
        }
    }

    #[test]
    fn chunks_keep_every_byte() {
        for bytes in [&b"data: \xc3\xa4"[..], b"\xc3", b"", b"\0\xff"] {
            let chunk = RecordedChunk::new(bytes);
            let line = serde_json::to_string(&chunk).unwrap();
            assert_eq!(serde_json::from_str::<RecordedChunk>(&line).unwrap().bytes().unwrap(), bytes);
        }
    }
}
