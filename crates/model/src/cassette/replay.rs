//! Replays a cassette.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};

use super::diff::diff_json;
use super::{FORMAT_VERSION, RecordedExchange, RecordedRequest, secrets_of};
use crate::ModelError;
use crate::transport::{HttpRequest, HttpResponse, Transport, display_url};

/// Maximum size of a cassette: hours of work with a model.
const MAX_CASSETTE_BYTES: u64 = 512 * 1024 * 1024;

/// A transport that opens no socket: it answers each request from a cassette, in order, after
/// comparing method, path and body with the recorded ones. Clones share the position in the
/// cassette.
#[derive(Clone)]
pub struct Replayer(Arc<Cassette>);

struct Cassette {
    path: String,
    records: Vec<RecordedExchange>,
    next: Mutex<usize>,
}

impl std::fmt::Debug for Replayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replayer")
            .field("path", &self.0.path)
            .field("exchanges", &self.0.records.len())
            .finish_non_exhaustive()
    }
}

impl Replayer {
    /// Reads a cassette of at most 512 MiB.
    ///
    /// # Errors
    /// [`ModelError::Cassette`] if the file can't be read or a line is not an exchange; the error
    /// names the line.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        let path = path.as_ref();
        let failed = |reason: String| ModelError::Cassette { path: path.display().to_string(), reason };
        let meta = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?;
        let size = meta.len();
        if !meta.is_file() {
            return Err(failed("it is not a regular file".to_owned()));
        }
        if size > MAX_CASSETTE_BYTES {
            return Err(failed(format!("it has {size} bytes; at most {MAX_CASSETTE_BYTES} are read")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        let records = parse_cassette(&text).map_err(failed)?;
        Ok(Self(Arc::new(Cassette { path: path.display().to_string(), records, next: Mutex::new(0) })))
    }

    /// Returns the date in the recorded prompts.
    #[must_use]
    pub fn prompt_date(&self) -> Option<&str> {
        self.0.records.first()?.day.as_deref()
    }

    /// Returns the number of exchanges that have not been replayed yet.
    #[must_use]
    pub fn remaining(&self) -> usize {
        let next = self.0.next.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.records.len().saturating_sub(*next)
    }

    fn replay_next(&self, request: &HttpRequest) -> Result<HttpResponse, ModelError> {
        let cassette = &self.0;
        let mut next = cassette.next.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(record) = cassette.records.get(*next) else {
            return Err(ModelError::ReplayExhausted { exchanges: cassette.records.len() });
        };
        let now = RecordedRequest::new(request, &secrets_of(request));
        if let Some(diff) = diff_json(&record.request.to_comparable(), &now.to_comparable()) {
            return Err(ModelError::ReplayMismatch { exchange: next.saturating_add(1), diff });
        }
        *next = next.saturating_add(1);
        let url = display_url(&request.url);
        let error = record.error.as_ref().map(|error| error.to_model_error(&url));
        let Some(response) = &record.response else {
            return Err(error
                .unwrap_or_else(|| self.cassette_error("an exchange has neither an answer nor an error")));
        };
        let chunks: Result<Vec<Vec<u8>>, String> =
            response.chunks.iter().map(|chunk| chunk.bytes()).collect();
        let chunks = chunks.map_err(|reason| self.cassette_error(&reason))?;
        let items = chunks.into_iter().map(|chunk| Ok(Bytes::from(chunk))).chain(error.map(Err));
        let items: Vec<Result<Bytes, ModelError>> = items.collect();
        Ok(HttpResponse {
            status: response.status,
            headers: response.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            body: stream::iter(items).boxed(),
        })
    }

    fn cassette_error(&self, reason: &str) -> ModelError {
        ModelError::Cassette { path: self.0.path.clone(), reason: reason.to_owned() }
    }
}

fn parse_cassette(text: &str) -> Result<Vec<RecordedExchange>, String> {
    let mut records = Vec::new();
    for (place, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let number = place.saturating_add(1);
        let record: RecordedExchange = serde_json::from_str(line)
            .map_err(|error| format!("line {number} is no recorded exchange: {error}"))?;
        if record.version != FORMAT_VERSION {
            return Err(format!(
                "line {number} has version {}; this program reads version {FORMAT_VERSION}",
                record.version
            ));
        }
        records.push(record);
    }
    records.sort_by_key(|record| record.index);
    Ok(records)
}

impl Transport for Replayer {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, ModelError>> {
        let answer = self.replay_next(&request);
        Box::pin(std::future::ready(answer))
    }

    fn is_live(&self) -> bool {
        false
    }
}
