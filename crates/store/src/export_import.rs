//! Export and import of sessions as JSON Lines: for other stores, archives and programs.
//!
//! The first line describes the session; one line for each entry follows, in order. Sessions that
//! belong to it follow in the same form. `docs/sessions.md` has the format.

use std::collections::{HashSet, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::stream::{BoxStream, try_unfold};
use futures_util::{StreamExt as _, TryStreamExt as _};
use journeyman_protocol::{Channel, Seq, SessionId, UnixMillis};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::entry::entry_bytes;
use crate::lease::unique_number;
use crate::private_directories::{path_with_suffix, sync_dir};
use crate::{Entry, MAX_ENTRY_BYTES, NewEntry, NewSession, SessionOrigin, SessionSummary, Store, StoreError};

/// The name of the format in the first line.
const FORMAT: &str = "journeyman-session";
/// The newest supported version of the format, used for a session with member sessions.
pub const EXPORT_VERSION: u64 = 2;
/// The version of the format for a single session.
const SINGLE_SESSION_VERSION: u64 = 1;
/// The status of a session during its import, and after an import that was killed. A repeated
/// import starts over.
pub const SESSION_STATUS_IMPORTING: &str = "importing";
/// Maximum bytes of an imported line: the largest entry with every byte escaped, and the other
/// fields.
const MAX_IMPORTED_LINE_BYTES: u64 = 6 * MAX_ENTRY_BYTES as u64 + 64 * 1024;
/// Maximum bytes of entries that an export reads at once.
const EXPORT_CHUNK_BYTES: usize = 256 * 1024;
/// Maximum bytes of entries that an import appends at once.
const IMPORT_BATCH_BYTES: usize = 1024 * 1024;
/// Maximum number of sessions that belong to an imported one: far more than a session of years has,
/// and a bound on the memory for replacing their ids.
const MAX_MEMBERS: usize = 100_000;
/// Duration of the lease on an imported session, in milliseconds. The lease ends earlier with the
/// import or its process.
const IMPORT_LEASE_MS: u64 = 60 * 60 * 1000;

/// The id that a session is imported under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportAs {
    /// The exported id.
    Itself,
    /// Another id, which makes a copy. The sessions that belong to it get new ids too, and all
    /// these ids are replaced in their entries.
    Copy(SessionId),
}

/// The sessions that an import added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedSessions {
    /// The session.
    pub session: SessionId,
    /// The sessions that belong to it.
    pub members: Vec<SessionId>,
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
    /// The sessions that follow in the same text, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    members: Vec<SessionId>,
}

#[derive(Debug, Serialize)]
struct EntryLine<'a> {
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
    /// JSON, included unchanged.
    #[serde(rename = "payload")]
    Json(&'a RawValue),
    /// Other text.
    Text(&'a str),
    /// Any other bytes.
    Base64(String),
}

impl<'a> Payload<'a> {
    fn from_bytes(bytes: &'a [u8]) -> Self {
        let Ok(text) = std::str::from_utf8(bytes) else { return Self::Base64(STANDARD.encode(bytes)) };
        // Surrounding spaces would be lost, and line breaks inside would end the line.
        let fits = text.trim_ascii().len() == text.len() && !text.contains(['\n', '\r']);
        match serde_json::from_str::<&RawValue>(text) {
            Ok(json) if fits => Self::Json(json),
            _ => Self::Text(text),
        }
    }
}

/// A line to import. Unknown fields are ignored.
#[derive(Debug, Deserialize)]
struct ImportedLine<'a> {
    seq: Seq,
    #[serde(default)]
    channel: Option<Channel>,
    kind: String,
    at: UnixMillis,
    #[serde(borrow, default, deserialize_with = "deserialize_present")]
    payload: Option<&'a RawValue>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    base64: Option<String>,
}

