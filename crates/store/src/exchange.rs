//! Sessions as JSON Lines: to carry them elsewhere, to keep them, to look at them with other
//! programs.
//!
//! The first line says which session it is; then comes one line an entry, in order.
//! `docs/sessions.md` has the format.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::stream::{BoxStream, try_unfold};
use futures_util::{StreamExt as _, TryStreamExt as _};
use journeyman_protocol::{Channel, Seq, SessionId, UnixMillis};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::entry::entry_bytes;
use crate::lease::unique_number;
use crate::place::{path_with_suffix, sync_dir};
use crate::{Entry, MAX_ENTRY_BYTES, NewEntry, SessionSummary, Store, StoreError};

/// The name of the format in the first line.
const FORMAT: &str = "journeyman-session";
/// The version of the format that is written, and the newest that is read.
pub const EXPORT_VERSION: u64 = 1;
/// The status of a session while it is imported, and for ever if the program is killed meanwhile.
/// Importing it again begins afresh.
pub const STATUS_IMPORTING: &str = "importing";
/// The longest line that is read: the largest entry as text whose every byte has to be escaped, and
/// the rest.
const MAX_LINE_BYTES: u64 = 6 * MAX_ENTRY_BYTES as u64 + 64 * 1024;
/// Maximum bytes of entries that an export reads at once.
const CHUNK_BYTES: usize = 256 * 1024;
/// So much is appended at once.
const BATCH_BYTES: usize = 1024 * 1024;
/// For how long nobody else may write to a session that is imported, in milliseconds; it ends
/// earlier with the import, or with the process.
const LEASE_MS: u64 = 60 * 60 * 1000;

/// Under which id a session is imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportAs {
    /// Its own.
    Itself,
    /// Another: it becomes a copy.
    Copy(SessionId),
}

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    format: String,
    version: u64,
    id: SessionId,
    root: String,
    title: String,
    created: UnixMillis,
    updated: UnixMillis,
    status: String,
    last: Seq,
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    seq: Seq,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<Channel>,
    kind: &'a str,
    at: UnixMillis,
    #[serde(flatten)]
    payload: Payload<'a>,
}

/// The field that holds the payload.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Payload<'a> {
    /// It is JSON, and in the line as it is.
    #[serde(rename = "payload")]
    Json(&'a RawValue),
    /// It is other text.
    Text(&'a str),
    /// It is anything else.
    Base64(String),
}

impl<'a> Payload<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        let Ok(text) = std::str::from_utf8(bytes) else { return Self::Base64(STANDARD.encode(bytes)) };
        // Spaces around it would be lost, and line ends within it would end the line.
        let fits = text.trim_ascii().len() == text.len() && !text.contains(['\n', '\r']);
        match serde_json::from_str::<&RawValue>(text) {
            Ok(json) if fits => Self::Json(json),
            _ => Self::Text(text),
        }
    }
}

/// A line as it is read. Fields that this version doesn't know are passed over.
#[derive(Debug, Deserialize)]
struct ReadLine<'a> {
    seq: Seq,
    #[serde(default)]
    channel: Option<Channel>,
    kind: String,
    at: UnixMillis,
    #[serde(borrow, default, deserialize_with = "present")]
    payload: Option<&'a RawValue>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    base64: Option<String>,
}

/// Tells a payload of `null` from one that isn't there.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// A session as JSON Lines, up to the entry that is its last when this begins. Each item is some
/// whole lines; no more than a few hundred kilobytes, or one entry, are in memory at a time.
///
/// The items' errors are [`StoreError::UnknownSession`] and failures of the medium; after one there
/// is no further item.
pub fn export<'a, S: Store + ?Sized>(
    store: &'a S,
    session: &SessionId,
) -> BoxStream<'a, Result<Vec<u8>, StoreError>> {
    enum At {
        Header,
        After(Seq, Seq),
    }
    let session = session.clone();
    try_unfold(At::Header, move |at| {
        let session = session.clone();
        async move {
            match at {
                At::Header => {
                    let summary = summary(store, &session).await?;
                    let last = summary.last;
                    Ok(Some((header(summary)?, At::After(Seq::START, last))))
                }
                At::After(after, last) if after >= last => Ok(None),
                At::After(mut after, last) => {
                    let mut lines = Vec::new();
                    for entry in store.read_chunk(&session, after, CHUNK_BYTES).await? {
                        if entry.seq <= last {
                            line(&entry, &mut lines)?;
                        }
                        after = entry.seq;
                    }
                    Ok((!lines.is_empty()).then_some((lines, At::After(after, last))))
                }
            }
        }
    })
    .boxed()
}

