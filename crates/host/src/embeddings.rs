//! Turning the configuration into an embedding model for the code.
//!
//! `index.vectors` names it: `model2vec:DIRECTORY` for one on this machine, `provider/name` for a
//! server that has OpenAI's `/embeddings`. A repository has no say in it
//! ([`load_without_project`](crate::config::load_without_project)), since what is embedded is sent
//! to the server; known secrets are taken out of it first, as they are out of a prompt.

#[cfg(feature = "local-embeddings")]
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[cfg(feature = "local-embeddings")]
use journeyman_index::vectors::Model2Vec;
pub use journeyman_index::vectors::QueryEmbedder;
use journeyman_index::vectors::{Deadline, EmbedError, Embedder, EmbeddingPurpose};
use journeyman_model::{EmbeddingsClient, Endpoint, ModelError};
use journeyman_policy::secrets::Redactor;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, ConfigError, Environment};

/// The prefix of models on this machine.
const LOCAL_MODEL_PREFIX: &str = "model2vec:";
/// The default weight of vectors: the best one for static embeddings (docs/benchmarks.md).
const DEFAULT_VECTOR_WEIGHT: f64 = 0.2;
/// The default time that a query waits for its vector. A server on this machine takes some
/// milliseconds, one that loads its model first takes seconds.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(2);
/// Number of texts in one request. A server works on one text after the other; more only make
/// stopping slower.
const BATCH_SIZE: usize = 32;
/// Number of requests at the same time: the server works on one while the next is on its way.
const CONCURRENT_REQUESTS: usize = 2;
/// Time between two checks for cancellation.
const CANCEL_INTERVAL: Duration = Duration::from_millis(20);
/// Minimum length that texts are cut to for a server that finds them too long, in bytes.
const MIN_TRUNCATED_BYTES: usize = 256;

/// Returns the embedding model that the configuration names, if it names one. No request is sent
/// yet. Secrets that `redactor` knows are never sent to a server, nor are the values of `secrets`
/// and the server's own key.
///
/// # Errors
/// [`ConfigError::Model`] where the model can't be loaded or found.
pub fn load_query_embedder(
    config: &Config,
    environment: &Environment,
    redactor: Arc<Redactor>,
) -> Result<Option<QueryEmbedder>, ConfigError> {
    let Some(name) = config.vectors.model.as_deref().filter(|name| !name.is_empty()) else { return Ok(None) };
    let refused = |what: String| ConfigError::Model(format!("index.vectors: {what}"));
    let embedder: Arc<dyn Embedder> = match name.strip_prefix(LOCAL_MODEL_PREFIX) {
        #[cfg(not(feature = "local-embeddings"))]
        Some(_) => {
            return Err(refused(
                "this build can't read models on this machine: it lacks the cargo feature \
                 `local-embeddings`. Name a server's model instead, or use a build that has it"
                    .to_owned(),
            ));
        }
        #[cfg(feature = "local-embeddings")]
        Some(directory) => {
            let directory = environment.resolve_user_path(directory);
            if !Path::new(directory.as_os_str()).is_dir() {
                return Err(refused(format!("there is no directory `{}`", directory.display())));
            }
            Arc::new(Model2Vec::load(&directory).map_err(|error| refused(error.to_string()))?)
        }
        None => {
            let (endpoint, model) = crate::models::configured_endpoint(config, environment, name)
                .map_err(|error| refused(error.to_string()))?;
            let secrets =
                config.redacted_variables().filter_map(|name| environment.var(name)).map(str::to_owned);
            let key = endpoint.key.as_ref().map(|key| key.reveal().to_owned());
            let redactors = [redactor, Arc::new(Redactor::new(secrets.chain(key)))];
            let prefix = |prefix: &Option<String>| prefix.clone().unwrap_or_default();
            let prefixes = [prefix(&config.vectors.query_prefix), prefix(&config.vectors.document_prefix)];
            let server = EmbeddingServer::new(endpoint, &model, redactors, prefixes);
            Arc::new(server.map_err(|error| refused(error.to_string()))?)
        }
    };
    #[allow(clippy::cast_possible_truncation)]
    let weight = config.vectors.weight.unwrap_or(DEFAULT_VECTOR_WEIGHT) as f32;
    Ok(Some(QueryEmbedder { embedder, weight, timeout: config.vectors.timeout.unwrap_or(DEFAULT_TIMEOUT) }))
}

