//! Writes a cassette while a transport is at work.

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
    ANSWER_HEADERS, Chunk, HIDDEN, Record, RecordedError, RecordedRequest, RecordedResponse, VERSION,
    secrets, without,
};
use crate::ModelError;
use crate::transport::{Body, HttpRequest, HttpResponse, Transport};

/// The longest answer that is recorded. A reply of a model has a few MiB at most.
const MAX_BODY: usize = 64 * 1024 * 1024;
/// How much of an existing file is looked at to tell whether it is a cassette.
const MAX_FIRST_LINE: u64 = 1024 * 1024;

/// A cassette being written. Clones write to the same one.
#[derive(Clone)]
pub struct Recorder(Arc<Tape>);

struct Tape {
    path: PathBuf,
    day: Option<String>,
    file: Mutex<File>,
    requests: AtomicU64,
    /// Why an exchange that nobody waited for could not be written; told at the next request.
    failed: Mutex<Option<String>>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Recorder").field(&self.0.path).finish()
    }
}

impl Recorder {
    /// Begins a cassette, readable by its owner alone. An older cassette of that name is replaced; any
    /// other file that isn't empty is left alone. `day` is the day that the prompts name, if they name one:
    /// [`Replayer::day`](crate::Replayer::day) gives it back.
    ///
    /// # Errors
    /// [`ModelError::Cassette`] where the file can't be made or holds something else.
    pub fn create(path: impl AsRef<Path>, day: Option<&str>) -> Result<Self, ModelError> {
        let path = path.as_ref();
        let file =
            open(path).map_err(|reason| ModelError::Cassette { path: path.display().to_string(), reason })?;
        Ok(Self(Arc::new(Tape {
            path: path.to_owned(),
            day: day.map(str::to_owned),
            file: Mutex::new(file),
            requests: AtomicU64::new(0),
            failed: Mutex::new(None),
        })))
    }

    /// A transport that does what `inner` does and writes it down.
    #[must_use]
    pub fn around(&self, inner: Arc<dyn Transport>) -> RecordingTransport {
        RecordingTransport { inner, recorder: self.clone() }
    }

    fn error(&self, reason: String) -> ModelError {
        ModelError::Cassette { path: self.0.path.display().to_string(), reason }
    }

    fn write(&self, record: &Record) -> Result<(), ModelError> {
        let mut line = serde_json::to_vec(record).map_err(|error| self.error(error.to_string()))?;
        line.push(b'\n');
        let mut file = self.0.file.lock().unwrap_or_else(PoisonError::into_inner);
        // One write a line: a crash leaves whole exchanges.
        file.write_all(&line).map_err(|error| self.error(error.to_string()))
    }

    fn earlier_failure(&self) -> Option<ModelError> {
        let mut failed = self.0.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.take().map(|reason| self.error(reason))
    }
}

fn open(path: &Path) -> Result<File, String> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(|error| error.to_string())?;
    let found = file.metadata().map_err(|error| error.to_string())?;
    if found.is_file() && found.len() > 0 {
        let mut first = Vec::new();
        let read = BufReader::new((&file).take(MAX_FIRST_LINE)).read_until(b'\n', &mut first);
        read.map_err(|error| error.to_string())?;
        if !is_cassette(&first) {
            return Err("the file exists and is not a cassette; name another one, or remove it".to_owned());
        }
        file.set_len(0).map_err(|error| error.to_string())?;
        file.rewind().map_err(|error| error.to_string())?;
    }
    #[cfg(unix)]
    if found.is_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let owner_only = std::fs::Permissions::from_mode(0o600);
        file.set_permissions(owner_only).map_err(|error| error.to_string())?;
    }
    Ok(file)
}

/// Whether a first line, perhaps cut off, is one of a cassette.
fn is_cassette(line: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Mark {
        #[serde(rename = "version")]
        _version: u32,
        #[serde(rename = "request")]
        _request: IgnoredAny,
    }
    let cut_off = line.len() as u64 >= MAX_FIRST_LINE;
    let begins = format!("{{\"version\":{VERSION},\"index\":");
    serde_json::from_slice::<Mark>(line).is_ok() || cut_off && line.starts_with(begins.as_bytes())
}