/// Writes a session as JSON Lines into a new file with mode 0600, which appears whole and on the
/// disk, or not at all.
///
/// # Errors
/// [`StoreError::UnknownSession`]; [`StoreError::Io`] when there is such a file already; failures
/// of either medium.
pub async fn export_file<S: Store + ?Sized>(
    store: &S,
    session: &SessionId,
    path: &Path,
) -> Result<(), StoreError> {
    let temporary = path_with_suffix(path, &format!("-new-{:016x}", unique_number()));
    let written = write_beside(store, session, path, &temporary).await;
    // A leftover is harmless: its name is not used again.
    drop(fs::remove_file(&temporary));
    written?;
    sync_dir(path.parent().unwrap_or(Path::new("")))
}

async fn write_beside<S: Store + ?Sized>(
    store: &S,
    session: &SessionId,
    path: &Path,
    temporary: &Path,
) -> Result<(), StoreError> {
    let failed = |source| StoreError::io("write the exported session", path, source);
    let mut lines = export(store, session);
    // Nothing is created for a session that isn't there.
    let first = lines.try_next().await?.unwrap_or_default();
    let mut file: File =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(temporary).map_err(failed)?;
    file.write_all(&first).map_err(failed)?;
    while let Some(more) = lines.try_next().await? {
        file.write_all(&more).map_err(failed)?;
    }
    file.sync_all().map_err(failed)?;
    fs::hard_link(temporary, path).map_err(failed)
}

/// Adds an exported session to a store, all of it or nothing, and returns its id. Its entries have
/// their old places and times; nobody holds it.
///
/// While it runs the session is in lists with [`STATUS_IMPORTING`]. `source` is read in this
/// thread.
///
/// # Errors
/// [`StoreError::BadExport`] with the line, also when lines are missing at the end;
/// [`StoreError::SessionExists`]; [`StoreError::Leased`] while another process imports it; failures
/// of the medium.
pub async fn import<S: Store + ?Sized>(
    store: &S,
    source: &mut (dyn BufRead + Send),
    name: ImportAs,
    now: UnixMillis,
) -> Result<SessionId, StoreError> {
    let mut reader = Reader { source, line: 0, buffer: Vec::new() };
    let header = reader.header()?;
    let id = match name {
        ImportAs::Itself => header.id.clone(),
        ImportAs::Copy(id) => id,
    };
    let holder = format!("an import ({:016x})", unique_number());
    begin(store, &id, &header, &holder, now).await?;
    let filled = fill(store, &id, &header, &mut reader).await;
    let finished = match filled {
        Ok(()) => store.set_status(&id, &header.status, header.updated).await,
        Err(error) => Err(error),
    };
    match finished {
        Ok(()) => {
            store.release(&id, &holder).await?;
            Ok(id)
        }
        Err(error) => {
            // What can't be taken back now is replaced by the next import.
            drop(store.delete(&id).await);
            Err(error)
        }
    }
}

/// Makes the session and takes it, in the place of one that was left half imported.
async fn begin<S: Store + ?Sized>(
    store: &S,
    id: &SessionId,
    header: &Header,
    holder: &str,
    now: UnixMillis,
) -> Result<(), StoreError> {
    let create = || store.create(id, &header.root, &header.title, header.created);
    match create().await {
        Err(StoreError::SessionExists { session }) => {
            if summary(store, id).await?.status != STATUS_IMPORTING {
                return Err(StoreError::SessionExists { session });
            }
            store.lease(id, holder, now, LEASE_MS).await?;
            store.delete(id).await?;
            create().await?;
        }
        other => other?,
    }
    store.lease(id, holder, now, LEASE_MS).await?;
    store.set_status(id, STATUS_IMPORTING, header.created).await
}

async fn fill<S: Store + ?Sized>(
    store: &S,
    id: &SessionId,
    header: &Header,
    reader: &mut Reader<'_>,
) -> Result<(), StoreError> {
    let (mut stored, mut batch, mut bytes) = (Seq::START, Vec::new(), 0);
    let mut expected = Seq::START;
    while let Some((seq, entry)) = reader.entry()? {
        expected = expected.next();
        if seq != expected {
            return Err(
                reader.format_error(format!("it is entry {seq}, and entry {expected} should be here"))
            );
        }
        bytes += entry_bytes(&entry.kind, &entry.payload);
        batch.push(entry);
        if bytes >= BATCH_BYTES {
            stored = store.append(id, stored, std::mem::take(&mut batch)).await?;
            bytes = 0;
        }
    }
    if expected != header.last {
        return Err(reader.format_error(format!(
            "the entries end with {expected}, and the first line says {}; the file was cut off",
            header.last
        )));
    }
    store.append(id, stored, batch).await.map(drop)
}

/// Lines, with their numbers.
struct Reader<'a> {
    source: &'a mut (dyn BufRead + Send),
    line: u64,
    buffer: Vec<u8>,
}

