//! What carries a request to a server and its answer back.

mod http;
mod retry;
mod url;

use std::fmt;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use crate::ModelError;

pub use http::HttpTransport;
pub(crate) use retry::{asked_wait, jittered_wait};
pub(crate) use url::{is_loopback, join_url, path_and_query, shown_url};

/// Carries one request. Dropping the future or the answer's body ends the exchange and its connection.
pub trait Transport: Send + Sync {
    /// Sends the request and waits for the answer's head.
    ///
    /// # Errors
    /// [`ModelError::Connection`] or [`ModelError::Timeout`]; of a replay also
    /// [`ModelError::ReplayMismatch`] and [`ModelError::ReplayExhausted`]. A status that isn't success is
    /// no error here.
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, ModelError>>;

    /// Whether a server is really asked. If not, no key is needed and no retry waits.
    fn is_live(&self) -> bool {
        true
    }
}

/// What to do at a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Asks, with a body.
    Post,
}

impl Method {
    /// The method's name on the wire.
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
    /// Its name, in lower case.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Whether the value is kept out of recordings, errors and debug output.
    pub secret: bool,
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, if self.secret { "[secret]" } else { &self.value })
    }
}

/// One request.
#[derive(Clone)]
pub struct HttpRequest {
    /// What to do.
    pub method: Method,
    /// The whole URL.
    pub url: String,
    /// Its headers.
    pub headers: Vec<Header>,
    /// Its body; empty for [`Method::Get`].
    pub body: Bytes,
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("url", &shown_url(&self.url))
            .field("headers", &self.headers)
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

/// The body of an answer, as it comes in.
pub type Body = BoxStream<'static, Result<Bytes, ModelError>>;

/// One answer: its head, and its body still coming.
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// The headers, names in lower case; values that aren't text are left out.
    pub headers: Vec<(String, String)>,
    /// The body. It ends at the first error.
    pub body: Body,
}

impl HttpResponse {
    /// The first header of that name (in lower case).
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