/// A model behind `/embeddings`.
struct EmbeddingServer {
    name: String,
    identity: [u8; 32],
    client: EmbeddingsClient,
    redactors: [Arc<Redactor>; 2],
    /// The texts before queries, and before other texts.
    prefixes: [String; 2],
    /// Maximum length of a text that the model reads, as far as is known, in bytes.
    max_bytes: AtomicUsize,
}

impl EmbeddingServer {
    fn new(
        endpoint: Endpoint,
        model: &str,
        redactors: [Arc<Redactor>; 2],
        prefixes: [String; 2],
    ) -> Result<Self, ModelError> {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"embeddings 1");
        for part in [endpoint.base_url.as_str(), model].into_iter().chain(prefixes.iter().map(String::as_str))
        {
            hasher.update(blake3::hash(part.as_bytes()).as_bytes());
        }
        let client = EmbeddingsClient::connect(endpoint, model)?;
        Ok(Self {
            name: client.name(),
            identity: *hasher.finalize().as_bytes(),
            client,
            redactors,
            prefixes,
            max_bytes: AtomicUsize::new(usize::MAX),
        })
    }

    /// Sends the texts, cut shorter until the model accepts them.
    async fn embed_texts(
        &self,
        texts: &[String],
        deadline: Deadline<'_>,
        cancel: &CancellationToken,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        loop {
            let longest = self.max_bytes.load(Ordering::Relaxed);
            let cut: Vec<&str> = texts.iter().map(|text| truncate(text, longest)).collect();
            match self.client.embed(&cut, cancel).await {
                Ok(vectors) => return Ok(vectors),
                Err(ModelError::Cancelled) => {
                    deadline.check()?;
                    return Err(EmbedError::Stopped);
                }
                Err(error) => {
                    let most = cut.iter().map(|text| text.len()).max().unwrap_or(0);
                    let is_too_long = matches!(error.root_cause(), ModelError::ContextTooLong { .. });
                    if !is_too_long || most <= MIN_TRUNCATED_BYTES {
                        return Err(EmbedError::Failed { model: self.name.clone(), what: error.to_string() });
                    }
                    self.max_bytes.fetch_min((most * 3 / 4).max(MIN_TRUNCATED_BYTES), Ordering::Relaxed);
                }
            }
        }
    }
}

/// Returns the beginning of a text, of at most `max` bytes.
fn truncate(text: &str, max: usize) -> &str {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or(text)
}

impl Embedder for EmbeddingServer {
    fn name(&self) -> &str {
        &self.name
    }

    fn identity(&self) -> [u8; 32] {
        self.identity
    }

    fn dimensions(&self) -> Option<usize> {
        None
    }

    fn batch_size(&self) -> usize {
        BATCH_SIZE
    }

    fn max_concurrency(&self) -> usize {
        CONCURRENT_REQUESTS
    }

    fn embed(
        &self,
        texts: &[&str],
        purpose: EmbeddingPurpose,
        deadline: Deadline<'_>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let [query, document] = &self.prefixes;
        let prefix = if purpose == EmbeddingPurpose::Query { query } else { document };
        let [one, other] = &self.redactors;
        let clean = |text: &&str| format!("{prefix}{}", other.redact(&one.redact(text)));
        let texts: Vec<String> = texts.iter().map(clean).collect();
        let failed = |what: String| EmbedError::Failed { model: self.name.clone(), what };
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| failed(error.to_string()))?;
            runtime.block_on(async {
                let cancel = CancellationToken::new();
                let asked = self.embed_texts(&texts, deadline, &cancel);
                tokio::pin!(asked);
                loop {
                    tokio::select! {
                        biased;
                        answer = &mut asked => return answer,
                        () = tokio::time::sleep(CANCEL_INTERVAL) => deadline.check()?,
                    }
                }
            })
        };
        // A thread of its own, since the caller's may be a runtime's already.
        std::thread::scope(|scope| {
            let started = std::thread::Builder::new().spawn_scoped(scope, run);
            let ended = started.map_err(|error| failed(error.to_string()))?.join();
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}
