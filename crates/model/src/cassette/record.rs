//! Writes a cassette while a transport is in use.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use serde::de::IgnoredAny;

use super::{
    FORMAT_VERSION, REDACTED, RESPONSE_HEADERS, RecordedChunk, RecordedError, RecordedExchange,
    RecordedRequest, RecordedResponse, redact, secrets_of,
};
use crate::ModelError;
use crate::transport::{Body, HttpRequest, HttpResponse, Transport};

/// Maximum size of a recorded response. A model's reply has a few MiB at most.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;
/// Bytes of an existing file that are read to find out whether it is a cassette.
const MAX_FIRST_LINE_BYTES: u64 = 1024 * 1024;

/// A cassette that is being written. Clones write to the same file.
#[derive(Clone)]
pub struct Recorder(Arc<RecorderInner>);

struct RecorderInner {
    path: PathBuf,
    day: Option<String>,
    file: Mutex<File>,
    requests: AtomicU64,
    /// The error of an exchange whose reader was dropped; reported at the next request.
    failed: Mutex<Option<String>>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Recorder").field(&self.0.path).finish()
    }
}

impl Recorder {
    /// Creates a cassette that only its owner can read. An older cassette of that name is replaced;
    /// any other file that is not empty is left unchanged. `day` is the date in the prompts, if
    /// there is one: [`Replayer::day`](crate::Replayer::prompt_date) returns it.
    ///
    /// # Errors
    /// [`ModelError::Cassette`] if the file can't be created or is not a cassette.
    pub fn create(path: impl AsRef<Path>, day: Option<&str>) -> Result<Self, ModelError> {
        let path = path.as_ref();
        let file = create_cassette_file(path)
            .map_err(|reason| ModelError::Cassette { path: path.display().to_string(), reason })?;
        Ok(Self(Arc::new(RecorderInner {
            path: path.to_owned(),
            day: day.map(str::to_owned),
            file: Mutex::new(file),
            requests: AtomicU64::new(0),
            failed: Mutex::new(None),
        })))
    }

    /// Returns a transport that forwards to `inner` and records the exchanges.
    #[must_use]
    pub fn wrap_transport(&self, inner: Arc<dyn Transport>) -> RecordingTransport {
        RecordingTransport { inner, recorder: self.clone() }
    }

    fn cassette_error(&self, reason: String) -> ModelError {
        ModelError::Cassette { path: self.0.path.display().to_string(), reason }
    }

    fn write(&self, record: &RecordedExchange) -> Result<(), ModelError> {
        let mut line = serde_json::to_vec(record).map_err(|error| self.cassette_error(error.to_string()))?;
        line.push(b'\n');
        let mut file = self.0.file.lock().unwrap_or_else(PoisonError::into_inner);
        // One write per line, so that a crash leaves whole exchanges.
        file.write_all(&line).map_err(|error| self.cassette_error(error.to_string()))
    }

    fn take_write_error(&self) -> Option<ModelError> {
        let mut failed = self.0.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.take().map(|reason| self.cassette_error(reason))
    }
}

fn create_cassette_file(path: &Path) -> Result<File, String> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(|error| error.to_string())?;
    let found = file.metadata().map_err(|error| error.to_string())?;
    if found.is_file() && found.len() > 0 {
        let mut first = Vec::new();
        let read = BufReader::new((&file).take(MAX_FIRST_LINE_BYTES)).read_until(b'\n', &mut first);
        read.map_err(|error| error.to_string())?;
        if !is_cassette(&first) {
            return Err("the file exists and is not a cassette; name another one, or remove it".to_owned());
        }
        file.set_len(0).map_err(|error| error.to_string())?;
        file.rewind().map_err(|error| error.to_string())?;
    }
    if found.is_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let owner_only = std::fs::Permissions::from_mode(0o600);
        file.set_permissions(owner_only).map_err(|error| error.to_string())?;
    }
    Ok(file)
}

/// Returns true if a first line, possibly cut off, is a cassette's.
fn is_cassette(line: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct VersionLine {
        #[serde(rename = "version")]
        _version: u32,
        #[serde(rename = "request")]
        _request: IgnoredAny,
    }
    let cut_off = line.len() as u64 >= MAX_FIRST_LINE_BYTES;
    let begins = format!("{{\"version\":{FORMAT_VERSION},\"index\":");
    serde_json::from_slice::<VersionLine>(line).is_ok() || cut_off && line.starts_with(begins.as_bytes())
}

