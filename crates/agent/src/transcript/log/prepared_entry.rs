//! Queued entries, redacted and in their stored form.

use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{Channel, Event, Seq, UnixMillis};
use journeyman_store::{MAX_ENTRY_BYTES, NewEntry, StoreError};
use serde::{Deserialize as _, Serialize};
use serde_json::Value;

use super::text_references::{self, MessagePiece, RepeatedPiece};
use crate::transcript::record::Record;

/// A queued entry.
#[derive(Debug)]
pub(super) struct PreparedEntry {
    channel: Option<Channel>,
    kind: &'static str,
    pub(super) at: UnixMillis,
    body: EntryBody,
    /// The event for subscribers. Absent for records.
    pub(super) event: Option<Box<Event>>,
    /// The parts of this message that later events may repeat.
    pub(super) pieces: Vec<MessagePiece>,
    /// The session's status for lists from this entry on.
    pub(super) status: Option<String>,
}

/// The stored form of an entry.
#[derive(Debug)]
enum EntryBody {
    /// The final bytes.
    Bytes(Vec<u8>),
    /// A value in which parts that a recorded message contains are replaced by references.
    Repeats {
        value: Value,
        repeats: Vec<RepeatedPiece>,
        /// The bytes of the first attempt to write. Kept because the store may have written them
        /// without confirming.
        bytes: Option<Vec<u8>>,
    },
}

impl PreparedEntry {
    /// Prepares an event: redacts it once for both the log and subscribers.
    pub(super) fn from_event(event: Box<Event>, at: UnixMillis, redactor: &Redactor) -> Self {
        let (channel, kind) = (Some(event.channel()), event.kind());
        if !may_have_text(&event) {
            let body = EntryBody::Bytes(to_json_bytes(&*event));
            return Self { channel, kind, at, body, event: Some(event), pieces: Vec::new(), status: None };
        }
        let (value, changed) = redacted_json(&*event, redactor);
        // If redaction replaced a number, the event can't be parsed any more and is not shown.
        let event = if changed { Event::deserialize(&value).ok().map(Box::new) } else { Some(event) };
        let repeats = event.as_deref().map(text_references::pieces_of_event).unwrap_or_default();
        let body = match repeats.is_empty() {
            true => EntryBody::Bytes(to_json_bytes(&value)),
            false => EntryBody::Repeats { value, repeats, bytes: None },
        };
        Self { channel, kind, at, body, event, pieces: Vec::new(), status: None }
    }

    /// Prepares a record.
    pub(super) fn from_record(record: &Record, at: UnixMillis, redactor: &Redactor) -> Self {
        let (kind, status) = (record.kind(), record.status());
        let (value, changed) = match record {
            Record::Began
            | Record::RewrittenAsText
            | Record::Counters(_)
            | Record::Checkpoint { .. }
            | Record::Checking { .. }
            | Record::Ended { .. } => {
                let body = EntryBody::Bytes(to_json_bytes(record));
                return Self { channel: None, kind, at, body, event: None, pieces: Vec::new(), status };
            }
            _ => redacted_json(record, redactor),
        };
        let body = EntryBody::Bytes(to_json_bytes(&value));
        let pieces = match (record, changed) {
            (Record::Message { .. }, false) => text_references::pieces_of_record(record),
            (Record::Message { .. }, true) => serde_json::from_value(value)
                .map(|record| text_references::pieces_of_record(&record))
                .unwrap_or_default(),
            _ => Vec::new(),
        };
        Self { channel: None, kind, at, body, event: None, pieces, status }
    }

    /// Returns the entry for the store. `find` returns the recorded message that contains a piece.
    pub(super) fn build_entry(&mut self, find: impl Fn(&MessagePiece) -> Option<Seq>) -> NewEntry {
        let payload = match &mut self.body {
            EntryBody::Bytes(bytes) => bytes.clone(),
            EntryBody::Repeats { bytes: Some(bytes), .. } => bytes.clone(),
            EntryBody::Repeats { value, repeats, bytes } => {
                let stored = text_references::replace_pieces(value, repeats, find);
                bytes.insert(to_json_bytes(&stored)).clone()
            }
        };
        NewEntry { channel: self.channel, kind: self.kind.to_owned(), at: self.at, payload }
    }

    /// Discards the stored bytes because the entry's position, or one that it refers to, has
    /// changed.
    pub(super) fn discard_stored_bytes(&mut self) {
        if let EntryBody::Repeats { bytes, .. } = &mut self.body {
            *bytes = None;
        }
    }

    /// Returns the approximate size of a subscriber's copy, in bytes.
    pub(super) fn approximate_bytes(&self) -> usize {
        match &self.body {
            EntryBody::Bytes(bytes) => bytes.len(),
            EntryBody::Repeats { repeats, bytes, .. } => {
                let repeated = repeats.iter().map(|repeat| repeat.bytes).sum::<usize>();
                repeated.saturating_add(bytes.as_ref().map_or(0, Vec::len))
            }
        }
    }

    /// Refuses an entry that is too large for the store.
    pub(super) fn check_size(&self) -> Result<(), StoreError> {
        let bytes = self.kind.len().saturating_add(self.approximate_bytes());
        if bytes <= MAX_ENTRY_BYTES {
            return Ok(());
        }
        let kind = self.kind.to_owned();
        Err(StoreError::EntryTooLarge { kind, bytes: bytes as u64, limit: MAX_ENTRY_BYTES as u64 })
    }
}

/// Returns true if the event may contain text of a person, a model or a program, and so a secret.
fn may_have_text(event: &Event) -> bool {
    !matches!(
        event,
        Event::TurnPhaseChanged { .. }
            | Event::StateChanged { .. }
            | Event::StepComplete { .. }
            | Event::TokenUsage { .. }
            | Event::TurnStarted { .. }
            | Event::VerifyFinished { .. }
            | Event::Cost { .. }
    )
}

/// Returns the redacted JSON form, and true if something was redacted.
fn redacted_json<T: Serialize>(what: &T, redactor: &Redactor) -> (Value, bool) {
    let mut value = serde_json::to_value(what).unwrap_or_default();
    let before = value.clone();
    redactor.redact_json(&mut value);
    let changed = value != before;
    (value, changed)
}

/// Serializes a value as JSON. This doesn't fail for our own types: their map keys are strings.
fn to_json_bytes<T: Serialize>(what: &T) -> Vec<u8> {
    serde_json::to_vec(what).unwrap_or_default()
}
