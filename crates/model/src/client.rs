//! A [`Model`] over HTTP: a codec, a transport and a retry policy.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;

use crate::cassette::VISIBLE_PARAMETERS;
use crate::codec::Codec;
use crate::transport::{
    Body, Header, HttpRequest, HttpTransport, Method, Transport, display_url, guess_scheme, join_url,
};
use crate::{Endpoint, ModelError, ModelRequest, Secret, similar_names, wire};

/// Maximum size of an error body that is read. Gateways wrap the provider's error in their own. The
/// text that is shown is limited further, by
/// [`MAX_MESSAGE_BYTES`](crate::error::MAX_MESSAGE_BYTES).
const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;
/// Maximum size of a list of models. The longest known list, OpenRouter's, has about one MiB.
const MAX_MODEL_LIST_BYTES: usize = 8 * 1024 * 1024;
/// Timeout for a list of models that only improves an error message.
const MODEL_LIST_TIMEOUT: Duration = Duration::from_secs(5);
/// Minimum length of a header value that is redacted in texts: a value such as `1` is no secret and
/// occurs everywhere.
const MIN_SECRET_BYTES: usize = 8;

/// A model behind an HTTP endpoint.
pub struct HttpModel {
    pub(crate) endpoint: Endpoint,
    pub(crate) base_url: reqwest::Url,
    pub(crate) codec: Box<dyn Codec>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) secrets: Vec<String>,
    pub(crate) model: String,
    pub(crate) headers: Vec<Header>,
    pub(crate) exchanges: AtomicU64,
}

impl std::fmt::Debug for HttpModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpModel")
            .field("endpoint", &self.endpoint)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// Creates a client for the model of that name at an endpoint. The first request opens the
/// connection.
///
/// # Errors
/// [`ModelError::NoKey`] if the endpoint names variables for a key and has no key;
/// [`ModelError::Endpoint`] if the base URL, the key or the headers are invalid.
pub fn connect(endpoint: Endpoint, model: &str) -> Result<HttpModel, ModelError> {
    let transport = Arc::new(HttpTransport::new(&endpoint));
    connect_with(endpoint, model, transport)
}

/// Creates a client as [`connect`] does, over the given transport: a
/// [`RecordingTransport`](crate::RecordingTransport), or a [`Replayer`](crate::Replayer), which
/// needs no key.
///
/// # Errors
/// As [`connect`].
pub fn connect_with(
    endpoint: Endpoint,
    model: &str,
    transport: Arc<dyn Transport>,
) -> Result<HttpModel, ModelError> {
    if endpoint.key.is_none() && endpoint.key_required && !endpoint.key_env.is_empty() && transport.is_live()
    {
        return Err(ModelError::NoKey {
            provider: endpoint.provider.clone(),
            variables: endpoint.key_env.clone(),
        });
    }
    let refuse = |reason: String| ModelError::Endpoint { provider: endpoint.provider.clone(), reason };
    let shown = || display_url(&endpoint.base_url);
    if let Some(scheme) = guess_scheme(&endpoint.base_url) {
        return Err(refuse(format!("`{0}` lacks its scheme; write {scheme}://{0}", shown())));
    }
    let parsed = reqwest::Url::parse(&endpoint.base_url)
        .map_err(|error| refuse(format!("`{}` is not a URL ({error})", shown())))?;
    if !matches!(parsed.scheme(), "http" | "https") || parsed.host_str().is_none() {
        return Err(refuse(format!("`{}` is not an http or https URL", shown())));
    }
    let codec = wire::codec(endpoint.wire, &endpoint.base_url);
    let headers = headers(&endpoint, codec.as_ref());
    for Header { name, value, .. } in &headers {
        if reqwest::header::HeaderName::from_bytes(name.as_bytes()).is_err() {
            return Err(refuse(format!("`{name}` is not a header's name")));
        }
        if reqwest::header::HeaderValue::from_str(value).is_err() {
            return Err(refuse(format!(
                "the value of the header `{name}` has characters that HTTP doesn't allow (a line break?)"
            )));
        }
    }
    Ok(HttpModel {
        secrets: secrets(&endpoint, &parsed),
        endpoint,
        base_url: parsed,
        codec,
        transport,
        model: model.to_owned(),
        headers,
        exchanges: AtomicU64::new(0),
    })
}

/// Returns the texts that are removed from errors: of a header's value also its words, because a
/// key may follow `Bearer`.
fn secrets(endpoint: &Endpoint, base_url: &reqwest::Url) -> Vec<String> {
    let parameters = base_url.query_pairs().filter(|(name, _)| !VISIBLE_PARAMETERS.contains(&&**name));
    let values = endpoint.headers.values();
    let mut secrets: Vec<String> = endpoint
        .key
        .iter()
        .map(Secret::reveal)
        .chain(values.flat_map(|value| std::iter::once(value.as_str()).chain(value.split_whitespace())))
        .chain(base_url.password())
        .map(str::to_owned)
        .chain(parameters.map(|(_, value)| value.into_owned()))
        .filter(|secret| secret.len() >= MIN_SECRET_BYTES)
        .collect();
    // The longest first, so that a secret that contains another is replaced as a whole.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets
}