/// Deserializes a present field as `Some`, so that a payload of `null` differs from a missing one.
fn deserialize_present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// The state of an export.
struct ExportState {
    /// The sessions that are still to be exported.
    waiting: VecDeque<SessionId>,
    /// The session in progress, its last exported entry, and its last entry.
    current: Option<(SessionId, Seq, Seq)>,
    /// The member sessions, until the first line lists them.
    members: Vec<SessionId>,
}

/// Exports a session as JSON Lines, and after it its member sessions, each up to its last entry at
/// that time. Each item holds whole lines; at most a few hundred kilobytes, or one entry, are in
/// memory at a time.
///
/// The errors are [`StoreError::UnknownSession`] and failures of the medium. The stream ends after
/// an error.
pub fn export<'a, S: Store + ?Sized>(
    store: &'a S,
    session: &SessionId,
    members: &[SessionId],
) -> BoxStream<'a, Result<Vec<u8>, StoreError>> {
    let waiting = std::iter::once(session).chain(members).cloned().collect();
    let begin = ExportState { waiting, current: None, members: members.to_vec() };
    try_unfold(begin, move |mut at| async move {
        if let Some((session, mut after, last)) = at.current.take().filter(|(_, after, last)| after < last) {
            let mut lines = Vec::new();
            for entry in store.read_chunk(&session, after, EXPORT_CHUNK_BYTES).await? {
                if entry.seq <= last {
                    encode_entry(&entry, &mut lines)?;
                }
                after = entry.seq;
            }
            if lines.is_empty() {
                // It was deleted, and another one has its id.
                return Err(StoreError::NoSuchEntry { session, asked: last, last: after });
            }
            at.current = Some((session, after, last));
            return Ok(Some((lines, at)));
        }
        let Some(session) = at.waiting.pop_front() else { return Ok(None) };
        let summary = find_summary(store, &session).await?;
        at.current = Some((session, Seq::START, summary.last));
        Ok(Some((encode_header(summary, std::mem::take(&mut at.members))?, at)))
    })
    .boxed()
}

/// Writes a session as [`export`] does into a new file with mode 0600, atomically and durably.
///
/// # Errors
/// [`StoreError::UnknownSession`]; [`StoreError::Io`] when there is such a file already; failures
/// of either medium.
pub async fn export_file<S: Store + ?Sized>(
    store: &S,
    session: &SessionId,
    members: &[SessionId],
    path: &Path,
) -> Result<(), StoreError> {
    let temporary = path_with_suffix(path, &format!("-new-{:016x}", unique_number()));
    let written = write_and_link(export(store, session, members), path, &temporary).await;
    // A leftover is harmless: its name isn't reused.
    drop(fs::remove_file(&temporary));
    written?;
    sync_dir(path.parent().unwrap_or(Path::new("")))
}

async fn write_and_link(
    mut lines: BoxStream<'_, Result<Vec<u8>, StoreError>>,
    path: &Path,
    temporary: &Path,
) -> Result<(), StoreError> {
    let failed = |source| StoreError::io("write the exported session", path, source);
    // Nothing is created for an unknown session.
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

/// Adds an exported session and its member sessions to a store, all or nothing, and returns their
/// ids. The entries keep their sequence numbers and times. The sessions have no lease afterwards.
///
/// During the import, lists show the sessions with [`SESSION_STATUS_IMPORTING`], and afterwards
/// with `status`, or the exported ones if there is none. `source` is read in this thread.
///
/// # Errors
/// [`StoreError::BadExport`] with the line, also when lines are missing at the end;
/// [`StoreError::SessionExists`]; [`StoreError::Leased`] while another process imports it; failures
/// of the medium.
pub async fn import<S: Store + ?Sized>(
    store: &S,
    source: &mut (dyn BufRead + Send),
    name: ImportAs,
    status: Option<&str>,
    now: UnixMillis,
) -> Result<ImportedSessions, StoreError> {
    let mut reader = Reader { source, line: 0, buffer: Vec::new(), renamed: None };
    let header = reader.header("there is nothing in it")?;
    let imported = match name {
        ImportAs::Itself => ImportedSessions { session: header.id.clone(), members: header.members.clone() },
        ImportAs::Copy(session) => {
            let members = header.members.iter().map(|_| SessionId::new(now, unique_number())).collect();
            ImportedSessions { session, members }
        }
    };
    reader.replace_session_ids(&header, &imported)?;
    let holder = format!("an import ({:016x})", unique_number());
    let mut import = Import { store, holder: &holder, status, now, replaces: false, begun: Vec::new() };
    match import.add_all(&mut reader, header, &imported).await {
        Ok(()) => {
            for (id, _) in &import.begun {
                store.release_lease(id, &holder).await?;
            }
            Ok(imported)
        }
        Err(error) => {
            for (id, _) in &import.begun {
                // Once this import's time is over another one may have put its own in the place.
                if store.lease_holder(id, now).await.is_ok_and(|found| found.as_deref() == Some(&holder)) {
                    // A session that can't be deleted now is replaced by the next import.
                    drop(store.delete(id).await);
                }
            }
            Err(error)
        }
    }
}

/// An import in progress.
struct Import<'a, S: ?Sized> {
    store: &'a S,
    holder: &'a str,
    status: Option<&'a str>,
    now: UnixMillis,
    /// True if an import of the same session was killed: it may have completed members.
    replaces: bool,
    /// The created sessions, with their first lines.
    begun: Vec<(SessionId, Header)>,
}