/// A transport that writes every exchange into a cassette when it ends, whichever way it ends.
pub struct RecordingTransport {
    inner: Arc<dyn Transport>,
    recorder: Recorder,
}

impl Transport for RecordingTransport {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, ModelError>> {
        Box::pin(async move {
            if let Some(error) = self.recorder.earlier_failure() {
                return Err(error);
            }
            let secrets = secrets(&request);
            let record = Record {
                version: VERSION,
                index: self.recorder.0.requests.fetch_add(1, Ordering::Relaxed),
                day: self.recorder.0.day.clone(),
                request: RecordedRequest::new(&request, &secrets),
                response: None,
                error: Some(RecordedError::dropped()),
            };
            let mut taping = Taping {
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
                    taping.end(Some(&error))?;
                    return Err(error);
                }
            };
            taping.record.response = Some(RecordedResponse {
                status: response.status,
                headers: response
                    .headers
                    .iter()
                    .filter(|(name, _)| ANSWER_HEADERS.contains(&name.as_str()))
                    .map(|(name, value)| (name.clone(), without(value, &taping.secrets)))
                    .collect(),
                chunks: Vec::new(),
            });
            Ok(HttpResponse { body: taped(response.body, taping), ..response })
        })
    }

    fn is_live(&self) -> bool {
        self.inner.is_live()
    }
}

/// A body that is written down as it passes.
fn taped(body: Body, taping: Taping) -> Body {
    let state = Some((body, taping));
    stream::unfold(state, |state| async move {
        let (mut body, mut taping) = state?;
        match body.next().await {
            Some(Ok(chunk)) => match taping.add(&chunk) {
                Ok(()) => Some((Ok(chunk), Some((body, taping)))),
                Err(error) => Some((Err(error), None)),
            },
            Some(Err(error)) => {
                let written = taping.end(Some(&error));
                Some((Err(written.err().unwrap_or(error)), None))
            }
            None => taping.end(None).err().map(|error| (Err(error), None)),
        }
    })
    .boxed()
}

/// One exchange being recorded. Dropped before its end, it is written as one that was dropped.
struct Taping {
    recorder: Recorder,
    record: Record,
    secrets: Vec<String>,
    chunks: Vec<Bytes>,
    size: usize,
    over: bool,
}

impl Taping {
    fn add(&mut self, chunk: &Bytes) -> Result<(), ModelError> {
        self.size = self.size.saturating_add(chunk.len());
        if self.size > MAX_BODY {
            return Err(self
                .recorder
                .error(format!("an answer of more than {MAX_BODY} bytes is not recorded")));
        }
        self.chunks.push(chunk.clone());
        Ok(())
    }

    fn end(&mut self, error: Option<&ModelError>) -> Result<(), ModelError> {
        self.record.error = error.map(|error| {
            let error = RecordedError::new(error);
            RecordedError { reason: without(&error.reason, &self.secrets), ..error }
        });
        self.write()
    }

    fn write(&mut self) -> Result<(), ModelError> {
        self.over = true;
        if let Some(response) = &mut self.record.response {
            response.chunks = open_chunks(&self.chunks, &self.secrets);
        }
        self.recorder.write(&self.record)
    }
}

impl Drop for Taping {
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

/// The pieces as they came. Only where a server sent a secret back, which may lie across two pieces, they
/// become one piece with the secret hidden.
fn open_chunks(chunks: &[Bytes], secrets: &[String]) -> Vec<Chunk> {
    if !secrets.is_empty() {
        let whole = chunks.concat();
        let text = String::from_utf8_lossy(&whole);
        let open = without(&text, secrets);
        if open.contains(HIDDEN) && open != text {
            return vec![Chunk::new(open.as_bytes())];
        }
    }
    chunks.iter().map(|chunk| Chunk::new(chunk)).collect()
}
