//! A model behind HTTP: one codec, one transport, one policy of patience.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use tokio_util::sync::CancellationToken;

use crate::codec::Codec;
use crate::exchange::Exchange;
use crate::transport::{Body, Header, HttpRequest, HttpTransport, Method, Transport, join_url, shown_url};
use crate::{DeltaStream, Endpoint, Model, ModelError, ModelRequest, near_names, wire};

/// The longest error body that is read. Gateways wrap the provider's own error in theirs; what is shown
/// of it is bounded again, by [`MAX_MESSAGE`](crate::error::MAX_MESSAGE).
const MAX_ERROR_BODY: usize = 64 * 1024;
/// The longest list of models that is read; the longest known, OpenRouter's, has about one MiB.
const MAX_MODEL_LIST: usize = 8 * 1024 * 1024;
/// How long a list of models may take when it only improves an error message.
const MODEL_LIST_DEADLINE: Duration = Duration::from_secs(5);
/// Header values shorter than this are not searched for in texts: a «1» is no secret and is everywhere.
const SHORTEST_SECRET: usize = 8;

/// A model that is asked over HTTP.
pub struct HttpModel {
    pub(crate) endpoint: Endpoint,
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

/// The model of that name at an endpoint. Opens nothing: the first request does.
///
/// # Errors
/// [`ModelError::NoKey`] where the endpoint names variables for a key and has none;
/// [`ModelError::Endpoint`] where its base URL, key or headers can't be used.
pub fn connect(endpoint: Endpoint, model: &str) -> Result<HttpModel, ModelError> {
    let transport = Arc::new(HttpTransport::new(&endpoint));
    connect_with(endpoint, model, transport)
}

/// As [`connect`], over a transport of the caller's: a [`RecordingTransport`](crate::RecordingTransport),
/// or a [`Replayer`](crate::Replayer), which needs no key.
///
/// # Errors
/// As [`connect`].
pub fn connect_with(
    endpoint: Endpoint,
    model: &str,
    transport: Arc<dyn Transport>,
) -> Result<HttpModel, ModelError> {
    if endpoint.key.is_none() && !endpoint.key_env.is_empty() && transport.is_live() {
        return Err(ModelError::NoKey {
            provider: endpoint.provider.clone(),
            variables: endpoint.key_env.clone(),
        });
    }
    let refuse = |reason: String| ModelError::Endpoint { provider: endpoint.provider.clone(), reason };
    let parsed = reqwest::Url::parse(&endpoint.base_url)
        .map_err(|error| refuse(format!("«{}» is not a URL ({error})", shown_url(&endpoint.base_url))))?;
    if !matches!(parsed.scheme(), "http" | "https") || parsed.host_str().is_none() {
        return Err(refuse(format!("«{}» is not an http or https URL", shown_url(&endpoint.base_url))));
    }
    let codec = wire::codec(endpoint.wire, &endpoint.base_url);
    let headers = headers(&endpoint, codec.as_ref());
    for Header { name, value, .. } in &headers {
        if reqwest::header::HeaderName::from_bytes(name.as_bytes()).is_err() {
            return Err(refuse(format!("«{name}» is not a header's name")));
        }
        if reqwest::header::HeaderValue::from_str(value).is_err() {
            return Err(refuse(format!(
                "the value of the header «{name}» has characters that HTTP doesn't allow (a line break?)"
            )));
        }
    }
    let mut secrets: Vec<String> = endpoint
        .key
        .iter()
        .map(|key| key.reveal().to_owned())
        .chain(endpoint.headers.values().cloned())
        .chain(parsed.password().map(str::to_owned))
        .filter(|secret| secret.len() >= SHORTEST_SECRET)
        .collect();
    // The longest first, so that a secret that holds another one is replaced whole.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    Ok(HttpModel {
        endpoint,
        codec,
        transport,
        secrets,
        model: model.to_owned(),
        headers,
        exchanges: AtomicU64::new(0),
    })
}

/// Every header of every request. The endpoint's own come last and replace those of the same name.
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
        for (name, value) in codec.auth(key) {
            set(name, value, true);
        }
    }
    for (name, value) in &endpoint.headers {
        set(name, value.clone(), true);
    }
    headers
}

impl Model for HttpModel {
    fn name(&self) -> String {
        format!("{}/{}", self.endpoint.provider, self.model)
    }

    fn stream<'a>(&'a self, request: &'a ModelRequest, cancel: CancellationToken) -> DeltaStream<'a> {
        let serial = self.exchanges.fetch_add(1, Ordering::Relaxed);
        let exchange = Box::new(Exchange::new(self, request, cancel, serial));
        stream::unfold(
            exchange,
            |mut exchange| async move { exchange.next().await.map(|item| (item, exchange)) },
        )
        .boxed()
    }
}

impl HttpModel {
    /// The names of the models that the provider offers, in its order.
    ///
    /// # Errors
    /// Those of a request that isn't tried again, and [`ModelError::Protocol`] where the answer isn't a list.
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
        let body = read_bounded(response.body, MAX_MODEL_LIST).await?;
        let value: serde_json::Value = serde_json::from_slice(&body).map_err(|error| {
            ModelError::Protocol(format!(
                "the list of models of {} is not JSON: {error}",
                self.endpoint.provider
            ))
        })?;
        Ok(self.codec.model_names(&value))
    }

    /// The request in its protocol's form.
    pub(crate) fn encode(&self, request: &ModelRequest) -> Result<HttpRequest, ModelError> {
        if !self.endpoint.tools && !request.tools.is_empty() {
            return Err(ModelError::ToolsUnsupported {
                message: format!("{} is configured with `tools = false`", self.endpoint.provider),
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
        join_url(self.endpoint.wire, &self.endpoint.base_url, path)
    }

    /// What a status that isn't success means. Of a body that breaks off, the part that came is read.
    pub(crate) async fn status_error(&self, status: u16, mut body: Body) -> ModelError {
        let mut text = Vec::new();
        while let Some(Ok(chunk)) = body.next().await {
            let room = MAX_ERROR_BODY.saturating_sub(text.len());
            text.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
            if chunk.len() >= room {
                break;
            }
        }
        self.codec.error(status, &text)
    }

    /// Completes an error with what only the client knows, and takes secrets and excess length out of it.
    pub(crate) async fn explain(&self, mut error: ModelError, asked_for: &str) -> ModelError {
        match &mut error {
            ModelError::Unauthorized { advice, .. } if advice.is_empty() => *advice = self.key_advice(),
            ModelError::Connection { advice, permanent: true, .. } if self.endpoint.local => {
                *advice = local_advice(&self.endpoint.provider);
            }
            ModelError::UnknownModel { available, .. } if available.is_empty() => {
                let name = if asked_for.is_empty() { &self.model } else { asked_for };
                if let Ok(Ok(names)) = tokio::time::timeout(MODEL_LIST_DEADLINE, self.list_models()).await {
                    *available = near_names(name, &names);
                }
            }
            _ => {}
        }
        error.cleaned(&self.secrets)
    }

    fn key_advice(&self) -> String {
        let variables = self.endpoint.key_env.join(" or ");
        match (&self.endpoint.key, variables.is_empty()) {
            (Some(_), false) => format!("check the key in {variables}"),
            (Some(_), true) => format!("check the key of provider {}", self.endpoint.provider),
            (None, false) => format!("set {variables}"),
            (None, true) => {
                format!("give provider {} a key: name its variable in `key_env`", self.endpoint.provider)
            }
        }
    }
}

fn local_advice(provider: &str) -> String {
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
