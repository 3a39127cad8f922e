//! Cassettes: what was said over HTTP, in a file, to be said again without a network.
//!
//! A cassette is JSON Lines, one exchange a line, in the order of the requests: the request (method, URL
//! without anything secret, harmless headers, body as JSON) and the answer (status, harmless headers, each
//! piece of the body byte for byte as it came), or the error in its place or after it.

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

/// The version this crate writes, and the only one it reads.
const VERSION: u32 = 1;
/// Request headers worth keeping; none of them ever holds a secret.
const REQUEST_HEADERS: &[&str] =
    &["accept", "content-type", "user-agent", "anthropic-version", "anthropic-beta"];
/// Answer headers that this crate acts on, and those by which a provider finds a request again.
const ANSWER_HEADERS: &[&str] =
    &["content-type", "date", "retry-after", "retry-after-ms", "request-id", "x-request-id"];
/// Query parameters that say how to answer and hold nothing secret.
const OPEN_PARAMETERS: &[&str] = &["alt", "api-version", "pageSize"];
const HIDDEN: &str = "[secret]";
/// Texts shorter than this are not taken for secrets: they would be found everywhere.
const SHORTEST_SECRET: usize = 8;

/// One line of a cassette.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Record {
    version: u32,
    /// Its place among the requests, from 0; exchanges that overlap are written in the order they end.
    index: u64,
    /// The day that the prompt named, so that a replay on another day can say the same.
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
    /// The body as JSON; null where there is none. One that isn't JSON is a string.
    #[serde(default)]
    body: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct RecordedResponse {
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    chunks: Vec<Chunk>,
}

/// A piece of a body, exactly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Chunk {
    Text(String),
    Base64(String),
}

impl Chunk {
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

/// How an exchange failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct RecordedError {
    kind: ErrorKind,
    reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ErrorKind {
    /// No connection.
    Connection,
    /// No connection, and trying again can't help.
    Refused,
    /// The body broke off.
    EndedEarly,
    /// A deadline.
    ConnectTimeout,
    FirstByteTimeout,
    IdleTimeout,
    TotalTimeout,
    /// The client had seen enough, or was cancelled.
    Dropped,
}

impl RecordedError {
    fn dropped() -> Self {
        Self { kind: ErrorKind::Dropped, reason: "the client stopped reading".to_owned(), after_ms: None }
    }

    fn new(error: &ModelError) -> Self {
        let (kind, reason, after) = match error {
            ModelError::Connection { reason, permanent, .. } => {
                let kind = if *permanent { ErrorKind::Refused } else { ErrorKind::Connection };
                (kind, reason.clone(), None)
            }
            ModelError::Timeout { which, after, .. } => {
                let kind = match which {
                    Deadline::Connect => ErrorKind::ConnectTimeout,
                    Deadline::FirstByte => ErrorKind::FirstByteTimeout,
                    Deadline::Idle => ErrorKind::IdleTimeout,
                    Deadline::Total => ErrorKind::TotalTimeout,
                };
                (kind, format!("no {which}"), Some(*after))
            }
            ModelError::EndedEarly { reason, .. } => (ErrorKind::EndedEarly, reason.clone(), None),
            other => (ErrorKind::EndedEarly, other.to_string(), None),
        };
        let after_ms = after.map(|after: Duration| u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
        Self { kind, reason, after_ms }
    }

    fn replayed(&self, url: &str) -> ModelError {
        let url = url.to_owned();
        let timeout = |which| ModelError::Timeout {
            which,
            after: Duration::from_millis(self.after_ms.unwrap_or_default()),
            url: url.clone(),
        };
        let connection = |permanent| ModelError::Connection {
            url: url.clone(),
            reason: self.reason.clone(),
            advice: String::new(),
            permanent,
        };
        match self.kind {
            ErrorKind::Connection => connection(false),
            ErrorKind::Refused => connection(true),
            ErrorKind::ConnectTimeout => timeout(Deadline::Connect),
            ErrorKind::FirstByteTimeout => timeout(Deadline::FirstByte),
            ErrorKind::IdleTimeout => timeout(Deadline::Idle),
            ErrorKind::TotalTimeout => timeout(Deadline::Total),
            ErrorKind::EndedEarly | ErrorKind::Dropped => {
                ModelError::EndedEarly { url: url.clone(), reason: self.reason.clone() }
            }
        }
    }
}

impl RecordedRequest {
    /// A request as it may be written down.
    fn new(request: &HttpRequest, secrets: &[String]) -> Self {
        let headers = request
            .headers
            .iter()
            .filter(|header| !header.secret && REQUEST_HEADERS.contains(&header.name.as_str()))
            .map(|header| (header.name.clone(), without(&header.value, secrets)))
            .collect();
        let body = if request.body.is_empty() {
            Value::Null
        } else {
            let text = without(&String::from_utf8_lossy(&request.body), secrets);
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        };
        Self {
            method: request.method.name().to_owned(),
            url: without(&open_url(&request.url), secrets),
            headers,
            body,
        }
    }

    /// What has to be the same in a replay: everything but the host and the headers.
    fn compared(&self) -> Value {
        let mut body = self.body.clone();
        if let Some(members) = body.as_object_mut() {
            // Names the session, which is another one in every run, and changes nothing about the answer.
            members.remove("prompt_cache_key");
        }
        serde_json::json!({ "method": self.method, "path": path_and_query(&self.url), "body": body })
    }
}

/// The secrets that a request carries: the values of its secret headers, and the words of each, because a
/// key stands behind «Bearer». The longest come first.
fn secrets(request: &HttpRequest) -> Vec<String> {
    let values = request.headers.iter().filter(|header| header.secret).map(|header| header.value.as_str());
    let mut secrets: Vec<String> = values
        .flat_map(|value| std::iter::once(value).chain(value.split_whitespace()))
        .filter(|text| text.len() >= SHORTEST_SECRET)
        .map(str::to_owned)
        .collect();
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.dedup();
    secrets
}

/// A text with its secrets hidden, also where they stand escaped in JSON.
fn without(text: &str, secrets: &[String]) -> String {
    let mut text = text.to_owned();
    for secret in secrets {
        let escaped = Value::from(secret.as_str()).to_string();
        let escaped = escaped.trim_matches('"');
        for form in [secret.as_str(), escaped] {
            if text.contains(form) {
                text = text.replace(form, HIDDEN);
            }
        }
    }
    text
}

/// A URL without user, password and fragment, and with the values of unknown query parameters hidden.
fn open_url(url: &str) -> String {
    let shown = crate::transport::shown_url(url);
    let query = url.split('#').next().and_then(|url| url.split_once('?')).map(|(_, query)| query);
    let Some(query) = query else {
        return shown;
    };
    let parameters: Vec<String> = query
        .split('&')
        .map(|parameter| match parameter.split_once('=') {
            Some((name, _)) if !OPEN_PARAMETERS.contains(&name) => format!("{name}={HIDDEN}"),
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
            assert_eq!(open_url(url), expected);
        }
    }

    #[test]
    fn chunks_keep_every_byte() {
        for bytes in [&b"data: \xc3\xa4"[..], b"\xc3", b"", b"\0\xff"] {
            let chunk = Chunk::new(bytes);
            let line = serde_json::to_string(&chunk).unwrap();
            assert_eq!(serde_json::from_str::<Chunk>(&line).unwrap().bytes().unwrap(), bytes);
        }
    }
}