impl Reader<'_> {
    fn format_error(&self, detail: String) -> StoreError {
        StoreError::BadExport { line: self.line, detail }
    }

    /// The current line as what it should be.
    fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, StoreError> {
        serde_json::from_slice(&self.buffer).map_err(|error| {
            let text = error.to_string();
            // Its own line number is always 1.
            let what = text.split(" at line ").next().unwrap_or_default();
            self.format_error(format!("{what} at column {}", error.column()))
        })
    }

    /// Reads the next line that isn't blank; false at the end.
    fn next(&mut self) -> Result<bool, StoreError> {
        loop {
            self.buffer.clear();
            self.line += 1;
            let mut limited = (&mut *self.source).take(MAX_LINE_BYTES);
            match limited.read_until(b'\n', &mut self.buffer) {
                Ok(0) => return Ok(false),
                Ok(read) if read as u64 == MAX_LINE_BYTES => {
                    return Err(self.format_error(format!("it is longer than {MAX_LINE_BYTES} bytes")));
                }
                Ok(_) if self.buffer.trim_ascii().is_empty() => {}
                Ok(_) => {
                    self.buffer.truncate(self.buffer.trim_ascii_end().len());
                    return Ok(true);
                }
                Err(error) => return Err(self.format_error(format!("it can't be read ({error})"))),
            }
        }
    }

    fn header(&mut self) -> Result<Header, StoreError> {
        /// The part of the first line that is read first, so that an error about another version
        /// isn't about a field.
        #[derive(Deserialize)]
        struct Kind {
            format: String,
            version: u64,
        }
        if !self.next()? {
            return Err(self.format_error("there is nothing in it".to_owned()));
        }
        let kind: Kind = self.parse()?;
        if kind.format != FORMAT {
            return Err(self.format_error(format!("`format` should be {FORMAT}")));
        }
        if kind.version > EXPORT_VERSION {
            return Err(self.format_error(format!(
                "it has version {}, and this program knows versions up to {EXPORT_VERSION}; use a newer one",
                kind.version
            )));
        }
        self.parse()
    }

    fn entry(&mut self) -> Result<Option<(Seq, NewEntry)>, StoreError> {
        if !self.next()? {
            return Ok(None);
        }
        let line: ReadLine<'_> = self.parse()?;
        let payload = match (line.payload, line.text, line.base64) {
            (Some(json), None, None) => json.get().as_bytes().to_vec(),
            (None, Some(text), None) => text.into_bytes(),
            (None, None, Some(base64)) => {
                STANDARD.decode(base64).map_err(|error| self.format_error(error.to_string()))?
            }
            _ => {
                return Err(
                    self.format_error("it should have one of `payload`, `text` and `base64`".to_owned())
                );
            }
        };
        let ReadLine { seq, channel, kind, at, .. } = line;
        Ok(Some((seq, NewEntry { channel, kind, at, payload })))
    }
}

async fn summary<S: Store + ?Sized>(store: &S, session: &SessionId) -> Result<SessionSummary, StoreError> {
    let found = store.find(session.as_str()).await?;
    let same = found.into_iter().find(|found| found.id == *session);
    same.ok_or_else(|| StoreError::UnknownSession { session: session.clone() })
}

fn header(summary: SessionSummary) -> Result<Vec<u8>, StoreError> {
    let SessionSummary { id, root, title, created, updated, last, status } = summary;
    let (format, version) = (FORMAT.to_owned(), EXPORT_VERSION);
    let mut line = Vec::new();
    push(&Header { format, version, id, root, title, created, updated, status, last }, &mut line)?;
    Ok(line)
}

fn line(entry: &Entry, lines: &mut Vec<u8>) -> Result<(), StoreError> {
    let Entry { seq, channel, kind, at, payload } = entry;
    push(&Line { seq: *seq, channel: *channel, kind, at: *at, payload: Payload::of(payload) }, lines)
}

/// A line as in an export, with the session it is of.
pub(crate) fn line_of(session: &SessionId, entry: &Entry) -> Result<Vec<u8>, StoreError> {
    #[derive(Serialize)]
    struct Of<'a> {
        session: &'a SessionId,
        #[serde(flatten)]
        line: Line<'a>,
    }
    let Entry { seq, channel, kind, at, payload } = entry;
    let line = Line { seq: *seq, channel: *channel, kind, at: *at, payload: Payload::of(payload) };
    let mut lines = Vec::new();
    push(&Of { session, line }, &mut lines)?;
    Ok(lines)
}

/// Adds one line.
fn push(value: &impl Serialize, lines: &mut Vec<u8>) -> Result<(), StoreError> {
    serde_json::to_writer(&mut *lines, value)
        .map_err(|error| StoreError::io("write as JSON", Path::new("the session"), error.into()))?;
    lines.push(b'\n');
    Ok(())
}
