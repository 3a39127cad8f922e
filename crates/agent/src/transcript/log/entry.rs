//! Reads entries back from the store.

use journeyman_protocol::{Envelope, Message, SessionId};
use journeyman_store::Entry;

use crate::transcript::record::{Record, record_of};

/// Reads an entry as an event. Returns `None` for a record or an entry of a newer version.
///
/// Long texts and inputs that are stored only in a message's record are left empty here.
/// [`events`](super::load_events) fills them in.
#[must_use]
pub fn envelope_of(session: &SessionId, entry: &Entry) -> Option<Envelope> {
    let channel = entry.channel?;
    let event = serde_json::from_slice(&entry.payload).ok()?;
    let (session, agent) = (session.clone(), Vec::new());
    Some(Envelope { session, seq: Some(entry.seq), at: entry.at, channel, agent, event })
}

/// Reads an entry as a message. Returns `None` for any other entry.
#[must_use]
pub fn message_of(entry: &Entry) -> Option<Message> {
    match record_of(entry) {
        Some(Record::Message { message, .. }) => Some(message),
        _ => None,
    }
}
