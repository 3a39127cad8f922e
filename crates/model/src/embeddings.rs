//! Embedding vectors of texts, from any server that has OpenAI's `/embeddings`: Ollama, llama.cpp,
//! vLLM and many hosted ones.
//!
//! A request has the deadlines, retries and key of any other request. Vectors are requested in
//! packed form (`encoding_format: base64`, a quarter of the bytes) and accepted in either form,
//! because some servers always send plain numbers. A response is used completely or not at all.

use std::sync::atomic::Ordering;

use base64::Engine as _;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::client::{HttpModel, read_bounded};
use crate::transport::{AttemptError, HttpRequest, Method, choose_wait, requested_wait};
use crate::{Endpoint, ModelError, Wire, connect};

/// Maximum number of texts in a request. The strictest of the known servers accept 2,048, and a
/// response to that many has several megabytes.
pub const MAX_TEXTS_PER_REQUEST: usize = 256;
/// Maximum number of dimensions of a vector. The longest known vectors have 4,096.
const MAX_DIMENSIONS: usize = 8_192;
/// Maximum size of a response: the maximum number of vectors and dimensions at twelve characters
/// each.
const MAX_RESPONSE_BYTES: usize = 32 << 20;

/// Phrases by which servers say that a text is too long for the model, whatever the status.
const TOO_LONG_PHRASES: [&str; 6] =
    ["too large", "too long", "context length", "context size", "maximum input", "maximum context"];

/// A client for a model of embedding vectors.
#[derive(Debug)]
pub struct EmbeddingsClient {
    client: HttpModel,
}

#[derive(Deserialize)]
struct EmbeddingsResponse {
    data: Vec<EmbeddingItem>,
}

#[derive(Deserialize)]
struct EmbeddingItem {
    index: Option<usize>,
    embedding: VectorEncoding,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum VectorEncoding {
    Plain(Vec<f32>),
    Packed(String),
}

impl EmbeddingsClient {
    /// Creates a client for the model of that name at an endpoint. The first request opens the
    /// connection.
    ///
    /// # Errors
    /// [`ModelError::NoKey`] and [`ModelError::Endpoint`] as for [`connect`]; the latter also for a
    /// protocol without `/embeddings`.
    pub fn connect(endpoint: Endpoint, model: &str) -> Result<Self, ModelError> {
        if !matches!(endpoint.wire, Wire::Chat | Wire::Responses) {
            let reason = format!(
                "there is no /embeddings in the protocol `{}`; name a provider that speaks `chat`, which local \
                 servers and most others do",
                endpoint.wire
            );
            return Err(ModelError::Endpoint { provider: endpoint.provider, reason });
        }
        let mut client = connect(endpoint, model)?;
        client.headers.iter_mut().filter(|header| header.name == "accept").for_each(|header| {
            "application/json".clone_into(&mut header.value);
        });
        Ok(Self { client })
    }

    /// Returns the model's name as `provider/model`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}", self.client.endpoint.provider, self.client.model)
    }

    /// Returns a vector for each text, in order. All vectors have the same length and only finite
    /// numbers.
    ///
    /// # Errors
    /// [`ModelError`], after as many attempts as the endpoint's policy allows;
    /// [`ModelError::ContextTooLong`] if a text is too long for the model; [`ModelError::Protocol`]
    /// for too many texts, and for a response with too few or invalid vectors.
    pub async fn embed(
        &self,
        texts: &[&str],
        cancel: &CancellationToken,
    ) -> Result<Vec<Vec<f32>>, ModelError> {
        if texts.len() > MAX_TEXTS_PER_REQUEST {
            return Err(ModelError::Protocol(format!(
                "{} texts at once; {MAX_TEXTS_PER_REQUEST} are possible",
                texts.len()
            )));
        }
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let request = self.request(texts)?;
        let policy = &self.client.endpoint.retry;
        let serial = self.client.exchanges.fetch_add(1, Ordering::Relaxed);
        let mut random = fastrand::Rng::with_seed(policy.seed.wrapping_add(serial));
        let mut attempt = 1;
        loop {
            let tried = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(ModelError::Cancelled),
                tried = self.send_request(&request, texts.len()) => tried,
            };
            let AttemptError { error, retry_after } = match tried {
                Ok(vectors) => return Ok(vectors),
                Err(failure) => failure,
            };
            let error = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(ModelError::Cancelled),
                error = self.client.explain_error(error, &self.client.model) => error,
            };
            if let Some(message) = too_long_message(&error) {
                return Err(ModelError::ContextTooLong { message });
            }
            let failure = AttemptError { error, retry_after };
            let wait = choose_wait(policy, attempt, &failure, &mut random)?;
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(ModelError::Cancelled),
                () = tokio::time::sleep(wait) => {}
            }
            attempt += 1;
        }
    }

    fn request(&self, texts: &[&str]) -> Result<HttpRequest, ModelError> {
        let body = json!({"model": self.client.model, "input": texts, "encoding_format": "base64"});
        let body = serde_json::to_vec(&body).map_err(|error| {
            ModelError::Protocol(format!("the request can't be written as JSON: {error}"))
        })?;
        Ok(HttpRequest {
            method: Method::Post,
            url: self.client.url("/v1/embeddings"),
            headers: self.client.headers.clone(),
            body: Bytes::from(body),
        })
    }

    async fn send_request(&self, request: &HttpRequest, count: usize) -> Result<Vec<Vec<f32>>, AttemptError> {
        let response = self.client.transport.send(request.clone()).await?;
        if !(200..300).contains(&response.status) {
            let clock = self.client.endpoint.retry.clock.as_ref();
            let retry_after = requested_wait(|name| response.header(name), || clock.map(|clock| clock.now()));
            let error = self.client.status_error(response.status, response.body).await;
            return Err(AttemptError { error, retry_after });
        }
        let body = read_bounded(response.body, MAX_RESPONSE_BYTES).await?;
        Ok(parse_vectors(&body, count).map_err(|what| {
            ModelError::Protocol(format!("the answer of {} has no usable vectors: {what}", self.name()))
        })?)
    }
}

