//! An entry that waits to be written: redacted, and in the form in which it will be stored.

use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{Channel, Event, Seq, UnixMillis};
use journeyman_store::{MAX_ENTRY_BYTES, NewEntry, StoreError};
use serde::{Deserialize as _, Serialize};
use serde_json::Value;

use super::reference::{self, Piece, Repeat};
use crate::transcript::record::Record;

/// An entry that waits.
#[derive(Debug)]
pub(super) struct Prepared {
    channel: Option<Channel>,
    kind: &'static str,
    pub(super) at: UnixMillis,
    body: Body,
    /// What subscribers are shown. Absent for records.
    pub(super) event: Option<Box<Event>>,
    /// What of this message events may repeat.
    pub(super) pieces: Vec<Piece>,
    /// What lists show of the session from this entry on.
    pub(super) status: Option<String>,
}

/// What will be stored.
#[derive(Debug)]
enum Body {
    /// This.
    Bytes(Vec<u8>),
    /// This, but for what a message on record says already.
    Repeats {
        value: Value,
        repeats: Vec<Repeat>,
        /// The bytes, from the first attempt to write them on: the store may have them, though it
        /// said nothing.
        bytes: Option<Vec<u8>>,
    },
}

impl Prepared {
    /// An event, searched for secrets once, for the log and for subscribers.
    pub(super) fn event(event: Box<Event>, at: UnixMillis, redactor: &Redactor) -> Self {
        let (channel, kind) = (Some(event.channel()), event.kind());
        if !has_text(&event) {
            let body = Body::Bytes(bytes_of(&*event));
            return Self { channel, kind, at, body, event: Some(event), pieces: Vec::new(), status: None };
        }
        let (value, changed) = cleaned(&*event, redactor);
        // Where a secret stood in place of a number the event can't be read any more: nobody is
        // shown it.
        let event = if changed { Event::deserialize(&value).ok().map(Box::new) } else { Some(event) };
        let repeats = event.as_deref().map(reference::repeats).unwrap_or_default();
        let body = match repeats.is_empty() {
            true => Body::Bytes(bytes_of(&value)),
            false => Body::Repeats { value, repeats, bytes: None },
        };
        Self { channel, kind, at, body, event, pieces: Vec::new(), status: None }
    }

    /// A record.
    pub(super) fn record(record: &Record, at: UnixMillis, redactor: &Redactor) -> Self {
        let (kind, status) = (record.kind(), record.status());
        let (value, changed) = match record {
            Record::Began
            | Record::Cleared
            | Record::Books(_)
            | Record::Checkpoint { .. }
            | Record::Checking { .. }
            | Record::Ended { .. } => {
                let body = Body::Bytes(bytes_of(record));
                return Self { channel: None, kind, at, body, event: None, pieces: Vec::new(), status };
            }
            _ => cleaned(record, redactor),
        };
        let body = Body::Bytes(bytes_of(&value));
        let pieces = match (record, changed) {
            (Record::Message { .. }, false) => reference::pieces(record),
            (Record::Message { .. }, true) => {
                serde_json::from_value(value).map(|record| reference::pieces(&record)).unwrap_or_default()
            }
            _ => Vec::new(),
        };
        Self { channel: None, kind, at, body, event: None, pieces, status }
    }

    /// What to hand to the store. `find` says which message on record has a piece.
    pub(super) fn entry(&mut self, find: impl Fn(&Piece) -> Option<Seq>) -> NewEntry {
        let payload = match &mut self.body {
            Body::Bytes(bytes) => bytes.clone(),
            Body::Repeats { bytes: Some(bytes), .. } => bytes.clone(),
            Body::Repeats { value, repeats, bytes } => {
                let stored = reference::shortened(value, repeats, find);
                bytes.insert(bytes_of(&stored)).clone()
            }
        };
        NewEntry { channel: self.channel, kind: self.kind.to_owned(), at: self.at, payload }
    }

    /// Its place in the log is another one now, and so may be the places it names.
    pub(super) fn forget_place(&mut self) {
        if let Body::Repeats { bytes, .. } = &mut self.body {
            *bytes = None;
        }
    }

    /// About how many bytes a subscriber's copy takes.
    pub(super) fn weight(&self) -> usize {
        match &self.body {
            Body::Bytes(bytes) => bytes.len(),
            Body::Repeats { repeats, bytes, .. } => {
                let repeated = repeats.iter().map(|repeat| repeat.bytes).sum::<usize>();
                repeated.saturating_add(bytes.as_ref().map_or(0, Vec::len))
            }
        }
    }

    /// Refuses an entry that the store would refuse for ever.
    pub(super) fn check_size(&self) -> Result<(), StoreError> {
        let bytes = self.kind.len().saturating_add(self.weight());
        if bytes <= MAX_ENTRY_BYTES {
            return Ok(());
        }
        let kind = self.kind.to_owned();
        Err(StoreError::EntryTooLarge { kind, bytes: bytes as u64, limit: MAX_ENTRY_BYTES as u64 })
    }
}

/// Whether anything in it was written by a person, a model or a program, and so may be a secret.
fn has_text(event: &Event) -> bool {
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

/// The stored form without known secrets, and whether there was one.
fn cleaned<T: Serialize>(what: &T, redactor: &Redactor) -> (Value, bool) {
    let mut value = serde_json::to_value(what).unwrap_or_default();
    let before = value.clone();
    redactor.redact_json(&mut value);
    let changed = value != before;
    (value, changed)
}

/// Our own types have no keys but strings and no failing serializer.
fn bytes_of<T: Serialize>(what: &T) -> Vec<u8> {
    serde_json::to_vec(what).unwrap_or_default()
}
