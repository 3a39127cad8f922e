//! Plays a cassette back.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};

use super::diff::diff;
use super::{Record, RecordedRequest, VERSION, secrets};
use crate::ModelError;
use crate::transport::{HttpRequest, HttpResponse, Transport, shown_url};

/// The largest cassette that is read: hours of work with a model, and still far from filling the memory.
const MAX_CASSETTE: u64 = 512 * 1024 * 1024;

/// A transport that opens no socket: it answers each request from a cassette, in order, after comparing
/// method, path and body with the recorded ones. Clones share the place in the cassette.
#[derive(Clone)]
pub struct Replayer(Arc<Cassette>);

struct Cassette {
    path: String,
    records: Vec<Record>,
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
    /// [`ModelError::Cassette`] where the file can't be read or a line, which it names, is no exchange.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        let path = path.as_ref();
        let failed = |reason: String| ModelError::Cassette { path: path.display().to_string(), reason };
        let meta = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?;
        let size = meta.len();
        if !meta.is_file() {
            return Err(failed("it is not a regular file".to_owned()));
        }
        if size > MAX_CASSETTE {
            return Err(failed(format!("it has {size} bytes; at most {MAX_CASSETTE} are read")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        let records = parse(&text).map_err(failed)?;
        Ok(Self(Arc::new(Cassette { path: path.display().to_string(), records, next: Mutex::new(0) })))
    }

    /// The day that the recorded prompts name.
    #[must_use]
    pub fn day(&self) -> Option<&str> {
        self.0.records.first()?.day.as_deref()
    }

    /// How many exchanges haven't been played yet.
    #[must_use]
    pub fn remaining(&self) -> usize {
        let next = self.0.next.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.records.len().saturating_sub(*next)
    }

    fn play(&self, request: &HttpRequest) -> Result<HttpResponse, ModelError> {
        let cassette = &self.0;
        let mut next = cassette.next.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(record) = cassette.records.get(*next) else {
            return Err(ModelError::ReplayExhausted { exchanges: cassette.records.len() });
        };
        let now = RecordedRequest::new(request, &secrets(request));
        if let Some(diff) = diff(&record.request.compared(), &now.compared()) {
            return Err(ModelError::ReplayMismatch { exchange: next.saturating_add(1), diff });
        }
        *next = next.saturating_add(1);
        let url = shown_url(&request.url);
        let error = record.error.as_ref().map(|error| error.replayed(&url));
        let Some(response) = &record.response else {
            return Err(
                error.unwrap_or_else(|| self.broken("an exchange has neither an answer nor an error"))
            );
        };
        let chunks: Result<Vec<Vec<u8>>, String> =
            response.chunks.iter().map(|chunk| chunk.bytes()).collect();
        let chunks = chunks.map_err(|reason| self.broken(&reason))?;
        let items = chunks.into_iter().map(|chunk| Ok(Bytes::from(chunk))).chain(error.map(Err));
        let items: Vec<Result<Bytes, ModelError>> = items.collect();
        Ok(HttpResponse {
            status: response.status,
            headers: response.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            body: stream::iter(items).boxed(),
        })
    }

    fn broken(&self, reason: &str) -> ModelError {
        ModelError::Cassette { path: self.0.path.clone(), reason: reason.to_owned() }
    }
}

fn parse(text: &str) -> Result<Vec<Record>, String> {
    let mut records = Vec::new();
    for (place, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let number = place.saturating_add(1);
        let record: Record = serde_json::from_str(line)
            .map_err(|error| format!("line {number} is no recorded exchange: {error}"))?;
        if record.version != VERSION {
            return Err(format!(
                "line {number} has version {}; this program reads version {VERSION}",
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
        let answer = self.play(&request);
        Box::pin(std::future::ready(answer))
    }

    fn is_live(&self) -> bool {
        false
    }
}
