//! Entries read back from the store.

use journeyman_protocol::{Envelope, Message, SessionId};
use journeyman_store::Entry;

use crate::transcript::record::{Record, record_of};

/// Reads an entry back as the event it was, or `None` where it is a record or from a newer version.
///
/// A long text or input that the log holds once, in the record of its message, is empty in what
/// this gives: [`events`](super::events) reads the log with all of it in place.
#[must_use]
pub fn envelope_of(session: &SessionId, entry: &Entry) -> Option<Envelope> {
    let channel = entry.channel?;
    let event = serde_json::from_slice(&entry.payload).ok()?;
    Some(Envelope { session: session.clone(), seq: Some(entry.seq), at: entry.at, channel, event })
}

/// Reads an entry back as the message it was, or `None` where it is anything else.
#[must_use]
pub fn message_of(entry: &Entry) -> Option<Message> {
    match record_of(entry) {
        Some(Record::Message { message, .. }) => Some(message),
        _ => None,
    }
}
