//! Vectors of texts, from any server that has OpenAI's `/embeddings`: Ollama, llama.cpp, vLLM and many hosted ones.
//!
//! One request for some texts, with the patience, the retries and the key of any other request. Numbers are asked for
//! packed (`encoding_format: base64`: a quarter of the bytes) and read in either form, because some servers answer
//! with plain numbers whatever they were asked. An answer is used whole or not at all.

use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::client::{HttpModel, read_bounded};
use crate::transport::{HttpRequest, Method, asked_wait, jittered_wait};
use crate::{Endpoint, ModelError, Wire, connect};

/// Texts of one request, at most: what the strictest of the known servers take is 2,048, and an answer to so many is
/// already some megabytes.
pub const MAX_TEXTS: usize = 256;
/// Numbers of a vector, at most. The longest known have 4,096.
const MAX_NUMBERS: usize = 8_192;
/// The longest answer: so many vectors of so many numbers, at twelve characters each.
const MAX_ANSWER: usize = 32 << 20;

/// How servers say that a text is longer than the model reads, whatever status they say it with.
const TOO_LONG: [&str; 6] =
    ["too large", "too long", "context length", "context size", "maximum input", "maximum context"];

/// A model that makes vectors, behind HTTP.
#[derive(Debug)]
pub struct Embeddings {
    client: HttpModel,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: Option<usize>,
    embedding: Numbers,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Numbers {
    Plain(Vec<f32>),
    Packed(String),
}

/// An error, and how long the server asks to wait before the next attempt.
struct Failure {
    error: ModelError,
    asked: Option<Duration>,
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self { error, asked: None }
    }
}

impl Embeddings {
    /// The model of that name at an endpoint. Opens nothing: the first request does.
    ///
    /// # Errors
    /// [`ModelError::NoKey`] and [`ModelError::Endpoint`] as [`connect`] has them; the latter also for a protocol that has
    /// no `/embeddings`.
    pub fn connect(endpoint: Endpoint, model: &str) -> Result<Self, ModelError> {
        if !matches!(endpoint.wire, Wire::Chat | Wire::Responses) {
            let reason = format!(
                "there is no /embeddings in the protocol «{}»; name a provider that speaks «chat», which local \
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

    /// `provider/model`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}", self.client.endpoint.provider, self.client.model)
    }

    /// A vector of each text, in order, all of one length, every number finite.
    ///
    /// # Errors
    /// [`ModelError`], after as many attempts as the endpoint's policy has; [`ModelError::ContextTooLong`] where a text is
    /// longer than the model reads; [`ModelError::Protocol`] for too many texts, and for an answer that has too few vectors
    /// or some that aren't any.
    pub async fn embed(
        &self,
        texts: &[&str],
        cancel: &CancellationToken,
    ) -> Result<Vec<Vec<f32>>, ModelError> {
        if texts.len() > MAX_TEXTS {
            return Err(ModelError::Protocol(format!(
                "{} texts at once; {MAX_TEXTS} are possible",
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
                tried = self.attempt(&request, texts.len()) => tried,
            };
            let Failure { error, asked } = match tried {
                Ok(vectors) => return Ok(vectors),
                Err(failure) => failure,
            };
            let error = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(ModelError::Cancelled),
                error = self.client.explain(error, &self.client.model) => error,
            };
            if let Some(message) = too_long(&error) {
                return Err(ModelError::ContextTooLong { message });
            }
            if !error.is_retryable() || policy.attempts <= 1 {
                return Err(error);
            }
            if attempt >= policy.attempts {
                return Err(ModelError::GaveUp { attempts: attempt, last: Box::new(error) });
            }
            if let Some(asked) = asked.filter(|asked| *asked > policy.longest_asked) {
                let longest = policy.longest_asked;
                return Err(ModelError::RetryAfterTooLong { asked, longest, message: error.to_string() });
            }
            let wait = asked.unwrap_or_else(|| jittered_wait(policy, attempt, &mut random));
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

    async fn attempt(&self, request: &HttpRequest, count: usize) -> Result<Vec<Vec<f32>>, Failure> {
        let response = self.client.transport.send(request.clone()).await?;
        if !(200..300).contains(&response.status) {
            let clock = self.client.endpoint.retry.clock.as_ref();
            let asked = asked_wait(|name| response.header(name), || clock.map(|clock| clock.now()));
            let error = self.client.status_error(response.status, response.body).await;
            return Err(Failure { error, asked });
        }
        let body = read_bounded(response.body, MAX_ANSWER).await?;
        Ok(vectors(&body, count).map_err(|what| {
            ModelError::Protocol(format!("the answer of {} has no usable vectors: {what}", self.name()))
        })?)
    }
}

/// What a server said about a text that is too long for it, if that is what it said.
fn too_long(error: &ModelError) -> Option<String> {
    let (ModelError::Http { message, .. } | ModelError::ContextTooLong { message }) = error else {
        return None;
    };
    let said = message.to_ascii_lowercase();
    let is_named = matches!(error, ModelError::ContextTooLong { .. });
    (is_named || TOO_LONG.iter().any(|words| said.contains(words))).then(|| message.clone())
}

/// The vectors of an answer, in the order of what was asked.
fn vectors(body: &[u8], count: usize) -> Result<Vec<Vec<f32>>, String> {
    let answer: Answer = serde_json::from_slice(body)
        .map_err(|error| format!("it isn't one ({error}); is it a model for embeddings?"))?;
    if answer.data.len() != count {
        return Err(format!("{} of them for {count} texts", answer.data.len()));
    }
    let mut all: Vec<Option<Vec<f32>>> = vec![None; count];
    for (place, item) in answer.data.into_iter().enumerate() {
        let numbers = match item.embedding {
            Numbers::Plain(numbers) => numbers,
            Numbers::Packed(text) => unpack(&text)?,
        };
        if !(1..=MAX_NUMBERS).contains(&numbers.len()) {
            return Err(format!("one has {} numbers; 1 to {MAX_NUMBERS} are possible", numbers.len()));
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

/// Little-endian numbers of 32 bits.
fn unpack(text: &str) -> Result<Vec<f32>, String> {
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
        assert_eq!(vectors(body.to_string().as_bytes(), 2).unwrap(), [vec![1.5, -2.0], vec![0.5, 3.0]]);
        let without = json!({"data": [{"embedding": [1]}, {"embedding": [2]}]});
        assert_eq!(vectors(without.to_string().as_bytes(), 2).unwrap(), [vec![1.0], vec![2.0]]);
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
            let told = vectors(body.to_string().as_bytes(), 2).unwrap_err();
            assert!(told.contains(said), "{told}, not «{said}»");
        }
    }
}
