//! HTTP transports: requests, responses and their URLs.

mod http;
mod retry;
mod url;

use std::fmt;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use crate::ModelError;

pub use http::HttpTransport;
pub(crate) use retry::{AttemptError, choose_wait, requested_wait};
pub(crate) use url::{display_url, guess_scheme, is_loopback, join_url, path_and_query};

/// Sends HTTP requests. Dropping the future or the response's body ends the exchange and its
/// connection.
pub trait Transport: Send + Sync {
    /// Sends the request and waits for the response's head.
    ///
    /// # Errors
    /// [`ModelError::Connection`] or [`ModelError::Timeout`]; a replay also returns
    /// [`ModelError::ReplayMismatch`] and [`ModelError::ReplayExhausted`]. A status without success
    /// is not an error here.
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, ModelError>>;

    /// Returns true if requests go to a server. Otherwise no key is needed and retries don't wait.
    fn is_live(&self) -> bool {
        true
    }

    /// Returns true if every exchange is recorded for a replay, which has only the conversation's
    /// exchanges.
    fn is_recording(&self) -> bool {
        false
    }
}

/// An HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// `GET`.
    Get,
    /// `POST`, with a body.
    Post,
}

impl Method {
    /// Returns the method's name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

/// A request header.
#[derive(Clone, PartialEq, Eq)]
pub struct Header {
    /// The header's name, in lower case.
    pub name: String,
    /// The header's value.
    pub value: String,
    /// True if the value is kept out of recordings, errors and debug output.
    pub secret: bool,
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, if self.secret { "[secret]" } else { &self.value })
    }
}

/// An HTTP request.
#[derive(Clone)]
pub struct HttpRequest {
    /// The method.
    pub method: Method,
    /// The whole URL.
    pub url: String,
    /// The headers.
    pub headers: Vec<Header>,
    /// The body; empty for [`Method::Get`].
    pub body: Bytes,
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("url", &display_url(&self.url))
            .field("headers", &self.headers)
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

/// The body of a response, as it arrives.
pub type Body = BoxStream<'static, Result<Bytes, ModelError>>;

/// The head of a response, and its body, which is still arriving.
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// The headers, names in lower case. Headers whose values are not text are omitted.
    pub headers: Vec<(String, String)>,
    /// The body, which ends at the first error.
    pub body: Body,
}

impl HttpResponse {
    /// Returns the first header of that name (in lower case).
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

impl fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpResponse").field("status", &self.status).finish_non_exhaustive()
    }
}