impl<S: Store + ?Sized> Import<'_, S> {
    async fn add_all(
        &mut self,
        reader: &mut Reader<'_>,
        header: Header,
        imported: &ImportedSessions,
    ) -> Result<(), StoreError> {
        let members = header.members.clone();
        self.add_session(reader, header, &imported.session).await?;
        for (member, id) in members.iter().zip(&imported.members) {
            let header = reader.header(&format!("session {member} is missing; the file was cut off"))?;
            if header.id != *member {
                return Err(
                    reader.format_error(format!("it is session {}, and {member} should be here", header.id))
                );
            }
            self.add_session(reader, header, id).await?;
        }
        if reader.read_line()? {
            return Err(reader.format_error("there is more than the first line says".to_owned()));
        }
        // The session itself comes last: until then, the next import replaces all.
        for (id, header) in self.begun.iter().rev() {
            let exported = (header.status.as_str(), header.updated);
            let (status, updated) = self.status.map_or(exported, |status| (status, self.now));
            self.store.set_status(id, status, updated).await?;
        }
        Ok(())
    }

    async fn add_session(
        &mut self,
        reader: &mut Reader<'_>,
        header: Header,
        id: &SessionId,
    ) -> Result<(), StoreError> {
        self.create_importing_session(id, &header).await?;
        let last = header.last;
        self.begun.push((id.clone(), header));
        // The lease runs from now, and not from when the session was made elsewhere.
        self.store.acquire_lease(id, self.holder, self.now, IMPORT_LEASE_MS).await?;
        append_entries(self.store, id, last, reader).await
    }
    /// Creates the session with its status and its lease, in one step: a crash leaves no session
    /// that looks complete. Replaces a session that an earlier import left incomplete.
    async fn create_importing_session(&mut self, id: &SessionId, header: &Header) -> Result<(), StoreError> {
        let exists = || Err(StoreError::SessionExists { session: id.clone() });
        match find_summary(self.store, id).await {
            Err(StoreError::UnknownSession { .. }) => {}
            Err(error) => return Err(error),
            Ok(found) if !self.is_replaceable(&found, header) => return exists(),
            Ok(_) => {
                self.store.acquire_lease(id, self.holder, self.now, IMPORT_LEASE_MS).await?;
                // Its own import may have completed it before the lease was had.
                if !self.is_replaceable(&find_summary(self.store, id).await?, header) {
                    self.store.release_lease(id, self.holder).await?;
                    return exists();
                }
                self.store.delete(id).await?;
                self.replaces |= self.begun.is_empty();
            }
        }
        let since_created = self.now.0.saturating_sub(header.created.0);
        let new = NewSession {
            id: id.clone(),
            origin: SessionOrigin::Root(header.root.clone()),
            title: header.title.clone(),
            now: header.created,
            status: SESSION_STATUS_IMPORTING.to_owned(),
            lease: Some((self.holder.to_owned(), since_created.saturating_add(IMPORT_LEASE_MS))),
            entries: Vec::new(),
        };
        match self.store.create_with_entries(new).await {
            // Another import was faster.
            Err(StoreError::Conflict { .. }) => exists(),
            other => other.map(drop),
        }
    }

    /// Returns true for what a killed import left: a session that is incomplete, or a member that
    /// it completed before the session itself.
    fn is_replaceable(&self, found: &SessionSummary, header: &Header) -> bool {
        let same = (found.created, found.last) == (header.created, header.last);
        found.status == SESSION_STATUS_IMPORTING || self.replaces && same
    }
}