/// Returns the server's message if the error says that a text is too long.
fn too_long_message(error: &ModelError) -> Option<String> {
    let (ModelError::Http { message, .. } | ModelError::ContextTooLong { message }) = error else {
        return None;
    };
    let said = message.to_ascii_lowercase();
    let is_named = matches!(error, ModelError::ContextTooLong { .. });
    (is_named || TOO_LONG_PHRASES.iter().any(|words| said.contains(words))).then(|| message.clone())
}

/// Returns the vectors of a response, in the order of the request.
fn parse_vectors(body: &[u8], count: usize) -> Result<Vec<Vec<f32>>, String> {
    let answer: EmbeddingsResponse = serde_json::from_slice(body)
        .map_err(|error| format!("it isn't one ({error}); is it a model for embeddings?"))?;
    if answer.data.len() != count {
        return Err(format!("{} of them for {count} texts", answer.data.len()));
    }
    let mut all: Vec<Option<Vec<f32>>> = vec![None; count];
    for (place, item) in answer.data.into_iter().enumerate() {
        let numbers = match item.embedding {
            VectorEncoding::Plain(numbers) => numbers,
            VectorEncoding::Packed(text) => decode_packed(&text)?,
        };
        if !(1..=MAX_DIMENSIONS).contains(&numbers.len()) {
            return Err(format!("one has {} numbers; 1 to {MAX_DIMENSIONS} are possible", numbers.len()));
        }
        if !numbers.iter().all(|number| number.is_finite()) {
            return Err("a number is infinite or none".to_owned());
        }
        let index = item.index.unwrap_or(place);
        let slot = all.get_mut(index).ok_or_else(|| format!("one is of text {index}, of {count}"))?;
        if slot.replace(numbers).is_some() {
            return Err(format!("two are of text {index}"));
        }
    }
    let all: Vec<Vec<f32>> = all.into_iter().flatten().collect();
    if all.windows(2).any(|pair| matches!(pair, [one, other] if one.len() != other.len())) {
        return Err("they have different lengths".to_owned());
    }
    Ok(all)
}

/// Decodes little-endian 32-bit numbers.
fn decode_packed(text: &str) -> Result<Vec<f32>, String> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(text);
    let bytes = bytes.map_err(|_| "one isn't base64".to_owned())?;
    let (numbers, rest) = bytes.as_chunks::<4>();
    if rest.is_empty() {
        Ok(numbers.iter().map(|number| f32::from_le_bytes(*number)).collect())
    } else {
        Err("one is cut off".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_in_either_form_and_put_in_order() {
        let packed = base64::engine::general_purpose::STANDARD
            .encode([1.5_f32, -2.0].iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>());
        let body = json!({"object": "list", "data": [
            {"object": "embedding", "index": 1, "embedding": [0.5, 3]},
            {"index": 0, "embedding": packed},
        ], "usage": {}});
        assert_eq!(parse_vectors(body.to_string().as_bytes(), 2).unwrap(), [vec![1.5, -2.0], vec![0.5, 3.0]]);
        let without = json!({"data": [{"embedding": [1]}, {"embedding": [2]}]});
        assert_eq!(parse_vectors(without.to_string().as_bytes(), 2).unwrap(), [vec![1.0], vec![2.0]]);
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for (body, said) in [
            (json!({"data": [{"embedding": [1]}]}), "1 of them for 2"),
            (json!({"data": [{"embedding": [1]}, {"embedding": [1, 2]}]}), "different lengths"),
            (json!({"data": [{"embedding": [1]}, {"embedding": []}]}), "0 numbers"),
            (json!({"data": [{"embedding": [1]}, {"embedding": [1e300]}]}), "infinite or none"),
            (json!({"data": [{"embedding": [1]}, {"embedding": "AADA"}]}), "cut off"),
            (json!({"data": [{"embedding": [1]}, {"embedding": "AADAfw=="}]}), "infinite or none"),
            (json!({"data": [{"embedding": [1]}, {"embedding": "!"}]}), "base64"),
            (json!({"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}), "two are of"),
            (json!({"data": [{"index": 0, "embedding": [1]}, {"index": 7, "embedding": [1]}]}), "text 7"),
            (json!({"data": [{"embedding": [null]}, {"embedding": [1]}]}), "isn't one"),
            (json!({"error": "no"}), "isn't one"),
        ] {
            let told = parse_vectors(body.to_string().as_bytes(), 2).unwrap_err();
            assert!(told.contains(said), "{told}, not `{said}`");
        }
    }
}