/// Returns the headers of every request. The endpoint's own headers come last and replace others of
/// the same name.
fn headers(endpoint: &Endpoint, codec: &dyn Codec) -> Vec<Header> {
    let mut headers: Vec<Header> = Vec::new();
    let mut set = |name: &str, value: String, secret: bool| {
        let name = name.to_ascii_lowercase();
        headers.retain(|header| header.name != name);
        headers.push(Header { name, value, secret });
    };
    set("content-type", "application/json".to_owned(), false);
    set("accept", "text/event-stream".to_owned(), false);
    set("user-agent", concat!("journeyman/", env!("CARGO_PKG_VERSION")).to_owned(), false);
    for (name, value) in codec.fixed_headers() {
        set(name, value, false);
    }
    if let Some(key) = &endpoint.key {
        for (name, value) in codec.auth_headers(key) {
            set(name, value, true);
        }
    }
    for (name, value) in &endpoint.headers {
        set(name, value.clone(), true);
    }
    headers
}

impl HttpModel {
    /// Returns the names of the provider's models, in the provider's order.
    ///
    /// # Errors
    /// The errors of a request without retries, and [`ModelError::Protocol`] if the response is not
    /// a list.
    pub async fn list_models(&self) -> Result<Vec<String>, ModelError> {
        let request = HttpRequest {
            method: Method::Get,
            url: self.url(self.codec.models_path()),
            headers: self.headers.iter().filter(|header| header.name != "accept").cloned().collect(),
            body: Bytes::new(),
        };
        let response = self.transport.send(request).await?;
        if response.status != 200 {
            return Err(self.status_error(response.status, response.body).await);
        }
        let body = read_bounded(response.body, MAX_MODEL_LIST_BYTES).await?;
        let value: serde_json::Value = serde_json::from_slice(&body).map_err(|error| {
            ModelError::Protocol(format!(
                "the list of models of {} is not JSON: {error}",
                self.endpoint.provider
            ))
        })?;
        Ok(self.codec.parse_model_names(&value))
    }

    /// Encodes the request in its protocol.
    pub(crate) fn encode(&self, request: &ModelRequest) -> Result<HttpRequest, ModelError> {
        if !self.endpoint.tools && !request.tools.is_empty() {
            return Err(ModelError::ToolsUnsupported {
                message: format!("{} is configured with `tool_calling = false`", self.endpoint.provider),
            });
        }
        let encoded = if request.model.is_empty() {
            self.codec.encode(&ModelRequest { model: self.model.clone(), ..request.clone() })?
        } else {
            self.codec.encode(request)?
        };
        let body = serde_json::to_vec(&encoded.body).map_err(|error| {
            ModelError::Protocol(format!("the request can't be written as JSON: {error}"))
        })?;
        Ok(HttpRequest {
            method: Method::Post,
            url: self.url(&encoded.path),
            headers: self.headers.clone(),
            body: body.into(),
        })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        join_url(self.endpoint.wire, &self.base_url, path)
    }

    /// Reads the body of a response without success and returns its error. If the body breaks off,
    /// the part that arrived is used.
    pub(crate) async fn status_error(&self, status: u16, mut body: Body) -> ModelError {
        let mut text = Vec::new();
        while let Some(Ok(chunk)) = body.next().await {
            let room = MAX_ERROR_BODY_BYTES.saturating_sub(text.len());
            text.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
            if chunk.len() >= room {
                break;
            }
        }
        self.codec.parse_error(status, &text)
    }

    /// Adds advice to an error, and removes secrets and excess length from its texts.
    pub(crate) async fn explain_error(&self, mut error: ModelError, asked_for: &str) -> ModelError {
        match &mut error {
            ModelError::Unauthorized { advice: advice @ None, .. } => *advice = Some(self.key_advice()),
            ModelError::Connection { advice, permanent: true, .. } if self.endpoint.local => {
                *advice = Some(local_server_advice(&self.endpoint.provider));
            }
            ModelError::UnknownModel { available, .. } if available.is_empty() => {
                let name = if asked_for.is_empty() { &self.model } else { asked_for };
                if let Ok(Ok(names)) = tokio::time::timeout(MODEL_LIST_TIMEOUT, self.list_models()).await {
                    *available = similar_names(name, &names);
                }
            }
            _ => {}
        }
        error.redact_secrets(&self.secrets)
    }

    fn key_advice(&self) -> String {
        let variables = self.endpoint.key_env.join(" or ");
        match (&self.endpoint.key, variables.is_empty()) {
            (Some(_), false) => format!("check the key in {variables}"),
            (Some(_), true) => format!("check the key of provider {}", self.endpoint.provider),
            (None, false) => format!("set {variables}"),
            (None, true) => format!(
                "name the variable that holds its key in your configuration: providers.{}.key_env = [\"NAME\"]",
                self.endpoint.provider
            ),
        }
    }
}

fn local_server_advice(provider: &str) -> String {
    match provider {
        "ollama" => "is ollama running? Start it with `ollama serve`".to_owned(),
        "lmstudio" => "is LM Studio's server running? Start it with `lms server start`".to_owned(),
        "llamacpp" => "is llama.cpp's server running? Start it with `llama-server -m MODEL.gguf`".to_owned(),
        "vllm" => "is vLLM running? Start it with `vllm serve MODEL`".to_owned(),
        other => format!("is {other} running?"),
    }
}

pub(crate) async fn read_bounded(mut body: Body, limit: usize) -> Result<Vec<u8>, ModelError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = body.next().await {
        let chunk = chunk?;
        if bytes.len().saturating_add(chunk.len()) > limit {
            return Err(ModelError::Protocol(format!("an answer of more than {limit} bytes")));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}