async fn append_entries<S: Store + ?Sized>(
    store: &S,
    id: &SessionId,
    last: Seq,
    reader: &mut Reader<'_>,
) -> Result<(), StoreError> {
    let (mut stored, mut batch, mut bytes) = (Seq::START, Vec::new(), 0);
    let mut expected = Seq::START;
    while expected < last
        && let Some((seq, entry)) = reader.entry()?
    {
        expected = expected.next();
        if seq != expected {
            return Err(
                reader.format_error(format!("it is entry {seq}, and entry {expected} should be here"))
            );
        }
        bytes += entry_bytes(&entry.kind, &entry.payload);
        batch.push(entry);
        if bytes >= IMPORT_BATCH_BYTES {
            stored = store.append(id, stored, std::mem::take(&mut batch)).await?;
            bytes = 0;
        }
    }
    if expected != last {
        return Err(reader.format_error(format!(
            "the entries end with {expected}, and the first line says {last}; the file was cut off"
        )));
    }
    store.append(id, stored, batch).await.map(drop)
}

/// Reads lines and counts them.
struct Reader<'a> {
    source: &'a mut (dyn BufRead + Send),
    line: u64,
    buffer: Vec<u8>,
    /// A finder of the ids to replace in entries, and the new ids.
    renamed: Option<(AhoCorasick, Vec<String>)>,
}