/// A transport that writes every exchange into a cassette when the exchange ends, however it ends.
pub struct RecordingTransport {
    inner: Arc<dyn Transport>,
    recorder: Recorder,
}

impl Transport for RecordingTransport {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, ModelError>> {
        Box::pin(async move {
            if let Some(error) = self.recorder.take_write_error() {
                return Err(error);
            }
            let secrets = secrets_of(&request);
            let record = RecordedExchange {
                version: FORMAT_VERSION,
                index: self.recorder.0.requests.fetch_add(1, Ordering::Relaxed),
                day: self.recorder.0.day.clone(),
                request: RecordedRequest::new(&request, &secrets),
                response: None,
                error: Some(RecordedError::dropped_by_caller()),
            };
            let mut recording = RecordingExchange {
                recorder: self.recorder.clone(),
                record,
                secrets,
                chunks: Vec::new(),
                size: 0,
                over: false,
            };
            let response = match self.inner.send(request).await {
                Ok(response) => response,
                Err(error) => {
                    recording.end(Some(&error))?;
                    return Err(error);
                }
            };
            recording.record.response = Some(RecordedResponse {
                status: response.status,
                headers: response
                    .headers
                    .iter()
                    .filter(|(name, _)| RESPONSE_HEADERS.contains(&name.as_str()))
                    .map(|(name, value)| (name.clone(), redact(value, &recording.secrets)))
                    .collect(),
                chunks: Vec::new(),
            });
            Ok(HttpResponse { body: record_body(response.body, recording), ..response })
        })
    }

    fn is_live(&self) -> bool {
        self.inner.is_live()
    }

    fn is_recording(&self) -> bool {
        true
    }
}

/// Returns a body that records its chunks as they are read.
fn record_body(body: Body, recording: RecordingExchange) -> Body {
    let state = Some((body, recording));
    stream::unfold(state, |state| async move {
        let (mut body, mut recording) = state?;
        match body.next().await {
            Some(Ok(chunk)) => match recording.add(&chunk) {
                Ok(()) => Some((Ok(chunk), Some((body, recording)))),
                Err(error) => Some((Err(error), None)),
            },
            Some(Err(error)) => {
                let written = recording.end(Some(&error));
                Some((Err(written.err().unwrap_or(error)), None))
            }
            None => recording.end(None).err().map(|error| (Err(error), None)),
        }
    })
    .boxed()
}

/// An exchange that is being recorded. If dropped before its end, it is recorded as dropped.
struct RecordingExchange {
    recorder: Recorder,
    record: RecordedExchange,
    secrets: Vec<String>,
    chunks: Vec<Bytes>,
    size: usize,
    over: bool,
}

impl RecordingExchange {
    fn add(&mut self, chunk: &Bytes) -> Result<(), ModelError> {
        self.size = self.size.saturating_add(chunk.len());
        if self.size > MAX_BODY_BYTES {
            return Err(self
                .recorder
                .cassette_error(format!("an answer of more than {MAX_BODY_BYTES} bytes is not recorded")));
        }
        self.chunks.push(chunk.clone());
        Ok(())
    }

    fn end(&mut self, error: Option<&ModelError>) -> Result<(), ModelError> {
        self.record.error = error.map(|error| {
            let error = RecordedError::new(error);
            RecordedError { reason: redact(&error.reason, &self.secrets), ..error }
        });
        self.write()
    }

    fn write(&mut self) -> Result<(), ModelError> {
        self.over = true;
        if let Some(response) = &mut self.record.response {
            response.chunks = record_chunks(&self.chunks, &self.secrets);
        }
        self.recorder.write(&self.record)
    }
}

impl Drop for RecordingExchange {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        if let Err(error) = self.write() {
            let mut failed = self.recorder.0.failed.lock().unwrap_or_else(PoisonError::into_inner);
            *failed = Some(error.to_string());
        }
    }
}

/// Returns the recorded chunks of a body. If the server sent a secret back, which may span two
/// chunks, the chunks are joined and the secret is redacted.
fn record_chunks(chunks: &[Bytes], secrets: &[String]) -> Vec<RecordedChunk> {
    if !secrets.is_empty() {
        let whole = chunks.concat();
        let text = String::from_utf8_lossy(&whole);
        let open = redact(&text, secrets);
        if open.contains(REDACTED) && open != text {
            return vec![RecordedChunk::new(open.as_bytes())];
        }
    }
    chunks.iter().map(|chunk| RecordedChunk::new(chunk)).collect()
}