impl Reader<'_> {
    fn format_error(&self, detail: String) -> StoreError {
        StoreError::BadExport { line: self.line, detail }
    }

    /// Parses the current line.
    fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, StoreError> {
        serde_json::from_slice(&self.buffer).map_err(|error| {
            let text = error.to_string();
            // The error's own line number is always 1.
            let what = text.split(" at line ").next().unwrap_or_default();
            self.format_error(format!("{what} at column {}", error.column()))
        })
    }

    /// Reads the next line that isn't blank; returns false at the end.
    fn read_line(&mut self) -> Result<bool, StoreError> {
        loop {
            self.buffer.clear();
            self.line += 1;
            let mut limited = (&mut *self.source).take(MAX_IMPORTED_LINE_BYTES);
            match limited.read_until(b'\n', &mut self.buffer) {
                Ok(0) => return Ok(false),
                Ok(read) if read as u64 == MAX_IMPORTED_LINE_BYTES => {
                    return Err(
                        self.format_error(format!("it is longer than {MAX_IMPORTED_LINE_BYTES} bytes"))
                    );
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

    /// Replaces the ids of the sessions in all following entries. A session without members keeps
    /// its entries byte for byte.
    fn replace_session_ids(
        &mut self,
        header: &Header,
        imported: &ImportedSessions,
    ) -> Result<(), StoreError> {
        if header.members.is_empty() || header.id == imported.session {
            return Ok(());
        }
        let old = std::iter::once(&header.id).chain(&header.members).map(SessionId::as_str);
        let new = std::iter::once(&imported.session).chain(&imported.members).map(SessionId::to_string);
        let finder = AhoCorasick::new(old).map_err(|error| self.format_error(error.to_string()))?;
        self.renamed = Some((finder, new.collect()));
        Ok(())
    }

    fn header(&mut self, missing: &str) -> Result<Header, StoreError> {
        /// The part of the first line that is parsed first, so that another version is reported as
        /// such and not as a bad field.
        #[derive(Deserialize)]
        struct FormatVersion {
            format: String,
            version: u64,
        }
        if !self.read_line()? {
            return Err(self.format_error(missing.to_owned()));
        }
        let kind: FormatVersion = self.parse()?;
        if kind.format != FORMAT {
            return Err(self.format_error(format!("`format` should be {FORMAT}")));
        }
        if kind.version > EXPORT_VERSION {
            return Err(self.format_error(format!(
                "it has version {}, and this program knows versions up to {EXPORT_VERSION}; use a newer one",
                kind.version
            )));
        }
        let header: Header = self.parse()?;
        let named: HashSet<&SessionId> = std::iter::once(&header.id).chain(&header.members).collect();
        if named.len() <= header.members.len() {
            return Err(self.format_error("it names a session twice".to_owned()));
        }
        if header.members.len() > MAX_MEMBERS {
            return Err(self.format_error(format!("it names more than {MAX_MEMBERS} sessions")));
        }
        Ok(header)
    }

    fn entry(&mut self) -> Result<Option<(Seq, NewEntry)>, StoreError> {
        if !self.read_line()? {
            return Ok(None);
        }
        let line: ImportedLine<'_> = self.parse()?;
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
        let ImportedLine { seq, channel, kind, at, .. } = line;
        let payload = match &self.renamed {
            Some((finder, new)) => finder.replace_all_bytes(&payload, new),
            None => payload,
        };
        Ok(Some((seq, NewEntry { channel, kind, at, payload })))
    }
}

async fn find_summary<S: Store + ?Sized>(
    store: &S,
    session: &SessionId,
) -> Result<SessionSummary, StoreError> {
    let found = store.find_sessions(session.as_str()).await?;
    let same = found.into_iter().find(|found| found.id == *session);
    same.ok_or_else(|| StoreError::UnknownSession { session: session.clone() })
}

fn encode_header(summary: SessionSummary, members: Vec<SessionId>) -> Result<Vec<u8>, StoreError> {
    let SessionSummary { id, root, title, created, updated, last, status } = summary;
    let version = if members.is_empty() { SINGLE_SESSION_VERSION } else { EXPORT_VERSION };
    let format = FORMAT.to_owned();
    let mut line = Vec::new();
    push_json_line(
        &Header { format, version, id, root, title, created, updated, status, last, members },
        &mut line,
    )?;
    Ok(line)
}

fn encode_entry(entry: &Entry, lines: &mut Vec<u8>) -> Result<(), StoreError> {
    let Entry { seq, channel, kind, at, payload } = entry;
    push_json_line(
        &EntryLine { seq: *seq, channel: *channel, kind, at: *at, payload: Payload::from_bytes(payload) },
        lines,
    )
}

/// Returns the line of an entry as in an export, with the id of its session.
pub(crate) fn encode_session_entry(session: &SessionId, entry: &Entry) -> Result<Vec<u8>, StoreError> {
    #[derive(Serialize)]
    struct SessionLine<'a> {
        session: &'a SessionId,
        #[serde(flatten)]
        line: EntryLine<'a>,
    }
    let Entry { seq, channel, kind, at, payload } = entry;
    let line =
        EntryLine { seq: *seq, channel: *channel, kind, at: *at, payload: Payload::from_bytes(payload) };
    let mut lines = Vec::new();
    push_json_line(&SessionLine { session, line }, &mut lines)?;
    Ok(lines)
}

/// Appends a value as one line of JSON.
fn push_json_line(value: &impl Serialize, lines: &mut Vec<u8>) -> Result<(), StoreError> {
    serde_json::to_writer(&mut *lines, value)
        .map_err(|error| StoreError::io("write as JSON", Path::new("the session"), error.into()))?;
    lines.push(b'\n');
    Ok(())
}
